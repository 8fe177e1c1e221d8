// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
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

extension PushSettings {
    private static let defaults = PushSettings()

    private static let handOff = Setting.duration(
        "push.handOff",
        default: defaults.handOff,
        in: .milliseconds(100) ... .seconds(3600),
        "How long a connected device may take to acknowledge a message before it gets a push notification. A device "
            + "that is not connected gets the notification at once."
    )
    private static let preview = Setting<PushTextComposer.Preview>.choice(
        "push.preview",
        default: defaults.preview,
        "How much of a message the push services see: the sender's name and the text, only the name, or neither. In "
            + "each case, they also see the numbers of the conversation and of the message. If the message is a back "
            + "end's push, they always see its title, body and data."
    )
    private static let authority = Setting.path(
        "push.certificateAuthority",
        default: defaults.certificateAuthority,
        isEmptyAllowed: true,
        "The PEM file with the authorities to trust for push services and webhooks, in place of the system's "
            + "authorities."
    )
    private static let apnsKey = Setting.path(
        "push.apns.keyFile",
        default: "",
        isEmptyAllowed: true,
        "The file with Apple's signing key (.p8) for APNs. If empty, APNs is off. The file is read again on SIGHUP."
    )
    private static let apnsKeyID = identifier(
        "push.apns.keyID",
        "The key's id of ten characters. If empty, the id is taken from the file name AuthKey_<id>.p8, after symbolic "
            + "links are resolved."
    )
    private static let apnsTeam = identifier("push.apns.teamID", "The developer team's id of ten characters.")
    private static let apnsTopic = identifier(
        "push.apns.topic",
        "The app's bundle id, for devices that did not register one."
    )
    private static let apnsSandbox = Setting.flag(
        "push.apns.sandbox",
        default: false,
        "Whether all APNs tokens belong to Apple's sandbox. If false, only tokens that were registered for the "
            + "sandbox belong to it."
    )
    private static let apnsEndpoint = endpoint("push.apns.endpoint", "The URL to use in place of Apple's hosts.")
    private static let fcmAccount = Setting.path(
        "push.fcm.serviceAccountFile",
        default: "",
        isEmptyAllowed: true,
        "The service account's JSON file for Firebase Cloud Messaging (FCM). If empty, FCM is off. The file is read "
            + "again on SIGHUP."
    )
    private static let fcmEndpoint = endpoint("push.fcm.endpoint", "The URL to use in place of Google's host.")
    private static let webPublicKey = identifier(
        "push.webPush.publicKey",
        "The VAPID public key for browsers (applicationServerKey), in base64url."
    )
    private static let webPrivateKey = Setting.path(
        "push.webPush.privateKeyFile",
        default: "",
        isEmptyAllowed: true,
        "The file with the VAPID private key, in PEM or base64url. If empty, Web Push is off. The file is read again "
            + "on SIGHUP."
    )
    private static let webSubject = identifier(
        "push.webPush.subject",
        "The contact that push services get: a mailto: or https: address."
    )
    private static let webHosts = Setting<[String]>.texts(
        "push.webPush.hosts",
        maxCount: 100,
        maxBytes: 255,
        "The hosts that subscriptions may name. *.NAME means all hosts below NAME, and * means every host. If the "
            + "list is empty, the hosts of today's browsers are allowed. NAME:PORT allows a port that is not 443."
    )
    private static let webEndpoint = endpoint(
        "push.webPush.endpoint",
        "The URL to use in place of the subscriptions' hosts, for tests and relays."
    )

    private static func identifier(_ key: String, _ summary: String) -> Setting<String> {
        Setting.text(key, default: "", maxBytes: 255, isEmptyAllowed: true, summary)
    }

    private static func endpoint(_ key: String, _ summary: String) -> Setting<String> {
        Setting.text(key, default: "", maxBytes: 255, isEmptyAllowed: true, kind: "URL", summary)
    }

    /// The settings below `push`.
    static let settings: [SettingDescriptor] = [
        handOff.descriptor, preview.descriptor, authority.descriptor, apnsKey.descriptor, apnsKeyID.descriptor,
        apnsTeam.descriptor, apnsTopic.descriptor, apnsSandbox.descriptor, apnsEndpoint.descriptor,
        fcmAccount.descriptor, fcmEndpoint.descriptor, webPublicKey.descriptor, webPrivateKey.descriptor,
        webSubject.descriptor, webHosts.descriptor, webEndpoint.descriptor,
    ]

    init(_ values: SettingValues) throws(SettingsError) {
        self.init(
            handOff: try values.value(of: Self.handOff),
            preview: try values.value(of: Self.preview),
            certificateAuthority: try values.value(of: Self.authority)
        )
        let keyFile = try values.value(of: Self.apnsKey)
        if !keyFile.isEmpty {
            try Self.require([Self.apnsTeam, Self.apnsTopic], "push.apns.keyFile", values)
            apns = APNsSender.Configuration(
                keyFile: keyFile,
                keyID: try values.value(of: Self.apnsKeyID),
                teamID: try values.value(of: Self.apnsTeam),
                topic: try values.value(of: Self.apnsTopic),
                isSandbox: try values.value(of: Self.apnsSandbox),
                endpoint: try values.value(of: Self.apnsEndpoint)
            )
        }
        let account = try values.value(of: Self.fcmAccount)
        if !account.isEmpty {
            fcm = FCM(serviceAccountFile: account, endpoint: try values.value(of: Self.fcmEndpoint))
        }
        let privateKey = try values.value(of: Self.webPrivateKey)
        if !privateKey.isEmpty {
            try Self.require([Self.webPublicKey, Self.webSubject], "push.webPush.privateKeyFile", values)
            let hosts = try values.value(of: Self.webHosts)
            webPush = WebPushSender.Configuration(
                publicKey: try values.value(of: Self.webPublicKey),
                privateKeyFile: privateKey,
                subject: try values.value(of: Self.webSubject),
                hosts: hosts.isEmpty ? WebPushSender.knownHosts : hosts,
                endpoint: try values.value(of: Self.webEndpoint)
            )
        }
    }

    private static func require(
        _ settings: [Setting<String>],
        _ key: String,
        _ values: SettingValues
    ) throws(SettingsError) {
        var problems: [String] = []
        for setting in settings where try values.value(of: setting).isEmpty {
            problems.append("\(setting.descriptor.key) is missing; \(key) needs it")
        }
        if !problems.isEmpty { throw SettingsError(problems: problems) }
    }
}
