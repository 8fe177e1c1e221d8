// Hermes
// SPDX-License-Identifier: Apache-2.0

public import Hermes

/// A conversation as a screen shows it. Events change its lines.
public struct Transcript: Hashable, Sendable, Identifiable {
    /// One message.
    public struct Line: Hashable, Sendable, Identifiable {
        /// The mark next to a message.
        public enum Mark: Hashable, Sendable {
            /// The message was received from another account, or sent by another device of the user.
            case received
            /// The message waits for the network. The screen shows a clock.
            case waiting
            /// The server has the message. The screen shows a tick.
            case sent
            /// The server refused the message, for this reason. The screen shows a button to try again.
            case failed(String)
        }

        /// The client id if this device sent the message; otherwise the message id.
        public let id: String
        /// The message id; nil until the server has the message.
        public internal(set) var messageID: MessageID?
        /// The place in the conversation; nil until the server has the message.
        public internal(set) var seq: UInt64?
        /// The author's name; empty if the author is the user.
        public let author: String
        /// The text, or the kind of content.
        public internal(set) var text: String
        /// The mark next to the message.
        public internal(set) var mark: Mark
    }

    /// The conversation.
    public let conversation: Conversation
    /// The name of the other user or of the group.
    public internal(set) var title: String
    /// The lines, oldest first. Unsent lines are at the end, in the order in which they were written.
    public private(set) var lines: [Line] = []
    /// The number of unread lines.
    public internal(set) var unread = 0

    /// The id, which is the conversation.
    public var id: Conversation { conversation }
    /// The last seq that was seen, for ``HermesClient/markRead(_:upToSeq:)``.
    public var lastSeq: UInt64? { lines.last { $0.seq != nil }?.seq }

    init(_ conversation: Conversation, title: String) {
        self.conversation = conversation
        self.title = title
    }

    /// Adds a message from the inbox or from the history.
    ///
    /// - Returns: true if the message is new.
    @discardableResult
    mutating func add(_ message: Message) -> Bool {
        // The transcript may already contain a message that this device sent.
        guard !lines.contains(where: { $0.messageID == message.id }) else { return false }
        let line = Line(
            id: message.id.rawValue,
            messageID: message.id,
            seq: message.conversationSeq,
            author: message.isOwn ? "" : message.fromNickName,
            text: message.isRecalled ? Self.recalled : Self.text(of: message.content),
            mark: message.isOwn ? .sent : .received
        )
        let place = lines.firstIndex { ($0.seq ?? .max) > message.conversationSeq } ?? lines.endIndex
        lines.insert(line, at: place)
        return true
    }

    /// Applies a change of a message that this device sends.
    mutating func apply(_ entry: OutboxEntry) {
        let known = lines.firstIndex { $0.id == entry.id }
        if case .discarded = entry.status {
            if let known { lines.remove(at: known) }
            return
        }
        var line =
            known.map { lines.remove(at: $0) }
            ?? Line(id: entry.id, author: "", text: Self.text(of: entry.content), mark: .waiting)
        switch entry.status {
        case .queued, .sending: line.mark = .waiting
        case .failed(let error): line.mark = .failed(error.message)
        case .sent(let receipt):
            line.mark = .sent
            line.messageID = receipt.messageID
            line.seq = receipt.conversationSeq
        case .discarded: break
        }
        // A line without a seq keeps its position, or goes to the end.
        let place = line.seq.map { seq in lines.firstIndex { ($0.seq ?? .max) > seq } ?? lines.endIndex }
        lines.insert(line, at: place ?? known ?? lines.endIndex)
    }

    mutating func recall(_ messageID: MessageID) {
        guard let index = lines.firstIndex(where: { $0.messageID == messageID }) else { return }
        lines[index].text = Self.recalled
    }

    private static let recalled = "(taken back)"

    private static func text(of content: MessageContent) -> String {
        switch content {
        case .text(let text): text
        case .image: "(a picture)"
        case .sound: "(a recording)"
        case .location(_, _, let label): "(a place: \(label))"
        case .video: "(a film)"
        case .expression(_, let name): "(\(name))"
        case .custom(let type, _): "(\(type))"
        default: "(something that this version cannot show)"
        }
    }
}
