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
/// server checks only their form and their range. Only contacts get them. The addresses of the device that answers a
/// request are passed on only after this device has agreed.
package struct DirectAddress: Sendable, Hashable {
    /// The host that the device reported: an IP address to which another device can send, or empty.
    package var localHost = ""
    package var localPort: UInt16 = 0
    /// The device's public host: the one that the device learned from a STUN server and reported, or else the host that
    /// the server observed; empty if neither is known. Behind the NAT of a carrier, or with two versions of IP, the
    /// device's UDP packets can come from another host than its connection to the server.
    package var observedHost = ""
    package var observedPort: UInt16 = 0
    /// Whether the server itself observed ``observedHost``.
    package var isSeenByServer = false

    package init() {}

    /// Creates the hosts of a device. Equal addresses get equal texts.
    ///
    /// - Parameters:
    ///   - local: the host that the device reports as its own. It is left out if it is not an IP address without a
    ///     zone, because some clients that do not know their address report some other text. It is also left out if it
    ///     names no other device, because contacts send packets to it.
    ///   - reported: the public host that the device reports. It counts only if it is a public unicast address, because
    ///     contacts send packets to it.
    ///   - observed: the host that the server observes; nil if it is hidden.
    init(local: String, reported: String, observed: String?) {
        if let address = Self.parse(local), !Self.notLocal.contains(where: { $0.contains(address) }) {
            localHost = IPNetwork.text(of: address) ?? ""
        }
        let seen = observed.flatMap { Self.parse($0) }.flatMap { IPNetwork.text(of: $0) } ?? ""
        observedHost = seen
        if let address = Self.parse(reported), Self.isPublic(address) {
            observedHost = IPNetwork.text(of: address) ?? seen
        }
        isSeenByServer = !seen.isEmpty && observedHost == seen
    }

    /// Whether the server observed both devices at the same host. A host that a device only reports does not count:
    /// otherwise a device could report the host of the other one.
    func isSeen(with other: DirectAddress) -> Bool {
        guard isSeenByServer, other.isSeenByServer, let host = IPNetwork(observedHost) else { return false }
        return host == IPNetwork(other.observedHost)
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

    /// The addresses within ``unicast`` that are not public (RFC 6890, with its registries), and the addresses of
    /// Teredo and 6to4, which contain an IPv4 address. NAT64 (`64:ff9b::/96`) is not within ``unicast``.
    private static let notPublic = [
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
        "192.0.2.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4",
        "240.0.0.0/4", "2001::/32", "2001:db8::/32", "2002::/16", "3fff::/20",
    ].compactMap { IPNetwork($0) }

    /// The addresses that name no other device of a network: unspecified, loopback, multicast and broadcast.
    private static let notLocal = [
        "0.0.0.0/8", "127.0.0.0/8", "224.0.0.0/4", "255.255.255.255", "::/96", "ff00::/8",
    ].compactMap { IPNetwork($0) }
}
