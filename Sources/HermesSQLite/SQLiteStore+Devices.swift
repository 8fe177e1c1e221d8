// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
package import HermesCore
import Synchronization

extension SQLiteStore {
    package func open(_ opening: DeviceOpening, now: Timestamp) async throws(HermesError) -> Device {
        switch try await commitAlone(.openDevice(opening), now: now) {
        case .deviceOpened(let device): return device
        case .refused(let error): throw error
        default: throw HermesError(.internalError, "the store answered another operation")
        }
    }

    package func devices(containing text: String, limit: Int) async throws(HermesError) -> [OwnedDevice] {
        try await read { [damage] db in
            try DeviceReader(db: db).devices(containing: text, limit: limit, skipping: damage)
        }
    }

    package func devices(of user: UserID) async throws(HermesError) -> [Device] {
        try await read { [damage] db in try DeviceReader(db: db).devices(of: user, skipping: damage) }
    }

    package func tokens(of user: UserID) async throws(HermesError) -> [DeviceToken] {
        try await read { [damage] db in try DeviceReader(db: db).tokens(of: user, skipping: damage) }
    }

    package func standing(
        _ key: LoginKey,
        device: DeviceID?,
        address: String?
    ) async throws(HermesError) -> LoginStanding? {
        try await readInbox(isShared: true) { [epoch, damage] db -> LoginStanding? in
            let reader = DeviceReader(db: db)
            var owner: TokenOwner?
            let account: AccountKey
            switch key {
            case .account(let key):
                account = key
            case .token(let token):
                guard let found = try reader.owner(of: token) else { return nil }
                owner = found
                account = .id(found.user)
            }
            guard let stored = try reader.account(account) else { return nil }
            let user = stored.account.id
            return LoginStanding(
                stored: stored,
                owner: owner,
                device: try (device ?? owner?.device).flatMap { try reader.device($0, of: user) },
                networkSeenAt: try reader.seenAt(NetworkMark(of: user, at: address), of: user),
                position: try InboxReader(db: db, epoch: epoch, damage: damage).position(of: user)
            )
        }
    }

    package func note(_ traces: [LoginTrace]) async throws(HermesError) {
        try await write { (db, _) in
            for trace in traces {
                switch trace {
                case .device(let device, let user, let time): try Self.note(device, of: user, at: time, in: db)
                case .network(let network, let user, let time): try Self.note(network, of: user, at: time, in: db)
                }
            }
        }
    }

    private static func note(
        _ device: DeviceDescription,
        of user: UserID,
        at time: Timestamp,
        in db: Database
    ) throws {
        let update = try PreparedStatement(
            db,
            """
            UPDATE device SET name = ?, platform = ?, app_version = ?, last_seen_at = max(last_seen_at, ?)
            WHERE user = ? AND device_id = ?
            """
        )
        update.bind(time, at: 4)
        update.bind(user, at: 5)
        try update.bind(device.name, at: 1) {
            try update.bind(device.platform, at: 2) {
                try update.bind(device.appVersion, at: 3) {
                    try update.bind(device.id.rawValue, at: 6) { try update.run() }
                }
            }
        }
    }

    private static func note(_ network: NetworkMark, of user: UserID, at time: Timestamp, in db: Database) throws {
        let upsert = try PreparedStatement(
            db,
            """
            INSERT INTO known_network (user, network, seen_at) SELECT ?1, ?2, ?3
            WHERE EXISTS (SELECT 1 FROM account WHERE id = ?1 AND is_disabled <> \(AccountRow.leaving))
            ON CONFLICT (user, network) DO UPDATE SET seen_at = max(seen_at, excluded.seen_at)
            """
        )
        upsert.bind(user, at: 1)
        upsert.bind(network.rawValue, at: 2)
        upsert.bind(time, at: 3)
        try upsert.run()
        let trim = try PreparedStatement(
            db,
            """
            DELETE FROM known_network WHERE user = ?1 AND (seen_at < ?2 OR network IN (
                SELECT network FROM known_network WHERE user = ?1 ORDER BY seen_at DESC, network LIMIT -1 OFFSET ?3))
            """
        )
        trim.bind(user, at: 1)
        trim.bind(time.advanced(by: .zero - StoreSettings.networkPeriod), at: 2)
        trim.bind(Int64(StoreSettings.maxNetworksPerAccount), at: 3)
        try trim.run()
    }

    package func revoke(_ scope: RevocationScope, now: Timestamp) async throws(HermesError) {
        try await write { [self] (db, users) in
            try Self.revoke(scope, in: db, changing: &users)
            try keepInboxes(of: users, after: db)
        }
    }

    /// After a removal of devices has committed, caches the inboxes of these users again. The removal changes no entry,
    /// so the entries need not be counted again.
    private func keepInboxes(of users: [UserID], after db: Database) throws {
        let select = try PreparedStatement(db, "SELECT acknowledged FROM inbox_head WHERE user = ?")
        for user in users {
            guard var inbox = cache.withLock({ $0.inboxes[user] }) else { continue }
            select.bind(user, at: 1)
            let found = try damage.skipping("inbox of user \(user.rawValue)") {
                try select.first { try $0.sequence(0) }
            }
            // An inbox whose row is damaged is not cached again.
            guard let acknowledged = found.flatMap({ $0 }) else { continue }
            inbox.acknowledged = acknowledged
            // This runs on the writer's queue, after ``write(_:)`` has made the cache forget the inbox.
            db.afterNextTransaction { [self, inbox] _ in cache.withLock { $0.keep(inbox, of: user) } }
        }
    }

    /// - Parameter users: gets the users whose devices change.
    static func revoke(_ scope: RevocationScope, in db: Database, changing users: inout [UserID]) throws {
        switch scope {
        case .token(let token):
            try db.execute(
                sql: """
                    DELETE FROM push_token WHERE (user, device_id) IN (SELECT user, device_id FROM token WHERE hash = ?)
                    """,
                arguments: [blob(token)]
            )
            try db.execute(sql: "DELETE FROM token WHERE hash = ?", arguments: [blob(token)])
        case .allTokens(let user, let kept):
            try db.execute(
                sql: """
                    DELETE FROM push_token WHERE user = ?1
                        AND device_id IS NOT (SELECT device_id FROM token WHERE hash = ?2 AND user = ?1)
                    """,
                arguments: [user.rawValue, kept.map { blob($0) }]
            )
            try db.execute(
                sql: "DELETE FROM token WHERE user = ? AND hash IS NOT ?",
                arguments: [user.rawValue, kept.map { blob($0) }]
            )
        case .pushToken(let device, let user):
            try db.execute(
                sql: "DELETE FROM push_token WHERE user = ? AND device_id = ?",
                arguments: [user.rawValue, device.rawValue]
            )
        case .device(let device, let user):
            users.append(user)
            for table in ["token", "push_token", "device"] {
                try db.execute(
                    sql: "DELETE FROM \(table) WHERE user = ? AND device_id = ?",
                    arguments: [user.rawValue, device.rawValue]
                )
            }
            try updateAcknowledged(db, of: user)
        }
    }

    static func blob(_ token: TokenHash) -> Data { Data(token.bytes) }

    private static func updateAcknowledged(_ db: Database, of user: UserID) throws {
        try db.execute(
            sql: """
                UPDATE inbox_head SET acknowledged = coalesce(
                    (SELECT iif(max(proof) > \(DeviceProof.claim.rawValue), min(cursor), 0) FROM device
                        WHERE device.user = ?), 0)
                WHERE user = ?
                """,
            arguments: [user.rawValue, user.rawValue]
        )
    }
}
