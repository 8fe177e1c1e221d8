// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import FuzzServer
import FuzzSupport
import HermesCore
import HermesGateways
import HermesServer
import Logging
import NIOCore

/// A whole server over a store in memory, of which the HTTP port is used: with two accounts, a group of theirs, and a key of
/// the API that may do everything.
final class ServedPort: Sendable {
    static let shared = ServedPort()

    private let assembly: ServerAssembly
    private let port: Int
    private let key: [UInt8]

    private init() {
        let (assembly, port, key) = blocking { () async -> (ServerAssembly, Int, String) in
            do {
                return try await Self.start()
            } catch {
                broken("no server: \(error)")
            }
        }
        (self.assembly, self.port) = (assembly, port)
        self.key = Array(key.utf8)
    }

    private static func start() async throws -> (ServerAssembly, Int, String) {
        let any = 100_000_000
        var settings = try ServerSettings.defaults()
        settings.data.directory = NSTemporaryDirectory() + "/hf-" + String(UInt64.random(in: 0 ... .max), radix: 36)
        settings.data.storeKind = .memory
        settings.process.eventLoops = 2
        settings.accounts.passwordParameters = PasswordHasher.Parameters(ln: 1, r: 1, p: 1)
        settings.http.listener.port = 0
        settings.gateways[listener: "impb"]?.isEnabled = false
        settings.gateways[listener: "liveroom"]?.isEnabled = false
        settings.gateways[listener: "qsiop"]?.isEnabled = false
        // These are reached by WebSocket, whether or not they listen themselves.
        settings.gateways[listener: "delimited"]?.port = 0
        settings.gateways[listener: "mqtt"]?.port = 0
        settings.gateways[listener: "mqtts"]?.port = 0
        settings.gateways.limits.requestsPerSecond = any
        settings.gateways.limits.requestsPerSecondPerAccount = any
        settings.gateways.limits.requestsPerSecondPerAddress = any
        settings.gateways.limits.connectionsPerAddress = any
        settings.api.requestsPerSecond = any
        settings.api.burst = any
        settings.accounts.registrationLimits.perAddress = 0
        settings.accounts.registrationLimits.inTotal = 0
        let store = MemoryStore()
        let assembly = try await ServerAssembly.start(
            settings,
            logger: Logger(label: "fuzz") { _ in SwiftLogNoOpLogHandler() },
            memory: store
        )
        let messenger = assembly.messenger
        let ann = try await messenger.accounts.createAccount(nickName: "ann", password: "correct horse")
        _ = try await messenger.accounts.createAccount(nickName: "bob", password: "correct horse")
        _ = ann
        let keys = APIKeyService(store: store, time: messenger.time)
        let key = try await keys.create(name: "fuzz", scopes: Set(APIScope.allCases)).secret
        let opened = AsyncStream<Int>.makeStream()
        // It runs for as long as this process does.
        Task {
            do {
                try await assembly.run { addresses in
                    opened.continuation.yield(addresses.first { $0.name == "http" }?.port ?? 0)
                }
            } catch {
                broken("the server has ended: \(error)")
            }
        }
        for await port in opened.stream { return (assembly, port, key) }
        broken("no port")
    }

    func connect() -> Peer { Peer(port: port) }

    /// The bytes with the key in the place of each byte 1.
    func withKey(_ bytes: [UInt8]) -> [UInt8] { bytes.flatMap { $0 == 1 ? key : [$0] } }

    /// Waits until nothing more comes for a moment.
    func settle(_ peer: Peer) {
        var silent = 0
        for _ in 0..<500 where silent < 6 && !peer.hasEnded {
            usleep(100)
            silent = peer.receiveWhatIsThere() ? 0 : silent + 1
        }
    }

    /// Others are served, and nothing is left of connections that are gone.
    func check() {
        let peer = connect()
        peer.send("GET /healthz HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n".utf8)
        peer.close()
        let answer = String(buffer: peer.received)
        // It has the address of the input, which may have used up what an address without key may ask for.
        let isServed = answer.hasPrefix("HTTP/1.1 200 OK\r\n") && answer.hasSuffix("ok\n")
        invariant(isServed || answer.hasPrefix("HTTP/1.1 429 "), "another client gets: \(answer)")
        for _ in 0..<30_000 {
            let open = assembly.openConnections
            if open.gateways == 0, open.http == 0, assembly.messenger.devices.count == 0 { return }
            usleep(1_000)
        }
        broken("left behind: \(assembly.openConnections), \(assembly.messenger.devices.count) sessions")
    }
}
