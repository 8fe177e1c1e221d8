// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
import NIOCore

/// The core's attachment for an authenticated connection. Every protocol with an inbox uses it.
package final class DeviceAttachment: Attachment {
    package let principal: Principal
    package let order: AttachmentOrder
    package let takesEvents: Bool
    /// The device's direct addresses, for peer-to-peer links.
    package let directAddress: DirectAddress?
    private let connection: Connection

    package init(
        principal: Principal,
        connection: Connection,
        directAddress: DirectAddress? = nil,
        takesEvents: Bool = true
    ) {
        self.principal = principal
        order = connection.order
        self.takesEvents = takesEvents
        self.directAddress = directAddress
        self.connection = connection
    }

    package var isBehind: Bool { connection.loop.waiting.isFull }

    package func inboxAdvanced(_ entries: [InboxEntry]) {
        connection.loop.post(.inboxAdvanced(connection, entries))
    }

    package func ephemeralArrived(_ event: EphemeralEvent) -> Bool { connection.loop.post(event, to: connection) }

    package func renamed() {
        let connection = connection
        connection.loop.post(.run { connection.events?.accessChanged() })
    }

    package func ended(_ reason: AttachmentEnd) {
        connection.loop.post(.ended(connection, reason))
    }
}

extension Connection {
    /// Detaches an attachment. It notifies the users who watch the attachment's user, and ends the attachment's own
    /// watches. Both happen for a slice of users at a time. The account and the address pay for this work.
    func leaves(_ attachment: DeviceAttachment, _ devices: DeviceRegistry) {
        let (told, watched) = devices.leave(attachment, by: address)
        watches(0)
        chargeInTheEnd(.watchers(told))
        guard !watched.isEmpty else { return }
        chargeInTheEnd(.watched(watched.count))
        loop.finishLater(watched.count) { devices.unwatch(Array(watched[$0]), by: attachment) }
    }
}

/// The addresses of a device.
package struct DirectAddress: Sendable, Hashable {
    /// The host that the device reported: an IP address (``isHost(_:)``), or empty.
    package var localHost = ""
    package var localPort: UInt16 = 0
    /// The host that the server observed.
    package var observedHost = ""
    package var observedPort: UInt16 = 0

    package init() {}

    /// The length of the longest text of an IP address, in bytes.
    private static let maxHostBytes = 45

    /// Whether a text is an IP address of version 4 or 6, without a zone. A device's contacts send packets to the
    /// address that the device reports, so nothing else is passed on to them.
    static func isHost(_ text: String) -> Bool {
        let isPlain = text.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"): true
            case UInt8(ascii: "A")...UInt8(ascii: "F"), UInt8(ascii: "."), UInt8(ascii: ":"): true
            default: false
            }
        }
        return isPlain && text.utf8.count <= maxHostBytes && (try? SocketAddress(ipAddress: text, port: 0)) != nil
    }
}
