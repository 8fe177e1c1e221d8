// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import Testing

@Suite struct RoomTests {
    @Test(arguments: ["lobby", "a", "A-Z_0.9", String(repeating: "x", count: 64)])
    func goodNames(text: String) {
        #expect(RoomName(text)?.rawValue == text)
    }

    @Test(arguments: ["", "a b", "a/b", "ä", "#", "+", "a\n", "\u{0}", String(repeating: "x", count: 65)])
    func badNames(text: String) {
        #expect(RoomName(text) == nil)
    }

    /// Every state × event.
    @Test func membership() throws {
        typealias Event = RoomMembership.Event
        typealias Action = RoomMembership.Action
        typealias State = RoomMembership.State
        let lobby = try #require(RoomName("lobby"))
        let other = try #require(RoomName("other"))
        let events: [Event] = [.accepted(lobby), .entered(other), .entered(lobby), .spoke, .left, .removed]
        let expected: [(before: [Event], actions: [Action], states: [State])] = [
            (
                [], [.subscribe(lobby), .subscribe(other), .subscribe(lobby), .refuse, .refuse, .none],
                [.member(lobby), .member(other), .member(lobby), .outside, .outside, .gone]
            ),
            (
                [.accepted(lobby)],
                [
                    .none, .move(from: lobby, to: other), .none, .publish(lobby), .unsubscribeAndPublish(lobby),
                    .unsubscribe(lobby),
                ],
                [.member(lobby), .member(other), .member(lobby), .member(lobby), .gone, .gone]
            ),
            (
                [.accepted(lobby), .left], Array(repeating: .none, count: 6), Array(repeating: .gone, count: 6)
            ),
        ]
        for row in expected {
            for (index, event) in events.enumerated() {
                var membership = RoomMembership()
                for event in row.before { _ = membership.handle(event) }
                #expect(membership.handle(event) == row.actions[index])
                #expect(membership.state == row.states[index])
            }
        }
    }
}
