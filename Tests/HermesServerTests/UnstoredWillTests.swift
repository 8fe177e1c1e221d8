// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesTestKit
import NIOCore
import NIOPosix
import Testing

@testable import HermesGateways
@testable import HermesServer

@Suite(.inTurns, .timeLimit(.minutes(1))) struct UnstoredWillTests {
    private func count() -> Double {
        MetricsRegistry.shared.snapshot()["hermes_mqtt_messages_dropped_total"]?["reason=\"not_stored\""] ?? 0
    }

    /// The count may be higher than 1, because other tests in this process count in the same metrics.
    @Test func `a will that the store does not accept is counted`() async throws {
        _ = MetricsRegistry.installed
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let store = ScriptedSessionStore()
        let messenger = Messenger(
            accountStore: store.base,
            messageStore: store.base,
            socialStore: store.base,
            sessionStore: store,
            pushTokenStore: store.base
        )
        let loops = LoopContexts(group)
        let loop = try #require(loops.all.first)
        let wills = MQTTWills(messenger: messenger, access: TopicAccess(), loops: loops, memoryBytes: 1 << 20)
        let will = PendingWill(
            publication: Publication(
                topic: try #require(TopicName("t")),
                payload: ByteBuffer(string: "gone"),
                kind: .plain,
                qos: .atLeastOnce,
                retain: true
            ),
            givenAt: messenger.time.now(),
            delay: .zero,
            source: .server,
            identity: ClientIdentity(clientID: "one")
        )
        let key = SessionKey(owner: .anonymous, clientID: "one")
        let before = count()
        store.fail { _ in true }
        loop.post(.run { wills.ended(will, of: key, sessionExpiry: .zero, isNameFree: false, on: loop) })
        while count() < before + 1 {
            try Task.checkCancellation()
            await Task.yield()
        }
        #expect(store.failures == 1)
        store.recover()
        await messenger.shutdown()
        try await group.shutdownGracefully()
        withExtendedLifetime(loops) {}
    }
}
