// Hermes
// SPDX-License-Identifier: Apache-2.0

extension Connection {
    /// The state of a connection that is behind: its peer does not read, its peer's publications wait for crowds, or
    /// the connection exceeds its budgets. This state is a separate object, because most connections never need it.
    /// Owner: the connection's event loop.
    final class Backlog {
        // Output: see Connection+Output.swift.
        /// The answers that wait until the queue has room (``Connection/whenRoom(holding:_:)``).
        var waitingAnswers: [() -> Void] = []
        /// The bytes of the buffers of the held writes (``Connection/heldWrites``).
        var heldWriteBytes = 0
        /// The mark to report after the operating system has taken everything written so far; nil if there is none.
        var writtenMark: UInt64?
        /// The bytes of large writes that the operating system has not taken: the connection's own bytes, and copies
        /// that TLS makes.
        var writtenBytes = 0
        /// The bytes of large writes that the operating system has not taken and that other connections may share.
        var sharedBytes = 0

        // Input.
        /// The bytes of the peer's publications that wait for delivery to crowds (the very many subscribers of one
        /// topic on this loop). Reading from the peer resumes when no bytes wait.
        var crowdBytes = 0
        /// The memory for the users whose presence the connection watches.
        var watchedBytes = 0

        // Costs: see Connection+Costs.swift and Connection+Pace.swift.
        var throttle = Throttle()

        /// The memory that counts as the connection's own.
        var ownBytes: Int { writtenBytes &+ crowdBytes &+ watchedBytes }
    }

    var writtenMark: UInt64? { backlog?.writtenMark }

    var writtenBytes: Int { backlog?.writtenBytes ?? 0 }

    var sharedBytes: Int { backlog?.sharedBytes ?? 0 }
}
