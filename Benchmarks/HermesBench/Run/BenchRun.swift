// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// A value that a benchmark's handlers share. The value is confined to their event loop. Tasks outside the loop reach
/// it through this type.
struct BenchRun<Value>: Sendable {
    /// The value, for handlers that are created on the event loop.
    let bound: NIOLoopBound<Value>
    let loop: any EventLoop

    /// Creates the value on the event loop.
    init(on loop: any EventLoop, _ make: @escaping @Sendable () throws -> Value) async throws {
        self.loop = loop
        bound = try await loop.submit { NIOLoopBound(try make(), eventLoop: loop) }.get()
    }

    /// Runs the body on the event loop.
    @discardableResult
    func on<Result: Sendable>(_ body: @escaping @Sendable (Value) throws -> Result) async throws -> Result {
        try await loop.submit { [bound] in try body(bound.value) }.get()
    }

    /// Checks a condition periodically until it is true, for at most `seconds`.
    ///
    /// - Returns: whether the condition became true.
    func wait(
        seconds: Double,
        every interval: Duration = .milliseconds(50),
        until isDone: @escaping @Sendable (Value) -> Bool
    ) async throws -> Bool {
        let end = ContinuousClock.now + .seconds(seconds)
        while try await !on(isDone) {
            guard ContinuousClock.now < end else { return false }
            try await Task.sleep(for: interval)
        }
        return true
    }
}

/// The received bytes of a connection's incomplete frame.
struct BenchInbox {
    private var rest = ByteBuffer()

    /// Adds received bytes, and keeps those that `scan` leaves.
    ///
    /// - Parameter scan: parses the bytes, and returns the number of bytes in complete frames.
    mutating func add(_ bytes: ByteBuffer, scan: (UnsafeRawBufferPointer) -> Int) {
        var buffer = bytes
        if rest.readableBytes > 0 {
            rest.writeImmutableBuffer(buffer)
            swap(&rest, &buffer)
        }
        let consumed = buffer.withUnsafeReadableBytes(scan)
        buffer.moveReaderIndex(forwardBy: consumed)
        // Copy the remaining bytes, so that the large buffer is freed.
        rest = buffer.readableBytes > 0 ? ByteBuffer(bytes: buffer.readableBytesView) : ByteBuffer()
    }
}

extension BenchTransport {
    /// Opens a channel for each number in a range, fifty at a time. The handlers are created on the event loop.
    ///
    /// - Parameters:
    ///   - indices: the numbers of the channels.
    ///   - opened: is called after each fifty channels, with the number of open channels.
    func connect(
        _ indices: Range<Int>,
        opened: (Int) async throws -> Void = { _ in },
        _ makeHandler: @escaping @Sendable (Int) -> any ChannelHandler
    ) async throws -> [any Channel] {
        var channels: [any Channel] = []
        var rest = indices
        while !rest.isEmpty {
            let batch = rest.prefix(50)
            rest = rest.dropFirst(50)
            channels += try await withThrowingTaskGroup(of: (any Channel).self) { group in
                for index in batch {
                    group.addTask { try await connect(number: index) { makeHandler(index) } }
                }
                var channels: [any Channel] = []
                for try await channel in group { channels.append(channel) }
                return channels
            }
            try await opened(channels.count)
        }
        return channels
    }
}
