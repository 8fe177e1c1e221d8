// Hermes
// SPDX-License-Identifier: Apache-2.0

import HTTPTypes
import HermesCore
import HermesGateways
import Metrics

/// The objects that the API's routes use. Each resource has a file of its own.
struct APICore: Sendable {
    /// The longest `Idempotency-Key`, in bytes.
    static let maxIdempotencyKeyBytes = 128
    /// The largest number of elements in one page.
    static let maxPage = 1_000

    let messenger: Messenger
    let keys: APIKeyService
    let topics: TopicPlane
    let rooms: RoomDirectory
    let publisher: TopicPublisher
    let loops: LoopContexts
    let access: TopicAccess
    let events: EventStreams
    let administrators: AdministratorService
    /// The figures over time; nil while the server starts or stops.
    let figures: @Sendable () -> FigureHistory?

    init(
        messenger: Messenger,
        keys: APIKeyService,
        loops: LoopContexts,
        access: TopicAccess,
        events: EventStreams,
        administrators: AdministratorService,
        figures: @escaping @Sendable () -> FigureHistory?
    ) {
        self.events = events
        self.administrators = administrators
        self.figures = figures
        self.messenger = messenger
        self.keys = keys
        self.access = access
        self.loops = loops
        topics = loops.topicPlane
        let publisher = TopicPublisher(
            plane: loops.topicPlane,
            durable: messenger.durable,
            time: messenger.time,
            cluster: messenger.cluster
        )
        self.publisher = publisher
        messenger.cluster?.publishNumbered { [weak publisher] publication in
            guard let publisher else { return .failure(TopicPublisher.congested) }
            do throws(HermesError) {
                return .success(try await publisher.publishHere(publication))
            } catch {
                return .failure(error)
            }
        }
        rooms = RoomDirectory(
            uptime: { [time = messenger.time] in time.uptime() },
            counts: { [plane = loops.topicPlane] in await plane.subscriberCounts(withPrefix: TopicName.roomPrefix) }
        )
    }

    /// All routes, in the order of the document.
    var routes: [APIRoute] {
        pushRoutes + userRoutes + invitationRoutes + deviceRoutes + tokenRoutes + conversationRoutes + messageRoutes
            + traceRoutes + roomRoutes + topicRoutes + clientRoutes + eventRoutes + statisticsRoutes + figureRoutes
            + administratorRoutes
    }

    // MARK: Shared parts

    private static let messagesIn = Counter(label: "hermes_messages_received_total", dimensions: [("gateway", "http")])

    /// Counts a message, push or publication that a back end or an administrator sends.
    static func messageCame() { messagesIn.increment() }

    /// Returns the account that a request names.
    ///
    /// - Throws: ``APIProblem`` with the status 404 if there is no such account.
    func account(_ selector: APIUserSelector?) async throws -> Account {
        guard let selector else { throw Self.noSuchAccount("") }
        guard let key = selector.key, let account = try await messenger.accounts.account(key) else {
            throw Self.noSuchAccount(selector.text)
        }
        return account
    }

    /// Checks that the topic rules allow the caller's key an action on a topic, which may be the topic of a room.
    ///
    /// - Throws: ``APIProblem`` with the status 403 if they do not.
    func check(_ call: APICall, may action: TopicAction, _ topic: TopicName) throws(APIProblem) {
        guard let key = call.key else { return }
        let identity = ClientIdentity(apiKey: key.name)
        guard !access.current.allows(action, topic.rawValue, for: identity) else { return }
        let verb =
            switch action {
            case .publish: "write to"
            case .subscribe: "read"
            }
        throw APIProblem(
            .forbidden,
            .forbidden,
            "A rule for the key \"\(key.name)\" does not let it \(verb) \"\(topic.rawValue)\" (access.rules)."
        )
    }

    /// Returns the account that the path names.
    func account(of call: APICall) async throws -> Account {
        try await account(call.pathParameters[APIRoute.user.name].flatMap { APIUserSelector($0) })
    }

    private static func noSuchAccount(_ name: String) -> APIProblem {
        APIProblem(.notFound, .notFound, "There is no account \"\(name)\".")
    }

    static let badSelector = APIProblem(
        .unprocessableContent,
        .invalidArgument,
        "The account must be a uid or a nick name."
    )

    static let time = APISchema.integer(0 ... .max)
    static let uid = APISchema.integer(1...Int64(Int32.max))
    static let limitParameter = APIRoute.Parameter(
        "limit",
        .integer(1...Int64(maxPage)),
        "The most elements to return; 100 if absent."
    )

    static func limit(of call: APICall) -> Int { Int(call.number("limit") ?? 100) }
}
