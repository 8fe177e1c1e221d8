// Hermes
// SPDX-License-Identifier: Apache-2.0

public import HermesClient

/// Runs a client and keeps the state of the screen. The app makes one for each account that is signed in.
///
/// ```swift
/// let session = try ChatSession(configuration) { model.state = $0 }
/// try await session.run(.token(token)) { keychain.token = $0.token }
/// ```
@MainActor
public final class ChatSession {
    /// What the screen shows now.
    public private(set) var state = ChatState() {
        didSet { if state != oldValue { changed(state) } }
    }

    private let client: HermesClient
    private let changed: @MainActor (ChatState) -> Void

    /// Creates a session that is not connected yet.
    ///
    /// - Parameters:
    ///   - configuration: of the client; with a store that is a file, what was written survives the end of the app.
    ///   - changed: gets the new state after each change.
    /// - Throws: what the store throws if it cannot be read.
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
    /// - Throws: HermesClientError if the login is refused, or why the session ended.
    public func run(_ credential: Credential, loggedIn: @MainActor (Session) -> Void) async throws {
        // What is known without a network comes first.
        for event in client.recentEvents { state.apply(event) }
        for entry in await client.outbox.entries { state.apply(entry) }
        // Not structured: nothing waits for them, they follow the client for as long as it runs.
        let following = [
            Task { for await change in client.states { state.apply(change) } },
            Task { for await entry in client.outbox.changes { state.apply(entry) } },
        ]
        defer { for task in following { task.cancel() } }
        let session = try await client.logIn(credential)
        state.nickName = session.nickName
        loggedIn(session)
        for await event in client.events {
            // On the screen before the next is asked for, which tells the server that this one is taken.
            state.apply(event)
            if case .message(let message) = event, message.conversation == state.open, !message.isOwn {
                markRead(message.conversation)
            }
        }
        try await client.run()
        // Both streams end with the client; the last state is of interest, too.
        for task in following { await task.value }
    }

    /// Shows the conversation with an account, and reads what the server keeps of it.
    ///
    /// - Throws: HermesClientError if there is no such account, or no connection in time.
    public func open(nickName: String) async throws {
        let account = try await client.account(named: nickName)
        open(.user(uid: account.uid), title: account.nickName)
        await loadHistory(of: .user(uid: account.uid))
    }

    /// Shows a conversation (nil: none), without asking the server.
    public func open(_ conversation: Conversation?, title: String? = nil) {
        state.show(conversation, title: title)
        if let conversation { markRead(conversation) }
    }

    /// Reads what is before the first line; nothing happens where the server keeps no history.
    public func loadHistory(of conversation: Conversation) async {
        let first = state[conversation]?.lines.first?.seq
        guard let history = try? await client.history(of: conversation, beforeSeq: first ?? 0) else { return }
        state.apply(history, of: conversation)
    }

    /// Sends a text to the conversation that is open; now, or when there is a network, or in the next run of the app.
    ///
    /// - Throws: HermesClientError if it cannot be kept.
    public func send(_ text: String) async throws {
        guard let conversation = state.open, !text.isEmpty else { return }
        try await client.outbox.send(text, to: conversation)
    }

    /// Tries to send a line that failed once more.
    public func retry(_ line: Transcript.Line) async throws { try await client.outbox.retry(clientID: line.id) }

    /// Gives a line that failed up.
    public func discard(_ line: Transcript.Line) async throws { try await client.outbox.discard(clientID: line.id) }

    /// Lets the server push to this device where there is no connection.
    public func register(_ token: PushToken) async throws { try await client.registerPushToken(token) }

    /// Ends the session on this device; ``run(_:loggedIn:)`` then returns.
    public func signOut() async throws { try await client.logOut(removesDevice: true) }

    /// Closes the connection; what waits to be sent stays in the store.
    public func close() async { await client.close() }

    private func markRead(_ conversation: Conversation) {
        guard let seq = state[conversation]?.lastSeq else { return }
        // Not waited for: the next mark says the same and more.
        Task { [client] in try? await client.markRead(conversation, upToSeq: seq) }
    }
}
