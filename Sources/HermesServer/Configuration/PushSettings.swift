// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
package import HermesGateways
package import HermesPush

/// The settings of push notifications, which are for devices that are not connected.
package struct PushSettings: Sendable {
    /// The time within which a connected device must acknowledge a message. After this time, the device's push
    /// service is used.
    package var handOff = Duration.seconds(10)
    package var preview = PushTextComposer.Preview.full
    /// The path of a PEM file with authorities that replace the system's; empty to use the system's.
    package var certificateAuthority = ""
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

    package init() {}

    /// Creates settings with some of the services.
    package init(
        apns: APNsSender.Configuration? = nil,
        fcm: FCM? = nil,
        webPush: WebPushSender.Configuration? = nil
    ) {
        self.apns = apns
        self.fcm = fcm
        self.webPush = webPush
    }
}

extension PushSettings: SettingFields {
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

    package static let fields: [SettingField<Self>] = [
        .duration(
            \.handOff,
            "push.handOff",
            in: .milliseconds(100) ... .seconds(3600),
            "How long a connected device may take to acknowledge a message before it gets a push notification. A "
                + "device that is not connected gets the notification at once."
        ),
        .choice(
            \.preview,
            "push.preview",
            "How much of a message the push services see: the sender's name and the text, only the name, or neither. "
                + "In each case, they also see the numbers of the conversation and of the message. If the message is a "
                + "back end's push, they always see its title, body and data."
        ),
        .path(
            \.certificateAuthority,
            "push.certificateAuthority",
            isEmptyAllowed: true,
            "The PEM file with the authorities to trust for push services and webhooks, in place of the system's "
                + "authorities."
        ),
        SettingField(
            \.apns,
            [
                apnsKey.descriptor, apnsKeyID.descriptor, apnsTeam.descriptor, apnsTopic.descriptor,
                apnsSandbox.descriptor, apnsEndpoint.descriptor,
            ],
            read: { (values: SettingValues) throws(SettingsError) in try readAPNs(values) }
        ),
        SettingField(
            \.fcm,
            [fcmAccount.descriptor, fcmEndpoint.descriptor],
            read: { (values: SettingValues) throws(SettingsError) in try readFCM(values) }
        ),
        SettingField(
            \.webPush,
            [
                webPublicKey.descriptor, webPrivateKey.descriptor, webSubject.descriptor, webHosts.descriptor,
                webEndpoint.descriptor,
            ],
            read: { (values: SettingValues) throws(SettingsError) in try readWebPush(values) }
        ),
    ]

    private static func readAPNs(_ values: SettingValues) throws(SettingsError) -> APNsSender.Configuration? {
        let keyFile = try values.value(of: apnsKey)
        guard !keyFile.isEmpty else { return nil }
        try require([apnsTeam, apnsTopic], "push.apns.keyFile", values)
        return APNsSender.Configuration(
            keyFile: keyFile,
            keyID: try values.value(of: apnsKeyID),
            teamID: try values.value(of: apnsTeam),
            topic: try values.value(of: apnsTopic),
            isSandbox: try values.value(of: apnsSandbox),
            endpoint: try values.value(of: apnsEndpoint)
        )
    }

    private static func readFCM(_ values: SettingValues) throws(SettingsError) -> FCM? {
        let account = try values.value(of: fcmAccount)
        guard !account.isEmpty else { return nil }
        return FCM(serviceAccountFile: account, endpoint: try values.value(of: fcmEndpoint))
    }

    private static func readWebPush(_ values: SettingValues) throws(SettingsError) -> WebPushSender.Configuration? {
        let privateKey = try values.value(of: webPrivateKey)
        guard !privateKey.isEmpty else { return nil }
        try require([webPublicKey, webSubject], "push.webPush.privateKeyFile", values)
        let hosts = try values.value(of: webHosts)
        return WebPushSender.Configuration(
            publicKey: try values.value(of: webPublicKey),
            privateKeyFile: privateKey,
            subject: try values.value(of: webSubject),
            hosts: hosts.isEmpty ? WebPushSender.knownHosts : hosts,
            endpoint: try values.value(of: webEndpoint)
        )
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
