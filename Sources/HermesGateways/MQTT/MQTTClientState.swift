// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule
import HermesCore
import HermesWire
import NIOCore

/// What a session knows of its client from CONNECT on. Owner: the connection's event loop.
final class MQTTClientState {
    private(set) var identity: ClientIdentity
    let key: SessionKey
    /// How long the session outlives its connection; zero: it ends with it.
    var sessionExpiry: Duration
    /// Published unless the client says goodbye.
    var will: MQTTPendingWill?
    /// Whether reason strings are welcome [MQTT-3.1.2-29].
    var wantsProblemInformation = true
    /// The same client is connected anew.
    var isReplaced = false
    var isServerStopping = false
    /// The client knows that its token ends soon.
    var isWarnedOfExpiry = false

    // Incoming.
    /// Aliases that the client has set [MQTT-3.3.2-12].
    var inboundAliases: [UInt16: String] = [:]
    /// What they take, in bytes.
    var aliasBytes = 0
    /// QoS 2 messages that came and were not released.
    var received: Set<UInt16> = []
    /// Acknowledgements in the order of the messages; the first is still being stored.
    var acknowledgements = Deque<MQTTPendingAcknowledgement>()
    var nextAcknowledgement: UInt64 = 0
    /// QoS 1 messages that are being stored.
    var storing = 0
    /// The identifiers of QoS 2 messages that are being stored: nothing is said about them before.
    var storingReceived: Set<UInt16> = []

    // Outgoing.
    var subscriptions: [TopicText: MQTTHeldSubscription] = [:]
    /// What their filters take, in bytes.
    var subscriptionBytes = 0
    /// Made with the first shared subscription.
    lazy var shared: MQTTSharedState = {
        hasShared = true
        return MQTTSharedState()
    }()
    private(set) var hasShared = false
    /// The client's receive maximum.
    var receiveMaximum = 65_535
    /// The highest alias the client takes.
    var maxAlias: UInt16 = 0
    var outboundAliases: [TopicName: UInt16] = [:]
    /// Retained messages that were asked for and not sent yet; nil if there are none.
    var retained: MQTTRetainedQueue?

    /// Nil without an account.
    var account: MQTTAccountState?
    var inbox: MQTTInbox? { account?.inbox }
    /// The connection's hold on the session.
    var link: MQTTSessionLink?
    /// Set if the session outlives its connection.
    var durable: MQTTDurableQueue?
    /// Some subscriptions match more than the client may have.
    var hasFilteredSubscriptions = false
    /// Topics of rooms that an operator removed the client from, and that its subscriptions still match.
    var closedRooms: Set<TopicName> = [] {
        didSet { if hasReader { reader.close(closedRooms) } }
    }
    /// What it may read, for those who ask on other threads; made with the first shared subscription.
    private(set) lazy var reader: MQTTTopicReader = {
        hasReader = true
        return MQTTTopicReader(identity, topicAccess, closed: closedRooms)
    }()
    private var hasReader = false
    private let topicAccess: TopicAccess
    private var rules: BoundTopicRules?
    private var rulesGeneration: UInt64 = 0

    init(identity: ClientIdentity, key: SessionKey, sessionExpiry: Duration, access: TopicAccess) {
        self.identity = identity
        topicAccess = access
        self.key = key
        self.sessionExpiry = sessionExpiry
    }

    /// The client has shown a new token.
    func renew(_ identity: ClientIdentity) {
        self.identity = identity
        rules = nil
        isWarnedOfExpiry = false
    }

    /// What is kept for the client beside the messages that wait, in bytes, about.
    var heldBytes: Int {
        subscriptionBytes &+ 256 &* subscriptions.count &+ aliasBytes &+ (hasShared ? shared.bytes : 0)
            &+ (durable?.bytes ?? 0)
    }

    /// What the client may do, by the rules in force.
    func access(_ access: TopicAccess) -> BoundTopicRules {
        let generation = access.generation
        if let rules, rulesGeneration == generation { return rules }
        let bound = access.current.bound(to: identity)
        rules = bound
        rulesGeneration = generation
        return bound
    }
}

/// What a client with an account has besides. Owner: the connection's event loop.
final class MQTTAccountState {
    let admission: Admission
    let device: DeviceDescription
    /// Whether the client id is the server's: such a client is no device, for it never comes back.
    let isIDAssigned: Bool
    /// The login of the client's device, once it is registered: with the inbox, not before.
    var login: Login?
    /// Made once the native protocol is spoken.
    var inbox: MQTTInbox?
    /// The subscriptions that ask for it, but for those that have ended since they were looked at last.
    var asking: Set<TopicText> = []

    init(admission: Admission, device: DeviceDescription, isIDAssigned: Bool, login: Login?) {
        self.admission = admission
        self.device = device
        self.isIDAssigned = isIDAssigned
        self.login = login
    }
}

/// What a session got by shared subscriptions and has not passed on to the end: the others' if it leaves.
final class MQTTSharedState {
    let load = SharedLoad()
    /// What the messages in the window hold, in bytes, about.
    private(set) var bytes = 0
    /// By the number in the window.
    private(set) var unacknowledged: [UInt64: (publication: Publication, subscription: SharedSubscription)] = [:]

    /// - Returns: whether so much more is held that it should be told.
    func remember(_ number: UInt64, _ publication: Publication, _ subscription: SharedSubscription) -> Bool {
        unacknowledged[number] = (publication, subscription)
        let before = bytes
        bytes &+= publication.weight
        return bytes >> Self.stepBits != before >> Self.stepBits
    }

    func forget(_ number: UInt64) -> (publication: Publication, subscription: SharedSubscription)? {
        guard let taken = unacknowledged.removeValue(forKey: number) else { return nil }
        bytes &-= taken.publication.weight
        return taken
    }

    /// 16 KiB.
    private static let stepBits = 14
}

/// A will that waits for its day. A class, so that the many clients without one have no room for it.
final class MQTTPendingWill: Sendable {
    let publication: Publication
    /// When it was given: its life begins only when it is published.
    let givenAt: Timestamp
    /// How long after the end of the connection it is published.
    let delay: Duration

    init(publication: Publication, givenAt: Timestamp, delay: Duration) {
        self.publication = publication
        self.givenAt = givenAt
        self.delay = delay
    }

    /// What it holds, in bytes, about.
    var weight: Int { publication.weight + publication.topic.rawValue.utf8.count + 512 }
}

/// An answer to a PUBLISH that waits for the store, or for one before it [MQTT-4.6.0-2].
struct MQTTPendingAcknowledgement {
    let type: MQTTPacketType
    let packetID: UInt16
    /// Nil while the message is being stored.
    var reason: MQTTReasonCode?
    /// A QoS 2 message that goes to those who are connected once it is acknowledged: should it not be stored, the client
    /// sends it again, and nobody may get it twice.
    var publication: Publication?
}

/// One of a session's subscriptions.
struct MQTTHeldSubscription {
    /// Nil for a shared subscription.
    var live: TopicSubscription?
    /// Set for a shared subscription.
    var shared: SharedSubscription?
    var options: SubscriptionOptions
}

/// Where a PUBLISH goes: kept, because the next one mostly goes there, too.
final class MQTTPublishTarget {
    /// The topic as it was sent.
    private let bytes: [UInt8]
    let topic: TopicName
    /// The account that publishes; nil for an anonymous client.
    let sender: UserID?
    let route: TopicRoute
    /// Whether the client may publish there, by the rules of this generation.
    let isAllowed: Bool
    let rules: UInt64
    /// Whether messages need a second look: they are for the server itself or for a room.
    let isSpecial: Bool
    /// The durable sessions that get what is published here, as they were at this generation.
    var durable: [DurableTarget] = []
    /// The groups among them.
    var decided: DecidedShares?
    var durableGeneration: UInt64?

    init(
        bytes: [UInt8],
        topic: TopicName,
        sender: UserID?,
        route: TopicRoute,
        isAllowed: Bool,
        rules: UInt64,
        isSpecial: Bool
    ) {
        self.bytes = bytes
        self.topic = topic
        self.sender = sender
        self.route = route
        self.isAllowed = isAllowed
        self.rules = rules
        self.isSpecial = isSpecial
    }

    /// Whether a topic as it was sent is this one.
    func isNamed(_ buffer: ByteBuffer, at start: Int, length: Int) -> Bool {
        guard length == bytes.count else { return false }
        let offset = start - buffer.readerIndex
        return buffer.withUnsafeReadableBytes { input in
            guard offset >= 0, input.count >= offset + length else { return false }
            let name = UnsafeRawBufferPointer(rebasing: input[offset..<offset + length])
            return bytes.withUnsafeBytes { $0.hasSameBytes(as: name) }
        }
    }
}
