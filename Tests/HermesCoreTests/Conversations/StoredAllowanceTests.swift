// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import Testing

@testable import HermesCore

/// Acknowledged messages still use up their sender's allowance, because their records stay.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct StoredAllowanceTests {
    private let store = FakeStore()
    private let time = ManualTime()

    /// Creates a messenger with room for `count` messages a day, each of 1,000 bytes and to one recipient.
    private func messenger(messages count: Int) async throws -> Messenger {
        var settings = MessageSettings()
        settings.maxStoredBytes = count * (1_000 + StoredAllowance.recordBytes + 2 * StoredAllowance.recipientBytes)
        let messenger = Messenger(store.base, messages: store, settings: settings, time: time)
        try await addAccounts(3, to: store.base)
        return messenger
    }

    private func send(_ messenger: Messenger, from one: Int32, clientID: String? = nil) async throws -> SendReceipt {
        let draft = MessageDraft(
            conversation: .direct(between: try user(one), and: try user(one == 2 ? 1 : 2)),
            clientID: clientID,
            content: MessageContent(bytes: [UInt8](repeating: 1, count: 1_000))
        )
        let sender = try principal(one)
        return try await withCheckedContinuation { continuation in
            messenger.messages.send(draft, from: sender) { continuation.resume(returning: $0) }
        }.get()
    }

    @Test func `messages that are acknowledged at once are refused once the day is used`() async throws {
        let messenger = try await messenger(messages: 10)
        for _ in 1...10 {
            let receipt = try await send(messenger, from: 1)
            // No message stays unread, and no inbox fills up.
            messenger.inbox.acknowledge(try principal(2), upTo: receipt.inboxSeq)
            _ = try await messenger.housekeeping(now: time.now())
        }
        await #expect { _ = try await send(messenger, from: 1) } throws: { error in
            guard let error = error as? HermesError, let wait = error.retryAfter else { return false }
            // The wait is a tenth of the day, without the time for the recipients' places.
            let expected = Duration.seconds(8_400) ... .seconds(8_450)
            return error.code == .rateLimited && expected.contains(wait) && error.message.contains("limits.")
        }
        #expect(messenger.messages.refusedStored == 1)
        // Other senders are not affected, and the allowance returns evenly.
        _ = try await send(messenger, from: 2)
        time.advance(by: .seconds(8_000))
        await #expect(throws: HermesError.self) { _ = try await send(messenger, from: 1) }
        #expect(messenger.messages.refusedStored == 2)
        time.advance(by: .seconds(500))
        _ = try await send(messenger, from: 1)
        await #expect(throws: HermesError.self) { _ = try await send(messenger, from: 1) }
        await messenger.shutdown()
    }

    @Test func `only what is stored is charged`() async throws {
        let messenger = try await messenger(messages: 3)
        _ = try await send(messenger, from: 1, clientID: "a")
        for _ in 1...10 { #expect(try await send(messenger, from: 1, clientID: "a").isDuplicate) }
        store.fail(5)
        for _ in 1...5 {
            await #expect(throws: HermesError.self) { _ = try await send(messenger, from: 1) }
        }
        _ = try await send(messenger, from: 1)
        _ = try await send(messenger, from: 1)
        #expect(messenger.messages.refusedStored == 0)
        await #expect(throws: HermesError.self) { _ = try await send(messenger, from: 1) }
        #expect(messenger.messages.refusedStored == 1)
        // A repeated message stores nothing, so it gets its receipt.
        #expect(try await send(messenger, from: 1, clientID: "a").isDuplicate)
        await #expect { _ = try await send(messenger, from: 1, clientID: "new") } throws: { error in
            (error as? HermesError)?.code == .rateLimited && (error as? HermesError)?.retryAfter != nil
        }
        #expect(messenger.messages.refusedStored == 2)
        await messenger.shutdown()
    }
}
