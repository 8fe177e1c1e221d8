// Hermes
// SPDX-License-Identifier: Apache-2.0

import FuzzServer
import FuzzSupport
import HermesCore
import HermesGateways
import HermesWire
import NIOPosix

/// A broker over a memory store with small limits, and an observer that subscribes to everything. One for all inputs:
/// the leftovers of each have to stay within the limits.
final class Broker {
    static let maxSessions = 8
    static let maxRetained = 64
    static let maxRetainedBytes = 64 << 10

    nonisolated(unsafe) static let shared = Broker()  // libFuzzer calls from one thread.

    private let served: ServedGateway<MQTTGateway>
    private var observer: Peer?

    private init() {
        var settings = GatewaySettings()
        settings.broker.maxPacketBytes = 4_096
        settings.broker.maxQueuedMessages = 64
        settings.broker.maxQueuedBytes = 64 << 10
        settings.broker.maxSubscriptionsPerSession = 32
        settings.broker.maxSubscriptionBytesPerSession = 4_096
        settings.broker.sysInterval = .zero
        served = ServedGateway(
            MQTTGateway.self,
            group: MultiThreadedEventLoopGroup(numberOfThreads: 2),
            settings: settings,
            storeSettings: StoreSettings(maxQueuedMessages: 64, maxQueuedBytes: 64 << 10),
            durableSettings: DurableSettings(
                sessions: SharedLimit(Self.maxSessions),
                retainedMessages: SharedLimit(Self.maxRetained),
                retainedBytes: SharedLimit(Self.maxRetainedBytes)
            )
        )
    }

    /// A new connection.
    func connect() -> Peer { served.connect() }

    /// Waits until the loops have done what they were given, and the store with them.
    func settle(_ peer: Peer) { served.settle([peer]) }

    /// One round through the loops.
    func turn() { served.turn() }

    /// Checks that the limits hold, that closed connections leave nothing, and that others are served.
    func check() {
        let durable = served.environment.messenger.durable
        invariant(durable.statistics.sessions <= Self.maxSessions, "more sessions than there may be")
        let retained = durable.retained.statistics
        invariant(retained.count <= Self.maxRetained, "more is retained than may be")
        invariant(retained.bytes <= Self.maxRetainedBytes, "more bytes are retained than may be")
        let observer = observer ?? makeObserver()
        observer.send(packet: .pingreq, version: .v5)
        guard observer.receive(until: .pingresp) else { broken("the other client is not answered") }
        // The observer and its two filters alone, once the loops have told each other of the end of the other connection.
        served.awaitQuiet(connections: 1, subscriptions: 2)
    }

    private func makeObserver() -> Peer {
        let peer = connect()
        peer.send(packet: .connect(MQTTConnect(version: .v5, clientID: "observer", keepAlive: 0)), version: .v5)
        let filters = ["#", "$SYS/#"].map { MQTTSubscription(filter: $0, maximumQoS: .atMostOnce) }
        peer.send(packet: .subscribe(MQTTSubscribe(packetID: 1, subscriptions: filters)), version: .v5)
        guard peer.receive(until: .suback) else { broken("no SUBACK") }
        observer = peer
        return peer
    }
}
