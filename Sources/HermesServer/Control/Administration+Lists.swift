// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesGateways

/// Conversations of an account, connected clients, and figures over time.
extension Administration {
    /// The largest number of elements in one answer.
    private static let maxPage = 1_000

    func conversations(
        of account: Account,
        after place: String?,
        limit: Int
    ) async throws(HermesError) -> ControlResponse {
        var after: ConversationPlace?
        if let place {
            guard let known = ConversationPlace(text: place) else {
                throw HermesError(.invalidArgument, "\"\(place.prefix(32))\" is not a place such as user:7 or group:9.")
            }
            after = known
        }
        let request = InboxRequest.conversations(after: after, limit: max(1, limit))
        // Requests of operators wait for one another, but not for the account's own requests.
        let answer = try await messenger.inbox.answer(request, for: account.id, source: .server)
        guard case .conversations(let page) = answer else {
            throw HermesError(.internalError, "the core answered another request")
        }
        return .conversations(page.conversations.map(ControlConversation.init), next: page.next?.text)
    }

    func respond(
        toListRequest request: ControlRequest,
        _ assembly: ServerAssembly
    ) async throws(HermesError) -> ControlResponse {
        switch request {
        case .listClients(let after, let text, let limit):
            let found = await assembly.core.loops.clients(
                after: after,
                containing: text,
                limit: min(max(1, limit), Self.maxPage)
            )
            let now = messenger.time.latest()
            return .clients(found.map { ControlMQTTClient($0, now: now) })
        case .disconnectClient(let number):
            guard let clientID = await assembly.core.loops.disconnectClient(number) else {
                throw HermesError(
                    .notFound,
                    "There is no connection \(number) any more. \"hermes clients list\" shows the open connections."
                )
            }
            await note("disconnectClient", "\(number) \(clientID)")
            return .disconnected(clientID: clientID)
        case .figureHistory(let names, let isMonth):
            guard let history = assembly.figures?.history else { return .figureHistory(ControlHistory()) }
            return .figureHistory(try history.part(names, isMonth: isMonth))
        default:
            throw HermesError(.internalError, "this request is not about a list")
        }
    }
}

extension FigureHistory {
    /// Returns the kept values of the named figures, or of all figures if none is named.
    fileprivate func part(_ wanted: [String], isMonth: Bool) throws(HermesError) -> ControlHistory {
        for name in wanted where !names.contains(name) {
            let known = names.joined(separator: ", ")
            throw HermesError(.notFound, "There is no figure \"\(name.prefix(64))\". The figures are \(known).")
        }
        let ring = isMonth ? means : recent
        let rows = ring.rows(after: nil)
        func values(_ ring: FigureRing, _ column: Int) -> [Double?] {
            // JSON has no infinite numbers and no NaN.
            rows.map { ring.value(column, number: $0).flatMap { $0.isFinite ? Double($0) : nil } }
        }
        var part = ControlHistory()
        part.interval = ring.interval
        part.from = rows.lowerBound * ring.interval
        for (column, name) in names.enumerated() where wanted.isEmpty || wanted.contains(name) {
            part.figures.append(
                ControlFigureValues(
                    name: name,
                    values: values(ring, column),
                    maxima: isMonth ? values(maxima, column) : nil
                )
            )
        }
        return part
    }
}

extension ControlConversation {
    init(_ conversation: ConversationSummary) {
        place = conversation.place.text
        name = conversation.name
        lastSeq = conversation.lastSeq
        lastAt = conversation.lastAt?.rawValue
        readUpTo = conversation.readUpTo
        unread = conversation.unread
    }
}

extension ControlMQTTClient {
    init(_ client: ClientListing, now: Timestamp) {
        number = client.number
        clientID = client.clientID
        owner = client.owner
        version = client.version
        listener = client.listener
        address = client.address
        since = client.since(now).rawValue
        subscriptions = client.subscriptions
        queued = client.queued
        inflight = client.inflight
        heldBytes = client.heldBytes
        isKept = client.isKept
    }
}
