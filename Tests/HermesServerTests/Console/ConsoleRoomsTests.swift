// Hermes
// SPDX-License-Identifier: Apache-2.0

#if Pages
import Foundation
import Hermes
import HermesTestKit
import HermesWire
import Testing

@testable import HermesCore
@testable import HermesServer

@Suite(.inTurns, .timeLimit(.minutes(1))) struct ConsoleRoomsTests {
    private func watching<Result: Sendable>(
        _ room: String,
        _ probe: ConsoleProbe,
        _ body: (inout EventReader) async throws -> Result
    ) async throws -> Result {
        let cookie = probe.cookie.map { ["Cookie: \($0)"] } ?? []
        return try await withEvents(
            path: "\(Console.prefix)/rooms/\(room)/watch",
            headers: cookie,
            port: probe.port,
            body
        )
    }

    @Test
    func `a room is watched by operators, who see what is said as texts; nobody else can`() async throws {
        try await withServer(store: .sqlite) { server in
            let olga = try await ConsoleProbe(server, .operator)
            let viewer = try await ConsoleProbe(server, .viewer)
            try await watching("lobby", olga) { stream in
                #expect(stream.status == 200 && stream.head.lowercased().contains("content-type: text/event-stream"))
                #expect(stream.head.lowercased().contains("frame-ancestors 'none'"))
                #expect(try await stream.next()?.name == "ready")
                let text = #"{"text":"<b>hi\u0000\n\nevent: end\n","name":"<i>ann"}"#
                for room in ["hall", "lobby"] {
                    #expect(try await olga.send("POST", "/rooms/\(room)/messages", text).status == 202)
                }
                #expect(try await olga.send("POST", "/rooms/lobby/messages", #"{"text":"later"}"#).status == 202)
                let said = try #require(try await stream.next())
                #expect(said.name == "publication" && said.data["what"]?.string == "text")
                #expect(said.data["name"]?.string == "<i>ann")
                #expect(said.data["text"]?.string == "<b>hi\u{0}\n\nevent: end\n")
                let notice = try #require(try await stream.next())
                #expect(notice.data["what"]?.string == "notice" && notice.data["text"]?.string == "later")
            }
            try await watching("lobby", viewer) { #expect($0.status == 403) }
            try await watching("lobby", ConsoleProbe(server)) { #expect($0.status == 401) }
            try await watching("..%2Flobby", olga) { #expect($0.status == 400) }
            let log = try await server.assembly().administrators.auditLog(before: nil, limit: 9).map(\.event)
            #expect(log.contains { $0.action == "watchRoom" && $0.target == "lobby" && $0.who == "operator" })
        }
    }

    @Test
    func `what is watched ends with the session: nothing is written to somebody who may not see it any more`()
        async throws
    {
        try await withServer(store: .sqlite) { server in
            let olga = try await ConsoleProbe(server, .operator)
            let other = try await ConsoleProbe(server, .administrator)
            try await watching("lobby", olga) { stream in
                #expect(try await stream.next()?.name == "ready")
                try await server.assembly().administrators.setRole(of: AdministratorName("operator"), to: .viewer)
                #expect(try await other.send("POST", "/rooms/lobby/messages", #"{"text":"secret"}"#).status == 202)
                let end = try #require(try await stream.next())
                #expect(end.name == "end" && end.data["reason"]?.string == "key_revoked")
                #expect(try await stream.next() == nil)
            }
        }
    }

    @Test
    func `streams are limited, and a watcher that goes away frees its place`() async throws {
        let configure: (inout ServerSettings) -> Void = { $0.events.maxStreamsPerKey = 1 }
        try await withServer(store: .sqlite, configure: configure) { server in
            let olga = try await ConsoleProbe(server, .operator)
            try await watching("lobby", olga) { stream in
                #expect(try await stream.next()?.name == "ready")
                try await watching("hall", olga) { #expect($0.status == 429) }
            }
            let streams = try server.assembly().core.events
            while streams.count > 0 {
                try Task.checkCancellation()
                await Task.yield()
            }
            try await watching("hall", olga) { #expect($0.status == 200) }
        }
    }

    @Test
    func `a closed room has nobody in it, whatever protocol they came by`() async throws {
        try await withServer(store: .sqlite) { server in
            let olga = try await ConsoleProbe(server, .operator)
            let mqtt = try server.mqtt(as: nil, id: "m")
            _ = try await mqtt.connect()
            for filter in ["room/lobby", "room/hall"] { _ = try await mqtt.subscribe(to: filter, qos: .atMostOnce) }
            let native = try HermesClient(
                .init(server: ServerAddress(port: server.port("delimited")), device: .init(id: "phone"))
            )
            _ = try await native.logIn(.register(nickName: "ann", password: "secret1"))
            _ = try await native.enterRoom("lobby", as: RoomUser(name: "ann"))
            #expect(try await olga.send("GET", "/rooms").text.contains(#"{"name":"lobby","members":2}"#))
            let viewer = try await ConsoleProbe(server, .viewer)
            #expect(try await viewer.send("DELETE", "/rooms/lobby/members").status == 403)
            #expect(try await olga.send("DELETE", "/rooms/lobby/members").text == #"{"removed":2}"#)
            #expect(try await olga.send("GET", "/rooms").text == #"{"total":1,"rooms":[{"name":"hall","members":1}]}"#)
            #expect(try await olga.send("DELETE", "/rooms/lobby/members").text == #"{"removed":0}"#)
            _ = try await mqtt.subscribe(to: "room/lobby", qos: .atMostOnce)
            #expect(try await olga.send("GET", "/rooms").text.contains("lobby"), "they may come back")
            let log = try await server.assembly().administrators.auditLog(before: nil, limit: 9).map(\.event)
            #expect(log.contains { $0.action == "closeRoom" && $0.target == "lobby" && !$0.isRefused })
            await mqtt.close()
            await native.close()
        }
    }
}
#endif
