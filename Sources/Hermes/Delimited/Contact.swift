// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// An entry of the account's contact list: a contact, a request or a blocked account.
public struct Contact: Hashable, Sendable {
    /// A relation between two accounts. Newer versions add states, so a `switch` over them needs a `default`.
    #if hasAttribute(nonexhaustive)
    @nonexhaustive
    #endif
    public enum State: Hashable, Sendable {
        /// Both accounts agreed.
        case accepted
        /// This account sent a contact request; the other account has not answered.
        case requested
        /// The other account sent a contact request; this account has not answered.
        case incoming
        /// This account blocked the other.
        case blocked
        /// A state that this version does not know.
        case unknown
    }

    /// The other account.
    public var account: Account
    /// The relation between the two accounts.
    public var state: State
}

// MARK: - Contacts
extension HermesClient {
    /// Sends a contact request to an account. If that account has already sent a request to the caller, this call
    /// accepts that request.
    ///
    /// - Parameters:
    ///   - uid: the account that gets the request.
    ///   - message: a text for the request, at most 256 bytes.
    /// - Throws: HermesClientError `.forbidden` if one of the two accounts blocks the other; `.notFound` if there is no
    ///   such account.
    public func requestContact(with uid: UserID, message: String = "") async throws {
        try await contact { request in
            request.add.uid = uid.rawValue
            request.add.message = message
        }
    }

    /// Answers a contact request.
    ///
    /// - Parameters:
    ///   - uid: the account that sent the request.
    ///   - accepts: whether to accept the request.
    ///   - message: a text for the answer, at most 256 bytes.
    /// - Throws: HermesClientError `.notFound` if that account sent no request.
    public func answerContact(from uid: UserID, accepts: Bool, message: String = "") async throws {
        // The server answers a second decline with an error, so a decline is not sent again.
        try await contact(replay: accepts ? .always : .never) { request in
            request.answer.uid = uid.rawValue
            request.answer.accept = accepts
            request.answer.message = message
        }
    }

    /// Ends a contact for both accounts, withdraws the caller's request, or declines the other account's request.
    ///
    /// - Throws: HermesClientError `.notFound` if there is neither a contact nor a request; `.connectionLost` if the
    ///   connection ends before the answer; `.timedOut`; CancellationError.
    public func removeContact(_ uid: UserID) async throws {
        try await contact(replay: .never) { $0.remove.uid = uid.rawValue }
    }

    /// Blocks an account: its messages and requests are refused from now on.
    ///
    /// - Throws: HermesClientError `.notFound` if there is no such account; `.timedOut`; CancellationError.
    public func block(_ uid: UserID) async throws { try await contact { $0.block.uid = uid.rawValue } }

    /// Unblocks an account.
    ///
    /// - Throws: HermesClientError `.timedOut`; CancellationError.
    public func unblock(_ uid: UserID) async throws { try await contact { $0.unblock.uid = uid.rawValue } }

    /// Fetches all contacts, requests and blocked accounts, sorted by uid.
    ///
    /// - Throws: HermesClientError `.timedOut`; CancellationError.
    public func contacts() async throws -> [Contact] {
        var contacts: [Contact] = []
        while true {
            var request = Hermes_V1_ContactRequest()
            request.list.afterUid = contacts.last?.account.uid.rawValue ?? 0
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
            uid: UserID(rawValue: contact.uid),
            nickName: contact.nickName,
            avatarURL: URL(wire: contact.avatarURL),
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
