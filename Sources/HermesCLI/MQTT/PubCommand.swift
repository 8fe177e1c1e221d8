// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Hermes
import NIOCore

/// The command `hermes pub`. It publishes over MQTT.
struct PubCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pub",
        abstract: "Publish over MQTT, to any broker.",
        discussion: """
            The options are those of mosquitto_pub. One of -m, -f, -s, -l and -n gives the message. With -q 1 and \
            -q 2, the command ends once the server has acknowledged everything. With -q 0, it ends once the server has \
            read everything. If it is not certain that the server has read everything, the command ends with an error.

            Examples:
              hermes pub -t home/kitchen/temperature -m 21.5
              hermes pub -t home/kitchen/temperature -m 21.5 -q 1 -r
              tail -f log | hermes pub -t logs/web -l -q 1
              hermes pub -h broker.example -p 8883 -u ann -P secret -t a/b -f picture.jpg
              hermes pub -t jobs -m '{"id":7}' -D publish content-type application/json -D publish user-property from web
              hermes pub -L mqtt://ann:secret@broker.example/a/b -n -r

            Exit codes: 0 for success; the server's reason code if the server refuses (with -V mqttv311, its return \
            code); 1 if the server cannot be reached; 66 if the file of -f cannot be read.
            """,
        helpNames: .long
    )

    @Option(name: [.short, .long], help: ArgumentHelp("The topic.", valueName: "topic"))
    var topic: String?

    @Option(
        name: [.short, .long],
        parsing: .unconditional,
        help: ArgumentHelp("Publish this text.", valueName: "text")
    )
    var message: String?

    @Option(name: [.short, .long], help: ArgumentHelp("Publish the contents of this file.", valueName: "file"))
    var file: String?

    @Flag(name: [.customShort("s"), .customLong("stdin-file")], help: "Publish all of stdin as one message.")
    var wholeInput = false

    @Flag(name: [.customShort("l"), .customLong("stdin-line")], help: "Publish each line of stdin.")
    var lines = false

    @Flag(name: [.customShort("n"), .customLong("null-message")], help: "Publish an empty message.")
    var empty = false

    @Option(name: [.short, .long], help: ArgumentHelp("The QoS: 0, 1 or 2.", valueName: "qos"))
    var qos = 0

    @Flag(name: [.short, .long], help: "Retain the message for later subscribers.")
    var retain = false

    @Option(name: .customLong("repeat"), help: ArgumentHelp("Publish this many times.", valueName: "n"))
    var count = 1

    @Option(help: ArgumentHelp("The delay between two repetitions.", valueName: "seconds"))
    var repeatDelay = 0.0

    @Option(
        name: [.customShort("M"), .long],
        help: ArgumentHelp("The largest number of unacknowledged messages.", valueName: "n")
    )
    var maxInflight = 100

    @OptionGroup(title: "Connection") var options: MQTTOptions

    func validate() throws {
        guard topic ?? options.urlTopic != nil else { throw ValidationError("the topic is missing: give -t TOPIC") }
        let sources = [message != nil, file != nil, wholeInput, lines, empty].count { $0 }
        guard sources == 1 else {
            throw ValidationError("give one of -m TEXT, -f FILE, -s, -l and -n as the payload")
        }
        guard (0...2).contains(qos) else { throw ValidationError("-q \(qos): must be 0, 1 or 2") }
        guard (1...1_000_000_000).contains(count) else {
            throw ValidationError("--repeat \(count): must be 1 to 1000000000")
        }
        guard count == 1 || !lines else { throw ValidationError("--repeat cannot be used with -l") }
        guard (0...1e6).contains(repeatDelay) else {
            throw ValidationError("--repeat-delay \(repeatDelay): must be 0 to 1000000")
        }
        guard (1...65_535).contains(maxInflight) else { throw ValidationError("-M \(maxInflight): must be 1 to 65535") }
    }

    func run() async throws { try await publish(in: MQTTCommandRun(name: "pub", options: options)) }

    /// Connects, publishes and disconnects.
    ///
    /// - Throws: the ExitCode of a failure.
    func publish(in run: MQTTCommandRun) async throws {
        var message = MQTTMessage(topic: topic ?? options.urlTopic ?? "")
        message.qos = MQTTClient.QoS(rawValue: UInt8(clamping: qos)) ?? .atMostOnce
        message.retain = retain
        message.properties = options.property.message(.publish)
        do throws(ClientFailure) {
            if let payload = try payload() { message.payload = payload }
        } catch {
            run.say(error.message)
            throw error.exitCode
        }
        let prepared = message
        try await run.with(options.configuration()) { client in
            let publisher = MQTTPublisher(client: client, window: maxInflight)
            try await withThrowingTaskGroup(of: Void.self) { group in
                defer { group.cancelAll() }
                group.addTask {
                    await run.watch(client)
                    // The client has stopped, and another task of this group fails with the reason.
                    try await Task.sleep(for: .seconds(86_400))
                }
                if prepared.qos == .atMostOnce {
                    group.addTask { try await publishUnacknowledged(prepared, publisher, client, run) }
                    // The server does not acknowledge these publications, so a lost server must be detected in another
                    // way.
                    group.addTask { try await Self.requireConnection(client, publisher, run) }
                } else {
                    group.addTask { try await publish(prepared, publisher) }
                    // A failure ends the command at once, even if the next line of the input would arrive only hours
                    // later. The same applies to a refusal while nothing waits for an acknowledgement.
                    group.addTask { try await publisher.requireSuccess() }
                    group.addTask { try await publisher.requireClient() }
                }
                try await group.next()
            }
        }
    }

    private func publish(_ message: MQTTMessage, _ publisher: MQTTPublisher) async throws {
        if lines {
            let input = try StandardInput()
            var splitter = ByteLineSplitter()
            while let bytes = await input.read() {
                for line in splitter.feed(bytes) { try await publisher.publish(message, payload: line) }
            }
            if let last = splitter.finish() { try await publisher.publish(message, payload: last) }
        } else {
            for number in 0..<count {
                if number > 0, repeatDelay > 0 { try await Task.sleep(for: .seconds(repeatDelay)) }
                try await publisher.publish(message, payload: message.payload)
            }
        }
        try await publisher.finish()
    }

    /// Publishes with QoS 0, and waits until the server has read everything.
    private func publishUnacknowledged(
        _ message: MQTTMessage,
        _ publisher: MQTTPublisher,
        _ client: MQTTClient,
        _ run: MQTTCommandRun
    ) async throws {
        let connection = await client.connectionNumber
        do {
            try await publish(message, publisher)
            // The server answers the ping after it has read everything that was sent before.
            try await client.ping()
        } catch let error as HermesClientError {
            // If the server has refused the client for good, its reason says more than the loss of the connection.
            throw Self.loss(await client.stopReason ?? error, run)
        }
        guard await client.connectionNumber == connection else {
            throw ClientFailure("the connection was lost: some messages may be lost; to prevent this, use -q 1")
        }
    }

    /// Throws when there has been no connection for too long, or when the client stops while there is more to publish.
    private static func requireConnection(
        _ client: MQTTClient,
        _ publisher: MQTTPublisher,
        _ run: MQTTCommandRun
    ) async throws {
        var lostAt: ContinuousClock.Instant?
        for await state in client.states {
            switch state {
            case .live: lostAt = nil
            case .waiting(let error, _):
                let since = lostAt ?? ContinuousClock.now
                lostAt = since
                if ContinuousClock.now - since > longestAbsence { throw loss(error, run) }
            case .idle, .connecting, .authenticating, .lost, .paused, .stopped: continue
            }
        }
        do {
            try await publisher.requireClient()
        } catch let error as HermesClientError {
            throw loss(error, run)
        }
    }

    private static func loss(_ error: HermesClientError, _ run: MQTTCommandRun) -> ClientFailure {
        ClientFailure(
            "\(error.message): some messages may be lost; to prevent this, use -q 1",
            exitCode: run.exitCode(error)
        )
    }

    private static let longestAbsence = Duration.seconds(30)

    /// One byte more than the longest packet of MQTT, so that a longer file is refused instead of cut.
    private static let maxFileBytes = 268_435_461

    private func payload() throws(ClientFailure) -> ByteBuffer? {
        if let message { return ByteBuffer(string: message) }
        if let file {
            do throws(UnreadableFile) {
                return ByteBuffer(bytes: try InputFile.read(file, upTo: Self.maxFileBytes))
            } catch {
                throw ClientFailure("-f \(file) cannot be read: \(error)", exitCode: ExitCode(66))
            }
        }
        return wholeInput ? ByteBuffer(bytes: FileHandle.standardInput.readDataToEndOfFile()) : nil
    }
}

/// Publishes messages without waiting for each acknowledgement, up to a limit of unacknowledged messages.
struct MQTTPublisher: Sendable {
    private let client: MQTTClient
    /// The outcomes of the publications, in the order in which they arrive.
    private let outcomes: AsyncStream<Result<MQTTClient.ReasonCode, any Error>>
    private let report: AsyncStream<Result<MQTTClient.ReasonCode, any Error>>.Continuation
    /// The first failure among the outcomes, for ``requireSuccess()``.
    private let failures: AsyncStream<any Error>
    private let reportFailure: AsyncStream<any Error>.Continuation
    private let count: Count

    /// The number of unacknowledged messages. Only one task changes it.
    private actor Count {
        let window: Int
        var open = 0
        /// Whether nothing more will be published.
        private(set) var isComplete = false
        init(window: Int) { self.window = window }
        func complete() { isComplete = true }
        func add() { open += 1 }
        func remove() { open -= 1 }
        var isFull: Bool { open >= window }
        var isEmpty: Bool { open == 0 }
    }

    init(client: MQTTClient, window: Int) {
        self.client = client
        (outcomes, report) = AsyncStream.makeStream()
        (failures, reportFailure) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(1))
        count = Count(window: window)
    }

    /// Publishes a message. First waits while too many messages are unacknowledged.
    func publish(_ template: MQTTMessage, payload: ByteBuffer) async throws {
        var message = template
        message.payload = payload
        guard message.qos != .atMostOnce else {
            try await client.publish(message)
            return
        }
        while await count.isFull { try await takeOutcome() }
        await count.add()
        client.publish(message) { [report, reportFailure] outcome in
            if case .failure(let error) = outcome { _ = reportFailure.yield(error) }
            _ = report.yield(outcome)
        }
    }

    /// Waits for the first publication that fails.
    ///
    /// - Throws: the error of this publication; CancellationError.
    func requireSuccess() async throws {
        for await error in failures { throw error }
        throw CancellationError()
    }

    /// Throws if the client stops while there is more to publish, even if all messages so far are acknowledged. If it
    /// stops later, other tasks decide: all messages may have arrived. Never returns normally.
    ///
    /// - Throws: the reason for the end; CancellationError.
    func requireClient() async throws -> Never {
        do {
            try await client.stopped()
        } catch {
            guard await count.isComplete else { throw error }
        }
        while true { try await Task.sleep(for: .seconds(86_400)) }
    }

    /// Waits until all messages are acknowledged. Nothing may be published after this call.
    func finish() async throws {
        await count.complete()
        while await !count.isEmpty { try await takeOutcome() }
    }

    private func takeOutcome() async throws {
        for await outcome in outcomes {
            await count.remove()
            _ = try outcome.get()
            return
        }
        throw CancellationError()
    }
}

/// Splits bytes into lines. A line need not be text.
struct ByteLineSplitter {
    private var rest = ByteBuffer()

    /// Returns the lines that are now complete, without their line ends.
    mutating func feed(_ bytes: [UInt8]) -> [ByteBuffer] {
        rest.writeBytes(bytes)
        var lines: [ByteBuffer] = []
        while let end = rest.readableBytesView.firstIndex(of: 0x0A) {
            guard let line = rest.readSlice(length: end - rest.readerIndex) else { break }
            rest.moveReaderIndex(forwardBy: 1)
            lines.append(line)
        }
        rest.discardReadBytes()
        return lines
    }

    /// Returns the last line if it has no line end; nil if nothing is left.
    mutating func finish() -> ByteBuffer? {
        defer { rest.clear() }
        return rest.readableBytes > 0 ? rest : nil
    }
}
