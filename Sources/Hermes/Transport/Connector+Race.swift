// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore

extension Connector {
    /// The head start of an endpoint over the next endpoint. It is longer than a round trip in a mobile network, and
    /// shorter than the longest delay of RFC 8305 (2 s).
    static let headStart = TimeAmount.seconds(1)

    /// Opens connections to the endpoints, each with a head start over the next, and keeps the first connection that
    /// opens.
    func race(
        _ endpoints: [ServerAddress.Endpoint],
        on eventLoop: any EventLoop,
        configure: @escaping @Sendable (any Channel) throws -> Void
    ) -> EventLoopFuture<any Channel> {
        let promise = eventLoop.makePromise(of: (any Channel).self)
        eventLoop.execute {
            let run = RaceRun(endpoints, promise) { open($0, on: eventLoop, configure: configure) }
            run.begin()
        }
        return promise.futureResult
    }
}

/// Carries out a race. Runs on the promise's event loop until all its connections have opened or failed.
private final class RaceRun {
    private var race: ConnectionRace
    private var failures: [String] = []
    private let endpoints: [ServerAddress.Endpoint]
    private let promise: EventLoopPromise<any Channel>
    private let open: (ServerAddress.Endpoint) -> EventLoopFuture<any Channel>
    private var eventLoop: any EventLoop { promise.futureResult.eventLoop }

    init(
        _ endpoints: [ServerAddress.Endpoint],
        _ promise: EventLoopPromise<any Channel>,
        open: @escaping (ServerAddress.Endpoint) -> EventLoopFuture<any Channel>
    ) {
        race = ConnectionRace(count: endpoints.count)
        self.endpoints = endpoints
        self.promise = promise
        self.open = open
    }

    func begin() { perform(race.began(), nil) }

    private func perform(_ actions: [ConnectionRace.Action], _ channel: (any Channel)?) {
        for action in actions {
            switch action {
            case .open(let number): start(endpoints[number])
            case .startTimer(let number):
                eventLoop.assumeIsolated().scheduleTask(in: Connector.headStart) {
                    self.perform(self.race.delayPassed(number), nil)
                }
            case .keep: if let channel { promise.succeed(channel) }
            case .discard: channel?.close(promise: nil)
            case .giveUp: promise.fail(HermesClientError(.cannotConnect, failures.joined(separator: "; ")))
            }
        }
    }

    private func start(_ endpoint: ServerAddress.Endpoint) {
        open(endpoint).hop(to: eventLoop).assumeIsolated().whenComplete { result in
            switch result {
            case .success(let channel):
                self.perform(self.race.opened(), channel)
            case .failure(let error):
                self.failures.append("\(endpoint.text): \(explain(error))")
                self.perform(self.race.failed(), nil)
            }
        }
    }
}
