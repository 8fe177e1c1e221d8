// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The place of an HTTP connection in the count of connections. It is given back exactly once.
///
/// State: one `Mutex`; all calls are on the channel's event loop, so nothing can change the state between a read and
/// a write.
package final class HTTPPlace: Sendable {
    private enum State {
        case http(ConnectionCounter.Address)
        case gateway(ConnectionCounter.Address)
        case givenBack
    }

    private let counter: ConnectionCounter
    private let state: Mutex<State>

    /// Counts a connection.
    ///
    /// - Throws: if the limit is reached.
    package init(_ counter: ConnectionCounter, _ address: ConnectionCounter.Address) throws(ConnectionCounter.Refusal) {
        self.counter = counter
        if let refusal = counter.addHTTP(address) { throw refusal }
        state = Mutex(.http(address))
    }

    /// Counts the connection for the client's address, which a proxy has given before any other byte.
    ///
    /// - Throws: if that address has reached its limit.
    package func identify(_ address: ConnectionCounter.Address) throws(ConnectionCounter.Refusal) {
        guard case .http(.unknown) = state.withLock(\.self), address != .unknown else { return }
        if let refusal = counter.identify(address, isHTTP: true) { throw refusal }
        state.withLock { $0 = .http(address) }
    }

    /// Counts the connection as a gateway's, until the place is given back.
    ///
    /// - Parameter client: the client's address; nil for the address under which the connection is counted.
    /// - Throws: if the limit is reached.
    package func becomeGateway(as client: ConnectionCounter.Address?) throws(ConnectionCounter.Refusal) {
        guard case .http(let address) = state.withLock(\.self) else { return }
        let client = client ?? address
        if let refusal = counter.becomeGateway(address, as: client) { throw refusal }
        state.withLock { $0 = .gateway(client) }
    }

    /// Removes the connection from the count, because it is closed. Repeated calls do nothing.
    package func giveBack() {
        let last = state.withLock { state in
            defer { state = .givenBack }
            return state
        }
        switch last {
        case .http(let address): counter.remove(address, isHTTP: true)
        case .gateway(let address): counter.remove(address)
        case .givenBack: break
        }
    }
}
