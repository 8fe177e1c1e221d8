// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A file of the web pages. `scripts/embed-web` puts the files into this binary.
struct WebFile: Sendable {
    /// The path of its address, such as "/chat/index.html".
    let path: String
    let contentType: String
    /// Changes with the content.
    let tag: String
    /// The content, compressed.
    let gzipBase64: String
    let text: String

    /// The pages that need it.
    var pages: WebPages {
        // The look of the home page is that of the API's.
        if path.hasPrefix("/home/") { return [.home, .api] }
        // The SDK is for the pages that run scripts.
        return .chat
    }

    /// Whether apps on other hosts may load it: the SDK.
    var isPublic: Bool { !path.dropFirst().contains("/") }
}

/// The pages, each of which can be switched off.
package struct WebPages: OptionSet, Sendable, Hashable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) { self.rawValue = rawValue }

    /// `/`: the state of this server, and first steps.
    package static let home = Self(rawValue: 1)
    /// `/api`: the HTTP API, for people.
    package static let api = Self(rawValue: 2)
    /// `/chat/`: a chat.
    package static let chat = Self(rawValue: 4)
}
