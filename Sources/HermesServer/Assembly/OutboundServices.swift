// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesGateways
import HermesPush
import Logging
import Metrics
import NIOCore
import NIOPosix
import ServiceLifecycle
import Synchronization

/// The server's outbound requests: push notifications and webhooks. Does nothing without configuration.
struct OutboundServices: Service {
    let handOff: PushHandOff?
    let outbox: WebhookOutbox?
    let poster: WebhookPoster?
    private let push: PushServices
    private let http: PushHTTPClient?

    /// Reads the keys, and connects to the core's events.
    ///
    /// - Throws: an error that names the unusable setting.
    static func start(
        _ settings: ServerSettings,
        messenger: Messenger,
        store: OpenStore,
        group: any EventLoopGroup,
        logger: Logger
    ) async throws(ServerFailure) -> OutboundServices {
        let push = settings.push
        let hasPush = push.apns != nil || push.fcm != nil || push.webPush != nil
        guard hasPush || !settings.webhooks.url.isEmpty else {
            return OutboundServices(handOff: nil, outbox: nil, poster: nil, push: PushServices(), http: nil)
        }
        let http: PushHTTPClient
        do {
            http = try PushHTTPClient(
                group: group,
                authority: push.certificateAuthority.isEmpty ? nil : push.certificateAuthority
            )
        } catch {
            throw ServerFailure(
                .badConfiguration,
                "push.certificateAuthority: \"\(push.certificateAuthority)\" cannot be used: \(error)"
            )
        }
        do throws(PushConfigurationError) {
            let (outbox, poster) = try webhooks(settings.webhooks, messenger, store, http, logger)
            let senders = try await senders(push, http, messenger.time)
            if let webPush = push.webPush { messenger.pushTokens.limitWebPush(to: webPush.allows) }
            var handOff: PushHandOff?
            if !senders.isEmpty || outbox?.wants(.messageUndelivered) == true {
                let preview = push.preview
                let metrics = PushMetrics(logger: logger, time: messenger.time)
                if !senders.isEmpty { metrics.start() }
                let made = PushHandOff(
                    messenger,
                    store: store.messages,
                    accounts: store.accounts,
                    sender: senders.isEmpty ? nil : senders,
                    webhooks: outbox,
                    settings: PushHandOff.Settings(deadline: push.handOff),
                    text: { PushTextComposer.text(of: $0, preview: preview) },
                    report: { metrics.note($0) }
                )
                made.observe(messenger.watch)
                handOff = made
            }
            return OutboundServices(handOff: handOff, outbox: outbox, poster: poster, push: senders, http: http)
        } catch {
            await http.shutdown()
            throw ServerFailure(.badConfiguration, error.description)
        }
    }

    /// Reads the certificate authority, the keys and the webhooks' secret to check them, and keeps none of them.
    ///
    /// - Returns: the problems, one sentence each.
    static func problems(of settings: ServerSettings) async -> [String] {
        let push = settings.push
        let authority = push.certificateAuthority
        let http: PushHTTPClient
        do {
            let group = MultiThreadedEventLoopGroup.singleton
            http = try PushHTTPClient(group: group, authority: authority.isEmpty ? nil : authority)
        } catch {
            return ["push.certificateAuthority: \"\(authority)\" cannot be used: \(error)"]
        }
        var problems: [String] = []
        let parts = [
            PushSettings(apns: push.apns), PushSettings(fcm: push.fcm), PushSettings(webPush: push.webPush),
        ]
        for part in parts {
            do throws(PushConfigurationError) {
                _ = try await senders(part, http, SystemTime())
            } catch {
                problems.append(error.description)
            }
        }
        do throws(PushConfigurationError) {
            if !settings.webhooks.url.isEmpty { try WebhookPoster.check(.init(settings.webhooks)) }
        } catch {
            problems.append(error.description)
        }
        await http.shutdown()
        return problems
    }

    private static func senders(
        _ settings: PushSettings,
        _ http: PushHTTPClient,
        _ time: any TimeSource
    ) async throws(PushConfigurationError) -> PushServices {
        var services = PushServices()
        if let apns = settings.apns {
            services.apns = try await ReloadableSender(file: apns.keyFile, setting: "push.apns.keyFile") {
                () async throws(PushConfigurationError) in try APNsSender(apns, http: http, time: time)
            }
        }
        if let fcm = settings.fcm {
            let (file, setting) = (fcm.serviceAccountFile, "push.fcm.serviceAccountFile")
            services.fcm = try await ReloadableSender(file: file, setting: setting) {
                () async throws(PushConfigurationError) in
                try FCMSender(serviceAccountFile: file, endpoint: fcm.endpoint, http: http, time: time)
            }
        }
        if let webPush = settings.webPush {
            let (file, setting) = (webPush.privateKeyFile, "push.webPush.privateKeyFile")
            // The cache of resolved names is kept when the key is read again.
            let names = PublicNames(time: time)
            services.webPush = try await ReloadableSender(file: file, setting: setting) {
                () async throws(PushConfigurationError) in
                try WebPushSender(webPush, http: http, time: time, names: names)
            }
        }
        return services
    }

    private static func webhooks(
        _ settings: WebhookSettings,
        _ messenger: Messenger,
        _ store: OpenStore,
        _ http: PushHTTPClient,
        _ logger: Logger
    ) throws(PushConfigurationError) -> (WebhookOutbox?, WebhookPoster?) {
        guard !settings.url.isEmpty else { return (nil, nil) }
        let outbox = WebhookOutbox(
            store: store.webhooks,
            kinds: Set(settings.kinds),
            limit: settings.queue,
            time: messenger.time,
            cluster: messenger.cluster
        )
        let poster = try WebhookPoster(
            .init(settings),
            outbox: outbox,
            http: http,
            time: messenger.time,
            report: { logger.debug("webhook not taken", metadata: ["reason": "\($0)"]) }
        )
        if outbox.wants(.online) || outbox.wants(.offline) {
            messenger.devices.presenceChanged.observe { user, isOnline in
                outbox.note(isOnline ? .online(user) : .offline(user))
            }
        }
        return (outbox, poster)
    }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            await withDiscardingTaskGroup { group in
                if let handOff { group.addTask { await handOff.run() } }
                if let outbox { group.addTask { await outbox.run() } }
                if let poster { group.addTask { await poster.run() } }
                try? await gracefulShutdown()
            }
        }
        // The flush is not one of the cancelled tasks, because noted events must still be stored.
        await outbox?.flush()
        await http?.shutdown()
    }

    /// Reads the keys of the push services again. If a key is unusable, the old one stays in use.
    func reloadKeys(logger: Logger) async {
        await push.reload { service, result in
            switch result {
            case .success(.changed):
                logger.info("push key read", metadata: ["service": "\(service)"])
            case .success(.unchanged):
                logger.debug("push key unchanged", metadata: ["service": "\(service)"])
            case .failure(let error):
                logger.error(
                    "push key is unusable; the old one stays in use",
                    metadata: ["service": "\(service)", "error": "\(error)"]
                )
            }
        }
    }

    /// Shuts the HTTP client down; called if a later step of the server's start fails.
    func close() async { await http?.shutdown() }
}

/// Counts the answers of push services, and logs refusals and retries. The log gets at most one line a minute for
/// each service and kind, because any account can cause any number of refusals.
final class PushMetrics: Sendable {
    private let logger: Logger
    private let time: any TimeSource
    private let throttle = LineThrottle()

    init(logger: Logger, time: any TimeSource) {
        self.logger = logger
        self.time = time
    }

    /// Creates the counters of all services, so that they are shown before the first answer.
    func start() {
        for service in PushToken.Service.allCases {
            for result in ["delivered", "token_gone", "retry", "refused"] { _ = counter(service, result) }
        }
    }

    private func counter(_ service: PushToken.Service, _ result: String) -> Counter {
        Counter(label: "hermes_push_notifications_total", dimensions: [("service", service.name), ("result", result)])
    }

    func note(_ report: PushHandOff.Report) {
        switch report {
        case .sent(let service, let outcome):
            let (result, reason): (String, String?) =
                switch outcome {
                case .delivered: ("delivered", nil)
                case .tokenGone: ("token_gone", nil)
                case .retry(_, _, let reason): ("retry", reason)
                case .refused(let reason): ("refused", reason)
                case .withdrawn: ("withdrawn", nil)
                }
            counter(service, result).increment()
            let kind = "\(service.name) \(result)"
            guard let reason, let skipped = throttle.skipped(kind, now: time.uptime()) else { return }
            logger.warning(
                "notification not taken",
                metadata: [
                    "service": "\(service.name)", "result": "\(result)", "reason": "\(reason)",
                    "skipped": "\(skipped)",
                ]
            )
        case .failed(let error):
            logger.warning("hand-off delayed", metadata: ["error": "\(error.message)"])
        }
    }
}

/// The lengths of the queues, read when the metrics are requested.
///
/// State: one `Mutex` around the last values.
final class OutboundGauges: Sendable {
    private let services: OutboundServices
    private let handOff = Gauge(label: "hermes_push_waiting")
    private let queue = Gauge(label: "hermes_webhooks_waiting")
    private let queued = Counter(label: "hermes_webhooks_queued_total")
    private let dropped = Counter(label: "hermes_webhooks_dropped_total")
    private let posted = Counter(label: "hermes_webhooks_posted_total")
    private let failed = Counter(label: "hermes_webhooks_failed_total")
    private let givenUp = Counter(label: "hermes_webhooks_given_up_total")
    private let last = Mutex((outbox: WebhookOutbox.Statistics(), poster: WebhookPoster.Statistics()))

    init(_ services: OutboundServices) { self.services = services }

    /// Updates the metrics.
    func read() {
        if let waiting = services.handOff?.waiting { handOff.record(waiting) }
        guard let outbox = services.outbox?.statistics, let poster = services.poster?.statistics else { return }
        queue.record(poster.waiting)
        last.withLock { last in
            queued.increment(by: Int(outbox.queued &- last.outbox.queued))
            dropped.increment(by: Int(outbox.dropped &- last.outbox.dropped))
            posted.increment(by: Int(poster.posted &- last.poster.posted))
            failed.increment(by: Int(poster.failed &- last.poster.failed))
            givenUp.increment(by: Int(poster.givenUp &- last.poster.givenUp))
            last = (outbox, poster)
        }
    }
}

extension WebhookPoster.Configuration {
    fileprivate init(_ settings: WebhookSettings) { self.init(url: settings.url, secretFile: settings.secretFile) }
}
