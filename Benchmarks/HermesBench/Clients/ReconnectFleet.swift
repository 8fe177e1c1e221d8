// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import Hermes
import Synchronization

/// A group of SDK clients that is observed during a restart of the server.
///
/// State: the record, in one `Mutex`.
final class ReconnectFleet: Sendable {
    /// The observations of the clients.
    struct Record: Sendable {
        /// The time when the first connection was lost.
        var lostAt: ContinuousClock.Instant?
        var lost = 0
        /// The time of each reconnect, in seconds after the first lost connection.
        var returns: [Double] = []
        /// The accounts that got the message.
        var receivers: Set<UInt32> = []
        var duplicates = 0
        var gaps = 0
        /// The accounts that are not connected, with the reasons.
        var away: [UInt32: String] = [:]

        var back: Int { returns.count }
        var arrived: Int { receivers.count }
        var firstSeconds: Double { returns.min() ?? 0 }
        var lastSeconds: Double { returns.max() ?? 0 }

        /// The largest number of logins in any period of one second.
        var peakPerSecond: Int {
            let sorted = returns.sorted()
            var first = 0
            var peak = 0
            for (index, moment) in sorted.enumerated() {
                while sorted[first] < moment - 1 { first += 1 }
                peak = max(peak, index - first + 1)
            }
            return peak
        }
    }

    private let accounts: [BenchAccount]
    private let clients: [HermesClient]
    private let state = Mutex(Record())
    /// A random text that distinguishes the messages of this run from those of earlier runs.
    private let run = String(UInt64.random(in: 0...UInt64.max), radix: 36)

    var count: Int { clients.count }
    var record: Record { state.withLock { $0 } }

    init(_ accounts: [BenchAccount], server: ServerAddress) throws {
        self.accounts = accounts
        clients = try accounts.map { account in
            var configuration = HermesClient.Configuration(
                server: server,
                device: DeviceDescription(id: account.device)
            )
            configuration.outboxLimits = OutboxLimits(maxEntries: accounts.count, maxBytes: 64 * 1_048_576)
            return try HermesClient(configuration)
        }
    }

    /// Logs all clients in, a few at a time.
    func logIn() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (index, (client, account)) in zip(clients, accounts).enumerated() {
                if index >= 32 { try await group.next() }
                group.addTask { _ = try await client.logIn(.token(account.token)) }
            }
            try await group.waitForAll()
        }
    }

    /// Watches connections and messages until the task is cancelled.
    func watch() async {
        await withTaskGroup(of: Void.self) { group in
            for (client, account) in zip(clients, accounts) {
                group.addTask { await self.watchStates(of: client, account.uid) }
                group.addTask { await self.watchEvents(of: client, account.uid) }
            }
        }
    }

    /// Sends a message from the first client to each other client, through the first client's outbox.
    func send() async throws {
        guard let sender = clients.first else { return }
        for account in accounts.dropFirst() {
            try await sender.send(.text("reconnect \(run)"), to: .user(UserID(rawValue: account.uid)))
        }
    }

    func close() async {
        await withTaskGroup(of: Void.self) { group in
            for client in clients { group.addTask { await client.close() } }
        }
    }

    private func watchStates(of client: HermesClient, _ uid: UInt32) async {
        var isLost = false
        for await connection in client.states {
            let now = ContinuousClock.now
            state.withLock { $0.away[uid] = connection == .live ? nil : "\(connection)" }
            switch connection {
            case .live where isLost:
                isLost = false
                state.withLock { record in
                    let time = now - (record.lostAt ?? now)
                    record.returns.append(time / .seconds(1))
                }
            case .lost, .waiting, .paused, .stopped:
                guard !isLost else { continue }
                isLost = true
                state.withLock { record in
                    record.lost += 1
                    if record.lostAt == nil { record.lostAt = now }
                }
            case .idle, .connecting, .authenticating, .live:
                continue
            }
        }
    }

    private func watchEvents(of client: HermesClient, _ uid: UInt32) async {
        for await event in client.events {
            if let message = event.message, message.text == "reconnect \(run)", !message.isOwn {
                state.withLock { record in
                    if !record.receivers.insert(uid).inserted { record.duplicates += 1 }
                }
            } else if event.gap != nil || event.kind == .inboxReset {
                state.withLock { $0.gaps += 1 }
            }
        }
    }
}
