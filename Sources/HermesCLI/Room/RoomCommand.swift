// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Hermes
import HermesProtocols

/// The command `hermes room`. It joins a live room to talk, give gifts or watch.
struct RoomCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "room",
        abstract: "Join a live room: chat, send gifts, watch.",
        discussion: """
            Each line of stdin is sent to the room, and the room's events are printed. A line "/gift NAME [COUNT]" \
            gives a gift. Rooms are live: nothing is stored.

            Examples:
              hermes room lobby --name ann                 talk in the lobby; Ctrl-D leaves
              hermes room lobby --watch                    only watch, until Ctrl-C
              hermes room lobby --watch --wait 60          only watch, for a minute
              hermes room lobby --watch --count 10         print the next ten events, then end
              hermes room lobby --name ann --gift rose:3   give three roses and leave
              echo "hello" | hermes room lobby --name ann  say one thing and leave
            """
    )

    @Argument(help: ArgumentHelp("The room: letters, digits, - _ and .", valueName: "room"))
    var room = "lobby"

    @Option(help: ArgumentHelp("The name that the others see.", valueName: "name"))
    var name: String?

    @Flag(help: "Only watch: join silently.")
    var watch = false

    @Option(help: ArgumentHelp("Give a gift, then leave.", valueName: "name[:count]"))
    var gift: String?

    @Option(
        help: ArgumentHelp(
            "After the end of stdin, wait this long; with --watch, end this long after the start.",
            valueName: "seconds"
        )
    )
    var wait: Double?

    @Option(help: ArgumentHelp("End after this many events.", valueName: "n"))
    var count: Int?

    @OptionGroup(title: "Server") var server: ServerOptions

    func validate() throws {
        let allowed = room.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."):
                true
            default: false
            }
        }
        guard allowed, (1...64).contains(room.utf8.count) else {
            throw ValidationError("\(room): a room's name is 1 to 64 letters, digits, - _ and .")
        }
        if watch, gift != nil { throw ValidationError("--watch and --gift: a watching viewer cannot send gifts") }
        if let gift, Gift(gift) == nil {
            throw ValidationError("--gift \(gift): must be NAME or NAME:COUNT; COUNT must be at least 1")
        }
        if let wait, !(0...1e9).contains(wait) { throw ValidationError("--wait \(wait): must be 0 to 1000000000") }
        if let count, count < 1 { throw ValidationError("--count \(count): must be at least 1") }
    }

    /// A gift: its name and the number of gifts.
    struct Gift: Hashable {
        var name: String
        var count: Int32

        init?(_ text: some StringProtocol) {
            let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = parts.first, !name.isEmpty else { return nil }
            self.name = String(name)
            count = 1
            guard parts.count == 2 else { return }
            guard let count = Int32(parts[1]), count > 0 else { return nil }
            self.count = count
        }
    }

    func run() async throws {
        let address = server.address(defaultPort: 9898)
        try await reportingFailures(server: address) {
            let name = name ?? ProcessInfo.processInfo.environment["USER"] ?? "guest"
            let user = watch ? nil : RoomUser(name: name)
            let echoes = RoomEchoes(in: room, by: name)
            var configuration = LiveRoomClient.Configuration(server: address, user: user, room: room)
            configuration.reconnect = gift == nil ? .interactive : .never
            let client = try LiveRoomClient(configuration)
            do {
                if let gift = gift.flatMap({ Gift($0) }) {
                    try await client.join()
                    try await give(gift, over: client, echoes)
                } else {
                    let visit = RoomVisit(
                        client: client,
                        room: room,
                        talks: !watch,
                        limit: count,
                        wait: wait,
                        echoes: echoes
                    )
                    try await visit.run()
                }
            } catch {
                await client.leave()
                throw error
            }
            await client.leave()
        }
    }

    /// Gives a gift, and waits until the server sends it back.
    private func give(_ gift: Gift, over client: LiveRoomClient, _ echoes: RoomEchoes) async throws {
        try await client.give(gift.name, count: Int(gift.count))
        echoes.sent()
        try await withThrowingTaskGroup(of: Void.self) { group in
            defer { group.cancelAll() }
            group.addTask {
                for await event in client.events { echoes.seen(event) }
                try await client.run()
                throw ClientFailure("the connection ended before the room showed the gift")
            }
            group.addTask { try await echoes.wait() }
            try await group.next()
        }
    }
}

/// One visit to a room.
struct RoomVisit: Sendable {
    let client: LiveRoomClient
    let room: String
    let talks: Bool
    /// The visit ends after this number of events; nil if there is no limit.
    let limit: Int?
    /// The time until the visit ends, in seconds; nil if there is no time limit. It counts from the end of the input
    /// or, without input, from the start.
    let wait: Double?
    let echoes: RoomEchoes

    private enum End: Sendable {
        case joined
        case over
        /// The time since the start is over.
        case time
        case input
        case interrupted
        case nothing
    }

    /// Joins the room, and stays there until the visit ends.
    ///
    /// - Throws: HermesClientError; CancellationError if the user interrupted the visit; ClientFailure if the time was
    ///   over before the room was joined.
    func run() async throws {
        let isInteractive = talks && isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1
        let console = Console(isInteractive: isInteractive)
        try await withThrowingTaskGroup(of: End.self) { group in
            defer { group.cancelAll() }
            group.addTask {
                await Interrupts.wait()
                return .interrupted
            }
            group.addTask { await printStates(console) }
            if !talks, let wait {
                group.addTask {
                    try await Task.sleep(for: .seconds(wait))
                    return .time
                }
            }
            group.addTask {
                try await client.join()
                return .joined
            }
            var isJoined = false
            for try await end in group {
                switch end {
                case .joined:
                    isJoined = true
                    let hint = isInteractive ? "; Ctrl-D leaves" : ""
                    await console.status("in the room \(room)\(hint)")
                    group.addTask {
                        try await client.run()
                        return .over
                    }
                    group.addTask { try await printEvents(console) }
                    if talks { group.addTask { try await talk(console) } }
                case .time:
                    if isJoined { return }
                    throw ClientFailure(
                        "the room \(room) could not be joined within the time of --wait",
                        exitCode: ExitCode(69)
                    )
                case .over: return
                case .interrupted: throw CancellationError()
                case .input:
                    if let wait {
                        group.addTask {
                            try await Task.sleep(for: .seconds(wait))
                            try await echoes.wait()
                            return .over
                        }
                    } else if limit == nil {
                        group.addTask {
                            try await echoes.wait()
                            return .over
                        }
                    }
                case .nothing: break
                }
            }
        }
    }

    private func printStates(_ console: Console) async -> End {
        for await state in client.states {
            if case .waiting(let error, _) = state { await console.status("\(error.message); trying again") }
        }
        return .nothing
    }

    private func printEvents(_ console: Console) async throws -> End {
        var count = 0
        for await event in client.events {
            echoes.seen(event)
            try await console.print(Self.words(event))
            count += 1
            if let limit, count >= limit { return .over }
        }
        return .nothing
    }

    /// Returns an event as text.
    static func words(_ event: RoomEvent) -> String {
        let who = (event.user?.name ?? "somebody").printable
        return switch event.kind {
        case .joined: "* \(who) joined"
        case .left: "* \(who) left"
        case .text(let text): "\(who): \(text.printable)"
        case .gift(let name, let count, _): "* \(who) gives \(count) x \(name.printable)"
        case .custom(let type, let data): "* type \(type), \(data.count) bytes"
        case .notice(let text): "* notice: \(text.printable)"
        case .kicked(let reason): "* removed from the room: \(reason.printable)"
        }
    }

    private func talk(_ console: Console) async throws -> End {
        let input = try StandardInput()
        guard console.isInteractive else {
            var lines = LineSplitter()
            while let bytes = await input.read() {
                for line in lines.feed(bytes) { try await say(line, console) }
            }
            if let last = lines.finish() { try await say(last, console) }
            return .input
        }
        let restore = TerminalMode.makeRaw()
        defer { restore?() }
        await console.setPrompt("\(room)> ")
        while let bytes = await input.read() {
            for byte in bytes {
                switch await console.feed(byte) {
                case .submit(let line):
                    try await say(line, console)
                    await console.setPrompt("\(room)> ")
                case .interrupt: return .interrupted
                case .endOfInput:
                    await console.finish()
                    return .input
                case .redraw, nil: break
                }
            }
        }
        return .input
    }

    private func say(_ line: String, _ console: Console) async throws {
        if line.hasPrefix("/gift ") {
            let words = line.split(separator: " ")
            guard let gift = RoomCommand.Gift(words.dropFirst().joined(separator: ":")) else {
                return await console.status("/gift NAME [COUNT]")
            }
            try await client.give(gift.name, count: Int(gift.count))
            return echoes.sent()
        }
        if line == "/quit" { return await client.leave() }
        guard !line.allSatisfy(\.isWhitespace) else { return }
        try await client.say(line)
        echoes.sent()
    }
}
