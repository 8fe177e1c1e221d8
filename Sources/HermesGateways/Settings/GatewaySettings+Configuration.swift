// Hermes
// SPDX-License-Identifier: Apache-2.0

extension GatewaySettings {
    private static let impbKeys = ListenerSettings.Keys("impb", title: "IMPB", port: 6969, isEnabled: true)
    private static let liveroomKeys = ListenerSettings.Keys("liveroom", title: "LiveRoom", port: 9898, isEnabled: true)
    private static let qsiopKeys = ListenerSettings.Keys("qsiop", title: "QSIOP", port: 7979, isEnabled: true)
    private static let delimitedKeys = ListenerSettings.Keys(
        "delimited",
        title: "Delimited",
        port: 9000,
        isEnabled: true
    )
    private static let mqttKeys = ListenerSettings.Keys("mqtt", title: "MQTT", port: 1883, isEnabled: true)

    private static let anonymous = Setting.flag(
        "access.anonymous",
        default: true,
        "Whether a room viewer needs no account and a QSIOP device no token."
    )
    private static let anonymousOnPublic = Setting.flag(
        "access.anonymousOnPublic",
        default: false,
        "Must be true for anonymous access on an address that other machines reach."
    )

    /// Every setting of the gateways.
    package static let settings: [SettingDescriptor] =
        impbKeys.all + liveroomKeys.all + qsiopKeys.all + delimitedKeys.all + mqttKeys.all
        + STUNSettings.settings
        + ConnectionLimits.settings + [anonymous.descriptor, anonymousOnPublic.descriptor]
        + LiveRoomSettings.settings + QSIOPSettings.settings

    /// - Throws: also what no single value shows: half a TLS configuration, anonymous access on a public address.
    package init(_ values: SettingValues) throws(SettingsError) {
        let isAnonymousAllowed = try values.value(of: Self.anonymous)
        self.init(
            impb: try ListenerSettings(values, Self.impbKeys),
            liveroom: try ListenerSettings(values, Self.liveroomKeys),
            qsiop: try ListenerSettings(values, Self.qsiopKeys),
            delimited: try ListenerSettings(values, Self.delimitedKeys),
            mqtt: try ListenerSettings(values, Self.mqttKeys),
            stun: try STUNSettings(values),
            limits: try ConnectionLimits(values),
            room: try LiveRoomSettings(values, isAnonymousAllowed: isAnonymousAllowed),
            device: try QSIOPSettings(values, isAnonymousAllowed: isAnonymousAllowed),
            isAnonymousAllowed: isAnonymousAllowed
        )
        let isPublicAllowed = try values.value(of: Self.anonymousOnPublic)
        guard isAnonymousAllowed, !isPublicAllowed else { return }
        for (name, listener) in [("liveroom", liveroom), ("qsiop", qsiop), ("mqtt", mqtt)]
        where listener.isEnabled && !listener.isLoopback && !(name == "qsiop" && device.isTokenRequired) {
            throw SettingsError(problems: [
                "listeners.\(name).host = \"\(listener.host)\" is reached by other machines while access.anonymous is "
                    + "true; set access.anonymous: false, or access.anonymousOnPublic: true if that is what you want"
            ])
        }
    }
}
