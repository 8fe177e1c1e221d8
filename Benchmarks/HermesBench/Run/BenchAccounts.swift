// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Hermes

/// The option that names the file with the accounts of benchmarks.
struct BenchAccountOptions: ParsableArguments {
    @Option(
        name: .customLong("accounts"),
        help: ArgumentHelp("Keep the accounts in this file, and use those in it.", valueName: "file")
    )
    var file: String?
}

/// An account that benchmarks log in to with a token.
struct BenchAccount: Codable, Hashable, Sendable {
    var uid: UInt32
    var name: String
    var device: String
    var token: String
}

/// The accounts of benchmarks. They are kept in a file, because each registration costs the server a password hash.
struct BenchAccounts {
    let file: String?
    let options: BenchOptions
    /// The server's Delimited address. Accounts are registered there, regardless of the measured protocol.
    let registration: ServerAddress

    /// Returns the wanted number of accounts. Registers the missing accounts, and adds them to the file.
    func get(_ count: Int) async throws -> [BenchAccount] {
        var accounts = try read()
        if accounts.count < count {
            let missing = count - accounts.count
            let kept = file == nil ? "; with --accounts FILE they would be kept for the next time" : ""
            options.progress("registering \(missing) accounts, about \(max(1, missing / 15)) s\(kept)")
            let new = try await register(missing)
            accounts += new
            try write(accounts)
        }
        return Array(accounts.prefix(count))
    }

    private func read() throws -> [BenchAccount] {
        guard let file, let data = FileManager.default.contents(atPath: file) else { return [] }
        guard let accounts = try? JSONDecoder().decode([BenchAccount].self, from: data) else {
            throw BenchFailure("--accounts \(file): not a file that a benchmark wrote; remove it or name another")
        }
        return accounts
    }

    private func write(_ accounts: [BenchAccount]) throws {
        guard let file else { return }
        let data = try JSONEncoder().encode(accounts)
        guard FileManager.default.createFile(atPath: file, contents: data, attributes: [.posixPermissions: 0o600])
        else { throw BenchFailure("--accounts \(file): cannot be written") }
    }

    /// Registers accounts with random names, four at a time.
    private func register(_ count: Int) async throws -> [BenchAccount] {
        let run = String(UInt32.random(in: 0...UInt32.max), radix: 36)
        let password = "bench-\(UInt64.random(in: 0...UInt64.max))"
        let registration = registration
        return try await withThrowingTaskGroup(of: BenchAccount.self) { group in
            var started = 0
            func startOne() {
                let name = "bench-\(run)-\(started)"
                started += 1
                group.addTask { try await Self.register(name, password, at: registration) }
            }
            while started < min(4, count) { startOne() }
            var accounts: [BenchAccount] = []
            for try await account in group {
                accounts.append(account)
                if started < count { startOne() }
                if accounts.count.isMultiple(of: 100) { options.progress("\(accounts.count) of \(count) registered") }
            }
            return accounts
        }
    }

    private static func register(
        _ name: String,
        _ password: String,
        at server: ServerAddress
    ) async throws -> BenchAccount {
        var configuration = HermesClient.Configuration(server: server, device: DeviceDescription(id: "bench"))
        configuration.reconnect = .never
        configuration.requestTimeout = .seconds(60)
        let client = try HermesClient(configuration)
        do {
            let session = try await client.logIn(.register(nickName: name, password: password))
            await client.close()
            return BenchAccount(uid: session.uid.rawValue, name: name, device: "bench", token: session.token)
        } catch {
            await client.close()
            if let error = error as? HermesClientError, error.code == .rateLimited {
                throw BenchFailure(
                    "the server takes no more registrations this hour; start it with limits.registrationsPerAddress: 0 and "
                        + "limits.registrationsPerHour: 0"
                )
            }
            throw error
        }
    }
}
