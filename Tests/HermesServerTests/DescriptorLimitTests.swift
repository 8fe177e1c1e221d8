// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesGateways
import HermesServer
import Testing

@Suite struct DescriptorLimitTests {
    /// The size of this process's table of descriptors; nil if the system does not report it.
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
        // A value above the system's limit or an invalid value has no effect.
        DescriptorLimit.reserve(.max)
        DescriptorLimit.reserve(-1)
        #expect(DescriptorLimit.current()?.soft == UInt64(limit))
    }

    @Test(arguments: [1_024, 4_096, 20_000, 65_536, 1 << 20])
    func `all connections fit into the descriptors, and leave some to the operator`(files: Int) {
        let total = ConnectionCounter.total(fitting: files)
        let all = ConnectionCounter.most(total: total)
        // These are the connections of the console, and the store's files.
        let others = min(2_048 + 128, total / 4 + 128) + 64
        #expect(all + others <= files)
        #expect(all > files / 3, "few are wasted")
    }

    @Test(arguments: [64, 200, 256, 500, 1_024])
    func `with few descriptors every port has some connections, and the server keeps what it needs`(files: Int) {
        let shares = DescriptorShares(of: files)
        let total = ConnectionCounter.total(fitting: files)
        #expect(total == shares.gateways && total > 1 && shares.http.floor > 1)
        let all = ConnectionCounter.most(total: total, files: files)
        let console = ConnectionCounter(total: total, perAddress: 1_000, http: shares.console)
        var held = 0
        while console.addHTTP(.v4(UInt32(held / 2))) == nil { held += 1 }
        // The store, a backup and the listeners need about 60 descriptors.
        #expect(all + held + min(60, files / 4) <= files)
        // The counter enforces the shares.
        let counter = ConnectionCounter(total: total, perAddress: 1_000, http: shares.http)
        var (gateways, http) = (0, 0)
        while counter.add(.v4(UInt32(gateways))) == nil { gateways += 1 }
        while counter.addHTTP(.v4(UInt32(http / 2))) == nil { http += 1 }
        #expect(gateways == total && gateways + http == all)
    }

    @Test
    func `with no descriptors at all nothing traps`() {
        for files in [-1, 0, 1, 2, 3, .max] {
            let shares = DescriptorShares(of: files)
            #expect(shares.gateways >= 1 && shares.own >= 0 && shares.http.floor >= 0)
        }
    }
}
