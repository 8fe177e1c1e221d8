// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesTestKit
import Testing

@Suite("The memory store")
struct MemoryStoreTests {
    private static let makeStore: StoreMaker = { MemoryStore(settings: $0) }

    @Test(arguments: MessageStoreConformance.cases)
    func `messages`(_ conformanceCase: ConformanceCase) async throws {
        try await conformanceCase.run(Self.makeStore)
    }

    @Test(arguments: InboxRuleConformance.cases)
    func `inboxes of others`(_ conformanceCase: ConformanceCase) async throws {
        try await conformanceCase.run(Self.makeStore)
    }

    @Test(arguments: SocialStoreConformance.cases)
    func `social`(_ conformanceCase: ConformanceCase) async throws {
        try await conformanceCase.run(Self.makeStore)
    }

    @Test(arguments: SessionStoreConformance.cases)
    func `sessions`(_ conformanceCase: ConformanceCase) async throws {
        try await conformanceCase.run(Self.makeStore)
    }

    @Test(arguments: APIKeyStoreConformance.cases + AdministratorStoreConformance.cases)
    func `API keys`(_ conformanceCase: ConformanceCase) async throws {
        try await conformanceCase.run(Self.makeStore)
    }

    @Test(arguments: PushTokenStoreConformance.cases + WebhookStoreConformance.cases)
    func `push`(_ conformanceCase: ConformanceCase) async throws {
        try await conformanceCase.run(Self.makeStore)
    }

    @Test(arguments: AccountStoreConformance.cases)
    func `accounts`(_ conformanceCase: ConformanceCase) async throws {
        try await conformanceCase.run(Self.makeStore)
    }

    @Test
    func `a full store refuses the whole batch and recovers`() async throws {
        let store = MemoryStore()
        let world = try await StoreWorld(store: store)
        try world.send("a", from: 0, to: 1)
        try store.setCapacity(bytes: 3)
        let batch = ["b", "c"].map { WriteOperation.append(world.message($0, from: 0, to: 1)) }
        try await expectError(.storageUnavailable) { try store.commit(batch, now: StoreWorld.now) }
        #expect(try await world.inbox(1) == ["1:a"])
        try store.setCapacity(bytes: nil)
        _ = try store.commit(batch, now: StoreWorld.now)
        #expect(try await world.inbox(1) == ["1:a", "2:b", "3:c"])
    }

    @Test
    func `it has no file to copy`() async throws {
        try await expectError(.unsupported) { try await MemoryStore().backup(to: "/nowhere") }
    }
}
