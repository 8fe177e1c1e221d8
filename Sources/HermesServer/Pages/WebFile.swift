// Hermes
// SPDX-License-Identifier: Apache-2.0

#if Pages
import Foundation
import NIOCore

/// A file of the web pages. `scripts/embed-web` puts the files into this binary, compressed.
struct WebFile: Sendable {
    /// The path of its address, such as "/chat/index.html".
    let path: String
    let contentType: String
    /// The entity tag, which changes with the content.
    let tag: String
    /// The content, compressed.
    let gzipBase64: String

    /// The content compressed with gzip, as most clients accept it.
    var packed: [UInt8] { Data(base64Encoded: gzipBase64).map { Array($0) } ?? [] }

    /// The uncompressed contents of all files, by their paths, for clients that do not accept gzip. They are unpacked
    /// when the first such client requests a file.
    static let unpacked: [String: ByteBuffer] = {
        let contents = all.compactMap { file in
            // A file that cannot be unpacked is missing here; `PagesTests` makes sure that there is none.
            (try? Gzip.unpacked(file.packed)).map { (file.path, ByteBuffer(bytes: $0)) }
        }
        return Dictionary(contents) { first, _ in first }
    }()

    /// The pages that need the file.
    var pages: WebPages {
        // The page of the API uses the style sheet and the icon of the home page.
        if path.hasPrefix("/home/") { return [.home, .api] }
        if path.hasPrefix("/console/") { return .console }
        if path.hasPrefix("/chat/") { return .chat }
        if path.hasPrefix("/room/") { return .room }
        // The SDK is for the pages that run scripts, and for apps on other hosts.
        return [.chat, .room]
    }

    /// Whether apps on other hosts may load the file: the SDK, and the script that puts a live room into a page.
    var isPublic: Bool { !path.dropFirst().contains("/") || path == "/room/embed.js" }
    /// Whether pages on other hosts that the operator names may show the file in a frame. This is true only for the
    /// live room, because visitors can only watch a room in a frame.
    var isFramed: Bool { path == "/room/index.html" }
}
#endif
