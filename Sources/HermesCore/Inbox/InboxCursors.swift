// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The places up to which the devices of an account have taken its inbox. They decide which entries may be deleted.
/// Pure; the same for every store.
///
/// An entry waits for all devices. Once an inbox is crowded (``InboxBudget/isCrowded(_:)``), it waits only for the
/// first device. So a device that stays away does not keep senders out, and is told about the hole when it returns.
/// Devices that were merely claimed do not count: while an account has no others, its entries stay until they expire.
package struct InboxCursors: Sendable {
    package struct Cursor: Sendable, Hashable {
        package var seq: UInt64
        package var proof: DeviceProof

        package init(seq: UInt64, proof: DeviceProof) {
            self.seq = seq
            self.proof = proof
        }
    }

    private var cursors: [DeviceID: Cursor] = [:]

    package init() {}

    package init(_ devices: [Device]) {
        for device in devices { self[device.description.id] = Cursor(seq: device.cursor, proof: device.proof) }
    }

    package var count: Int { cursors.count }

    package subscript(device: DeviceID) -> Cursor? {
        get { cursors[device] }
        set { cursors[device] = newValue }
    }

    package mutating func move(_ device: DeviceID, to seq: UInt64) { cursors[device]?.seq = seq }

    /// The last entry that nobody waits for; 0 if no device showed a proof.
    package func released(isCrowded: Bool) -> UInt64 {
        guard let delivered = lastTaken else { return 0 }
        return isCrowded ? delivered : cursors.values.lazy.map(\.seq).min() ?? 0
    }

    /// The last entry that has reached the account, because one of its devices has taken it. Devices that were merely
    /// claimed do not count: anybody may claim to be one.
    package var delivered: UInt64 { lastTaken ?? 0 }

    /// Nil if no device showed a proof.
    private var lastTaken: UInt64? { cursors.values.lazy.filter { $0.proof > .claim }.map(\.seq).max() }
}
