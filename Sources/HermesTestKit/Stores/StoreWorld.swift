// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
import Synchronization

/// A store with accounts, with shortcuts for tests.
package struct StoreWorld: Sendable {
    package let store: any Store
    /// The accounts, with ids from 1. Each has the device "phone", unless the test chooses other devices.
    package let people: [Principal]

    /// The world's default time.
    package static let now = Timestamp(rawValue: 1_800_000_000_000)
    package static let phone = device("phone")
    package static let tablet = device("tablet")

    private static let lastID = Mutex<UInt64>(0)

    /// Creates the accounts "User1", "User2" and so on in a new store.
    package init(
        _ makeStore: StoreMaker,
        people count: Int = 2,
        devices: [DeviceID] = [phone],
        settings: StoreSettings = StoreSettings()
    ) async throws {
        try await self.init(store: makeStore(settings), people: count, devices: devices)
    }

    /// Creates the accounts "User1", "User2" and so on in an empty store.
    package init(store: any Store, people count: Int = 2, devices: [DeviceID] = [phone]) async throws {
        var people: [Principal] = []
        for index in 1...count {
            let name = Self.name("User\(index)")
            let account = try await store.create(
                NewAccount(nickName: name, password: PasswordHash(phc: "$none$")),
                now: Self.now
            )
            for device in devices {
                _ = try await store.open(
                    DeviceDescription(id: device),
                    of: account.id,
                    token: nil,
                    now: Self.now
                )
            }
            people.append(Principal(user: account.id, nickName: name, device: devices.first ?? Self.phone))
        }
        self.store = store
        self.people = people
    }

    /// Creates a world of people who are already in the store.
    package init(store: any Store, people: [Principal]) {
        self.store = store
        self.people = people
    }

    package subscript(_ index: Int) -> Principal { people[index] }

    /// Returns a name in its stored form, without a check of the rules for names.
    package static func name(_ text: String) -> NickName { NickName(stored: text, key: text.lowercased()) }

    package static func device(_ text: String) -> DeviceID {
        // This is only for literals in tests.
        guard let device = DeviceID(text) else { preconditionFailure("not a device id: \(text)") }
        return device
    }

    package static func later(_ duration: Duration) -> Timestamp { now.advanced(by: duration) }

    /// Returns the 1:1 conversation of two people.
    package func conversation(_ one: Int, _ other: Int) -> ConversationID {
        .direct(between: people[one].user, and: people[other].user)
    }

    /// Returns an id that no other message of this process has.
    package static func nextID() -> MessageID {
        let number = lastID.withLock { last in
            last += 1
            return last
        }
        return MessageID(high: (UInt64(now.rawValue) + number / 8) << 16, low: number &* 0x9E37_79B9_7F4A_7C15)
    }

    /// Returns a message from one person to another that is ready to be committed.
    package func message(
        _ text: String,
        from sender: Int,
        to receiver: Int,
        clientID: String? = nil,
        id: MessageID = nextID(),
        at sentAt: Timestamp = now,
        lifetime: Duration? = nil,
        retention: Duration = .seconds(30 * 24 * 3600)
    ) -> MessageAppend {
        MessageAppend(
            id: id,
            draft: MessageDraft(
                conversation: conversation(sender, receiver),
                clientID: clientID,
                content: MessageContent(bytes: Array(text.utf8)),
                expiresAfter: lifetime
            ),
            sender: people[sender],
            sentAt: sentAt,
            expiresAt: sentAt.advanced(by: lifetime ?? retention),
            recipients: sender == receiver ? [people[sender].user] : [people[sender].user, people[receiver].user]
        )
    }

    /// Returns a message to a group that is ready to be committed.
    package func message(_ text: String, from sender: Int, to group: GroupID) -> MessageAppend {
        MessageAppend(
            id: Self.nextID(),
            draft: MessageDraft(
                conversation: .group(group),
                clientID: nil,
                content: MessageContent(bytes: Array(text.utf8))
            ),
            sender: people[sender],
            sentAt: Self.now,
            expiresAt: Self.later(.seconds(3_600)),
            recipients: []
        )
    }

    /// Commits one operation.
    package func commit(_ operation: WriteOperation, at now: Timestamp = now) throws -> WriteOutcome {
        let outcomes = try store.commit([operation], now: now)
        try expectEqual(outcomes.count, 1)
        return outcomes[0]
    }

    /// Commits a message. Throws if it is not appended.
    @discardableResult
    package func send(
        _ text: String,
        from sender: Int,
        to receiver: Int,
        clientID: String? = nil,
        at sentAt: Timestamp = now,
        lifetime: Duration? = nil,
        retention: Duration = .seconds(30 * 24 * 3600)
    ) throws -> SendReceipt {
        let append = message(
            text,
            from: sender,
            to: receiver,
            clientID: clientID,
            at: sentAt,
            lifetime: lifetime,
            retention: retention
        )
        let outcome = try commit(.append(append), at: sentAt)
        guard case .appended(let receipt, _) = outcome else {
            throw ConformanceFailure(description: "not appended: \(outcome)")
        }
        return receipt
    }

    /// Acknowledges the entries up to `seq` on some devices; nil acknowledges all entries.
    package func acknowledge(_ person: Int, upTo seq: UInt64? = nil, on devices: [DeviceID] = [phone]) throws {
        for device in devices {
            _ = try commit(.acknowledge(people[person].user, device, upTo: seq ?? .max))
        }
    }

    /// Purges until nothing is left to do.
    package func purge(at now: Timestamp = now, limit: Int = 1000) async throws {
        for _ in 0..<10_000 where try await store.purge(now: now, limit: limit) == 0 { return }
        throw ConformanceFailure(description: "purge never comes to an end")
    }

    /// Returns a page of a person's inbox in short form: "1:text", "2-4:hole", "5:read 3", "6:recalled 2".
    package func inbox(_ person: Int, after seq: UInt64 = 0, limit: Int = 1000) async throws -> [String] {
        let page = try await store.entries(of: people[person].user, after: seq, limit: limit)
        try Self.checkContiguity(page, after: seq)
        return page.entries.map { Self.summary($0) }
    }

    /// Checks that a page has no unexplained gaps, and no entry beyond the head.
    package static func checkContiguity(_ page: InboxPage, after seq: UInt64) throws {
        guard !page.entries.isEmpty else { return }
        var next = seq + 1
        for entry in page.entries {
            try expectEqual(entry.seq, next, "a gap in \(page.entries.map { summary($0) })")
            next = entry.seq + 1
            if case .expired(let through) = entry.event {
                try expect(through >= entry.seq, "an empty hole")
                next = through + 1
            }
        }
        try expect(next <= page.position.head + 1, "an entry beyond the head")
    }

    /// Commits an operation that must be refused, and returns the code of the refusal.
    package func refusal(_ operation: WriteOperation, at now: Timestamp = now) throws -> HermesError.Code {
        let outcome = try commit(operation, at: now)
        guard case .refused(let error) = outcome else {
            throw ConformanceFailure(description: "not refused: \(outcome)")
        }
        return error.code
    }
}
