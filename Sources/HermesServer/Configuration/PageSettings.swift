// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore

/// The web pages of the HTTP port.
package struct PageSettings: Sendable, Hashable {
    /// The pages that are switched on.
    private var wanted = PageSettings.usual
    /// The origins whose pages may show a live room in a frame.
    package var frames: [String] = []

    package init() {}

    /// The pages that are served. A program that was built without pages serves none.
    package var served: WebPages {
        get { WebPages.areBuiltIn ? wanted : [] }
        set { wanted = newValue }
    }
}

extension PageSettings: SettingFields {
    /// The pages that are on unless they are switched off.
    private static let usual: WebPages = [.home, .api, .chat, .room]

    private subscript(page page: WebPages) -> Bool {
        get { wanted.contains(page) }
        set { wanted = newValue ? wanted.union(page) : wanted.subtracting(page) }
    }

    package static let fields: [SettingField<Self>] = [
        .flag(
            \.[page: .home],
            "http.pages.home",
            "Whether / shows a page with the listeners of this server and first steps."
        ),
        .flag(
            \.[page: .api],
            "http.pages.api",
            "Whether /api shows a page about the HTTP API for human readers."
        ),
        .flag(
            \.[page: .chat],
            "http.pages.chat",
            "Whether /chat/ is a chat for browsers. The chat needs http.websocket.enabled."
        ),
        .flag(
            \.[page: .room],
            "http.pages.room",
            "Whether /room/NAME shows the live room of that name. The page needs http.websocket.enabled."
        ),
        .origins(
            \.frames,
            "http.pages.frames",
            maxCount: 100,
            "The origins whose web pages may show a live room in a frame. https://*.example.org stands for all hosts "
                + "below example.org. If the list is empty, no page may do so."
        ),
    ]
}
