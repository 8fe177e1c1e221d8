// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
package import HermesGateways
package import HermesPush

/// The configuration for devices that are not connected.
package struct PushSettings: Sendable {
    /// The time for a connected device to acknowledge before its push service is used.
    package var handOff: Duration
    package var preview: PushTextComposer.Preview
    /// PEM, replaces the system's authorities; empty: no.
    package var certificateAuthority: String
    /// Nil: off.
    package var apns: APNsSender.Configuration?
    package var fcm: FCM?
    package var webPush: WebPushSender.Configuration?

    package struct FCM: Sendable {
        package var serviceAccountFile: String
        /// Replaces Google's host; empty: no.
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

/// The configuration for the operator's back end.
package struct WebhookSettings: Sendable {
    /// Empty: off.
    package var url: String
    package var secretFile: String
    package var kinds: [WebhookNotice.Kind]
    /// The number of waiting events.
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
