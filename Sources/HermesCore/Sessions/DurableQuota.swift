// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Counts the durable sessions and their filters, in total and by owner, and decides whether there is room for more.
/// This type does no I/O. ``DurableState`` owns it.
///
/// A filter counts by its size (``units(of:)``), so a limit on the number of filters also limits their memory.
struct DurableQuota: Sendable {
    private var sessionShares: OwnerShares
    private var filterShares: OwnerShares
    private(set) var refusedSessions: UInt64 = 0
    private(set) var refusedFilters: UInt64 = 0

    init(_ settings: DurableSettings) {
        sessionShares = OwnerShares(entries: settings.sessions)
        filterShares = OwnerShares(entries: settings.filters)
    }

    var sessions: Int { sessionShares.tally.total.entries }
    var filters: Int { filterShares.tally.total.entries }

    /// Counts one more session of an owner. If there is no room for it, returns the error instead.
    mutating func takeSession(of owner: CommitSource) -> HermesError? {
        guard sessionShares.take(Holding(entries: 1), of: owner) else {
            refusedSessions += 1
            return Self.tooManySessions
        }
        return nil
    }

    /// Counts more filters of an owner. If there is no room for all of them, returns the error instead.
    ///
    /// - Parameter count: the sum of the filters' ``units(of:)``.
    mutating func takeFilters(_ count: Int, of owner: CommitSource) -> HermesError? {
        guard count > 0 else { return nil }
        guard filterShares.take(Holding(entries: count), of: owner) else {
            refusedFilters += UInt64(count)
            return Self.tooManyFilters
        }
        return nil
    }

    /// Returns the number of units that a filter counts as. A filter counts as one unit for each KiB, or part of a KiB,
    /// of the memory that it uses while the session is kept. A shared subscription counts as ``unitsPerShare`` more
    /// units, because it causes a separate delivery. All ordinary filters of a session that match a topic together
    /// cause only one delivery.
    static func units(of filter: String) -> Int {
        var bytes = 0
        var levels = 1
        for byte in filter.utf8 {
            bytes &+= 1
            if byte == UInt8(ascii: "/") { levels &+= 1 }
        }
        let share = SharedFilter.isShared(filter) ? unitsPerShare : 0
        return share + (fixedBytes + copies * bytes + levels * bytesPerLevel + unitBytes - 1) / unitBytes
    }

    static let unitsPerShare = 39

    /// The bytes of one unit. One unit is enough for a filter of 60 bytes with 8 levels.
    private static let unitBytes = 1_024
    private static let fixedBytes = 384
    /// The number of copies of a filter's text: one in the list of the session, and one in the index.
    private static let copies = 2
    private static let bytesPerLevel = 64

    /// Adds to the counts; negative numbers are subtracted.
    mutating func add(sessions: Int = 0, filters: Int = 0, of owner: CommitSource) {
        if sessions != 0 { sessionShares.add(Holding(entries: sessions), of: owner) }
        if filters != 0 { filterShares.add(Holding(entries: filters), of: owner) }
    }

    private static let tooManySessions = HermesError(
        .quotaExceeded,
        "Your account, your address or the server has reached its limit of kept sessions (mqtt.sessions.max…). "
            + "Connect without a kept session, or end old sessions."
    )
    static let tooManyFilters = HermesError(
        .quotaExceeded,
        "The kept sessions of your account, your address or the server have reached their limit of subscriptions "
            + "(mqtt.sessions.maxSubscriptions…; a long filter counts for several). Unsubscribe from some."
    )
}
