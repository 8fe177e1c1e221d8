// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Remembers the commits, deliveries, acknowledgements and notifications of the last messages and pushes, for the
/// operator. The traces are kept only in memory, and contain no contents of messages.
///
/// A commit takes one lock once for all its messages. A delivery to a connection takes the lock of the user's shard
/// once, even for many entries. An acknowledgement also takes that lock once. Messages and steps are matched only when
/// somebody searches.
///
/// State: a `Mutex` around the messages, and a `Mutex` around the steps and times of each ``Shard``. No mutex is locked
/// while another mutex is locked.
package final class MessageTraces: Sendable {
    /// The maximum number of messages that are remembered.
    package static let maxMessages = 10_000
    /// The maximum number of inbox entries that are remembered for each message. So a message to a large group costs
    /// little.
    package static let maxPlaces = 16
    /// The maximum number of messages that one search finds.
    package static let maxFound = 20
    /// The maximum number of steps of one message that a search finds.
    static let maxStepsFound = 200
    /// The number of shards. The steps of one user are all in the same shard.
    static let shardCount = 8
    /// The maximum number of steps in one shard. A step needs about 100 bytes.
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

    /// Records messages that were committed or refused in one commit.
    func committed(_ news: [TracedMessage]) {
        guard !news.isEmpty else { return }
        messages.withLock { messages in
            for message in news { messages.append(message) }
        }
    }

    /// Records that a push to many accounts was appended to some of their inboxes.
    func fannedOut(_ id: MessageID, _ deliveries: [InboxDelivery]) {
        guard !deliveries.isEmpty else { return }
        messages.withLock { messages in
            messages.updateNewest(where: { $0.id == id && $0.conversation == nil }, { $0.add(deliveries) })
        }
    }

    /// Records that a connection has these entries of its user's inbox in its output.
    ///
    /// - Parameters:
    ///   - entries: the entries in order, without gaps.
    ///   - head: the seq of the newest entry when the connection opened. The entries up to this seq waited for the
    ///     device, so their delivery times are not recorded.
    ///   - gateway: the name of the connection's listener.
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
        // An entry that waited for a slow device was read from the store, so only the time of its commit is known.
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

    /// Records that a device has acknowledged everything up to `seq`.
    func acknowledged(_ user: UserID, _ device: DeviceID, upTo seq: UInt64) {
        record(RecordedStep(.acknowledged, user, device, seq...seq, at: time.uptime()))
    }

    /// Records that a push service has answered a notification.
    ///
    /// - Parameters:
    ///   - seqs: the entries that the notification stands for.
    ///   - scope: the conversation or the push that the notification is about. Entries among `seqs` that belong to
    ///     another conversation or push are ignored.
    func pushed(_ seqs: ClosedRange<UInt64>, _ user: UserID, _ device: DeviceID, scope: String?, result: String) {
        // The text comes from the push service, and may be long.
        let detail = String(decoding: result.utf8.prefix(200), as: UTF8.self)
        record(RecordedStep(.pushed, user, device, seqs, at: time.uptime(), detail: detail, scope: scope))
    }

    private func record(_ step: RecordedStep) { shard(of: step.user).state.withLock { $0.steps.append(step) } }

    private func shard(of user: UserID) -> Shard { shards[Int(user.rawValue) % shards.count] }

    // MARK: Searching

    /// Returns the messages with this id or client id, with the newest message first.
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

    /// Keeps only the first acknowledgement of each device, because acknowledgements are cumulative. An acknowledgement
    /// counts only after a delivery to the device, because earlier steps may have been forgotten.
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

/// A step in its recorded form, which refers to entries of an inbox and not to a message.
struct RecordedStep: Sendable {
    let kind: TraceStep.Kind
    let user: UserID
    let device: DeviceID
    let first: UInt64
    let last: UInt64
    let at: Duration
    let detail: String
    /// For the answer of a push service, the name of the conversation or the id of the push.
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

/// The last elements of a kind. The memory grows with their number, up to the capacity.
struct TraceRing<Element: Sendable>: Sendable {
    private let capacity: Int
    private var elements: [Element] = []
    /// The index at which the next element is written when the ring is full.
    private var next = 0

    init(capacity: Int) { self.capacity = max(1, capacity) }

    var count: Int { elements.count }

    mutating func append(_ element: Element) {
        guard elements.count >= capacity else { return elements.append(element) }
        elements[next] = element
        next = next + 1 == capacity ? 0 : next + 1
    }

    /// Changes the newest element that matches, if there is one.
    mutating func updateNewest(where matches: (Element) -> Bool, _ change: (inout Element) -> Void) {
        for age in elements.indices {
            let place = (next + elements.count - 1 - age) % elements.count
            if matches(elements[place]) { return change(&elements[place]) }
        }
    }

    /// Returns the elements that match, with the oldest element first.
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

    /// Returns the elements that match, with the newest element first.
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
