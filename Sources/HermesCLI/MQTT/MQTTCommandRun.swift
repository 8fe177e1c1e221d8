// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Hermes

/// The common part of `hermes pub` and `hermes sub`: it connects, reports errors and determines exit codes.
struct MQTTCommandRun: Sendable {
    /// "pub" or "sub".
    let name: String
    let options: MQTTOptions
    /// The output for errors and for reports about the connection.
    var errors = StandardOutput(descriptor: STDERR_FILENO)

    /// The exit code of a timeout. mosquitto_sub has the same exit code.
    static let timedOut = ExitCode(27)

    /// Connects, runs the body, and disconnects.
    ///
    /// - Parameters:
    ///   - configuration: the client's settings.
    ///   - progress: whether the last message is printed.
    ///   - end: the time at which to stop trying to connect. The body must check this time itself while it runs.
    ///   - body: the code that uses the connected client.
    /// - Throws: the errors of the body and the ExitCode of a timeout. Three kinds of errors become an ExitCode: a
    ///   HermesClientError becomes the server's reason code (with MQTT 3.1.1, the return code), or 1 if there is none;
    ///   a ClientFailure becomes its own code; and an interruption of the command becomes success.
    func with(
        _ configuration: MQTTClient.Configuration,
        _ progress: PrintProgress = PrintProgress(),
        until end: ContinuousClock.Instant? = nil,
        _ body: nonisolated(nonsending) (MQTTClient) async throws -> Void
    ) async throws {
        do {
            let client = try MQTTClient(configuration)
            do {
                let connection = try await connect(client, until: end)
                debug("connected as \(connection.clientID), session present: \(connection.sessionPresent)")
                try await body(client)
                await client.close(takingLastMessage: progress.isComplete)
            } catch {
                await client.close(takingLastMessage: progress.isComplete)
                throw error
            }
        } catch let error as HermesClientError {
            say(error.message)
            throw exitCode(error)
        } catch let error as ClientFailure {
            say(error.message)
            throw error.exitCode
        } catch is CancellationError {
            throw ExitCode.success
        }
    }

    /// Connects. Does not try again after a failure, because a user is waiting for the command.
    private func connect(
        _ client: MQTTClient,
        until end: ContinuousClock.Instant?
    ) async throws -> MQTTClient.Connection {
        try await withThrowingTaskGroup(of: MQTTClient.Connection?.self) { group in
            defer { group.cancelAll() }
            if let end { group.addTask { throw try await timeOut(at: end) } }
            group.addTask { try await client.connect() }
            group.addTask {
                for await state in client.states {
                    switch state {
                    case .waiting(let error, _): throw error
                    case .live: return nil
                    default: continue
                    }
                }
                return nil
            }
            while let connection = try await group.next() {
                if let connection { return connection }
            }
            throw CancellationError()
        }
    }

    /// Waits until the command's time is over.
    ///
    /// - Returns: the exit code.
    func timeOut(at end: ContinuousClock.Instant) async throws -> ExitCode {
        try await Task.sleep(until: end, clock: .continuous)
        say("timed out")
        return Self.timedOut
    }

    /// Reports each lost connection and, with `-d`, each reconnection. Returns when the client has stopped or the task
    /// is cancelled.
    func watch(_ client: MQTTClient) async {
        var isLost = false
        for await state in client.states {
            switch state {
            case .waiting(let error, _):
                isLost = true
                say("\(error.message); trying again")
            case .live:
                if isLost { debug("connected again") }
                isLost = false
            default: continue
            }
        }
    }

    func say(_ text: String) {
        if !options.quiet { tell(text) }
    }

    func debug(_ text: String) {
        if options.debug { tell(text) }
    }

    private func tell(_ text: String) {
        // Without standard error, the text is lost.
        try? errors.write(Array(StandardError.line(text, as: "hermes \(name)").utf8))
    }

    /// Returns the server's reason code (with MQTT 3.1.1, the return code), or 1 if there is none.
    func exitCode(_ error: HermesClientError) -> ExitCode {
        guard let reason = error.mqttReason else { return ExitCode.failure }
        guard (try? options.version()) == .v311 else { return ExitCode(Int32(reason.rawValue)) }
        switch reason.rawValue {
        case 0x84: return ExitCode(1)
        case 0x85: return ExitCode(2)
        case 0x88: return ExitCode(3)
        case 0x86: return ExitCode(4)
        case 0x87: return ExitCode(5)
        default: return ExitCode.failure
        }
    }
}
