// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
package import HermesGateways
package import HermesPush

/// What the configuration says about devices that are not connected.
package struct PushSettings: Sendable {
    /// How long a connected device has for its acknowledgement before its push service is asked.
    package var handOff: Duration
    package var preview: PushTextComposer.Preview
    /// PEM, in place of the system's authorities; empty: those.
    package var certificateAuthority: String
    /// Nil: off.
    package var apns: APNsSender.Configuration?
    package var fcm: FCM?
    package var webPush: WebPushSender.Configuration?

    package struct FCM: Sendable {
        package var serviceAccountFile: String
        /// In place of Google's host; empty: that.
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

/// What the configuration says about the operator's back end.
package struct WebhookSettings: Sendable {
    /// Empty: off.
    package var url: String
    package var secretFile: String
    package var kinds: [WebhookNotice.Kind]
    /// How many events may wait.
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
