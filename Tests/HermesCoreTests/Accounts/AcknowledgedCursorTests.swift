// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesTestKit
import Testing

/// A device may come back before its acknowledgement is in the store. It still gets no entry twice.
@Suite struct AcknowledgedCursorTests {
    @Test func `a login knows what is on its way into the store`() async throws {
        let store = MemoryStore()
        let messenger = Messenger(
            accountStore: store,
            messageStore: store,
            socialStore: store,
            sessionStore: store,
            pushTokenStore: store,
            accountSettings: AccountSettings(passwordParameters: PasswordTests.cheap),
            messageSettings: MessageSettings { $0.commit = CommitLimits(acknowledgementDelay: .seconds(3600)) },
            time: ManualTime()
        )
        let phone = DeviceDescription(id: try device("phone"))
        let login = try await messenger.accounts.register(
            nickName: "anna",
            password: "secret",
            device: phone,
            address: nil
        )
        let me = login.principal
        let draft = MessageDraft(
            conversation: .direct(between: me.user, and: me.user),
            clientID: nil,
            content: MessageContent(bytes: [1])
        )
        let receipt = try await withCheckedContinuation { continuation in
            messenger.messages.send(draft, from: me) { continuation.resume(returning: $0) }
        }.get()
        messenger.inbox.acknowledge(me, upTo: receipt.inboxSeq)
        // A hostile client may acknowledge more entries than there are.
        messenger.inbox.acknowledge(me, upTo: receipt.inboxSeq + 100)
        let again = try await messenger.accounts.logIn(.token(try #require(login.token)), device: phone, address: nil)
        #expect(again.device.cursor == receipt.inboxSeq)
        await messenger.shutdown()
    }
}
