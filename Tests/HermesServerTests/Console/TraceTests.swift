// Hermes
// SPDX-License-Identifier: Apache-2.0

#if Pages
import Foundation
import Hermes
import HermesCore
import HermesTestKit
import HermesWire
import Testing

@testable import HermesServer

@Suite(.inTurns, .timeLimit(.minutes(1))) struct TraceTests {
    private func client(_ server: TestServer, _ device: String) throws -> HermesClient {
        let address = ServerAddress(port: server.port("delimited"))
        return try HermesClient(.init(server: address, device: Hermes.DeviceDescription(id: device)))
    }

    private func ask(_ request: ControlRequest, _ server: TestServer) async throws -> ControlResponse {
        try #require(try await ControlClient.ask(request, directory: server.dataDirectory))
    }

    @Test
    func `a message between two clients has all its steps, in the console and over the control socket`() async throws {
        try await withServer(store: .sqlite) { server in
            let (ann, bob) = (try client(server, "a-phone"), try client(server, "b-phone"))
            _ = try await ann.logIn(.register(nickName: "ann", password: "secret-ann"))
            let session = try await bob.logIn(.register(nickName: "bob", password: "secret-bob"))
            let events = bob.events
            let taking = Task { for await _ in events {} }
            defer { taking.cancel() }
            let receipt = try await ann.send("hello", to: .user(session.uid)).receipt()
            var steps: [String] = []
            // The acknowledgement is recorded later.
            while !steps.contains("acknowledged") {
                try Task.checkCancellation()
                guard case .traces(let found) = try await ask(.trace(id: "\(receipt.messageID)"), server) else { break }
                steps = found.first?.steps.map(\.step) ?? []
                let times = found.first?.steps.map(\.afterMicroseconds) ?? []
                #expect(times == times.sorted() && times.first == 0)
                await Task.yield()
            }
            #expect(steps == ["accepted", "committed", "delivered", "acknowledged"])
            let times = try server.messenger().traces.deliveryTimes
            #expect(times.count == 1, "the sender's own device is not delivered to")
            let `operator` = try await ConsoleProbe(server, .operator)
            let text = try await `operator`.send("GET", "/trace?id=\(receipt.messageID)").text
            let trace = try #require(try JSONParser.parse(Array(text.utf8))["messages"]?.array?.first)
            #expect(trace["recipients"]?.integer == 2 && trace["steps"]?.array?.count == 4)
            #expect(!text.contains("hello"), "the text of a message is not shown")
            let delivered = trace["steps"]?.array?[2]
            #expect(delivered?["device"]?.string == "b-phone" && delivered?["detail"]?.string == "delimited")
            let none = try await `operator`.send("GET", "/trace?id=%3Cb%3E").text
            #expect(none == #"{"messages":[]}"#)
            #expect(try await `operator`.send("GET", "/trace?id=\(String(repeating: "x", count: 65))").status == 400)
            #expect(try await `operator`.send("GET", "/trace").status == 400)
            let viewer = try await ConsoleProbe(server, .viewer)
            #expect(try await viewer.send("GET", "/trace?id=a").status == 403)
            await ann.close()
            await bob.close()
        }
    }

    @Test
    func `the figures over the control socket are those of the console`() async throws {
        try await withServer(store: .sqlite) { server in
            let figures = try #require(try server.assembly().figures)
            let history = { figures.history.summary(of: .hour) }
            while history().isEmpty {
                try Task.checkCancellation()
                await Task.yield()
            }
            guard case .stats(let stats) = try await ask(.stats(period: nil), server) else {
                Issue.record("no figures")
                return
            }
            #expect(stats.figures.map(\.name) == figures.figures.map(\.name) && stats.version == HermesVersion.current)
            #expect(stats.listeners.contains { $0.name == "mqtt" && $0.port == server.port("mqtt") })
            let memory = try #require(stats.figures.first { $0.name == "memory.resident" })
            #expect((memory.now ?? 0) > 1_000_000 && memory.maximum ?? 0 >= memory.mean ?? 0)
            guard case .stats(let month) = try await ask(.stats(period: "month"), server) else {
                Issue.record("no figures of a month")
                return
            }
            let same = try #require(month.figures.first { $0.name == "memory.resident" })
            #expect((same.mean ?? 0) > 1_000_000 && (same.maximum ?? 0) >= (same.mean ?? 0))
            guard case .failed(2001, _) = try await ask(.stats(period: "year"), server) else {
                Issue.record("a year is no period")
                return
            }
        }
    }

    @Test
    func `without a running server there is neither a trace nor figures`() async throws {
        let directory = NSTemporaryDirectory() + "/h-\(UUID().uuidString.prefix(8))"
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        _ = try await administer(.createAPIKey(name: "shop", scopes: "all"), directory)
        for request in [ControlRequest.trace(id: "x"), .stats(period: nil), .deliveries(period: nil)] {
            let answer = try await HermesServer.administer(
                request,
                arguments: ["--data.directory", directory],
                environment: [:],
                file: nil
            )
            guard case .failed(2002, _) = answer else {
                Issue.record("\(answer)")
                return
            }
        }
    }
}
#endif
