// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire
import NIOCore

/// The end of a token. If a client logged in with a token and presents no new token, its connection ends when the token
/// expires (`exp`).
extension MQTTConnection {
    /// The time before the token's expiry at which a client of the native protocol is warned.
    static let expiryWarning = Duration.seconds(60)
    /// The longest time between two checks of the wall clock. The checks are repeated because somebody may set the
    /// clock.
    private static let longestLook = Duration.seconds(30)

    /// Ends the connection if its token has expired, warns before that, and schedules the next check.
    func lookAtExpiry() {
        guard let client, let end = client.identity.expiresAt else { return connection.wake(in: nil) }
        let left = Duration.milliseconds(end.rawValue &- environment.messenger.time.latest().rawValue)
        guard left > .zero else {
            giveReason(.maximumConnectTime, MQTTTranslation.tokenExpired)
            return connection.end(.tokenExpired)
        }
        if left <= Self.expiryWarning, !client.isWarnedOfExpiry, let packets = client.inbox?.packets {
            client.isWarnedOfExpiry = true
            packets.warn(tokenExpiresAt: end)
        }
        let next = left > Self.expiryWarning ? left - Self.expiryWarning : left
        connection.wake(in: min(next, Self.longestLook))
    }

    package func woken() {
        if phase == .connected { lookAtExpiry() }
    }

    /// Accepts a new token in a packet of the native protocol, which the client sends over MQTT. The server does not
    /// accept MQTT's own AUTH packet.
    ///
    /// - Returns: false if the packet is not a new token, or if the client's login cannot be renewed.
    func renewsToken(_ packet: Hermes_V1_Packet) -> Bool {
        guard case .authenticate(let request) = packet.body, case .token(let token) = request.credential,
            let client, client.isRenewable
        else { return false }
        let authenticator = environment.authenticator
        let identity = client.identity
        let address = connection.remoteHost
        connection.ask { () async throws(HermesError) -> ClientIdentity in
            try await authenticator.renewed(identity, with: token, address: address)
        } then: { [self] (result: Result<ClientIdentity, HermesError>) in
            guard phase == .connected else { return }
            switch result {
            case .failure(let error):
                client.inbox?.packets?.fail(packet.id, error)
            case .success(let identity):
                let isSame = identity.claims == client.identity.claims
                client.renew(identity)
                if !isSame {
                    environment.wills.keep(willOf: client)
                    // The new token may allow other topics than the old token, so all subscriptions are checked
                    // again. The check stores nothing, so it costs a kept session no more than a clean session.
                    lastTarget = nil
                    connection.charge(.filters(client.subscriptions.count, isKept: false))
                    accessChanged()
                }
                client.inbox?.packets?.succeed(packet.id)
                lookAtExpiry()
            }
        }
        return true
    }
}
