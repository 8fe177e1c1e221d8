// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A client's events, in order, for a single loop. Ends when the client has stopped.
public struct ClientEvents<Element: Sendable>: AsyncSequence, Sendable {
    let nextEvent: @Sendable () async -> Element?

    /// Creates events that this function returns one by one; nil ends them.
    package init(nextEvent: @escaping @Sendable () async -> Element?) { self.nextEvent = nextEvent }

    /// Creates an iterator.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(nextEvent: nextEvent) }

    /// An iterator over the events.
    public struct AsyncIterator: AsyncIteratorProtocol {
        let nextEvent: @Sendable () async -> Element?

        /// Returns the next event, or nil at the end or if the task is cancelled. The previous event counts as taken.
        public func next(isolation actor: isolated (any Actor)? = #isolation) async -> Element? { await nextEvent() }
    }
}
