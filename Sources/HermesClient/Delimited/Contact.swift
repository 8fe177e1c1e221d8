// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire

/// Somebody in one's list of contacts, or on the way into or out of it.
public struct Contact: Hashable, Sendable {
    /// How the two stand to each other.
    public enum State: Hashable, Sendable {
        /// Both agreed.
        case accepted
        /// One asked the other, who has not answered.
        case requested
        /// The other asks.
        case incoming
        /// One blocked the other.
        case blocked
        /// A state that this version does not know.
        case unknown
    }

    /// The other's account.
    public var account: Account
    /// How the two stand to each other.
    public var state: State
}

// MARK: - Contacts
extension HermesClient {
    /// Asks somebody for contact; if they have asked already, that is a yes.
    ///
    /// - Parameters:
    ///   - uid: whom.
    ///   - message: what they are told, at most 256 bytes.
    /// - Throws: HermesClientError `.forbidden` if one of the two blocks the other; `.notFound` if there is no such account.
    public func requestContact(with uid: UInt32, message: String = "") async throws {
        try await contact { request in
            request.add.uid = uid
            request.add.message = message
        }
    }

    /// Answers somebody who asked.
    ///
    /// - Parameters:
    ///   - uid: who asked.
    ///   - accepts: yes or no.
    ///   - message: what they are told, at most 256 bytes.
    /// - Throws: HermesClientError `.notFound` if they did not ask.
    public func answerContact(from uid: UInt32, accepts: Bool, message: String = "") async throws {
        // What was declined cannot be declined again.
        try await contact(replay: accepts ? .always : .never) { request in
            request.answer.uid = uid
            request.answer.accept = accepts
            request.answer.message = message
        }
    }

    /// Ends a contact for both, or takes a request back.
    ///
    /// - Throws: HermesClientError `.notFound` if there is none.
    public func removeContact(_ uid: UInt32) async throws {
        try await contact(replay: .never) { $0.remove.uid = uid }
    }

    /// From now on neither messages nor requests of this account arrive.
    public func block(_ uid: UInt32) async throws { try await contact { $0.block.uid = uid } }

    /// The reverse of ``block(_:)``.
    public func unblock(_ uid: UInt32) async throws { try await contact { $0.unblock.uid = uid } }

    /// All contacts by uid, with those who ask, are asked or are blocked.
    public func contacts() async throws -> [Contact] {
        var contacts: [Contact] = []
        while true {
            var request = Hermes_V1_ContactRequest()
            request.list.afterUid = contacts.last?.account.uid ?? 0
            request.list.limit = 500
            let result = try await result(of: .contact(request), replay: .always)
            guard case .contacts(let page) = result.value else { throw Self.unexpected("contacts") }
            contacts += page.contacts.map { Contact($0) }
            guard page.more, !page.contacts.isEmpty else { return contacts }
        }
    }

    private func contact(
        replay: ConnectionDriver<DelimitedLink>.Requests.Replay = .always,
        _ fill: (inout Hermes_V1_ContactRequest) -> Void
    ) async throws {
        var request = Hermes_V1_ContactRequest()
        fill(&request)
        _ = try await result(of: .contact(request), replay: replay)
    }
}

extension Contact {
    init(_ contact: Hermes_V1_Contact) {
        account = Account(
            uid: contact.uid,
            nickName: contact.nickName,
            avatarURL: contact.avatarURL,
            isOnline: contact.isOnline
        )
        state =
            switch contact.state {
            case .accepted: .accepted
            case .requested: .requested
            case .incoming: .incoming
            case .blocked: .blocked
            case .unspecified, .UNRECOGNIZED: .unknown
            }
    }
}
