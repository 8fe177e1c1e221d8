// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire

extension ProtoScanner {
    /// Returns the first field with this number; nil if there is none.
    static func find(_ number: UInt64, in message: UnsafeRawBufferPointer) -> Field? {
        var scanner = ProtoScanner(message)
        while let field = scanner.next() {
            if field.number == number { return field }
        }
        return nil
    }
}
