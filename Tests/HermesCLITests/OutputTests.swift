// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Hermes
import HermesServer
import HermesTestKit
import NIOCore
import NIOPosix
import Testing

@testable import HermesCLI

/// The output of commands, and the handling of failed output.
@Suite(.inTurns, .timeLimit(.minutes(2)))
struct OutputTests {
    /// A pipe whose reading end the test reads and closes.
    private struct Pipe {
        let output: StandardOutput
        let reader: Int32

        init() throws {
            var ends: [Int32] = [-1, -1]
            try #require(pipe(&ends) == 0)
            reader = ends[0]
            output = StandardOutput(descriptor: ends[1])
        }

        /// Reads `count` lines on a separate thread, then closes the reading end, like `head`.
        func head(_ count: Int) async -> [String] {
            await withCheckedContinuation { continuation in
                DispatchQueue.global().async { [reader] in
                    var bytes: [UInt8] = []
                    while bytes.count(where: { $0 == 0x0A }) < count {
                        var piece = [UInt8](repeating: 0, count: 4096)
                        let length = read(reader, &piece, piece.count)
                        guard length > 0 else { break }
                        bytes += piece[..<length]
                    }
                    close(reader)
                    let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n").prefix(count)
                    continuation.resume(returning: lines.map { String($0) })
                }
            }
        }
    }

    @Test func `no server moves the cursor or changes the colours of the terminal`() async throws {
        let words = "sent away\n\u{1B}[2J\u{1B}]52;c;AAAA\u{07}\u{9B}31m\r\u{202E}"
        let pipe = try Pipe()
        let console = Console(isInteractive: false, errors: pipe.output)
        await console.status("\(words); trying again")
        let told = await pipe.head(2).joined(separator: "\n") + "\n"
        let failure = StandardError.line(words, as: "hermes sub")
        #expect(told.hasPrefix("hermes: sent away\n    "))
        #expect(failure.hasPrefix("hermes sub: sent away\n    "))
        for text in [told, failure] {
            #expect(text.hasSuffix("\n"))
            #expect(text.unicodeScalars.allSatisfy { $0 == "\n" || $0.properties.generalCategory != .control })
            #expect(!text.unicodeScalars.contains("\u{202E}"))
        }
    }

    @Test func `drain waits for the reader, and fails if it is gone with bytes unread`() async throws {
        let pipe = try Pipe()
        try pipe.output.write(Array("one\n".utf8))
        async let lines = pipe.head(1)
        try await pipe.output.drain()
        #expect(await lines == ["one"])
        #expect(throws: OutputFailure(number: EPIPE)) { try pipe.output.write(Array("two\n".utf8)) }

        let other = try Pipe()
        try other.output.write(Array("unread\n".utf8))
        close(other.reader)
        await #expect(throws: OutputFailure.self) { try await other.output.drain() }
    }

    @Test func `what the reader of a pipe has not read comes again next time`() async throws {
        try await withServer { server in
            func configuration(_ device: String) -> HermesClient.Configuration {
                var configuration = HermesClient.Configuration(
                    server: ServerAddress(port: server.port("delimited")),
                    device: DeviceDescription(id: device)
                )
                configuration.reconnect = .never
                return configuration
            }
            let ann = try HermesClient(configuration("ann"))
            _ = try await ann.logIn(.register(nickName: "ann", password: "secret-a"))
            let first = try HermesClient(configuration("carl"))
            let session = try await first.logIn(.register(nickName: "carl", password: "secret-c"))
            await first.close()
            for number in 1...6 { try await ann.send("\(number)", to: .user(session.uid)).receipt() }
            var lines: [String] = []
            for count in [2, 1, 3] {
                let pipe = try Pipe()
                async let read = pipe.head(count)
                let client = try HermesClient(configuration("carl"))
                let console = Console(isInteractive: false, output: pipe.output)
                let chat = Chat(client: client, console: console, name: "carl", place: "here", limit: 6)
                do {
                    try await chat.run(firstPeer: nil, wait: 1) { try await client.logIn(.token(session.token)) }
                } catch let error as OutputFailure {
                    #expect(error.isClosed)
                }
                await client.close(takingLastEvent: chat.progress.isComplete)
                close(pipe.output.descriptor)
                lines += await read
                // The server may serve the next connection before it handles the last packets of this connection.
                while try server.connectedDevices() > 1 { await Task.yield() }
            }
            #expect(lines == (1...6).map { "ann: \($0)" })
            await ann.close()
        }
    }

    @Test(arguments: [
        ("Parcel", "at your door", "", "", "[Parcel] at your door"), ("Parcel", "", "", "", "[Parcel]"),
        ("", "at your door", "shop.Order", "{}", "at your door"),
        ("", "", "shop.Order", "{}", "[push of type shop.Order]"),
        ("", "", "", #"{"order":7}"#, #"[push with data {"order":7}]"#), ("", "", "", "", "[push without text]"),
    ])
    func `a push is a line without empty brackets`(
        title: String,
        body: String,
        type: String,
        data: String,
        line: String
    ) {
        #expect(PushText.line(title: title, body: body, type: type, data: data) == line)
    }

    @Test func `a chat that is to end after one push ends after it`() async throws {
        try await withServer(store: .sqlite) { server in
            var configuration = HermesClient.Configuration(
                server: ServerAddress(port: server.port("delimited")),
                device: DeviceDescription(id: "cleo")
            )
            configuration.reconnect = .never
            let first = try HermesClient(configuration)
            let session = try await first.logIn(.register(nickName: "cleo", password: "secret-c"))
            await first.close()
            let created = try await HermesServer.administer(
                .createAPIKey(name: "shop", scopes: "push"),
                arguments: ["--data.directory", server.dataDirectory],
                environment: [:],
                file: nil
            )
            guard case .apiKeyCreated(let secret) = created else {
                Issue.record("\(created)")
                return
            }
            let file = server.dataDirectory + "/shop.key"
            try Data(secret.utf8).write(to: URL(fileURLWithPath: file))
            let place = ["--key-file", file, "--server", "http://127.0.0.1:\(server.port("http"))"]
            try await HermesCommand.run(["push", "--to", "cleo", "--body", "parcel"] + place)
            let pipe = try Pipe()
            async let read = pipe.head(1)
            let client = try HermesClient(configuration)
            let console = Console(isInteractive: false, output: pipe.output)
            let chat = Chat(client: client, console: console, name: "cleo", place: "here", limit: 1)
            try await chat.run(firstPeer: nil, wait: nil) { try await client.logIn(.token(session.token)) }
            await client.close(takingLastEvent: chat.progress.isComplete)
            close(pipe.output.descriptor)
            #expect(await read == ["parcel"])
        }
    }

    @Test func `sub prints what is acknowledged before it goes on, and fails where nobody reads`() async throws {
        let pipe = try Pipe()
        var printer = MQTTPrinter(format: nil, showsTopic: false, endsLine: true)
        printer.output = pipe.output
        let message = MQTTMessage(topic: "a", payload: ByteBuffer(string: "x"), qos: .atLeastOnce)
        async let lines = pipe.head(1)
        try await printer.print(message)
        #expect(await lines == ["x"])
        await #expect(throws: OutputFailure(number: EPIPE)) { try await printer.print(message) }
    }

    @Test func `a result that cannot be printed is an error, which says what the command has changed`() throws {
        let pipe = try Pipe()
        close(pipe.reader)
        #expect(throws: CommandOutput.failed) {
            try CommandOutput.print("secret", after: "the key was created", to: pipe.output)
        }
        // This is the case of a list whose reader, such as `head`, has ended.
        #expect(throws: ExitCode.failure) { try CommandOutput.print("a line", to: pipe.output) }
        close(pipe.output.descriptor)
        let (closed, full) = (OutputFailure(number: EPIPE), OutputFailure(number: ENOSPC))
        #expect(CommandOutput.message(closed, after: nil) == nil)
        #expect(CommandOutput.message(closed, after: "the key was created")?.hasSuffix("; the key was created") == true)
        #expect(CommandOutput.message(full, after: "the key was created") == "\(full.reason); the key was created")
        #expect(CommandOutput.message(full, after: nil) == full.reason)
        // Commands that print continuously, such as sub, use the same codes.
        #expect(closed.exitCode == .failure && full.exitCode == ExitCode(74))
        #if os(Linux)
        let descriptor = open("/dev/full", O_WRONLY)
        try #require(descriptor >= 0)
        defer { close(descriptor) }
        #expect(throws: CommandOutput.failed) {
            try CommandOutput.print("a line", to: StandardOutput(descriptor: descriptor))
        }
        #endif
    }

    @Test func `a command that is shown names the data that was given`() throws {
        func shown(_ arguments: [String]) throws -> String { try DataOptions.parse(arguments).shown }
        #expect(try shown([]) == "")
        #expect(try shown(["--data", "/srv/hermes"]) == " --data '/srv/hermes'")
        let both = ["--data", "Ann's data", "--config", "hermes.yaml"]
        #expect(try shown(both) == #" --config 'hermes.yaml' --data 'Ann'\''s data'"#)
    }

    @Test func `pub with QoS 0 fails where the server reads nothing`() async throws {
        // Accepts the connection, but never answers.
        let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(AcceptingHandler())
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let port = try #require(server.localAddress?.port)
        let command = try HermesCommand.parseAsRoot(
            ["pub", "-t", "a", "-m", "x", "-q", "0", "-h", "127.0.0.1", "-p", "\(port)", "--quiet"]
        )
        await #expect(throws: ExitCode.failure) {
            guard var command = command as? any AsyncParsableCommand else { return }
            try await command.run()
        }
        try await server.close()
    }

    @Test(arguments: [
        ["-q", "0"], ["-q", "0", "--repeat", "2", "--repeat-delay", "86000"],
        ["-q", "1", "--repeat", "2", "--repeat-delay", "86000"],
    ])
    func `pub ends when the server refuses it for good, although nothing waits`(options: [String]) async throws {
        let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(DismissingHandler())
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let port = try #require(server.localAddress?.port)
        let parsed = try HermesCommand.parseAsRoot(
            ["pub", "-t", "a", "-m", "x"] + options + ["-h", "127.0.0.1", "-p", "\(port)", "--quiet"]
        )
        let command = try #require(parsed as? PubCommand)
        await #expect(throws: ExitCode(0x98)) { try await command.run() }
        try await server.close()
    }

    @Test func `pub reports each loss and each new connection, and a message that ends every connection fails`()
        async throws
    {
        let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(RefusingHandler())
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let port = try #require(server.localAddress?.port)
        let text = String(repeating: "x", count: 70_000)
        let parsed = try HermesCommand.parseAsRoot(
            ["pub", "-t", "a", "-m", text, "-q", "1", "-V", "311", "-d", "-h", "127.0.0.1", "-p", "\(port)"]
        )
        let command = try #require(parsed as? PubCommand)
        let pipe = try Pipe()
        await #expect(throws: ExitCode.failure) {
            try await command.publish(
                in: MQTTCommandRun(name: "pub", options: command.options, errors: pipe.output)
            )
        }
        close(pipe.output.descriptor)
        let lines = await pipe.head(.max)
        #expect(lines.first?.hasPrefix("hermes pub: connected as") == true)
        // There are five connections. The command may end before it has reported the last ones.
        #expect(lines.count { $0.hasSuffix("; trying again") } >= 3, "\(lines)")
        #expect(lines.count { $0 == "hermes pub: connected again" } >= 3, "\(lines)")
        #expect(lines.last?.contains("connections ended before the server answered this message") == true, "\(lines)")
        try await server.close()
    }

    @Test func `an empty text for send is refused, with a remedy`() {
        for isInput in [true, false] {
            let failure = SendCommand.emptyText(isInput: isInput)
            #expect(failure.exitCode == .validationFailure)
            #expect(failure.message.contains("so nothing was sent; "))
        }
    }

    @Test(arguments: [
        ("a", 1), ("é", 1), ("e\u{301}", 1), ("漢", 2), ("ｱ", 1), ("Ａ", 2), ("한", 2), ("\u{1112}\u{1161}\u{11AB}", 2),
        ("😀", 2), ("👍🏽", 2), ("👨‍👩‍👧‍👦", 2), ("🏳️‍🌈", 2), ("🇩🇪", 2), ("❤️", 2), ("❤", 1), ("⌚", 2), ("⌚\u{FE0E}", 1),
        ("1️⃣", 2), ("™️", 2), ("™", 1), ("☎", 1), ("\u{200B}", 0), ("\u{301}", 0), ("🀄", 2), ("㊗", 2), ("한글", 4),
        ("\u{AD}", 1), ("🫠", 2), ("✅", 2), ("→", 1), ("𠀀", 2),
    ])
    func `characters have their columns`(text: String, columns: Int) { #expect(text.columns == columns, "\(text)") }

    @Test func `the cursor goes back by columns`() {
        var editor = LineEditor()
        for byte in "a👨‍👩‍👧漢\u{1B}[D\u{1B}[D".utf8 { _ = editor.feed(byte) }
        #expect(Console.picture(prompt: "> ", editor: editor, width: 40).hasSuffix("\u{1B}[4D"))
    }
}

/// Answers only the CONNECT of MQTT 5.0. The connection's event loop owns the handler.
private final class AcceptingHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private var isAccepted = false

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isAccepted else { return }
        isAccepted = true
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: [0x20, 3, 0, 0, 0])), promise: nil)
    }
}

/// Answers the CONNECT of MQTT 5.0. Acknowledges the first PUBLISH if it has the packet identifier 1, and then ends the
/// connection as an operator does. The connection's event loop owns the handler.
private final class DismissingHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private var isAccepted = false

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var answer: [UInt8] = [0x20, 3, 0, 0, 0]
        if isAccepted {
            let packet = unwrapInboundIn(data)
            let isAcknowledged =
                packet.getInteger(at: packet.readerIndex, as: UInt8.self).map { $0 & 0x06 != 0 } ?? false
            answer = (isAcknowledged ? [0x40, 2, 0, 1] : []) + [0xE0, 2, 0x98, 0]
        }
        isAccepted = true
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: answer)), promise: nil)
    }
}

/// Answers the CONNECT of MQTT 3.1.1, and closes the connection at the next packet. The connection's event loop owns
/// the handler.
private final class RefusingHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private var isAccepted = false

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isAccepted else { return context.close(promise: nil) }
        isAccepted = true
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: [0x20, 2, 0, 0])), promise: nil)
    }
}
