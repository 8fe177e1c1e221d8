// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOConcurrencyHelpers

/// Hands each element to every subscription that wants it. Each subscription has its own mailbox, so a slow loop does
/// not delay the other loops. A full mailbox drops new elements.
///
/// A lock protects the state. The lock is not held while elements are handed over.
final class Broadcast<Element: Sendable>: Sendable {
    private struct State {
        var subscriptions: [UInt64: Entry] = [:]
        var last: UInt64 = 0
        var isOpen = true
    }

    private struct Entry: Sendable {
        let isWanted: @Sendable (Element) -> Bool
        let mailbox: Mailbox<Element>
    }

    /// An object that ends its subscription when it is deinitialized.
    private final class Registration: Sendable {
        private let end: @Sendable () -> Void

        init(end: @escaping @Sendable () -> Void) { self.end = end }

        deinit { end() }
    }

    private let maxElements: Int
    private let maxBytes: Int
    private let state = NIOLockedValueBox(State())

    /// Creates a broadcast without subscriptions.
    ///
    /// - Parameters:
    ///   - maxElements: the largest number of elements that wait for one subscription.
    ///   - maxBytes: the largest total size of the elements that wait for one subscription, in bytes.
    init(maxElements: Int = Backlog.maxEphemeral, maxBytes: Int = Backlog.maxEphemeralBytes) {
        self.maxElements = maxElements
        self.maxBytes = maxBytes
    }

    /// Returns a sequence of the elements that are sent from now on. The subscription ends when the sequence and its
    /// iterators are deinitialized.
    func subscribe(where isWanted: @escaping @Sendable (Element) -> Bool = { _ in true }) -> ClientEvents<Element> {
        let mailbox = Mailbox<Element>(maxElements: maxElements, maxBytes: maxBytes)
        let id: UInt64? = state.withLockedValue { state in
            guard state.isOpen else { return nil }
            state.last &+= 1
            state.subscriptions[state.last] = Entry(isWanted: isWanted, mailbox: mailbox)
            return state.last
        }
        guard let id else {
            mailbox.finish()
            return ClientEvents { await mailbox.next() }
        }
        let registration = Registration { [state] in state.withLockedValue { $0.subscriptions[id] = nil } }
        return ClientEvents {
            defer { withExtendedLifetime(registration) {} }
            return await mailbox.next()
        }
    }

    /// Hands an element to all subscriptions that want it.
    ///
    /// - Parameter bytes: an estimate of the memory that the element takes while it waits.
    func send(_ element: Element, bytes: Int) {
        // A full mailbox drops the element.
        for entry in entries where entry.isWanted(element) { _ = entry.mailbox.offer(element, bytes: bytes) }
    }

    /// Drops the waiting elements.
    func clear() {
        for entry in entries { entry.mailbox.removeAll() }
    }

    /// Accepts subscriptions again after a `close`.
    func open() { state.withLockedValue { $0.isOpen = true } }

    /// Ends all subscriptions. New subscriptions end at once until `open` is called.
    func close() {
        let entries = state.withLockedValue { state in
            state.isOpen = false
            defer { state.subscriptions = [:] }
            return Array(state.subscriptions.values)
        }
        for entry in entries { entry.mailbox.finish() }
    }

    private var entries: [Entry] { state.withLockedValue { Array($0.subscriptions.values) } }
}
