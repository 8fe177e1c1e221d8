// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire

/// Method 2: friends, which are the core's contacts.
extension IMPBConnection {
    func friend(_ message: IMPB_Friend_msg, seq: UInt32, from sender: Sender) {
        switch message.cmd {
        case .addFriend:
            guard let request: IMPB_add_friend_req = parse(message.body, seq) else { return }
            friend(.request, request.targetID, request.extMsg, seq: seq, from: sender)
        case .receiveFriend:
            guard let request: IMPB_receive_friend_req = parse(message.body, seq) else { return }
            friend(request.isReceive ? .accept : .decline, request.targetUid, request.extMsg, seq: seq, from: sender)
        case .friendList:
            guard let request: IMPB_get_friend_list_req = parse(message.body, seq) else { return }
            friends(request, seq: seq, from: sender)
        case .userInfoByID:
            guard let request: IMPB_get_user_info_by_id = parse(message.body, seq) else { return }
            userInfo(request, seq: seq, from: sender)
        case .removeFriend:
            friend(.remove, message, seq: seq, from: sender)
        case .block:
            friend(.block, message, seq: seq, from: sender)
        case .unblock:
            friend(.unblock, message, seq: seq, from: sender)
        case .UNRECOGNIZED:
            fail(seq, HermesError(.invalidArgument, "friend command \(message.cmd.rawValue) has no meaning"))
        }
    }

    private func friend(_ command: ContactCommand, _ message: IMPB_Friend_msg, seq: UInt32, from sender: Sender) {
        guard let request: IMPB_friend_target_req = parse(message.body, seq) else { return }
        friend(command, String(request.uid), "", seq: seq, from: sender)
    }

    private func friend(
        _ command: ContactCommand,
        _ target: String,
        _ message: String,
        seq: UInt32,
        from sender: Sender
    ) {
        let messenger = messenger
        let principal = sender.principal
        connection.ask { () async throws(HermesError) in
            let peer = try await Self.account(target, for: principal.user, messenger)
            try await messenger.contacts.apply(command, to: peer.id, message: message, by: principal)
        } then: { [self] result in
            answer(seq, result)
        }
    }

    /// Returns the account for a decimal uid or a name.
    private static func account(
        _ target: String,
        for viewer: UserID,
        _ messenger: Messenger
    ) async throws(HermesError) -> Account {
        let key = try AccountKey(uidOrName: target)
        guard let account = try await messenger.accounts.account(key, for: .account(viewer)) else {
            throw StoreRefusals.noSuchAccount
        }
        return account
    }

    private func userInfo(_ request: IMPB_get_user_info_by_id, seq: UInt32, from sender: Sender) {
        let messenger = messenger
        let viewer = sender.principal.user
        connection.ask { () async throws(HermesError) in
            let account = try await Self.account(request.targetID, for: viewer, messenger)
            return (account, try await !messenger.contacts.online(among: [account.id], for: viewer).isEmpty)
        } then: { [self] (result: Result<(account: Account, isOnline: Bool), HermesError>) in
            switch result {
            case .failure(let error): fail(seq, error)
            case .success(let (account, isOnline)):
                var answer = IMPB_user_info_res()
                answer.userInfo = IMPBTranslation.userInfo(account, isOnline: isOnline)
                succeed(seq, answer)
            }
        }
    }

    private func friends(_ request: IMPB_get_friend_list_req, seq: UInt32, from sender: Sender) {
        guard request.page >= 0, request.limit >= 0 else {
            return fail(seq, HermesError(.invalidArgument, "page and limit must not be negative"))
        }
        let limit = request.limit == 0 ? 100 : Int(min(request.limit, 500))
        let skipped = Int(request.page) * limit
        let contacts = messenger.contacts
        let user = sender.principal.user
        connection.ask { () async throws(HermesError) in
            let (found, lookedAt) = try await contacts.accepted(of: user, skipped: skipped, limit: limit)
            return (found, lookedAt, try await contacts.online(among: found.map(\.account.id), for: user))
        } then: { [self] (result: Result<(found: [Contact], lookedAt: Int, online: Set<UserID>), HermesError>) in
            switch result {
            case .failure(let error): fail(seq, error)
            case .success(let (found, lookedAt, online)):
                // This charges each row that was read, because skipped rows are nearly as much work. It also charges
                // each contact whose presence was looked up.
                connection.charge(.page(entries: lookedAt + found.count))
                guard let list = IMPBTranslation.userList(found, isOnline: { online.contains($0) }) else {
                    return fail(
                        seq,
                        HermesError(.tooLarge, "the page does not fit into a frame; ask for fewer users per page")
                    )
                }
                succeed(seq, list)
            }
        }
    }
}
