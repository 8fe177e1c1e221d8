// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesTestKit
import Testing

@testable import HermesServer

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// A program that listens on a Unix socket and closes each connection at once, or never answers. It does not use NIO,
/// because NIO would ignore SIGPIPE for the whole process.
private enum ClosingServer {
    struct Failed: Error {}

    static func start(at path: String, closes: Bool = true) throws {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        guard bytes.count < MemoryLayout.size(ofValue: address.sun_path) else { throw Failed() }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        #if canImport(Glibc)
        let listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        #else
        let listener = socket(AF_UNIX, SOCK_STREAM, 0)
        #endif
        guard listener >= 0 else { throw Failed() }
        let size = socklen_t(MemoryLayout<sockaddr_un>.size)
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(listener, $0, size) }
        }
        guard result == 0, listen(listener, 4) == 0 else { throw Failed() }
        Thread.detachNewThread {
            while true {
                let connection = accept(listener, nil, nil)
                guard connection >= 0 else { return }
                if closes { close(connection) }
            }
        }
    }
}

@Suite("Commands over the control socket", .inTurns, .timeLimit(.minutes(1)))
struct ControlClientTests {
    @Test func `a command does not wait for ever for a server that does not answer`() async throws {
        let directory = NSTemporaryDirectory() + "/h-\(UUID().uuidString.prefix(8))"
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        try ClosingServer.start(at: directory + "/" + ControlSocket.fileName, closes: false)
        let failure = await #expect(throws: ServerFailure.self) {
            try await ControlClient.ask(.stats(period: nil), directory: directory, limit: 1)
        }
        #expect(failure?.message.contains("did not answer within 1 s") == true)
    }

    @Test func `a server that closes the connection during the request does not end the command's process`() async {
        await #expect(processExitsWith: .success) {
            // A process inherits the ignored signals of its parent.
            signal(SIGPIPE, SIG_DFL)
            let directory = NSTemporaryDirectory() + "/h-\(UUID().uuidString.prefix(8))"
            try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
            defer { try? FileManager.default.removeItem(atPath: directory) }
            try ClosingServer.start(at: directory + "/" + ControlSocket.fileName)
            // The request is longer than the socket's buffer, so it is still being written.
            let request = ControlRequest.createAPIKey(name: String(repeating: "n", count: 8 << 20), scopes: "all")
            let failure = await #expect(throws: ServerFailure.self) {
                try await HermesServer.administer(
                    request,
                    arguments: ["--data.directory", directory],
                    environment: [:],
                    file: nil
                )
            }
            #expect(failure?.message.contains("did not answer") == true)
        }
    }
}
