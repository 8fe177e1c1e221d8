// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule
import Synchronization

/// Sends the notifications of due devices, and settles the answers of the push services.
extension PushHandOff {
    /// If a service that a client named takes longer than this to answer, the service is paused, as if it had not
    /// answered. A slow service holds places (``HostShares``) for which other devices wait.
    private static let slowness = Duration.seconds(5)
    /// The longest time for which a device's token is used after it was read, because the device may log out meanwhile.
    /// After this time, the waiting entries are read again, too, because a message may have been read or recalled.
    /// Reading the entries is expensive, so the time doubles after each further read for the same device.
    private static let freshness = Duration.seconds(2)
    /// The time after which no further request for a device begins in this batch, so that one device with a slow
    /// service does not delay the whole batch.
    private static let deviceTime = Duration.seconds(20)
    /// The time between two settlements of a batch. A batch is settled in several parts, so that a device whose answers
    /// have arrived does not wait for the other devices.
    private static let settlementPeriod = Duration.milliseconds(250)

    /// The answer of a push service.
    private struct Answer: Sendable, Equatable {
        let outcome: PushSendOutcome
        /// The time from the request to the answer.
        let duration: Duration
    }

    /// The newest data that was read for a device whose notifications are being sent.
    ///
    /// State: a `Mutex`.
    private final class LatestReading: Sendable {
        struct State: Sendable {
            var candidate: Candidate
            /// The time for which the entries are used before they are read again.
            var patience = PushHandOff.freshness
        }

        let state: Mutex<State>

        init(_ candidate: Candidate) { state = Mutex(State(candidate: candidate)) }
    }

    /// An event while a batch is sent.
    private enum Step: Sendable {
        /// A device's notifications were sent, as far as possible. There is one answer for each notification. The
        /// answer is nil if the notification was not sent.
        case ended(Int, [Answer?])
        case period
    }

    /// Divides candidates by their services. The operator must have configured these services. If the allowed number of
    /// batches is already under way to a service, the candidates of the service are left out and wait. If very many
    /// keys already wait in this way, the candidates are dropped, and derived from the store again later.
    ///
    /// - Returns: the batches to send. Batches with a service now count as being sent. The batch without a service
    ///   contains the candidates without notifications.
    func batches(of candidates: [Candidate]) -> [(service: PushToken.Service?, candidates: [Candidate])] {
        let parts = Dictionary(grouping: candidates) { candidate in
            candidate.plan.items.isEmpty ? nil : candidate.target.token.service
        }
        return state.withLock { state in
            parts.filter { service, candidates in
                guard let service else { return true }
                guard state.sending[service, default: 0] < settings.lanes else {
                    for candidate in candidates where state.schedule.blocked(candidate.key) {
                        state.blocked[service, default: []].append(candidate.key)
                    }
                    return false
                }
                state.sending[service, default: 0] += 1
                return true
            }.map { (service: $0.key, candidates: $0.value) }
        }
    }

    /// Takes a place for each candidate whose push service was chosen by the client.
    ///
    /// - Returns: the candidates that need no place, and for each service the candidates that got a place. Candidates
    ///   that got no place wait.
    func places(for candidates: [Candidate]) -> (own: [Candidate], parts: some Collection<[Candidate]>) {
        let now = time.uptime()
        var own: [Candidate] = []
        var parts: [String: [Candidate]] = [:]
        for var candidate in candidates {
            // A candidate without notifications is settled at once.
            guard let host = candidate.host, !candidate.plan.items.isEmpty else {
                own.append(candidate)
                continue
            }
            switch state.withLock({ $0.hosts.take(host, of: candidate.key.user, now: now) }) {
            case .taken(let place):
                candidate.place = place
                parts[host, default: []].append(candidate)
            case .full: wait(candidate.key, about: 1)
            case .paused(let until): wait(candidate.key, until: until + .milliseconds(Int64.random(in: 0...1_000)))
            }
        }
        return (own, parts.values)
    }

    /// Sends the candidates' notifications. The notifications of one device are sent one after the other; several
    /// devices are served at once. Each device is settled soon after its last answer.
    ///
    /// If the data of a device is no longer fresh when the device's turn comes, the device is checked again at once.
    func send(_ candidates: [Candidate]) async {
        let ready = unpaused(candidates)
        guard !ready.isEmpty else { return }
        guard let sender else {
            // Another node has reported devices with tokens, but this node has no push service.
            for candidate in ready {
                release(candidate)
                settle(candidate.key)
            }
            return
        }
        // If the candidates have places, the places already limit the sends.
        let most = ready.first?.place == nil ? settings.devices : ready.count
        let end = time.uptime() + Self.freshness
        await withTaskGroup(of: Step.self) { group in
            var (next, open) = (0, 0)
            var answered: [(candidate: Candidate, answers: [Answer?])] = []
            func begin() {
                let index = next
                next += 1
                open += 1
                group.addTask { [self] in .ended(index, await send(ready[index], through: sender)) }
            }
            func waitForPeriod() {
                // A cancelled wait would end at once, again and again.
                guard !Task.isCancelled else { return }
                group.addTask {
                    try? await Task.sleep(for: Self.settlementPeriod)
                    return .period
                }
            }
            func checkRestAgain() {
                for candidate in ready[next...] {
                    release(candidate)
                    wait(candidate.key, until: time.uptime())
                }
                next = ready.count
            }
            while next < min(most, ready.count), mayBegin { begin() }
            waitForPeriod()
            while open > 0, let step = await group.next() {
                switch step {
                case .ended(let index, let answers):
                    open -= 1
                    noteHealth(answers, of: ready[index])
                    release(ready[index])
                    answered.append((ready[index], answers))
                    if Task.isCancelled {
                        await settle(answered)
                        answered = []
                    } else if next < ready.count, time.uptime() < end, mayBegin {
                        begin()
                    }
                case .period:
                    if time.uptime() >= end || !mayBegin { checkRestAgain() }
                    await settle(answered)
                    answered = []
                    waitForPeriod()
                }
            }
            group.cancelAll()
            checkRestAgain()
            await settle(answered)
        }
    }

    /// Makes the candidates of paused services wait.
    ///
    /// - Returns: the other candidates. A candidate without notifications is always among them, because it is settled
    ///   at once.
    private func unpaused(_ candidates: [Candidate]) -> [Candidate] {
        let now = time.uptime()
        return candidates.filter { candidate in
            let service = candidate.target.token.service
            guard !candidate.plan.items.isEmpty,
                let until = state.withLock({ $0.health.pausedUntil(service, now: now) })
            else { return true }
            release(candidate)
            wait(candidate.key, until: until + .milliseconds(Int64.random(in: 0...1_000)))
            return false
        }
    }

    private func release(_ candidate: Candidate) {
        guard let place = candidate.place else { return }
        state.withLock { $0.hosts.release(place) }
    }

    /// Sends a device's notifications. The notification with the oldest entries is sent first, so that each answer
    /// moves the mark of the last pushed entry forward. Stops if a notification fails, or if the device must not get
    /// any more notifications.
    ///
    /// - Returns: the answers in the order of the plan. An answer is nil if the notification was not sent.
    private func send(_ candidate: Candidate, through sender: any PushSender) async -> [Answer?] {
        let items = candidate.plan.items
        let latest = LatestReading(candidate)
        var answers: [Answer?] = Array(repeating: nil, count: items.count)
        let end = time.uptime() + Self.deviceTime
        for (place, index) in items.indices.sorted(by: { items[$0].firstSeq < items[$1].firstSeq }).enumerated() {
            if place > 0, time.uptime() >= end { break }
            let start = time.uptime()
            let delivery = PushDelivery(
                items[index].notification,
                to: candidate.target.token,
                of: candidate.key.user,
                isDue: { [self] in await isStillDue(items[index], latest) }
            )
            let outcome = Self.outcome(await sender.send(delivery).cut, for: candidate.target)
            let answer = Answer(outcome: outcome, duration: time.uptime() - start)
            switch outcome {
            case .delivered, .refused:
                answers[index] = answer
            case .tokenGone:
                answers[index] = answer
                return answers
            case .withdrawn: return answers
            case .retry:
                // If the server is stopping, it has cut off the request itself, so the service did not fail.
                if !Task.isCancelled { answers[index] = answer }
                return answers
            }
        }
        return answers
    }

    /// Notes whether the candidate's service works. If the service fails, it is also paused for other devices.
    private func noteHealth(_ answers: [Answer?], of candidate: Candidate) {
        let now = time.uptime()
        let service = candidate.target.token.service
        state.withLock { state in
            for case let answer? in answers {
                switch (answer.outcome, candidate.host) {
                case (.delivered, let host?) where answer.duration <= Self.slowness: state.hosts.delivered(host)
                case (.delivered, let host?), (.retry(_, isService: true, _), let host?):
                    state.hosts.failed(host, now: now)
                case (.refused, let host?) where answer.duration > Self.slowness: state.hosts.failed(host, now: now)
                case (.delivered, nil): state.health.succeeded(service)
                case (.retry(let asked, isService: true, _), nil): state.health.failed(service, asked: asked, now: now)
                default: break
                }
            }
        }
    }

    /// Returns the outcome for a device. A service may report that a token has been invalid since a certain time,
    /// although the device has registered the token again after this time. Then the token stays
    /// (``PushSettlement/gone(_:_:_:since:)``), so the notification is tried again.
    private static func outcome(_ outcome: PushSendOutcome, for target: PushTarget) -> PushSendOutcome {
        guard case .tokenGone(let since?) = outcome, target.setAt > since else { return outcome }
        return .retry(after: nil, isService: false, reason: "the token was registered again after it became invalid")
    }

    /// Whether a device may still get a notification. The answer is no if the device has logged out or was removed, if
    /// the account was disabled, or if the token was registered on another device. The answer is also no if the
    /// notification's entry was recalled, read or acknowledged, or has expired. The store is read only if the last
    /// reading is older than ``freshness``.
    private func isStillDue(_ item: HandOffPlan.Item, _ latest: LatestReading) async -> Bool {
        let state = latest.state.withLock { $0 }
        let (key, target) = (state.candidate.key, state.candidate.target)
        let age = time.uptime() - state.candidate.readAt
        guard age >= Self.freshness else { return state.candidate.plan.dueSeqs.contains(item.lastSeq) }
        guard age >= state.patience else {
            let present = try? await tokens.store.pushTargets(of: key.user)
            let isPresent = present?.contains { $0.device == target.device && $0.token == target.token } ?? false
            return isPresent && state.candidate.plan.dueSeqs.contains(item.lastSeq)
        }
        guard case .due(let present)? = try? await find(key.user, target.device), present.target.token == target.token
        else { return false }
        latest.state.withLock { $0 = LatestReading.State(candidate: present, patience: state.patience * 2) }
        return present.plan.dueSeqs.contains(item.lastSeq)
    }

    /// Settles devices in one commit. Results that cannot be recorded are kept, and recorded later.
    private func settle(_ answered: [(candidate: Candidate, answers: [Answer?])]) async {
        guard !answered.isEmpty else { return }
        var results: [PushResult] = []
        var retries: [HandOffKey: Duration] = [:]
        for (candidate, answers) in answered {
            let (result, retryAt) = note(answers, for: candidate)
            results.append(result)
            retries[candidate.key] = retryAt
        }
        do throws(HermesError) {
            try await record(&results)
        } catch {
            report(.failed(error))
            state.withLock { state in for result in results { state.unrecorded.keep(result) } }
            for (candidate, _) in answered { waitForStore(candidate.key) }
            return
        }
        let now = time.uptime()
        for (candidate, answers) in answered {
            let nextIn = answers.contains(nil) ? .zero : candidate.nextIn
            settle(candidate.key, retryAt: retries[candidate.key], moreAt: nextIn.map { now + $0 })
        }
    }

    /// Records results, with one commit for the notices and one commit for the pushes. If the second commit fails, the
    /// results no longer contain notices.
    private func record(_ results: inout [PushResult]) async throws(HermesError) {
        // The notices are stored before the pushes are settled: a repetition is better than a loss.
        try await webhooks?.append(results.flatMap(\.notices), marks: [:])
        for index in results.indices { results[index].notices = [] }
        try await tokens.store.settlePushes(results.flatMap(\.settlements))
    }

    /// Whether the results of further notifications can be kept if the store cannot record them.
    private var mayBegin: Bool { state.withLock { !$0.unrecorded.isFull } }

    /// The number of results that are tried separately, one after the other, before the store counts as failing.
    private static let separateTries = 8

    /// Tries to record the results that could not be recorded when they arrived. If one result cannot be recorded
    /// because of a damaged row, the other results are recorded.
    func recordKept() async {
        guard let kept = state.withLock({ $0.unrecorded.begin() }) else { return }
        var rest = kept
        do throws(HermesError) {
            try await record(&rest)
            rest = []
        } catch {
            var (left, failures) = ([PushResult](), 0)
            for result in rest {
                var one = [result]
                if failures < Self.separateTries {
                    do throws(HermesError) {
                        try await record(&one)
                        (one, failures) = ([], 0)
                    } catch {
                        failures += 1
                    }
                }
                left += one
            }
            rest = left
        }
        state.withLock { [rest] in $0.recorded(kept, rest: rest) }
        await releaseUnneededClaims()
    }

    /// Updates one device's state from the answers of its push service. An answer is nil if the notification was not
    /// sent.
    private func note(
        _ answers: [Answer?],
        for candidate: Candidate
    ) -> (result: PushResult, retryAt: Duration?) {
        let key = candidate.key
        let service = candidate.target.token.service
        let now = time.uptime()
        var notices: [WebhookNotice] = []
        var upTo = candidate.plan.upTo
        var wait: Duration?
        var gone: [PushSettlement] = []
        for (answer, item) in zip(answers, candidate.plan.items) {
            guard let answer else {
                upTo = min(upTo, item.firstSeq - 1)
                continue
            }
            let outcome = answer.outcome
            report(.sent(service, outcome))
            let reference = item.notification.reference
            traces.pushed(
                item.firstSeq...max(item.firstSeq, item.lastSeq),
                key.user,
                candidate.target.device,
                scope: reference.conversation ?? reference.messageID,
                result: "\(service.name) \(outcome.words)"
            )
            switch outcome {
            case .delivered, .refused, .withdrawn:
                break
            case .tokenGone(let since):
                // The token may have been registered again meanwhile. Then the token stays, and the notification is
                // sent to this token.
                upTo = min(upTo, item.firstSeq - 1)
                gone = [.gone(key.user, candidate.target.device, candidate.target.token, since: since)]
            case .retry(let asked, _, _):
                upTo = min(upTo, item.firstSeq - 1)
                let attempts = state.withLock { $0.schedule.attempts(of: key) }
                let delay = settings.backoff.delay(failures: attempts + 1, asked: asked)
                wait = max(wait ?? .zero, delay)
                continue
            }
            guard webhooks?.wants(.pushResult) == true || events.wants(.pushResult) else { continue }
            let notice = WebhookNotice.pushResult(
                key.user,
                candidate.target.device,
                service,
                item.notification,
                outcome
            )
            events.note(.notice(notice), .pushResult)
            notices.append(notice)
        }
        var settlements: [PushSettlement] = []
        if upTo > candidate.target.pushedUpTo {
            settlements.append(.pushed(key.user, candidate.target.device, candidate.target.token, upTo: upTo))
        }
        // Without a token there is nothing to try again.
        let retryAt = gone.isEmpty ? wait.map { now + $0 } : nil
        return (PushResult(key: key, settlements: settlements + gone, notices: notices), retryAt)
    }
}
