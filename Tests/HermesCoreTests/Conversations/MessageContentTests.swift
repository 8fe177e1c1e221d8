// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import Synchronization
import Testing

@testable import HermesCore

@Suite(.inTurns, .timeLimit(.minutes(1))) struct MessageContentTests {
    private final class Reading: ContentReading {
        let text: String

        init(_ bytes: [UInt8]) {
            text = String(decoding: bytes, as: UTF8.self)
        }
    }

    @Test
    func `a content is read once, whoever has a copy, and what is kept for long is unread`() {
        let content = MessageContent(bytes: Array("hi".utf8))
        let copies = (0..<1_000).map { _ in content }
        var count = 0
        let readings = copies.map { copy in
            copy.reading { bytes in
                count += 1
                return Reading(bytes)
            }
        }
        #expect(count == 1 && readings.allSatisfy { $0 === readings[0] })
        #expect((readings[0] as? Reading)?.text == "hi")
        let kept = content.unread
        #expect(kept == content && kept.hashValue == content.hashValue)
        #expect(kept.reading(Reading.init) !== readings[0])
        #expect(content != MessageContent(bytes: [1]))
    }

    @Test
    func `all who read at once get the same`() async {
        for _ in 0..<200 {
            let content = MessageContent(bytes: [1, 2, 3])
            let readings = await withTaskGroup(of: (any ContentReading).self) { group in
                for _ in 0..<8 { group.addTask { content.reading(Reading.init) } }
                return await group.reduce(into: []) { $0.append($1) }
            }
            #expect(readings.allSatisfy { $0 === readings[0] })
        }
    }

    @Test
    func `a message to many is committed with one content, which all of their connections share`() async throws {
        let store = MemoryStore(settings: StoreSettings(historyPeriod: .seconds(3_600)))
        let messenger = Messenger(
            accountStore: store,
            messageStore: store,
            socialStore: store,
            sessionStore: store,
            pushTokenStore: store
        )
        let members: Int32 = 200
        try await addAccounts(members, to: store)
        let others = try (2...members).map { try user($0) }
        let group = try await messenger.groups.apply(.create(name: "many", members: others), by: principal(1))
        let attachments = try (1...members).map { RecordingAttachment(try principal($0, "pad")) }
        for attachment in attachments { _ = messenger.devices.attach(attachment) }
        let draft = MessageDraft(
            conversation: .group(group.id),
            clientID: nil,
            content: MessageContent(bytes: Array("to all".utf8))
        )
        let sender = try principal(1)
        let sent = await withCheckedContinuation { continuation in
            messenger.messages.send(draft, from: sender) { continuation.resume(returning: $0) }
        }
        _ = try sent.get()
        await messenger.shutdown()
        let count = Mutex(0)
        for attachment in attachments {
            let contents = attachment.calls.flatMap(\.self).compactMap { entry -> MessageContent? in
                if case .message(let message) = entry.event { message.content } else { nil }
            }
            #expect(contents.count == 1)
            for content in contents {
                _ = content.reading { bytes in
                    count.withLock { $0 += 1 }
                    return Reading(bytes)
                }
            }
        }
        #expect(count.withLock { $0 } == 1)
        // The content in the store does not contain the result of this reading.
        let history = try await messenger.messageStore.history(of: .group(group.id), before: nil, limit: 1)
        var isRead = true
        _ = history.first?.content.reading { bytes in
            isRead = false
            return Reading(bytes)
        }
        #expect(!isRead)
    }
}
