// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore

/// The settings of webhooks, which report events to the operator's back end.
package struct WebhookSettings: Sendable {
    /// The URL that events are posted to; empty if webhooks are off.
    package var url = ""
    package var secretFile = ""
    package var kinds = WebhookNotice.Kind.allCases
    /// The largest number of events that wait for the receiver.
    package var queue = 100_000

    package init() {}
}

extension WebhookSettings: SettingFields {
    package static let fields: [SettingField<Self>] = [
        .text(
            \.url,
            "webhooks.url",
            maxBytes: 2_048,
            isEmptyAllowed: true,
            kind: "URL",
            "The URL to which events are posted (docs/webhooks.md). If empty, no events are posted."
        ),
        .path(
            \.secretFile,
            "webhooks.secretFile",
            isEmptyAllowed: true,
            "The file with the secret (16 bytes or more) that signs events. If empty, events are not signed."
        ),
        .choices(
            \.kinds,
            "webhooks.events",
            "The events to post."
        ),
        .number(
            \.queue,
            "webhooks.queue",
            in: 100...10_000_000,
            "The largest number of events that may wait while the receiver is away. Beyond this number, the oldest "
                + "events are dropped."
        ),
    ]
}
