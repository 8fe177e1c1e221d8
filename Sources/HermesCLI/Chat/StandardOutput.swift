// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CoreFoundation  // On Linux, the compiler may find `stat` only in this module.
import Foundation
import Synchronization

/// Writes bytes to stdout without a buffer, and can wait until a pipe's reader has read them.
struct StandardOutput: Sendable {
    /// The file descriptor to which the bytes are written.
    let descriptor: Int32

    init(descriptor: Int32 = STDOUT_FILENO) {
        self.descriptor = descriptor
        // The signal is ignored, so that writing to a closed pipe returns an error instead.
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

    /// Waits until the reader of a pipe has read everything, because unread bytes are lost when the reader ends.
    /// Returns at once for other outputs.
    ///
    /// - Throws: OutputFailure if the reader is gone; CancellationError.
    func drain() async throws {
        guard isPipe else { return }
        var looks = 0
        while true {
            // The reader's state is examined before the number of unread bytes. If the reader has read everything and
            // then ended, this is not a failure.
            var state = pollfd(fd: descriptor, events: 0, revents: 0)
            _ = poll(&state, 1, 0)
            var unread: Int32 = 0
            guard ioctl(descriptor, UInt(FIONREAD), &unread) == 0, unread > 0 else { return }
            if state.revents & Int16(POLLERR | POLLHUP) != 0 { throw OutputFailure(number: EPIPE) }
            try Task.checkCancellation()
            looks += 1
            // An active reader soon reads the bytes, so the first checks follow each other quickly. An inactive reader
            // cannot be detected.
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

/// The error that is thrown if output could not be written.
struct OutputFailure: Error, Hashable, CustomStringConvertible {
    /// The system's error number.
    let number: Int32

    /// Whether the reader has closed the pipe. This is not an error: `head` always closes its pipe.
    var isClosed: Bool { number == EPIPE }

    /// The exit code of a command that ends because of this error.
    var exitCode: ExitCode { isClosed ? .failure : CommandOutput.failed }

    /// The description of the failure, without advice.
    var reason: String { "cannot print: \(String(cString: strerror(number)))" }

    var description: String {
        "\(reason); messages that were not printed are shown at the next start if the server stores them"
    }
}

/// Whether the last received item is printed. When the command ends, an item counts as taken only if it is printed. The
/// printing loop and the end of the command share this object.
final class PrintProgress: Sendable {
    private let unprinted = Mutex(false)

    /// Records that an item has arrived and will be printed.
    func arrived() { unprinted.withLock { $0 = true } }
    /// Records that the item is printed, or need not be printed.
    func printed() { unprinted.withLock { $0 = false } }
    /// Whether every received item is printed.
    var isComplete: Bool { unprinted.withLock { !$0 } }
}
