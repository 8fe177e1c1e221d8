// Hermes
// SPDX-License-Identifier: Apache-2.0

public import Hermes
import HermesWire

/// An event for the app. Newer versions may add kinds of events, so a `switch` over events needs a `default`.
#if hasAttribute(nonexhaustive)
@nonexhaustive
#endif
public enum IMPBEvent: Hashable, Sendable {
    /// A message from another account, or from another device of this account.
    case message(IMPBMessage)
    /// A message to everyone. The author's id is 0 if a back end sent it.
    case broadcast(content: MessageContent, fromUID: UserID)
    /// The number of entries that were committed while this device was not connected. The entries follow as separate
    /// events.
    case waiting(count: Int)
    /// An account asks for a direct link; the app answers with `postAddress`.
    case linkRequested(byUID: UserID, peer: IMPBAddress, own: IMPBAddress)
    /// The other side of a direct link is ready at this address.
    case linkReady(uid: UserID, host: String, port: Int)
    /// A push from a back end.
    case push(Push)
    /// The number of entries that were deleted before this device got them. If the client acknowledges implicitly,
    /// the count includes entries that are only for other devices, because the server does not send the seqs of those
    /// entries to such a client.
    case missed(count: UInt64)
    /// The server lost its store or a part of it. Entries that the app had not received are lost.
    case inboxReset
    /// A notification for which there is no other case, or whose body is not valid.
    case notification(type: Int, body: [UInt8])
}

extension IMPBEvent {
    init(_ notification: IMPB_Notification_msg) {
        let body = [UInt8](notification.body)
        self = .notification(type: notification.type.rawValue, body: body)
        switch notification.type {
        case .p2PReceiveConnectReq:
            guard let told = try? IMPB_p2p_receive_connect_notification(wire: body, maxParts: nil) else { return }
            self = .linkRequested(
                byUID: UserID(rawValue: told.sponsorUid),
                peer: IMPBAddress(told.sponsorIpInfo),
                own: IMPBAddress(told.targetInfo)
            )
        case .p2PConnectReady:
            guard let told = try? IMPB_p2p_connect_ready_notification(wire: body, maxParts: nil) else { return }
            self = .linkReady(uid: UserID(rawValue: told.uid), host: told.ip, port: Int(told.port))
        case .push:
            guard let told = try? IMPB_push_notification(wire: body, maxParts: nil) else { return }
            self = .push(
                Push(
                    id: told.id,
                    title: told.title,
                    body: told.body,
                    dataJSON: told.dataJson,
                    collapseKey: told.collapseKey,
                    messageType: told.messageType,
                    messageBytes: [UInt8](told.messageBytes)
                )
            )
        case .expired:
            guard let told = try? IMPB_expired_notification(wire: body, maxParts: nil) else { return }
            self = .missed(count: told.toSeq >= notification.seq ? told.toSeq - notification.seq &+ 1 : 1)
        case .offlineMsg:
            guard let told = try? IMPB_offline_msg_notification(wire: body, maxParts: nil) else { return }
            self = .waiting(count: Int(clamping: told.count))
        case .addfriendReq, .unused, .cmd, .receiveFriend, .friendRemoved, .readMark, .recalled,
            .groupChanged, .kicked, .event, .UNRECOGNIZED:
            return
        }
    }
}
