// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// The cases for listing sessions for operators.
extension SessionStoreConformance {
    static let listing = [
        ConformanceCase("Sessions are listed by a part of the client id or owner, page by page, up to a bound") {
            makeStore in
            let world = SessionWorld(try await makeStore(StoreSettings()))
            let ids = try [("Lamp-1", "ann"), ("meter", "bob"), ("lamp-2", "bob"), ("100%", "Clamp")].map {
                try world.open($0.0, owner: .subject($0.1)).id
            }
            func found(
                _ text: String,
                after id: DurableSessionID? = nil,
                limit: Int = 9,
                searched: Int = .max
            ) async throws -> [DurableSessionID] {
                try await world.store.sessions(after: id, containing: text, limit: limit, searched: searched).map(\.id)
            }
            try expectEqual(try await found(""), ids)
            try expectEqual(try await found("LAMP"), [ids[0], ids[2], ids[3]])
            try expectEqual(try await found("bob"), [ids[1], ids[2]])
            try expectEqual(try await found("%"), [ids[3]])
            try expectEqual(try await found("lamp", limit: 2), [ids[0], ids[2]])
            try expectEqual(try await found("lamp", after: ids[0]), [ids[2], ids[3]])
            // Sessions beyond the first `searched` ones are not found, even if they contain the text.
            try expectEqual(try await found("lamp", searched: 2), [ids[0]])
            try expectEqual(try await found("lamp", searched: 3), [ids[0], ids[2]])
            try expectEqual(try await found("lamp", after: ids[1], searched: 1), [ids[2]])
            try expectEqual(try await found("lamp", searched: 4), [ids[0], ids[2], ids[3]])
        },
        ConformanceCase("Only the case of ASCII letters does not matter, and nothing is normalized") { makeStore in
            let world = SessionWorld(try await makeStore(StoreSettings()))
            let names = ["\u{C4}cker", "\u{E4}cker", "a\u{308}cker", "lamp\u{301}"]
            let ids = try names.map { try world.open($0, owner: .subject("bob")).id }
            func found(_ text: String) async throws -> [DurableSessionID] {
                try await world.store.sessions(after: nil, containing: text, limit: 9, searched: .max).map(\.id)
            }
            try expectEqual(try await found("\u{C4}CK"), [ids[0]])
            try expectEqual(try await found("\u{E4}ck"), [ids[1]])
            try expectEqual(try await found("a\u{308}"), [ids[2]])
            try expectEqual(try await found("LAMP"), [ids[3]])
            try expectEqual(try await found("lamp\0"), [])
        },
    ]
}
