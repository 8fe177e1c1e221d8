// Hermes
// SPDX-License-Identifier: Apache-2.0

import GRDB
import HermesCore
import HermesTestKit
import Testing

@testable import HermesSQLite

@Suite("The identities of push tokens", .inTurns)
struct PushTokenIdentityTests {
    /// The subscription in the form in which a browser writes it.
    private static func subscription(_ endpoint: String) -> String {
        let (key, secret) = ("B" + String(repeating: "A", count: 86), String(repeating: "A", count: 22))
        return #"{"endpoint":"\#(endpoint)","expirationTime":null,"keys":{"p256dh":"\#(key)","auth":"\#(secret)"}}"#
    }

    @Test
    func `the former device of a token is found without a look at all tokens`() async throws {
        let directory = try TemporaryDirectory()
        let plan = try await directory.queryPlan(of: SQLiteStore.PushTokenQuery.takeAway)
        #expect(!plan.isEmpty)
        for step in plan { #expect(step.hasPrefix("SEARCH ") && step.contains("push_token_identity"), "\(step)") }
    }

    @Test
    func `the devices of a user are found without a look at all tokens`() async throws {
        let directory = try TemporaryDirectory()
        let plan = try await directory.queryPlan(of: SQLiteStore.PushTokenQuery.devicesOfUser)
        #expect(!plan.isEmpty)
        for step in plan { #expect(step.hasPrefix("SEARCH ") && step.contains("user=?"), "\(step)") }
    }

    @Test
    func `of a file of the version before, each token belongs to the device that set it last`() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore()
        let world = try await StoreWorld(store: store, people: 6)
        try store.close()
        let (fcm, apns, web) = (PushToken.Service.fcm, PushToken.Service.apns, PushToken.Service.webPush)
        let rows: [(service: PushToken.Service, text: String, setAt: Int64)] = [
            (apns, "00FF", 1), (apns, "00ff", 2), (fcm, "a:b", 4), (fcm, "a:b", 3),
            (web, Self.subscription("https://push.example.org/1"), 1),
            (web, Self.subscription("https://push.example.org/2"), 2),
        ]
        try await DatabaseQueue(path: directory.database).write { db in
            try db.takeBackIdentitiesOfPushTokens()
            try db.execute(sql: "DELETE FROM grdb_migrations WHERE identifier >= '026'; PRAGMA user_version = 25")
            for (index, row) in rows.enumerated() {
                try db.execute(
                    sql: """
                        INSERT INTO push_token (user, device_id, service, token, app_id, set_at, pushed_up_to)
                        VALUES (?, 'phone', ?, ?, ?, ?, 0)
                        """,
                    arguments: [
                        world[index].user.rawValue, row.service.rawValue, row.text, "app\(index)", row.setAt,
                    ]
                )
            }
        }
        let again = try directory.openStore()
        func texts() async throws -> [[String]] {
            var texts: [[String]] = []
            for person in world.people {
                texts.append(try await again.pushTargets(of: person.user).map(\.token.text))
            }
            return texts
        }
        #expect(try await texts() == [[], ["00ff"], ["a:b"], [], [rows[4].text], [rows[5].text]])
        // The present form of stored subscriptions differs from this form.
        let moved = try PushToken(.webPush, text: rows[4].text, appID: "")
        #expect(moved.text != rows[4].text)
        try await again.setPushToken(
            moved,
            of: StoreWorld.phone,
            world[0].user,
            shown: .other,
            now: StoreWorld.now
        )
        #expect(try await texts() == [[moved.text], ["00ff"], ["a:b"], [], [], [rows[5].text]])
        try again.close()
    }
}
