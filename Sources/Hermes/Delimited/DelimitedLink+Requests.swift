// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore

/// Requests of the app.
extension DelimitedLink {
    mutating func write(_ request: Request, id: UInt64, into buffer: inout ByteBuffer) throws {
        var packet = Hermes_V1_Packet()
        packet.id = id
        packet.body = request
        let frame = try DelimitedFrame(packet)
        if let limit = serverMaxFrameBytes, frame.body.readableBytes > limit {
            let problem = "the request has \(frame.body.readableBytes) bytes; the server accepts at most \(limit)"
            throw HermesClientError(.notEncodable, problem)
        }
        // The server would end the connection whenever the client sent such a request.
        guard StreamSafeText.isSafe(frame.body) else {
            throw HermesClientError(.notEncodable, "a text in the request \(StreamSafeText.problem)")
        }
        if carrier == nil {
            try frame.write(into: &buffer)
        } else {
            try carrier?.write(packet, body: frame.body, into: &buffer)
        }
        remember(request, id: id)
    }

    /// Records data of a request. Its answer and later connections need this data.
    mutating func remember(_ request: Request, id: UInt64) {
        switch request {
        case .send(let send):
            sending[id] = ExactText(send.clientID)
        case .register:
            registerIsUnanswered = true
        case .room(let request):
            remember(request, id: id)
        case .presence(let request):
            watched.apply(request)
        default:
            // Other requests leave no state that outlives the connection.
            break
        }
    }

    /// A logout must not wait while the driver searches for a request that broke the protocol.
    static func isUrgent(_ request: Request) -> Bool { if case .logOut = request { true } else { false } }

    /// When a connection is lost, the client leaves its rooms. A device can be removed only once. A repeated request
    /// to leave or to remove is therefore refused if the first request succeeded. This refusal counts as success.
    static func answer(toRepeated request: Request, refusedWith error: HermesClientError) -> Answer? {
        switch (request, error.code) {
        case (.room(let request), .forbidden):
            guard case .leave? = request.request else { return nil }
        case (.device(let request), .notFound):
            guard case .remove? = request.request else { return nil }
        default:
            return nil
        }
        return .result(Hermes_V1_Result())
    }

    /// Handles the answer to a request of the app.
    mutating func finished(_ result: Hermes_V1_Result, id: UInt64, now: NIODeadline, effects: inout Effects) {
        guard !entryAnswered(result, id: id) else { return }
        let wasSend = sending.removeValue(forKey: id) != nil
        guard !result.hasError else {
            effects.append(.answer(id: id, .failure(HermesClientError(result.error))))
            return
        }
        if wasSend, case .receipt(let receipt) = result.value, receipt.inboxSeq > 0 {
            // The sent message is also an entry in the sender's own inbox. For this entry, the sending device gets only
            // the receipt. After the server has begun a new inbox, the entry itself can also arrive.
            seen.insert(sent: receipt.messageID)
            KnownEntry.note(KnownEntry(receipt), in: &newest)
            inbox.arrived(nil, seq: receipt.inboxSeq, to: receipt.inboxSeq, now: now, output: &outputs)
            drain(&effects)
        }
        effects.append(.answer(id: id, .success(.result(result))))
    }

    mutating func appStateKnown(_ state: DeviceConditions.AppState, isLive: Bool, effects: inout Effects) {
        guard state != appState else { return }
        appState = state
        guard isLive else { return }
        var request = Hermes_V1_PresenceRequest()
        request.appState = state.wire
        effects.append(.send(.presence(request), id: ID.presence))
    }
}
