// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore

/// The core's hold on an authenticated connection, for every protocol that has an inbox.
package final class SessionAttachment: Attachment {
    package let principal: Principal
    /// Where the device can be reached directly, for those who set up peer-to-peer links.
    package let directAddress: DirectAddress?
    private let connection: Connection

    package init(principal: Principal, connection: Connection, directAddress: DirectAddress? = nil) {
        self.principal = principal
        self.directAddress = directAddress
        self.connection = connection
    }

    package func inboxAdvanced(_ entries: [InboxEntry]) {
        connection.loop.post(.inboxAdvanced(connection, entries))
    }

    package func ephemeralArrived(_ event: EphemeralEvent) {
        connection.loop.post(.ephemeral(connection, event))
    }

    package func ended(_ reason: SessionEnd) {
        connection.loop.post(.ended(connection, reason))
    }
}

/// The addresses of a device.
package struct DirectAddress: Sendable, Hashable {
    /// As the device knows itself.
    package var localHost = ""
    package var localPort: UInt16 = 0
    /// As the server sees it.
    package var observedHost = ""
    package var observedPort: UInt16 = 0

    package init() {}
}
