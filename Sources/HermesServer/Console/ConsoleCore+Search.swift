// Hermes
// SPDX-License-Identifier: Apache-2.0

#if Pages
import HermesCore
import HermesGateways
import HermesPush
import HermesWire

/// The search box looks for one text in everything that the caller may see.
///
/// A search takes a bounded time: it finds a few results of each kind, and examines at most
/// ``StoreSettings/maxSearched`` accounts and the same number of devices, of groups and of sessions. A search counts as
/// a change against the session's rate.
extension ConsoleCore {
    /// The kinds of results, in the order in which the answer lists them.
    private enum Kind: String, CaseIterable {
        case account
        case device
        case group
        case room
        case invitation
        case retained
        case client
        case session
        case key
        case message
        case webhook
        case setting
        case audit
        case log
        case administrator

        /// The role that is needed to see results of this kind.
        var role: AdministratorRole {
            switch self {
            case .account, .device, .group, .room, .invitation: .viewer
            case .retained, .client, .session, .key, .message, .webhook, .setting, .audit, .log: .operator
            case .administrator: .administrator
            }
        }
    }

    /// Something that was found.
    private struct Hit {
        /// The identifier of the result in the view that shows it.
        let id: String
        let title: String
        var detail = ""
    }

    /// The largest number of results of one kind.
    private static let maxHits = 10
    private static let maxCharacters = 256
    /// The number of the newest audit log entries that one search examines.
    private static let maxAudited = 2_000

    var searchRoutes: [ConsoleRoute] {
        [
            view(
                "/search",
                "search",
                "Whatever has a text in its name, or as its id.",
                .viewer,
                query: [
                    APIRoute.Parameter("text", .string(length: 1...Self.maxCharacters), required: true, "The text.")
                ],
                search
            )
        ]
    }

    private func search(_ call: APICall) async throws -> APIAnswer {
        let text = Self.trimmed(call.query["text"] ?? "")
        let role = call.console?.session?.role ?? .viewer
        var (found, more): ([JSON], [JSON]) = ([], [])
        for kind in Kind.allCases where role >= kind.role && !text.isEmpty {
            let hits = try await find(text, in: kind)
            if hits.count > Self.maxHits { more.append(.string(kind.rawValue)) }
            found += hits.prefix(Self.maxHits).map { hit in
                [
                    "kind": .string(kind.rawValue), "id": .string(hit.id), "title": .string(hit.title),
                    "detail": .string(hit.detail),
                ]
            }
        }
        return APIAnswer(["results": .array(found), "more": .array(more)])
    }

    private static func trimmed(_ text: String) -> String {
        let rest = text.drop { $0.isWhitespace }
        return String(rest.dropLast(rest.reversed().prefix { $0.isWhitespace }.count))
    }

    /// Finds at most one result more than is shown, so that the caller can see whether there are more.
    private func find(_ text: String, in kind: Kind) async throws -> [Hit] {
        let limit = Self.maxHits + 1
        switch kind {
        case .account: return try await accounts(text, limit)
        case .device: return try await devices(text, limit)
        case .group: return try await groups(text, limit)
        case .room:
            let found = await api.rooms.rooms(containing: text, limit: limit).rooms
            return found.map { Hit(id: $0.name.rawValue, title: $0.name.rawValue) }
        case .invitation:
            let all = try await api.messenger.accounts.invitations.invitations()
            return Self.names(all.map(\.name), containing: text).map { Hit(id: $0, title: $0) }
        case .retained: return retained(text, limit)
        case .client:
            let found = await api.loops.clients(after: 0, containing: text, limit: limit)
            return found.map { Hit(id: $0.clientID, title: $0.clientID, detail: $0.owner) }
        case .session:
            let found = try await api.messenger.durable.list(
                after: nil,
                containing: text,
                limit: limit,
                searched: StoreSettings.maxSearched
            )
            return found.map { session in
                let name = String(session.key.clientID.prefix(Self.maxCharacters))
                return Hit(id: name, title: name, detail: String(session.ownerName.prefix(Self.maxCharacters)))
            }
        case .key:
            return Self.names(try await api.keys.keys().map(\.name), containing: text).map { Hit(id: $0, title: $0) }
        case .message:
            return api.messenger.traces.find(text).prefix(limit).map(ControlTrace.init).map {
                Hit(id: $0.id, title: $0.id, detail: $0.clientID ?? "")
            }
        case .webhook:
            // Each event is listed once, however often it was posted.
            var shown: Set<String> = []
            let attempts = outbound.poster?.attempts.newest(WebhookAttempts.maxAttempts) ?? []
            let found = attempts.filter { $0.event.id == text && shown.insert($0.event.id).inserted }
            return found.map { Hit(id: $0.event.id, title: $0.event.id, detail: $0.failure ?? "") }
        case .setting:
            return Self.names(configuration.map(\.key), containing: text).map { Hit(id: $0, title: $0) }
        case .audit: return try await audited(text, limit)
        case .log:
            // The lines are reversed, so that the newest comes first.
            return (log?.lines(containing: text, limit: limit) ?? []).reversed().map { line in
                let message = String(line.message.prefix(Self.maxCharacters))
                return Hit(id: message, title: message, detail: String(line.fields.prefix(Self.maxCharacters)))
            }
        case .administrator:
            let all = try await administrators.administrators()
            let roles = Dictionary(all.map { ($0.name.rawValue, $0.role.rawValue) }) { first, _ in first }
            return Self.names(Array(roles.keys), containing: text).map {
                Hit(id: $0, title: $0, detail: roles[$0] ?? "")
            }
        }
    }

    /// Returns the elements that contain a given text, regardless of case. Only the first elements in alphabetical
    /// order are returned.
    private static func names(_ all: [String], containing text: String) -> [String] {
        let wanted = text.lowercased()
        return Array(all.filter { $0.lowercased().contains(wanted) }.sorted().prefix(maxHits + 1))
    }

    private func accounts(_ text: String, _ limit: Int) async throws -> [Hit] {
        // An account with exactly this number or name is found, however many accounts there are.
        var keys: [AccountKey] = UserID(text).map { [.id($0)] } ?? []
        if let name = try? NickName(text) { keys.append(.nickName(name)) }
        var found: [Account] = []
        for key in keys {
            if let account = try await api.messenger.accounts.account(key) { found.append(account) }
        }
        found += try await api.messenger.accounts.accounts(named: text, after: nil, limit: limit).found
        var shown: Set<UserID> = []
        return found.filter { shown.insert($0.id).inserted }.prefix(limit).map { account in
            Hit(id: String(account.id.rawValue), title: account.nickName.rawValue, detail: "#\(account.id.rawValue)")
        }
    }

    private func devices(_ text: String, _ limit: Int) async throws -> [Hit] {
        var hits: [Hit] = []
        for device in try await api.messenger.accounts.devices(containing: text, limit: limit) {
            let owner = try await api.messenger.accounts.account(.id(device.owner))
            let name = device.description.name
            hits.append(
                Hit(
                    // The view of the owner's account shows the device.
                    id: String(device.owner.rawValue),
                    title: device.description.id.rawValue,
                    detail: [name, owner?.nickName.rawValue ?? ""].filter { !$0.isEmpty }.joined(separator: " · ")
                )
            )
        }
        return hits.sorted { ($0.title, $0.id) < ($1.title, $1.id) }
    }

    /// Returns topics that contain the text. A topic with exactly this name comes first, and is found however many
    /// topics there are.
    private func retained(_ text: String, _ limit: Int) -> [Hit] {
        let retained = api.messenger.retained
        let now = api.messenger.time.now()
        var found = retained.topics(containing: text, now: now, limit: limit).map(\.rawValue).sorted()
        if let topic = TopicName(text), let whole = retained.publication(of: topic), !whole.hasExpired(at: now) {
            found = [text] + found.filter { $0 != text }
        }
        return found.prefix(limit).map { Hit(id: $0, title: $0) }
    }

    /// Returns entries of the audit log whose name, address, action, object or result contains a given text, the newest
    /// first.
    private func audited(_ text: String, _ limit: Int) async throws -> [Hit] {
        let wanted = Group.searchKey(text)
        let entries = try await administrators.auditLog(before: nil, limit: Self.maxAudited)
        let found = entries.lazy.filter { entry in
            let event = entry.event
            return [event.who, event.address, event.action, event.target, event.result].contains {
                Group.searchKey($0).contains(wanted)
            }
        }
        return found.prefix(limit).map { entry in
            let event = entry.event
            return Hit(
                id: String(entry.id),
                title: "\(event.who): \(event.action)",
                detail: [event.target, event.result].filter { !$0.isEmpty }.joined(separator: " · ")
            )
        }
    }

    private func groups(_ text: String, _ limit: Int) async throws -> [Hit] {
        var found: [GroupSummary] = []
        if let id = Int32(text).flatMap(GroupID.init(rawValue:)) {
            do throws(HermesError) {
                found.append(try await api.messenger.groups.group(id).group.summary)
            } catch {
                guard error.code == .notFound else { throw error }
            }
        }
        found += try await api.messenger.groups.groups(named: text, after: nil, limit: limit).found
        var shown: Set<GroupID> = []
        return found.filter { shown.insert($0.id).inserted }.prefix(limit).map { group in
            Hit(id: String(group.id.rawValue), title: group.name, detail: "#\(group.id.rawValue)")
        }
    }
}

extension UserID {
    /// Reads a decimal number; nil for all other texts.
    fileprivate init?(_ text: String) {
        guard let number = Int32(text) else { return nil }
        self.init(rawValue: number)
    }
}
#endif
