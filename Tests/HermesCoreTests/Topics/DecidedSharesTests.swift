// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import Testing

@testable import HermesCore

@Suite(.inTurns, .timeLimit(.minutes(1))) struct DecidedSharesTests {
    private func group(_ number: Int) throws -> DurableGroup {
        DurableGroup(name: "\(number)", filter: try #require(TopicFilter("t")), members: [], turn: .init())
    }

    private func shares(_ count: Int) throws -> DecidedShares? {
        let targets = try (0..<count).map { DurableTarget.group(try group($0)) }
        return DecidedShares(targets)
    }

    @Test(arguments: [0, 1, 8, 9, 1_000])
    func `those of the targets are decided, and no others`(_ count: Int) throws {
        guard let decided = try shares(count) else {
            #expect(count == 0)
            return
        }
        let keys = try (0...count).map { try group($0).key }
        #expect(keys.dropLast().allSatisfy { decided.contains($0) })
        #expect(!decided.contains(keys[count]))
    }

    @Test func `a publication of another node is decided for all`() throws {
        let key = try group(0).key
        #expect(DecidedShares.all.contains(key))
    }

    /// Each connected group of a topic looks for its key in the shares of each publication. So the cost of such a
    /// search must not grow with the number of somebody's groups.
    @Test func `a question costs the same, however many are decided`() throws {
        let unknown = try group(-1).key
        func time(_ shares: DecidedShares) -> Duration {
            ContinuousClock().measure {
                for _ in 0..<200 where shares.contains(unknown) { Issue.record("decided") }
            }
        }
        let few = try #require(try shares(9))
        let many = try #require(try shares(20_000))
        let pairs = (0..<5).map { _ in (time(few), time(many)) }
        // A comparison with each key would take a thousand times as long.
        #expect(pairs.contains { $1 < $0 * 50 }, "\(pairs)")
    }
}
