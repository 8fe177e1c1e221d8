// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import NIOCore

/// A file of the web pages. `scripts/embed-web` puts the files into this binary, compressed.
struct WebFile: Sendable {
    /// The path of its address, such as "/chat/index.html".
    let path: String
    let contentType: String
    /// Changes with the content.
    let tag: String
    /// The content, compressed.
    let gzipBase64: String

    /// The content as most clients take it.
    var packed: [UInt8] { Data(base64Encoded: gzipBase64).map { Array($0) } ?? [] }

    /// The contents of all files for clients that take no gzip, by their paths. Unpacked when the first of them asks.
    static let unpacked: [String: ByteBuffer] = {
        let contents = all.compactMap { file in
            // `PagesTests` unpacks each file; one that cannot be unpacked is missing here.
            (try? Gunzip.bytes(of: file.packed)).map { (file.path, ByteBuffer(bytes: $0)) }
        }
        return Dictionary(contents) { first, _ in first }
    }()

    /// The pages that need it.
    var pages: WebPages {
        // The look of the home page is that of the API's.
        if path.hasPrefix("/home/") { return [.home, .api] }
        if path.hasPrefix("/console/") { return .console }
        // The SDK is for the pages that run scripts: the chat and the live room, which are switched together.
        return .chat
    }

    /// Whether apps on other hosts may load it: the SDK, and the script that puts a live room into a page.
    var isPublic: Bool { !path.dropFirst().contains("/") || path == "/room/embed.js" }
    /// Whether pages on other hosts may show it in a frame, if the operator names them: the live room, which in a frame
    /// can only be watched.
    var isFramed: Bool { path == "/room/index.html" }
}

/// The pages, each of which can be switched off.
package struct WebPages: OptionSet, Sendable, Hashable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) { self.rawValue = rawValue }

    /// `/`: the state of this server, and first steps.
    package static let home = Self(rawValue: 1)
    /// `/api`: the HTTP API, for people.
    package static let api = Self(rawValue: 2)
    /// `/chat/`: a chat, and `/room/NAME`: live rooms.
    package static let chat = Self(rawValue: 4)
    /// `/console/`, on the console's own port alone.
    package static let console = Self(rawValue: 8)
}
