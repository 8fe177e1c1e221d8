// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// The web pages of the HTTP port.
package struct PageSettings: Sendable, Hashable {
    /// The pages that are served. A program that was built without pages serves none.
    package var served = WebPages.areBuiltIn ? PageSettings.usual : []
    /// The origins whose pages may show a live room in a frame.
    package var frames: [String] = []

    package init() {}
}

extension PageSettings {
    /// The pages that are on unless they are switched off.
    private static let usual: WebPages = [.home, .api, .chat, .room]

    private static let home = Setting.flag(
        "http.pages.home",
        default: usual.contains(.home),
        "Whether / shows a page with the listeners of this server and first steps."
    )
    private static let api = Setting.flag(
        "http.pages.api",
        default: usual.contains(.api),
        "Whether /api shows a page about the HTTP API for human readers."
    )
    private static let chat = Setting.flag(
        "http.pages.chat",
        default: usual.contains(.chat),
        "Whether /chat/ is a chat for browsers. The chat needs http.websocket.enabled."
    )
    private static let room = Setting.flag(
        "http.pages.room",
        default: usual.contains(.room),
        "Whether /room/NAME shows the live room of that name. The page needs http.websocket.enabled."
    )
    private static let frames = Setting<[String]>.origins(
        "http.pages.frames",
        maxCount: 100,
        "The origins whose web pages may show a live room in a frame. https://*.example.org stands for all hosts "
            + "below example.org. If the list is empty, no page may do so."
    )

    static let settings: [SettingDescriptor] = [
        home.descriptor, api.descriptor, chat.descriptor, room.descriptor, frames.descriptor,
    ]

    init(_ values: SettingValues) throws(SettingsError) {
        self.init()
        var pages: WebPages = []
        if try values.value(of: Self.home) { pages.insert(.home) }
        if try values.value(of: Self.api) { pages.insert(.api) }
        if try values.value(of: Self.chat) { pages.insert(.chat) }
        if try values.value(of: Self.room) { pages.insert(.room) }
        served = WebPages.areBuiltIn ? pages : []
        frames = try values.value(of: Self.frames)
    }
}
