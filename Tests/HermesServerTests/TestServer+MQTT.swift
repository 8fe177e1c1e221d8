// Hermes
// SPDX-License-Identifier: Apache-2.0

import Hermes
import HermesTestKit

extension TestServer {
    /// An MQTT client that does not reconnect.
    ///
    /// - Parameters:
    ///   - name: the account, with the password "secret1"; nil for an anonymous client.
    ///   - keeps: whether the session is kept for ten minutes.
    func mqtt(as name: String?, id: String, keeps: Bool = false) throws -> MQTTClient {
        var configuration = MQTTClient.Configuration(
            server: ServerAddress(port: port("mqtt")),
            clientID: id
        )
        configuration.userName = name
        configuration.password = name == nil ? nil : "secret1"
        configuration.cleanStart = !keeps
        configuration.sessionExpiry = keeps ? .seconds(600) : .zero
        configuration.reconnect = .never
        return try MQTTClient(configuration)
    }
}
