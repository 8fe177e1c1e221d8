// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire

/// Requests that add, answer, remove, block, unblock and list contacts.
extension NativeConnection {
    func contact(_ request: Hermes_V1_ContactRequest, id: UInt64, from sender: Sender) {
        switch request.request {
        case .add(let add):
            contact(.request, add.uid, add.message, id: id, from: sender)
        case .answer(let answer):
            contact(answer.accept ? .accept : .decline, answer.uid, answer.message, id: id, from: sender)
        case .remove(let selector):
            contact(.remove, selector.uid, id: id, from: sender)
        case .block(let selector):
            contact(.block, selector.uid, id: id, from: sender)
        case .unblock(let selector):
            contact(.unblock, selector.uid, id: id, from: sender)
        case .list(let list):
            contacts(list, id: id, from: sender)
        case nil:
            fail(id, HermesError(.unsupported, "the server does not know this contact request"))
        }
    }

    private func contact(
        _ command: ContactCommand,
        _ uid: UInt32,
        _ message: String = "",
        id: UInt64,
        from sender: Sender
    ) {
        let peer: UserID
        do throws(HermesError) { peer = try RequestedIDs.user(uid) } catch { return fail(id, error) }
        let contacts = messenger.contacts
        let principal = sender.principal
        connection.ask { () async throws(HermesError) in
            try await contacts.apply(command, to: peer, message: message, by: principal)
        } then: { [self] result in
            answer(id, result)
        }
    }

    private func contacts(_ request: Hermes_V1_ListContacts, id: UInt64, from sender: Sender) {
        let limit = request.limit == 0 ? 100 : Int(min(request.limit, 500))
        let after: UserID?
        do throws(HermesError) {
            after = try RequestedIDs.place(after: request.afterUid)
        } catch {
            return fail(id, error)
        }
        let contacts = messenger.contacts
        let user = sender.principal.user
        connection.ask { () async throws(HermesError) in
            // This reads one more contact than requested, to find out whether more follow.
            let found = try await contacts.contacts(of: user, after: after, limit: limit + 1)
            return (found, try await contacts.online(among: found.map(\.account.id), for: user))
        } then: { [self] (result: Result<(found: [Contact], online: Set<UserID>), HermesError>) in
            switch result {
            case .failure(let error): fail(id, error)
            case .success(let (found, online)):
                connection.charge(.page(entries: found.count))
                var list = Hermes_V1_ContactList()
                list.contacts = found.prefix(limit).map { contact in
                    NativeTranslation.contact(contact, isOnline: online.contains(contact.account.id))
                }
                list.more = found.count > limit
                succeed(id, .contacts(list))
            }
        }
    }
}
