// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Sends notifications to push services (APNs, FCM, Web Push).
///
/// Implementation: HermesPush.
package protocol PushSender: Sendable {
    /// Sends a notification. Several calls may be under way at once.
    func send(_ delivery: PushDelivery) async -> PushSendOutcome
}

/// The answer of a push service.
struct PushAnswer: Sendable, Hashable {
    let outcome: PushSendOutcome
    /// The time from the request to the answer.
    let duration: Duration
}

extension PushSender {
    /// Sends the notifications of several devices: those of one device one after the other, and those of several devices
    /// at once.
    ///
    /// - Parameters:
    ///   - lines: the notifications, by device.
    ///   - most: the most devices at once.
    ///   - limit: the time after which no further request begins. The first request for each of the first `most` devices
    ///     begins in any case.
    /// - Returns: the answers in the order of `lines`; nil for notifications that were not sent.
    func send(
        _ lines: [[PushDelivery]],
        atOnce most: Int,
        within limit: Duration,
        of time: any TimeSource
    ) async -> [[PushAnswer?]] {
        let end = time.uptime() + limit
        return await withTaskGroup(of: (Int, [PushAnswer?]).self) { group in
            var answers = lines.map { [PushAnswer?](repeating: nil, count: $0.count) }
            var next = 0
            func begin() {
                let index = next
                next += 1
                group.addTask { (index, await send(lines[index], until: end, of: time)) }
            }
            while next < min(most, lines.count) { begin() }
            while let (index, found) = await group.next() {
                answers[index] = found
                if next < lines.count, time.uptime() < end { begin() }
            }
            return answers
        }
    }

    private func send(_ line: [PushDelivery], until end: Duration, of time: any TimeSource) async -> [PushAnswer?] {
        var answers = [PushAnswer?](repeating: nil, count: line.count)
        for (index, delivery) in line.enumerated() {
            let start = time.uptime()
            guard index == 0 || start < end else { break }
            let outcome = await send(delivery)
            answers[index] = PushAnswer(outcome: outcome, duration: time.uptime() - start)
        }
        return answers
    }
}
