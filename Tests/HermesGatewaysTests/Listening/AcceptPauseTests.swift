// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import Logging
import NIOCore
import NIOEmbedded
import Testing

@testable import HermesGateways

@Suite struct AcceptPauseTests {
    private func channel() throws -> EmbeddedChannel {
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let channel = EmbeddedChannel(handler: AcceptPauseHandler(logger))
        try channel.connect(to: SocketAddress(unixDomainSocketPath: "/tmp/none")).wait()
        return channel
    }

    private func reads(_ channel: EmbeddedChannel) throws -> Bool {
        try #require(channel.syncOptions).getOption(.autoRead)
    }

    @Test(arguments: [EMFILE, ENFILE, ENOBUFS, ENOMEM])
    func `out of descriptors or memory, nothing is read for a second`(code: CInt) throws {
        let channel = try channel()
        channel.pipeline.fireErrorCaught(IOError(errnoCode: code, reason: "accept"))
        try channel.throwIfErrorCaught()
        #expect(try !reads(channel))
        channel.embeddedEventLoop.advanceTime(by: .milliseconds(900))
        #expect(try !reads(channel))
        channel.embeddedEventLoop.advanceTime(by: .milliseconds(100))
        #expect(try reads(channel))
        #expect(channel.isActive)
    }

    @Test
    func `a peer that has gone before it was accepted changes nothing`() throws {
        let channel = try channel()
        channel.pipeline.fireErrorCaught(IOError(errnoCode: ECONNABORTED, reason: "accept"))
        try channel.throwIfErrorCaught()
        #expect(try reads(channel))
    }
}
