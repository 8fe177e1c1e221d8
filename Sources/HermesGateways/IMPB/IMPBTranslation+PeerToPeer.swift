// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire

/// Translates addresses for direct links. A signal whose address is not ready asks for a link. A signal whose address
/// is ready answers a request for a link.
extension IMPBTranslation {
    static func addresses(_ address: DirectAddress) -> IMPB_Ip_info {
        var info = IMPB_Ip_info()
        info.ip = address.localHost
        info.port = Int32(address.localPort)
        info.sockIp = address.observedHost
        info.sockPort = Int32(address.observedPort)
        return info
    }

    /// Returns the addresses that a client reports.
    ///
    /// - Parameter observed: the host that the server observes; nil if it is hidden.
    static func addresses(_ info: IMPB_Ip_info, observed: String?) -> DirectAddress {
        var address = DirectAddress(local: info.ip, reported: info.sockIp, observed: observed)
        address.localPort = UInt16(exactly: info.port) ?? 0
        address.observedPort = UInt16(exactly: info.sockPort) ?? 0
        return address
    }

    static func signal(from user: UserID, to peer: UserID, _ address: DirectAddress, isReady: Bool) -> Hermes_V1_Signal
    {
        var signal = Hermes_V1_Signal()
        signal.toUid = UInt32(peer.rawValue)
        signal.sessionID = "impb/\(user)"
        signal.address.localHost = address.localHost
        signal.address.localPort = UInt32(address.localPort)
        signal.address.observedHost = address.observedHost
        signal.address.observedPort = UInt32(address.observedPort)
        signal.address.seenByServer = address.isSeenByServer
        signal.address.ready = isReady
        return signal
    }

    /// Returns the notification for a signal; nil if IMPB cannot express the signal.
    static func notification(
        _ signal: Hermes_V1_Signal,
        from user: UserID,
        to reader: UserID,
        own: DirectAddress
    ) -> IMPB_Notification_msg? {
        guard case .address(let peer) = signal.signal else { return nil }
        var address = DirectAddress()
        address.localHost = peer.localHost
        address.localPort = UInt16(clamping: peer.localPort)
        address.observedHost = peer.observedHost
        address.observedPort = UInt16(clamping: peer.observedPort)
        address.isSeenByServer = peer.seenByServer
        // A client that has not asked a STUN server does not know its public port. It may be the same as its own port.
        if address.observedPort == 0 { address.observedPort = address.localPort }
        guard peer.ready else {
            var body = IMPB_p2p_receive_connect_notification()
            body.sponsorUid = UInt32(user.rawValue)
            body.sponsorIpInfo = addresses(address)
            body.targetInfo = addresses(own)
            return notification(.p2PReceiveConnectReq, for: reader, body)
        }
        // If the server sees both clients at the same host, they are in the same network, where private addresses work.
        let isNear = own.isSeen(with: address) && !address.localHost.isEmpty
        var body = IMPB_p2p_connect_ready_notification()
        body.uid = UInt32(user.rawValue)
        body.ip = isNear ? address.localHost : address.observedHost
        body.port = Int32(isNear ? address.localPort : address.observedPort)
        return notification(.p2PConnectReady, for: reader, body)
    }
}
