// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
package import HermesGateways
package import HermesPush

/// The settings of push notifications, which are for devices that are not connected.
package struct PushSettings: Sendable {
    /// The time within which a connected device must acknowledge a message. After this time, the device's push
    /// service is used.
    package var handOff: Duration
    package var preview: PushTextComposer.Preview
    /// The path of a PEM file with authorities that replace the system's; empty to use the system's.
    package var certificateAuthority: String
    /// The settings of APNs; nil if APNs is off. `fcm` and `webPush` are also nil if their service is off.
    package var apns: APNsSender.Configuration?
    package var fcm: FCM?
    package var webPush: WebPushSender.Configuration?

    package struct FCM: Sendable {
        package var serviceAccountFile: String
        /// The URL to use in place of Google's host; empty to use Google's.
        package var endpoint: String

        package init(serviceAccountFile: String, endpoint: String = "") {
            self.serviceAccountFile = serviceAccountFile
            self.endpoint = endpoint
        }
    }

    package init(
        handOff: Duration = .seconds(10),
        preview: PushTextComposer.Preview = .full,
        certificateAuthority: String = "",
        apns: APNsSender.Configuration? = nil,
        fcm: FCM? = nil,
        webPush: WebPushSender.Configuration? = nil
    ) {
        self.handOff = handOff
        self.preview = preview
        self.certificateAuthority = certificateAuthority
        self.apns = apns
        self.fcm = fcm
        self.webPush = webPush
    }
}

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
