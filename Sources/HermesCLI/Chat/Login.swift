// Hermes
// SPDX-License-Identifier: Apache-2.0

import Hermes

/// Logs a client in with the token of an earlier login. If there is no valid token, logs in with the password and
/// stores the new token.
struct Login {
    let name: String
    let server: ServerAddress
    let options: LoginOptions
    /// The end of the device id. It distinguishes the device of this command from the devices of other commands for the
    /// same account.
    var deviceSuffix = ""
    var cache = TokenCache()

    var device: String { options.device ?? cache.deviceID() + deviceSuffix }

    /// Creates a client that is not connected yet.
    func makeClient(reconnect: ReconnectPolicy, device: String) throws -> HermesClient {
        let description = DeviceDescription(id: device, name: "hermes \(device)", platform: "command line")
        var configuration = HermesClient.Configuration(server: server, device: description)
        configuration.reconnect = reconnect
        return try HermesClient(configuration)
    }

    /// Logs in. Asks for the password only if it is needed.
    func logIn(_ client: HermesClient, device: String) async throws -> Session {
        if !options.register, !options.noCache,
            let entry = cache.entry(name: name, server: server, device: device)
        {
            do {
                return try await client.logIn(.token(entry.token))
            } catch let error as HermesClientError where error.code == .invalidToken || error.code == .revoked {
                cache.remove(name: name, server: server, device: device)
            }
        }
        let password = try await Password.get(
            file: options.passwordFile,
            prompt: options.register ? "New password for \(name): " : "Password for \(name): ",
            confirms: options.register
        )
        let session = try await client.logIn(
            options.register
                ? .register(nickName: name, password: password, invitation: options.invitation)
                : .password(nickName: name, password: password)
        )
        if !options.noCache {
            let entry = TokenCache.Entry(uid: session.uid.rawValue, device: device, token: session.token)
            do {
                try cache.store(entry, name: name, server: server)
            } catch {
                StandardError.tell("the login token cannot be stored: \(error)")
            }
        }
        return session
    }
}
