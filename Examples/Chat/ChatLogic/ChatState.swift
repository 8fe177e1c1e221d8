// Hermes
// SPDX-License-Identifier: Apache-2.0

public import Hermes

/// Everything that the app shows, as one value. ``ChatSession`` changes the value, and a screen shows it.
public struct ChatState: Hashable, Sendable {
    /// A banner above the list.
    public enum Banner: Hashable, Sendable {
        /// No banner.
        case none
        case connecting
        /// There is no connection, for this reason. The client reconnects.
        case offline(String)
        /// The session has ended. The user has to log in again.
        case signedOut(String?)
    }

    /// The account's name; empty before the first login.
    public internal(set) var nickName = ""
    /// The banner, which shows the state of the connection.
    public private(set) var banner = Banner.none
    /// The conversations, the most recently active first.
    public private(set) var transcripts: [Transcript] = []
    /// The conversation on the screen. Its new messages count as read.
    public private(set) var open: Conversation?
    /// The pushes of back ends, newest first.
    public private(set) var pushes: [Push] = []
    /// The number of inbox entries that were lost for good.
    public private(set) var lost: UInt64 = 0

    private static let maxPushes = 20

    /// Creates an empty state.
    public init() {}

    /// Returns the conversation; nil if it is unknown.
    public subscript(conversation: Conversation) -> Transcript? {
        transcripts.first { $0.conversation == conversation }
    }

    /// The number of unread messages in all conversations, for the app's badge.
    public var unread: Int { transcripts.reduce(0) { $0 + $1.unread } }

    /// Applies an event of the inbox.
    mutating func apply(_ event: InboxEvent) {
        switch event.kind {
        case .message(let message):
            let isRead = message.isOwn || message.conversation == open
            change(message.conversation, title: message.isOwn ? nil : Self.title(message)) { transcript in
                if transcript.add(message), !isRead { transcript.unread += 1 }
            }
        case .recall(let id, in: let conversation, by: _):
            change(conversation, title: nil, rises: false) { $0.recall(id) }
        case .push(let push):
            pushes = Array(([push] + pushes).prefix(Self.maxPushes))
        case .gap(let gap):
            lost &+= gap.upperBound &- gap.lowerBound &+ 1
        default:
            // The app does not show this kind of event, or a newer version added the kind.
            break
        }
    }

    /// Applies a change of a message that this device sends.
    mutating func apply(_ entry: OutboxEntry) {
        let isNew = self[entry.conversation]?.lines.contains { $0.id == entry.id } != true
        change(entry.conversation, title: nil, rises: isNew) { $0.apply(entry) }
    }

    /// Applies a change of the connection.
    mutating func apply(_ state: ConnectionState) {
        switch state {
        case .idle, .live: banner = .none
        case .connecting, .authenticating: banner = .connecting
        case .lost(let error), .waiting(let error, _), .paused(let error): banner = .offline(error.message)
        case .stopped(let error): banner = .signedOut(error?.message)
        }
    }

    /// Adds older messages that were read from the server.
    mutating func apply(_ history: History, of conversation: Conversation) {
        change(conversation, title: nil, rises: false) { transcript in
            for message in history.messages { transcript.add(message) }
        }
    }

    /// Opens a conversation on the screen; nil closes the open conversation.
    mutating func show(_ conversation: Conversation?, title: String? = nil) {
        open = conversation
        guard let conversation else { return }
        change(conversation, title: title, rises: false) { $0.unread = 0 }
    }

    private static func title(_ message: Message) -> String? {
        if case .user = message.conversation { message.fromNickName } else { nil }
    }

    private mutating func change(
        _ conversation: Conversation,
        title: String?,
        rises: Bool = true,
        _ body: (inout Transcript) -> Void
    ) {
        let index = transcripts.firstIndex { $0.conversation == conversation }
        var transcript = index.map { transcripts[$0] } ?? Transcript(conversation, title: Self.name(of: conversation))
        if let title { transcript.title = title }
        body(&transcript)
        if let index, !rises {
            transcripts[index] = transcript
            return
        }
        if let index { transcripts.remove(at: index) }
        transcripts.insert(transcript, at: 0)
    }

    /// The title of a conversation until the name is known.
    private static func name(of conversation: Conversation) -> String {
        switch conversation {
        case .user(let uid): "User \(uid)"
        case .group(let id): "Group \(id)"
        }
    }
}
