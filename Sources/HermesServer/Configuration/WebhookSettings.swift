// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore

/// The settings of webhooks, which report events to the operator's back end.
package struct WebhookSettings: Sendable {
    /// The URL that events are posted to; empty if webhooks are off.
    package var url: String
    package var secretFile: String
    package var kinds: [WebhookNotice.Kind]
    /// The largest number of events that wait for the receiver.
    package var queue: Int

    package init(
        url: String = "",
        secretFile: String = "",
        kinds: [WebhookNotice.Kind] = WebhookNotice.Kind.allCases,
        queue: Int = 100_000
    ) {
        self.url = url
        self.secretFile = secretFile
        self.kinds = kinds
        self.queue = queue
    }
}

extension WebhookSettings {
    private static let defaults = WebhookSettings()

    private static let url = Setting.text(
        "webhooks.url",
        default: defaults.url,
        maxBytes: 2_048,
        isEmptyAllowed: true,
        kind: "URL",
        "The URL to which events are posted (docs/webhooks.md). If empty, no events are posted."
    )
    private static let secretFile = Setting.path(
        "webhooks.secretFile",
        default: defaults.secretFile,
        isEmptyAllowed: true,
        "The file with the secret (16 bytes or more) that signs events. If empty, events are not signed."
    )
    private static let events = Setting<[WebhookNotice.Kind]>.choices(
        "webhooks.events",
        default: defaults.kinds,
        "The events to post."
    )
    private static let queue = Setting.number(
        "webhooks.queue",
        default: defaults.queue,
        in: 100...10_000_000,
        "The largest number of events that may wait while the receiver is away. Beyond this number, the oldest events "
            + "are dropped."
    )

    /// The settings below `webhooks`.
    static let settings: [SettingDescriptor] = [
        url.descriptor, secretFile.descriptor, events.descriptor, queue.descriptor,
    ]

    init(_ values: SettingValues) throws(SettingsError) {
        self.init(
            url: try values.value(of: Self.url),
            secretFile: try values.value(of: Self.secretFile),
            kinds: try values.value(of: Self.events),
            queue: try values.value(of: Self.queue)
        )
    }
}
