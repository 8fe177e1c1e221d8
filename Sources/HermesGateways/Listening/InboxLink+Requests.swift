// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// The peer's requests to its inbox, its conversations and its groups, in every protocol.
extension InboxLink {
    /// Passes a request to the core, as a slow request: nothing is read from the peer until the answer arrives, and the
    /// connection pays.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - then: writes the answer in the form of the protocol; not called if the connection has ended meanwhile. After
    ///     that call, this function writes the entries of a requested page in the same way as all other entries.
    func ask(_ request: InboxRequest, then: @escaping (Result<InboxAnswer, HermesError>) -> Void) {
        let inbox = messenger.inbox
        let source = connection.source(of: principal)
        let maxBytes = connection.maxBytes(of: request)
        connection.ask(costing: RequestCost(of: request)) { [user = principal.user] completion in
            inbox.answer(request, for: user, source: source, maxBytes: maxBytes, completion: completion)
        } reading: {
            $0.cost?.bytes ?? 0
        } causing: {
            $0.reach
        } then: { [self] (result: Result<InboxReply, HermesError>) in
            if case .success(let reply) = result, let cost = reply.cost {
                connection.charge(.page(entries: cost.entries))
            }
            then(result.map(\.answer))
            if case .success(.page(let page)) = result.map(\.answer) { write(requested: page) }
        }
    }

    /// Changes a group, as a slow request. The connection pays for everybody whom the change reaches.
    ///
    /// - Parameters:
    ///   - command: the change.
    ///   - then: writes the answer, and gets the group as it is after the change. Not called if the connection has
    ///     ended meanwhile.
    func apply(_ command: GroupCommand, then: @escaping (Result<Group, HermesError>) -> Void) {
        let groups = messenger.groups
        connection.charge(.group)
        connection.ask { [principal] () async throws(HermesError) in
            try await groups.answer(command, by: principal)
        } causing: {
            $0.reach
        } then: { (result: Result<(group: Group, reach: ChangeReach), HermesError>) in
            then(result.map(\.group))
        }
    }
}

extension RequestCost {
    /// Creates the part of a request's cost that is known before the answer.
    init(of request: InboxRequest) {
        switch request {
        case .page, .markRead, .recall: self = .change
        case .history, .conversations: self = .lookup
        }
    }
}

extension Connection {
    /// Returns the largest total size of the contents in an answer, in bytes. The answer must fit into the queue, or
    /// into one frame.
    fileprivate func maxBytes(of request: InboxRequest) -> Int {
        switch request {
        case .page: listener.limits.outboundQueueBytes / 2
        case .history: listener.limits.maxFrameBytes / 2
        case .conversations: min(listener.limits.maxFrameBytes, listener.limits.outboundQueueBytes) / 2
        case .markRead, .recall: .max
        }
    }
}
