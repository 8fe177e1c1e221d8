// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Which devices of a user an end concerns.
package enum EndedDevices: Sendable, Hashable {
    case all
    case only(DeviceID)
    case allBut(DeviceID)

    func contains(_ device: DeviceID) -> Bool {
        switch self {
        case .all: true
        case .only(let one): device == one
        case .allBut(let one): device != one
        }
    }

    /// As ``contains(_:)``, for a client whose id may be no device's.
    func contains(clientID: String) -> Bool {
        switch self {
        case .all: true
        case .only(let one): clientID == one.rawValue
        case .allBut(let one): clientID != one.rawValue
        }
    }
}

/// The ends of the last while, for logins that began before an end and attach after it; by user, or by the name that MQTT
/// sessions are kept under.
///
/// State: a `Mutex` around a bounded list; a login that is older than the list remembers is ended to be safe.
final class RecentEnds<Subject: Hashable & Sendable>: Sendable {
    private struct End: Sendable {
        let stamp: UInt64
        let subject: Subject
        let reason: SessionEnd
        let devices: EndedDevices
    }

    private struct State: Sendable {
        var lastStamp: UInt64 = 0
        var forgottenStamp: UInt64 = 0
        var ends: [End] = []
    }

    private static var maxEnds: Int { 4096 }

    private let state = Mutex(State())

    /// A stamp for a login that begins now.
    func stamp() -> UInt64 { state.withLock { $0.lastStamp } }

    func record(_ subject: Subject, _ reason: SessionEnd, _ devices: EndedDevices) {
        state.withLock { state in
            state.lastStamp += 1
            if state.ends.count >= Self.maxEnds {
                state.forgottenStamp = state.ends[Self.maxEnds / 2 - 1].stamp
                state.ends.removeFirst(Self.maxEnds / 2)
            }
            state.ends.append(End(stamp: state.lastStamp, subject: subject, reason: reason, devices: devices))
        }
    }

    /// Why a login that has just attached must end; nil: it may stay.
    ///
    /// - Parameters:
    ///   - subject: whose.
    ///   - stamp: of its beginning.
    ///   - isMeant: whether the login is of these devices.
    func reason(toEnd subject: Subject, since stamp: UInt64, where isMeant: (EndedDevices) -> Bool) -> SessionEnd? {
        state.withLock { state in
            guard stamp < state.lastStamp else { return nil }
            guard stamp >= state.forgottenStamp else { return .revoked }
            return state.ends.last { $0.stamp > stamp && $0.subject == subject && isMeant($0.devices) }?.reason
        }
    }
}
