// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Reads what a process on this machine uses, from /proc.
struct ServerProbe: Sendable {
    let pid: Int32

    /// The CPU time that a process had used at a moment.
    struct CPUTime: Hashable, Sendable {
        /// Of each thread, by its id, in nanoseconds; of the whole process under "" where threads cannot be read.
        var threads: [String: UInt64]

        /// What was used since an earlier moment, in nanoseconds. Threads that have ended meanwhile do not count: their
        /// earlier time is not to be taken from what the others used.
        func nanoseconds(since earlier: CPUTime) -> UInt64 {
            threads.reduce(0) { sum, thread in
                let before = earlier.threads[thread.key] ?? 0
                return sum + (thread.value - min(thread.value, before))
            }
        }
    }

    /// Nil if the process cannot be read.
    init?(pid: Int32) {
        self.pid = pid
        guard cpuTime() != nil else { return nil }
    }

    /// The CPU time so far: from the threads' schedstat, to the nanosecond; else from stat, in 10 ms steps.
    func cpuTime() -> CPUTime? {
        let tasks = "/proc/\(pid)/task"
        var threads: [String: UInt64] = [:]
        for task in (try? FileManager.default.contentsOfDirectory(atPath: tasks)) ?? [] {
            // One that ended since the folder was read has no file any more.
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
        // The command in parentheses may hold spaces; utime and stime are the 12th and 13th field behind it.
        guard let end = text.lastIndex(of: ")") else { return nil }
        let fields = text[text.index(after: end)...].split(separator: " ")
        guard fields.count > 12, let user = UInt64(fields[11]), let system = UInt64(fields[12]) else { return nil }
        return (user + system) * 10_000_000
    }

    /// Its resident memory in bytes.
    func residentBytes() -> Int? {
        guard let text = try? String(contentsOfFile: "/proc/\(pid)/statm", encoding: .utf8) else { return nil }
        let fields = text.split(separator: " ")
        guard fields.count > 1, let pages = Int(fields[1]) else { return nil }
        return pages * Int(sysconf(Int32(_SC_PAGESIZE)))
    }
}
