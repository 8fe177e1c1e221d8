// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
import HermesWire

/// Method 3: exchanges the addresses of two clients. Gateways send each other the addresses as `hermes.v1.Signal`, so
/// that an IMPB phone can reach a client of the native protocol.
extension IMPBConnection {
    func connect(_ message: IMPB_p2p_connect, seq: UInt32, from sender: Sender) {
        switch message.type {
        case .connectRequest:
            guard let request: IMPB_p2pconnect_request = parse(message.body, seq) else { return }
            requestLink(request, seq: seq, from: sender)
        case .postIp:
            guard let request: IMPB_p2p_post_ip_request = parse(message.body, seq) else { return }
            postAddress(request, seq: seq, from: sender)
        case .unused, .UNRECOGNIZED:
            fail(seq, HermesError(.invalidArgument, "p2p type \(message.type.rawValue) has no meaning"))
        }
    }

    private func requestLink(_ request: IMPB_p2pconnect_request, seq: UInt32, from sender: Sender) {
        // A uid that no account can have gets the same answer as the uid of a stranger.
        guard let target = UserID(request.targetUid) else { return fail(seq, Messenger.notAContact) }
        let messenger = messenger
        let user = sender.principal.user
        connection.ask { () async throws(HermesError) in
            try await messenger.checkLink(user, target)
            return try await messenger.accounts.account(.id(target), for: .account(user)) != nil
        } then: { [self] result in
            switch result {
            case .failure(let error): fail(seq, error)
            case .success(let exists): answerLink(to: target, exists: exists, seq: seq, from: sender)
            }
        }
    }

    /// Answers the account that requests a link (the sponsor), and sends the sponsor's addresses to the target. The
    /// target agrees by posting its own addresses, which then go to the sponsor.
    private func answerLink(to target: UserID, exists: Bool, seq: UInt32, from sender: Sender) {
        let own = sender.link.attachment.directAddress ?? DirectAddress()
        var answer = IMPB_p2pconnect_response()
        answer.isExit = exists
        answer.isOnline = exists && messenger.devices.isOnline(target)
        answer.sponsorIpInfo = IMPBTranslation.addresses(own)
        succeed(seq, answer)
        guard answer.isOnline else { return }
        let request = IMPBTranslation.signal(from: sender.principal.user, to: target, own, isReady: false)
        // If the target has gone meanwhile, it does not post its addresses. The sponsor's client decides how long it
        // waits for them.
        guard let event = event(request, from: sender) else { return }
        connection.chargeForEvent(toldTo: messenger.devices.notify(target, event))
    }

    private func postAddress(_ request: IMPB_p2p_post_ip_request, seq: UInt32, from sender: Sender) {
        guard let sponsor = UserID(request.sponsorUid) else { return fail(seq, Messenger.notAContact) }
        let address = IMPBTranslation.addresses(request.ipInfo, observed: connection.remoteHost)
        let user = sender.principal.user
        let signal = IMPBTranslation.signal(from: user, to: sponsor, address, isReady: request.isReady)
        let event = event(signal, from: sender)
        let messenger = messenger
        connection.ask { () async throws(HermesError) in
            guard let event else { return 0 }
            return try await messenger.tellContact(sponsor, event, from: user)
        } then: { [self] result in
            switch result {
            case .failure(let error): fail(seq, error)
            case .success(let told):
                connection.chargeForEvent(toldTo: told)
                var answer = IMPB_p2p_post_ip_response()
                answer.isSuc = told > 0
                succeed(seq, answer)
            }
        }
    }

    private func event(_ signal: Hermes_V1_Signal, from sender: Sender) -> EphemeralEvent? {
        guard let payload: [UInt8] = try? signal.wireBytes() else { return nil }
        return .signal(from: sender.principal.user, device: sender.principal.device, payload: payload)
    }

    package func ephemeralArrived(_ event: EphemeralEvent) {
        guard let link else { return }
        if case .command(let payload) = event {
            return notify(IMPBTranslation.command(payload, for: link.principal.user))
        }
        guard case .signal(let user, _, let payload) = event else { return }
        let own = link.attachment.directAddress ?? DirectAddress()
        guard
            let signal = try? Hermes_V1_Signal(wire: payload),
            let notification = IMPBTranslation.notification(signal, from: user, to: link.principal.user, own: own)
        else { return }
        notify(notification)
    }
}
