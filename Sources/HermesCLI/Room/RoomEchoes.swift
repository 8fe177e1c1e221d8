// Hermes
// SPDX-License-Identifier: Apache-2.0

import Hermes
import Synchronization

/// Counts the texts and gifts that were sent during a visit, and those that the server has sent back. The server sends
/// an accepted text or gift to its sender, too. It drops all other texts and gifts, and sends no answer.
final class RoomEchoes: Sendable {
    private let room: String
    private let name: String
    private let counts = Mutex((sent: 0, seen: 0))

    private static let patience = Duration.seconds(5)

    init(in room: String, by name: String) {
        self.room = room
        self.name = name
    }

    /// Counts a text or gift that was sent.
    func sent() { counts.withLock { $0.sent += 1 } }

    /// Counts an event if it is a text or gift of this user.
    func seen(_ event: RoomEvent) {
        guard event.user?.name == name else { return }
        switch event.kind {
        case .text, .gift: counts.withLock { $0.seen += 1 }
        default: break
        }
    }

    /// Waits until everything that was sent has come back. The time limit begins anew whenever something comes back.
    ///
    /// - Throws: ClientFailure if nothing comes back for 5 seconds; CancellationError.
    func wait() async throws {
        var (last, end) = (-1, ContinuousClock.now)
        while true {
            let (sent, seen) = counts.withLock { $0 }
            if seen >= sent { return }
            if seen != last { (last, end) = (seen, ContinuousClock.now + Self.patience) }
            guard ContinuousClock.now < end else {
                throw ClientFailure(
                    "not everything that was sent to the room \(room) came back: "
                        + "perhaps the room's rules do not allow \(name) to talk there"
                )
            }
            try await Task.sleep(for: .milliseconds(20))
        }
    }
}
