// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesSQLite
import HermesTestKit
import Synchronization
import Testing

@Suite("The SQLite store does what every store does", .inTurns)
struct SQLiteStoreConformanceTests {
    @Test(arguments: MessageStoreConformance.cases)
    func `messages`(_ conformanceCase: ConformanceCase) async throws {
        let directories = Mutex<[TemporaryDirectory]>([])
        try await conformanceCase.run { settings in
            let directory = try TemporaryDirectory()
            directories.withLock { $0.append(directory) }
            return try directory.openStore(settings: settings)
        }
    }

    @Test(arguments: InboxRuleConformance.cases)
    func `inboxes of others`(_ conformanceCase: ConformanceCase) async throws {
        let directory = try TemporaryDirectory()
        try await conformanceCase.run { try directory.openStore(settings: $0) }
    }

    @Test(arguments: SocialStoreConformance.cases)
    func `social`(_ conformanceCase: ConformanceCase) async throws {
        let directory = try TemporaryDirectory()
        try await conformanceCase.run { try directory.openStore(settings: $0) }
    }

    @Test(arguments: SessionStoreConformance.cases)
    func `sessions`(_ conformanceCase: ConformanceCase) async throws {
        let directories = Mutex<[TemporaryDirectory]>([])
        try await conformanceCase.run { settings in
            let directory = try TemporaryDirectory()
            directories.withLock { $0.append(directory) }
            return try directory.openStore(settings: settings)
        }
    }

    @Test(arguments: APIKeyStoreConformance.cases + AdministratorStoreConformance.cases)
    func `API keys`(_ conformanceCase: ConformanceCase) async throws {
        let directory = try TemporaryDirectory()
        try await conformanceCase.run { try directory.openStore(settings: $0) }
    }

    @Test(arguments: PushTokenStoreConformance.cases + WebhookStoreConformance.cases)
    func `push`(_ conformanceCase: ConformanceCase) async throws {
        let directory = try TemporaryDirectory()
        try await conformanceCase.run { try directory.openStore(settings: $0) }
    }

    @Test(arguments: AccountStoreConformance.cases)
    func `accounts`(_ conformanceCase: ConformanceCase) async throws {
        let directory = try TemporaryDirectory()
        try await conformanceCase.run { try directory.openStore(settings: $0) }
    }
}
