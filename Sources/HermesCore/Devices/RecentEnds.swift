// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// A selection of a user's connections that are ended.
package enum EndedDevices: Sendable, Hashable {
    case all
    case only(DeviceID)
    /// The logins of this device except this login.
    case onlyBut(DeviceID, LoginNumber)
    /// All logins except this login. Other logins with the same device id are ended, too, because they may belong to
    /// somebody else.
    case allBut(LoginNumber)

    func contains(_ principal: Principal) -> Bool {
        contains(clientID: principal.device.rawValue, tokenOwner: principal.tokenOwner, login: principal.login)
    }

    /// - Parameters:
    ///   - clientID: the client id, which need not be a device id.
    ///   - tokenOwner: the device whose token the client showed. If that device is ended, the client is ended, whatever
    ///     its client id is.
    ///   - login: the client's login; nil if it is not known. An unknown login is not spared.
    func contains(clientID: String, tokenOwner: DeviceID?, login: LoginNumber?) -> Bool {
        switch self {
        case .all: true
        case .only(let one): clientID == one.rawValue || tokenOwner == one
        case .onlyBut(let one, let spared): login != spared && (clientID == one.rawValue || tokenOwner == one)
        case .allBut(let one): login != one
        }
    }
}

/// The recent ends of connections, by user or by owner of MQTT sessions. With them, the server also ends a login that
/// began before such an end and attaches after it.
///
/// State: a `Mutex` around a bounded list. A login that is older than the list is always ended, because such an end may
/// be missing from the list.
final class RecentEnds<Subject: Hashable & Sendable>: Sendable {
    private struct End: Sendable {
        let stamp: UInt64
        let subject: Subject
        let reason: AttachmentEnd
        let devices: EndedDevices
    }

    private struct State: Sendable {
        var lastStamp: UInt64 = 0
        var forgottenStamp: UInt64 = 0
        var ends: [End] = []
    }

    /// The largest number of ends in the list. Renames cause many ends, but fewer than half of this number occur during
    /// one login.
    private static var maxEnds: Int { 65_536 }

    private let state = Mutex(State())

    /// Returns a stamp for a login that begins now.
    func stamp() -> UInt64 { state.withLock { $0.lastStamp } }

    func record(_ subject: Subject, _ reason: AttachmentEnd, _ devices: EndedDevices) {
        state.withLock { state in
            state.lastStamp += 1
            if state.ends.count >= Self.maxEnds {
                state.forgottenStamp = state.ends[Self.maxEnds / 2 - 1].stamp
                state.ends.removeFirst(Self.maxEnds / 2)
            }
            state.ends.append(End(stamp: state.lastStamp, subject: subject, reason: reason, devices: devices))
        }
    }

    /// Returns the reason why a newly attached login must end; nil if it can stay.
    ///
    /// - Parameters:
    ///   - subject: the login's user or owner.
    ///   - stamp: the stamp that the login got when it began.
    ///   - isMeant: whether the end of these devices concerns the login.
    func reason(toEnd subject: Subject, since stamp: UInt64, where isMeant: (EndedDevices) -> Bool) -> AttachmentEnd? {
        state.withLock { state in
            guard stamp < state.lastStamp else { return nil }
            guard stamp >= state.forgottenStamp else { return .revoked }
            for end in state.ends.reversed() {
                guard end.stamp > stamp else { break }
                if end.subject == subject, isMeant(end.devices) { return end.reason }
            }
            return nil
        }
    }
}
