// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore

/// An event that another thread sends to a connection, through the mailbox of the connection's loop. A closed
/// connection ignores it.
package enum LoopEvent: Sendable {
    case inboxAdvanced(Connection, [InboxEntry])
    case ephemeral(Connection, EphemeralEvent)
    case ended(Connection, AttachmentEnd)
    /// The result of a message that was sent, with the bytes that the request has held until now.
    case sent(Connection, correlation: UInt64, Result<SendReceipt, HermesError>, bytes: Int)
    /// Other, rarer work.
    case run(@Sendable () -> Void)

    /// Delivers the event, on the loop.
    func deliver() {
        switch self {
        case .inboxAdvanced(let connection, let entries): connection.events?.inboxAdvanced(entries)
        case .ephemeral(let connection, let event):
            connection.loop.waiting.remove(event)
            connection.events?.ephemeralArrived(event)
        case .ended(let connection, let reason): connection.end(.attachment(reason))
        case .sent(let connection, let correlation, let result, let bytes):
            connection.sendCompleted(correlation, result, bytes: bytes)
        case .run(let body): body()
        }
    }
}
