// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Reads the resource use of a process on this machine from /proc.
struct ServerProbe: Sendable {
    let pid: Int32

    /// The processor time of a process at a moment.
    struct CPUTime: Hashable, Sendable {
        /// The time of each thread in nanoseconds, by the thread's id. If the times of threads cannot be read, the key
        /// "" has the time of the whole process.
        var threads: [String: UInt64]

        /// The processor time since an earlier moment, in nanoseconds. Threads that have ended since then do not count,
        /// and their earlier time does not count either.
        func nanoseconds(since earlier: CPUTime) -> UInt64 {
            threads.reduce(0) { sum, thread in
                let before = earlier.threads[thread.key] ?? 0
                return sum + (thread.value - min(thread.value, before))
            }
        }
    }

    /// Creates a probe; nil if the process cannot be read.
    init?(pid: Int32) {
        self.pid = pid
        guard cpuTime() != nil else { return nil }
    }

    /// Returns the processor time so far, from the `schedstat` files of the threads. If these files show no time,
    /// returns the time of the process from `stat`, in steps of 10 ms.
    func cpuTime() -> CPUTime? {
        let tasks = "/proc/\(pid)/task"
        var threads: [String: UInt64] = [:]
        for task in (try? FileManager.default.contentsOfDirectory(atPath: tasks)) ?? [] {
            // A thread that has just ended has no file.
            guard
                let text = try? String(contentsOfFile: "\(tasks)/\(task)/schedstat", encoding: .utf8),
                let first = text.split(separator: " ").first,
                let time = UInt64(first)
            else { continue }
            threads[task] = time
        }
        if threads.values.contains(where: { $0 > 0 }) { return CPUTime(threads: threads) }
        return cpuTicks().map { CPUTime(threads: ["": $0]) }
    }

    private func cpuTicks() -> UInt64? {
        guard let text = try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8) else { return nil }
        // The command in parentheses may contain spaces. The fields utime and stime are the 12th and 13th field after
        // the command.
        guard let end = text.lastIndex(of: ")") else { return nil }
        let fields = text[text.index(after: end)...].split(separator: " ")
        guard fields.count > 12, let user = UInt64(fields[11]), let system = UInt64(fields[12]) else { return nil }
        return (user + system) * 10_000_000
    }

    /// Returns the resident memory, in bytes.
    func residentBytes() -> Int? {
        guard let text = try? String(contentsOfFile: "/proc/\(pid)/statm", encoding: .utf8) else { return nil }
        let fields = text.split(separator: " ")
        guard fields.count > 1, let pages = Int(fields[1]) else { return nil }
        return pages * Int(sysconf(Int32(_SC_PAGESIZE)))
    }
}
