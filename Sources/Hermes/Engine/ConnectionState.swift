// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The state of a client's connection.
public enum ConnectionState: Hashable, Sendable {
    /// The client has not started.
    case idle
    /// A connection is being opened.
    case connecting
    /// The connection is open; the login is under way.
    case authenticating
    /// The client is logged in.
    case live
    /// The connection is lost, and is being closed. The value is the reason.
    case lost(HermesClientError)
    /// There is no connection; the error is the reason. The next try is made after the delay.
    case waiting(HermesClientError, delay: Duration)
    /// There is no connection; the value is the reason. The client does not try to connect while the app is suspended
    /// or there is no network.
    case paused(HermesClientError)
    /// The client will not try again. The value is the reason; nil if the app closed the client.
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
