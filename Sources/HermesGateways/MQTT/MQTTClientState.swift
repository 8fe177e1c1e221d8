// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// The state of a client from CONNECT on. Owner: the connection's event loop.
final class MQTTClientState {
    private(set) var identity: ClientIdentity
    let key: SessionKey
    /// The time for which the session outlives its connection; zero: the session ends with the connection.
    var sessionExpiry: Duration
    /// The will, published unless the client disconnects properly.
    var will: PendingWill?
    /// Whether the client accepts reason strings [MQTT-3.1.2-29].
    var wantsProblemInformation = true
    /// Whether another connection of the same client has replaced this one.
    var isReplaced = false
    var isServerStopping = false
    /// Whether the client may renew its token: it logged in with a token that expires or carries permissions, or has
    /// shown a token since the login.
    private(set) var isRenewable: Bool
    /// Whether the client was warned that its token expires soon.
    var isWarnedOfExpiry = false
    /// Whether ``shared`` was created.
    private(set) var hasShared = false
    /// Whether ``reader`` was created.
    private var hasReader = false

    /// The state of the input from the client. Exclusivity is unchecked because all access is on one loop and happens
    /// for each publication.
    @exclusivity(unchecked)
    var inbound: MQTTInbound

    /// The client's subscriptions.
    @exclusivity(unchecked)
    var subscriptions = MQTTSubscriptions()
    /// The client's part in shared subscriptions; created with the first shared subscription.
    lazy var shared: MQTTSharedState = {
        hasShared = true
        return MQTTSharedState()
    }()
    /// The retained messages that subscriptions requested and that are not sent yet; nil if there are none.
    var retained: MQTTRetainedQueue?

    /// The further state of a client with an account; nil for a client without one.
    var account: MQTTAccountState?
    var inbox: MQTTInbox? { account?.inbox }
    /// The connection's link to its session; nil until the client has its session.
    var link: MQTTSessionLink?
    /// The queue of a session that outlives its connection; nil for other sessions.
    var durable: MQTTDurableQueue?
    /// The joins that the client has announced to rooms and whose leaves may follow.
    var announced = MQTTAnnouncedJoins()
    /// The topics of rooms from which an operator removed the client. The client's wildcard subscriptions may still
    /// match these topics, and its queue may still hold messages from these rooms.
    var closedRooms: Set<TopicName> = [] {
        didSet { if hasReader { reader.close(closedRooms) } }
    }
    /// The client's permissions, readable on other threads; created with the first shared subscription or for a session
    /// that outlives its connection.
    private(set) lazy var reader: MQTTTopicReader = {
        hasReader = true
        return MQTTTopicReader(identity, topicAccess, closed: closedRooms, maxMessageBytes: maxPacketBytes)
    }()
    private let topicAccess: TopicAccess
    /// The client's Maximum Packet Size.
    private let maxPacketBytes: Int
    private var rules: BoundTopicRules?
    private var rulesGeneration: UInt64 = 0
    /// The client's permissions that do not depend on its name; created when the client's queue has a message from
    /// before the account was renamed.
    private var namelessReader: MQTTTopicReader?

    init(
        identity: ClientIdentity,
        key: SessionKey,
        sessionExpiry: Duration,
        inbound: MQTTInbound,
        maxPacketBytes: Int,
        access: TopicAccess
    ) {
        self.maxPacketBytes = maxPacketBytes
        self.identity = identity
        isRenewable = identity.expiresAt != nil || identity.claims != nil
        self.inbound = inbound
        topicAccess = access
        self.key = key
        self.sessionExpiry = sessionExpiry
    }

    /// Takes over the identity of the token with which the client has renewed its login.
    func renew(_ identity: ClientIdentity) {
        self.identity = identity
        isRenewable = true
        rules = nil
        namelessReader = nil
        if hasReader { reader.renew(identity) }
        will = will?.by(identity)
        isWarnedOfExpiry = false
    }

    /// The approximate bytes kept for the client, without the messages on their way to it (``MQTTOutbound``).
    func heldBytes(loops: Int) -> Int {
        subscriptions.bytes(loops: loops) &+ inbound.bytes &+ (hasShared ? shared.bytes : 0)
            &+ announced.bytes &+ (durable?.bytes ?? 0) &+ (retained?.bytes ?? 0) &+ (will?.weight ?? 0)
    }

    /// Returns the client's permissions by the rules in force.
    func access(_ access: TopicAccess) -> BoundTopicRules {
        let generation = access.generation
        if let rules, rulesGeneration == generation { return rules }
        let bound = access.current.bound(to: identity)
        rules = bound
        rulesGeneration = generation
        return bound
    }

    /// Whether the client may read a topic regardless of the client's name.
    func mayReadUnderAnyName(_ topic: TopicName) -> Bool {
        let reader = namelessReader ?? MQTTTopicReader(identity.underNoName, topicAccess, closed: [])
        namelessReader = reader
        return reader.mayRead(topic)
    }
}

/// The further state of a client with an account. Owner: the connection's event loop.
final class MQTTAccountState {
    /// The proof with which the device is registered later; nil if a login of the native protocol has already
    /// registered it.
    let admission: Admission?
    let device: DeviceDescription
    /// Whether the server assigned the client id. Such a client is not a device, because nobody can connect with this
    /// id again.
    let isIDAssigned: Bool
    /// The login of the client's device; nil while the account does not have the device. The device is registered when
    /// the client first asks for the inbox.
    var login: Login?
    /// The client's side of the native protocol; nil until the client uses it.
    var inbox: MQTTInbox?
    /// The most publications of QoS 1 and 2 that the client accepts without having acknowledged them.
    var receiveMaximum = Int(UInt16.max)
    /// The part of ``receiveMaximum`` that only the inbox can use: what `mqtt.maxInflight` leaves over, and at least
    /// one slot if there are two, so that other publications cannot hold up the inbox.
    var ownSlots = 0
    /// The subscriptions that ask for the inbox. A subscription that has ended stays in the set until the next
    /// ``MQTTConnection/adjustInbox(of:)``.
    var asking: Set<TopicText> = []

    init(admission: Admission?, device: DeviceDescription, isIDAssigned: Bool, login: Login?) {
        self.admission = admission
        self.device = device
        self.isIDAssigned = isIDAssigned
        self.login = login
    }
}

/// A client's unfinished messages from shared subscriptions. If the client leaves, they go to other members of the
/// groups.
final class MQTTSharedState {
    /// An unacknowledged message, and the QoS with which it was sent.
    struct Sent {
        let publication: Publication
        let qos: QoS
        let subscription: SharedSubscription
    }

    let load = SharedLoad()
    /// The approximate bytes of the messages in the window.
    private(set) var bytes = 0
    /// The unacknowledged messages, by their numbers in the window (``OutboundWindow``).
    private(set) var unacknowledged: [UInt64: Sent] = [:]

    /// - Returns: whether the bytes have grown enough to be reported.
    func remember(_ number: UInt64, _ sent: Sent) -> Bool {
        unacknowledged[number] = sent
        let before = bytes
        bytes &+= sent.publication.weight
        return bytes >> Self.stepBits != before >> Self.stepBits
    }

    func forget(_ number: UInt64) -> Sent? {
        guard let taken = unacknowledged.removeValue(forKey: number) else { return nil }
        bytes &-= taken.publication.weight
        return taken
    }

    /// The binary logarithm of the growth, in bytes, after which a report is made: 16 KiB.
    private static let stepBits = 14
}
