// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Reads what a process on this machine uses, from /proc.
struct ServerProbe: Sendable {
    let pid: Int32

    /// Nil if the process cannot be read.
    init?(pid: Int32) {
        self.pid = pid
        guard cpuNanoseconds() != nil else { return nil }
    }

    /// The CPU time of all its threads so far: from their schedstat, to the nanosecond; else from stat, in 10 ms steps.
    func cpuNanoseconds() -> UInt64? {
        let tasks = "/proc/\(pid)/task"
        var total: UInt64 = 0
        for task in (try? FileManager.default.contentsOfDirectory(atPath: tasks)) ?? [] {
            guard
                let text = try? String(contentsOfFile: "\(tasks)/\(task)/schedstat", encoding: .utf8),
                let first = text.split(separator: " ").first,
                let time = UInt64(first)
            else { return cpuTicks() }
            total += time
        }
        return total > 0 ? total : cpuTicks()
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
