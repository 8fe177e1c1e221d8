// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import Hermes
import HermesCore
import HermesServer
import HermesTestKit
import NIOCore
import NIOPosix
import Testing

@Suite(.inTurns) struct AdministrationTests {
    /// Sends the same requests with and without a server that uses the directory.
    @Test func `accounts are managed whether a server runs or not`() async throws {
        try await withServer(store: .sqlite) { server in
            try await manage(server.dataDirectory, prefix: "online")
            let users = try await server.messenger().accounts.accounts(after: nil, limit: 10)
            #expect(users.map(\.nickName.rawValue) == ["online-anna"])
        }
        let directory = NSTemporaryDirectory() + "/h-\(UUID().uuidString.prefix(8))"
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        try await manage(directory, prefix: "offline")
    }

    private func manage(_ directory: String, prefix: String) async throws {
        let name = "\(prefix)-anna"
        let added = try await administer(.addUser(nickName: name, password: "secret12"), directory)
        guard case .users(let users) = added else {
            Issue.record("\(added)")
            return
        }
        #expect(users.map(\.nickName) == [name])
        guard case .failed(1006, _) = try await administer(.addUser(nickName: name, password: "secret12"), directory)
        else {
            Issue.record("a name was given twice")
            return
        }
        #expect(try await administer(.setDisabled(nickName: name, isDisabled: true), directory) == .done)
        let list = try await administer(.listUsers(after: 0), directory)
        guard case .users(let listed) = list else {
            Issue.record("\(list)")
            return
        }
        #expect(listed.map(\.isDisabled) == [true])
        #expect(try await administer(.setPassword(nickName: name, password: "other secret"), directory) == .done)
        #expect(try await administer(.listDevices(nickName: name), directory) == .devices([]))
        guard case .failed(2002, _) = try await administer(.removeDevice(nickName: name, device: "x"), directory) else {
            Issue.record("a device was removed that is not there")
            return
        }
        guard case .failed(2002, _) = try await administer(.listDevices(nickName: "nobody"), directory) else {
            Issue.record("there is somebody called nobody")
            return
        }
        let other = "\(prefix)-ben"
        guard case .users = try await administer(.addUser(nickName: other, password: "secret12"), directory) else {
            Issue.record("no second account")
            return
        }
        #expect(try await administer(.deleteUser(nickName: other), directory) == .done)
        guard case .failed(2002, _) = try await administer(.deleteUser(nickName: other), directory) else {
            Issue.record("deleted twice")
            return
        }
        let file = directory + "/\(prefix).backup"
        guard case .backedUp(1?, let bytes) = try await administer(.backup(path: file), directory) else {
            Issue.record("no backup with one account")
            return
        }
        let attributes = try FileManager.default.attributesOfItem(atPath: file)
        #expect((attributes[.size] as? NSNumber)?.int64Value == bytes)
    }

    /// A command without a server uses the data that a server would have in memory.
    @Test
    func `a deletion without a server hands over shared messages, and clears what is retained below the name`()
        async throws
    {
        let directory = NSTemporaryDirectory() + "/h-\(UUID().uuidString.prefix(8))"
        defer { try? FileManager.default.removeItem(atPath: directory) }
        func here(_ settings: inout ServerSettings) { settings.data.directory = directory }
        try await withServer(store: .sqlite, configure: here) { server in
            for name in ["ann", "bob"] {
                _ = try await server.messenger().accounts.createAccount(nickName: name, password: "secret1")
                let member = try server.mqtt(as: name, id: "member", keeps: true)
                _ = try await member.connect()
                _ = try await member.subscribe(to: "$share/g/jobs", qos: .atLeastOnce)
                await member.close()
            }
            while try server.messenger().durable.statistics.online > 0 {
                try Task.checkCancellation()
                await Task.yield()
            }
            let backEnd = try server.mqtt(as: "ann", id: "back end")
            _ = try await backEnd.connect()
            for number in 0..<20 { try await backEnd.publish("\(number)", to: "jobs", qos: .atLeastOnce) }
            try await backEnd.publish("secret", to: "user/ann/diary", qos: .atLeastOnce, retain: true)
            await backEnd.close()
        }
        #expect(try await administer(.deleteUser(nickName: "ann"), directory) == .done)
        try await withServer(store: .sqlite, configure: here) { server in
            let messenger = try server.messenger()
            #expect(messenger.retained.statistics.count == 0)
            _ = try await messenger.accounts.createAccount(nickName: "ann", password: "secret1")
            let member = try server.mqtt(as: "bob", id: "member", keeps: true)
            let messages = member.messages
            _ = try await member.connect()
            var jobs: Set<String> = []
            for await message in messages {
                jobs.insert(message.text ?? "")
                if jobs.count == 20 { break }
            }
            #expect(jobs == Set((0..<20).map(String.init)))
            await member.close()
        }
    }

    @Test func `administrators are managed whether a server runs or not`() async throws {
        try await withServer(store: .sqlite) { server in try await manageAdministrators(server.dataDirectory) }
        let directory = NSTemporaryDirectory() + "/h-\(UUID().uuidString.prefix(8))"
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        try await manageAdministrators(directory)
    }

    private func manageAdministrators(_ directory: String) async throws {
        func ask(_ request: ControlRequest) async throws -> ControlResponse { try await administer(request, directory) }
        let request = ControlRequest.addAdministrator(name: "Olga", role: "viewer", password: "correct horse")
        guard case .administrators(let made) = try await ask(request) else {
            Issue.record("no administrator")
            return
        }
        #expect(made.map(\.name) == ["olga"] && made.map(\.role) == ["viewer"])
        for bad in ["root", "", "Viewer"] {
            guard case .failed(2001, _) = try await ask(.setAdministratorRole(name: "olga", role: bad)) else {
                Issue.record("\(bad) is a role")
                return
            }
        }
        #expect(try await ask(.setAdministratorRole(name: "olga", role: "operator")) == .done)
        #expect(try await ask(.setAdministratorPassword(name: "olga", password: "another secret")) == .done)
        guard case .secondFactor(_, let secret, let recovery) = try await ask(.newSecondFactor(name: "olga")) else {
            Issue.record("no second factor")
            return
        }
        #expect(secret.count == 32 && Set(recovery).count == 8)
        let list = try await ask(.listAdministrators)
        guard case .administrators(let all) = list else {
            Issue.record("\(list)")
            return
        }
        #expect(all.map(\.role) == ["operator"] && all.map(\.hasSecondFactor) == [true])
        #expect(try await ask(.removeSecondFactor(name: "olga")) == .done)
        #expect(try await ask(.removeAdministrator(name: "olga")) == .done)
        guard case .failed(2002, _) = try await ask(.removeAdministrator(name: "olga")) else {
            Issue.record("removed twice")
            return
        }
        let entries = try await ask(.auditLog(before: nil, limit: 100))
        guard case .auditEntries(let log) = entries else {
            Issue.record("\(entries)")
            return
        }
        #expect(
            log.map(\.action) == [
                "removeAdministrator", "removeSecondFactor", "newSecondFactor", "setAdministratorPassword",
                "setAdministratorRole", "addAdministrator",
            ]
        )
        #expect(log.allSatisfy { $0.who == "command line" && !"\($0)".contains("horse") })
    }

    @Test func `the socket is for the owner alone`() async throws {
        try await withServer(store: .sqlite) { server in
            let path = server.dataDirectory + "/control.sock"
            let attributes = try FileManager.default.attributesOfItem(atPath: path)
            #expect(attributes[.posixPermissions] as? Int == 0o600)
        }
    }

    @Test func `a password change ends sessions`() async throws {
        try await withServer(store: .sqlite) { server in
            let accounts = try server.messenger().accounts
            let device = try #require(DeviceID("phone"))
            _ = try await accounts.register(
                nickName: "ben",
                password: "secret12",
                device: DeviceDescription(id: device),
                address: nil
            )
            let list = try await administer(.listDevices(nickName: "ben"), server.dataDirectory)
            guard case .devices(let devices) = list else {
                Issue.record("\(list)")
                return
            }
            #expect(devices.map(\.id) == ["phone"])
            _ = try await administer(.setPassword(nickName: "ben", password: "new secret"), server.dataDirectory)
            await #expect(throws: HermesError.self) {
                try await accounts.logIn(
                    .password(nickName: "ben", password: "secret12"),
                    device: DeviceDescription(id: device),
                    address: nil
                )
            }
        }
    }
}

extension AdministrationTests {
    @Test func `keys of the API are made listed and revoked`() async throws {
        try await withServer(store: .sqlite) { server in
            let directory = server.dataDirectory
            let made = try await administer(.createAPIKey(name: "shop", scopes: "push,users:read"), directory)
            guard case .apiKeyCreated(let secret) = made else {
                Issue.record("\(made)")
                return
            }
            #expect(secret.hasPrefix("hk_"))
            #expect(secret.utf8.count == 46)
            let list = try await administer(.listAPIKeys, directory)
            guard case .apiKeys(let keys) = list else {
                Issue.record("\(list)")
                return
            }
            #expect(keys.map(\.scopes) == ["push,users:read"])
            #expect(keys.map(\.lastUsedAt) == [nil])
            for (name, scopes, code) in [("shop", "push", 1006), ("x", "pusch", 2001), ("a b", "push", 2001)] {
                guard
                    case .failed(let found, _) = try await administer(
                        .createAPIKey(name: name, scopes: scopes),
                        directory
                    )
                else {
                    Issue.record("\(name) was made")
                    return
                }
                #expect(found == UInt32(code))
            }
            #expect(try await administer(.revokeAPIKey(name: "shop"), directory) == .done)
            #expect(try await administer(.listAPIKeys, directory) == .apiKeys([]))
        }
    }

    /// A connection that is being accepted when the server stops must not end the process.
    @Test(.timeLimit(.minutes(1))) func `who connects while the server stops is dropped`() async throws {
        for _ in 0..<5 {
            let coming = try await withServer(store: .sqlite) { server in
                let path = server.dataDirectory + "/control.sock"
                let bootstrap = ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                return (0..<300).map { _ in bootstrap.connect(unixDomainSocketPath: path) }
            }
            for connection in coming {
                // The connection is refused, or closed by the server.
                if let channel = try? await connection.get() { try await channel.closeFuture.get() }
            }
        }
    }

    @Test func `requests that are none are told so or closed`() async throws {
        try await withServer(store: .sqlite) { server in
            let path = server.dataDirectory + "/control.sock"
            func ask(_ bytes: ByteBuffer) async throws -> String {
                let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                    .connect(unixDomainSocketPath: path) { channel in
                        channel.eventLoop.makeCompletedFuture {
                            try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
                        }
                    }
                return try await channel.executeThenClose { inbound, outbound in
                    var text = ""
                    do {
                        try await outbound.write(bytes)
                        for try await bytes in inbound { text += String(buffer: bytes) }
                    } catch is IOError {
                        // The server did not read to the end.
                    } catch is ChannelError {
                        // The server did not read to the end.
                    }
                    return text
                }
            }
            let junk = try await ask(ByteBuffer(string: "junk\n"))
            #expect(junk.contains("2001"))
            let long = try await ask(ByteBuffer(repeating: UInt8(ascii: "x"), count: 70_000))
            #expect(long == "")
            let users = try await ask(ByteBuffer(string: #"{"listUsers":{"after":0}}"# + "\nand more"))
            #expect(users == #"{"users":{"_0":[]}}"# + "\n")
        }
    }
}
