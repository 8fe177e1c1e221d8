// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesGateways
import NIOCore

/// The other end of an HTTP connection.
struct HTTPPeer: Sendable {
    /// The connection's peer, or the client that a PROXY header gave.
    let address: SocketAddress?
    /// Whether ``address`` is that of a proxy whose PROXY header gave no client. Such a connection belongs to no
    /// address: it counts only for itself.
    let isClientHidden: Bool

    /// The address to which limits apply.
    var counted: ConnectionCounter.Address { isClientHidden ? .hidden : ConnectionCounter.Address(address) }

    /// The client's address; nil if it is not known.
    var client: SocketAddress? { isClientHidden ? nil : address }
}
