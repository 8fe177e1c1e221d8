// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// What the peer asks of its inbox and its conversations, in every protocol.
extension InboxLink {
    /// Asks the core, as a slow request: nothing is read from the peer until the answer is there, and the connection pays.
    ///
    /// - Parameters:
    ///   - request: what is asked.
    ///   - then: writes the answer in the words of the protocol; not called if the connection has ended meanwhile. The
    ///     entries of a page follow by themselves, as all entries do.
    func ask(_ request: InboxRequest, then: @escaping (Result<InboxAnswer, HermesError>) -> Void) {
        let inbox = messenger.inbox
        let source = connection.source(of: principal)
        let maxBytes = connection.maxBytes(of: request)
        connection.ask(costing: RequestCost(of: request)) { [user = principal.user] completion in
            inbox.answer(request, for: user, source: source, maxBytes: maxBytes, completion: completion)
        } reading: {
            $0.cost?.bytes ?? 0
        } then: { [self] (result: Result<InboxReply, HermesError>) in
            if case .success(let reply) = result, let cost = reply.cost {
                connection.charge(.page(entries: cost.entries))
            }
            then(result.map(\.answer))
            if case .success(.page(let page)) = result.map(\.answer) { write(requested: page) }
        }
    }
}

extension RequestCost {
    /// What a request costs before its answer is known.
    init(of request: InboxRequest) {
        switch request {
        case .page, .markRead, .recall: self = .change
        case .history, .conversations: self = .lookup
        }
    }
}

extension Connection {
    /// The most bytes of contents in an answer: it must fit into the queue, or into one frame.
    fileprivate func maxBytes(of request: InboxRequest) -> Int {
        switch request {
        case .page: listener.limits.outboundQueueBytes / 2
        case .history: listener.limits.maxFrameBytes / 2
        case .conversations, .markRead, .recall: .max
        }
    }
}
