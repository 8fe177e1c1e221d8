// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesTestKit
import Logging
import NIOCore
import NIOPosix
import Testing

@testable import HermesGateways

@Suite(.inTurns, .timeLimit(.minutes(1))) struct AcceptPauseTests {
    private static let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

    /// A listener that fails once to accept a connection, with this error.
    private func listener(failingWith code: CInt) async throws -> any Channel {
        let listener = try await ServerBootstrap(group: NIOSingletons.posixEventLoopGroup)
            .pausingWithoutDescriptors(Self.logger)
            .bind(host: "127.0.0.1", port: 0).get()
        let error = IOError(errnoCode: code, reason: "accept")
        try await listener.eventLoop.submit { listener.pipeline.fireErrorCaught(error) }.get()
        return listener
    }

    private func reads(_ channel: any Channel) async throws -> Bool { try await channel.getOption(.autoRead).get() }

    @Test(arguments: [EMFILE, ENFILE, ENOBUFS, ENOMEM])
    func `out of descriptors or memory, nothing is accepted for a second`(code: CInt) async throws {
        let listener = try await listener(failingWith: code)
        let before = ContinuousClock.now
        #expect(try await !reads(listener))
        while try await !reads(listener) { try await Task.sleep(for: .milliseconds(10)) }
        #expect(ContinuousClock.now - before > .milliseconds(800))
        // The listener accepts connections again.
        let client = try await ClientBootstrap(group: NIOSingletons.posixEventLoopGroup)
            .connect(to: #require(listener.localAddress)).get()
        try await client.close()
        try await listener.close()
    }

    @Test
    func `a peer that has gone before it was accepted changes nothing`() async throws {
        let listener = try await listener(failingWith: ECONNABORTED)
        #expect(try await reads(listener))
        try await listener.close()
    }

    @Test
    func `a listener that is closed during the pause does not crash when the pause ends`() async throws {
        let listener = try await listener(failingWith: EMFILE)
        try await listener.close()
        try await Task.sleep(for: .milliseconds(1_100))
        #expect(!listener.isActive)
    }
}
