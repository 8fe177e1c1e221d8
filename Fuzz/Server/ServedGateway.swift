// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import FuzzSupport
package import HermesCore
package import HermesGateways
import Logging
import NIOCore
package import NIOPosix

/// A gateway on event loops of its own over a core in memory, listening on a socket in the file system.
///
/// It is the server's own listener, with its limits and budgets; only the rates are so high that nobody is slowed down.
package final class ServedGateway<G: Gateway> {
    package let environment: GatewayEnvironment
    private let listener: Listener
    private let path: String

    /// - Parameter group: two event loops or more.
    package init(
        _ type: G.Type,
        group: MultiThreadedEventLoopGroup,
        settings: GatewaySettings = GatewaySettings(),
        storeSettings: StoreSettings = StoreSettings(),
        durableSettings: DurableSettings = DurableSettings()
    ) {
        let store = MemoryStore(settings: storeSettings)
        var settings = settings
        settings.limits.requestsPerSecond = Self.any
        settings.limits.requestsPerSecondPerAccount = Self.any
        settings.limits.requestsPerSecondPerAddress = Self.any
        var accounts = AccountSettings(passwordParameters: PasswordHasher.Parameters(ln: 1, r: 1, p: 1))
        accounts.registrationLimits = .init(perAddress: 0, inTotal: 0)
        accounts.loginLimits = .init(
            failuresPerSource: Self.any,
            failuresOfStrangers: Self.any,
            failuresPerAddress: Self.any
        )
        var messages = MessageSettings()
        messages.contactRequestsPerHour = Self.any
        messages.groupEntriesPerHour = Self.any
        let messenger = Messenger(
            accountStore: store,
            messageStore: store,
            socialStore: store,
            sessionStore: store,
            pushTokenStore: store,
            accountSettings: accounts,
            messageSettings: messages,
            durableSettings: durableSettings
        )
        let environment = GatewayEnvironment(
            messenger: messenger,
            loops: LoopContexts(group),
            settings: settings,
            logger: Logger(label: "fuzz") { _ in SwiftLogNoOpLogHandler() }
        )
        let path = NSTemporaryDirectory() + "/hf-" + String(UInt64.random(in: 0 ... .max), radix: 36)
        let started = blocking { () async -> Listener in
            do {
                return try await Listener.start(
                    G.self,
                    on: ListenerSettings(port: 0, unixSocketPath: path),
                    environment: environment,
                    group: group
                )
            } catch {
                broken("no listener: \(error)")
            }
        }
        (self.environment, self.path, listener) = (environment, path, started)
    }

    /// So many that it is no limit.
    private static var any: Int { 100_000_000 }

    /// A new connection.
    package func connect() -> Peer { Peer(path: path) }

    /// Waits until the loops have done what they were given, and the core most likely with them: until several rounds
    /// through the loops have brought none of the peers anything.
    package func settle(_ peers: [Peer]) {
        var silent = 0
        for _ in 0..<200 where silent < 4 {
            // What is done elsewhere than on the loops gets a moment, too.
            usleep(50)
            turn()
            var hasGot = false
            for peer in peers where peer.receiveWhatIsThere() { hasGot = true }
            silent = hasGot ? 0 : silent + 1
        }
    }

    /// One round through the loops.
    package func turn() { for loop in environment.loops.all { onLoop(loop) { _ in } } }

    /// Waits until so many connections are open, with so many filters and topics in all, and nothing is left of the others.
    package func awaitQuiet(connections: Int = 0, subscriptions: Int = 0) {
        var leftBehind = ""
        for _ in 0..<30_000 {
            leftBehind = remains(connections, subscriptions)
            if leftBehind.isEmpty { return }
            usleep(1_000)
        }
        broken("left behind: \(leftBehind)")
    }

    /// What is there that should not be; empty if nothing is.
    private func remains(_ connections: Int, _ subscriptions: Int) -> String {
        let loops = environment.loops.all
        var excess = [
            "connections": listener.openConnections - connections,
            "counted connections": environment.counter.open - connections,
            "connections on loops": loops.reduce(-connections) { $0 + onLoop($1) { $0.connectionCount } },
            // All loops know the filters with wildcards.
            "filters": (loops.map { onLoop($0) { $0.topics.wildcardCount } }.max() ?? 0) - subscriptions,
            "subscribed topics": loops.reduce(0) { count, loop in
                count + onLoop(loop) { $0.topics.subscriberCounts(withPrefix: "", from: 0, limit: .max).counts.count }
            },
        ]
        if connections == 0 {
            excess["bytes of strangers"] = environment.loginBudget.bytes
            excess["sessions"] = environment.messenger.devices.count
            excess["bytes held"] = loops.reduce(0) { $0 + onLoop($1) { abs($0.heldBytes) } }
        }
        return excess.filter { $0.value > 0 }.map { "\($0.value) \($0.key)" }.sorted().joined(separator: ", ")
    }

    private func onLoop<Value: Sendable>(
        _ loop: LoopContext,
        _ work: @escaping @Sendable (LoopContext) -> Value
    ) -> Value {
        do {
            return try loop.eventLoop.submit { work(loop) }.wait()
        } catch {
            broken("a loop does not answer: \(error)")
        }
    }

    /// Ends it; the event loops stay.
    package func stop() {
        blocking { [listener, environment] in
            await listener.stopAccepting()
            await listener.drain(within: .seconds(1))
            await environment.messenger.shutdown()
        }
    }
}

/// Runs asynchronous work to its end.
package func blocking<Value: Sendable>(_ work: @escaping @Sendable () async -> Value) -> Value {
    let done = DispatchSemaphore(value: 0)
    let box = ResultBox<Value>()
    // The one bridge from libFuzzer's thread to asynchronous code.
    Task {
        box.value = await work()
        done.signal()
    }
    done.wait()
    guard let value = box.value else { broken("no result") }
    return value
}

/// Written before the semaphore is signalled, read after it was waited for.
private final class ResultBox<Value>: @unchecked Sendable {
    var value: Value?
}
