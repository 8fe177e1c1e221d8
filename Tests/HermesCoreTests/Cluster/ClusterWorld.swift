// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import Synchronization
import Testing

@testable import HermesCore

/// Several cores in one process. They share one store in memory and one bus.
final class ClusterWorld: Sendable {
    let store: MemoryStore
    let time = ManualTime()
    let network: MemoryNetwork
    let cores: [Messenger]
    private let reported = PresenceReports()
    private let dead = Mutex<Set<Int>>([])

    /// Creates cores that have started and know each other. The accounts have the numbers from 1 to `people`, and each
    /// account has these devices.
    ///
    /// - Parameter ahead: how far the wall clocks of the cores are ahead. By default, the clocks agree.
    init(
        seed: UInt64 = 1,
        cores count: UInt8 = 3,
        people: Int32,
        devices: [String] = ["phone"],
        ahead: [Duration] = [],
        store: MemoryStore = MemoryStore()
    ) async throws {
        self.store = store
        network = MemoryNetwork(seed: seed)
        try await addAccounts(people, to: store)
        for number in 1...people {
            for name in devices where name != "phone" {
                let description = DeviceDescription(id: try device(name))
                _ = try await store.open(description, of: try user(number), token: nil, now: time.now())
            }
        }
        var cores: [Messenger] = []
        for number in 0..<count {
            let node = try await store.join(try #require(NodeID(rawValue: number)))
            let store = store.fenced(for: node)
            let core = Messenger(
                accountStore: store,
                messageStore: store,
                socialStore: store,
                sessionStore: store,
                pushTokenStore: store,
                accountSettings: AccountSettings(passwordParameters: PasswordTests.cheap),
                time: ahead.isEmpty ? time : TimeAhead(time, by: ahead[Int(number)]),
                bus: network.bus(of: node),
                placeStore: store
            )
            try await core.load()
            cores.append(core)
        }
        self.cores = cores
        for core in cores {
            core.devices.presenceChanged.observe { [reported] user, isOnline in reported.add(user, isOnline) }
        }
        try await settle()
    }

    /// Returns the states of a user's presence that all cores together have reported.
    func reports(of user: UserID) -> [Bool] { reported.reports(of: user) }

    var living: [Int] { cores.indices.filter { index in !dead.withLock { $0.contains(index) } } }

    /// Makes a core vanish, as if its process had been killed.
    func vanish(_ index: Int) throws {
        network.cut(try #require(NodeID(rawValue: UInt8(index))))
        dead.withLock { _ = $0.insert(index) }
    }

    /// Lets time pass, and lets the living cores work.
    ///
    /// - Parameter cores: the cores that work; nil for all living cores.
    func pass(_ duration: Duration = .seconds(1), cores working: [Int]? = nil) async {
        time.advance(by: duration)
        network.advance(by: duration)
        for index in working ?? living {
            await cores[index].cluster?.work()
            cores[index].devices.tellLate()
        }
    }

    /// Waits until all submitted operations are committed and reported, and all messages that are under way have
    /// arrived.
    func settle() async throws {
        for index in living {
            // This request is refused. It is completed only after everything before it has been delivered.
            let sender = try principal(1)
            let own = ConversationID.direct(between: sender.user, and: sender.user)
            let recall = InboxRequest.recall(MessageID(high: 0, low: 0), in: own)
            await #expect(throws: HermesError.self) { try await cores[index].inbox.answer(recall, for: sender.user) }
        }
        network.settle()
        for index in living { await cores[index].cluster?.work() }
        network.settle()
    }

    @discardableResult
    func send(_ text: String, from sender: Principal, to peer: UserID, by core: Int) async throws -> SendReceipt {
        let draft = MessageDraft(
            conversation: .direct(between: sender.user, and: peer),
            clientID: text,
            content: MessageContent(bytes: Array(text.utf8))
        )
        let result: Result<SendReceipt, HermesError> = await withCheckedContinuation { continuation in
            cores[core].messages.send(draft, from: sender) { continuation.resume(returning: $0) }
        }
        return try result.get()
    }

    func attach(_ number: Int32, _ deviceName: String = "phone", to core: Int) throws -> RecordingAttachment {
        let attachment = RecordingAttachment(try principal(number, deviceName))
        cores[core].devices.attach(attachment)
        return attachment
    }

    /// Connects a topic client of an account, under the account's present name.
    func connect(
        _ number: Int32,
        _ clientID: String,
        shown: ShownProof = .other,
        to core: Int
    ) async throws -> RecordingConnection {
        let account = try #require(try await store.find(.id(user(number)))).account
        let client = RecordingConnection(userName: account.nickName.key, shown: shown)
        let key = SessionKey(owner: .account(account.id), clientID: clientID)
        _ = try await asking { completion in
            cores[core].durable.attach(key, clean: true, expiry: nil, attachment: client, completion: completion)
        }
        return client
    }

    func shutdown() async { for core in cores { await core.shutdown() } }
}

/// A wall clock that is ahead of another clock, or behind it.
private struct TimeAhead: TimeSource {
    private let time: ManualTime
    private let lead: Duration

    init(_ time: ManualTime, by lead: Duration) {
        self.time = time
        self.lead = lead
    }

    func now() -> Timestamp { time.now().advanced(by: lead) }

    func uptime() -> Duration { time.uptime() }
}

/// The presence that the cores report to their observers.
private final class PresenceReports: Sendable {
    private let states = Mutex<[UserID: [Bool]]>([:])

    func add(_ user: UserID, _ isOnline: Bool) { states.withLock { $0[user, default: []].append(isOnline) } }

    func reports(of user: UserID) -> [Bool] { states.withLock { $0[user] ?? [] } }
}

/// A device that uses one core after the other. It does the work of a gateway and of its client.
struct RoamingDevice {
    let user: UserID
    let name: DeviceID
    private(set) var core: Int?
    private(set) var connection: RecordingAttachment?
    /// Earlier connections that are not closed yet.
    private(set) var ghosts: [(core: Int, connection: RecordingAttachment)] = []
    private var feed: InboxFeed?
    private var taken = 0
    /// The last entry that was written to the present connection.
    private var lastWritten: UInt64 = 0
    /// The entries that the device has, including its own messages.
    private(set) var entries: Set<UInt64> = []
    /// The entries that the device has shown, in order.
    private(set) var shown: [UInt64] = []
    /// Descriptions of events that must not happen.
    private(set) var faults: [String] = []

    init(_ user: UserID, _ name: DeviceID) {
        self.user = user
        self.name = name
    }

    var isConnected: Bool { connection != nil }

    mutating func connect(to core: Int, of world: ClusterWorld, isLeaving: Bool) async throws {
        if isLeaving { disconnect(from: world) }
        if let connection, let core = self.core { ghosts.append((core, connection)) }
        let found = try await world.store.find(.id(user))
        let account = try #require(found).account
        let principal = Principal(user: user, nickName: account.nickName, device: name)
        let devices = try await world.store.devices(of: user)
        let known = try #require(devices.first { $0.description.id == name })
        let position = try await world.store.position(of: user)
        let waiting = min(world.cores[core].messages.acknowledged(user, name, by: .account), position.head)
        let cursor = max(known.cursor, waiting)
        let connection = RecordingAttachment(principal)
        self.core = core
        self.connection = connection
        feed = InboxFeed(principal: principal, window: 8, pageSize: 4)
        taken = 0
        lastWritten = cursor
        world.cores[core].devices.attach(connection)
        try await handle(.opened(after: cursor, head: position.head), world)
    }

    mutating func disconnect(from world: ClusterWorld) {
        if let connection, let core { world.cores[core].devices.detach(connection) }
        lose()
    }

    /// The device loses its connection together with the core.
    mutating func lose() { (core, connection, feed) = (nil, nil, nil) }

    /// Forgets the connections to a core that no longer exists.
    mutating func lost(_ core: Int) {
        if self.core == core { lose() }
        ghosts.removeAll { $0.core == core }
    }

    /// Handles the entries that have arrived, and closes the connections that the server ends.
    mutating func pump(_ world: ClusterWorld) async throws {
        for (core, ghost) in ghosts where !ghost.ends.isEmpty { world.cores[core].devices.detach(ghost) }
        guard let connection else { return }
        guard connection.ends.isEmpty else { return disconnect(from: world) }
        let calls = connection.calls
        for call in calls[taken...] { try await handle(.entriesCommitted(call), world) }
        taken = calls.count
    }

    /// Acknowledges everything that was written to the connection.
    mutating func acknowledge(_ world: ClusterWorld) async throws {
        try await handle(.acknowledged(upTo: lastWritten), world)
    }

    mutating func sent(_ receipt: SendReceipt) { entries.insert(receipt.inboxSeq) }

    private mutating func handle(_ event: InboxFeed.Event, _ world: ClusterWorld) async throws {
        guard let core, var action = feed?.handle(event) else { return }
        while true {
            switch action {
            case .none:
                if let seq = feed?.takeAcknowledgement(), let connection {
                    world.cores[core].inbox.acknowledge(connection.principal, upTo: seq)
                }
                return
            case .load(let after, let limit):
                let page = try await world.store.entries(of: user, after: after, limit: limit)
                action = feed?.handle(.pageLoaded(page)) ?? .none
            case .write(let entries):
                for entry in entries { take(entry) }
                action = feed?.handle(.writable) ?? .none
            case .writePage(let entries):
                faults.append("\(entries.count) entries that nobody asked for")
                action = feed?.handle(.writable) ?? .none
            }
        }
    }

    private mutating func take(_ entry: InboxEntry) {
        if entry.seq <= lastWritten { faults.append("entry \(entry.seq) after \(lastWritten)") }
        if entry.isHole { faults.append("entry \(entry.seq) is missing") }
        lastWritten = entry.seq
        guard entries.insert(entry.seq).inserted else { return }
        if let last = shown.last, last > entry.seq { faults.append("entry \(entry.seq) is shown after \(last)") }
        shown.append(entry.seq)
    }
}
