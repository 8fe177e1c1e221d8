// Hermes
// SPDX-License-Identifier: Apache-2.0

import Hermes
import HermesCore
import HermesTestKit
import Testing

/// The server deletes entries that all devices of an account have acknowledged. A device does not need to acknowledge
/// its own messages.
@Suite(.inTurns, .timeLimit(.minutes(1)))
struct OwnMessagePurgeTests {
    private static func configuration(
        _ server: TestServer,
        device: String,
        store: MemoryLocalStore? = nil
    ) -> HermesClient.Configuration {
        var configuration = HermesClient.Configuration(
            server: ServerAddress(port: server.port("delimited")),
            device: DeviceDescription(id: device, appVersion: "1")
        )
        configuration.conditions = DeviceConditions()
        configuration.localStore = store
        return configuration
    }

    private static func seen(_ count: Int, from client: HermesClient) async -> [String] {
        var seen: [String] = []
        for await event in client.events {
            seen.append(event.message?.text ?? "\(event.kind)")
            if seen.count == count { break }
        }
        return seen
    }

    @Test(arguments: TestStore.allCases)
    func `a message that the device sent is no loss for the next run of the app`(store kind: TestStore) async throws {
        try await withServer(store: kind) { server in
            let bob = try HermesClient(Self.configuration(server, device: "bob"))
            let bobSession = try await bob.logIn(.register(nickName: "bob", password: "secret"))
            let store = MemoryLocalStore()
            let ann = try HermesClient(Self.configuration(server, device: "ann", store: store))
            let session = try await ann.logIn(.register(nickName: "ann", password: "secret"))
            try await bob.send("1", to: .user(session.uid)).receipt()
            // The app takes the first entry and waits for another entry. The login of the next run ends the wait.
            let seen = Task { await Self.seen(2, from: ann) }
            try await ann.send("mine", to: .user(bobSession.uid)).receipt()
            let found = HermesCore.UserID(session.uid.rawValue)
            let uid = try #require(found)
            while true {
                let position = try await server.messenger().messageStore.position(of: uid)
                if position.oldest > position.head { break }
                try await Task.sleep(for: .milliseconds(20))
            }
            // The app is killed at this point. Only the present state of the store counts.
            let records = store.records().map { LocalChange(key: $0.key, value: $0.value) }
            let copy = MemoryLocalStore()
            try await withCheckedThrowingContinuation { written in
                copy.write(records, durably: true) { written.resume(with: $0) }
            }
            let next = try HermesClient(Self.configuration(server, device: "ann", store: copy))
            _ = try await next.logIn(.token(session.token))
            try await bob.send("2", to: .user(session.uid)).receipt()
            #expect(await Self.seen(1, from: next) == ["2"])
            #expect(await seen.value == ["1"])
            for client in [bob, ann, next] { await client.close() }
        }
    }
}
