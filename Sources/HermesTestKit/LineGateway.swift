// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesGateways
package import HermesWire
package import NIOCore

/// A protocol of text lines, for tests of the layers below the protocols. The answer to `who` is the peer's address and
/// the name in its certificate; the answer to `big N` is N letters. `login` authenticates the connection, and `bye`
/// ends it. The answer to any other line is the line itself.
package struct LineGateway: Gateway {
    package static let name = "line"
    package static let title = "Line"
    package static let purpose = "tests"
    package static let defaultPort = 0
    package static let webSocketSubprotocol: String? = "line"

    package let idleTimeout: Duration
    package let maxFrameBytes: Int

    package init(environment: GatewayEnvironment) {
        idleTimeout = environment.settings.limits.idle
        maxFrameBytes = environment.settings.limits.maxFrameBytes
    }

    package func makeConnection(for connection: Connection) -> LineConnection { LineConnection(connection) }
}

/// A line without its line end.
package struct LineFrame: WireFrame {
    package let text: String

    package var encodedBytes: Int { text.utf8.count + 1 }

    package func write(into buffer: inout ByteBuffer) throws(WireError) { buffer.writeString(text + "\n") }
}

/// Cuts a stream into lines.
package struct LineDecoder: FrameDecoder {
    private let maxFrameBytes: Int

    package init(maxFrameBytes: Int) { self.maxFrameBytes = maxFrameBytes }

    package mutating func next(from buffer: inout ByteBuffer) throws(WireError) -> LineFrame? {
        let view = buffer.readableBytesView
        guard let end = view.firstIndex(of: UInt8(ascii: "\n")) else {
            if view.count > maxFrameBytes { throw WireError(.frameTooLong, "the line is too long") }
            return nil
        }
        let text = String(decoding: view[..<end], as: UTF8.self)
        buffer.moveReaderIndex(to: end + 1)
        return LineFrame(text: text)
    }
}

/// One connection of ``LineGateway``.
package final class LineConnection: GatewayConnection {
    package typealias Decoder = LineDecoder

    private let connection: Connection

    init(_ connection: Connection) { self.connection = connection }

    package func opened() { say("hello") }

    package func farewell(_ reason: CloseReason) { say("end \(reason.label)") }

    package func accessChanged() {}

    package func received(_ frame: LineFrame) {
        let words = frame.text.split(separator: " ")
        switch words.first {
        case "who": say("\(connection.remoteHost ?? "local") \(connection.certificateName ?? "-")")
        case "big": say(String(repeating: "x", count: min(words.last.flatMap { Int($0) } ?? 0, 1 << 20)))
        case "login":
            connection.authenticated()
            say("in")
        case "bye": connection.end(.finished)
        default: say(frame.text)
        }
    }

    private func say(_ text: String) { connection.write { $0.writeString(text + "\n") } }
}
