// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// The state of a client that has sent CONNECT. Owner: the connection's event loop.
final class MQTTClientState {
    private(set) var identity: ClientIdentity
    let key: SessionKey
    /// The time for which the session outlives its connection; zero if the session ends with the connection.
    var sessionExpiry: Duration
    /// The will, which is published unless the client disconnects properly.
    var will: PendingWill?
    /// Whether the client accepts reason strings [MQTT-3.1.2-29].
    var wantsProblemInformation = true
    /// Whether another connection of the same client has replaced this one.
    var isReplaced = false
    var isServerStopping = false
    /// Whether the client may renew its token. It may do so if it logged in with a token that expires or carries
    /// permissions, or if it has presented a token since the login.
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

    /// The further state of a client with an account; nil for a client without an account.
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

    /// Adopts the identity of the token with which the client has renewed its login.
    func renew(_ identity: ClientIdentity) {
        self.identity = identity
        isRenewable = true
        rules = nil
        namelessReader = nil
        if hasReader { reader.renew(identity) }
        will = will?.by(identity)
        isWarnedOfExpiry = false
    }

    /// The approximate number of bytes that are kept for the client, without the messages that are on their way to
    /// the client (``MQTTOutbound``).
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
