// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire

/// A scope in a room: the time during which a closure of the app runs and needs the room.
struct RoomScope: Sendable {
    let room: String
    let id: UInt64
    /// The login during which the scope began; see ``DelimitedLink/logins``.
    let login: UInt64
}

/// The scopes in one room.
struct RoomScopes: Sendable {
    /// The logins during which the scopes began, by the ids of the scopes.
    var logins: [UInt64: UInt64] = [:]
    /// Whether the client leaves the room when the last scope ends. The client stays if the app had entered the room
    /// before the first scope.
    var leaves: Bool
    /// The scope that is entering the room; nil if none is.
    var entering: UInt64?
    /// The scopes that wait until no scope is entering the room, by id.
    var waiters: [UInt64: CheckedContinuation<Void, Never>] = [:]

    /// Resumes all waiting scopes. Each then checks again whether the client is in the room.
    mutating func resumeWaiters() {
        for waiter in waiters.values { waiter.resume() }
        waiters = [:]
    }
}

extension DelimitedLink {
    /// Forgets the scopes of earlier logins, because another account has logged in.
    mutating func forgetRoomScopes() {
        let present = logins
        for (room, var scopes) in roomScopes {
            scopes.resumeWaiters()
            scopes.logins = scopes.logins.filter { $0.value == present }
            if let entering = scopes.entering, scopes.logins[entering] == nil { scopes.entering = nil }
            scopes.leaves = true
            roomScopes[room] = scopes.logins.isEmpty ? nil : scopes
        }
    }
}

extension ConnectionDriver where Link == DelimitedLink {
    /// Begins a scope in a room.
    func beginRoomScope(_ room: String) -> RoomScope {
        let scope = RoomScope(room: room, id: nextWaiterID(), login: link.logins)
        var scopes = link.roomScopes[room] ?? RoomScopes(leaves: link.rooms[room] == nil)
        scopes.logins[scope.id] = scope.login
        link.roomScopes[room] = scopes
        return scope
    }

    /// Waits while another scope is entering the room.
    ///
    /// - Returns: whether this scope must enter the room. The scope then calls `roomEntered`, or `endRoomScope` if the
    ///   entry fails.
    /// - Throws: HermesClientError `.closed` if the app has logged in again since the scope began; CancellationError.
    func mustEnterRoom(_ scope: RoomScope) async throws -> Bool {
        while true {
            guard scope.login == link.logins, let scopes = link.roomScopes[scope.room], scopes.logins[scope.id] != nil
            else { throw HermesClientError(.closed, "the login ended before the client had entered the room") }
            if link.rooms[scope.room] != nil { return false }
            guard scopes.entering != nil else {
                link.roomScopes[scope.room]?.entering = scope.id
                return true
            }
            await waitForEntry(of: scope)
            try Task.checkCancellation()
        }
    }

    /// Resumes the scopes that wait for this scope's entry.
    func roomEntered(_ scope: RoomScope) {
        guard link.roomScopes[scope.room]?.entering == scope.id else { return }
        link.roomScopes[scope.room]?.entering = nil
        link.roomScopes[scope.room]?.resumeWaiters()
    }

    /// Ends a scope in a room. If another scope needs the room, or if the app had entered the room before the first
    /// scope, the client stays in the room. Otherwise the client leaves the room, without waiting for the server's
    /// answer.
    func endRoomScope(_ scope: RoomScope) {
        guard var scopes = link.roomScopes[scope.room], scopes.logins.removeValue(forKey: scope.id) != nil
        else { return }
        let hasFailed = scopes.entering == scope.id
        if hasFailed {
            scopes.entering = nil
            scopes.resumeWaiters()
        }
        let isLast = scopes.logins.isEmpty
        link.roomScopes[scope.room] = isLast ? nil : scopes
        // A scope whose entry failed also leaves the room. The server may still carry out the failed entry, and would
        // then refuse the next scope's entry.
        guard isLast ? scopes.leaves : hasFailed && link.rooms[scope.room] == nil else { return }
        var request = Hermes_V1_RoomRequest()
        request.room = scope.room
        request.leave = Hermes_V1_LeaveRoom()
        sendIfLive(.room(request))
        // This is also needed without a connection, so that the next connection does not enter the room again.
        link.left(scope.room)
    }

    /// Waits until no other scope is entering the room, or the task is cancelled.
    private func waitForEntry(of scope: RoomScope) async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                guard !Task.isCancelled, link.roomScopes[scope.room] != nil else { return continuation.resume() }
                link.roomScopes[scope.room]?.waiters[scope.id] = continuation
            }
        } onCancel: {
            onLoop { driver in
                driver.link.roomScopes[scope.room]?.waiters.removeValue(forKey: scope.id)?.resume()
            }
        }
    }
}
