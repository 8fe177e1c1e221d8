// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import Hermes

/// One run of `hermes chat`: sends the input and prints the incoming events, until the input or the client ends.
actor Chat {
    private let client: HermesClient
    private let console: Console
    private let name: String
    private let place: String
    /// The chat ends after this number of pushes and messages from others; nil if there is no limit.
    private let limit: Int?
    private var peer: Account?
    private var names: [UserID: String] = [:]
    private var arrived = 0
    private var statesEnded = false
    /// Whether the server has accepted a login since the start.
    private var hasLoggedIn = false
    /// Whether the last received event is printed.
    nonisolated let progress = PrintProgress()

    init(client: HermesClient, console: Console, name: String, place: String, limit: Int?) {
        self.client = client
        self.console = console
        self.name = name
        self.place = place
        self.limit = limit
    }

    /// The reason why a part of the chat has ended.
    private enum End: Sendable {
        case states
        /// The server has answered a request before the chat begins.
        case answered
        /// The input has ended.
        case input
        /// The requested number of messages and pushes has arrived.
        case limit
        case interrupted
        case stopped
        case time
    }

    /// Runs the chat.
    ///
    /// - Throws: CancellationError if the user interrupted it; HermesClientError or ClientFailure if it failed.
    func run(
        firstPeer: String?,
        wait: Double?,
        logIn: @escaping @Sendable () async throws -> Session
    ) async throws {
        try await withThrowingTaskGroup(of: End.self) { group in
            defer { group.cancelAll() }
            group.addTask { try await self.printStates() }
            let ephemeral = client.ephemeralEvents
            group.addTask { await self.printEphemeral(ephemeral) }
            group.addTask {
                await Interrupts.wait()
                return .interrupted
            }
            let session = try await self.whileWaitingForInterrupt(&group, logIn)
            hasLoggedIn = true
            restartStates(&group)
            names[session.uid] = session.nickName
            let hint = console.isInteractive ? "; /help lists the commands" : ""
            await console.status("logged in as \(session.nickName) at \(place)\(hint)")
            if let firstPeer {
                try await whileWaitingForInterrupt(&group) { try await self.setPeer(firstPeer) }
                restartStates(&group)
            }
            group.addTask { try await self.printEvents() }
            group.addTask {
                // This is not `run()`, which would close the client when the group ends. Instead, the caller closes the
                // client and tells it whether the last event was printed.
                try await self.client.stopped()
                return .stopped
            }
            group.addTask { try await self.input() }
            for try await end in group {
                switch end {
                case .limit, .time, .stopped: return
                case .interrupted: throw CancellationError()
                case .input:
                    if let wait {
                        group.addTask {
                            try await Task.sleep(for: .seconds(wait))
                            return .time
                        }
                    } else if limit == nil || console.isInteractive {
                        return
                    }
                case .states, .answered: break
                }
            }
        }
    }

    /// Prints states again, if their stream has ended.
    private func restartStates(_ group: inout ThrowingTaskGroup<End, any Error>) {
        guard statesEnded else { return }
        statesEnded = false
        group.addTask { try await self.printStates() }
    }

    /// Waits for an answer from the server while another task waits for Ctrl-C.
    private func whileWaitingForInterrupt<Value: Sendable>(
        _ group: inout ThrowingTaskGroup<End, any Error>,
        _ work: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        let box = ValueBox<Value>()
        group.addTask {
            await box.set(try await work())
            return .answered
        }
        while let end = try await group.next() {
            switch end {
            case .interrupted: throw CancellationError()
            // The stream of states ends when the server refuses the token of the first login.
            case .states: statesEnded = true
            case .answered: if let value = await box.value { return value }
            case .input, .limit, .stopped, .time: continue
            }
        }
        throw CancellationError()
    }

    private actor ValueBox<Value: Sendable> {
        var value: Value?
        func set(_ value: Value) { self.value = value }
    }

    // MARK: Events

    /// - Throws: HermesClientError if a connection before the first login shows that client and server do not agree
    ///   about TLS. A further try cannot succeed.
    private func printStates() async throws -> End {
        var wasLive = false
        for await state in client.states {
            switch state {
            case .waiting(let error, let delay):
                if !hasLoggedIn, !wasLive, ServerMismatch.isAboutTLS(error) { throw error }
                let seconds = Double(delay.components.seconds) + Double(delay.components.attoseconds) / 1e18
                let time = seconds < 1 ? "at once" : "in \(Int(seconds.rounded())) s"
                await console.status("\(error.message); trying again \(time)")
            case .live:
                if wasLive { await console.status("connected again") }
                wasLive = true
            case .idle, .connecting, .authenticating, .lost, .paused, .stopped:
                break
            }
        }
        return .states
    }

    /// Prints each event before it requests the next one, because the request counts the printed event as taken.
    private func printEvents() async throws -> End {
        for await event in client.events {
            progress.arrived()
            switch event.kind {
            case .message(let message):
                try await show(message, isStored: false)
                if !message.isOwn { arrived += 1 }
            case .recall(_, in: _, let uid):
                await console.status("\(await name(of: uid)) recalled a message")
            case .push(let push):
                let line = PushText.line(
                    title: push.title,
                    body: push.body,
                    type: push.messageType,
                    data: push.dataJSON
                )
                try await console.print(line)
                arrived += 1
            case .gap(let gap):
                await console.status("\(Self.count(gap)) message(s) had expired before this device connected")
            case .inboxReset:
                await console.status("the server lost stored data; messages may be missing")
            case .contact(let change, by: _, let name, message: _):
                await console.status("\(name.printable) \(Self.words(for: change))")
            case .group(let change, of: _, let name, by: _):
                await console.status("group \(name.printable): \(Self.word(for: change))")
            case .readMark, .unknown:
                break
            // A call, or an event of another kind for which the chat has no text.
            default:
                await console.status(String(describing: event.kind).printable)
            }
            progress.printed()
            if let limit, arrived >= limit { return .limit }
        }
        // The client has stopped; `run` reports why.
        return .states
    }

    private func printEphemeral(_ events: ClientEvents<EphemeralEvent>) async -> End {
        for await event in events {
            switch event.kind {
            case .missedPushes(let topic, let numbers):
                await console.status("\(Self.count(numbers)) push(es) to \(topic.printable) did not arrive")
            case .notice(let text):
                await console.status("the server says: \(text.printable)")
            case .typing, .presence, .room, .signal:
                break
            }
        }
        return .states
    }

    /// Returns what the other account did.
    private static func words(for change: ContactChange) -> String {
        switch change {
        case .requested: "requested you as a contact"
        case .accepted: "accepted you as a contact"
        case .declined: "declined your contact request"
        case .removed: "removed you as a contact"
        }
    }

    private static func word(for change: GroupChange) -> String {
        switch change {
        case .created: "created"
        case .changed: "changed"
        case .membersAdded: "members added"
        case .membersRemoved: "members left or were removed"
        case .dissolved: "dissolved"
        }
    }

    /// Returns the number of elements of a range. The server chooses the bounds, so the number may not fit into an Int.
    /// The range's own `count` would trap in that case.
    private static func count(_ range: ClosedRange<UInt64>) -> UInt64 { range.upperBound &- range.lowerBound &+ 1 }

    private func show(_ message: Message, isStored: Bool) async throws {
        let text = (message.text ?? "(\(Self.kind(of: message)))").printable
        var line = "\(message.fromNickName.printable): \(text)"
        if case .user(let uid) = message.conversation {
            if message.isOwn || message.fromNickName == name {
                line = "\(name) -> \(await name(of: uid)): \(text)"
            } else {
                names[uid] = message.fromNickName.printable
                if !isStored, peer == nil, console.isInteractive { try? await setPeer(message.fromNickName) }
            }
        }
        try await console.print(console.isInteractive ? "\(Self.clock(message.date)) \(line)" : line)
    }

    private static func kind(of message: Message) -> String {
        switch message.content {
        case .text(let text): text
        case .image(let url, _, _): "image \(url)"
        case .sound(let url, _, _): "sound \(url)"
        case .location(let latitude, let longitude, let label): "place \(latitude) \(longitude) \(label)"
        case .video(let url, _, _): "video \(url)"
        case .expression(_, let name): "sticker \(name)"
        case .custom(let type, let data): "\(type), \(data.count) bytes"
        case .unknown: message.isRecalled ? "recalled" : "content that this version cannot show"
        }
    }

    private static func clock(_ date: Date) -> String {
        let parts = local(date)
        return "\(two(parts.tm_hour)):\(two(parts.tm_min))"
    }

    private static func day(_ date: Date) -> String {
        let parts = local(date)
        return "\(Int(parts.tm_year) + 1900)-\(two(parts.tm_mon + 1))-\(two(parts.tm_mday))"
    }

    private static func local(_ date: Date) -> tm {
        // A server may send any number as the date.
        var seconds = time_t(exactly: date.timeIntervalSince1970.rounded(.down)) ?? 0
        var parts = tm()
        localtime_r(&seconds, &parts)
        return parts
    }

    private static func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }

    private func name(of uid: UserID) async -> String {
        if let name = names[uid] { return name }
        guard let account = try? await client.account(id: uid) else { return "#\(uid)" }
        names[uid] = account.nickName.printable
        return account.nickName.printable
    }

    // MARK: Input

    private func input() async throws -> End {
        let input = try StandardInput()
        guard console.isInteractive else {
            var lines = LineSplitter()
            while let bytes = await input.read() {
                for line in lines.feed(bytes) where try await !handle(line) { return .input }
            }
            if let last = lines.finish() { _ = try await handle(last) }
            return .input
        }
        return try await typedInput(input)
    }

    /// Reads lines while earlier lines wait for their receipts, so that the user can type without a connection.
    private func typedInput(_ input: StandardInput) async throws -> End {
        let restore = TerminalMode.makeRaw()
        defer { restore?() }
        let (lines, continuation) = AsyncStream<String>.makeStream()
        await drawPrompt()
        return try await withThrowingTaskGroup(of: End.self) { group in
            defer { group.cancelAll() }
            group.addTask {
                defer { continuation.finish() }
                while let bytes = await input.read() {
                    for byte in bytes {
                        switch await self.console.feed(byte) {
                        case .submit(let line):
                            continuation.yield(line)
                            await self.drawPrompt()
                        case .interrupt: return .interrupted
                        case .endOfInput: return .states
                        case .redraw, nil: break
                        }
                    }
                }
                return .states
            }
            group.addTask {
                for await line in lines where try await !self.handle(line) { return .input }
                return .input
            }
            var end = End.input
            while let next = try await group.next() {
                end = next
                if case .states = next { continue }
                break
            }
            await console.finish()
            return end
        }
    }

    private func drawPrompt() async {
        guard console.isInteractive else { return }
        await console.setPrompt(peer.map { "to \($0.nickName.printable)> " } ?? "/to NAME> ")
    }

    /// Executes an input line.
    ///
    /// - Returns: false if the line ends the chat.
    private func handle(_ line: String) async throws -> Bool {
        switch ChatInput(line) {
        case .nothing: break
        case .say(let text): try await say(text)
        case .to(let name): try await orReport { try await setPeer(name) }
        case .history(let count): try await orReport { try await showHistory(count) }
        case .list(let count): try await orReport { try await showConversations(count) }
        case .who: try await orReport { try await showPeer() }
        case .devices: try await orReport { try await showDevices() }
        case .help: try await console.print(ChatInput.helpText)
        case .quit: return false
        case .wrong(let reason): try await orReport { throw ClientFailure(reason) }
        }
        return true
    }

    /// Runs a command. At a terminal, reports a failure. With a pipe, a failure ends the program.
    private func orReport(_ body: () async throws -> Void) async throws {
        do {
            try await body()
        } catch let error as HermesClientError where console.isInteractive {
            await console.status(error.message)
        } catch let error as ClientFailure where console.isInteractive {
            await console.status(error.message)
        }
    }

    private func say(_ text: String) async throws {
        try await orReport {
            guard let peer else { throw ClientFailure("no receiver: enter /to NAME first, or start with --to NAME") }
            if console.isInteractive { try await console.print("\(Self.clock(Date())) \(name): \(text.printable)") }
            try await client.sendDirectly(.text(text), to: .user(peer.uid))
        }
    }

    private func setPeer(_ name: String) async throws {
        do {
            let account = try await client.account(named: name)
            peer = account
            names[account.uid] = account.nickName.printable
        } catch let error as HermesClientError where error.code == .notFound {
            throw ClientFailure("there is no account \(name.printable); it has to be registered first")
        }
        await drawPrompt()
    }

    private func showHistory(_ count: Int) async throws {
        guard let peer else { throw ClientFailure("no conversation is chosen: enter /to NAME first") }
        let history = try await client.history(of: .user(peer.uid), limit: count)
        if history.messages.isEmpty {
            await console.status("the server has no messages of this conversation")
        }
        for message in history.messages { try await show(message, isStored: true) }
    }

    /// `/list` stops loading conversations once it has this many.
    private static let maxListed = 10_000

    private func showConversations(_ count: Int) async throws {
        var all: [ConversationSummary] = []
        while all.count < Self.maxListed {
            let page = try await client.conversations(after: all.last?.conversation, limit: 1_000)
            if page.isEmpty { break }
            all += page
        }
        if all.isEmpty { await console.status("there are no conversations yet: enter /to NAME") }
        all.sort { ($0.lastDate ?? .distantPast) > ($1.lastDate ?? .distantPast) }
        for conversation in all.prefix(count) {
            try await console.print(Self.line(for: conversation))
            guard case .user(let uid) = conversation.conversation, !conversation.name.isEmpty else { continue }
            names[uid] = conversation.name.printable
        }
    }

    static func line(for conversation: ConversationSummary) -> String {
        let name = conversation.name.printable
        let title =
            switch conversation.conversation {
            case .user(let uid): name.isEmpty ? "#\(uid), deleted" : name
            case .group(let id): "group \(name.isEmpty ? "#\(id)" : name)"
            }
        let last = conversation.lastDate.map { ", last message on \(day($0)) \(clock($0))" } ?? ""
        return "\(title): \(conversation.unread) unread\(last)"
    }

    private func showPeer() async throws {
        guard let peer else { throw ClientFailure("no conversation is chosen: enter /to NAME first") }
        let account = try await client.account(id: peer.uid)
        try await console.print("\(account.nickName.printable) is \(account.isOnline ? "online" : "offline")")
    }

    private func showDevices() async throws {
        for device in try await client.devices() {
            let mark = device.isCurrent ? " (this one)" : device.isOnline ? " (connected)" : ""
            try await console.print("\(device.id.printable) \(device.platform.printable)\(mark)")
        }
    }
}
