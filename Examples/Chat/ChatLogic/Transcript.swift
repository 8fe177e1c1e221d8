// Hermes
// SPDX-License-Identifier: Apache-2.0

public import HermesClient

/// A conversation as a screen shows it. Pure: what happens goes in, lines come out.
public struct Transcript: Hashable, Sendable, Identifiable {
    /// One message.
    public struct Line: Hashable, Sendable, Identifiable {
        /// What stands beside a message.
        public enum Mark: Hashable, Sendable {
            /// It came from somebody else, or from another device of one's own.
            case received
            /// It waits for the network: a clock.
            case waiting
            /// The server has it: a tick.
            case sent
            /// The server refused it, because of this: a button to try again.
            case failed(String)
        }

        /// The client id of one's own message on this device, else the message id.
        public let id: String
        /// The message id; nil until the server has it.
        public internal(set) var messageID: String?
        /// Its place in the conversation; nil until the server has it.
        public internal(set) var seq: UInt64?
        /// Who wrote it; empty: oneself.
        public let author: String
        /// What it says, or what kind of thing it is.
        public internal(set) var text: String
        /// What stands beside it.
        public internal(set) var mark: Mark
    }

    /// Which conversation.
    public let conversation: Conversation
    /// The name of the other, or of the group.
    public internal(set) var title: String
    /// Oldest first; what is not sent yet stands at the end, in the order of writing.
    public private(set) var lines: [Line] = []
    /// How many lines came since it was last looked at.
    public internal(set) var unread = 0

    /// The conversation names it.
    public var id: Conversation { conversation }
    /// Up to where it was seen, for ``HermesClient/HermesClient/markRead(_:upToSeq:)``.
    public var lastSeq: UInt64? { lines.last { $0.seq != nil }?.seq }

    init(_ conversation: Conversation, title: String) {
        self.conversation = conversation
        self.title = title
    }

    /// A message came, from the inbox or from the history.
    ///
    /// - Returns: whether it was not there before.
    @discardableResult
    mutating func add(_ message: Message) -> Bool {
        // An own message that was sent from here is there already.
        guard !lines.contains(where: { $0.messageID == message.id }) else { return false }
        let line = Line(
            id: message.id,
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

    /// Something became of an own message.
    mutating func apply(_ entry: OutboxEntry) {
        let known = lines.firstIndex { $0.id == entry.clientID }
        if case .discarded = entry.status {
            if let known { lines.remove(at: known) }
            return
        }
        var line =
            known.map { lines.remove(at: $0) }
            ?? Line(id: entry.clientID, author: "", text: Self.text(of: entry.content), mark: .waiting)
        switch entry.status {
        case .queued, .sending: line.mark = .waiting
        case .failed(let error): line.mark = .failed(error.message)
        case .sent(let receipt):
            line.mark = .sent
            line.messageID = receipt.messageID
            line.seq = receipt.conversationSeq
        case .discarded: break
        }
        // A line without a place stays where it was, or goes to the end.
        let place = line.seq.map { seq in lines.firstIndex { ($0.seq ?? .max) > seq } ?? lines.endIndex }
        lines.insert(line, at: place ?? known ?? lines.endIndex)
    }

    mutating func recall(_ messageID: String) {
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
        case .unknown: "(something that this version cannot show)"
        }
    }
}
