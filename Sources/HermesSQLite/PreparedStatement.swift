// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
import GRDBSQLite
import HermesCore
import NIOCore

/// A prepared statement of one connection, run through SQLite's C API.
///
/// The statements of a commit run tens of thousands of times a second, and binding through GRDB's values would cost
/// more than SQLite itself. GRDB's cache prepares and keeps the statements. A statement is used only on the
/// connection's own queue. Every run must bind its texts and blobs anew, because they are bound without a copy.
struct PreparedStatement {
    /// Keeps the C statement alive.
    private let statement: Statement
    private let pointer: OpaquePointer

    init(_ db: Database, _ sql: String) throws {
        statement = try db.cachedStatement(sql: sql)
        pointer = statement.sqliteStatement
    }

    func bind(_ value: Int64, at index: Int32) {
        sqlite3_bind_int64(pointer, index, value)
    }

    func bind(_ value: Int64?, at index: Int32) {
        if let value { sqlite3_bind_int64(pointer, index, value) } else { sqlite3_bind_null(pointer, index) }
    }

    /// Binds the 64 bits of a number. ``unsigned(_:)`` restores numbers above 2⁶³−1, such as the halves of ids.
    func bind(_ value: UInt64, at index: Int32) {
        sqlite3_bind_int64(pointer, index, Int64(bitPattern: value))
    }

    func bind(_ value: UserID, at index: Int32) {
        sqlite3_bind_int64(pointer, index, Int64(value.rawValue))
    }

    func bind(_ value: Timestamp, at index: Int32) {
        sqlite3_bind_int64(pointer, index, value.rawValue)
    }

    /// Binds a blob while `body` runs.
    func bind<Result>(_ bytes: [UInt8], at index: Int32, while body: () throws -> Result) rethrows -> Result {
        try bytes.withUnsafeBytes { buffer in
            if buffer.isEmpty {
                sqlite3_bind_zeroblob(pointer, index, 0)
            } else {
                sqlite3_bind_blob64(pointer, index, buffer.baseAddress, UInt64(buffer.count), nil)
            }
            return try body()
        }
    }

    /// Binds the readable bytes of a buffer as a blob while `body` runs.
    func bind<Result>(_ buffer: ByteBuffer, at index: Int32, while body: () throws -> Result) rethrows -> Result {
        try buffer.withUnsafeReadableBytes { bytes in
            if bytes.isEmpty {
                sqlite3_bind_zeroblob(pointer, index, 0)
            } else {
                sqlite3_bind_blob64(pointer, index, bytes.baseAddress, UInt64(bytes.count), nil)
            }
            return try body()
        }
    }

    /// Binds a blob while `body` runs; nil is NULL.
    func bind<Result>(_ bytes: [UInt8]?, at index: Int32, while body: () throws -> Result) rethrows -> Result {
        guard let bytes else {
            sqlite3_bind_null(pointer, index)
            return try body()
        }
        return try bind(bytes, at: index, while: body)
    }

    /// Binds a text while `body` runs; nil is NULL.
    func bind<Result>(_ text: String?, at index: Int32, while body: () throws -> Result) rethrows -> Result {
        guard var text else {
            sqlite3_bind_null(pointer, index)
            return try body()
        }
        return try text.withUTF8 { buffer in
            try buffer.withMemoryRebound(to: CChar.self) { characters in
                if let start = characters.baseAddress {
                    sqlite3_bind_text(pointer, index, start, Int32(characters.count), nil)
                } else {
                    sqlite3_bind_text(pointer, index, "", 0, PreparedStatement.copying)
                }
                return try body()
            }
        }
    }

    /// Runs a statement without result rows.
    func run() throws {
        let code = sqlite3_step(pointer)
        guard code == SQLITE_DONE else { throw failure() }
        sqlite3_reset(pointer)
    }

    /// Runs an insertion.
    ///
    /// - Returns: false, with nothing inserted, if a unique index already has such a row.
    func runUnlessConflict() throws -> Bool {
        let code = sqlite3_step(pointer)
        if code == SQLITE_DONE {
            sqlite3_reset(pointer)
            return true
        }
        if code & 0xFF == SQLITE_CONSTRAINT {
            sqlite3_reset(pointer)
            return false
        }
        throw failure()
    }

    /// Calls `body` for each row. The query is always reset at the end, so that it holds no snapshot.
    func forEachRow(_ body: (PreparedStatement) throws -> Void) throws {
        try forEachRowWhile { row in
            try body(row)
            return true
        }
    }

    /// Calls `body` for each row until it returns false. The query is always reset at the end, so that it holds no
    /// snapshot.
    func forEachRowWhile(_ body: (PreparedStatement) throws -> Bool) throws {
        defer { sqlite3_reset(pointer) }
        while true {
            switch sqlite3_step(pointer) {
            case SQLITE_ROW:
                guard try body(self) else { return }
            case SQLITE_DONE:
                return
            default:
                throw failure()
            }
        }
    }

    /// Returns the value of the first row; nil if there is no row.
    func first<Value>(_ read: (PreparedStatement) throws -> Value) throws -> Value? {
        var value: Value?
        try forEachRowWhile { row in
            value = try read(row)
            return false
        }
        return value
    }

    func isNull(_ column: Int32) -> Bool { sqlite3_column_type(pointer, column) == SQLITE_NULL }

    func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(pointer, column) }

    /// Returns a number of bytes or of rows; nil if the value is out of range, because the row is damaged.
    func soundAmount(_ column: Int32, upTo most: Int64 = PreparedStatement.maxAmount) -> Int? {
        let number = integer(column)
        return number >= 0 && number <= most ? Int(number) : nil
    }

    /// Returns a number of bytes or of rows. A damaged number counts as 0, because it could make a sum overflow.
    /// Damaged numbers of inbox entries and of session heads are reported when the store is opened.
    func amount(_ column: Int32, upTo most: Int64 = PreparedStatement.maxAmount) -> Int {
        soundAmount(column, upTo: most) ?? 0
    }

    /// The largest number of bytes or rows that a stored row may state, for itself or for a session's queue. A larger
    /// number means that the row is damaged.
    static let maxAmount: Int64 = 1 << 44
    /// The largest number of bytes or rows that several rows may have together. A larger sum means that a row is
    /// damaged.
    static let maxSum: Int64 = 1 << 56
    /// The SQL for the sum of a table's weights, without damaged weights.
    static let totalWeight = "total(CASE WHEN weight BETWEEN 0 AND \(maxAmount) THEN weight ELSE 0 END)"

    /// Returns all 64 bits as an unsigned number, for values that are never incremented.
    func unsigned(_ column: Int32) -> UInt64 { UInt64(bitPattern: sqlite3_column_int64(pointer, column)) }

    /// Returns a sequence number of an inbox, a conversation or a queue.
    ///
    /// - Throws: ``StoreFailure/damagedRow`` if the number is negative, or so large that a later increment could
    ///   overflow.
    func sequence(_ column: Int32) throws -> UInt64 {
        let number = integer(column)
        guard number >= 0, number <= Self.maxSequence else { throw StoreFailure.damagedRow }
        return UInt64(number)
    }

    /// The largest sequence number that a stored row may have. A larger number means that the row is damaged.
    static let maxSequence: Int64 = 1 << 60

    /// Returns a time stamp. A damaged value is limited to a range in which the difference of two values does not
    /// overflow.
    func timestamp(_ column: Int32) -> Timestamp {
        Timestamp(rawValue: min(max(integer(column), -Self.maxSequence), Self.maxSequence))
    }

    /// Returns the source that pays for a session or a retained publication.
    func payer(_ column: Int32) -> CommitSource { CommitSource(stored: text(column) ?? "") }

    func user(_ column: Int32) throws -> UserID {
        guard let user = UserID(integer(column)) else { throw StoreFailure.damagedRow }
        return user
    }

    func bytes(_ column: Int32) -> [UInt8] {
        guard let start = sqlite3_column_blob(pointer, column) else { return [] }
        return Array(UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(pointer, column))))
    }

    func buffer(_ column: Int32) -> ByteBuffer {
        guard let start = sqlite3_column_blob(pointer, column) else { return ByteBuffer() }
        return ByteBuffer(
            bytes: UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(pointer, column)))
        )
    }

    /// Whether a column's bytes equal a text.
    func hasText(_ text: String, in column: Int32) -> Bool {
        guard let start = sqlite3_column_text(pointer, column) else { return false }
        let count = Int(sqlite3_column_bytes(pointer, column))
        var text = text
        return text.withUTF8 { $0.count == count && memcmp($0.baseAddress ?? start, start, count) == 0 }
    }

    func text(_ column: Int32) -> String? {
        guard let start = sqlite3_column_text(pointer, column) else { return nil }
        let count = Int(sqlite3_column_bytes(pointer, column))
        return String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
    }

    private func failure() -> DatabaseError {
        let connection = sqlite3_db_handle(pointer)
        let code = sqlite3_extended_errcode(connection)
        let message = sqlite3_errmsg(connection).map { String(cString: $0) }
        sqlite3_reset(pointer)
        return DatabaseError(resultCode: ResultCode(rawValue: code), message: message)
    }

    /// SQLITE_TRANSIENT, a macro that Swift cannot import.
    private static let copying = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
}
