// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// The inbox seqs of a message. Each recipient has 12 bytes: 4 bytes for the user, then 8 bytes for the seq, both
/// little-endian.
enum DeliveryList {
    static func append(_ user: UserID, _ seq: UInt64, to bytes: inout [UInt8]) {
        withUnsafeBytes(of: UInt32(bitPattern: user.rawValue).littleEndian) { bytes.append(contentsOf: $0) }
        withUnsafeBytes(of: seq.littleEndian) { bytes.append(contentsOf: $0) }
    }

    static func decode(_ bytes: [UInt8]) throws -> [(user: UserID, seq: UInt64)] {
        var rest = bytes[...]
        var deliveries: [(user: UserID, seq: UInt64)] = []
        while !rest.isEmpty {
            guard let user = StoredForm.takeUser(from: &rest),
                let seq = StoredForm.take(8, from: &rest)
            else { throw StoreFailure.damagedRow }
            deliveries.append((user, seq))
        }
        return deliveries
    }
}
