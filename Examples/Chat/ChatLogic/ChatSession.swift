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
    ///   - configuration: the configuration of the client; with a file store, unsent messages survive the end of the app.
    ///   - changed: gets the new state after each change.
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
    /// - Parameter loggedIn: gets the session once, to keep its token for the next launch.
    /// - Throws: HermesClientError: the refusal of the login, or the reason why the session ended.
    public func run(_ credential: Credential, loggedIn: @MainActor (Session) -> Void) async throws {
        // Messages that are known without a network come first.
        for event in client.recentEvents { state.apply(event) }
        for entry in await client.outbox.entries { state.apply(entry) }
        // Unstructured: nothing waits for these tasks. They run as long as the client does.
        let following = [
            Task { for await change in client.states { state.apply(change) } },
            Task { for await entry in client.outbox.changes { state.apply(entry) } },
        ]
        defer { for task in following { task.cancel() } }
        let session = try await client.logIn(credential)
        state.nickName = session.nickName
        loggedIn(session)
        for await event in client.events {
            // Show this entry before asking for the next: asking acknowledges this one to the server.
            state.apply(event)
            if let message = event.message, message.conversation == state.open, !message.isOwn {
                markRead(message.conversation)
            }
        }
        try await client.run()
        // Both streams end with the client; the last state is of interest, too.
        for task in following { await task.value }
    }

    /// Shows the conversation with an account, and reads its history from the server.
    ///
    /// - Throws: HermesClientError if there is no such account, or no connection in time.
    public func open(nickName: String) async throws {
        let account = try await client.account(named: nickName)
        open(.user(account.uid), title: account.nickName)
        await loadHistory(of: .user(account.uid))
    }

    /// Shows a conversation (nil: none), without asking the server.
    public func open(_ conversation: Conversation?, title: String? = nil) {
        state.show(conversation, title: title)
        if let conversation { markRead(conversation) }
    }

    /// Reads the messages before the first line; does nothing if the server keeps no history.
    public func loadHistory(of conversation: Conversation) async {
        let first = state[conversation]?.lines.first?.seq
        guard let history = try? await client.history(of: conversation, beforeSeq: first ?? 0) else { return }
        state.apply(history, of: conversation)
    }

    /// Sends a text to the open conversation: now, once there is a network, or in the next run of the app.
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

    /// Lets the server push to this device while it is not connected.
    public func register(_ token: PushToken) async throws { try await client.registerPushToken(token) }

    /// Ends the session on this device; ``run(_:loggedIn:)`` then returns.
    public func signOut() async throws { try await client.logOut(removesDevice: true) }

    /// Closes the connection; unsent messages stay in the store.
    public func close() async { await client.close() }

    private func markRead(_ conversation: Conversation) {
        guard let seq = state[conversation]?.lastSeq else { return }
        // Not awaited: the next mark covers this one.
        Task { [client] in try? await client.markRead(conversation, upToSeq: seq) }
    }
}
