// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import NIOCore
import NIOEmbedded
import Testing

@testable import HermesGateways

/// A requested page is written in turns, so that other connections do not wait for the whole page.
@Suite struct RequestedPageTests {
    private func page(of count: UInt64, for reader: Principal) throws -> InboxPage {
        let sender = try #require(UserID(9))
        let entries = (1...count).map { seq in
            let message = Message(
                id: MessageID(high: seq, low: 0),
                conversation: .direct(between: reader.user, and: sender),
                conversationSeq: seq,
                sender: sender,
                senderName: "",
                senderDevice: reader.device,
                clientID: nil,
                content: MessageContent(bytes: []),
                sentAt: Timestamp(rawValue: 0),
                expiresAt: Timestamp(rawValue: 0)
            )
            return InboxEntry(seq: seq, committedAt: Timestamp(rawValue: 0), event: .message(message))
        }
        return InboxPage(entries: entries, position: InboxPosition(epoch: 1, head: count, oldest: 1))
    }

    @Test func `others have their turn between its parts`() async throws {
        let fixture = try ConnectionHandlerTests.Fixture()
        let connection = fixture.connection
        connection.authenticated()
        let store = MemoryStore()
        let messenger = Messenger(
            accountStore: store,
            messageStore: store,
            socialStore: store,
            sessionStore: store,
            pushTokenStore: store
        )
        let reader = Principal(
            user: try #require(UserID(1)),
            nickName: try NickName("ann"),
            device: try #require(DeviceID("phone"))
        )
        var written: [UInt64] = []
        let link = InboxLink(principal: reader, connection: connection, messenger: messenger) { written.append($0.seq) }
        // The clock advances 15 ms each time it is read.
        var time = NIODeadline.uptimeNanoseconds(1_000_000_000)
        connection.loop.replacedTurnClock = {
            time = time + .milliseconds(15)
            return time
        }
        var sizes: [Int] = []
        connection.loop.inTurn { sizes.append(written.count) }
        link.write(requested: try page(of: 400, for: reader))
        #expect(written.count < 100, "the rest waits")
        #expect(!connection.mayRead, "nothing is read from the peer meanwhile")
        for _ in 0..<1_000 where written.count < 400 {
            connection.loop.inTurn { sizes.append(written.count) }
            fixture.channel.embeddedEventLoop.advanceTime(by: .milliseconds(1))
        }
        #expect(written == Array(1...400))
        #expect(connection.mayRead)
        #expect(zip(sizes, sizes.dropFirst()).allSatisfy { $1 - $0 < 100 }, "\(sizes)")
        link.close()
        await messenger.shutdown()
    }
}
