// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore

/// The queue of waiting messages. It decides which message may be sent next. A conversation sends one message at a
/// time, so that a later message never overtakes an earlier message that still waits. Does no I/O and reads no clock:
/// the caller passes the time.
///
///     storing -> queued -> sending -> (removed)   stored, then sent
///     sending -> queued                           the client stopped before the answer
///     sending -> resting -> sending               refused for now, then sent again
///     resting -> queued                           the client logged in after an error of its own
///     sending -> failed                           refused permanently
///     failed -> storing                           the app tries again
///     storing -> failed                           this retry could not be stored
///
/// A message is removed if the app discards it, or if it is new and cannot be stored.
struct OutboxQueue: Sendable {
    enum Phase: Hashable, Sendable {
        /// The message is not in the store yet.
        case storing
        case queued
        case sending
        /// A temporary error ended the last try; the message is sent again later.
        case resting(until: NIODeadline)
        case failed(HermesClientError)
    }

    struct Entry: Sendable {
        var item: OutboxItem
        var phase: Phase
        /// The number of temporary refusals in a row.
        var refusals = 0
        /// Whether the last temporary error was the client's own. If so, the message need not rest after a login.
        var hadOwnError = false
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
    /// The entries by number. The numbers increase in the order of sending.
    private var entries: [UInt64: Entry] = [:]
    private var numbers: [ExactText: UInt64] = [:]
    private var order: [UInt64] = []
    private var lastNumber: UInt64 = 0
    private var bytes = 0
    /// The account whose messages may be sent; nil if none is logged in.
    private var sender: UInt32?

    /// If temporary refusals name no time, these are the waits, in seconds, before a message is sent again. The last
    /// wait repeats.
    private static let waits: [Int64] = [1, 2, 5, 10, 30, 60]

    /// Creates a queue that continues the queue of an earlier run.
    init(limits: OutboxLimits, items: [OutboxItem] = []) {
        self.limits = limits
        for item in items.sorted(by: { $0.number < $1.number }) where numbers[ExactText(item.send.clientID)] == nil {
            insert(item, item.failure.map { .failed($0) } ?? .queued)
        }
    }

    /// All entries, in the order of sending.
    var all: [Entry] { order.compactMap { entries[$0] } }

    /// The client ids of all messages in the queue.
    var clientIDs: Set<ExactText> { Set(numbers.keys) }

    func entry(_ number: UInt64) -> Entry? { entries[number] }

    func entry(clientID: String) -> Entry? { numbers[ExactText(clientID)].flatMap { entries[$0] } }

    /// The earliest time at which a resting message may be sent again; nil if no message rests or no account is logged
    /// in.
    var nextDeadline: NIODeadline? {
        guard sender != nil else { return nil }
        return entries.values.compactMap { if case .resting(let until) = $0.phase { until } else { nil } }.min()
    }

    /// Adds a message that the app sends. The caller must then store it.
    ///
    /// - Throws: HermesClientError `.outboxFull`; `.clientIDConflict` if the same id is used with other content or by
    ///   another account.
    /// - Returns: the entry: a new one, or the existing entry of the same message.
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
            let text = "the outbox is full: \(entries.count) messages, \(bytes) bytes in all"
            throw HermesClientError(.outboxFull, text)
        }
        return (insert(item, .storing), true)
    }

    /// Notes that the message is in the store.
    mutating func stored(_ number: UInt64) {
        if case .storing = entries[number]?.phase { entries[number]?.phase = .queued }
    }

    /// Allows the messages of this account to be sent, because the account has logged in. Messages whose last try
    /// ended with the client's own error no longer rest. Such an error is, for example, the lack of a connection for a
    /// long time.
    mutating func started(uid: UInt32) {
        sender = uid
        for (number, entry) in entries where entry.hadOwnError {
            guard case .resting = entry.phase else { continue }
            entries[number]?.phase = .queued
            entries[number]?.refusals = 0
        }
    }

    /// Stops sending until the next login.
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

    /// Removes a message that was sent or discarded, or that could not be stored.
    ///
    /// - Returns: the removed entry; nil if there was none.
    @discardableResult
    mutating func removed(_ number: UInt64) -> Entry? {
        guard let entry = entries.removeValue(forKey: number) else { return nil }
        numbers[ExactText(entry.item.send.clientID)] = nil
        if let index = order.firstIndex(of: number) { order.remove(at: index) }
        bytes -= entry.bytes
        return entry
    }

    /// Makes the message wait until the client starts again, because the client stopped before the answer.
    mutating func interrupted(_ number: UInt64) { entries[number]?.phase = .queued }

    /// Notes that the message was refused.
    ///
    /// - Returns: the entry, whose phase shows whether the message is sent again; nil if there is no such message.
    mutating func refused(_ number: UInt64, _ error: HermesClientError, now: NIODeadline) -> Entry? {
        guard var entry = entries[number] else { return nil }
        if Self.isTemporary(error) {
            let own = Duration.seconds(Self.waits[min(entry.refusals, Self.waits.count - 1)])
            entry.refusals += 1
            entry.hadOwnError = error.isOwn && error.retryAfter == nil
            let wait = min(error.retryAfter ?? own, .seconds(3600))
            entry.phase = .resting(until: now + TimeAmount(wait))
        } else {
            entry.item.failure = error
            entry.phase = .failed(error)
        }
        entries[number] = entry
        return entry
    }

    /// Prepares a failed message for another try. The caller must then store the change.
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

    /// Marks a message as failed again, because its retry could not be stored.
    mutating func failedAgain(_ number: UInt64, _ error: HermesClientError?) {
        guard let error, case .storing = entries[number]?.phase else { return }
        entries[number]?.item.failure = error
        entries[number]?.phase = .failed(error)
    }

    /// Whether a retry may help. This is the case if the error is the client's own, for example after the loss of the
    /// connection. It is also the case if the error concerns the login, says that the server is overloaded or failing,
    /// or names a time to wait.
    static func isTemporary(_ error: HermesClientError) -> Bool {
        if error.retryAfter != nil || error.isTroubleOfServer { return true }
        return error.code != .notEncodable && error.code.rawValue < 2000
    }

    @discardableResult
    private mutating func insert(_ item: OutboxItem, _ phase: Phase) -> Entry {
        let entry = Entry(item: item, phase: phase, bytes: Self.bytes(item))
        entries[item.number] = entry
        numbers[ExactText(item.send.clientID)] = item.number
        order.append(item.number)
        lastNumber = max(lastNumber, item.number)
        bytes += entry.bytes
        return entry
    }

    private static func bytes(_ item: OutboxItem) -> Int { (try? item.record().value?.count) ?? 0 }
}
