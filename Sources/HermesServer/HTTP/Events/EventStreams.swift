// Hermes
// SPDX-License-Identifier: Apache-2.0

import HTTPTypes
import HermesCore
import HermesGateways
import Metrics
import Synchronization

/// The open streams of events: enforces their limits, passes them the events of the server, and ends them. Thread-safe.
///
/// While no stream is open, a publication costs nothing here, and an event of the server costs one atomic load.
///
/// State: one `Mutex`; no stream is called under it.
final class EventStreams: Sendable {
    private struct State {
        var open: [ObjectIdentifier: EventStream] = [:]
        var keys = EventKeys()
        var opened = 0
        /// The uptime at which the keys were last read in order to find the revoked ones.
        var examinedAt: Duration?
        var isStopped = false
    }

    let settings: EventSettings
    /// Whether the queue of webhooks looks for messages that nobody has acknowledged.
    let findsUndelivered: Bool
    private let loops: LoopContexts
    private let access: TopicAccess
    private let keys: APIKeyService
    private let events: EventWatch
    private let time: any TimeSource
    private let memory: EventMemory
    private let metrics = EventMetrics()
    private let state = Mutex(State())

    /// - Parameters:
    ///   - findsUndelivered: whether webhooks get `message.undelivered`.
    ///   - maxBytes: the largest total size of the events that wait in all streams together, in bytes.
    init(
        _ settings: EventSettings,
        findsUndelivered: Bool,
        maxBytes: Int,
        messenger: Messenger,
        keys: APIKeyService,
        loops: LoopContexts,
        access: TopicAccess
    ) {
        self.settings = settings
        self.findsUndelivered = findsUndelivered
        self.loops = loops
        self.access = access
        self.keys = keys
        events = messenger.events
        time = messenger.time
        memory = EventMemory(limit: maxBytes)
        metrics.open.record(0)
        events.happened.observe { [weak self] in self?.happened($0) }
        keys.revoked.observe { [weak self] in self?.revoked($0) }
    }

    /// The number of open streams.
    var count: Int { state.withLock { $0.open.count } }

    /// The size of the events that wait for the readers of all streams, in bytes.
    var waitingBytes: Int { memory.used }

    /// Opens a stream. After this returns, the stream gets every event; ``close(_:)`` must follow.
    ///
    /// - Parameter shapes: keeps the shapes of the filters while the stream is open.
    /// - Throws: the reason why the stream cannot be opened.
    func open(
        for key: APIKey,
        topics: [TopicFilter],
        kinds: Set<ServerEvent.Kind>,
        shapes: ShapeLease
    ) async throws -> EventStream {
        let (stream, place) = try admit(key, topics, kinds, shapes: shapes)
        await begin(stream, place)
        do {
            // If the key was revoked before the stream was registered, the revocation has not ended the stream.
            guard try await keys.keys().contains(where: { $0.id == key.id }) else {
                throw HermesError(.invalidToken, "The API key is unknown or revoked.")
            }
        } catch {
            close(stream)
            throw error
        }
        return stream
    }

    /// The key that stands for the console, so that all streams of the console share the limits of one key.
    private static let console = APIKey(id: -1, name: "the console", scopes: [], createdAt: Timestamp(rawValue: 0))

    /// Opens a stream of the publications that match one filter, for the console. Topic rules do not restrict the
    /// stream.
    ///
    /// - Parameter isAllowed: called before each write; once it returns false, the stream ends.
    /// - Throws: the reason why the stream cannot be opened.
    func open(watching topic: TopicFilter, isAllowed: @escaping @Sendable () -> Bool) async throws -> EventStream {
        let (stream, place) = try admit(Self.console, [topic], [], isAllowed)
        await begin(stream, place)
        return stream
    }

    private func begin(_ stream: EventStream, _ place: Int) async {
        let loop = loops.all[place % loops.all.count]
        await withCheckedContinuation { continuation in
            loop.post(
                .run { [access] in
                    stream.begin(EventSubscriber(stream, access: access), on: loop)
                    continuation.resume()
                }
            )
        }
    }

    private func admit(
        _ key: APIKey,
        _ topics: [TopicFilter],
        _ kinds: Set<ServerEvent.Kind>,
        _ isAllowed: (@Sendable () -> Bool)? = nil,
        shapes: ShapeLease? = nil
    ) throws -> (EventStream, Int) {
        let now = time.uptime()
        forgetKeys(before: key, now: now)
        let (stream, place, refusal) = state.withLock { state -> (EventStream?, Int, EventMetrics.Refusal?) in
            guard !state.isStopped else { return (nil, 0, nil) }
            guard state.open.count < settings.maxStreams else { return (nil, 0, .total) }
            guard state.keys.streams(of: key.id) < settings.maxStreamsPerKey else { return (nil, 0, .key) }
            let known = state.keys.allowance(of: key.id)
            let allowance = known ?? EventAllowance(perSecond: settings.eventsPerSecond, now: now)
            state.keys.opened(key.id, allowance)
            let stream = EventStream(
                key,
                topics: topics,
                kinds: kinds,
                settings: settings,
                allowance: allowance,
                memory: memory,
                metrics: metrics,
                time: time,
                isAllowed: isAllowed,
                examineKey: { [weak self] in await self?.endRevoked() },
                shapes: shapes
            )
            state.open[ObjectIdentifier(stream)] = stream
            state.opened &+= 1
            changed(state)
            return (stream, state.opened, nil)
        }
        if let stream { return (stream, place) }
        guard let refusal else {
            throw APIProblem(.serviceUnavailable, .shuttingDown, "The server is stopping.", retryAfter: .seconds(2))
        }
        metrics.refused(refusal)
        switch refusal {
        case .total:
            throw APIProblem(
                .serviceUnavailable,
                .overloaded,
                "There are \(settings.maxStreams) streams of events already (http.events.streams).",
                retryAfter: .seconds(10)
            )
        case .key:
            throw APIProblem(
                .tooManyRequests,
                .rateLimited,
                "This key has \(settings.maxStreamsPerKey) streams of events already (http.events.streamsPerKey).",
                retryAfter: .seconds(10)
            )
        }
    }

    /// If there are very many keys, forgets each key that has no streams and whose allowance is full again.
    private func forgetKeys(before key: APIKey, now: Duration) {
        let full = state.withLock { $0.keys.idle(before: key.id) }.filter { $0.value.isFull(now: now) }
        if !full.isEmpty { state.withLock { $0.keys.forget(full.keys) } }
    }

    /// Forgets a stream, and ends it if it is still open.
    func close(_ stream: EventStream) {
        state.withLock { state in
            guard state.open.removeValue(forKey: ObjectIdentifier(stream)) != nil else { return }
            state.keys.closed(stream.key.id)
            changed(state)
        }
        stream.end(.gone)
    }

    /// Ends all streams, and opens no more.
    func stop() {
        let open = state.withLock { state in
            state.isStopped = true
            return Array(state.open.values)
        }
        for stream in open { stream.end(.serverStopping) }
    }

    /// Records the number of streams and the events that they want. Writes only atomics.
    private func changed(_ state: State) {
        metrics.open.record(state.open.count)
        events.want(state.open.values.reduce(into: []) { $0.formUnion($1.kinds) })
    }

    private func happened(_ event: ServerEvent) {
        let streams = state.withLock { Array($0.open.values) }
        let now = time.now()
        for stream in streams where stream.kinds.contains(event.kind) { stream.take(event, at: now) }
    }

    /// Ends the streams whose keys are gone from the store, because another node has revoked them. Each stream calls
    /// this at its heartbeats, but one read of the store serves all streams.
    private func endRevoked() async {
        let now = time.uptime()
        // The streams are listed before the read, because the read may lack the key of a stream that opens later.
        let streams = state.withLock { state -> [EventStream] in
            if let examinedAt = state.examinedAt, now - examinedAt < settings.heartbeat / 2 { return [] }
            state.examinedAt = now
            return state.open.values.filter { $0.isAllowed == nil }
        }
        // If the store fails, no stream ends, and a later heartbeat reads the keys again.
        guard !streams.isEmpty, let known = try? await keys.keys() else { return }
        let ids = Set(known.map(\.id))
        for stream in streams where !ids.contains(stream.key.id) { stream.end(.keyRevoked) }
    }

    private func revoked(_ name: String) {
        let streams = state.withLock { Array($0.open.values) }
        for stream in streams where stream.key.name == name { stream.end(.keyRevoked) }
    }
}

/// The memory budget that all streams share for events that wait for their readers.
///
/// State: an atomic.
final class EventMemory: Sendable {
    private let limit: Int
    private let held = Atomic(0)

    /// - Parameter limit: the limit in bytes.
    init(limit: Int) { self.limit = max(0, limit) }

    var used: Int { held.load(ordering: .relaxed) }

    /// Takes memory if there is enough, and returns whether there was enough.
    func take(_ bytes: Int) -> Bool {
        guard held.add(bytes, ordering: .relaxed).newValue > limit else { return true }
        giveBack(bytes)
        return false
    }

    func giveBack(_ bytes: Int) { held.subtract(bytes, ordering: .relaxed) }
}

/// The rate of events of one key. When it is used up, no event passes until a tenth of it is available again. So the
/// reader gets a few large counts of dropped events, not many small ones.
///
/// State: one `Mutex`.
final class EventAllowance: Sendable {
    private struct State {
        var bucket: TokenBucket
        var isUsedUp = false
    }

    private let perSecond: Int
    private let state: Mutex<State>

    init(perSecond: Int, now: Duration) {
        self.perSecond = perSecond
        state = Mutex(State(bucket: TokenBucket(burst: perSecond, now: now)))
    }

    /// Whether the whole rate is available, as for a new key.
    func isFull(now: Duration) -> Bool {
        state.withLock { state in
            _ = state.bucket.hasToken(rate: perSecond, burst: perSecond, now: now)
            return state.bucket.holds(1, ofBurst: perSecond)
        }
    }

    /// Whether another event may be written. If so, it counts against the rate.
    func allows(now: Duration) -> Bool {
        state.withLock { state in
            let hasToken = state.bucket.hasToken(rate: perSecond, burst: perSecond, now: now)
            if state.isUsedUp { state.isUsedUp = !state.bucket.holds(0.1, ofBurst: perSecond) }
            guard hasToken, !state.isUsedUp else {
                state.isUsedUp = true
                return false
            }
            state.bucket.take()
            return true
        }
    }
}

/// The metrics of the streams, created once.
struct EventMetrics: Sendable {
    enum Refusal: String, CaseIterable {
        case total
        case key
    }

    let open = Gauge(label: "hermes_event_streams_open")
    let written = Counter(label: "hermes_events_written_total")
    let dropped = Counter(label: "hermes_events_dropped_total")
    private let byRefusal = Dictionary(
        uniqueKeysWithValues: Refusal.allCases.map { refusal in
            let dimensions = [("reason", refusal.rawValue)]
            return (refusal, Counter(label: "hermes_event_streams_refused_total", dimensions: dimensions))
        }
    )

    func refused(_ refusal: Refusal) { byRefusal[refusal]?.increment() }
}
