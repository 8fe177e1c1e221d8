// Hermes
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import HermesCore

/// Tests the state of a session if the store cannot record the end of its connection.
struct DurableClosingTests {
    private let id = DurableSessionID(rawValue: 1)
    private let key = SessionKey(owner: .subject("ann"), clientID: "one")
    private let now = Timestamp(rawValue: 1_000)
    private let failure = HermesError(.storageUnavailable, "full")

    private func applicant(_ connection: RecordingConnection) -> DurableState.Applicant {
        DurableState.Applicant(attachment: connection, clean: false, expiry: nil, at: now) { _ in }
    }

    /// Gives the session to a connection.
    ///
    /// - Parameter wasPresent: whether the store has found the session. If not, it has created the session.
    private func open(
        _ state: inout DurableState,
        for connection: RecordingConnection,
        wasPresent: Bool = true
    ) -> DurableOpening? {
        var session = StoredSession(id: id, key: key)
        session.wasPresent = wasPresent
        _ = state.attach(key, applicant(connection))
        for case .succeed(_, let opening) in state.opened(key, .success(.opened(session))) { return opening }
        return nil
    }

    /// Opens and closes the session. The store cannot record the end of the connection.
    private func closeInVain(_ state: inout DurableState) {
        let connection = RecordingConnection()
        _ = open(&state, for: connection)
        _ = state.detach(id, connection, sentUpTo: 5, expiresAt: nil, ends: false)
        _ = state.closed(id, failure)
    }

    /// Returns the value of "sent up to" for each end of a connection that must be stored.
    private func closes(_ actions: [DurableState.Action]) -> [UInt64] {
        var closes: [UInt64] = []
        for case .close(_, .close(_, let sentUpTo, _, _), _) in actions { closes.append(sentUpTo) }
        return closes
    }

    @Test func `a failed close is tried again until it succeeds, but not beside another change of the session`() {
        var state = DurableState(DurableSettings())
        closeInVain(&state)
        let second = state.expire(now: now, limit: 10)
        #expect(closes(second) == [5])
        let whileClosing = state.expire(now: now, limit: 10)
        #expect(whileClosing.isEmpty)
        _ = state.closed(id, failure)
        _ = state.attach(key, applicant(RecordingConnection()))
        let whileOpening = state.expire(now: now, limit: 10)
        #expect(whileOpening.isEmpty)
        _ = state.opened(key, .failure(failure))
        let third = state.expire(now: now, limit: 10)
        #expect(closes(third) == [5])
        _ = state.closed(id)
        let afterSuccess = state.expire(now: now, limit: 10)
        #expect(afterSuccess.isEmpty)
        #expect(state.unclosed.count == 0)
    }

    @Test func `a failed close is forgotten when its session is opened, has ended or is gone`() {
        var state = DurableState(DurableSettings())
        closeInVain(&state)
        #expect(state.unclosed.count == 1)
        let connection = RecordingConnection()
        _ = open(&state, for: connection)
        #expect(state.unclosed.count == 0)
        _ = state.detach(id, connection, sentUpTo: 5, expiresAt: nil, ends: false)
        _ = state.closed(id, HermesError(.notFound, "gone"))
        #expect(state.unclosed.count == 0)
        closeInVain(&state)
        #expect(state.unclosed.count == 1)
        _ = state.endAll(of: key.owner)
        #expect(state.unclosed.count == 0)
    }

    @Test(arguments: [true, false])
    func `what was sent counts for the next connection, unless the session is a new one`(wasPresent: Bool) {
        var state = DurableState(DurableSettings())
        closeInVain(&state)
        let opening = open(&state, for: RecordingConnection(), wasPresent: wasPresent)
        #expect(opening?.sentUpTo == (wasPresent ? 5 : 0))
    }
}
