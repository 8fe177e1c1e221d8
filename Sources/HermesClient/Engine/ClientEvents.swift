// Hermes
// SPDX-License-Identifier: Apache-2.0

/// What happens to a client, in order; for one loop of the app's. Ends when the client has stopped.
///
/// What the server keeps until it is taken counts as taken when the app asks for the next event.
public struct ClientEvents<Element: Sendable>: AsyncSequence, Sendable {
    /// Events do not fail; the sequence ends.
    public typealias Failure = Never

    let nextEvent: @Sendable () async -> Element?

    /// Begins to take events.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(nextEvent: nextEvent) }

    /// Takes events.
    public struct AsyncIterator: AsyncIteratorProtocol {
        let nextEvent: @Sendable () async -> Element?

        /// The next event; nil at the end, or if the task is cancelled. The one before counts as taken now.
        public func next() async -> Element? { await nextEvent() }

        /// The same, wherever the caller is isolated.
        public func next(isolation actor: isolated (any Actor)?) async -> Element? { await nextEvent() }
    }
}
