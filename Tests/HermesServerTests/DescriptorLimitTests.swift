// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesGateways
import HermesServer
import Testing

@Suite struct DescriptorLimitTests {
    /// The size of this process's table of descriptors; nil where the system does not tell.
    private static var tableSize: Int? {
        guard let status = try? String(contentsOfFile: "/proc/self/status", encoding: .utf8) else { return nil }
        let line = status.split(separator: "\n").first { $0.hasPrefix("FDSize:") }
        return line?.split(separator: "\t").last.flatMap { Int($0) }
    }

    @Test(.enabled(if: tableSize != nil))
    func `there is room for all connections before the first one comes`() throws {
        let limit = Int(clamping: try #require(DescriptorLimit.raise()).soft)
        let wanted = min(limit, 12_345)
        DescriptorLimit.reserve(wanted)
        #expect(try #require(Self.tableSize) >= wanted)
        // More than the system allows, or nonsense, has no effect.
        DescriptorLimit.reserve(.max)
        DescriptorLimit.reserve(-1)
        #expect(DescriptorLimit.current()?.soft == UInt64(limit))
    }

    @Test(arguments: [1_024, 4_096, 20_000, 65_536, 1 << 20])
    func `all connections fit into the descriptors, and leave some to the operator`(files: Int) {
        let total = ConnectionCounter.total(fitting: files)
        let all = ConnectionCounter.most(total: total)
        // Those of the console, and the store's files.
        let others = min(2_048 + 128, total / 4 + 128) + 64
        #expect(all + others <= files)
        #expect(all > files / 3, "few are wasted")
    }

    @Test
    func `with very few descriptors there is room for some connections all the same`() {
        for files in [0, 1, 256] { #expect(ConnectionCounter.total(fitting: files) == 64) }
    }
}
