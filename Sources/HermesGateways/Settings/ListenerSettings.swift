// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore

/// The settings of one listener: its address, its TLS configuration, and who may connect.
package struct ListenerSettings: Sendable, Hashable {
    /// Whether connections begin with a PROXY header that contains the client's address.
    package enum ProxyProtocol: String, CaseIterable, Sendable {
        case off
        case v2
    }

    package var isEnabled: Bool
    /// The IP address or host name to listen on.
    package var host: String
    /// The TCP port; 0 lets the system choose a free port.
    package var port: Int
    /// The path of a Unix socket to listen on, in place of host and port; nil if host and port are used.
    package var unixSocketPath: String?
    /// The path of a Unix socket to listen on, in addition to host and port; nil for none.
    package var furtherSocketPath: String?
    /// The TLS configuration; nil if the listener uses no TLS.
    package var tls: TLSSettings?
    package var proxyProtocol: ProxyProtocol
    /// Whether clients may connect to this listener without an account, if the other settings allow it.
    package var isAnonymousAllowed = true

    package init(
        isEnabled: Bool = true,
        host: String = "127.0.0.1",
        port: Int,
        unixSocketPath: String? = nil,
        tls: TLSSettings? = nil,
        proxyProtocol: ProxyProtocol = .off
    ) {
        self.isEnabled = isEnabled
        self.host = host
        self.port = port
        self.unixSocketPath = unixSocketPath
        self.tls = tls
        self.proxyProtocol = proxyProtocol
    }

    /// Whether only programs on this machine can reach the listener.
    package var isLoopback: Bool {
        if unixSocketPath != nil { return true }
        let host = host.lowercased()
        if host == "localhost" || host == "::1" { return true }
        let parts = host.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
    }
}

/// The TLS configuration of a listener. Its files are read again on SIGHUP.
package struct TLSSettings: Sendable, Hashable {
    /// Whether clients present certificates.
    package enum ClientCertificates: String, CaseIterable, Sendable {
        /// The server requests no certificate.
        case none
        /// A client need not present a certificate, but a presented certificate must be valid.
        case optional
        case required
    }

    /// The path of a PEM file with the server's certificate, followed by its chain.
    package var certificatePath: String
    /// The path of a PEM file with the private key.
    package var privateKeyPath: String
    package var clientCertificates: ClientCertificates
    /// The path of a PEM file with the authorities that sign clients' certificates; nil for the authorities of the
    /// system.
    package var clientAuthorityPath: String?
    /// The path of a PEM file with revocation lists for clients' certificates; nil for none.
    package var revocationListPath: String?
    /// Whether the common name of a client's certificate is the client's user name.
    package var isIdentityFromCertificate: Bool

    package init(
        certificatePath: String,
        privateKeyPath: String,
        clientCertificates: ClientCertificates = .none,
        clientAuthorityPath: String? = nil,
        revocationListPath: String? = nil,
        isIdentityFromCertificate: Bool = false
    ) {
        self.certificatePath = certificatePath
        self.privateKeyPath = privateKeyPath
        self.clientCertificates = clientCertificates
        self.clientAuthorityPath = clientAuthorityPath
        self.revocationListPath = revocationListPath
        self.isIdentityFromCertificate = isIdentityFromCertificate
    }
}

extension ListenerSettings {
    /// The modes that decide whether a listener uses TLS.
    enum TLSMode: String, CaseIterable, Sendable {
        /// The listener uses TLS if a certificate is configured.
        case auto
        case on = "true"
        case off = "false"
    }

    /// The optional features of a listener, which decide its further settings.
    package struct Features: OptionSet, Sendable {
        package let rawValue: UInt8

        package init(rawValue: UInt8) { self.rawValue = rawValue }

        /// Clients may present certificates.
        package static let clientCertificates = Features(rawValue: 1)
        /// The name in a client's certificate may be the client's user name.
        package static let certificateIdentity = Features(rawValue: 2)
        /// The listener uses only TLS. By default, such a listener is enabled if a certificate is given.
        package static let tlsOnly = Features(rawValue: 4)
        /// The listener may be behind a proxy.
        package static let proxied = Features(rawValue: 8)
        /// Clients may connect without an account.
        package static let anonymous = Features(rawValue: 16)
        /// The listener may also listen on a Unix socket.
        package static let unixSocket = Features(rawValue: 32)
        /// The features of every gateway's listener.
        package static let gateway: Features = [.clientCertificates, .proxied]
    }

    /// The settings below `listeners.<name>`.
    package struct Keys: Sendable {
        let name: String
        let enabled: Setting<Bool>
        let enabledWithCertificate: Setting<TLSMode>
        let host: Setting<String>
        let port: Setting<Int>
        let proxyProtocol: Setting<ProxyProtocol>
        let anonymous: Setting<Bool>
        let tls: Setting<TLSMode>
        let certificate: Setting<String>
        let privateKey: Setting<String>
        let clientCertificates: Setting<TLSSettings.ClientCertificates>
        let clientAuthority: Setting<String>
        let revocationLists: Setting<String>
        let identityFromCertificate: Setting<Bool>
        let unixSocket: Setting<String>
        let features: Features
        let defaultPort: Int

        /// Creates the keys of a listener called `name`.
        package init(_ name: String, title: String, port: Int, features: Features = []) {
            let prefix = "listeners.\(name)"
            self.name = name
            defaultPort = port
            self.features = features
            enabled = .flag("\(prefix).enabled", default: true, "Whether \(title) is served.")
            enabledWithCertificate = .choice(
                "\(prefix).enabled",
                default: .auto,
                "Whether \(title) is served. With 'auto', it is served if a certificate is given."
            )
            host = .text(
                "\(prefix).host",
                default: "127.0.0.1",
                maxBytes: 255,
                kind: "address",
                "The address to listen on. 0.0.0.0 or :: means all addresses."
            )
            self.port = .number(
                "\(prefix).port",
                default: port,
                in: 0...65_535,
                "The TCP port. With 0, the system chooses a free port, and the server shows this port when it starts."
            )
            proxyProtocol = .choice(
                "\(prefix).proxyProtocol",
                default: .off,
                "With 'v2', each connection must begin with a PROXY protocol header. In this case, make sure that only "
                    + "the proxy can reach the port."
            )
            anonymous = .flag(
                "\(prefix).anonymous",
                default: true,
                "Whether access.anonymous applies to this listener. If false, this listener refuses anonymous clients."
            )
            tls = .choice(
                "\(prefix).tls.enabled",
                default: .auto,
                "Whether this port uses TLS. With 'auto', it uses TLS if a certificate is given."
            )
            certificate = .path(
                "\(prefix).tls.certificate",
                default: "",
                isEmptyAllowed: true,
                "The PEM file with the certificate and its chain. It is read again on SIGHUP."
            )
            privateKey = .path(
                "\(prefix).tls.privateKey",
                default: "",
                isEmptyAllowed: true,
                "The PEM file with the certificate's private key. It is read again on SIGHUP."
            )
            clientCertificates = .choice(
                "\(prefix).tls.clientCertificates",
                default: .none,
                "Whether the server requests certificates from clients. With 'optional', a client may present none, "
                    + "but a certificate that it presents must be valid."
            )
            clientAuthority = .path(
                "\(prefix).tls.clientAuthority",
                default: "",
                isEmptyAllowed: true,
                "The PEM file with the authorities that sign the clients' certificates. It is read again on SIGHUP."
            )
            revocationLists = .path(
                "\(prefix).tls.revocationLists",
                default: "",
                isEmptyAllowed: true,
                "The PEM file with revocation lists (CRLs) of clients' certificates. It is read again on SIGHUP."
            )
            identityFromCertificate = .flag(
                "\(prefix).tls.identityFromCertificate",
                default: false,
                "If true, the common name of a client's certificate is the client's user name, and the client needs "
                    + "no password."
            )
            unixSocket = .path(
                "\(prefix).unixSocket",
                default: "",
                isEmptyAllowed: true,
                "The path of a Unix socket that also serves \(title), for programs of the server's user or group. If "
                    + "empty, there is no socket."
            )
        }

        /// The descriptions of all settings that a listener with these features has.
        package var all: [SettingDescriptor] {
            var all = [
                features.contains(.tlsOnly) ? enabledWithCertificate.descriptor : enabled.descriptor, host.descriptor,
                port.descriptor,
            ]
            if features.contains(.proxied) { all.append(proxyProtocol.descriptor) }
            if features.contains(.anonymous) { all.append(anonymous.descriptor) }
            if !features.contains(.tlsOnly) { all.append(tls.descriptor) }
            all += [certificate.descriptor, privateKey.descriptor]
            if features.contains(.clientCertificates) {
                all += [clientCertificates.descriptor, clientAuthority.descriptor, revocationLists.descriptor]
            }
            if features.contains(.certificateIdentity) { all.append(identityFromCertificate.descriptor) }
            if features.contains(.unixSocket) { all.append(unixSocket.descriptor) }
            return all
        }
    }

    /// Creates the settings that apply if nothing is configured.
    package init(defaultsOf keys: Keys) {
        self.init(isEnabled: !keys.features.contains(.tlsOnly), port: keys.defaultPort)
    }

    /// - Throws: for values that are not allowed, and for incomplete TLS settings.
    package init(_ values: SettingValues, _ keys: Keys) throws(SettingsError) {
        host = try values.value(of: keys.host)
        port = try values.value(of: keys.port)
        proxyProtocol = try values.value(of: keys.proxyProtocol)
        isAnonymousAllowed = try values.value(of: keys.anonymous)
        let certificate = try values.value(of: keys.certificate)
        let privateKey = try values.value(of: keys.privateKey)
        let mode: TLSMode
        if keys.features.contains(.tlsOnly) {
            mode = try values.value(of: keys.enabledWithCertificate)
            isEnabled = mode == .on || mode == .auto && !(certificate.isEmpty && privateKey.isEmpty)
        } else {
            mode = try values.value(of: keys.tls)
            isEnabled = try values.value(of: keys.enabled)
        }
        let tlsKey = keys.features.contains(.tlsOnly) ? keys.enabledWithCertificate.descriptor : keys.tls.descriptor
        switch (mode, certificate.isEmpty, privateKey.isEmpty) {
        case (.off, _, _), (.auto, true, true):
            tls = nil
        case (.auto, false, false), (.on, false, false):
            tls = TLSSettings(certificatePath: certificate, privateKeyPath: privateKey)
        case (.auto, true, false), (.auto, false, true), (.on, _, true), (.on, true, false):
            let missing = [
                certificate.isEmpty ? keys.certificate.descriptor.key : nil,
                privateKey.isEmpty ? keys.privateKey.descriptor.key : nil,
            ]
            throw SettingsError(problems: [
                "TLS needs both \(keys.certificate.descriptor.key) and \(keys.privateKey.descriptor.key), "
                    + "or neither (then \(tlsKey.key) must not be true); not given: "
                    + missing.compactMap(\.self).joined(separator: ", ")
            ])
        }
        try readClientCertificates(values, keys)
        let socket = try values.value(of: keys.unixSocket)
        // sockaddr_un has room for this many bytes on every system.
        guard socket.utf8.count <= 103 else {
            throw SettingsError(problems: [
                "\(keys.unixSocket.descriptor.key) = \"\(socket)\" is too long for a socket: at most 103 bytes"
            ])
        }
        furtherSocketPath = socket.isEmpty ? nil : socket
    }

    private mutating func readClientCertificates(_ values: SettingValues, _ keys: Keys) throws(SettingsError) {
        let mode = try values.value(of: keys.clientCertificates)
        let authority = try values.value(of: keys.clientAuthority)
        let lists = try values.value(of: keys.revocationLists)
        let isIdentity = try values.value(of: keys.identityFromCertificate)
        if mode != .none, tls == nil, isEnabled {
            throw SettingsError(problems: [
                "\(keys.clientCertificates.descriptor.key) = \"\(mode.rawValue)\" needs TLS: give "
                    + "\(keys.certificate.descriptor.key) and \(keys.privateKey.descriptor.key)"
            ])
        }
        if mode != .none, authority.isEmpty {
            throw SettingsError(problems: [
                "\(keys.clientCertificates.descriptor.key) = \"\(mode.rawValue)\" needs "
                    + "\(keys.clientAuthority.descriptor.key): the authority that signs your clients' certificates"
            ])
        }
        if !lists.isEmpty, mode == .none {
            throw SettingsError(problems: [
                "\(keys.revocationLists.descriptor.key) needs "
                    + "\(keys.clientCertificates.descriptor.key): optional or required"
            ])
        }
        if isIdentity, mode == .none {
            throw SettingsError(problems: [
                "\(keys.identityFromCertificate.descriptor.key) = true needs "
                    + "\(keys.clientCertificates.descriptor.key): optional or required"
            ])
        }
        tls?.clientCertificates = mode
        tls?.clientAuthorityPath = authority.isEmpty ? nil : authority
        tls?.revocationListPath = lists.isEmpty ? nil : lists
        tls?.isIdentityFromCertificate = isIdentity
    }
}

extension SettingField {
    /// Creates a field for a listener with these keys.
    package static func listener(
        _ property: any WritableKeyPath<Group, ListenerSettings> & Sendable,
        _ keys: ListenerSettings.Keys
    ) -> Self {
        Self(property, keys.all) { (values: SettingValues) throws(SettingsError) in
            try ListenerSettings(values, keys)
        }
    }
}
