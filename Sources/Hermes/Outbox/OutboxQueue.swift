// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore

/// The waiting messages, and which of them may be sent next. A conversation sends one message at a time, so that a
/// later message never overtakes a waiting one. Does no I/O; time is passed in.
///
///     storing -> queued -> sending -> (gone: sent)
///        ^                    |-> resting -> queued      (not now)
///        '------ retry ------ '-> failed                 (never)
struct OutboxQueue: Sendable {
    enum Phase: Hashable, Sendable {
        /// Not on the disk yet.
        case storing
        case queued
        case sending
        /// The server asked the client to send it later.
        case resting(until: NIODeadline)
        case failed(HermesClientError)
    }

    struct Entry: Sendable {
        var item: OutboxItem
        var phase: Phase
        /// Temporary refusals in a row.
        var refusals = 0
        let bytes: Int

        var status: OutboxEntry.Status {
            switch phase {
            case .storing, .queued, .resting: .queued
            case .sending: .sending
            case .failed(let error): .failed(error)
            }
        }
    }

    private let limits: OutboxLimits
    /// By number, in the order of sending.
    private var entries: [UInt64: Entry] = [:]
    private var numbers: [String: UInt64] = [:]
    private var order: [UInt64] = []
    private var lastNumber: UInt64 = 0
    private var bytes = 0
    /// The account whose messages may be sent; nil if none is logged in.
    private var sender: UInt32?

    /// The waits after temporary refusals without a time of their own, in seconds.
    private static let waits: [Int64] = [1, 2, 5, 10, 30, 60]

    /// Creates a queue that continues an earlier run's.
    init(limits: OutboxLimits, items: [OutboxItem] = []) {
        self.limits = limits
        for item in items.sorted(by: { $0.number < $1.number }) where numbers[item.send.clientID] == nil {
            insert(item, item.failure.map { .failed($0) } ?? .queued)
        }
    }

    /// All entries, in the order of sending.
    var all: [Entry] { order.compactMap { entries[$0] } }

    /// The client ids of all messages that may be under way.
    var clientIDs: Set<String> { Set(numbers.keys) }

    func entry(_ number: UInt64) -> Entry? { entries[number] }

    func entry(clientID: String) -> Entry? { numbers[clientID].flatMap { entries[$0] } }

    /// The time at which a resting message may be sent; nil if none rests.
    var nextDeadline: NIODeadline? {
        guard sender != nil else { return nil }
        return entries.values.compactMap { if case .resting(let until) = $0.phase { until } else { nil } }.min()
    }

    /// The app sends a message, which is to be stored.
    ///
    /// - Throws: HermesClientError `.outboxFull`; `.clientIDConflict` if the same id is used with other content.
    /// - Returns: the entry; the existing one if it is the same message.
    mutating func added(
        _ send: Hermes_V1_Send,
        uid: UInt32,
        date: Int64
    ) throws(HermesClientError) -> (entry: Entry, isNew: Bool) {
        if let old = entry(clientID: send.clientID) {
            guard old.item.send == send, old.item.uid == uid else {
                throw HermesClientError(.clientIDConflict, "\(send.clientID) is another message's client id")
            }
            return (old, false)
        }
        let item = OutboxItem(number: lastNumber &+ 1, uid: uid, send: send, queuedAtMilliseconds: date)
        guard entries.count < limits.maxEntries, bytes + Self.bytes(item) <= limits.maxBytes else {
            let text = "\(entries.count) messages of \(bytes) bytes fill the outbox"
            throw HermesClientError(.outboxFull, text)
        }
        return (insert(item, .storing), true)
    }

    /// The message is on the disk.
    mutating func stored(_ number: UInt64) {
        if case .storing = entries[number]?.phase { entries[number]?.phase = .queued }
    }

    /// This account is logged in: its messages may be sent.
    mutating func started(uid: UInt32) { sender = uid }

    /// There will be no connection before the next login.
    mutating func halted() { sender = nil }

    /// Returns the messages that may be sent now, in order, and marks them as being sent.
    mutating func next(now: NIODeadline) -> [Entry] {
        guard let sender else { return [] }
        var busy = Set<Conversation>()
        var sending = entries.values.count { $0.phase == .sending }
        var next: [Entry] = []
        for number in order where sending < limits.maxSending {
            guard var entry = entries[number], entry.item.uid == sender else { continue }
            let conversation = Conversation(entry.item.send.to)
            switch entry.phase {
            case .failed:
                continue
            case .storing, .sending:
                busy.insert(conversation)
            case .resting(let until) where until > now:
                busy.insert(conversation)
            case .queued, .resting:
                guard busy.insert(conversation).inserted else { continue }
                entry.phase = .sending
                entries[number] = entry
                next.append(entry)
                sending += 1
            }
        }
        return next
    }

    /// Removes a message that was sent, discarded, or could not be stored.
    ///
    /// - Returns: the entry as it was last.
    @discardableResult
    mutating func removed(_ number: UInt64) -> Entry? {
        guard let entry = entries.removeValue(forKey: number) else { return nil }
        numbers[entry.item.send.clientID] = nil
        if let index = order.firstIndex(of: number) { order.remove(at: index) }
        bytes -= entry.bytes
        return entry
    }

    /// The message was not sent because of the connection: it waits for the next one.
    mutating func interrupted(_ number: UInt64) { entries[number]?.phase = .queued }

    /// The server refused the message.
    ///
    /// - Returns: the entry; its phase tells whether it is tried again.
    mutating func refused(_ number: UInt64, _ error: HermesClientError, now: NIODeadline) -> Entry? {
        guard var entry = entries[number] else { return nil }
        if Self.isTemporary(error) {
            let own = Duration.seconds(Self.waits[min(entry.refusals, Self.waits.count - 1)])
            entry.refusals += 1
            let wait = min(error.retryAfter ?? own, .seconds(3600))
            entry.phase = .resting(until: now + TimeAmount(wait))
        } else {
            entry.item.failure = error
            entry.phase = .failed(error)
        }
        entries[number] = entry
        return entry
    }

    /// The app retries a failed message, which is to be stored.
    ///
    /// - Returns: the entry; nil if no such message has failed.
    mutating func retried(clientID: String) -> Entry? {
        guard var entry = entry(clientID: clientID), case .failed = entry.phase else { return nil }
        entry.item.failure = nil
        entry.phase = .storing
        entry.refusals = 0
        entries[entry.item.number] = entry
        return entry
    }

    /// The retry of a failed message could not be stored.
    mutating func failedAgain(_ number: UInt64, _ error: HermesClientError?) {
        guard let error, case .storing = entries[number]?.phase else { return }
        entries[number]?.item.failure = error
        entries[number]?.phase = .failed(error)
    }

    /// Whether a retry may help: the connection was lost, the server is overloaded or failing, or it said when to try
    /// again.
    static func isTemporary(_ error: HermesClientError) -> Bool {
        if error.retryAfter != nil { return true }
        return switch error.code.rawValue {
        case HermesClientError.Code.notEncodable.rawValue: false
        case ..<1000, 1000..<2000, 3000..<4000, 9000...: true
        default: false
        }
    }

    @discardableResult
    private mutating func insert(_ item: OutboxItem, _ phase: Phase) -> Entry {
        let entry = Entry(item: item, phase: phase, bytes: Self.bytes(item))
        entries[item.number] = entry
        numbers[item.send.clientID] = item.number
        order.append(item.number)
        lastNumber = max(lastNumber, item.number)
        bytes += entry.bytes
        return entry
    }

    private static func bytes(_ item: OutboxItem) -> Int { (try? item.record().value?.count) ?? 0 }
}
