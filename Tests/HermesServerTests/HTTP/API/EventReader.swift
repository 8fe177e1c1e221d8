// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore
import NIOPosix

@testable import HermesServer

/// Reads a stream of events from the API. ``withEvents(_:of:accept:_:)`` creates readers.
struct EventReader {
    struct Event: Sendable {
        /// The name of the event; ":" for a comment.
        let name: String
        let data: JSON
    }

    /// The head of the answer.
    private(set) var head = ""
    let channel: any Channel
    private var inbound: NIOAsyncChannelInboundStream<ByteBuffer>.AsyncIterator
    private var raw = ByteBuffer()
    private var text = ByteBuffer()

    fileprivate init(_ inbound: NIOAsyncChannelInboundStream<ByteBuffer>, _ channel: any Channel) {
        self.inbound = inbound.makeAsyncIterator()
        self.channel = channel
    }

    var status: Int { Int(head.split(separator: " ").dropFirst().first ?? "") ?? 0 }

    /// Returns the next event or comment; nil if the stream has ended.
    mutating func nextPart() async throws -> Event? {
        while true {
            if let end = text.readableBytesView.firstRange(of: Array("\n\n".utf8)) {
                let block = text.readString(length: end.lowerBound - text.readerIndex) ?? ""
                text.moveReaderIndex(forwardBy: 2)
                var fields: [Substring: Substring] = [:]
                for line in block.split(separator: "\n") {
                    let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
                    fields[parts[0]] = parts[1].dropFirst()
                }
                guard let name = fields["event"] else { return Event(name: ":", data: .null) }
                return Event(name: String(name), data: try JSONParser.parse(Array((fields["data"] ?? "").utf8)))
            }
            guard try await readChunk() else { return nil }
        }
    }

    /// Returns the next event; nil if the stream has ended.
    mutating func next() async throws -> Event? {
        while let event = try await nextPart() {
            if event.name != ":" { return event }
        }
        return nil
    }

    fileprivate mutating func readHead() async throws {
        while true {
            if let end = raw.readableBytesView.firstRange(of: Array("\r\n\r\n".utf8)) {
                head = raw.readString(length: end.upperBound - raw.readerIndex) ?? ""
                return
            }
            guard let bytes = try await inbound.next(isolation: #isolation) else { throw HTTPProbe.NoAnswer() }
            raw.writeImmutableBuffer(bytes)
        }
    }

    /// Reads a chunk (RFC 9112, section 7.1).
    private mutating func readChunk() async throws -> Bool {
        while true {
            if let line = raw.readableBytesView.firstRange(of: Array("\r\n".utf8)) {
                let digits = raw.readableBytesView[raw.readerIndex..<line.lowerBound]
                let size = Int(String(decoding: digits, as: UTF8.self), radix: 16) ?? 0
                if size == 0 { return false }
                let start = line.upperBound - raw.readerIndex
                if raw.readableBytes >= start + size + 2 {
                    raw.moveReaderIndex(forwardBy: start)
                    text.writeImmutableBuffer(raw.readSlice(length: size) ?? ByteBuffer())
                    raw.moveReaderIndex(forwardBy: 2)
                    return true
                }
            }
            guard let bytes = try await inbound.next(isolation: #isolation) else { return false }
            raw.writeImmutableBuffer(bytes)
        }
    }
}

/// Opens a stream while `body` runs.
///
/// - Parameter query: the query, including its question mark.
func withEvents<Result: Sendable>(
    _ query: String,
    of client: APIClient,
    _ body: (inout EventReader) async throws -> Result
) async throws -> Result {
    try await withEvents(
        path: "/v1/events\(query)",
        headers: ["Authorization: Bearer \(client.key)"],
        port: client.port,
        body
    )
}

/// The same function, but with any path and header fields.
func withEvents<Result: Sendable>(
    path: String,
    headers: [String],
    port: Int,
    _ body: (inout EventReader) async throws -> Result
) async throws -> Result {
    let channel = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
        // A small buffer ensures that little data waits outside the server.
        .channelOption(.socketOption(.so_rcvbuf), value: 32_768)
        .connect(host: "127.0.0.1", port: port) { channel in
            channel.eventLoop.makeCompletedFuture {
                try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
            }
        }
    return try await channel.executeThenClose { inbound, outbound in
        let fields = (["Host: localhost", "Accept: text/event-stream"] + headers).joined(separator: "\r\n")
        let head = "GET \(path) HTTP/1.1\r\n\(fields)\r\n\r\n"
        try await outbound.write(ByteBuffer(string: head))
        var reader = EventReader(inbound, channel.channel)
        try await reader.readHead()
        return try await body(&reader)
    }
}
