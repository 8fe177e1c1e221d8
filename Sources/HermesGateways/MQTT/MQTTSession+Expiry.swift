// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire
import NIOCore

/// A connection that was let in by a token lasts as long as the token (`exp`), or until it shows a new one.
extension MQTTSession {
    /// A client that speaks the native protocol is warned so long before the end.
    static let expiryWarning = Duration.seconds(60)
    /// The clock of the day is looked at no less often than this: it may be set.
    private static let longestLook = Duration.seconds(30)

    /// Ends the connection if its token has ended, warns of the end, and sees to it that this is asked again in time.
    func lookAtExpiry() {
        guard let client, let end = client.identity.expiresAt else { return connection.wake(in: nil) }
        let left = Duration.milliseconds(end.rawValue &- now().rawValue)
        guard left > .zero else {
            parting = (.maximumConnectTime, "the token has expired; connect again with a new one")
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

    /// A new token over the native protocol: the way to stay that MQTT itself, without AUTH, does not have here.
    ///
    /// - Returns: false if the packet is not for this.
    func renewsToken(_ packet: Hermes_V1_Packet) -> Bool {
        guard case .authenticate(let request) = packet.body, case .token(let token) = request.credential,
            let client, client.identity.expiresAt != nil
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
                client.renew(identity)
                // It may say other topics than the one before.
                lastTarget = nil
                refilter(client)
                client.inbox?.packets?.succeed(packet.id)
                lookAtExpiry()
            }
        }
        return true
    }
}
