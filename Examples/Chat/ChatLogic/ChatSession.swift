// Hermes
// SPDX-License-Identifier: Apache-2.0

public import Hermes

/// Runs a client and keeps the state of the screen. The app makes one for each account that is signed in.
///
/// ```swift
/// let session = try ChatSession(configuration) { model.state = $0 }
/// try await session.run(.token(token)) { keychain.token = $0.token }
/// ```
@MainActor
public final class ChatSession {
    /// The state of the screen.
    public private(set) var state = ChatState() {
        didSet { if state != oldValue { changed(state) } }
    }

    private let client: HermesClient
    private let changed: @MainActor (ChatState) -> Void

    /// Creates a session, without a connection.
    ///
    /// - Parameters:
    ///   - configuration: the configuration of the client; with a file store, unsent messages remain after the app has
    ///     ended.
    ///   - changed: is called with the new state after each change.
    /// - Throws: the store's error if it cannot be read.
    public init(
        _ configuration: HermesClient.Configuration,
        changed: @escaping @MainActor (ChatState) -> Void = { _ in }
    ) throws {
        client = try HermesClient(configuration)
        self.changed = changed
    }

    /// Logs in and runs until the account is signed out.
    ///
    /// - Parameter loggedIn: is called once with the session, so that the app can keep the session's token for the next
    ///   launch.
    /// - Throws: HermesClientError if the login is refused, or with the reason why the session ended.
    public func run(_ credential: Credential, loggedIn: @MainActor (Session) -> Void) async throws {
        // The stored messages come first. They need no network.
        for event in client.recentEvents { state.apply(event) }
        for entry in await client.outbox.entries { state.apply(entry) }
        // These tasks are unstructured. They run as long as the client does.
        let following = [
            Task { for await change in client.states { state.apply(change) } },
            Task { for await entry in client.outbox.changes { state.apply(entry) } },
        ]
        defer { for task in following { task.cancel() } }
        let session = try await client.logIn(credential)
        state.nickName = session.nickName
        loggedIn(session)
        for await event in client.events {
            // Show this entry before asking for the next entry, because asking acknowledges this entry to the server.
            state.apply(event)
            if let message = event.message, message.conversation == state.open, !message.isOwn {
                markRead(message.conversation)
            }
        }
        try await client.run()
        // Both streams end with the client. Waiting ensures that the last state is applied, too.
        for task in following { await task.value }
    }

    /// Shows the conversation with an account, and reads its history from the server.
    ///
    /// - Throws: HermesClientError if there is no such account, or if there is no connection in time.
    public func open(nickName: String) async throws {
        let account = try await client.account(named: nickName)
        open(.user(account.uid), title: account.nickName)
        await loadHistory(of: .user(account.uid))
    }

    /// Shows a conversation, or none if it is nil, without asking the server.
    public func open(_ conversation: Conversation?, title: String? = nil) {
        state.show(conversation, title: title)
        if let conversation { markRead(conversation) }
    }

    /// Reads the messages before the first line. Does nothing if the server keeps no history.
    public func loadHistory(of conversation: Conversation) async {
        let first = state[conversation]?.lines.first?.seq
        guard let history = try? await client.history(of: conversation, beforeSeq: first ?? 0) else { return }
        state.apply(history, of: conversation)
    }

    /// Sends a text to the open conversation. The text is sent now, as soon as there is a network, or in the next run
    /// of the app.
    ///
    /// - Throws: HermesClientError if the text cannot be stored.
    public func send(_ text: String) async throws {
        guard let conversation = state.open, !text.isEmpty else { return }
        try await client.send(text, to: conversation)
    }

    /// Sends a failed line again.
    public func retry(_ line: Transcript.Line) async throws { try await client.outbox.retry(clientID: line.id) }

    /// Discards a failed line.
    public func discard(_ line: Transcript.Line) async throws { try await client.outbox.discard(clientID: line.id) }

    /// Lets the server push to this device while the device is not connected.
    public func register(_ token: PushToken) async throws { try await client.registerPushToken(token) }

    /// Ends the session on this device. Then ``run(_:loggedIn:)`` returns.
    public func signOut() async throws { try await client.logOut(removesDevice: true) }

    /// Closes the connection. Unsent messages stay in the store.
    public func close() async { await client.close() }

    private func markRead(_ conversation: Conversation) {
        guard let seq = state[conversation]?.lastSeq else { return }
        // The mark need not arrive, because the next mark covers it. So nothing waits for the task.
        Task { [client] in try? await client.markRead(conversation, upToSeq: seq) }
    }
}
