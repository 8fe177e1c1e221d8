// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Hermes

/// The command `hermes sub`. It subscribes over MQTT and prints messages.
struct SubCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sub",
        abstract: "Subscribe over MQTT, to any broker, and print messages.",
        discussion: """
            The options are those of mosquitto_sub. Payloads are printed unchanged, each followed by a line end. At a \
            terminal, control characters in them appear as \u{FFFD}, so that no publisher can control the terminal. \
            mosquitto_sub prints control characters unchanged.

            Examples:
              hermes sub -t 'home/#' -v
              hermes sub -t home/kitchen/temperature -C 1 -W 10       the next one, at most for ten seconds
              hermes sub -t jobs -q 2 -i worker-1 -c                  also the messages since the last run
              hermes sub -t '$share/workers/jobs' -q 1                 shared with others of the group
              hermes sub -t 'home/#' -F '%I %t %p'
              hermes sub -t 'home/#' -F %j | jq .payload
              hermes sub -t 'home/#' -q 1 -D subscribe subscription-identifier 7 -F '%S %t'

            Formats (-F): %t topic, %p payload, %x and %X payload in hex, %q QoS, %r retained, %m packet number, %l \
            length, %I time (ISO 8601), %U time (Unix), %j JSON, %J JSON with a payload of JSON, %C content type, %D \
            correlation data, %E expiry, %F payload format, %P user properties, %R response topic, %S subscription \
            identifier, %A topic alias, %% itself; @Y, @m, @d, @H, @M, @S, @N and all others of strftime, @@ itself; \
            \\n \\t \\r \\0 \\a \\e \\v \\\\. Width and precision as in %-20t, %08x, %.10p.

            Exit codes: 0 for success; 27 if the time of -W has passed; the server's reason code if the server refuses \
            (with -V mqttv311, its return code); 1 if the server cannot be reached; 74 if a message cannot be printed.
            """,
        helpNames: .long
    )

    @Option(name: [.short, .long], help: ArgumentHelp("The topic filter; may be repeated.", valueName: "filter"))
    var topic: [String] = []

    @Option(
        name: [.customShort("U"), .long],
        help: ArgumentHelp("End this subscription of the session; may be repeated.", valueName: "filter")
    )
    var unsubscribe: [String] = []

    @Option(
        name: [.customShort("T"), .long],
        help: ArgumentHelp(
            "Do not print messages whose topics match this filter; may be repeated.",
            valueName: "filter"
        )
    )
    var filterOut: [String] = []

    @Option(name: [.short, .long], help: ArgumentHelp("The highest QoS: 0, 1 or 2.", valueName: "qos"))
    var qos = 0

    @Flag(name: [.customShort("v"), .long], help: "Print the topic before each payload.")
    var verbose = false

    @Flag(name: .customShort("N"), help: "Do not print a line end after each message.")
    var noEndOfLine = false

    @Option(
        name: [.customShort("F"), .long],
        parsing: .unconditional,
        help: ArgumentHelp("The format of the output; see above.", valueName: "format")
    )
    var format: String?

    @Flag(name: .customShort("R"), help: "Do not print retained messages.")
    var noRetained = false

    @Flag(help: "Print only retained messages; end at the first other message.")
    var retainedOnly = false

    @Flag(help: "Remove the retained messages that the server sends.")
    var removeRetained = false

    @Flag(help: "Keep the publisher's retain flag (MQTT 5.0).")
    var retainAsPublished = false

    @Option(name: .customShort("C"), help: ArgumentHelp("End after this many messages.", valueName: "n"))
    var count: Int?

    @Option(
        name: .customShort("W"),
        help: ArgumentHelp("End this many seconds after the start, with the exit code 27.", valueName: "seconds")
    )
    var wait: Double?

    @Flag(name: .customShort("E"), help: "End once the server has answered the subscriptions.")
    var endOnceSubscribed = false

    @OptionGroup(title: "Connection") var options: MQTTOptions

    func validate() throws {
        guard !filters.isEmpty || !unsubscribe.isEmpty else {
            throw ValidationError("the topic is missing: give -t or -U")
        }
        guard (0...2).contains(qos) else { throw ValidationError("-q \(qos): must be 0, 1 or 2") }
        if let count, count < 1 { throw ValidationError("-C \(count): must be at least 1") }
        if let wait, !(0.001...1e9).contains(wait) { throw ValidationError("-W \(wait): must be 0.001 to 1000000000") }
        if noRetained, retainedOnly { throw ValidationError("-R and --retained-only cannot be used together") }
        if let format { _ = try MQTTFormat(format) }
    }

    private var filters: [String] { topic + (options.urlTopic.map { [$0] } ?? []) }

    func run() async throws {
        let run = MQTTCommandRun(name: "sub", options: options)
        let printer = MQTTPrinter(
            format: try format.map { try MQTTFormat($0) },
            showsTopic: verbose,
            endsLine: !noEndOfLine,
            isTerminal: isatty(STDOUT_FILENO) == 1
        )
        let progress = PrintProgress()
        let end = wait.map { ContinuousClock.now + .seconds($0) }
        try await run.with(options.configuration(), progress, until: end) { client in
            try await withThrowingTaskGroup(of: ExitCode?.self) { group in
                defer { group.cancelAll() }
                if let end { group.addTask { try await run.timeOut(at: end) } }
                group.addTask {
                    await Interrupts.wait()
                    return .success
                }
                group.addTask {
                    await run.watch(client)
                    return nil
                }
                group.addTask {
                    try await client.stopped()
                    return nil
                }
                group.addTask {
                    try await subscribe(client, run)
                    // Messages are printed only after the SUBACK. Messages that arrive earlier wait in the client. If
                    // the command ended before the SUBACK, the server might not read the acknowledgements of these
                    // messages.
                    if endOnceSubscribed { return .success }
                    return try await receive(client, printer, run, progress)
                }
                while let end = try await group.next() {
                    guard let end else { continue }
                    let dropped = await client.droppedMessages
                    if dropped > 0 {
                        run.say("\(dropped) messages of QoS 0 were dropped: they arrived faster than they were printed")
                    }
                    if end == .success { return }
                    throw end
                }
            }
        }
    }

    private func subscribe(_ client: MQTTClient, _ run: MQTTCommandRun) async throws {
        if !unsubscribe.isEmpty { try await client.unsubscribe(unsubscribe) }
        guard !filters.isEmpty else { return }
        var identifier: Int?
        for property in options.property.of(.subscribe) {
            if case .subscriptionIdentifier(let number) = property { identifier = number }
        }
        let qos = MQTTClient.QoS(rawValue: UInt8(clamping: qos)) ?? .atMostOnce
        let subscriptions = filters.map { filter in
            MQTTClient.Subscription(filter, qos: qos, retainAsPublished: retainAsPublished)
        }
        let reasons = try await client.subscribe(subscriptions, identifier: identifier)
        run.debug("subscribed: \(reasons.map { "\($0)" }.joined(separator: ", "))")
        for (filter, reason) in zip(filters, reasons) where reason.isFailure {
            run.say("the server refused the subscription \(filter): \(reason)")
        }
        if let reason = reasons.first, reasons.allSatisfy(\.isFailure) { throw ExitCode(Int32(reason.rawValue)) }
    }

    /// Prints each message before it requests the next one, because the request acknowledges the printed message.
    private func receive(
        _ client: MQTTClient,
        _ printer: MQTTPrinter,
        _ run: MQTTCommandRun,
        _ progress: PrintProgress
    ) async throws -> ExitCode {
        var printed = 0
        for await message in client.messages {
            // If a broker sends faster than a terminal prints, the loop may never wait. So it must check for
            // cancellation itself.
            try Task.checkCancellation()
            progress.arrived()
            if retainedOnly, !message.retain { return .success }
            if try await show(message, client, printer, run) { printed += 1 }
            progress.printed()
            if let count, printed >= count { return .success }
        }
        // Throws the reason if the client has stopped because of an error.
        try await client.stopped()
        return .failure
    }

    /// - Returns: whether the message was printed; false if the options exclude it, or if the format cannot be applied
    ///   to it.
    private func show(
        _ message: MQTTMessage,
        _ client: MQTTClient,
        _ printer: MQTTPrinter,
        _ run: MQTTCommandRun
    ) async throws -> Bool {
        if filterOut.contains(where: { MQTTTopicMatch.matches(message.topic, $0) }) { return false }
        if removeRetained, message.retain {
            client.publish(MQTTMessage(topic: message.topic, retain: true)) { _ in }
        }
        if noRetained, message.retain { return false }
        do {
            try await printer.print(message)
            return true
        } catch let error as OutputFailure {
            if !error.isClosed { run.say("\(error)") }
            throw error.exitCode
        } catch let error as CancellationError {
            throw error
        } catch {
            run.say("\(error)")
            return false
        }
    }
}
