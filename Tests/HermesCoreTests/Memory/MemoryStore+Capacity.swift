// Hermes
// SPDX-License-Identifier: Apache-2.0

@testable import HermesCore

extension MemoryStore {
    /// Makes writes fail with `.storageUnavailable`, as on a full disk, if the stored contents would reach this number
    /// of bytes. If the number is nil, there is no limit.
    func setCapacity(bytes: Int?) throws(HermesError) {
        try run { $0.capacityBytes = bytes }
    }
}
