// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The cursors of an account's devices: each device has taken the account's inbox up to its cursor. The cursors decide
/// which entries may be deleted. Does no I/O; all stores use this type.
///
/// An entry is kept until all devices have taken it. In a crowded inbox (``InboxBudget/isCrowded(_:)``), an entry is
/// kept only until one device has taken it. So a device that stays away does not keep senders out; the device is told
/// about the hole when it returns. A device that was merely claimed (``DeviceProof/claim``) does not release entries:
/// while an account has no other devices, its entries stay until they expire.
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

    /// Returns the seq of the last entry that no device needs any more; 0 if no device has shown a proof.
    package func released(isCrowded: Bool) -> UInt64 {
        guard let delivered = lastTaken else { return 0 }
        return isCrowded ? delivered : cursors.values.lazy.map(\.seq).min() ?? 0
    }

    /// The seq of the last entry that has reached the account: a device of the account has taken it. Only devices that
    /// have shown a proof count, because anybody may claim to be a device. 0 if no device has shown a proof.
    package var delivered: UInt64 { lastTaken ?? 0 }

    /// The highest seq that a device with a proof has taken; nil if no device has shown a proof.
    private var lastTaken: UInt64? { cursors.values.lazy.filter { $0.proof > .claim }.map(\.seq).max() }
}
