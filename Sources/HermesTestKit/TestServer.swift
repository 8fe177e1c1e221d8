// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
package import HermesCore
import HermesGateways
package import HermesServer
import Logging
import Synchronization

/// The kind of store of a TestServer.
package enum TestStore: Sendable, CaseIterable {
    case memory
    /// SQLite, in a separate directory that is removed afterwards.
    case sqlite
}

/// Runs a whole server in this process, on free ports of 127.0.0.1, for as long as `body` runs.
///
/// ```
/// try await withServer(store: .sqlite) { server in
///     let client = try HermesClient(.init(server: .init(port: server.port("delimited")), …))
///     …
///     try await server.restart()  // the same data, the same ports
/// }
/// ```
///
/// - Parameters:
///   - store: the kind of store.
///   - time: the server's clocks.
///   - configure: changes the settings before the start. Each port that it does not set is a free port.
///   - body: gets the server once it is ready.
/// - Throws: the errors of the server and of `body`.
package func withServer<Result: Sendable>(
    store: TestStore = .memory,
    time: any TimeSource = SystemTime(),
    configure: (inout ServerSettings) -> Void = { _ in },
    _ body: (TestServer) async throws -> Result
) async throws -> Result {
    // The path is short, because a Unix socket's path has at most 107 bytes.
    let directory = NSTemporaryDirectory() + "/h-" + String(UInt32.random(in: 0 ... .max), radix: 36)
    defer { try? FileManager.default.removeItem(atPath: directory) }
    var settings = try TestServer.settings(store: store, directory: directory)
    configure(&settings)
    let server = TestServer(settings, time: time)
    return try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { await server.serve() }
        let outcome: Swift.Result<Result, any Error>
        do {
            try await server.ready()
            outcome = .success(try await body(server))
        } catch {
            outcome = .failure(error)
        }
        await server.stop()
        try await group.waitForAll()
        return try outcome.get()
    }
}

/// A server in this process, which `withServer` creates.
///
/// State: one `Mutex`. Continuations are resumed outside the lock.
package final class TestServer: Sendable {
    private enum Phase {
        case starting
        case ready(ServerAssembly)
        case stopped(ServerFailure?)
    }

    private struct State {
        var settings: ServerSettings
        var phase = Phase.starting
        var ports: [String: Int] = [:]
        var stop: (@Sendable () async -> Void)?
        var restarts = false
        var waiting: [CheckedContinuation<Void, any Error>] = []
    }

    private let state: Mutex<State>
    private let time: any TimeSource
    /// The recent log lines for the server's console. The server does not log to anything else.
    private let tail: LogTail
    private let logger: Logger
    /// The store for `.memory`. It outlives restarts.
    private let memory: MemoryStore

    fileprivate init(_ settings: ServerSettings, time: any TimeSource) {
        state = Mutex(State(settings: settings))
        memory = MemoryStore(settings: settings.storeSettings)
        self.time = time
        let tail = LogTail()
        self.tail = tail
        logger = Logger(label: "test") { label in
            LineLogHandler(level: .info, format: .logfmt, label: label, tail: tail) { _ in }
        }
    }

    /// Returns the default settings, with free ports and cheap password hashes.
    package static func settings(store: TestStore, directory: String) throws -> ServerSettings {
        var settings = try ServerSettings.defaults()
        settings.data.directory = directory
        settings.data.storeKind = store == .memory ? .memory : .sqlite
        settings.process.eventLoops = 2
        settings.process.shutdownDeadline = .seconds(2)
        settings.accounts.passwordParameters = PasswordHasher.Parameters(ln: 4, r: 8, p: 1)
        settings.useFreePorts()
        return settings
    }

    /// Returns the port of a listener ("impb", "liveroom", "qsiop", "delimited", "mqtt" or "http"); 0 if it is not
    /// open.
    package func port(_ name: String) -> Int { state.withLock { $0.ports[name] ?? 0 } }

    /// The data directory.
    package var dataDirectory: String { state.withLock { $0.settings.data.directory } }

    /// Returns the core of the running server.
    /// - Throws: if the server is not running.
    package func messenger() throws -> Messenger { try assembly().messenger }

    /// Returns the number of connections of devices.
    package func connectedDevices() throws -> Int { try messenger().devices.count }

    /// Returns the running server.
    /// - Throws: if the server is not running.
    package func assembly() throws -> ServerAssembly {
        guard case .ready(let assembly) = state.withLock({ $0.phase }) else { throw NotRunning() }
        return assembly
    }

    /// Stops the server like SIGTERM, and starts another with the same data and ports.
    package func restart(configure: (inout ServerSettings) -> Void = { _ in }) async throws {
        let stop = state.withLock { state in
            state.restarts = true
            state.settings.usePorts(state.ports)
            configure(&state.settings)
            state.phase = .starting
            return state.stop
        }
        await stop?()
        try await ready()
    }

    /// Begins to stop the server, like SIGTERM. Does not wait until the server has stopped.
    package func stop() async {
        let stop = state.withLock { $0.stop }
        await stop?()
    }

    /// Waits until the server is ready.
    /// - Throws: the reason why the server did not start.
    func ready() async throws {
        try await withCheckedThrowingContinuation { continuation in
            let answer: Swift.Result<Void, any Error>? = state.withLock { state in
                switch state.phase {
                case .starting:
                    state.waiting.append(continuation)
                    return nil
                case .ready: return .success(())
                case .stopped(let failure): return .failure(failure ?? NotRunning() as any Error)
                }
            }
            if let answer { continuation.resume(with: answer) }
        }
    }

    fileprivate func serve() async {
        var retries = 200
        repeat {
            let settings = state.withLock { state in
                state.restarts = false
                return state.settings
            }
            do throws(ServerFailure) {
                let assembly = try await ServerAssembly.start(
                    settings,
                    logger: logger,
                    tail: tail,
                    time: time,
                    memory: memory
                )
                try await assembly.run(
                    stop: { stop in self.state.withLock { $0.stop = stop } },
                    ready: { addresses in
                        let ports = addresses.map { ($0.name, $0.port) }
                        self.move(to: .ready(assembly), ports: Dictionary(ports) { first, _ in first })
                    }
                )
            } catch {
                // Another test may briefly use a port that this server had before its restart, so the server tries
                // again.
                let mayBeFree = error.exitCode == .addressUnavailable && state.withLock { !$0.ports.isEmpty }
                guard mayBeFree, retries > 0 else { return move(to: .stopped(error)) }
                retries -= 1
                state.withLock { $0.restarts = true }
                try? await Task.sleep(for: .milliseconds(100))
            }
        } while state.withLock { $0.restarts }
        move(to: .stopped(nil))
    }

    private func move(to phase: Phase, ports: [String: Int]? = nil) {
        let waiting = state.withLock { state in
            state.phase = phase
            if let ports { state.ports = ports }
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting {
            switch phase {
            case .starting, .ready: continuation.resume()
            case .stopped(let failure): continuation.resume(throwing: failure ?? NotRunning() as any Error)
            }
        }
    }
}

/// The error that the server is not running.
private struct NotRunning: Error {}

extension ServerSettings {
    /// Sets all listeners to free ports.
    fileprivate mutating func useFreePorts() { usePorts([:]) }

    /// Sets the ports of listeners. A listener that is not in `ports` gets a free port.
    fileprivate mutating func usePorts(_ ports: [String: Int]) {
        for (name, _, _) in gateways.listeners { gateways[listener: name]?.port = ports[name] ?? 0 }
        http.listener.port = ports["http"] ?? 0
        console.listener.port = ports["console"] ?? 0
    }
}
