// Hermes
// SPDX-License-Identifier: Apache-2.0

import Crypto
import Foundation
package import HermesCore
import Synchronization

/// Posts queued webhooks to the operator's back end. Each event is posted at least once, and the events of one user are
/// posted in order where possible. The events of several users are posted at the same time. After each failure, the
/// next wait is longer. An event that is older than ``Configuration/maxAge`` is dropped.
///
/// A receiver may take a long time for the events of one user. Those events do not hold up the events of others: after
/// a moment the next round begins (``WebhookRound``).
///
/// State: a `Mutex` around the counts, and one around the posts that are under way; the rest is in the store.
package final class WebhookPoster: Sendable {
    package struct Configuration: Sendable {
        /// http or https; the operator decides where it leads.
        package var url: String
        /// The file with the secret for signatures; empty if there are no signatures.
        package var secretFile: String
        /// The largest number of requests at once.
        package var concurrency: Int
        /// The age at which events are dropped.
        package var maxAge: Duration
        package var backoff: Backoff

        package init(
            url: String,
            secretFile: String,
            concurrency: Int = 16,
            maxAge: Duration = .seconds(24 * 3600),
            // A wait is at most twice the limit.
            backoff: Backoff = Backoff(base: .seconds(2), limit: WebhookEvent.maxWait / 2)
        ) {
            self.url = url
            self.secretFile = secretFile
            self.concurrency = max(1, concurrency)
            self.maxAge = maxAge
            self.backoff = backoff
        }
    }

    /// Counts since the start.
    package struct Statistics: Sendable, Hashable {
        package fileprivate(set) var posted: UInt64 = 0
        package fileprivate(set) var failed: UInt64 = 0
        /// The number of events that became too old.
        package fileprivate(set) var givenUp: UInt64 = 0
        /// The number of waiting events at the last check.
        package fileprivate(set) var waiting = 0

        package init() {}
    }

    /// The largest number of events that are read from the queue at once. Even if each worker is busy with as many
    /// events as one user may have in a batch, half of the batch is left for the events of other users.
    static let batch = 256
    /// The longest time between two checks of the queue.
    private static let maxSleep = Duration.seconds(60)
    /// The time after which the next round begins, although some events of the present round are still under way.
    private static let roundTime = Duration.seconds(1)
    /// After failures, newly stored events do not end a pause during its first seconds. This is the largest number of
    /// these seconds.
    private static let mostFixedSeconds = 10

    private let configuration: Configuration
    private let secret: SymmetricKey?
    private let outbox: WebhookOutbox
    private let http: PushHTTPClient
    private let time: any TimeSource
    private let report: @Sendable (String) -> Void
    /// The last attempts.
    package let attempts = WebhookAttempts()
    private let statisticsState = Mutex(Statistics())
    private let underWay: Mutex<WebhookPostsUnderWay>

    /// Reads the secret.
    ///
    /// - Parameter report: gets the reason of each failed attempt.
    /// - Throws: ``PushConfigurationError``.
    package init(
        _ configuration: Configuration,
        outbox: WebhookOutbox,
        http: PushHTTPClient,
        time: any TimeSource,
        report: @escaping @Sendable (String) -> Void = { _ in }
    ) throws(PushConfigurationError) {
        secret = try Self.secret(configuration)
        self.configuration = configuration
        underWay = Mutex(WebhookPostsUnderWay(most: configuration.concurrency))
        self.outbox = outbox
        self.http = http
        self.time = time
        self.report = report
    }

    /// Checks the address and the secret.
    ///
    /// - Throws: ``PushConfigurationError``.
    package static func check(_ configuration: Configuration) throws(PushConfigurationError) {
        _ = try secret(configuration)
    }

    /// - Returns: nil if there are no signatures.
    private static func secret(_ configuration: Configuration) throws(PushConfigurationError) -> SymmetricKey? {
        guard let url = URLComponents(string: configuration.url), url.scheme == "http" || url.scheme == "https",
            url.host?.isEmpty == false
        else { throw PushConfigurationError("webhooks.url", "it must be an http or https URL with a host") }
        guard !configuration.secretFile.isEmpty else { return nil }
        let data = try KeyFile.read(configuration.secretFile, setting: "webhooks.secretFile")
        let text = String(decoding: data, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
        guard text.utf8.count >= WebhookSignature.minSecretBytes else {
            throw PushConfigurationError(
                "webhooks.secretFile",
                "\"\(configuration.secretFile)\" has fewer than \(WebhookSignature.minSecretBytes) bytes"
            )
        }
        return SymmetricKey(data: Data(text.utf8))
    }

    package var statistics: Statistics { statisticsState.withLock { $0 } }

    /// Posts until the task is cancelled.
    package func run() async {
        await withDiscardingTaskGroup { group in
            var failures = 0
            while !Task.isCancelled {
                guard outbox.isPostedHere else {
                    await outbox.stored.wait(atMost: Self.maxSleep)
                    continue
                }
                var result = Round(posted: 0, failed: 1)
                // A failure of the store counts like a failure of the receiver. While everything fails, few events are
                // posted.
                let limit = failures == 0 ? Self.batch : configuration.concurrency
                if let (round, workers) = try? await takeDue(limit: limit) {
                    for _ in 0..<workers { group.addTask { [self] in await work(on: round) } }
                    result = (try? await settle(round, after: Self.roundTime)) ?? result
                }
                let nextDue = await nextDue()
                switch Self.pause(after: result, failures: &failures) {
                case .none: break
                case .backOff:
                    // The sleep throws when the server stops; then the loop ends. After the first seconds, a newly
                    // stored event ends the pause, because the event may belong to a user whose events the receiver
                    // accepts.
                    let delay = configuration.backoff.delay(failures: failures)
                    let fixed = min(delay, .seconds(min(failures, Self.mostFixedSeconds)))
                    try? await Task.sleep(for: fixed)
                    if delay > fixed { await outbox.stored.wait(atMost: delay - fixed) }
                case .untilStored:
                    // The store still counts events under way as due. The end of their posts is signalled.
                    let isBusy = underWay.withLock { $0.workers > 0 }
                    await outbox.stored.wait(atMost: isBusy ? Self.roundTime : sleep(until: nextDue))
                }
            }
            group.cancelAll()
        }
    }

    /// The wait after a round.
    package enum Pause: Sendable, Hashable {
        case none
        /// A pause. Newly stored events end it only after some seconds.
        case backOff
        /// A wait until an event is stored or due.
        case untilStored
    }

    /// Returns the wait after a round.
    ///
    /// - Parameter failures: the number of failed rounds in a row.
    package static func pause(after round: Round, failures: inout Int) -> Pause {
        guard round.failed == 0 || round.posted > 0 else {
            // The receiver is unreachable, so the rest is not tried at full speed.
            failures += 1
            return .backOff
        }
        // Without an outcome, posts may still be under way.
        guard round.posted > 0 else { return .untilStored }
        failures = 0
        return .none
    }

    /// The result of one check of the queue.
    package struct Round: Sendable, Hashable {
        package var posted: Int
        package var failed: Int

        package init(posted: Int, failed: Int) {
            self.posted = posted
            self.failed = failed
        }

        init(_ settlements: [WebhookSettlement]) {
            failed = settlements.count { if case .again = $0 { true } else { false } }
            posted = settlements.count - failed
        }

        static func + (left: Round, right: Round) -> Round {
            Round(posted: left.posted + right.posted, failed: left.failed + right.failed)
        }
    }

    /// Takes at most `limit` due events for which no post is under way.
    ///
    /// - Returns: the round, and the number of its workers. The caller must call ``work(on:)`` once for each worker.
    func takeDue(limit: Int) async throws(HermesError) -> (round: WebhookRound, workers: Int) {
        // If a post ends during the read, the read may still return its event, because the outcome is committed later.
        // So the posts under way are recorded before the read.
        let before = underWay.withLock { $0 }
        // A whole batch is read, because the events under way are among the due events, and come first.
        let due = try await outbox.store.dueWebhooks(now: time.now(), limit: Self.batch)
        let fresh = Array(due.filter { !before.has($0) }.prefix(limit))
        let (lines, workers) = underWay.withLock { $0.take(fresh) }
        return (WebhookRound(lines, workers: workers), workers)
    }

    /// Posts lists of a round until none is left, or the round is closed.
    func work(on round: WebhookRound) async {
        while let line = round.next() {
            let settlements = await post(line)
            if !round.add(settlements) {
                // If the store fails, the events are posted again.
                let isStored = (try? await outbox.store.settleWebhooks(settlements)) != nil
                let late = isStored ? Round(settlements) : Round(posted: 0, failed: settlements.count)
                underWay.withLock { $0.endedLate(late) }
            }
            underWay.withLock { $0.ended(line) }
        }
        underWay.withLock { $0.workerEnded() }
        if round.workerEnded() { outbox.stored.signal() }
    }

    /// Records the outcomes of a round that has ended, or that has lasted for `limit`.
    func settle(_ round: WebhookRound, after limit: Duration?) async throws(HermesError) -> Round {
        let (settlements, rest) = await round.close(after: limit)
        underWay.withLock { underWay in
            for line in rest { underWay.ended(line) }
        }
        if !settlements.isEmpty { try await outbox.store.settleWebhooks(settlements) }
        return underWay.withLock { $0.takeLate(with: Round(settlements)) }
    }

    /// Returns the time when the next event is due; nil if no event waits, or if the time is unknown. Also counts the
    /// waiting events.
    private func nextDue() async -> Timestamp? {
        guard let queue = try? await outbox.store.webhookQueue() else { return nil }
        statisticsState.withLock { $0.waiting = queue.count }
        return queue.nextDue
    }

    private func sleep(until next: Timestamp?) -> Duration {
        guard let next else { return Self.maxSleep }
        let wait = next.rawValue &- time.now().rawValue
        // An event that is due and was not posted waits for an earlier event of its user.
        guard wait > 0 else { return Self.roundTime }
        return min(.milliseconds(wait), Self.maxSleep)
    }

    /// Posts events in order. An event that fails stops the later events, unless it has failed
    /// ``WebhookEvent/attemptsInOrder`` times.
    private func post(_ line: [StoredWebhook]) async -> [WebhookSettlement] {
        var settlements: [WebhookSettlement] = []
        for webhook in line {
            if Task.isCancelled { break }
            // As long as the clock may be wrong, no event of an earlier process is dropped because of its age.
            let (createdAt, expiryTime) = (webhook.event.createdAt, time.expiryTime())
            let now = expiryTime.now
            guard !expiryTime.isOver(createdAt.advanced(by: configuration.maxAge), storedAt: createdAt) else {
                statisticsState.withLock { $0.givenUp += 1 }
                settlements.append(.done(webhook.number))
                continue
            }
            let began = ContinuousClock.now
            let (status, failure) = await post(webhook.event)
            attempts.add(
                webhook.event,
                attempt: webhook.attempts + 1,
                status: status,
                failure: failure?.reason,
                time: now,
                duration: ContinuousClock.now - began
            )
            guard let failure else {
                statisticsState.withLock { $0.posted += 1 }
                settlements.append(.done(webhook.number))
                continue
            }
            // The attempt was cut off because the server stops, so it is not the receiver's fault.
            if Task.isCancelled { break }
            statisticsState.withLock { $0.failed += 1 }
            report(failure.reason)
            let failed = webhook.attempts + 1
            let delay = configuration.backoff.delay(failures: failed, asked: failure.retryAfter)
            // The wait begins now, because the attempt may have taken long.
            settlements.append(.again(webhook.number, attempts: failed, due: time.now().advanced(by: delay)))
            if failed < WebhookEvent.attemptsInOrder { break }
        }
        return settlements
    }

    private struct Failure {
        let reason: String
        let retryAfter: Duration?
    }

    /// - Returns: the status of the answer, if there was one, and the failure. The failure is nil if the event was
    ///   accepted.
    private func post(_ event: WebhookEvent) async -> (status: Int?, failure: Failure?) {
        var headers = [
            ("content-type", "application/json"), ("user-agent", "hermes-webhooks"), ("hermes-event-id", event.id),
        ]
        if let secret {
            // The receiver compares this time with its own clock, so the signature has the time of the wall clock as it
            // is set.
            let signature = WebhookSignature.value(event.body, secret: secret, now: time.latest())
            headers.append((WebhookSignature.header, signature))
        }
        do {
            let answer = try await http.post(configuration.url, headers: headers, body: Data(event.body))
            if (200..<300).contains(answer.status) { return (answer.status, nil) }
            return (answer.status, Failure(reason: "status \(answer.status)", retryAfter: answer.retryAfter))
        } catch {
            return (nil, Failure(reason: "\(error)", retryAfter: nil))
        }
    }
}
