// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// Finds the publication that is too long for a server of MQTT 3.1.1. Such a server does not say which length it
/// accepts, and closes the connection without a reason if a packet is longer. Does no I/O.
///
/// A long publication fails if the server closes ``maxEnds`` connections in a row soon after it got the publication. A
/// connection counts only if the publication was sent alone: no other publication was unanswered when it was written,
/// and nothing else was published after it. If a connection ended while several publications were unanswered, the first
/// long one is sent alone over the next connection.
struct MQTTLengthSearch: Sendable {
    /// The number of connections that the server closes before the publication fails.
    static let maxEnds = 5
    /// The length, in bytes, up to which a publication is never suspected. No Hermes server can have a lower limit: this
    /// is the smallest value of `mqtt.maxPacketBytes`.
    static let harmlessBytes = 1_024
    /// The time after the write in which the end of the connection counts against a publication. It is also the longest
    /// time for which other publications wait for the answer to a publication that is sent alone. A server recognizes a
    /// packet that is too long by its first bytes, so it closes the connection long before.
    static let window = TimeAmount.seconds(5)

    /// A long publication that was sent alone and has no answer yet.
    private struct Lone {
        let id: UInt64
        let bytes: Int
        let writtenAt: NIODeadline
    }

    private var lone: Lone?
    /// The publication that the last counted end of a connection speaks against, and the number of these ends.
    private var suspect: (id: UInt64, ends: Int)?
    /// The length, in bytes, of the longest packet on this connection that is no publication of QoS 1 or 2. The server
    /// may have closed the connection for this packet.
    private var longestOther = 0
    /// Whether the next long publication is to be sent alone.
    private var isOn = false
    /// The time since which a long publication waits for the answers to the publications before it.
    private var waitingSince: NIODeadline?

    /// The time at which the owner must call `deadlineReached`; nil if there is none.
    var nextDeadline: NIODeadline? {
        guard isOn else { return nil }
        return (lone?.writtenAt ?? waitingSince).map { $0 + Self.window }
    }

    /// Whether the next publication may be written now.
    ///
    /// - Parameters:
    ///   - bytes: its length.
    ///   - unanswered: the number of unanswered publications on this connection.
    mutating func mayWrite(bytes: Int, unanswered: Int, now: NIODeadline) -> Bool {
        guard isOn else { return true }
        guard lone != nil || bytes > Self.harmlessBytes && unanswered > 0 else { return true }
        if waitingSince == nil { waitingSince = now }
        return false
    }

    /// Notes that a publication was written.
    ///
    /// - Parameter unanswered: the number of other unanswered publications on this connection.
    mutating func written(_ id: UInt64, bytes: Int, unanswered: Int, now: NIODeadline) {
        guard bytes > Self.harmlessBytes, unanswered == 0 else {
            lone = nil
            return
        }
        lone = Lone(id: id, bytes: bytes, writtenAt: now)
        waitingSince = nil
    }

    /// Notes that a packet was written that is no publication of QoS 1 or 2.
    mutating func otherWritten(bytes: Int) { longestOther = max(longestOther, bytes) }

    /// Notes the server's answer to a publication.
    mutating func answered() {
        suspect = nil
        guard lone != nil else { return }
        lone = nil
        isOn = false
        waitingSince = nil
    }

    /// Ends the search for now if an answer is late.
    ///
    /// - Returns: whether the publications that waited may be written.
    mutating func deadlineReached(now: NIODeadline) -> Bool {
        guard let nextDeadline, nextDeadline <= now else { return false }
        isOn = false
        waitingSince = nil
        return true
    }

    /// Notes that the server closed the connection without a reason. `lost` follows.
    ///
    /// - Parameter hasLong: whether one of the unanswered publications is long.
    /// - Returns: the publication that fails; nil if there is none.
    mutating func serverClosed(hasLong: Bool, now: NIODeadline) -> UInt64? {
        if hasLong { isOn = true }
        guard let lone, lone.bytes > longestOther else { return nil }
        guard now - lone.writtenAt <= Self.window else {
            suspect = nil
            return nil
        }
        let ends = suspect.map { $0.id == lone.id ? $0.ends + 1 : 1 } ?? 1
        guard ends >= Self.maxEnds else {
            suspect = (lone.id, ends)
            return nil
        }
        suspect = nil
        isOn = false
        return lone.id
    }

    /// Notes that the connection is gone, for whatever reason.
    mutating func lost() {
        lone = nil
        longestOther = 0
        waitingSince = nil
    }
}
