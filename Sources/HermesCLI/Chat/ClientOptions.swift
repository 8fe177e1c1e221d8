// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Hermes

/// The server of a client command.
struct ServerOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The server's name or address.", valueName: "host"))
    var host = "127.0.0.1"

    @Option(help: ArgumentHelp("The server's port; each protocol has its own default.", valueName: "port"))
    var port: Int?

    @Flag(
        inversion: .prefixedNo,
        help: "Encrypt the connection with TLS. Default: on, except to this machine."
    )
    var tls: Bool?

    @Option(help: ArgumentHelp("Trust the certificates in this PEM file; implies --tls.", valueName: "file"))
    var tlsCA: String?

    @Flag(help: "Do not check the server's certificate; for experiments only; implies --tls.")
    var tlsInsecure = false

    func validate() throws {
        if let port, !(1...65_535).contains(port) {
            throw ValidationError("--port \(port): must be 1 to 65535")
        }
        if tls == false, tlsCA != nil || tlsInsecure {
            throw ValidationError("--no-tls cannot be used with --tls-ca or --tls-insecure")
        }
        if host.isEmpty { throw ValidationError("--host: a name or an address is needed, for example 127.0.0.1") }
    }

    func address(defaultPort: Int) -> ServerAddress {
        let options = TLSOptions(trustedCertificates: tlsCA.map { .file($0) }, verifiesServer: !tlsInsecure)
        let security: ServerAddress.Security =
            switch tls {
            case false: .clearText
            case true: .tls(options)
            case nil: tlsCA != nil || tlsInsecure ? .tls(options) : .automatic
            }
        return ServerAddress(host: host, port: port ?? defaultPort, security: security)
    }
}

/// The login of a client command.
struct LoginOptions: ParsableArguments {
    @Flag(help: "Create the account first.")
    var register = false

    @Option(
        help: ArgumentHelp("With --register: the code of an invitation, if the server asks for one.", valueName: "code")
    )
    var invitation: String = ""

    @Option(help: ArgumentHelp("Read the password from the first line of this file.", valueName: "file"))
    var passwordFile: String?

    @Option(
        help: ArgumentHelp(
            "The id of the device; each device of an account receives every message once.",
            discussion: "Default: an id that is chosen at the first start and stored.",
            valueName: "id"
        )
    )
    var device: String?

    @Flag(help: "Neither use nor store a login token.")
    var noCache = false

    func validate() throws {
        guard let device else { return }
        guard (1...64).contains(device.utf8.count), device.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw ValidationError("--device \(device): a device id is 1 to 64 printable ASCII characters")
        }
    }
}
