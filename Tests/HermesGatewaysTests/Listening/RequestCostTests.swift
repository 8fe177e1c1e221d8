// Hermes
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import HermesGateways

/// The costs of requests, as listed in docs/security.md.
@Suite struct RequestCostTests {
    private static let prices: [(cost: RequestCost, units: Int)] = [
        (.packet, 1),
        (.furtherFrames(0), 0), (.furtherFrames(1), 1), (.furtherFrames(24), 1), (.furtherFrames(25), 2),
        (.bytes(8_191), 0), (.bytes(8_192), 1), (.bytes(16_383), 1), (.bytes(16_384), 2),
        (.json(1_023), 0), (.json(1_024), 1), (.json(2_047), 1), (.json(2_048), 2),
        (.parts(11), 0), (.parts(12), 1), (.parts(4_096), 341),
        (.filters(1, isKept: false), 1), (.filters(3, isKept: false), 3),
        (.filters(1, isKept: true), 2), (.filters(3, isKept: true), 6),
        (.records(99), 0), (.records(100), 1), (.records(199), 1), (.records(200), 2),
        (.properties(14), 0), (.properties(15), 1), (.properties(29), 1), (.properties(30), 2),
        (.levels(15), 0), (.levels(16), 1), (.levels(31), 1), (.levels(32), 2),
        (.matches(31), 0), (.matches(32), 1), (.matches(63), 1), (.matches(64), 2),
        (.recipients(0), 0), (.recipients(1), 1), (.recipients(500), 500),
        (.queues(1), 0), (.queues(2), 1), (.queues(3), 1), (.queues(100), 50), (.queues(10_000), 5_000),
        (.devices(1, bytes: 0), 1), (.devices(1, bytes: 16_383), 1), (.devices(1, bytes: 16_384), 2),
        (.devices(3, bytes: 16_384), 6), (.devices(4, bytes: 4_096), 5),
        (.listeners(0), 0), (.listeners(1), 1), (.listeners(2), 1), (.listeners(3), 2),
        (.watchers(0), 0), (.watchers(1), 2), (.watchers(49), 98), (.watchers(50), 100), (.watchers(5_000), 100),
        (.viewers(31), 0), (.viewers(32), 1), (.viewers(63), 1), (.viewers(64), 2),
        (.topic(bytes: 1_023), 0), (.topic(bytes: 1_024), 1), (.topic(bytes: 65_535), 63),
        (.page(entries: 0), 15), (.page(entries: 3), 15), (.page(entries: 4), 16), (.page(entries: 100), 40),
        (.watched(0), 0), (.watched(1), 1), (.watched(4), 3), (.watched(5), 4), (.watched(1_000), 750),
        (.lookup, 20), (.change, 4), (.group, 20), (.login, 20), (.password, 2_000),
    ]

    @Test func `each request costs what the table says`() {
        for (cost, units) in Self.prices { #expect(cost.units == units, "\(cost)") }
    }

    @Test func `a publication's copies make its publisher's turn end sooner`() {
        #expect(RequestCost.receivers(31, topicBytes: 0).units == 0)
        #expect(RequestCost.receivers(32, topicBytes: 0).units == 1)
        #expect(RequestCost.receivers(63, topicBytes: 1_024).units == 1)
        #expect(RequestCost.receivers(64, topicBytes: 1_024).units == 3)
    }

    @Test func `only logins and passwords cost the connection nothing`() {
        for (cost, _) in Self.prices {
            let isLogin = cost == .login || cost == .password
            #expect(cost.isOfConnection == !isLogin, "\(cost)")
        }
    }
}
