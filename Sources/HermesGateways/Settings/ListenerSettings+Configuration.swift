// Hermes
// SPDX-License-Identifier: Apache-2.0

extension ListenerSettings {
    /// When a listener speaks TLS.
    enum TLSMode: String, CaseIterable, Sendable {
        /// If a certificate is configured.
        case auto
        case on = "true"
        case off = "false"
    }

    /// The settings below `listeners.<name>`.
    package struct Keys: Sendable {
        let enabled: Setting<Bool>
        let host: Setting<String>
        let port: Setting<Int>
        let tls: Setting<TLSMode>
        let certificate: Setting<String>
        let privateKey: Setting<String>

        /// Keys of a listener called `name`.
        package init(_ name: String, title: String, port: Int, isEnabled: Bool) {
            let prefix = "listeners.\(name)"
            enabled = .flag("\(prefix).enabled", default: isEnabled, "Whether \(title) is served.")
            host = .text(
                "\(prefix).host",
                default: "127.0.0.1",
                maxBytes: 255,
                kind: "address",
                "The address to listen on; 0.0.0.0 or :: for all of the machine's."
            )
            self.port = .number(
                "\(prefix).port",
                default: port,
                in: 0...65_535,
                "The TCP port; 0 takes a free one, shown at start."
            )
            tls = .choice(
                "\(prefix).tls.enabled",
                default: .auto,
                "TLS on this port; auto: on if a certificate is given."
            )
            certificate = .path(
                "\(prefix).tls.certificate",
                default: "",
                isEmptyAllowed: true,
                "PEM file with the certificate and its chain; read again on SIGHUP."
            )
            privateKey = .path(
                "\(prefix).tls.privateKey",
                default: "",
                isEmptyAllowed: true,
                "PEM file with the certificate's private key; read again on SIGHUP."
            )
        }

        /// All of them.
        package var all: [SettingDescriptor] {
            [
                enabled.descriptor, host.descriptor, port.descriptor, tls.descriptor, certificate.descriptor,
                privateKey.descriptor,
            ]
        }
    }

    /// - Throws: values that are not allowed, and TLS of which only half is there.
    package init(_ values: SettingValues, _ keys: Keys) throws(SettingsError) {
        isEnabled = try values.value(of: keys.enabled)
        host = try values.value(of: keys.host)
        port = try values.value(of: keys.port)
        let certificate = try values.value(of: keys.certificate)
        let privateKey = try values.value(of: keys.privateKey)
        let mode = try values.value(of: keys.tls)
        switch (mode, certificate.isEmpty, privateKey.isEmpty) {
        case (.off, _, _), (.auto, true, true):
            tls = nil
        case (.auto, false, false), (.on, false, false):
            tls = TLSSettings(certificatePath: certificate, privateKeyPath: privateKey)
        case (.auto, true, false), (.auto, false, true), (.on, _, true), (.on, true, false):
            throw SettingsError(problems: [
                "TLS needs both \(keys.certificate.descriptor.key) and \(keys.privateKey.descriptor.key), "
                    + "or neither (then \(keys.tls.descriptor.key) must not be true)"
            ])
        }
    }
}
