// Hermes
// SPDX-License-Identifier: Apache-2.0

#if Pages
import Foundation
import HermesTestKit
import HermesWire
import NIOCore
import Testing

@testable import HermesCore
@testable import HermesServer

@Suite(.inTurns, .timeLimit(.minutes(1))) struct ConsoleTopicsTests {
    private func watching<Result: Sendable>(
        _ filter: String,
        _ probe: ConsoleProbe,
        _ body: (inout EventReader) async throws -> Result
    ) async throws -> Result {
        let cookie = probe.cookie.map { ["Cookie: \($0)"] } ?? []
        let path = "\(Console.prefix)/topics/watch?filter=\(filter)"
        return try await withEvents(path: path, headers: cookie, port: probe.port, body)
    }

    private func publish(_ topic: String, _ payload: String, retain: Bool = false, _ probe: ConsoleProbe) async throws {
        let body = "{\"topic\":\"\(topic)\",\"payload\":\(payload),\"retain\":\(retain)}"
        #expect(try await probe.send("POST", "/topics/publish", body).status == 202, "\(topic)")
    }

    @Test
    func `topics are watched by operators alone; a watcher is no subscriber, and the audit log has the filter`()
        async throws
    {
        try await withServer(store: .sqlite) { server in
            let olga = try await ConsoleProbe(server, .operator)
            let viewer = try await ConsoleProbe(server, .viewer)
            try await watching("home/%23", olga) { stream in
                #expect(stream.status == 200 && stream.head.lowercased().contains("content-type: text/event-stream"))
                #expect(try await stream.next()?.name == "ready")
                try await publish("garden", #"{"text":"not this"}"#, olga)
                try await publish("home/<b>", #"{"text":"<i>21\nevent: end\n\n"}"#, olga)
                try await publish("home/raw", #"{"base64":"/wA="}"#, olga)
                let text = try #require(try await stream.next())
                #expect(text.name == "publication" && text.data["topic"]?.string == "home/<b>")
                #expect(text.data["text"]?.string == "<i>21\nevent: end\n\n")
                let raw = try #require(try await stream.next())
                #expect(raw.data["base64"]?.string == "/wA=" && raw.data["text"] == nil)
            }
            // The frames of a room are shown with the name of the room.
            try await watching("%23", olga) { stream in
                #expect(try await stream.next()?.name == "ready")
                #expect(try await olga.send("GET", "/rooms").text == #"{"total":0,"rooms":[]}"#)
                let said = #"{"text":"hi","name":"ann"}"#
                #expect(try await olga.send("POST", "/rooms/lobby/messages", said).text == #"{"members":0}"#)
                let event = try #require(try await stream.next())
                #expect(event.data["what"]?.string == "text" && event.data["topic"]?.string == "room/lobby")
            }
            try await watching("home/%23", viewer) { #expect($0.status == 403) }
            try await watching("home/%23", ConsoleProbe(server)) { #expect($0.status == 401) }
            for bad in ["", "a%23", "a/%23/b", "$share/g/a", "a%00", String(repeating: "a", count: 1_025)] {
                try await watching(bad, olga) { #expect($0.status == 400, "\(bad)") }
            }
            let log = try await server.assembly().administrators.auditLog(before: nil, limit: 20).map(\.event)
            #expect(log.contains { $0.action == "watchTopics" && $0.target == "home/#" && $0.who == "operator" })
        }
    }

    @Test
    func `a watcher who cannot follow is told how many publications were left out, and where`() async throws {
        let configure: (inout ServerSettings) -> Void = { settings in
            settings.events.maxQueuedBytes = 64 << 10
            settings.events.eventsPerSecond = 1_000_000
            settings.events.heartbeat = .seconds(1)
        }
        try await withServer(store: .sqlite, configure: configure) { server in
            let olga = try await ConsoleProbe(server, .operator)
            let topics = try server.assembly().core.topics
            let topic = try #require(TopicName("flood"))
            try await watching("%23", olga) { stream in
                #expect(try await stream.next()?.name == "ready")
                let count = 1_000
                for number in 1...count {
                    var payload = ByteBuffer(string: "\(number) ")
                    payload.writeRepeatingByte(0x2E, count: 8_192)
                    let publication = Publication(topic: topic, payload: payload, kind: Publication.plainKind)
                    // The event loops may not have handled the subscription yet.
                    while !topics.publish(publication) { await Task.yield() }
                }
                var (next, dropped) = (1, 0)
                while next <= count {
                    let event = try #require(try await stream.next())
                    if event.name == "dropped" {
                        let missed = Int(try #require(event.data["count"]?.integer))
                        (next, dropped) = (next + missed, dropped + missed)
                    } else {
                        #expect(event.data["text"]?.string?.prefix { $0 != " " } == "\(next)")
                        next += 1
                    }
                }
                #expect(dropped > 0 && next == count + 1)
            }
        }
    }

    @Test
    func `what is retained is listed by a filter, page by page, with the beginning of its payload`() async throws {
        try await withServer(store: .sqlite) { server in
            var olga = try await ConsoleProbe(server, .operator)
            for number in 0..<7 {
                try await publish("kept/\(number)", #"{"text":"<b>\#(number)"}"#, retain: true, olga)
            }
            try await publish("other/raw", #"{"base64":"/wA="}"#, retain: true, olga)
            let long = String(repeating: "a", count: 255) + "\u{e9}rest"
            try await publish("other/long", #"{"text":"\#(long)"}"#, retain: true, olga)
            olga.isSpread = true
            func page(_ query: String) async throws -> (topics: [String], next: Int64?, all: [JSON]) {
                let answer = try await olga.send("GET", "/topics/retained/list?\(query)")
                #expect(answer.status == 200, "\(query): \(answer.text)")
                let body = try JSONParser.parse(Array(answer.text.utf8), maxValues: .max)
                let all = try #require(body["retained"]?.array)
                return (all.compactMap { $0["topic"]?.string }, body["next"]?.integer, all)
            }
            let few = try await page("filter=kept/%23&limit=7")
            #expect(few.topics == (0..<7).map { "kept/\($0)" } && few.next == nil)
            #expect(few.all[0]["text"]?.string == "<b>0" && few.all[0]["bytes"]?.integer == 4)
            var (seen, after): ([String], Int64) = ([], 0)
            repeat {
                let part = try await page("filter=kept/%2B&limit=3&after=\(after)")
                #expect(part.topics.count <= 3)
                seen += part.topics
                after = part.next ?? 0
            } while after != 0
            #expect(seen.sorted() == (0..<7).map { "kept/\($0)" })
            let raw = try await page("filter=other/raw")
            #expect(raw.all.first?["base64"]?.string == "/wA=" && raw.all.first?["text"] == nil)
            // The cut is inside a character, so this character is removed completely.
            let cut = try await page("filter=other/long").all.first
            #expect(cut?["text"]?.string == String(repeating: "a", count: 255) && cut?["bytes"]?.integer == 261)
            #expect(try await page("filter=kept/%23&after=9223372036854775807").topics.isEmpty)
            #expect(try await page("filter=nothing/%23").next == nil)
            for bad in ["", "filter=", "filter=a%23", "filter=%23&limit=201", "filter=%23&after=-1"] {
                #expect(try await olga.send("GET", "/topics/retained/list?\(bad)").status == 400, "\(bad)")
            }
            let viewer = try await ConsoleProbe(server, .viewer)
            #expect(try await viewer.send("GET", "/topics/retained/list?filter=%23").status == 403)
        }
    }
}
#endif
