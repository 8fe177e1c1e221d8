// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A sequence of a client's events, in order. Only one loop may read it. It ends when the client has stopped.
public struct ClientEvents<Element: Sendable>: AsyncSequence, Sendable {
    let nextEvent: @Sendable () async -> Element?

    /// Creates a sequence of the events that `nextEvent` returns one by one. Nil ends the sequence.
    package init(nextEvent: @escaping @Sendable () async -> Element?) { self.nextEvent = nextEvent }

    /// Creates an iterator.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(nextEvent: nextEvent) }

    /// An iterator over the events.
    public struct AsyncIterator: AsyncIteratorProtocol {
        let nextEvent: @Sendable () async -> Element?

        /// Returns the next event; nil at the end, or if the task is cancelled. The previous event counts as taken.
        public func next(isolation actor: isolated (any Actor)? = #isolation) async -> Element? { await nextEvent() }
    }
}
