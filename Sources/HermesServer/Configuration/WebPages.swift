// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The web pages, each of which can be switched off.
package struct WebPages: OptionSet, Sendable, Hashable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) { self.rawValue = rawValue }

    /// `/`: the listeners of this server, and first steps.
    package static let home = Self(rawValue: 1)
    /// `/api`: the HTTP API, for people.
    package static let api = Self(rawValue: 2)
    /// `/chat/`: a chat.
    package static let chat = Self(rawValue: 4)
    /// `/console/`: the console, which is served only on its own port.
    package static let console = Self(rawValue: 8)
    /// `/room/NAME`: live rooms.
    package static let room = Self(rawValue: 16)

    /// Whether this program contains the pages, that is, whether it was built with the trait `Pages`.
    package static var areBuiltIn: Bool {
        #if Pages
        true
        #else
        false
        #endif
    }
}
