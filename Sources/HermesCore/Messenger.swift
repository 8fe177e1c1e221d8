// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The core as the gateways and the HTTP API see it: one object that holds the services.
package final class Messenger: Sendable {
    package let accounts: AccountService
    package let messages: MessageService
    package let sessions: SessionRegistry
    package let time: any TimeSource

    init(accounts: AccountService, messages: MessageService, sessions: SessionRegistry, time: any TimeSource) {
        self.accounts = accounts
        self.messages = messages
        self.sessions = sessions
        self.time = time
    }
}
