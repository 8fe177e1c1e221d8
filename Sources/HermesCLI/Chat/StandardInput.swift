// Hermes
// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Foundation

/// Reads stdin of any kind, in pieces and only on request, so that a long file is not read in advance.
///
/// A read runs on a separate queue, after `poll` has reported input. `poll` also watches a pipe, so that a
/// cancellation of the reading task can end it.
final class StandardInput: Sendable {
    private let queue = DispatchQueue(label: "hermes.stdin")
    private let descriptor: Int32
    private let wakeRead: Int32
    private let wakeWrite: Int32

    /// - Parameter descriptor: the file descriptor to read from: stdin, except in tests.
    init(descriptor: Int32 = STDIN_FILENO) throws {
        self.descriptor = descriptor
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw ClientFailure("no pipe: \(String(cString: strerror(errno)))") }
        wakeRead = ends[0]
        wakeWrite = ends[1]
    }

    deinit {
        close(wakeRead)
        close(wakeWrite)
    }

    /// Returns the next bytes; nil at the end of the input, or if the task is cancelled.
    func read(upTo maxBytes: Int = 16_384) async -> [UInt8]? {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                queue.async { [descriptor, wakeRead] in
                    continuation.resume(returning: Self.read(descriptor, upTo: maxBytes, wake: wakeRead))
                }
            }
        } onCancel: {
            var byte: UInt8 = 1
            _ = write(wakeWrite, &byte, 1)
        }
    }

    private static func read(_ descriptor: Int32, upTo maxBytes: Int, wake: Int32) -> [UInt8]? {
        while true {
            var descriptors = [
                pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
                pollfd(fd: wake, events: Int16(POLLIN), revents: 0),
            ]
            guard poll(&descriptors, 2, -1) >= 0 else {
                if errno == EINTR { continue }
                return nil
            }
            if descriptors[1].revents != 0 { return nil }
            guard descriptors[0].revents != 0 else { continue }
            var bytes = [UInt8](repeating: 0, count: maxBytes)
            let count = Foundation.read(descriptor, &bytes, bytes.count)
            if count < 0, errno == EINTR || errno == EAGAIN { continue }
            guard count > 0 else { return nil }
            bytes.removeSubrange(count...)
            return bytes
        }
    }
}

/// Splits bytes into lines.
struct LineSplitter {
    private var rest: [UInt8] = []

    /// Returns the lines that are now complete, without their line ends.
    mutating func feed(_ bytes: [UInt8]) -> [String] {
        var lines: [String] = []
        for part in bytes.split(separator: 0x0A, omittingEmptySubsequences: false).dropLast() {
            rest += part
            lines.append(line())
        }
        rest += bytes.split(separator: 0x0A, omittingEmptySubsequences: false).last ?? []
        return lines
    }

    /// Returns the last line if it has no line end; nil if nothing is left.
    mutating func finish() -> String? { rest.isEmpty ? nil : line() }

    private mutating func line() -> String {
        if rest.last == 0x0D { rest.removeLast() }
        defer { rest = [] }
        return String(decoding: rest, as: UTF8.self)
    }
}
