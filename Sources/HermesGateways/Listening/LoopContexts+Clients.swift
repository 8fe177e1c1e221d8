// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The clients of all loops, for operators.
extension LoopContexts {
    /// Returns the connected MQTT clients whose numbers are above `number`, in ascending order.
    ///
    /// - Parameters:
    ///   - number: the number of the last client that is already known; 0 to begin with the first client.
    ///   - text: the text that the client id or the owner must contain; the case of ASCII letters does not matter. If
    ///     it is empty, all clients match.
    package func clients(after number: UInt64, containing text: String, limit: Int) async -> [ClientListing] {
        var found: [ClientListing] = []
        for loop in all {
            found += await withCheckedContinuation { continuation in
                loop.post(
                    .run {
                        let collector = ClientCollector(loop.connections, after: number, ClientSearch(text), limit) {
                            continuation.resume(returning: $0)
                        }
                        collector.step(on: loop)
                    }
                )
            }
        }
        return Array(found.sorted { $0.number < $1.number }.prefix(max(0, limit)))
    }

    /// Ends a client's connection.
    ///
    /// - Returns: the client's id; nil if there is no such client any more.
    package func disconnectClient(_ number: UInt64) async -> String? {
        for loop in all {
            let ended: String? = await withCheckedContinuation { continuation in
                loop.post(
                    .run {
                        let client = loop.connections.lazy.compactMap { $0.events?.operated }
                            .first { $0.number == number }
                        let clientID = client.map { ClientListing.shown($0.clientID) }
                        client?.disconnect()
                        continuation.resume(returning: clientID)
                    }
                )
            }
            if let ended { return ended }
        }
        return nil
    }
}

/// A search for a text in names. The case of ASCII letters does not matter.
struct ClientSearch {
    private let wanted: [UInt8]

    init(_ text: String) { wanted = text.utf8.map(Self.lower) }

    func matches(_ text: String) -> Bool {
        guard !wanted.isEmpty else { return true }
        let bytes = Array(text.utf8.prefix(ClientListing.maxShownBytes))
        guard bytes.count >= wanted.count else { return false }
        return (0...bytes.count - wanted.count).contains { start in
            wanted.indices.allSatisfy { Self.lower(bytes[start + $0]) == wanted[$0] }
        }
    }

    private static func lower(_ byte: UInt8) -> UInt8 {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte + 32 : byte
    }
}

/// Searches the connections of a loop, a slice of them in each turn. Owner: the loop.
private final class ClientCollector {
    private static let slice = 512

    private let connections: [Connection]
    private let number: UInt64
    private let search: ClientSearch
    private let limit: Int
    private let finish: ([ClientListing]) -> Void
    private var next = 0
    private var found: [any OperatedClient] = []

    init(
        _ connections: [Connection],
        after number: UInt64,
        _ search: ClientSearch,
        _ limit: Int,
        finish: @escaping ([ClientListing]) -> Void
    ) {
        self.connections = connections
        self.number = number
        self.search = search
        self.limit = limit
        self.finish = finish
    }

    func step(on loop: LoopContext) {
        let slice = connections[next..<min(next + Self.slice, connections.count)]
        next = slice.endIndex
        for connection in slice {
            guard let client = connection.events?.operated, client.number > number else { continue }
            guard search.matches(client.clientID) || search.matches(client.owner) else { continue }
            found.append(client)
        }
        if found.count > 4 * limit || next == connections.count {
            found = Array(found.sorted { $0.number < $1.number }.prefix(limit))
        }
        guard next == connections.count else { return loop.inTurn { self.step(on: loop) } }
        finish(found.map { $0.listing() })
    }
}
