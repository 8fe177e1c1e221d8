// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import Hermes
import HermesCore
import HermesTestKit
import Testing

@testable import HermesServer

@Suite("Lists over the control socket", .inTurns, .timeLimit(.minutes(1)))
struct ControlListTests {
    private func ask(_ request: ControlRequest, _ directory: String) async throws -> ControlResponse {
        try await HermesServer.administer(
            request,
            arguments: ["--data.directory", directory],
            environment: [:],
            file: nil
        )
    }

    @Test
    func `conversations are listed, with a running server and without`() async throws {
        let directory = NSTemporaryDirectory() + "/h-\(UUID().uuidString.prefix(8))"
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        for name in ["ann", "bob"] {
            _ = try await ask(.addUser(nickName: name, password: "secret12"), directory)
        }
        let request = ControlRequest.listConversations(nickName: "ann", after: nil, limit: 10)
        #expect(try await ask(request, directory) == .conversations([], next: nil))
        let unknown = ControlRequest.listConversations(nickName: "nobody", after: nil, limit: 10)
        guard case .failed(2002, _) = try await ask(unknown, directory) else {
            Issue.record("nobody has conversations")
            return
        }
        try await withServer(store: .sqlite) { server in
            let address = ServerAddress(port: server.port("delimited"))
            func client(_ name: String) throws -> HermesClient {
                try HermesClient(.init(server: address, device: Hermes.DeviceDescription(id: name)))
            }
            let clients = [try client("ann"), try client("bob"), try client("cleo")]
            let ann = try await clients[0].logIn(.register(nickName: "ann", password: "secret-1"))
            for (other, name) in zip(clients[1...], ["bob", "cleo"]) {
                _ = try await other.logIn(.register(nickName: name, password: "secret-1"))
                _ = try await other.send("hello", to: .user(ann.uid)).receipt()
            }
            func list(_ after: String?, _ limit: Int) async throws -> ControlResponse {
                try await ask(.listConversations(nickName: "ann", after: after, limit: limit), server.dataDirectory)
            }
            guard case .conversations(let first, let next) = try await list(nil, .min) else {
                Issue.record("no list")
                return
            }
            #expect(first.map(\.name) == ["bob"] && first.map(\.unread) == [1] && next == first.first?.place)
            guard case .conversations(let rest, nil) = try await list(next, .max) else {
                Issue.record("no second page")
                return
            }
            #expect(rest.map(\.name) == ["cleo"] && rest.allSatisfy { ($0.lastAt ?? 0) > 0 })
            guard case .failed(2001, _) = try await list("user:x", 10) else {
                Issue.record("a place that is none")
                return
            }
            for client in clients { await client.close() }
        }
    }

    @Test
    func `clients are listed and disconnected, which the audit log has`() async throws {
        try await withServer(store: .sqlite) { server in
            let client = try server.mqtt(as: nil, id: "Lamp")
            _ = try await client.connect()
            let directory = server.dataDirectory
            guard case .clients(let found) = try await ask(.listClients(after: 0, text: "lamp", limit: 9), directory),
                let lamp = found.first
            else {
                Issue.record("no clients")
                return
            }
            #expect(found.count == 1 && lamp.clientID == "Lamp" && lamp.owner.isEmpty && lamp.since > 0)
            #expect(
                try await ask(.listClients(after: lamp.number, text: "", limit: 9), directory) == .clients([])
            )
            let request = ControlRequest.disconnectClient(number: lamp.number)
            #expect(try await ask(request, directory) == .disconnected(clientID: "Lamp"))
            for await state in client.states {
                if case .stopped = state { break }
            }
            guard case .failed(2002, let message) = try await ask(request, directory) else {
                Issue.record("disconnected twice")
                return
            }
            #expect(message.contains("hermes clients list"))
            let audit = try await ask(.auditLog(before: nil, limit: 9), directory)
            guard case .auditEntries(let log) = audit else {
                Issue.record("\(audit)")
                return
            }
            #expect(log.map(\.action) == ["disconnectClient"] && log.map(\.target) == ["\(lamp.number) Lamp"])
            await client.close()
        }
    }

    @Test
    func `figures over time are those that the server keeps`() async throws {
        try await withServer(store: .sqlite) { server in
            let figures = try #require(try server.assembly().figures)
            while figures.history.recent.newest == nil {
                try Task.checkCancellation()
                await Task.yield()
            }
            let directory = server.dataDirectory
            for isMonth in [false, true] {
                let request = ControlRequest.figureHistory(names: ["memory.resident"], isMonth: isMonth)
                guard case .figureHistory(let history) = try await ask(request, directory),
                    let memory = history.figures.first
                else {
                    Issue.record("no figures")
                    return
                }
                #expect(history.figures.count == 1 && (memory.maxima != nil) == isMonth)
                #expect((memory.values.last ?? nil) ?? 0 > 1_000_000)
            }
            let list = try await ask(.figureHistory(names: [], isMonth: false), directory)
            guard case .figureHistory(let all) = list else {
                Issue.record("\(list)")
                return
            }
            #expect(all.figures.map(\.name) == figures.history.names)
            let unknown = ControlRequest.figureHistory(names: ["weather"], isMonth: false)
            guard case .failed(2002, let message) = try await ask(unknown, directory) else {
                Issue.record("there is a figure of the weather")
                return
            }
            #expect(message.contains("memory.resident"))
        }
    }

    @Test
    func `without a running server there are neither clients nor figures`() async throws {
        let directory = NSTemporaryDirectory() + "/h-\(UUID().uuidString.prefix(8))"
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        _ = try await ask(.createAPIKey(name: "shop", scopes: "all"), directory)
        let requests: [ControlRequest] = [
            .listClients(after: 0, text: "", limit: 1), .disconnectClient(number: 1),
            .figureHistory(names: [], isMonth: true),
        ]
        for request in requests {
            guard case .failed(2002, let message) = try await ask(request, directory) else {
                Issue.record("\(request)")
                return
            }
            #expect(message.contains("No server runs"))
        }
    }
}
