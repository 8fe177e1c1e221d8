// Hermes
// SPDX-License-Identifier: Apache-2.0

/// An event for the app.
///
/// Messages, read marks, recalls, pushes, contact, group and call events are entries of the inbox. Each arrives once
/// and in order, and counts as taken when the app asks for the next event. All other events are ephemeral.
public enum InboxEvent: Hashable, Sendable {
    /// A message from another account, or from another device of this account.
    case message(Message)
    /// `uid` read the conversation up to this conversation seq.
    case read(conversation: Conversation, uid: UInt32, upToSeq: UInt64)
    /// A message was recalled.
    case recalled(conversation: Conversation, messageID: String, byUID: UInt32)
    /// An account asked for contact, answered a request or ended a contact.
    case contact(ContactChange)
    /// A group was created, changed or dissolved.
    case group(GroupChange)
    /// A push from a back end.
    case push(Push)
    /// A call rang, was answered, missed or ended.
    case call(withUID: UInt32, sessionID: String, kind: CallKind)
    /// The server deleted the entries with these seqs before this device got them. They cannot be fetched.
    case gap(from: UInt64, to: UInt64)
    /// The server lost its store and began a new inbox. Entries that the app had not received are lost.
    case inboxReset
    /// An entry of a kind that this version does not know.
    case unknown

    /// A user is typing, or stopped.
    case typing(conversation: Conversation, uid: UInt32, isTyping: Bool)
    /// A watched account came online or went offline.
    case presence(Presence)
    /// An event in a room that the client has entered.
    case room(RoomEvent)
    /// The pushes to a topic with these numbers did not arrive and cannot be fetched. A room is the topic "room/NAME".
    case topicGap(topic: String, from: UInt64, to: UInt64)
    /// Set-up data for a peer-to-peer link or a call; nil data: the other end is done.
    case signal(fromUID: UInt32, sessionID: String, data: [UInt8]?)
    /// A notice from the server's operator.
    case notice(String)

    /// A call's stage.
    public enum CallKind: Hashable, Sendable {
        /// The call rang.
        case ringing
        /// The call was answered.
        case answered
        /// The call was not answered.
        case missed
        /// The call ended.
        case ended
    }
}

/// A change of a contact, made by the other account.
public struct ContactChange: Hashable, Sendable {
    /// The kind of change.
    public enum Kind: Hashable, Sendable {
        /// The account asked for contact.
        case requested
        /// The account accepted.
        case accepted
        /// The account declined.
        case declined
        /// The account ended the contact.
        case removed
    }

    /// The kind of change.
    public var kind: Kind
    /// The account that made the change.
    public var uid: UInt32
    /// The account's name.
    public var nickName: String
    /// The text that came with the request or the answer.
    public var message: String
}

/// A change of a group.
public struct GroupChange: Hashable, Sendable {
    /// The kind of change.
    public enum Kind: Hashable, Sendable {
        /// The group was created.
        case created
        /// The group's name, picture or rules changed.
        case changed
        /// Members were added.
        case membersAdded
        /// Members left or were removed.
        case membersRemoved
        /// The group was dissolved.
        case dissolved
    }

    /// The kind of change.
    public var kind: Kind
    /// The group's id.
    public var groupID: UInt32
    /// The group's name.
    public var name: String
    /// The account that made the change.
    public var byUID: UInt32
    /// The members that were added or removed.
    public var uids: [UInt32]
}

/// A push from a back end.
public struct Push: Hashable, Sendable {
    /// The push's id: 26 characters, sortable by time.
    public var id: String
    /// The title: at most 256 bytes.
    public var title: String
    /// The text: at most 4 KiB.
    public var body: String
    /// The application's own JSON object: at most 16 KiB; may be empty.
    public var dataJSON: String
    /// The key under which a newer push replaces this one; may be empty.
    public var collapseKey: String
    /// The time after which the push is not worth showing, in milliseconds since 1970; 0 if unsaid.
    public var expiresAtMilliseconds: Int64
    /// Whether to wake a sleeping device at once.
    public var isUrgent: Bool
    /// The topic of a push to a topic; empty for a push to a user.
    public var topic: String

    package init(
        id: String,
        title: String,
        body: String,
        dataJSON: String,
        collapseKey: String,
        expiresAtMilliseconds: Int64 = 0,
        isUrgent: Bool = false,
        topic: String = ""
    ) {
        self.id = id
        self.title = title
        self.body = body
        self.dataJSON = dataJSON
        self.collapseKey = collapseKey
        self.expiresAtMilliseconds = expiresAtMilliseconds
        self.isUrgent = isUrgent
        self.topic = topic
    }
}
