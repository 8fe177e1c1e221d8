// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The cursors of an account's devices. Each device has acknowledged the account's inbox up to its cursor. The cursors
/// decide which entries may be deleted. Does no I/O; all stores use this type.
///
/// An entry is kept until all devices have acknowledged it. In a crowded inbox (``InboxBudget/isCrowded(_:)``), an
/// entry is kept only until one device has acknowledged it. So an absent device does not block the senders; the device
/// gets an entry for the hole when it returns. A device that was merely claimed (``DeviceProof/claim``) does not
/// release entries. If an account has only such devices, its entries stay until they expire.
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

    /// The seq of the last entry that a device of the account has acknowledged. Only devices that have shown a proof
    /// count, because anybody can claim to be a device. The seq is 0 if no device has shown a proof.
    package var delivered: UInt64 { lastTaken ?? 0 }

    /// The highest seq that a device with a proof has acknowledged; nil if no device has shown a proof.
    private var lastTaken: UInt64? { cursors.values.lazy.filter { $0.proof > .claim }.map(\.seq).max() }
}
