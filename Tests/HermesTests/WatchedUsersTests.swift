// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import Testing

@testable import Hermes

@Suite struct WatchedUsersTests {
    private func request(watch: [UInt32] = [], unwatch: [UInt32] = []) -> Hermes_V1_PresenceRequest {
        var request = Hermes_V1_PresenceRequest()
        request.watchUids = watch
        request.unwatchUids = unwatch
        return request
    }

    @Test func `at most 1,000 accounts are named again on the next connection`() {
        var watched = WatchedUsers()
        watched.apply(request(watch: Array(1...999)))
        watched.apply(request(watch: [5000, 6000, 7000]))
        #expect(watched.sorted == Array(1...999) + [5000])
        watched.apply(request(watch: [6000, 7000], unwatch: [1]))
        #expect(watched.sorted == Array(2...999) + [5000, 6000])
    }

    @Test func `a request that the server refuses changes nothing`() {
        var watched = WatchedUsers()
        watched.apply(request(watch: Array(1...1001)))
        watched.apply(request(watch: [7, 0]))
        watched.apply(request(watch: [7, 1 << 31]))
        #expect(watched.isEmpty)
        watched.apply(request(watch: [7]))
        watched.apply(request(unwatch: [7, 0]))
        #expect(watched.sorted == [7])
    }
}
