// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesGateways
import HermesTestKit
import HermesWire
import NIOSSL
import Testing

/// The identity of an MQTT client by its certificate.
@Suite(.inTurns, .timeLimit(.minutes(1)), .enabled(if: TestCertificate.canBeMade)) struct MQTTCertificateTests {
    @Test(
        arguments: MQTTVersion.allCases,
        [false, true]
    )
    func `the common name of a certificate is the user name where the listener believes it, and only there`(
        _ version: MQTTVersion,
        isBelieved: Bool
    ) async throws {
        // The certificate is its own authority.
        let files = try TestCertificate(subject: "/CN=anna")
        defer { files.remove() }
        var settings = files.settings
        settings.clientCertificates = .optional
        settings.clientAuthorityPath = files.certificate
        settings.isIdentityFromCertificate = isBelieved
        try await GatewayHarness.withMQTT(on: ListenerSettings(port: 0, tls: settings)) { harness in
            for showsCertificate in [true, false] {
                var tls = TLSConfiguration.makeClientConfiguration()
                tls.trustRoots = .file(files.certificate)
                if showsCertificate {
                    tls.certificateChain = try NIOSSLCertificate.fromPEMFile(files.certificate).map {
                        .certificate($0)
                    }
                    tls.privateKey = .privateKey(try NIOSSLPrivateKey(file: files.key, format: .pem))
                }
                let client = try await MQTTTestClient.open(harness, version, tls: tls)
                try await client.send(.connect(MQTTConnect(version: version, clientID: "one")))
                guard case .connack(let connack) = try await client.next() else { throw Unexpected("no CONNACK") }
                #expect(connack.reason == .success)
                let own = try await client.subscribe("user/anna/t", qos: .atLeastOnce)
                #expect(own.reasons.allSatisfy { $0.isFailure } != (isBelieved && showsCertificate))
                let others = try await client.subscribe("user/bob/t", qos: .atLeastOnce)
                #expect(others.reasons.allSatisfy { $0.isFailure })
            }
        }
    }
}
