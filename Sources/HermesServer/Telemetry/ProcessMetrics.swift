// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesGateways

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The operating system's figures for this process, under the names that are common to Prometheus clients.
struct ProcessMetrics {
    var residentBytes: Int64?
    var openDescriptors: Int?
    var maxDescriptors: UInt64?
    var cpuSeconds: Double

    static func read() -> ProcessMetrics {
        ProcessMetrics(
            residentBytes: residentBytes(),
            openDescriptors: try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count,
            maxDescriptors: DescriptorLimit.current()?.soft,
            // CLOCKS_PER_SEC is a million (POSIX).
            cpuSeconds: Double(clock()) / 1_000_000
        )
    }

    func write(to text: inout MetricsText) {
        text.begin("process_cpu_seconds_total", kind: "counter")
        text.add("process_cpu_seconds_total", "", MetricsText.number(cpuSeconds))
        if let residentBytes {
            text.begin("process_resident_memory_bytes", kind: "gauge")
            text.add("process_resident_memory_bytes", "", String(residentBytes))
        }
        if let openDescriptors {
            text.begin("process_open_fds", kind: "gauge")
            text.add("process_open_fds", "", String(openDescriptors))
        }
        if let maxDescriptors {
            text.begin("process_max_fds", kind: "gauge")
            text.add("process_max_fds", "", String(maxDescriptors))
        }
    }

    /// Returns the resident memory in bytes; nil if there is no file /proc/self/statm. The second number in this file
    /// is the resident memory in pages.
    private static func residentBytes() -> Int64? {
        guard let statm = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8) else { return nil }
        let numbers = statm.split(separator: " ")
        guard numbers.count > 1, let pages = Int64(numbers[1]) else { return nil }
        return pages * Int64(sysconf(Int32(_SC_PAGESIZE)))
    }
}
