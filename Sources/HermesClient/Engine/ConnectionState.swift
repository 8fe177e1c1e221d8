// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Where a client's connection stands.
public enum ConnectionState: Hashable, Sendable {
    /// Not started.
    case idle
    /// A connection is being opened.
    case connecting
    /// The connection is open; the login is under way.
    case authenticating
    /// Logged in.
    case live
    /// The connection is given up and being closed, because of this.
    case lost(HermesClientError)
    /// There is no connection, because of this; the next try comes after the delay.
    case waiting(HermesClientError, delay: Duration)
    /// There is no connection, because of this, and no try while the app is suspended or without a network.
    case paused(HermesClientError)
    /// There will be no further try: because of this, or, if nil, because the app closed the client.
    case stopped(HermesClientError?)
}

extension ConnectionEngine.StateMachine {
    /// The state as the app sees it.
    var published: ConnectionState {
        switch state {
        case .idle: .idle
        case .connecting: .connecting
        case .authenticating: .authenticating
        case .live: .live
        case .lost(let error, _): .lost(error)
        case .waiting(let waiting) where conditions.isHeld: .paused(waiting.error)
        case .waiting(let waiting): .waiting(waiting.error, delay: waiting.delay)
        case .stopped(let error): .stopped(error)
        }
    }
}
