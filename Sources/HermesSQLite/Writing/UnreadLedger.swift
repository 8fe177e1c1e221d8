// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB
import HermesCore
internal import Logging
import Synchronization

/// The bytes of each account's unread 1:1 messages in the inboxes of others. They are counted when the store is opened,
/// then updated by commits and purges.
///
/// State: a `Mutex` around a table, which is changed after each transaction.
final class UnreadLedger: Sendable {
    private let bytes: Mutex<[UserID: Int]>
    /// The entries in all inboxes when the store was opened.
    let lying: Holding

    /// Reads each entry once, in the order of the table. SQLite would sort all entries to group them by sender.
    static func entriesSQL(_ table: String) -> String { "SELECT user, source, weight FROM \(table)" }

    /// - Parameter damage: gets the entries with an impossible weight, which count as 0 bytes.
    init(_ db: Database, damage: Damage, logger: Logger) throws {
        var count = UnreadCount(damage: damage, logger: logger)
        for table in FreshTables.inbox.both { try count.add(table, in: db) }
        count.reportEnd()
        bytes = Mutex(count.bytes)
        lying = count.lying
    }

    subscript(_ user: UserID) -> Int { bytes.withLock { $0[user] ?? 0 } }

    /// - Parameter changes: the changes by a committed transaction.
    func apply(_ changes: [UserID: Int]) {
        guard !changes.isEmpty else { return }
        bytes.withLock { bytes in
            for (user, change) in changes {
                let now = bytes[user, default: 0] + change
                bytes[user] = now > 0 ? now : nil
            }
        }
    }
}

/// Counts the entries of all inboxes. The count needs memory only for each sender. A long count shows its progress in
/// the log.
private struct UnreadCount {
    let damage: Damage
    let logger: Logger
    private(set) var bytes: [UserID: Int] = [:]
    private(set) var lying = Holding()
    private let began = ContinuousClock.now
    /// The time from ``began`` to the next line in the log.
    private var nextReport = Duration.seconds(1)

    private static let reportInterval = Duration.seconds(5)
    /// The number of entries after which the time is checked.
    private static let rowsPerCheck = 1 << 16
    /// The largest number of senders whose damaged entries are reported.
    private static let maxReported = 10_000

    init(damage: Damage, logger: Logger) {
        self.damage = damage
        self.logger = logger
    }

    mutating func add(_ table: String, in db: Database) throws {
        /// The number of damaged weights by sender; the key 0 stands for entries without a sender.
        var damaged: [Int64: Int] = [:]
        /// The numbers that cannot be senders.
        var strangers: Set<Int64> = []
        try PreparedStatement(db, UnreadLedger.entriesSQL(table)).forEachRow { row in
            let (user, source) = (row.integer(0), row.integer(1))
            let number = source > 0 && source != user ? source : 0
            let weight = row.soundAmount(2)
            if weight == nil, damaged[number] != nil || damaged.count < Self.maxReported {
                damaged[number, default: 0] += 1
            }
            Self.raise(&lying.bytes, by: weight ?? 0)
            lying.entries += 1
            if let sender = UserID(number) {
                Self.raise(&bytes[sender, default: 0], by: weight ?? 0)
            } else if number > 0, strangers.count < Self.maxReported {
                strangers.insert(number)
            }
            if lying.entries.isMultiple(of: Self.rowsPerCheck) { reportProgress() }
        }
        for (sender, count) in damaged.sorted(by: { $0.key < $1.key }) {
            damage.found("\(count) weights in \(table) of sender \(sender)")
        }
        for sender in strangers.sorted() { damage.found("entries in \(table) of sender \(sender)") }
    }

    private mutating func reportProgress() {
        let elapsed = ContinuousClock.now - began
        guard elapsed >= nextReport else { return }
        nextReport = elapsed + Self.reportInterval
        logger.notice("counting the entries of all inboxes", metadata: ["entries": "\(lying.entries)"])
    }

    /// Reports the end of the count, if its progress was reported.
    func reportEnd() {
        guard nextReport > .seconds(1) else { return }
        logger.notice(
            "entries of all inboxes counted",
            metadata: ["entries": "\(lying.entries)", "took": "\(ContinuousClock.now - began)"]
        )
    }

    /// Adds a weight to a sum. The sum stays small enough that it cannot overflow, whatever the rows contain.
    private static func raise(_ sum: inout Int, by weight: Int) {
        sum = min(sum + weight, Int(PreparedStatement.maxSum))
    }
}
