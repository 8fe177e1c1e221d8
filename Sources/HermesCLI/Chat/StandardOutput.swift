// Hermes
// SPDX-License-Identifier: Apache-2.0

import CoreFoundation  // On Linux the compiler may find `stat` in it, and then nowhere else.
import Foundation
import Synchronization

/// Writes bytes to stdout unbuffered, and waits for their reader.
struct StandardOutput: Sendable {
    /// The output; stdout except in tests.
    let descriptor: Int32

    init(descriptor: Int32 = STDOUT_FILENO) {
        self.descriptor = descriptor
        // Writing to a closed pipe returns an error instead.
        signal(SIGPIPE, SIG_IGN)
    }

    /// Writes all of the bytes.
    ///
    /// - Throws: OutputFailure; a part of the bytes may have been written.
    func write(_ bytes: [UInt8]) throws(OutputFailure) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            if count < 0, errno == EAGAIN {
                var waiting = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                _ = poll(&waiting, 1, -1)
                continue
            }
            guard count > 0 else { throw OutputFailure(number: errno) }
            rest = rest.dropFirst(count)
        }
    }

    /// Waits until the reader of a pipe has read everything, because unread bytes are lost with their reader. Returns
    /// at once for other outputs.
    ///
    /// - Throws: OutputFailure if the reader is gone; CancellationError.
    func drain() async throws {
        guard isPipe else { return }
        var looks = 0
        while true {
            // In this order: a reader that has read all of it and is gone since took what it was given.
            var state = pollfd(fd: descriptor, events: 0, revents: 0)
            _ = poll(&state, 1, 0)
            var unread: Int32 = 0
            guard ioctl(descriptor, UInt(FIONREAD), &unread) == 0, unread > 0 else { return }
            if state.revents & Int16(POLLERR | POLLHUP) != 0 { throw OutputFailure(number: EPIPE) }
            try Task.checkCancellation()
            looks += 1
            // An active reader takes a moment; an inactive one cannot be detected.
            if looks < Self.quickLooks {
                await Task.yield()
            } else {
                try await Task.sleep(for: .milliseconds(1))
            }
        }
    }

    private static let quickLooks = 50

    private var isPipe: Bool {
        var status = stat()
        return fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFIFO
    }
}

/// Output could not be written.
struct OutputFailure: Error, Hashable, CustomStringConvertible {
    /// The system's error number.
    let number: Int32

    /// Whether the reader is gone. This is not an error: `head` does it all the time.
    var isClosed: Bool { number == EPIPE }

    var description: String {
        "cannot print: \(String(cString: strerror(number))); unprinted messages come again next time"
    }
}

/// Whether the last arrival is printed, so that it counts as taken. Shared by the printing loop and the end of the
/// command.
final class PrintProgress: Sendable {
    private let unprinted = Mutex(false)

    /// An item arrived that will be printed.
    func arrived() { unprinted.withLock { $0 = true } }
    /// It is printed, or need not be.
    func printed() { unprinted.withLock { $0 = false } }
    /// Whether every arrival is printed.
    var isComplete: Bool { unprinted.withLock { !$0 } }
}
