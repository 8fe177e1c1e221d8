// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesGateways
import Hummingbird
import Metrics
import NIOCore
import Synchronization

/// One open stream of events: takes events from event loops and other threads, and writes them to its reader.
/// Thread-safe.
///
/// Events wait unformatted, and only the task of the reader turns them into text, so that event loops need not do it.
/// Payloads are shared with the other receivers.
///
/// State: one `Mutex`; nothing that takes another lock is called under it.
final class EventStream: Sendable {
    /// The part of a stream that its event loop owns.
    struct Link: Sendable {
        let loop: LoopContext
        let subscriber: NIOLoopBound<EventSubscriber>
        let heartbeat: RepeatedTask

        func end() {
            heartbeat.cancel()
            loop.post(.run { [loop, subscriber] in subscriber.value.end(on: loop.topics) })
        }
    }

    private struct State: Sendable {
        var queue: EventQueue
        var link: Link?
        /// The reader, while it waits for something to write.
        var reader: CheckedContinuation<Void, Never>?
    }

    /// The number of bytes that are written at once.
    private static let chunkBytes = 64 << 10

    let key: APIKey
    let topics: [TopicFilter]
    let kinds: Set<ServerEvent.Kind>
    /// For a stream of the console: returns whether the stream may continue; called before each write. Nil for a stream
    /// that was opened with an API key.
    let isAllowed: (@Sendable () -> Bool)?
    /// Ends the stream if its key was revoked on another node; called at each heartbeat.
    private let examineKey: @Sendable () async -> Void
    /// The part of the ``ShapeBudget`` that the filters use, held while the stream exists.
    private let shapes: ShapeLease?
    private let settings: EventSettings
    private let allowance: EventAllowance
    private let memory: EventMemory
    private let metrics: EventMetrics
    private let time: any TimeSource
    private let state: Mutex<State>

    init(
        _ key: APIKey,
        topics: [TopicFilter],
        kinds: Set<ServerEvent.Kind>,
        settings: EventSettings,
        allowance: EventAllowance,
        memory: EventMemory,
        metrics: EventMetrics,
        time: any TimeSource,
        isAllowed: (@Sendable () -> Bool)? = nil,
        examineKey: @escaping @Sendable () async -> Void = {},
        shapes: ShapeLease? = nil
    ) {
        self.isAllowed = isAllowed
        self.examineKey = examineKey
        self.shapes = shapes
        self.key = key
        self.topics = topics
        self.kinds = kinds
        self.settings = settings
        self.allowance = allowance
        self.memory = memory
        self.metrics = metrics
        self.time = time
        state = Mutex(State(queue: EventQueue(maxBytes: settings.maxQueuedBytes)))
    }

    // MARK: Input

    /// Takes a publication; called on the event loop of the stream.
    func take(_ delivery: Delivery) {
        let payload = delivery.publication.payload.readableBytes
        guard payload <= settings.maxPayloadBytes else {
            let topic = delivery.publication.topic
            return add(weight: EventQueue.eventWeight) { .tooLarge(topic, bytes: payload) }
        }
        add(weight: delivery.publication.weight + EventQueue.eventWeight) { .publication(delivery.kept()) }
    }

    func take(_ event: ServerEvent, at now: Timestamp) {
        add(weight: EventQueue.eventWeight) { .server(event, at: now) }
    }

    private func add(weight: Int, _ event: () -> StreamedEvent) {
        guard allowance.allows(now: time.uptime()), memory.take(weight) else {
            state.withLock { $0.queue.drop() }
            metrics.dropped.increment()
            return
        }
        let (isAdded, reader) = state.withLock { state in
            let isAdded = state.queue.add(weight: weight, event)
            return (isAdded, isAdded ? Self.takeReader(&state) : nil)
        }
        if !isAdded {
            memory.giveBack(weight)
            metrics.dropped.increment()
        }
        reader?.resume()
    }

    private func heartbeatDue() {
        let reader = state.withLock { state in
            state.queue.heartbeatDue()
            return Self.takeReader(&state)
        }
        reader?.resume()
    }

    private static func takeReader(_ state: inout State) -> CheckedContinuation<Void, Never>? {
        defer { state.reader = nil }
        return state.reader
    }

    // MARK: Beginning and end

    /// Subscribes to the topics and starts the heartbeats; called on the loop.
    func begin(_ subscriber: EventSubscriber, on loop: LoopContext) {
        subscriber.begin(topics, on: loop.topics)
        let interval = TimeAmount(settings.heartbeat)
        let link = Link(
            loop: loop,
            subscriber: NIOLoopBound(subscriber, eventLoop: loop.eventLoop),
            heartbeat: loop.eventLoop.scheduleRepeatedTask(initialDelay: interval, delay: interval) { [weak self] _ in
                self?.heartbeatDue()
            }
        )
        let isOpen = state.withLock { state in
            guard state.queue.end == nil else { return false }
            state.link = link
            return true
        }
        if !isOpen { link.end() }
    }

    /// Ends the stream. If it has ended already, the first reason stays.
    func end(_ reason: StreamEnd) {
        let (link, reader, freed) = state.withLock { state in
            let before = state.queue.bytes
            state.queue.end(reason)
            defer { state.link = nil }
            return (state.link, Self.takeReader(&state), before - state.queue.bytes)
        }
        memory.giveBack(freed)
        link?.end()
        reader?.resume()
    }

    // MARK: Output

    /// Writes the stream until it ends or its reader has gone.
    @concurrent
    func write(to writer: inout any ResponseBodyWriter) async throws {
        // The time is random, so that the readers of a stopped server connect again at different times.
        let retry = Duration.milliseconds(Int.random(in: 1_000...3_000))
        let kinds = ServerEvent.Kind.allCases.filter(kinds.contains)
        try await writer.write(ByteBuffer(string: EventText.ready(topics: topics, kinds: kinds, retry: retry)))
        while true {
            let batch = await next()
            if batch.isHeartbeatDue, batch.end == nil { await examineKey() }
            try await write(batch, to: &writer)
            guard let end = batch.end else { continue }
            if end != .gone { try await writer.write(ByteBuffer(string: EventText.end(end))) }
            return try await writer.finish(nil)
        }
    }

    /// Waits until there is something to write, and takes it.
    func next() async -> EventQueue.Batch {
        while true {
            if let batch = state.withLock({ $0.queue.take() }) { return batch }
            await withCheckedContinuation { continuation in
                let hasWork = state.withLock { state in
                    if !state.queue.hasWork { state.reader = continuation }
                    return state.queue.hasWork
                }
                if hasWork { continuation.resume() }
            }
        }
    }

    @concurrent
    private func write(_ batch: EventQueue.Batch, to writer: inout any ResponseBodyWriter) async throws {
        var rest = Rest(batch)
        // The memory is given back even if this method throws.
        defer { written(rest.weight) }
        while let piece = nextPiece(of: &rest) {
            try await writer.write(piece.text)
            metrics.written.increment(by: piece.count)
            written(piece.weight)
            rest.weight -= piece.weight
        }
    }

    /// The part of a batch that is not written yet.
    struct Rest {
        fileprivate(set) var events: ArraySlice<(event: StreamedEvent, weight: Int)>
        fileprivate var isHeartbeatDue: Bool
        fileprivate var weight: Int

        init(_ batch: EventQueue.Batch) {
            events = batch.events[...]
            isHeartbeatDue = batch.isHeartbeatDue
            weight = batch.events.reduce(0) { $0 + $1.weight }
        }
    }

    /// The part of a batch that is written at once.
    struct Piece {
        fileprivate(set) var text = ByteBuffer()
        /// The number of events in the text.
        fileprivate var count = 0
        fileprivate var weight = 0
    }

    /// Returns the next piece of a batch; nil if nothing is left, or if the reader may get nothing more.
    func nextPiece(of rest: inout Rest) -> Piece? {
        var piece = Piece()
        if rest.isHeartbeatDue { piece.text.writeString(EventText.heartbeat) }
        rest.isHeartbeatDue = false
        while piece.text.readableBytes < Self.chunkBytes, let (event, weight) = rest.events.popFirst() {
            let isWritten = EventText.write(event, now: time.now(), into: &piece.text, readsRooms: isAllowed != nil)
            if isWritten, weight > 0 { piece.count += 1 }
            piece.weight += weight
        }
        return piece.text.readableBytes > 0 && mayWrite() ? piece : nil
    }

    /// Whether the reader may get the events that wait. If not, ends the stream.
    private func mayWrite() -> Bool {
        guard isAllowed?() ?? true else {
            end(.keyRevoked)
            return false
        }
        return state.withLock { $0.queue.end?.deliversRest ?? true }
    }

    private func written(_ weight: Int) {
        state.withLock { $0.queue.written(weight) }
        memory.giveBack(weight)
    }
}

/// The subscriptions of a stream. Owner: the event loop of its shard.
final class EventSubscriber: TopicSubscriber {
    private let stream: EventStream
    private let identity: ClientIdentity
    private let access: TopicAccess
    private var rules = ClientAccess()
    private var subscriptions: [TopicSubscription] = []

    init(_ stream: EventStream, access: TopicAccess) {
        self.stream = stream
        self.access = access
        identity = ClientIdentity(apiKey: stream.key.name)
    }

    fileprivate func begin(_ filters: [TopicFilter], on topics: TopicShard) {
        let options = SubscriptionOptions(qos: .exactlyOnce, retainAsPublished: true, isObserver: true)
        subscriptions = filters.map { topics.subscribe(self, to: $0, options: options) }
    }

    fileprivate func end(on topics: TopicShard) {
        for subscription in subscriptions { topics.unsubscribe(subscription) }
        subscriptions = []
    }

    func deliver(_ delivery: Delivery, for subscription: TopicSubscription) {
        // Rules may have changed, and a filter may match more than the key may read.
        guard stream.isAllowed != nil || rules.allows(.subscribe, delivery.publication.topic, identity, by: access)
        else { return }
        stream.take(delivery)
    }
}

@available(*, unavailable)
extension EventSubscriber: Sendable {}
