// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import Testing

@Suite struct ReconnectTicketsTests {
    private static let now = Timestamp(rawValue: 1_800_000_000_000)
    private static let key = [UInt8](repeating: 7, count: 32)

    @Test func `a ticket is good for its account, for an hour, at every server with the key`() throws {
        let ann = try #require(UserID(7))
        let bob = try #require(UserID(8))
        let ticket = ReconnectTickets(key: Self.key).issue(to: ann, now: Self.now)
        let tickets = ReconnectTickets(key: Self.key)
        #expect(ticket.count == 28 && ticket.count <= 64)
        #expect(tickets.isValid(ticket, of: ann, now: Self.now))
        #expect(!tickets.isValid(ticket, of: bob, now: Self.now))
        #expect(tickets.isValid(ticket, of: ann, now: Self.now.advanced(by: .seconds(3600))))
        #expect(!tickets.isValid(ticket, of: ann, now: Self.now.advanced(by: .seconds(3601))))
        #expect(!ReconnectTickets().isValid(ticket, of: ann, now: Self.now))
    }

    @Test func `a ticket is good at every node of a record`() async throws {
        let ann = try #require(UserID(7))
        let store = MemoryStore()
        let ticket = try await ReconnectTickets(sharedIn: store).issue(to: ann, now: Self.now)
        #expect(try await ReconnectTickets(sharedIn: store).isValid(ticket, of: ann, now: Self.now))
        #expect(try await !ReconnectTickets(sharedIn: MemoryStore()).isValid(ticket, of: ann, now: Self.now))
    }

    @Test func `a ticket that was changed anywhere is none`() throws {
        let ann = try #require(UserID(7))
        let tickets = ReconnectTickets(key: Self.key)
        let ticket = tickets.issue(to: ann, now: Self.now)
        for index in ticket.indices {
            var changed = ticket
            changed[index] ^= 1
            #expect(!tickets.isValid(changed, of: ann, now: Self.now), "byte \(index)")
            #expect(!tickets.isValid(Array(ticket.prefix(index)), of: ann, now: Self.now))
        }
        #expect(!tickets.isValid(ticket + [0], of: ann, now: Self.now))
    }
}
