// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The limit on this process's open files and connections.
package struct DescriptorLimit {
    package var soft: UInt64
    package var hard: UInt64

    /// Returns the limit; nil if the system does not report it.
    package static func current() -> DescriptorLimit? {
        var limit = rlimit()
        #if canImport(Glibc)
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return nil }
        #else
        guard getrlimit(RLIMIT_NOFILE, &limit) == 0 else { return nil }
        #endif
        return DescriptorLimit(soft: UInt64(limit.rlim_cur), hard: UInt64(limit.rlim_max))
    }

    /// Raises the limit as far as the system allows.
    /// - Returns: the new limit.
    package static func raise() -> DescriptorLimit? {
        var limit = rlimit()
        #if canImport(Glibc)
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        #else
        let resource = RLIMIT_NOFILE
        #endif
        guard getrlimit(resource, &limit) == 0 else { return nil }
        limit.rlim_cur = limit.rlim_max
        // A refusal leaves the old limit, which current() then returns.
        _ = setrlimit(resource, &limit)
        return current()
    }

    /// Makes room for this number of descriptors, as far as the limit allows. Without this room, Linux enlarges the
    /// process's table of descriptors when the table is full. All threads that open or close a descriptor then have to
    /// wait. On a busy machine, they wait for about a second.
    package static func reserve(_ count: Int) {
        let most = min(UInt64(max(0, count)), current()?.soft ?? 0, 1 << 20)
        guard most > 0 else { return }
        // Using the highest allowed number for a moment enlarges the table.
        let descriptor = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, Int32(most) - 1)
        if descriptor >= 0 { close(descriptor) }
    }
}
