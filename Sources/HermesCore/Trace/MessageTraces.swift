// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Remembers where the last messages and pushes went, for the operator: commit, delivery, acknowledgement, push. In
/// memory alone; neither contents nor texts.
///
/// A commit costs one lock for all its messages. A delivery to a connection, and an acknowledgement, costs one lock of
/// the user's shard, for however many entries. The records are put together only when somebody asks.
///
/// State: a `Mutex` around the messages, and one around the steps and times of each ``Shard``; none is taken inside
/// another.
package final class MessageTraces: Sendable {
    /// The number of messages that are remembered.
    package static let maxMessages = 10_000
    /// The number of places in inboxes that are remembered for each message, so that a large group costs little.
    package static let maxPlaces = 16
    /// The most messages that one search finds, and the most steps of one of them.
    package static let maxFound = 20
    static let maxStepsFound = 200
    /// Steps of all messages; a step has some 100 bytes.
    static let shardCount = 8
    static let maxStepsInShard = 8_192

    private final class Shard: Sendable {
        let state = Mutex(ShardState())
    }

    private struct ShardState: Sendable {
        var steps = TraceRing<RecordedStep>(capacity: MessageTraces.maxStepsInShard)
        var times = DeliveryTimes()
    }

    private let messages = Mutex(TraceRing<TracedMessage>(capacity: maxMessages))
    private let shards = (0..<shardCount).map { _ in Shard() }
    private let time: any TimeSource

    init(time: any TimeSource) { self.time = time }

    // MARK: Recording

    /// Messages were committed or refused, in one commit.
    func committed(_ news: [TracedMessage]) {
        guard !news.isEmpty else { return }
        messages.withLock { messages in
            for message in news { messages.append(message) }
        }
    }

    /// A push to many was appended to some of their inboxes.
    func fannedOut(_ id: MessageID, _ deliveries: [InboxDelivery]) {
        guard !deliveries.isEmpty else { return }
        messages.withLock { messages in
            messages.updateNewest(where: { $0.id == id && $0.conversation == nil }, { $0.add(deliveries) })
        }
    }

    /// A connection has these entries of its user's inbox in its output.
    ///
    /// - Parameters:
    ///   - entries: in order, none between them was left out.
    ///   - head: the newest entry when the connection opened. Earlier ones waited for the device, so their delivery
    ///     times are not recorded.
    ///   - gateway: the connection's listener.
    package func delivered(
        _ entries: ArraySlice<InboxEntry>,
        behind head: UInt64,
        to principal: Principal,
        by gateway: String
    ) {
        guard let first = entries.first, let last = entries.last else { return }
        let now = time.uptime()
        let seqs = first.seq...max(first.seq, last.lastSeq)
        let step = RecordedStep(.delivered, principal.user, principal.device, seqs, at: now, detail: gateway)
        // An entry that waited for a slow device was read from the store; only its commit is known.
        let clock = entries.contains { $0.acceptedAt == nil && $0.seq > head } ? time.latest() : nil
        shard(of: principal.user).state.withLock { state in
            state.steps.append(step)
            for entry in entries where entry.seq > head && !entry.isHole {
                if let acceptedAt = entry.acceptedAt {
                    state.times.add(now - acceptedAt)
                } else if let clock {
                    state.times.add(.milliseconds(clock.rawValue - entry.committedAt.rawValue))
                }
            }
        }
    }

    /// The times that deliveries took since the start.
    package var deliveryTimes: DeliveryTimes {
        shards.reduce(into: DeliveryTimes()) { sum, shard in sum.add(shard.state.withLock { $0.times }) }
    }

    /// A device has acknowledged everything up to `seq`.
    func acknowledged(_ user: UserID, _ device: DeviceID, upTo seq: UInt64) {
        record(RecordedStep(.acknowledged, user, device, seq...seq, at: time.uptime()))
    }

    /// A push service has answered a notification.
    ///
    /// - Parameters:
    ///   - seqs: the entries that the notification stands for.
    ///   - scope: the conversation or push among them; see ``PushNotification/Reference``.
    func pushed(_ seqs: ClosedRange<UInt64>, _ user: UserID, _ device: DeviceID, scope: String?, result: String) {
        // Reasons come from elsewhere.
        let detail = String(decoding: result.utf8.prefix(200), as: UTF8.self)
        record(RecordedStep(.pushed, user, device, seqs, at: time.uptime(), detail: detail, scope: scope))
    }

    private func record(_ step: RecordedStep) { shard(of: step.user).state.withLock { $0.steps.append(step) } }

    private func shard(of user: UserID) -> Shard { shards[Int(user.rawValue) % shards.count] }

    // MARK: Searching

    /// The messages with this id or client id, the newest first.
    package func find(_ text: String) -> [MessageTrace] {
        guard !text.isEmpty, text.utf8.count <= MessageService.maxClientIDBytes else { return [] }
        let id = MessageID(text)
        let found = messages.withLock { messages in
            messages.newest(Self.maxFound) { $0.id == id || $0.clientID == text }
        }
        return found.map { MessageTrace(message: $0, steps: steps(of: $0)) }
    }

    private func steps(of message: TracedMessage) -> [TraceStep] {
        var found: [RecordedStep] = []
        for place in message.places {
            let scope = message.scope(for: place.user)
            let own = shard(of: place.user).state.withLock { state in
                state.steps.oldest(Self.maxStepsFound) { $0.isAbout(place, scope: scope) }
            }
            found += Self.withFirstAcknowledgements(own)
        }
        return found.sorted { $0.at < $1.at }.prefix(Self.maxStepsFound).map { step in
            TraceStep(
                kind: step.kind,
                user: step.user,
                device: step.device,
                after: step.at - message.acceptedAt,
                detail: step.detail
            )
        }
    }

    /// Acknowledgements are cumulative: of each device only the first counts, and only after a delivery to it, because
    /// earlier ones may be forgotten.
    private static func withFirstAcknowledgements(_ steps: [RecordedStep]) -> [RecordedStep] {
        var delivered: Set<DeviceID> = []
        var acknowledged: Set<DeviceID> = []
        return steps.filter { step in
            switch step.kind {
            case .delivered:
                delivered.insert(step.device)
                return true
            case .pushed: return true
            case .acknowledged:
                return delivered.contains(step.device) && acknowledged.insert(step.device).inserted
            }
        }
    }
}

/// A step as it is recorded: about entries of an inbox, not about a message.
struct RecordedStep: Sendable {
    let kind: TraceStep.Kind
    let user: UserID
    let device: DeviceID
    let first: UInt64
    let last: UInt64
    let at: Duration
    let detail: String
    /// For a push service's answer: the conversation's name, or the push's id.
    let scope: String?

    init(
        _ kind: TraceStep.Kind,
        _ user: UserID,
        _ device: DeviceID,
        _ seqs: ClosedRange<UInt64>,
        at: Duration,
        detail: String = "",
        scope: String? = nil
    ) {
        self.kind = kind
        self.user = user
        self.device = device
        first = seqs.lowerBound
        last = seqs.upperBound
        self.at = at
        self.detail = detail
        self.scope = scope
    }

    func isAbout(_ place: TracedMessage.Place, scope: String?) -> Bool {
        guard user == place.user, last >= place.seq else { return false }
        switch kind {
        case .acknowledged: return true
        case .delivered: return first <= place.seq
        case .pushed: return first <= place.seq && self.scope == scope
        }
    }
}

/// The last values of a kind. The memory grows with them up to the capacity.
struct TraceRing<Element: Sendable>: Sendable {
    private let capacity: Int
    private var elements: [Element] = []
    /// The place of the next element, once all are taken.
    private var next = 0

    init(capacity: Int) { self.capacity = max(1, capacity) }

    var count: Int { elements.count }

    mutating func append(_ element: Element) {
        guard elements.count >= capacity else { return elements.append(element) }
        elements[next] = element
        next = next + 1 == capacity ? 0 : next + 1
    }

    /// Changes the newest that matches, if there is one.
    mutating func updateNewest(where matches: (Element) -> Bool, _ change: (inout Element) -> Void) {
        for age in elements.indices {
            let place = (next + elements.count - 1 - age) % elements.count
            if matches(elements[place]) { return change(&elements[place]) }
        }
    }

    /// Those that match, oldest first.
    func oldest(_ limit: Int, where matches: (Element) -> Bool) -> [Element] {
        var found: [Element] = []
        for index in elements.indices {
            let element = elements[(next + index) % elements.count]
            guard matches(element) else { continue }
            found.append(element)
            if found.count >= limit { break }
        }
        return found
    }

    /// Those that match, newest first.
    func newest(_ limit: Int, where matches: (Element) -> Bool) -> [Element] {
        var found: [Element] = []
        for index in elements.indices {
            let element = elements[(next + elements.count - 1 - index) % elements.count]
            guard matches(element) else { continue }
            found.append(element)
            if found.count >= limit { break }
        }
        return found
    }
}
