// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import Testing

@Suite struct ContactPairTests {
    /// All pairs of rows that can occur.
    enum Standing: CaseIterable {
        case strangers, requested, incoming, accepted, blocking, blocked, bothBlock

        var pair: ContactPair {
            let wants = ContactRow(wants: true)
            let blocks = ContactRow(blocks: true)
            return switch self {
            case .strangers: ContactPair()
            case .requested: ContactPair(own: wants)
            case .incoming: ContactPair(other: wants)
            case .accepted: ContactPair(own: wants, other: wants)
            case .blocking: ContactPair(own: blocks)
            case .blocked: ContactPair(other: blocks)
            case .bothBlock: ContactPair(own: blocks, other: blocks)
            }
        }
    }

    enum Expected: Equatable {
        case becomes(Standing, ContactEvent.Kind?)
        case refused(HermesError.Code)
    }

    /// The expected results, in the order of `ContactCommand.allCases`: request, accept, decline, remove, block,
    /// unblock.
    static let table: [Standing: [Expected]] = [
        .strangers: [
            .becomes(.requested, .requested), .refused(.notFound), .refused(.notFound), .refused(.notFound),
            .becomes(.blocking, nil), .becomes(.strangers, nil),
        ],
        .requested: [
            .becomes(.requested, nil), .refused(.notFound), .refused(.notFound), .becomes(.strangers, .removed),
            .becomes(.blocking, .removed), .becomes(.requested, nil),
        ],
        .incoming: [
            .becomes(.accepted, .accepted), .becomes(.accepted, .accepted), .becomes(.strangers, .declined),
            .becomes(.strangers, .declined), .becomes(.blocking, .declined), .becomes(.incoming, nil),
        ],
        .accepted: [
            .becomes(.accepted, nil), .becomes(.accepted, nil), .refused(.notFound), .becomes(.strangers, .removed),
            .becomes(.blocking, .removed), .becomes(.accepted, nil),
        ],
        .blocking: [
            .refused(.forbidden), .refused(.notFound), .refused(.notFound), .refused(.notFound),
            .becomes(.blocking, nil), .becomes(.strangers, nil),
        ],
        .blocked: [
            .refused(.forbidden), .refused(.notFound), .refused(.notFound), .refused(.notFound),
            .becomes(.bothBlock, nil), .becomes(.blocked, nil),
        ],
        .bothBlock: [
            .refused(.forbidden), .refused(.notFound), .refused(.notFound), .refused(.notFound),
            .becomes(.bothBlock, nil), .becomes(.blocked, nil),
        ],
    ]

    @Test(arguments: Standing.allCases)
    func `every command`(in standing: Standing) throws {
        let row = try #require(Self.table[standing])
        #expect(row.count == ContactCommand.allCases.count)
        for (command, expected) in zip(ContactCommand.allCases, row) {
            var pair = standing.pair
            let found: Expected
            do throws(HermesError) {
                let kind = try pair.apply(command)
                let after = Standing.allCases.first { $0.pair == pair }
                if after == nil { Issue.record("\(command) of \(standing) makes an impossible pair") }
                found = .becomes(after ?? .strangers, kind)
            } catch {
                found = .refused(error.code)
                #expect(pair == standing.pair, "a refused \(command) changed something")
            }
            #expect(found == expected, "\(command) of \(standing)")
        }
    }

    @Test func `states follow from the rows`() {
        let states = Standing.allCases.map(\.pair.state)
        #expect(states == [nil, .requested, .incoming, .accepted, .blocked, nil, .blocked])
    }
}
