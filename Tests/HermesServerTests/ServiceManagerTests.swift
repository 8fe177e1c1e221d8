// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesGateways
import HermesSQLite
import HermesTestKit
import Logging
import Synchronization
import Testing

@testable import HermesServer

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The socket of a service manager.
private final class ManagerSocket: Sendable {
    struct Failed: Error {}

    /// The value of the environment variable.
    let name: String
    private let descriptor: Int32

    /// - Parameter name: a path, or "@" followed by an abstract name.
    init(_ name: String) throws {
        self.name = name
        #if canImport(Glibc)
        descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
        #else
        descriptor = socket(AF_UNIX, SOCK_DGRAM, 0)
        #endif
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let isAbstract = name.hasPrefix("@")
        let bytes: [UInt8] = isAbstract ? [0] + Array(name.utf8.dropFirst()) : Array(name.utf8) + [0]
        let room = MemoryLayout.size(ofValue: address.sun_path)
        guard descriptor >= 0, bytes.count <= room else { throw Failed() }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        let size = socklen_t(MemoryLayout<sockaddr_un>.size - room + bytes.count)
        let own = descriptor
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(own, $0, size) }
        }
        guard result == 0 else { throw Failed() }
    }

    deinit { close(descriptor) }

    /// The messages that have arrived since the last call, each as its lines.
    func messages() -> [[String]] {
        var all: [[String]] = []
        var buffer = [UInt8](repeating: 0, count: 4_096)
        while true {
            let count = buffer.withUnsafeMutableBytes { bytes in
                recv(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_DONTWAIT))
            }
            guard count > 0 else { return all }
            all.append(String(decoding: buffer[..<count], as: UTF8.self).split(separator: "\n").map(String.init))
        }
    }
}

@Suite("Messages to the service manager", .inTurns, .timeLimit(.minutes(1)))
struct ServiceManagerTests {
    private static let silent = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    private static let more = "EXTEND_TIMEOUT_USEC=120000000"

    private func withDirectory(_ body: (String) async throws -> Void) async throws {
        // The path is short, because a Unix socket's path has at most 107 bytes.
        let directory = NSTemporaryDirectory() + "/h-\(UUID().uuidString.prefix(8))"
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        try await body(directory)
    }

    private func makeManager(_ socket: String, _ logger: Logger = ServiceManagerTests.silent) -> ServiceManager? {
        ServiceManager(environment: [ServiceManager.variable: socket], logger: logger)
    }

    private func expectMessages(over socket: ManagerSocket) throws {
        let manager = try #require(makeManager(socket.name))
        manager.starting("starting: opening the store")
        manager.starting(nil)
        manager.ready()
        manager.reloading()
        manager.stopping()
        let messages = socket.messages()
        let first = ["STATUS=starting: opening the store", Self.more, "READY=1", "RELOADING=1", "STOPPING=1"]
        #expect(messages.map { $0.first ?? "" } == first)
        #expect(messages.first?.last == Self.more)
        let prefix = "MONOTONIC_USEC="
        let clock = try #require(messages.dropFirst(3).first?.first { $0.hasPrefix(prefix) })
        #expect(Int(clock.dropFirst(prefix.count)) ?? 0 > 0)
    }

    @Test func `each state is one message, over a path`() async throws {
        try await withDirectory { try expectMessages(over: ManagerSocket($0 + "/notify")) }
    }

    #if os(Linux)
    @Test func `each state is one message, over an abstract name`() throws {
        try expectMessages(over: ManagerSocket("@hermes-test-\(UUID())"))
    }
    #endif

    @Test func `without the variable there is nobody to tell`() {
        #expect(ServiceManager(environment: [:], logger: Self.silent) == nil)
        #expect(makeManager("") == nil)
        #expect(HealthState().manager == nil)
    }

    @Test func `a manager that cannot be told is logged once`() async throws {
        try await withDirectory { directory in
            for name in [directory + "/none", "vsock:2:1234", "/" + String(repeating: "x", count: 200)] {
                let lines = LoggedText()
                let manager = try #require(makeManager(name, lines.logger()))
                manager.ready()
                manager.stopping()
                #expect(lines.all.count == 1, "\(name)")
                #expect(lines.all.first?.contains("level=warning") == true, "\(name)")
                #expect(lines.all.first?.contains("error=") == true, "\(name)")
            }
        }
    }

    @Test func `each step of the start asks for more time, until the server is ready`() async throws {
        try await withDirectory { directory in
            let socket = try ManagerSocket(directory + "/notify")
            let health = HealthState(manager: makeManager(socket.name))
            health.note(.checking)
            health.note(.working)
            health.note(.migrating(name: "028 numbers"))
            #expect(health.text == "starting: bringing the database to this version (028 numbers)")
            let start = [
                ["STATUS=starting: checking the database, which the last run did not close", Self.more], [Self.more],
                ["STATUS=starting: bringing the database to this version (028 numbers)", Self.more],
            ]
            #expect(socket.messages() == start)
            health.advance(to: .ready)
            health.advance(to: .ready)
            health.note(.working)
            health.starting("too late")
            #expect(socket.messages() == [["READY=1", "STATUS=ready"]])
            health.advance(to: .draining)
            health.advance(to: .draining)
            #expect(socket.messages() == [["STOPPING=1", "STATUS=draining"]])
        }
    }

    @Test func `a server tells of its start and its stop`() async throws {
        try await withDirectory { directory in
            let socket = try ManagerSocket(directory + "/notify")
            let assembly = try await ServerAssembly.start(
                TestServer.settings(store: .sqlite, directory: directory + "/data"),
                logger: Self.silent,
                environment: [ServiceManager.variable: socket.name]
            )
            let start = socket.messages()
            #expect(start.first == ["STATUS=starting: opening the store", Self.more])
            #expect(start.contains(["STATUS=starting: opening the listeners", Self.more]))
            let stop = Mutex<(@Sendable () async -> Void)?>(nil)
            let atReady = Mutex<[[String]]>([])
            try await assembly.run(
                stop: { function in stop.withLock { $0 = function } },
                ready: { _ in
                    atReady.withLock { $0 = socket.messages() }
                    let function = stop.withLock { $0 }
                    Task { await function?() }
                }
            )
            #expect(atReady.withLock { $0 } == [["READY=1", "STATUS=ready"]])
            #expect(socket.messages() == [["STOPPING=1", "STATUS=draining"]])
        }
    }

    @Test func `a reload is told when it begins and when it has ended`() async throws {
        try await withDirectory { directory in
            let socket = try ManagerSocket(directory + "/notify")
            let health = HealthState(manager: makeManager(socket.name))
            health.advance(to: .ready)
            _ = socket.messages()
            let during = try await reload(health) { socket.messages() }
            #expect(during.map { $0.first ?? "" } == ["RELOADING=1"])
            #expect(socket.messages() == [["READY=1", "STATUS=ready"]])
        }
    }

    @Test func `a reload during the start or the stop does not tell that the server is ready`() async throws {
        try await withDirectory { directory in
            let socket = try ManagerSocket(directory + "/notify")
            let health = HealthState(manager: makeManager(socket.name))
            #expect(try await reload(health) { socket.messages() } == [])
            #expect(socket.messages() == [])
            health.advance(to: .draining)
            #expect(socket.messages() == [["STOPPING=1", "STATUS=draining"]])
            #expect(try await reload(health) { socket.messages() } == [])
            #expect(socket.messages() == [])
        }
    }

    /// Reads the files again, as after one SIGHUP.
    ///
    /// - Returns: the messages that have arrived when the files are read.
    private func reload(
        _ health: HealthState,
        _ messages: @escaping @Sendable () -> [[String]]
    ) async throws -> [[String]] {
        let (hangups, hangup) = AsyncStream<Void>.makeStream()
        hangup.yield()
        hangup.finish()
        let during = Mutex<[[String]]>([])
        let service = ReloadService(
            certificates: ServerCertificates(listeners: [], http: nil, console: nil, logger: Self.silent),
            files: try AccessFiles(AccessSettings(), logger: Self.silent),
            pushKeys: { during.withLock { $0 = messages() } },
            settingsFile: nil,
            hangups: hangups,
            health: health
        )
        try await service.run()
        return during.withLock { $0 }
    }
}
