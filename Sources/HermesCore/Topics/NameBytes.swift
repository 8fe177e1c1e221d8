// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Topic names and filters are compared byte by byte and never normalized [MQTT-4.7.3-4]. The operator `==` of `String`
/// would normalize them.
extension String {
    func hasBytes(of other: String) -> Bool {
        guard utf8.count == other.utf8.count else { return false }
        return other.withBytes { hasBytes($0) }
    }

    func hasBytes(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        guard utf8.count == bytes.count else { return false }
        return withBytes { own in
            if own.baseAddress == bytes.baseAddress { return true }
            let left = UnsafeRawBufferPointer(own)
            let right = UnsafeRawBufferPointer(bytes)
            var place = 0
            while place &+ 8 <= left.count {
                let isEqual =
                    left.loadUnaligned(fromByteOffset: place, as: UInt64.self)
                    == right.loadUnaligned(fromByteOffset: place, as: UInt64.self)
                guard isEqual else { return false }
                place &+= 8
            }
            while place < left.count {
                guard left[place] == right[place] else { return false }
                place &+= 1
            }
            return true
        }
    }

    /// Calls `body` with the string's UTF-8 bytes. Native strings are not copied.
    @inline(__always)
    func withBytes<Value>(_ body: (UnsafeBufferPointer<UInt8>) -> Value) -> Value {
        if let value = utf8.withContiguousStorageIfAvailable(body) { return value }
        return Array(utf8).withUnsafeBufferPointer(body)
    }

    /// Whether the string begins with the bytes of a prefix. `hasPrefix` would be false if a combining mark follows the
    /// prefix, because the mark and the last letter are one character.
    package func hasBytes(startingWith prefix: String) -> Bool { utf8.starts(with: prefix.utf8) }

    func hashBytes(into hasher: inout Hasher) {
        withBytes { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}
