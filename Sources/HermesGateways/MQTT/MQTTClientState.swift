// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// The state of a client from CONNECT on. Owner: the connection's event loop.
final class MQTTClientState {
    private(set) var identity: ClientIdentity
    let key: SessionKey
    /// The time that the session outlives its connection; zero: it ends with the connection.
    var sessionExpiry: Duration
    /// The will, published unless the client disconnects properly.
    var will: PendingWill?
    /// Whether reason strings are welcome [MQTT-3.1.2-29].
    var wantsProblemInformation = true
    /// Whether the same client is connected anew.
    var isReplaced = false
    var isServerStopping = false
    /// Whether it logged in with a token that has an end or permissions of its own, or has shown one since.
    private(set) var isRenewable: Bool
    /// Whether the client was warned that its token expires soon.
    var isWarnedOfExpiry = false

    /// The input from the client. Unchecked: all access is on one loop, and it is needed for each publication.
    @exclusivity(unchecked)
    var inbound: MQTTInbound

    /// The client's subscriptions.
    @exclusivity(unchecked)
    var subscriptions = MQTTSubscriptions()
    /// Created with the first shared subscription.
    lazy var shared: MQTTSharedState = {
        hasShared = true
        return MQTTSharedState()
    }()
    private(set) var hasShared = false
    /// Retained messages that are requested and not sent yet; nil if there are none.
    var retained: MQTTRetainedQueue?

    /// Nil without an account.
    var account: MQTTAccountState?
    var inbox: MQTTInbox? { account?.inbox }
    /// The connection's link to its session.
    var link: MQTTKeptSessionLink?
    /// Set if the session outlives its connection.
    var durable: MQTTDurableQueue?
    /// What it told rooms of who came.
    var announced = MQTTAnnouncedJoins()
    /// Topics of rooms from which an operator removed the client, and which its subscriptions still match.
    var closedRooms: Set<TopicName> = [] {
        didSet { if hasReader { reader.close(closedRooms) } }
    }
    /// The client's permissions, for other threads; created with the first shared subscription.
    private(set) lazy var reader: MQTTTopicReader = {
        hasReader = true
        return MQTTTopicReader(identity, topicAccess, closed: closedRooms, maxMessageBytes: maxPacketBytes)
    }()
    private var hasReader = false
    private let topicAccess: TopicAccess
    /// The client's Maximum Packet Size.
    private let maxPacketBytes: Int
    private var rules: BoundTopicRules?
    private var rulesGeneration: UInt64 = 0
    /// The client's permissions under any name; made when a message of its queue is older than its name.
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

    /// The client has renewed its token.
    func renew(_ identity: ClientIdentity) {
        self.identity = identity
        isRenewable = true
        rules = nil
        namelessReader = nil
        if hasReader { reader.renew(identity) }
        will = will?.by(identity)
        isWarnedOfExpiry = false
    }

    /// The approximate bytes kept for the client, without what goes out to it.
    func heldBytes(loops: Int) -> Int {
        subscriptions.bytes(loops: loops) &+ inbound.bytes &+ (hasShared ? shared.bytes : 0)
            &+ announced.bytes &+ (durable?.bytes ?? 0) &+ (retained?.bytes ?? 0) &+ (will?.weight ?? 0)
    }

    /// The client's permissions, by the rules in force.
    func access(_ access: TopicAccess) -> BoundTopicRules {
        let generation = access.generation
        if let rules, rulesGeneration == generation { return rules }
        let bound = access.current.bound(to: identity)
        rules = bound
        rulesGeneration = generation
        return bound
    }

    /// Whether the client may read a topic under any name.
    func mayReadUnderAnyName(_ topic: TopicName) -> Bool {
        let reader = namelessReader ?? MQTTTopicReader(identity.underNoName, topicAccess, closed: [])
        namelessReader = reader
        return reader.mayRead(topic)
    }
}

/// The further state of a client with an account. Owner: the connection's event loop.
final class MQTTAccountState {
    /// The proof that lets the device in; nil if a login of the native protocol has opened it.
    let admission: Admission?
    let device: DeviceDescription
    /// Whether the server assigned the client id: such a client is no device, because it never returns.
    let isIDAssigned: Bool
    /// The login of the client's device, once it is registered, together with the inbox.
    var login: Login?
    /// Created once the client uses the native protocol.
    var inbox: MQTTInbox?
    /// The subscriptions that ask for the inbox, except those that ended since the last check.
    var asking: Set<TopicText> = []

    init(admission: Admission?, device: DeviceDescription, isIDAssigned: Bool, login: Login?) {
        self.admission = admission
        self.device = device
        self.isIDAssigned = isIDAssigned
        self.login = login
    }
}

/// A client's unfinished messages from shared subscriptions, which go to the other members if it leaves.
final class MQTTSharedState {
    let load = SharedLoad()
    /// The approximate bytes of the messages in the window.
    private(set) var bytes = 0
    /// By number in the window.
    private(set) var unacknowledged: [UInt64: (publication: Publication, subscription: SharedSubscription)] = [:]

    /// - Returns: whether the bytes have grown enough to report.
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
