// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire
import Logging
import NIOCore
import NIOPosix

@testable import HermesGateways

/// One gateway, listening on a free port of this machine, over a core in memory.
struct GatewayHarness {
    let group: MultiThreadedEventLoopGroup
    let messenger: Messenger
    let environment: GatewayEnvironment
    let listener: Listener

    static func with<G: Gateway>(
        _ type: G.Type,
        on listening: ListenerSettings = ListenerSettings(port: 0),
        settings: GatewaySettings = GatewaySettings(),
        loops: Int = 1,
        sessionStore: (any SessionStore)? = nil,
        tokenVerifier: (any TokenVerifier)? = nil,
        durableSettings: DurableSettings = DurableSettings(),
        time: any TimeSource = SystemTime(),
        _ body: (GatewayHarness) async throws -> Void
    ) async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: loops)
        let store = MemoryStore()
        var accounts = AccountSettings()
        accounts.passwordParameters = PasswordHasher.Parameters(ln: 4, r: 8, p: 1)
        let messenger = Messenger(
            accountStore: store,
            messageStore: store,
            socialStore: store,
            sessionStore: sessionStore ?? store,
            pushTokenStore: store,
            accountSettings: accounts,
            durableSettings: durableSettings,
            time: time
        )
        let environment = GatewayEnvironment(
            messenger: messenger,
            loops: LoopContexts(group, memory: MemoryBudget(limit: settings.limits.memoryBytes)),
            settings: settings,
            tokenVerifier: tokenVerifier,
            logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
        )
        let listener = try await Listener.start(
            type,
            on: listening,
            environment: environment,
            group: group
        )
        let harness = GatewayHarness(group: group, messenger: messenger, environment: environment, listener: listener)
        let result: Result<Void, any Error>
        do {
            result = .success(try await body(harness))
        } catch {
            result = .failure(error)
        }
        await listener.stopAccepting()
        await listener.drain(within: .seconds(1))
        await messenger.shutdown()
        try await group.shutdownGracefully()
        try result.get()
    }

    /// A new account, logged in on the device "phone".
    func register(_ name: String) async throws -> Login {
        guard let phone = DeviceID("phone") else { throw HermesError(.internalError, "no device id") }
        return try await messenger.accounts.register(
            nickName: name,
            password: "correct horse",
            device: DeviceDescription(id: phone),
            address: nil
        )
    }

    func connect<Decoder: FrameDecoder>(_ decoder: Decoder.Type) async throws -> FramePeer<Decoder> {
        try await .connect(to: listener.port, group: group)
    }
}
