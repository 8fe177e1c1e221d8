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

/// The addresses of a device, for peer-to-peer links. The addresses that the device reports are its own claims, and the
/// server checks only their form. Only contacts get them, and from the device that answers a request only after it has
/// agreed.
package struct DirectAddress: Sendable, Hashable {
    /// The host that the device reported: an IP address, or empty.
    package var localHost = ""
    package var localPort: UInt16 = 0
    /// The device's public host: the one that the device reported, because a STUN server has told it, or else the host
    /// that the server observed; empty if neither is known. Behind the NAT of a carrier, or with two versions of IP, the
    /// device's UDP packets can come from another host than its connection to the server.
    package var observedHost = ""
    package var observedPort: UInt16 = 0

    package init() {}

    /// Returns the host that a device reports as its own. If the text is not an IP address without a zone, the result
    /// is empty: some clients that do not know their address report any text.
    static func localHost(_ reported: String) -> String { parse(reported) == nil ? "" : reported }

    /// Returns a device's public host.
    ///
    /// - Parameters:
    ///   - reported: the host that the device reports. It counts only if it is a public unicast address, because
    ///     contacts send packets to it.
    ///   - observed: the host that the server observes; nil if it is hidden.
    static func observedHost(_ reported: String, observed: String?) -> String {
        parse(reported).map(isPublic) == true ? reported : observed ?? ""
    }

    /// The length of the longest text of an IP address, in bytes.
    private static let maxHostBytes = 45

    private static func parse(_ text: String) -> SocketAddress? {
        let isPlain = text.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"): true
            case UInt8(ascii: "A")...UInt8(ascii: "F"), UInt8(ascii: "."), UInt8(ascii: ":"): true
            default: false
            }
        }
        guard isPlain, text.utf8.count <= maxHostBytes else { return nil }
        return try? SocketAddress(ipAddress: text, port: 0)
    }

    private static func isPublic(_ address: SocketAddress) -> Bool {
        unicast.contains { $0.contains(address) } && !notPublic.contains { $0.contains(address) }
    }

    /// IPv4, and the global unicast addresses of IPv6 (RFC 4291, 2.4).
    private static let unicast = ["0.0.0.0/0", "2000::/3"].compactMap { IPNetwork($0) }

    /// The addresses of IPv4 that are not public unicast addresses (RFC 6890).
    private static let notPublic = [
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16",
        "224.0.0.0/4", "240.0.0.0/4",
    ].compactMap { IPNetwork($0) }
}
