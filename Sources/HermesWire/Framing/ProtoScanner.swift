// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Iterates over the fields of a protobuf message without creating objects, for code in which parsing would cost too
/// much.
package struct ProtoScanner {
    package struct Field {
        package var number: UInt64
        /// The value of a varint field, or the length of a field of bytes; 0 for other types.
        package var value: UInt64
        /// The content of a field of bytes; empty for other types.
        package var bytes: UnsafeRawBufferPointer
    }

    private let message: UnsafeRawBufferPointer
    private var position = 0

    package init(_ message: UnsafeRawBufferPointer) { self.message = message }

    /// Returns the next field; nil at the end, or if the bytes are not a message.
    package mutating func next() -> Field? {
        guard let key = varint() else { return nil }
        var field = Field(number: key >> 3, value: 0, bytes: UnsafeRawBufferPointer(start: nil, count: 0))
        switch key & 7 {
        case 0:
            guard let value = varint() else { return nil }
            field.value = value
        case 1: position += 8
        // The beginning or the end of a group. The group's fields are returned like any others.
        case 3, 4: break
        case 5: position += 4
        case 2:
            guard let told = varint(), let length = Int(exactly: told), length <= message.count - position else {
                return nil
            }
            field.value = told
            field.bytes = UnsafeRawBufferPointer(rebasing: message[position..<(position + length)])
            position += length
        default: return nil
        }
        return position <= message.count ? field : nil
    }

    private mutating func varint() -> UInt64? {
        var value: UInt64 = 0
        var shift: UInt64 = 0
        while position < message.count, shift < 64 {
            let byte = message[position]
            position += 1
            value |= UInt64(byte & 0x7F) << shift
            if byte < 0x80 { return value }
            shift += 7
        }
        return nil
    }
}
