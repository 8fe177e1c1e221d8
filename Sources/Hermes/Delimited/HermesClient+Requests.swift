// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

// MARK: - Messages
extension HermesClient {
    /// Sends a text; see ``send(_:to:attributes:clientID:expiresAfter:)``.
    ///
    /// - Parameters:
    ///   - text: at most 64 KiB of UTF-8.
    ///   - conversation: the recipient or group.
    /// - Throws: the errors of ``send(_:to:attributes:clientID:expiresAfter:)``.
    @discardableResult
    public func send(_ text: String, to conversation: Conversation) async throws -> SentMessage {
        try await send(.text(text), to: conversation)
    }

    /// Sends a message as soon as there is a connection. The call returns as soon as the message is in the store.
    ///
    /// With a ``FileLocalStore``, the message then survives the end of the process; if necessary, it is sent in the
    /// next run of the app. The messages of a conversation arrive in the order of the calls, and each arrives once.
    ///
    /// - Parameters:
    ///   - content: the message's content.
    ///   - conversation: the recipient or group.
    ///   - attributes: the application's own key-value pairs; at most 32 pairs and 4 KiB in all.
    ///   - clientID: the client's id for the message, 1 to 64 bytes. A repeated call with the same id and the same
    ///     values does not send the message twice. If `clientID` is nil, the client makes a random id.
    ///   - expiresAfter: the time after which the server no longer delivers the message, in whole seconds from the
    ///     message's arrival at the server. If it is nil, the server's retention time applies.
    /// - Returns: the message, whose ``SentMessage/receipt()`` waits for the server.
    /// - Throws: HermesClientError `.outboxFull`, `.storeFull` or `.storeFailed`; `.closed` if the client has never
    ///   logged in, or while another account may be logging in; `.clientIDConflict` if another message has the same
    ///   client id.
    @discardableResult
    public func send(
        _ content: MessageContent,
        to conversation: Conversation,
        attributes: [String: String] = [:],
        clientID: String? = nil,
        expiresAfter: Duration? = nil
    ) async throws -> SentMessage {
        let send = Self.wire(content, conversation, attributes, clientID: clientID, expiresAfter: expiresAfter)
        return try await outbox.send(send)
    }

    /// Sends a message without the outbox and waits for its receipt. The call fails at the first refusal, even a
    /// temporary one. This method is for commands that send one message.
    ///
    /// - Throws: HermesClientError if the server refuses the message, or if no receipt arrives within 300 s;
    ///   CancellationError.
    @discardableResult
    package func sendDirectly(
        _ content: MessageContent,
        to conversation: Conversation,
        clientID: String? = nil
    ) async throws -> Receipt {
        let send = Self.wire(content, conversation, [:], clientID: clientID, expiresAfter: nil)
        let result = try await result(of: .send(send), replay: .always, timeout: Outbox.sendTimeout)
        guard case .receipt(let receipt) = result.value else { throw Self.unexpected("receipt") }
        return Receipt(receipt)
    }

    /// Marks all messages of a conversation up to the seq `upToSeq` as read.
    ///
    /// - Throws: HermesClientError `.forbidden` if the caller does not take part in the conversation; `.timedOut`;
    ///   CancellationError.
    public func markRead(_ conversation: Conversation, upToSeq: UInt64) async throws {
        var request = Hermes_V1_MarkRead()
        request.conversation = conversation.wire
        request.upToSeq = upToSeq
        _ = try await result(of: .markRead(request), replay: .always)
    }

    /// Recalls one of the account's own messages, within the time that the server allows.
    ///
    /// - Throws: HermesClientError `.notFound` if there is no such message; `.forbidden` if the message is not the
    ///   caller's own, or if that time is over; `.timedOut`; CancellationError.
    public func recall(_ id: MessageID, in conversation: Conversation) async throws {
        var request = Hermes_V1_Recall()
        request.conversation = conversation.wire
        request.messageID = id.rawValue
        _ = try await result(of: .recall(request), replay: .always)
    }

    /// Tells the other participants that the user is typing or has stopped typing. Does nothing without a connection.
    public func setTyping(_ isTyping: Bool, in conversation: Conversation) async {
        var request = Hermes_V1_Typing()
        request.conversation = conversation.wire
        request.stopped = !isTyping
        await driver.sendIfLive(.typing(request))
    }

    /// Fetches stored messages of a conversation.
    ///
    /// - Parameters:
    ///   - conversation: the conversation.
    ///   - beforeSeq: the page holds only messages with a smaller conversation seq. If it is 0, the page ends with the
    ///     newest message.
    ///   - limit: the largest number of messages, 1 to 500.
    /// - Returns: the messages, oldest first.
    /// - Throws: HermesClientError `.forbidden` if the caller does not take part in the conversation; `.timedOut`;
    ///   CancellationError.
    public func history(of conversation: Conversation, beforeSeq: UInt64 = 0, limit: Int = 50) async throws -> History {
        var request = Hermes_V1_HistoryRequest()
        request.conversation = conversation.wire
        request.beforeSeq = beforeSeq
        request.limit = UInt32(clamping: limit)
        let result = try await result(of: .history(request), replay: .always)
        guard case .history(let history) = result.value else { throw Self.unexpected("history") }
        return History(messages: history.messages.map { Message($0) }, hasMore: history.more)
    }
}

// MARK: - Accounts, devices, presence
extension HermesClient {
    /// Looks up an account by its name.
    ///
    /// - Throws: HermesClientError `.notFound` if there is no such account.
    public func account(named nickName: String) async throws -> Account {
        try await account { $0.nickName = nickName }
    }

    /// Looks up an account by its number.
    ///
    /// - Throws: HermesClientError `.notFound` if there is no such account.
    public func account(id: UserID) async throws -> Account {
        try await account { $0.uid = id.rawValue }
    }

    /// Fetches the devices of the account.
    ///
    /// - Throws: HermesClientError `.timedOut`; CancellationError.
    public func devices() async throws -> [Device] {
        var request = Hermes_V1_DeviceRequest()
        request.list = Hermes_V1_ListDevices()
        let result = try await result(of: .device(request), replay: .always)
        return result.devices.devices.map { Device($0) }
    }

    /// Removes a device of the account. The device is logged out, and the server keeps nothing for it.
    ///
    /// - Throws: HermesClientError `.notFound` if there is no such device; `.timedOut`; CancellationError.
    public func removeDevice(id: String) async throws {
        var request = Hermes_V1_DeviceRequest()
        request.remove.deviceID = id
        _ = try await result(of: .device(request), replay: .always)
    }

    /// Watches the presence of accounts from now on; changes arrive as ephemeral events.
    ///
    /// - Parameter uids: the accounts to watch. A client can watch 1,000 accounts, including those of earlier calls;
    ///   further accounts are not watched.
    /// - Returns: the present states of the accounts.
    /// - Throws: HermesClientError `.tooLarge` if the call names more than 1,000 accounts; `.timedOut`;
    ///   CancellationError.
    public func watchPresence(of uids: [UserID]) async throws -> [Presence] {
        var request = Hermes_V1_PresenceRequest()
        request.watchUids = uids.map(\.rawValue)
        let result = try await result(of: .presence(request), replay: .always)
        return result.presence.presences.map { Presence($0) }
    }

    /// Stops watching accounts.
    ///
    /// - Throws: HermesClientError `.timedOut`; CancellationError.
    public func unwatchPresence(of uids: [UserID]) async throws {
        var request = Hermes_V1_PresenceRequest()
        request.unwatchUids = uids.map(\.rawValue)
        _ = try await result(of: .presence(request), replay: .always)
    }

    /// Logs out: revokes the token and closes the client.
    ///
    /// - Parameter removesDevice: whether to remove the device too, so that the server keeps nothing for it.
    /// - Throws: HermesClientError `.connectionLost` if the connection ends before the answer; `.timedOut`;
    ///   CancellationError. After an error, the client is still open.
    public func logOut(removesDevice: Bool = false) async throws {
        var request = Hermes_V1_LogOut()
        request.removeDevice = removesDevice
        _ = try await result(of: .logOut(request), replay: .never)
        await close()
    }

    /// Pings the server and returns the round-trip time.
    package func ping() async throws -> Duration {
        let start = ContinuousClock.now
        let answer = try await driver.request(
            .ping(Hermes_V1_Ping()),
            replay: .never,
            timeout: configuration.requestTimeout
        )
        guard case .pong = answer else { throw Self.unexpected("pong") }
        return ContinuousClock.now - start
    }

    private func account(_ select: (inout Hermes_V1_AccountSelector) -> Void) async throws -> Account {
        var request = Hermes_V1_AccountRequest()
        var selector = Hermes_V1_AccountSelector()
        select(&selector)
        request.get = selector
        let result = try await result(of: .account(request), replay: .always)
        guard case .account(let account) = result.value else { throw Self.unexpected("account") }
        return Account(account)
    }
}

// MARK: - Rooms
extension HermesClient {
    /// Enters a room. After each reconnect the client enters it again, until the app calls ``leaveRoom(_:)`` or gets a
    /// `kicked` event. The app gets this event if the server has removed the client from the room, or has refused to
    /// let it enter again.
    ///
    /// - Parameters:
    ///   - room: 1 to 64 bytes of letters, digits, "-", "_" and ".".
    ///   - user: the data of this user that the others in the room see.
    /// - Returns: the number of connections in the room, including this one.
    /// - Throws: HermesClientError `.forbidden` if the account may not enter the room, if the client is already in it,
    ///   or if the client is in too many rooms; `.invalidArgument` if the room's name contains other characters;
    ///   `.tooLarge` if the room's name has more than 64 bytes, the user's name more than 256 bytes, or the icon's URL
    ///   more than 1,024 bytes; `.timedOut`; CancellationError.
    @discardableResult
    public func enterRoom(_ room: String, as user: RoomUser) async throws -> Int {
        var request = Hermes_V1_RoomRequest()
        request.room = room
        request.enter.user = user.wire
        let result = try await result(of: .room(request), replay: .always)
        return Int(clamping: result.room.memberCount)
    }

    /// Enters a room, runs the body with the room's events, and then leaves the room, even if the body throws or the
    /// task is cancelled.
    ///
    /// ```swift
    /// try await client.enterRoom("lobby", as: RoomUser(name: "Ann")) { events in
    ///     for await event in events {
    ///         if case .text(let text) = event.room?.kind { print(text) }
    ///     }
    /// }
    /// ```
    ///
    /// The sequence holds the room's events and the reports of lost pushes to the room. It buffers up to 8,192 events
    /// and 16 MiB; if the buffer is full, new events are dropped. The time during which the body runs is called a
    /// scope. After the scope, the client stays in the room if another scope needs the room, or if the app had entered
    /// the room before with ``enterRoom(_:as:)``. If another scope is entering the room, this call waits for that
    /// entry, and enters the room itself only if that entry fails.
    ///
    /// - Parameters:
    ///   - room: 1 to 64 bytes of letters, digits, "-", "_" and ".".
    ///   - user: the data of this user that the others in the room see.
    ///   - body: the closure that gets the sequence of events. The sequence ends when the client has stopped.
    /// - Throws: the body's error; HermesClientError if the server refuses the entry.
    public nonisolated(nonsending) func enterRoom<Result>(
        _ room: String,
        as user: RoomUser,
        _ body: nonisolated(nonsending) (ClientEvents<EphemeralEvent>) async throws -> Result
    ) async throws -> Result {
        let topic = "room/\(room)"
        let events = ephemeral.subscribe { event in
            switch event.kind {
            case .room(let event): event.room == room
            case .missedPushes(let missed, _): missed == topic
            case .typing, .presence, .signal, .notice: false
            }
        }
        let scope = await driver.beginRoomScope(room)
        do {
            if try await driver.mustEnterRoom(scope) {
                try await enterRoom(room, as: user)
                await driver.roomEntered(scope)
            }
            let result = try await body(events)
            await driver.endRoomScope(scope)
            return result
        } catch {
            await driver.endRoomScope(scope)
            throw error
        }
    }

    /// Leaves a room.
    ///
    /// - Throws: HermesClientError `.forbidden` if the client is not in the room; `.timedOut`; CancellationError.
    public func leaveRoom(_ room: String) async throws {
        var request = Hermes_V1_RoomRequest()
        request.room = room
        request.leave = Hermes_V1_LeaveRoom()
        _ = try await result(of: .room(request), replay: .always)
    }

    /// Sends a text to everyone in a room, including the sender.
    ///
    /// - Parameters:
    ///   - room: a room that the client has entered.
    ///   - text: the text.
    /// - Throws: HermesClientError `.forbidden` if the client is not in the room, or may not speak; `.rateLimited`;
    ///   `.connectionLost` if the connection ends before the answer; `.timedOut`; CancellationError.
    public func sayInRoom(_ room: String, _ text: String) async throws {
        var request = Hermes_V1_RoomRequest()
        request.room = room
        request.text.text = text
        _ = try await result(of: .room(request), replay: .never)
    }

    /// Sends a gift to everyone in a room, including the sender.
    ///
    /// - Parameters:
    ///   - room: a room that the client has entered.
    ///   - gift: the name of the gift.
    ///   - count: the number of gifts.
    ///   - url: the URL of the gift's picture; nil if there is none.
    /// - Throws: the errors of ``sayInRoom(_:_:)``.
    public func giveInRoom(_ room: String, _ gift: String, count: Int = 1, url: URL? = nil) async throws {
        var request = Hermes_V1_RoomRequest()
        request.room = room
        request.gift.name = gift
        request.gift.count = Int32(clamping: count)
        request.gift.url = url?.absoluteString ?? ""
        _ = try await result(of: .room(request), replay: .never)
    }
}

extension HermesClient {
    func result(
        of request: DelimitedLink.Request,
        replay: ConnectionDriver<DelimitedLink>.Requests.Replay,
        timeout: Duration? = nil
    ) async throws -> Hermes_V1_Result {
        let timeout = timeout ?? configuration.requestTimeout
        guard case .result(let result) = try await driver.request(request, replay: replay, timeout: timeout) else {
            throw Self.unexpected("result")
        }
        return result
    }

    static func unexpected(_ wanted: String) -> HermesClientError {
        HermesClientError(.protocolViolation, "the server's answer holds no \(wanted)")
    }

    static func wire(
        _ content: MessageContent,
        _ conversation: Conversation,
        _ attributes: [String: String],
        clientID: String?,
        expiresAfter: Duration?
    ) -> Hermes_V1_Send {
        var send = Hermes_V1_Send()
        send.to = conversation.wire
        send.clientID = clientID ?? makeClientID()
        send.content = content.wire(attributes: attributes)
        if let expiresAfter { send.expiresInSeconds = UInt32(clamping: max(1, expiresAfter.components.seconds)) }
        return send
    }

    /// Makes a random client id of 26 characters.
    package static func makeClientID() -> String {
        let digits = Array("0123456789abcdefghjkmnpqrstvwxyz")
        var random = SystemRandomNumberGenerator()
        return String((0..<26).map { _ in digits[Int.random(in: 0..<32, using: &random)] })
    }
}
