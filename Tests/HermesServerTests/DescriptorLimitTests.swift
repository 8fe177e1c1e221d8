// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesServer
import Testing

@Suite struct DescriptorLimitTests {
    /// The size of this process's table of descriptors; nil where the system does not tell.
    private var tableSize: Int? {
        guard let status = try? String(contentsOfFile: "/proc/self/status", encoding: .utf8) else { return nil }
        let line = status.split(separator: "\n").first { $0.hasPrefix("FDSize:") }
        return line?.split(separator: "\t").last.flatMap { Int($0) }
    }

    @Test
    func `there is room for all connections before the first one comes`() throws {
        guard tableSize != nil else { return }
        let limit = Int(clamping: try #require(DescriptorLimit.raise()).soft)
        let wanted = min(limit, 12_345)
        DescriptorLimit.reserve(wanted)
        #expect(try #require(tableSize) >= wanted)
        // More than the system allows, or nonsense, has no effect.
        DescriptorLimit.reserve(.max)
        DescriptorLimit.reserve(-1)
        #expect(DescriptorLimit.current()?.soft == UInt64(limit))
    }
}
