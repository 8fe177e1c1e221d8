// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Keeps the data that a client needs between two runs of the app: the outbox, the cursor and the last entries.
///
/// A store is for one client at a time. It holds message contents: keep it where only the app can read it.
package protocol LocalStore: Sendable {
    /// Returns all records, in the order in which their keys were first written. Called once, when a client is created.
    ///
    /// - Throws: an error if the records cannot be read.
    func records() throws -> [LocalRecord]

    /// Carries out all of the changes or none of them, after the changes of earlier calls. Called on the event loops of
    /// connections, so it must not block.
    ///
    /// - Parameters:
    ///   - changes: the records to write and to remove.
    ///   - durably: whether the changes must survive a power cut after `completion` is called.
    ///   - completion: the function to call once, on any thread.
    func write(
        _ changes: [LocalChange],
        durably: Bool,
        completion: @escaping @Sendable (Result<Void, any Error>) -> Void
    )
}

extension LocalStore {
    /// Carries out changes and waits until they are done.
    func write(_ changes: [LocalChange], durably: Bool) async throws {
        try await withCheckedThrowingContinuation { continuation in
            write(changes, durably: durably) { continuation.resume(with: $0) }
        }
    }
}

/// A key and its value.
package struct LocalRecord: Hashable, Sendable {
    /// The key: 1 to 255 bytes.
    package var key: String
    /// The value, whose bytes only the client interprets.
    package var value: [UInt8]
}

/// A change of one record.
package struct LocalChange: Hashable, Sendable {
    /// The record's key: 1 to 255 bytes.
    package var key: String
    /// The new value; nil removes the record.
    package var value: [UInt8]?

    /// Creates a change.
    package init(key: String, value: [UInt8]?) {
        self.key = key
        self.value = value
    }
}
