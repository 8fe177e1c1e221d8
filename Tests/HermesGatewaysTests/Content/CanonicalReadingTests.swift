// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire
import Testing

@testable import HermesGateways

/// A message's content is parsed once, not once for each recipient.
@Suite struct CanonicalReadingTests {
    private func bytes(_ text: String) throws -> [UInt8] {
        var content = Hermes_V1_Content()
        content.text = text
        return try content.wireBytes()
    }

    private func entry(_ content: MessageContent) throws -> InboxEntry {
        let message = Message(
            id: MessageID(high: 1, low: 2),
            conversation: .group(try #require(GroupID(rawValue: 1))),
            conversationSeq: 3,
            sender: try #require(UserID(2_000)),
            senderName: "ann",
            senderDevice: nil,
            clientID: nil,
            content: content,
            sentAt: Timestamp(rawValue: 1),
            expiresAt: Timestamp(rawValue: .max)
        )
        return InboxEntry(seq: 9, committedAt: message.sentAt, event: .message(message))
    }

    /// The texts of an entry in each protocol, for a reader.
    private func texts(_ entry: InboxEntry, _ reader: Principal) throws -> [String] {
        guard case .message(let message) = entry.event else { return [] }
        var texts = [Hermes_V1_Event(entry, reader: reader).message.content.text]
        if case .message(let base)? = IMPBTranslation.delivery(entry, reader: reader) {
            let body = try IMPB_Group_msg(wire: base.body)
            texts.append(try IMPB_msg_text_content(wire: body.content).text)
        }
        texts.append(try #require(QSIOPTranslation.push(for: entry, reader: reader)?.frame.properties()["body"]))
        texts.append(PushTextComposer.text(of: message, preview: .full).body)
        texts.append(try #require(MessageText.text(of: message.content)))
        return texts
    }

    @Test
    func `a thousand members over all protocols cause one parse`() throws {
        let content = MessageContent(bytes: try bytes("hello"))
        let entry = try entry(content)
        var readings: Set<ObjectIdentifier> = []
        for number in 1...1_000 as ClosedRange<UInt32> {
            let reader = Principal(
                user: try #require(UserID(number)),
                nickName: try NickName("user\(number)"),
                device: try #require(DeviceID("phone"))
            )
            #expect(try texts(entry, reader) == Array(repeating: "hello", count: 5))
            readings.insert(ObjectIdentifier(CanonicalReading.of(content)))
        }
        #expect(readings.count == 1)
        var parses = 0
        _ = content.reading { bytes in
            parses += 1
            return CanonicalReading(bytes)
        }
        #expect(parses == 0)
    }

    @Test
    func `no translation looks at the bytes once they are read`() throws {
        let content = MessageContent(bytes: try bytes("hidden"))
        let planted = try bytes("planted")
        _ = content.reading { _ in CanonicalReading(planted) }
        let reader = Principal(
            user: try #require(UserID(1)),
            nickName: try NickName("user1"),
            device: try #require(DeviceID("phone"))
        )
        #expect(try texts(entry(content), reader) == Array(repeating: "planted", count: 5))
        #expect(MessageText.json(of: content).contains("planted"))
    }

    /// A content of each kind, and a content without a kind. Each text in them contains the word "secret".
    private static func secrets() -> [Hermes_V1_Content] {
        var contents = Array(repeating: Hermes_V1_Content(), count: 8)
        contents[0].text = "a secret text"
        contents[1].image.url = "https://example.org/secret.png"
        contents[2].sound.fileName = "secret.m4a"
        contents[3].location.label = "a secret place"
        contents[4].video.url = "https://example.org/secret.mp4"
        contents[5].expression.name = "secret"
        contents[6].custom.type = "secret"
        return contents
    }

    @Test
    func `a push service sees no more of any kind of content than the preview allows`() throws {
        for content in Self.secrets() {
            let entry = try entry(MessageContent(bytes: try content.wireBytes()))
            guard case .message(let message) = entry.event else { continue }
            let none = PushTextComposer.text(of: message, preview: .none)
            #expect(none == PushText(title: "", body: "New message"))
            let sender = PushTextComposer.text(of: message, preview: .sender)
            #expect(sender == PushText(title: "ann", body: "New message"))
        }
        let full = try Self.secrets().compactMap { content -> PushText? in
            guard case .message(let message) = try entry(MessageContent(bytes: try content.wireBytes())).event else {
                return nil
            }
            return PushTextComposer.text(of: message, preview: .full)
        }
        #expect(full.allSatisfy { $0.title == "ann" })
        #expect(
            full.map(\.body) == [
                "a secret text", "🖼 Picture", "🎤 Voice message", "📍 a secret place", "🎬 Video", "[secret]",
                "New message", "New message",
            ]
        )
    }

    @Test
    func `bytes that are no content are empty to all, and QSIOP says so`() throws {
        let content = MessageContent(bytes: [0xFF])
        #expect(CanonicalReading.of(content).content == nil)
        #expect(CanonicalContent.parsed(content) == Hermes_V1_Content())
        #expect(QSIOPTranslation.plainText(content) == "[unreadable]")
        #expect(CanonicalReading.of(content) === CanonicalReading.of(content))
    }
}
