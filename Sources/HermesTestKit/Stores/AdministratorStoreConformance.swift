// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// The cases for every ``AdministratorStore``.
package enum AdministratorStoreConformance {
    package static let cases = [
        ConformanceCase("Administrators are found by name, in any case, until they are removed") { makeStore in
            let store = try await makeStore(StoreSettings())
            let zoe = try administrator("Zoe", .viewer)
            let ann = try administrator("ann", .administrator)
            try await store.create(zoe)
            try await store.create(ann)
            try expectEqual(try await store.administrators(), [ann, zoe])
            try expectEqual(try await store.administrator(try AdministratorName("ZOE")), zoe)
            let other = try administrator("zoe", .operator)
            try await expectError(.nameTaken) { try await store.create(other) }
            try await store.remove(administrator: zoe.name)
            try expectEqual(try await store.administrators(), [ann])
            try await expectError(.notFound) { try await store.remove(administrator: zoe.name) }
            try await expectError(.notFound) { try await store.change(zoe.name, .role(.viewer)) }
        },
        ConformanceCase("Changes of an administrator are kept, each alone") { makeStore in
            let store = try await makeStore(StoreSettings())
            var ann = try administrator("ann", .viewer)
            try await store.create(ann)
            ann.role = .operator
            ann.password = PasswordHash(phc: "another")
            ann.secondFactor = SecondFactor(secret: [1, 2, 0, 255], recovery: [hash(1), hash(0xAB)])
            ann.lastLoginAt = StoreWorld.later(.seconds(1))
            try await store.change(ann.name, .role(ann.role))
            try await store.change(ann.name, .password(ann.password))
            try await store.change(ann.name, .secondFactor(ann.secondFactor))
            try await store.change(ann.name, .loggedIn(StoreWorld.later(.seconds(1))))
            try expectEqual(try await store.administrator(ann.name), ann)
            try await store.change(ann.name, .secondFactor(nil))
            ann.secondFactor = nil
            try expectEqual(try await store.administrator(ann.name), ann)
        },
        ConformanceCase("A code of an administrator is used once") { makeStore in
            let store = try await makeStore(StoreSettings())
            let ann = try administrator("ann", .viewer)
            try await store.create(ann)
            let factor = SecondFactor(secret: [7], recovery: [hash(1), hash(2)])
            try await store.change(ann.name, .secondFactor(factor))
            try expect(try await store.use(.step(10), of: ann.name))
            try expect(try await !store.use(.step(10), of: ann.name), "the same step")
            try expect(try await !store.use(.step(9), of: ann.name), "an older step")
            try expect(try await store.use(.step(11), of: ann.name))
            try expectEqual(try await store.administrator(ann.name)?.usedStep, 11)
            try expect(try await store.use(.recovery(hash(1)), of: ann.name))
            try expect(try await !store.use(.recovery(hash(1)), of: ann.name), "the same code")
            try expect(try await !store.use(.recovery(hash(3)), of: ann.name), "an unknown code")
            try expectEqual(try await store.administrator(ann.name)?.secondFactor?.recovery, [hash(2)])
            try expect(try await !store.use(.step(99), of: try AdministratorName("nobody")))
        },
        ConformanceCase("The audit log is bounded in number and age; refusals displace refusals alone") { makeStore in
            let store = try await makeStore(StoreSettings())
            let limits = AuditLimits(maxDone: 3, maxRefused: 2, age: .seconds(60))
            for number in 1...5 {
                try await store.record(event("done \(number)"), at: StoreWorld.now, keeping: limits)
                try await store.record(event("no \(number)", isRefused: true), at: StoreWorld.now, keeping: limits)
            }
            let all = try await store.auditLog(before: nil, limit: 100)
            try expectEqual(all.map(\.event.target), ["no 5", "done 5", "no 4", "done 4", "done 3"])
            try expectEqual(all.first?.event, event("no 5", isRefused: true))
            try expectEqual(all.first?.time, StoreWorld.now)
            try expectEqual(try await store.auditLog(before: nil, limit: 2), Array(all.prefix(2)))
            try expectEqual(try await store.auditLog(before: all[1].id, limit: 2), Array(all[2...3]))
            let ofAnyAge = AuditLimits(maxDone: 3, maxRefused: 2, age: nil)
            try await store.record(event("later"), at: StoreWorld.later(.seconds(61)), keeping: ofAnyAge)
            let kept = try await store.auditLog(before: nil, limit: 100)
            try expectEqual(kept.map(\.event.target), ["later", "no 5", "done 5", "no 4", "done 4"])
            try await store.record(event("late"), at: StoreWorld.later(.seconds(61)), keeping: limits)
            try expectEqual(try await store.auditLog(before: nil, limit: 100).map(\.event.target), ["late", "later"])
        },
    ]

    private static func administrator(_ name: String, _ role: AdministratorRole) throws -> Administrator {
        Administrator(
            name: try AdministratorName(name),
            role: role,
            password: PasswordHash(phc: "hash of \(name)"),
            createdAt: StoreWorld.now
        )
    }

    private static func event(_ target: String, isRefused: Bool = false) -> AuditEvent {
        AuditEvent(
            who: "ann",
            address: "::1",
            action: "x",
            target: target,
            result: isRefused ? "no" : "done",
            code: isRefused ? .forbidden : nil,
            isRefused: isRefused
        )
    }

    private static func hash(_ number: UInt8) -> TokenHash {
        TokenHash(bytes: Array(repeating: number, count: 32))
    }
}
