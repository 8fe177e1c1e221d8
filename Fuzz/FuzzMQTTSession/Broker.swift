// Hermes
// SPDX-License-Identifier: Apache-2.0

import FuzzSupport
import HermesCore
import HermesGateways
import HermesWire
import Logging
import NIOCore
import NIOPosix

/// A broker over a memory store with small limits, and an observer that subscribes to everything. One for all inputs:
/// the leftovers of each have to stay within the limits.
final class Broker {
    static let maxSessions = 8
    static let maxRetained = 64
    static let maxRetainedBytes = 64 << 10

    nonisolated(unsafe) static let shared = Broker()  // libFuzzer calls from one thread.

    private let group = MultiThreadedEventLoopGroup(numberOfThreads: 2)
    private let environment: GatewayEnvironment
    private let gateway: MQTTGateway
    private let listener: ListenerState
    private var observer: Peer?

    private init() {
        var settings = GatewaySettings()
        settings.broker.maxPacketBytes = 4_096
        settings.broker.maxQueuedMessages = 64
        settings.broker.maxQueuedBytes = 64 << 10
        settings.broker.maxSubscriptionsPerSession = 32
        settings.broker.maxSubscriptionBytesPerSession = 4_096
        settings.broker.sysInterval = .zero
        let store = MemoryStore(settings: StoreSettings(maxQueuedMessages: 64, maxQueuedBytes: 64 << 10))
        let logger = Logger(label: "fuzz") { _ in SwiftLogNoOpLogHandler() }
        let messenger = Messenger(
            accountStore: store,
            messageStore: store,
            socialStore: store,
            sessionStore: store,
            pushTokenStore: store,
            durableSettings: DurableSettings(
                sessions: SharedLimit(Self.maxSessions),
                retainedMessages: SharedLimit(Self.maxRetained),
                retainedBytes: SharedLimit(Self.maxRetainedBytes)
            )
        )
        environment = GatewayEnvironment(
            messenger: messenger,
            loops: LoopContexts(group),
            settings: settings,
            logger: logger
        )
        gateway = MQTTGateway(environment: environment)
        listener = ListenerState(
            name: MQTTGateway.name,
            limits: settings.limits,
            idleTimeout: gateway.idleTimeout,
            maxFrameBytes: gateway.maxFrameBytes,
            logger: logger
        )
    }

    /// Opens a connection on one of the loops.
    func connect(onLoop index: Int) -> Peer {
        let loop = environment.loops.all[index]
        let (gateway, listener) = (gateway, listener)
        return Peer { socket in
            let made = ClientBootstrap(group: loop.eventLoop).channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let connection = Connection(loop: loop, listener: listener, requiresAuthentication: true)
                    let session = gateway.makeSession(for: connection)
                    let handler = ConnectionHandler<MQTTSession>(connection: connection, session: session)
                    try channel.pipeline.syncOperations.addHandler(handler)
                }
            }.withConnectedSocket(socket)
            do { _ = try made.wait() } catch { broken("no connection: \(error)") }
        }
    }

    /// Waits until the loops and the store have done their work.
    func settle(_ peer: Peer) {
        for _ in 0..<3 {
            for loop in environment.loops.all { wait(loop.eventLoop.submit {}) }
            peer.receive(atLeast: 0)
        }
    }

    private func wait(_ future: EventLoopFuture<Void>) {
        do { try future.wait() } catch { broken("a loop does not answer: \(error)") }
    }

    /// Checks that the limits hold, that closed connections leave nothing, and that others are served.
    func check() {
        let durable = environment.messenger.durable
        invariant(durable.statistics.sessions <= Self.maxSessions, "more sessions than there may be")
        let retained = durable.retained.statistics
        invariant(retained.count <= Self.maxRetained, "more is retained than may be")
        invariant(retained.bytes <= Self.maxRetainedBytes, "more bytes are retained than may be")
        let observer = observer ?? makeObserver()
        observer.send(packet: .pingreq, version: .v5)
        guard observer.receive(until: .pingresp) else { broken("the other client is not answered") }
        // Only the observer and its two filters remain, once the loops know that the other connection ended.
        let deadline = NIODeadline.now() + .seconds(5)
        while listener.openCount > 1 || wildcardCounts.contains(where: { $0 > 2 }) {
            invariant(
                NIODeadline.now() < deadline,
                "left behind: \(listener.openCount) connections, \(wildcardCounts) filters with wildcards"
            )
        }
    }

    private var wildcardCounts: [Int] {
        environment.loops.all.map { loop in
            let count = loop.eventLoop.submit { loop.topics.wildcardCount }
            do { return try count.wait() } catch { broken("a loop does not answer: \(error)") }
        }
    }

    private func makeObserver() -> Peer {
        let peer = connect(onLoop: 1)
        peer.send(packet: .connect(MQTTConnect(version: .v5, clientID: "observer", keepAlive: 0)), version: .v5)
        let filters = ["#", "$SYS/#"].map { MQTTSubscription(filter: $0, maximumQoS: .atMostOnce) }
        peer.send(packet: .subscribe(MQTTSubscribe(packetID: 1, subscriptions: filters)), version: .v5)
        guard peer.receive(until: .suback) else { broken("no SUBACK") }
        observer = peer
        return peer
    }
}
