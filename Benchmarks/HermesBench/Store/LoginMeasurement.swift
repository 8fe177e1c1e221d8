// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesCore
import HermesSQLite
import Logging

/// Measures logins by token on the embedded store, without a network, for `hermes-bench logins`.
struct LoginMeasurement: Sendable {
    /// The number of accounts, each with one device.
    var accounts: Int
    /// The number of logins of known devices.
    var logins: Int
    /// The number of logins that run at once.
    var atOnce: Int
    var durability: SQLiteStore.Durability

    private struct Person: Sendable {
        let name: String
        let token: String
    }

    /// Measures in a new directory inside `directory`, and removes the new directory at the end.
    ///
    /// - Returns: a line for each step.
    func run(in directory: String) async throws -> String {
        let base = directory + "/hermes-bench-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: base) }
        let store = try SQLiteStore.open(
            directory: base,
            durability: durability,
            logger: Logger(label: "bench") { _ in SwiftLogNoOpLogHandler() }
        )
        let messenger = Messenger(
            accountStore: store,
            messageStore: store,
            socialStore: store,
            sessionStore: store,
            pushTokenStore: store
        )
        let people = try await makePeople(in: store)
        let service = messenger.accounts
        let device = try Self.device("phone")
        var lines: [String] = []
        let known = try await measure(logins) { index in
            let person = people[index &* 7_919 % people.count]
            return try await service.logIn(.token(person.token), device: device, address: "192.0.2.1")
        }
        lines.append(line("token logins of known devices", known))
        let atOnce = min(6_000, logins)
        let burst = try await measure(atOnce, atOnce: atOnce) { index in
            let person = people[index &* 104_729 % people.count]
            return try await service.logIn(.token(person.token), device: device, address: "192.0.2.2")
        }
        lines.append(line("token logins, \(atOnce) at once", burst))
        let new = try Self.device("tablet")
        let registered = try await measure(people.count) { index in
            try await service.logIn(.tokenOfAnyDevice(people[index].token), device: new, address: "192.0.2.1")
        }
        lines.append(line("token logins of new devices", registered))
        let watch = ContinuousClock.now
        await service.writeTraces(isLast: true)
        lines.append("the traces of the logins were written in \(milliseconds(.now - watch)) ms")
        await messenger.shutdown()
        try store.close()
        return lines.joined(separator: "\n")
    }

    private static func device(_ id: String) throws -> DeviceDescription {
        guard let id = DeviceID(id) else { throw HermesError(.internalError, "no device id") }
        return DeviceDescription(id: id, name: "bench")
    }

    private func makePeople(in store: SQLiteStore) async throws -> [Person] {
        let now = SystemTime().now().advanced(by: .seconds(-3600))
        var people: [Person] = []
        var openings: [WriteOperation] = []
        for number in 0..<accounts {
            let name = "bench-\(number)"
            let new = NewAccount(nickName: try NickName(name), password: PasswordHash(phc: ""))
            let account = try await store.create(new, now: now)
            let token = AccessToken()
            let device = try Self.device("phone")
            openings.append(.openDevice(DeviceOpening(user: account.id, device: device, token: token.hash)))
            people.append(Person(name: name, token: token.text))
        }
        while !openings.isEmpty {
            _ = try store.commit(Array(openings.suffix(1000)), now: now)
            openings.removeLast(min(1000, openings.count))
        }
        return people
    }

    /// Measures `count` calls: the time of each call, and the total time, in seconds.
    private func measure(
        _ count: Int,
        atOnce: Int? = nil,
        _ work: @escaping @Sendable (Int) async throws -> Login
    ) async throws -> (each: [Double], total: Double) {
        let began = ContinuousClock.now
        let width = min(count, atOnce ?? self.atOnce)
        let each = try await withThrowingTaskGroup(of: [Double].self) { group in
            for first in 0..<width {
                group.addTask {
                    var times: [Double] = []
                    for index in stride(from: first, to: count, by: width) {
                        let start = ContinuousClock.now
                        _ = try await work(index)
                        times.append((.now - start) / .seconds(1))
                    }
                    return times
                }
            }
            return try await group.reduce(into: [Double]()) { $0 += $1 }
        }
        return (each, (.now - began) / .seconds(1))
    }

    private func line(_ name: String, _ measured: (each: [Double], total: Double)) -> String {
        let sorted = measured.each.sorted()
        let middle = milliseconds(.seconds(sorted[sorted.count / 2]))
        let late = milliseconds(.seconds(sorted[sorted.count * 99 / 100]))
        return "\(name): \(Int(Double(sorted.count) / measured.total))/s, median \(middle) ms, p99 \(late) ms"
    }

    private func milliseconds(_ duration: Duration) -> Double { (duration / .milliseconds(1) * 100).rounded() / 100 }
}
