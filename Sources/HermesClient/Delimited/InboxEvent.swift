// Hermes
// SPDX-License-Identifier: Apache-2.0

/// What a client's event stream tells the app.
///
/// Messages, marks, recalls, pushes, contact, group and call events are entries of the inbox: each comes once, in order,
/// and counts as taken once the app asks for the next. The others matter only now.
public enum InboxEvent: Hashable, Sendable {
    /// A message arrived, or another device of one's own sent one.
    case message(Message)
    /// `uid` read the conversation up to this conversation seq.
    case read(conversation: Conversation, uid: UInt32, upToSeq: UInt64)
    /// A message was taken back.
    case recalled(conversation: Conversation, messageID: String, byUID: UInt32)
    /// Somebody asked for contact, answered or ended it.
    case contact(ContactChange)
    /// A group was created, changed or dissolved.
    case group(GroupChange)
    /// A notification of a back end.
    case push(Push)
    /// A call rang, was answered, missed or ended.
    case call(withUID: UInt32, sessionID: String, kind: CallKind)
    /// The entries with these seqs were gone before this device could get them, and cannot be fetched.
    case gap(from: UInt64, to: UInt64)
    /// The server lost its store and began a new inbox: what it kept for this device and the app has not got is lost.
    case inboxReset
    /// An entry of a kind that this version does not know.
    case unknown

    /// Somebody is typing, or stopped.
    case typing(conversation: Conversation, uid: UInt32, isTyping: Bool)
    /// Somebody whom one watches came or went.
    case presence(Presence)
    /// Something happened in a room that one is in.
    case room(RoomEvent)
    /// The pushes to a topic with these numbers did not arrive, and cannot be fetched. Rooms are topics: "room/" and the name.
    case topicGap(topic: String, from: UInt64, to: UInt64)
    /// Set-up data for a peer-to-peer link or call; nil data: the other end is done.
    case signal(fromUID: UInt32, sessionID: String, data: [UInt8]?)
    /// A text of the server's operator.
    case notice(String)

    /// What happened to a call.
    public enum CallKind: Hashable, Sendable {
        /// It rang.
        case ringing
        /// It was answered.
        case answered
        /// Nobody answered.
        case missed
        /// It is over.
        case ended
    }
}

/// Somebody asked for contact, answered or ended it.
public struct ContactChange: Hashable, Sendable {
    /// What happened.
    public enum Kind: Hashable, Sendable {
        /// They ask.
        case requested
        /// They accepted.
        case accepted
        /// They declined.
        case declined
        /// They ended it.
        case removed
    }

    /// What happened.
    public var kind: Kind
    /// Who did it.
    public var uid: UInt32
    /// Their name.
    public var nickName: String
    /// What they said.
    public var message: String
}

/// A group was created, changed or dissolved.
public struct GroupChange: Hashable, Sendable {
    /// What happened.
    public enum Kind: Hashable, Sendable {
        /// It was created.
        case created
        /// Its name, picture or rules changed.
        case changed
        /// Members were added.
        case membersAdded
        /// Members left or were removed.
        case membersRemoved
        /// It is gone.
        case dissolved
    }

    /// What happened.
    public var kind: Kind
    /// Which group.
    public var groupID: UInt32
    /// Its name.
    public var name: String
    /// Who did it.
    public var byUID: UInt32
    /// Who was added or removed.
    public var uids: [UInt32]
}

/// A notification of a back end.
public struct Push: Hashable, Sendable {
    /// 26 characters, sortable by time.
    public var id: String
    /// At most 256 bytes.
    public var title: String
    /// At most 4 KiB.
    public var body: String
    /// The application's own JSON object; at most 16 KiB; may be empty.
    public var dataJSON: String
    /// A newer push with the same key replaces an older one; may be empty.
    public var collapseKey: String
    /// Not worth showing any more from then on, in milliseconds since 1970; 0: not said.
    public var expiresAtMilliseconds: Int64 = 0
    /// Whether a device that sleeps is to be woken at once.
    public var isUrgent = false
    /// Of a push to a topic: the topic; empty: a push to a user.
    public var topic = ""
}
