// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Hermes
import HermesTestKit
import Testing

@testable import HermesCLI
@testable import HermesServer

/// Tests `hermes clients`, `hermes user conversations` and `hermes figures`.
@Suite(.inTurns, .timeLimit(.minutes(2)))
struct ListCommandTests {
    @Test func `what clients choose does not reach the terminal's controls`() {
        #expect(ViewFormat.line(["a\u{202E}b", "\u{1B}[2J", "x\ty\n"]) == "a?b\t?[2J\tx?y?")
    }

    @Test func `JSON has the values of strangers, and none of their control characters`() throws {
        let values = ["a\u{9B}2J\u{202E}", "\t\n\u{7F}\u{2028}", "\u{E0001}\u{F0000}", "Zoë 漢 😀"]
        let json = try ViewFormat.json(values)
        let harmful: Set<Unicode.GeneralCategory> = [.control, .format, .lineSeparator, .privateUse]
        #expect(json.unicodeScalars.allSatisfy { $0 == "\n" || !harmful.contains($0.properties.generalCategory) })
        #expect(json.contains("Zoë 漢 😀") && json.contains("\\udb40\\udc01"))
        #expect(try JSONDecoder().decode([String].self, from: Data(json.utf8)) == values)
    }

    @Test func `lists of a running server are shown, and what is not there is an error`() async throws {
        try await withServer(store: .sqlite) { server in
            let data = ["--data", server.dataDirectory]
            var configuration = MQTTClient.Configuration(
                server: ServerAddress(port: server.port("mqtt")),
                clientID: "lamp"
            )
            configuration.reconnect = .never
            let lamp = try MQTTClient(configuration)
            _ = try await lamp.connect()
            let device = DeviceDescription(id: "phone")
            let address = ServerAddress(port: server.port("delimited"))
            let ann = try HermesClient(HermesClient.Configuration(server: address, device: device))
            _ = try await ann.logIn(.register(nickName: "ann", password: "secret-1"))
            for arguments in [
                ["clients"], ["clients", "list", "--text", "LAMP"], ["clients", "list", "--json"],
                ["user", "conversations", "ann"], ["user", "conversations", "ann", "--unread", "--json"],
                ["figures", "--json", "--month"],
            ] {
                try await HermesCommand.run(arguments + data)
            }
            for arguments in [
                ["clients", "disconnect", "\(UInt64.max)"], ["user", "conversations", "nobody"],
                ["figures", "weather"],
            ] {
                await #expect(throws: ExitCode.self, "\(arguments)") { try await HermesCommand.run(arguments + data) }
            }
            let listed = try await HermesServer.administer(
                .listClients(after: 0, text: "", limit: 9),
                arguments: ["--data.directory", server.dataDirectory],
                file: nil
            )
            guard case .clients(let clients) = listed, let number = clients.first?.number else {
                Issue.record("no client")
                return
            }
            try await HermesCommand.run(["clients", "disconnect", "\(number)"] + data)
            for await state in lamp.states {
                if case .stopped = state { break }
            }
            await ann.close()
            await lamp.close()
        }
    }

    @Test(arguments: [
        ["clients", "disconnect"], ["clients", "disconnect", "lamp"], ["clients", "disconnect", "-1"],
        ["clients", "other"], ["user", "conversations"], ["figures"], ["figures", "--month"],
    ])
    func `nonsense is refused`(arguments: [String]) {
        #expect(throws: (any Error).self) { try HermesCommand.parseAsRoot(arguments) }
    }

    @Test func `help has examples`() {
        #expect(HermesCommand.helpMessage(for: ClientsCommand.self).contains("hermes clients disconnect 17"))
        #expect(HermesCommand.helpMessage(for: ClientsList.self).contains("hermes clients list --text lamp"))
        #expect(HermesCommand.helpMessage(for: UserConversations.self).contains("hermes user conversations anna"))
        #expect(HermesCommand.helpMessage(for: FiguresCommand.self).contains("hermes figures memory.resident"))
    }

    @Test func `no name of a stranger moves the cursor`() throws {
        let conversation = ControlConversation(
            place: "group:9",
            name: "a\u{1B}[2Jb\tc\u{202E}",
            lastSeq: 12,
            lastAt: nil,
            readUpTo: 9,
            unread: 3
        )
        #expect(ViewFormat.text(conversation) == "group:9\ta?[2Jb?c?\t3 unread\tlast message 12\t-")
        let client = ControlMQTTClient(
            number: 17,
            clientID: "x\u{07}\n",
            owner: "",
            version: "MQTT 5.0",
            listener: "mqtt",
            address: "127.0.0.1",
            since: 0,
            subscriptions: 1,
            queued: 2,
            inflight: 0,
            heldBytes: 0,
            isKept: false
        )
        let columns = ViewFormat.text(client).split(separator: "\t").map { String($0) }
        #expect(columns.prefix(6) == ["17", "x??", "-", "MQTT 5.0", "mqtt", "127.0.0.1"])
        #expect(columns.suffix(2) == ["1", "2"])
    }

    @Test func `figures over time have a line for each time at which one is known`() {
        var history = ControlHistory()
        history.interval = 10_000
        history.figures = [
            ControlFigureValues(name: "a", values: [nil, 1, 2.5], maxima: nil),
            ControlFigureValues(name: "b", values: [nil, nil, 100.4], maxima: nil),
        ]
        let lines = ViewFormat.text(history).split(separator: "\n").map { $0.split(separator: " ").map(String.init) }
        #expect(lines.map { Array($0.dropFirst()) } == [["a", "b"], ["1", "-"], ["2.5", "100"]])
        history.figures = [ControlFigureValues(name: "a", values: [1, 2], maxima: [3, nil])]
        #expect(ViewFormat.text(history).contains("1 / 3") && ViewFormat.text(history).contains("2 / -"))
        #expect(ViewFormat.text(ControlHistory()) == "time")
    }
}
