// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// The cases for the limits of waiting entries, and for the senders whom these limits stop.
extension MessageStoreConformance {
    /// Returns settings with a limit of 40 entries for an inbox by default, of which 10 may come from one sender.
    private static func settings(entries: Int = 40, bytes: Int = 1 << 20, unread: Int = 1 << 20) -> StoreSettings {
        var settings = StoreSettings()
        settings.inbox = InboxBudget(maxEntries: entries, maxBytes: bytes)
        settings.maxUnreadBytes = unread
        return settings
    }

    static let budgets = [
        ConformanceCase("One sender fills a quarter of an inbox, strangers half, contacts all of it") { makeStore in
            let world = try await StoreWorld(makeStore, people: 6, settings: settings())
            for number in 1...10 { try world.send("a\(number)", from: 0, to: 5, clientID: "c\(number)") }
            try expectEqual(try world.refusal(.append(world.message("x", from: 0, to: 5))), .inboxFull)
            // Only this one inbox is full for the sender. A repetition does not count as a further message.
            try world.send("elsewhere", from: 0, to: 4)
            let again = world.message("a3", from: 0, to: 5, clientID: "c3")
            guard case .duplicate = try world.commit(.append(again)) else {
                throw ConformanceFailure(description: "not a duplicate")
            }
            for number in 1...10 { try world.send("\(number)", from: 1, to: 5) }
            // Strangers have filled half of the inbox. The other half is for contacts.
            try expectEqual(try world.refusal(.append(world.message("x", from: 4, to: 5))), .inboxFull)
            for sender in 2...3 {
                try expectEqual(try world.refusal(.append(world.message("x", from: sender, to: 5))), .inboxFull)
                _ = try world.commit(.contact(.request, by: world[5], peer: world[sender].user, message: ""))
                for number in 1...10 { try world.send("\(number)", from: sender, to: 5) }
            }
            // Now the inbox is full for messages of all senders, but not for other entries of contacts.
            try expectEqual(try world.refusal(.append(world.message("x", from: 3, to: 5))), .inboxFull)
            let stranger = WriteOperation.contact(.request, by: world[4], peer: world[5].user, message: "")
            try expectEqual(try world.refusal(stranger), .inboxFull)
            let request = WriteOperation.contact(.request, by: world[3], peer: world[5].user, message: "")
            guard case .eventAppended(let told) = try world.commit(request) else {
                throw ConformanceFailure(description: "refused")
            }
            try expectEqual(told.count, 1)
            try expectEqual(try await world.inbox(5).count, 41)
        },
        ConformanceCase("A refused message leaves nothing behind, and goes through once there is room") { makeStore in
            let world = try await StoreWorld(makeStore, settings: settings())
            for number in 1...10 { try world.send("\(number)", from: 0, to: 1) }
            let late = world.message("late", from: 0, to: 1, clientID: "late")
            try expectEqual(try world.refusal(.append(late)), .inboxFull)
            try expectEqual(try await world.inbox(0).count, 10)
            try world.acknowledge(0)
            try world.acknowledge(1)
            try await world.purge()
            guard case .appended(let receipt, _) = try world.commit(.append(late)) else {
                throw ConformanceFailure(description: "not appended")
            }
            try expectEqual(receipt.conversationSeq, 11)
        },
        ConformanceCase("What lies in all inboxes is counted, and what found no room") { makeStore in
            let world = try await StoreWorld(makeStore, people: 4, settings: settings(unread: 24 * 129))
            for number in 0..<10 { try world.send("\(number)", from: 0, to: 1, lifetime: .seconds(60)) }
            try expectEqual(try world.refusal(.append(world.message("x", from: 0, to: 1))), .inboxFull)
            // Each of the ten messages also has a copy in the sender's inbox.
            try expectEqual(world.store.inboxes.now.holding, Holding(entries: 20, bytes: 20 * 129))
            try expectEqual(world.store.inboxes.takeLargest(), Holding(entries: 10, bytes: 10 * 129))
            try expectEqual(world.store.inboxes.takeLargest(), Holding(), "nothing has come since")
            let long = String(repeating: "x", count: 24 * 129)
            try expectEqual(try world.refusal(.append(world.message(long, from: 2, to: 3))), .tooMuchUnread)
            try expectEqual(world.store.inboxes.now.refused, 1)
            try expectEqual(world.store.inboxes.now.refusedUnread, 1)
            try world.acknowledge(1, upTo: 4)
            try await world.purge()
            try expectEqual(world.store.inboxes.now.holding, Holding(entries: 16, bytes: 16 * 129))
            try await world.purge(at: StoreWorld.later(.seconds(61)))
            try expectEqual(world.store.inboxes.now.holding, Holding())
        },
        ConformanceCase("Bytes count as well, and come back when entries expire") { makeStore in
            let world = try await StoreWorld(makeStore, people: 3, settings: settings(entries: 1_000, bytes: 40_000))
            let text = String(repeating: "x", count: 4_000)
            for _ in 1...2 { try world.send(text, from: 0, to: 1, lifetime: .seconds(60)) }
            try expectEqual(try world.refusal(.append(world.message(text, from: 0, to: 1))), .inboxFull)
            try world.send("short", from: 0, to: 1)
            try world.send(text, from: 2, to: 1)
            try await world.purge(at: StoreWorld.later(.seconds(61)))
            for _ in 1...2 { try world.send(text, from: 0, to: 1) }
            try expectEqual(try world.refusal(.append(world.message(text, from: 0, to: 1))), .inboxFull)
        },
        ConformanceCase("What waits of one account in all inboxes together has a bound of its own") { makeStore in
            let world = try await StoreWorld(makeStore, people: 6, settings: settings(unread: 5_000))
            let text = String(repeating: "x", count: 1_000)
            for receiver in 1...4 { try world.send(text, from: 0, to: receiver) }
            try expectEqual(try world.refusal(.append(world.message(text, from: 0, to: 5))), .tooMuchUnread)
            try world.send(text, from: 1, to: 2)
            // A note to oneself does not count as unread.
            try world.send(text, from: 0, to: 0)
            try world.acknowledge(1)
            try await world.purge()
            try world.send(text, from: 0, to: 5)
            try expectEqual(try world.refusal(.append(world.message(text, from: 0, to: 5))), .tooMuchUnread)
        },
        ConformanceCase("Receivers who read nothing stop no sender for others") { makeStore in
            // Half of the limit for unread bytes is 64 messages; a 64th of the limit is two messages.
            let world = try await StoreWorld(
                makeStore,
                people: 8,
                settings: settings(entries: 4_000, unread: 128 * 129)
            )
            for number in 0..<64 { try world.send("\(number % 10)", from: 0, to: 1 + number % 4) }
            for puppet in 1...4 {
                try expectEqual(try world.refusal(.append(world.message("x", from: 0, to: puppet))), .tooMuchUnread)
            }
            for friend in 5...7 {
                for _ in 1...2 { try world.send("x", from: 0, to: friend) }
                try expectEqual(try world.refusal(.append(world.message("x", from: 0, to: friend))), .tooMuchUnread)
            }
            // A receiver who has read everything gets further messages.
            try world.acknowledge(5)
            try await world.purge()
            for _ in 1...2 { try world.send("x", from: 0, to: 5) }
        },
        ConformanceCase("A full inbox keeps no group from talking; its owner is told what is missing") { makeStore in
            let world = try await StoreWorld(makeStore, people: 3, settings: settings())
            let members = [world[1].user, world[2].user]
            let create = WriteOperation.group(.create(name: "group", members: members), by: world[0].user)
            guard case .groupChanged(let group, _) = try world.commit(create) else {
                throw ConformanceFailure(description: "not created")
            }
            for number in 1...12 {
                // Two of the three members read everything at once.
                for person in 0...1 { try world.acknowledge(person) }
                try await world.purge()
                let append = world.message("\(number)", from: 0, to: group.id)
                guard case .appended(let receipt, let deliveries) = try world.commit(.append(append)) else {
                    throw ConformanceFailure(description: "not appended")
                }
                try expectEqual(receipt.inboxSeq, UInt64(number + 1))
                // One sender may fill half of the group's quarter of the inbox, because other members want to write,
                // too.
                try expectEqual(deliveries.count, number <= 5 ? 3 : 2)
            }
            let page = try await world.inbox(2)
            try expectEqual(page.count, 7)
            try expectEqual(page.suffix(2), ["6:5", "7-13:hole"])
            try expectEqual(try await world.inbox(1, after: 12), ["13:12"])
        },
        ConformanceCase("A group message that nobody but its sender could get is refused") { makeStore in
            let world = try await StoreWorld(makeStore, people: 3, settings: settings())
            let members = [world[1].user, world[2].user]
            let create = WriteOperation.group(.create(name: "group", members: members), by: world[0].user)
            guard case .groupChanged(let group, _) = try world.commit(create) else {
                throw ConformanceFailure(description: "not created")
            }
            for number in 1...8 {
                try world.acknowledge(0)
                try await world.purge()
                let append = WriteOperation.append(world.message("\(number)", from: 0, to: group.id))
                switch try world.commit(append) {
                case .appended(_, let deliveries):
                    try expect(number <= 5, "message \(number) reached nobody")
                    try expectEqual(deliveries.count, 3)
                case .refused(let error):
                    try expect(number > 5, "message \(number) was refused")
                    try expectEqual(error.code, .inboxFull)
                default: throw ConformanceFailure(description: "neither appended nor refused")
                }
            }
            // The refused messages leave no hole in the inbox.
            try expectEqual(try await world.inbox(2).count, 6)
            // The refused messages have used no sequence numbers: the next message has the number 6.
            try world.acknowledge(2)
            try await world.purge()
            let last = WriteOperation.append(world.message("9", from: 0, to: group.id))
            guard case .appended(let receipt, _) = try world.commit(last) else {
                throw ConformanceFailure(description: "not appended")
            }
            try expectEqual(receipt.conversationSeq, 6)
        },
        ConformanceCase("One member's messages leave room for those of the others") { makeStore in
            for isByBytes in [false, true] {
                // A quarter of the last member's inbox has room for 40 messages of the group.
                let limits = isByBytes ? settings(entries: 10_000, bytes: 160 * 1_128) : settings(entries: 160)
                let text = String(repeating: "x", count: isByBytes ? 1_000 : 1)
                let world = try await StoreWorld(makeStore, people: 6, settings: limits)
                let members = world.people.dropFirst().map(\.user)
                let create = WriteOperation.group(.create(name: "group", members: members), by: world[0].user)
                guard case .groupChanged(let group, _) = try world.commit(create) else {
                    throw ConformanceFailure(description: "not created")
                }
                var taken: [Int] = []
                for sender in 0...4 {
                    var count = 0
                    for _ in 1...60 {
                        // All members except the last one read everything at once.
                        for person in 0...4 { try world.acknowledge(person) }
                        try await world.purge()
                        let append = world.message(text, from: sender, to: group.id)
                        guard case .appended(_, let deliveries) = try world.commit(.append(append)) else {
                            throw ConformanceFailure(description: "not appended")
                        }
                        if deliveries.contains(where: { $0.user == world[5].user }) { count += 1 }
                    }
                    taken.append(count)
                }
                try expectEqual(taken, [20, 10, 5, 2, 1])
                // A receiver who has read everything has room for all messages again.
                try world.acknowledge(5)
                try await world.purge()
                let append = world.message(text, from: 0, to: group.id)
                guard case .appended(_, let deliveries) = try world.commit(.append(append)) else {
                    throw ConformanceFailure(description: "not appended")
                }
                try expectEqual(deliveries.count, 6)
            }
        },
        ConformanceCase("Strangers fill half of an inbox, in groups and by changing them, too") { makeStore in
            let world = try await StoreWorld(makeStore, people: 3, settings: settings())
            _ = try world.commit(.contact(.request, by: world[2], peer: world[1].user, message: ""))
            var deliveries = 0
            for number in 1...5 {
                let create = WriteOperation.group(
                    .create(name: "\(number)", members: [world[2].user]),
                    by: world[0].user
                )
                guard case .groupChanged(let group, _) = try world.commit(create) else {
                    throw ConformanceFailure(description: "not created")
                }
                for round in 1...12 {
                    try world.acknowledge(0)
                    try await world.purge()
                    let rename = GroupCommand.change(group.id, GroupChange(name: "\(number)-\(round)"))
                    guard case .groupChanged(_, let told) = try world.commit(.group(rename, by: world[0].user)) else {
                        throw ConformanceFailure(description: "refused")
                    }
                    var sent: [InboxDelivery] = []
                    switch try world.commit(.append(world.message("\(round)", from: 0, to: group.id))) {
                    case .appended(_, let taken): sent = taken
                    // The message is refused if only its sender would get it.
                    case .refused(let error): try expectEqual(error.code, .inboxFull)
                    default: throw ConformanceFailure(description: "neither appended nor refused")
                    }
                    deliveries += (told + sent).count { $0.user == world[2].user }
                }
            }
            try expectEqual(deliveries <= 20, true)
            for number in 1...10 { try world.send("\(number)", from: 1, to: 2) }
        },
        ConformanceCase("A device that stays away keeps no sender out; below an eighth entries wait for it") {
            makeStore in
            let devices = [StoreWorld.phone, StoreWorld.tablet]
            let world = try await StoreWorld(makeStore, devices: devices, settings: settings())
            for number in 1...4 { try world.send("\(number)", from: 0, to: 1) }
            try world.acknowledge(1)
            try await world.purge()
            try expectEqual(try await world.inbox(1), ["1:1", "2:2", "3:3", "4:4"])
            for number in 5...60 {
                try world.send("\(number)", from: 0, to: 1)
                try world.acknowledge(1)
                try await world.purge()
            }
            let left = try await world.inbox(1)
            try expectEqual(left.first?.hasPrefix("1-"), true, "the tablet is told what it missed")
            try expectEqual(left.count <= 5, true)
        },
        ConformanceCase("A claimed device takes nothing for the one that showed a token") { makeStore in
            let world = try await StoreWorld(makeStore, settings: settings())
            let user = world[1].user
            let watch = StoreWorld.device("watch")
            let opening = DeviceOpening(user: user, device: DeviceDescription(id: watch), proof: .claim)
            guard case .deviceOpened = try world.commit(.openDevice(opening)) else {
                throw ConformanceFailure(description: "not opened")
            }
            for number in 1...10 {
                try world.send("\(number)", from: 0, to: 1)
                try world.acknowledge(1, on: [watch])
            }
            try await world.purge()
            try expectEqual(try await world.inbox(1).count, 10)
            try expectEqual(try world.refusal(.append(world.message("x", from: 0, to: 1))), .inboxFull)
            // The idle claimed device does not prevent the purge of entries that the owner's device has acknowledged.
            try world.acknowledge(1)
            try await world.purge()
            try world.send("11", from: 0, to: 1)
            try expectEqual(try await world.inbox(1), ["1-10:hole", "11:11"])
        },
        ConformanceCase("Claimed devices take nothing from an account that has no other ones") { makeStore in
            let world = try await StoreWorld(makeStore, settings: settings())
            let user = world[1].user
            let watch = StoreWorld.device("watch")
            for device in [StoreWorld.phone, StoreWorld.tablet] {
                try await world.store.revoke(.device(device, of: user), now: StoreWorld.now)
            }
            let opening = DeviceOpening(user: user, device: DeviceDescription(id: watch), proof: .claim)
            _ = try await world.store.open(opening, now: StoreWorld.now)
            for number in 1...3 {
                try world.send("\(number)", from: 0, to: 1)
                try world.acknowledge(1, on: [watch])
                try await world.purge()
            }
            try expectEqual(try await world.inbox(1), ["1:1", "2:2", "3:3"])
            // An acknowledgement of the claimed device releases no entries, even if the inbox is full.
            for number in 4...10 { try world.send("\(number)", from: 0, to: 1) }
            try world.acknowledge(1, on: [watch])
            try await world.purge()
            try expectEqual(try await world.inbox(1).count, 10)
            try expectEqual(try world.refusal(.append(world.message("x", from: 0, to: 1))), .inboxFull)
            // The entries stay when the claimed device is removed.
            try await world.store.revoke(.device(watch, of: user), now: StoreWorld.now)
            try await world.purge()
            try expectEqual(try await world.inbox(1).count, 10)
            // The owner's device gets all entries. Then they may be purged.
            let own = DeviceOpening(user: user, device: DeviceDescription(id: StoreWorld.phone), proof: .account)
            try expectEqual(try await world.store.open(own, now: StoreWorld.now).cursor, 0)
            try world.acknowledge(1, on: [StoreWorld.phone])
            try await world.purge()
            try expectEqual(try await world.inbox(1), ["1-10:hole"])
        },
        ConformanceCase("A device that shows its first proof gets what a claim to its name has taken") { makeStore in
            let world = try await StoreWorld(makeStore, settings: settings())
            let user = world[1].user
            for device in [StoreWorld.phone, StoreWorld.tablet] {
                try await world.store.revoke(.device(device, of: user), now: StoreWorld.now)
            }
            func open(_ proof: DeviceProof) throws -> Device {
                let description = DeviceDescription(id: StoreWorld.phone)
                let opening = DeviceOpening(user: user, device: description, proof: proof)
                guard case .deviceOpened(let device) = try world.commit(.openDevice(opening)) else {
                    throw ConformanceFailure(description: "not opened")
                }
                return device
            }
            func acknowledge(upTo seq: UInt64, isProven: Bool) throws -> WriteOutcome {
                try world.commit(.acknowledge(user, StoreWorld.phone, upTo: seq, isProven: isProven))
            }
            try expectEqual(try open(.claim).cursor, 0)
            for number in 1...3 { try world.send("\(number)", from: 0, to: 1) }
            guard case .acknowledged(3) = try acknowledge(upTo: 3, isProven: false) else {
                throw ConformanceFailure(description: "a claim has a cursor of its own")
            }
            try expectEqual(try open(.claim).cursor, 3)
            try expectEqual(try open(.account).cursor, 0)
            // An acknowledgement of the claimed device arrives late.
            guard case .acknowledged(0) = try acknowledge(upTo: 2, isProven: false) else {
                throw ConformanceFailure(description: "a claim moved the cursor of a device with a proof")
            }
            try await world.purge()
            try expectEqual(try await world.inbox(1), ["1:1", "2:2", "3:3"])
            guard case .acknowledged(2) = try acknowledge(upTo: 2, isProven: true) else {
                throw ConformanceFailure(description: "the device has no cursor")
            }
            try expectEqual(try open(.account).cursor, 2)
            try await world.purge()
            try expectEqual(try await world.inbox(1), ["1-2:hole", "3:3"])
        },
        ConformanceCase("The sender's own copies give way, not the messages") { makeStore in
            let world = try await StoreWorld(makeStore, people: 3, settings: settings())
            for number in 1...10 { try world.send("\(number)", from: 0, to: 1) }
            // The sender's share of its own inbox is used up.
            let receipt = try world.send("more", from: 0, to: 2)
            try expectEqual(receipt.inboxSeq, 11)
            try expectEqual(try await world.inbox(0, after: 9), ["10:10", "11-11:hole"])
            try expectEqual(try await world.inbox(2), ["1:more"])
            try expectEqual(try world.send("back", from: 2, to: 0).conversationSeq, 2)
        },
    ]
}
