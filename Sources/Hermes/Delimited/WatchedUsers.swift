// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire

/// The accounts whose presence the client watches. The server forgets them when a connection ends, so the client names
/// them again on each connection.
struct WatchedUsers: Sendable {
    /// The largest number of accounts that a client may watch, and that one request may name.
    static let limit = 1_000

    private var uids: Set<UInt32> = []

    var isEmpty: Bool { uids.isEmpty }
    var count: Int { uids.count }

    /// The accounts in ascending order.
    var sorted: [UInt32] { uids.sorted() }

    /// Applies a request by the server's rules. If the client remembered more accounts than the server allows, the
    /// server would refuse the request of the next connection, and no account would be watched.
    mutating func apply(_ request: Hermes_V1_PresenceRequest) {
        let named = [request.watchUids, request.unwatchUids]
        guard named.allSatisfy({ $0.count <= Self.limit && $0.allSatisfy(Self.isUser) }) else { return }
        uids.subtract(request.unwatchUids)
        for uid in request.watchUids where uids.count < Self.limit { uids.insert(uid) }
    }

    private static func isUser(_ uid: UInt32) -> Bool { (1...UInt32(Int32.max)).contains(uid) }
}
