// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization

/// Bytes to stdout, whole and at once, and whether somebody has read them.
struct StandardOutput: Sendable {
    /// Where the bytes go; stdout but in tests.
    let descriptor: Int32

    init(descriptor: Int32 = STDOUT_FILENO) {
        self.descriptor = descriptor
        // Who writes to a reader that is gone is told by an error.
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

    /// Waits until the reader of a pipe has taken what was written: what is left in a pipe is gone with its reader. Returns
    /// at once where the output is none.
    ///
    /// - Throws: OutputFailure if the reader is gone; CancellationError.
    func drain() async throws {
        guard isPipe else { return }
        var looks = 0
        while true {
            var unread: Int32 = 0
            guard ioctl(descriptor, UInt(FIONREAD), &unread) == 0, unread > 0 else { return }
            var state = pollfd(fd: descriptor, events: 0, revents: 0)
            _ = poll(&state, 1, 0)
            if state.revents & Int16(POLLERR | POLLHUP) != 0 { throw OutputFailure(number: EPIPE) }
            try Task.checkCancellation()
            looks += 1
            // A reader that waits for it has it in a moment; nothing tells when one that does not is done.
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

/// What was to be printed could not be.
struct OutputFailure: Error, Hashable, CustomStringConvertible {
    /// The system's number.
    let number: Int32

    /// Nobody reads any more: that is no error to speak of, `head` does it all the time.
    var isClosed: Bool { number == EPIPE }

    var description: String {
        "cannot print: \(String(cString: strerror(number))); what was not printed comes again next time"
    }
}

/// Whether what arrived last is printed: only then does it count as taken. Shared by the loop that prints and the end of
/// the command.
final class PrintProgress: Sendable {
    private let unprinted = Mutex(false)

    /// Something arrived that is to be printed.
    func arrived() { unprinted.withLock { $0 = true } }
    /// It is printed, or need not be.
    func printed() { unprinted.withLock { $0 = false } }
    /// Whether all that arrived is printed.
    var isComplete: Bool { unprinted.withLock { !$0 } }
}
