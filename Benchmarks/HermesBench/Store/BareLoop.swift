// Hermes
// SPDX-License-Identifier: Apache-2.0

import GRDBSQLite
import HermesCore

/// Writes the rows of ``StoreMeasurement`` with SQLite's C interface alone, to find the least cost of a commit.
enum BareLoop {
    /// An error of SQLite, with its result code.
    struct Failure: Error {
        let code: Int32
    }

    static func run(_ benchmark: StoreMeasurement, database path: String) throws -> StoreMeasurement.Figures {
        var connection: OpaquePointer?
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX
        let code = sqlite3_open_v2(path, &connection, flags, nil)
        defer { sqlite3_close(connection) }
        guard code == SQLITE_OK, let connection else { throw Failure(code: code) }
        for pragma in AppendSQL.pragmas(benchmark.durability) { try execute(connection, pragma) }

        let statements = try Prepared(connection)
        defer { statements.finalize() }
        let pairs = (benchmark.users + 1) / 2
        for pair in 0..<pairs {
            let (low, high) = (pair * 2 + 1, min(pair * 2 + 2, benchmark.users))
            try execute(
                connection,
                "INSERT INTO conversation (kind, a, b, last_seq) VALUES (1, \(low), \(high), 0) ON CONFLICT DO NOTHING"
            )
        }

        var state = State(users: benchmark.users, pairs: pairs)
        let content = [UInt8](repeating: 0x61, count: benchmark.contentBytes)
        var stopwatch = BatchStopwatch()
        for batch in 0..<benchmark.batches {
            let indices = batch * benchmark.batchSize..<(batch + 1) * benchmark.batchSize
            let messages = indices.map { index in
                let (sender, receiver) = benchmark.pair(index)
                let id = benchmark.id(index)
                return Item(
                    high: Int64(bitPattern: id.high),
                    low: Int64(bitPattern: id.low),
                    clientID: Array(benchmark.clientID(index).utf8CString),
                    sender: sender,
                    receiver: receiver
                )
            }
            try stopwatch.measure {
                try execute(connection, "BEGIN IMMEDIATE")
                for message in messages { try statements.insert(message, content, &state) }
                try statements.update(&state)
                if state.freshEntries >= AppendSQL.rowsToSettle {
                    for sql in AppendSQL.settle { try execute(connection, sql) }
                    state.freshEntries = 0
                }
                try execute(connection, "COMMIT")
            }
        }
        return StoreMeasurement.Figures(stopwatch, batchSize: benchmark.batchSize)
    }

    fileprivate static func execute(_ connection: OpaquePointer, _ sql: String) throws {
        let code = sqlite3_exec(connection, sql, nil, nil, nil)
        guard code == SQLITE_OK else { throw Failure(code: code) }
    }
}

/// One message, ready to be bound.
private struct Item {
    let high: Int64
    let low: Int64
    let clientID: [CChar]
    let sender: Int
    let receiver: Int
}

/// The heads of the inboxes and the last seqs of the conversations, by index, and the changes of a batch.
private struct State {
    var heads: [Int64]
    var lastSeqs: [Int64]
    var freshEntries = 0
    var dirtyUsers: Set<Int> = []
    var dirtyPairs: Set<Int> = []

    init(users: Int, pairs: Int) {
        heads = Array(repeating: 0, count: users)
        lastSeqs = Array(repeating: 0, count: pairs)
    }
}

private struct Prepared {
    let insertMessage: OpaquePointer
    let insertEntry: OpaquePointer
    let insertClientID: OpaquePointer
    let updateInbox: OpaquePointer
    let updateConversation: OpaquePointer
    private let connection: OpaquePointer

    init(_ connection: OpaquePointer) throws {
        func prepare(_ sql: String) throws -> OpaquePointer {
            var statement: OpaquePointer?
            let code = sqlite3_prepare_v3(connection, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil)
            guard code == SQLITE_OK, let statement else { throw BareLoop.Failure(code: code) }
            return statement
        }
        self.connection = connection
        insertMessage = try prepare(AppendSQL.insertMessage)
        insertEntry = try prepare(AppendSQL.insertEntry)
        insertClientID = try prepare(AppendSQL.insertClientID)
        updateInbox = try prepare(AppendSQL.updateInbox)
        updateConversation = try prepare(AppendSQL.updateConversation)
    }

    func finalize() {
        for statement in [insertMessage, insertEntry, insertClientID, updateInbox, updateConversation] {
            sqlite3_finalize(statement)
        }
    }

    func insert(_ item: Item, _ content: [UInt8], _ state: inout State) throws {
        let pair = item.sender / 2
        state.lastSeqs[pair] += 1
        state.dirtyPairs.insert(pair)
        let start = StoreMeasurement.start.rawValue
        let values: [(Int32, Int64)] = [
            (1, item.high), (2, 0), (3, item.low), (4, Int64(pair + 1)), (5, state.lastSeqs[pair]),
            (6, Int64(item.sender + 1)),
            (9, start), (10, start + 30 * 24 * 3600 * 1000), (11, start), (12, 0), (13, 2),
        ]
        for (index, value) in values { sqlite3_bind_int64(insertMessage, index, value) }
        try content.withUnsafeBytes { content in
            try item.clientID.withUnsafeBufferPointer { clientID in
                try withUnsafeBytes(of: (UInt64(0), UInt64(0), UInt64(0))) { deliveries in
                    sqlite3_bind_text(insertMessage, 7, "bench", 5, unsafeBitCast(-1, to: sqlite3_destructor_type.self))
                    sqlite3_bind_text(insertMessage, 8, clientID.baseAddress, Int32(clientID.count - 1), nil)
                    sqlite3_bind_blob(insertMessage, 14, deliveries.baseAddress, Int32(deliveries.count), nil)
                    sqlite3_bind_blob(insertMessage, 15, content.baseAddress, Int32(content.count), nil)
                    try step(insertMessage)
                    sqlite3_bind_int64(insertClientID, 1, Int64(item.sender + 1))
                    sqlite3_bind_text(insertClientID, 2, clientID.baseAddress, Int32(clientID.count - 1), nil)
                    sqlite3_bind_int64(insertClientID, 3, item.high)
                    try step(insertClientID)
                }
            }
        }
        let key = item.high
        for user in [item.sender, item.receiver] {
            state.heads[user] += 1
            state.freshEntries += 1
            state.dirtyUsers.insert(user)
            sqlite3_bind_int64(insertEntry, 1, 0)
            sqlite3_bind_int64(insertEntry, 2, key)
            sqlite3_bind_int64(insertEntry, 3, 1)
            sqlite3_bind_int64(insertEntry, 4, 1_000)
            sqlite3_bind_int64(insertEntry, 5, Int64(user + 1))
            sqlite3_bind_int64(insertEntry, 6, state.heads[user])
            try step(insertEntry)
        }
    }

    func update(_ state: inout State) throws {
        for user in state.dirtyUsers {
            sqlite3_bind_int64(updateInbox, 1, state.heads[user])
            sqlite3_bind_int64(updateInbox, 2, 1)
            sqlite3_bind_int64(updateInbox, 3, 0)
            // Parameters 4 and 5 are the counts of the inbox. Any numbers cost the same.
            sqlite3_bind_int64(updateInbox, 4, state.heads[user])
            sqlite3_bind_int64(updateInbox, 5, state.heads[user])
            sqlite3_bind_int64(updateInbox, 6, Int64(user + 1))
            try step(updateInbox)
        }
        for pair in state.dirtyPairs {
            sqlite3_bind_int64(updateConversation, 1, state.lastSeqs[pair])
            // Parameters 2 to 4 are the last message's time and authors. Any numbers cost the same.
            sqlite3_bind_int64(updateConversation, 2, state.lastSeqs[pair])
            sqlite3_bind_int64(updateConversation, 3, state.lastSeqs[pair])
            sqlite3_bind_int64(updateConversation, 4, state.lastSeqs[pair])
            sqlite3_bind_int64(updateConversation, 5, Int64(pair + 1))
            try step(updateConversation)
        }
        state.dirtyUsers.removeAll(keepingCapacity: true)
        state.dirtyPairs.removeAll(keepingCapacity: true)
    }

    private func step(_ statement: OpaquePointer) throws {
        let code = sqlite3_step(statement)
        sqlite3_reset(statement)
        guard code == SQLITE_DONE else { throw BareLoop.Failure(code: code) }
    }
}
