// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore
package import SwiftProtobuf

/// The fields of a protobuf message that hold messages. They make it possible to count the parts of the message before
/// the message is parsed.
struct MessageShape {
    /// The number of each field, followed by the index of its message's shape in ``all``.
    let fields: [UInt16]

    init(_ index: UInt16) { fields = Self.all[Int(index)] }

    /// Returns the index of the shape of the message in a field; nil if the field holds no message.
    func nested(_ number: UInt64) -> UInt16? {
        var position = 0
        while position < fields.count {
            if UInt64(fields[position]) == number { return fields[position + 1] }
            position += 2
        }
        return nil
    }
}

/// The parts of a message: its fields, and the fields of the messages inside it. Each element of a repeated field and
/// each entry of a map counts separately. A part may be as short as two bytes, but takes up to a microsecond to parse.
/// So the cost of a message depends on its parts, not on its bytes.
package enum MessageParts {
    /// The largest number of parts of a message from a client. The largest legitimate request, `PresenceRequest`, names
    /// two thousand users.
    package static let max = 4_096
    /// The length in bytes of the longest message that is not examined. Such a message counts as 0 parts.
    static let freeBytes = 128
    /// The depth at which counting stops. The parser refuses messages that nest deeper (`BinaryDecodingOptions.wire`).
    private static let maxDepth = 32

    /// Counts the parts of a protobuf message. The count stops at ``max`` + 1. Counting takes a few nanoseconds per
    /// part.
    ///
    /// - Parameter bytes: the message. If it is not valid, only the parts before the error count.
    package static func count(_ type: (some SwiftProtobuf.Message).Type, wire bytes: ByteBuffer) -> Int {
        bytes.withUnsafeReadableBytes { count(type, wire: $0) }
    }

    package static func count(
        _ type: (some SwiftProtobuf.Message).Type,
        wire bytes: some SwiftProtobufContiguousBytes
    ) -> Int {
        bytes.withUnsafeBytes { count(type, wire: $0) }
    }

    private static func count(_ type: (some SwiftProtobuf.Message).Type, wire bytes: UnsafeRawBufferPointer) -> Int {
        guard bytes.count > freeBytes else { return 0 }
        var parts = 0
        walk(bytes, MessageShape.named[type.protoMessageName] ?? 0, depth: 0, &parts)
        return parts
    }

    /// Counts the parts of a JSON text. The count stops at ``max`` + 1. Each comma, colon and opening bracket outside
    /// a string counts as one part.
    package static func count(json bytes: ByteBuffer) -> Int {
        guard bytes.readableBytes > freeBytes else { return 0 }
        return bytes.withUnsafeReadableBytes { bytes in
            var parts = 0
            var isText = false
            var index = 0
            while index < bytes.count {
                switch bytes[index] {
                case UInt8(ascii: "\""): isText.toggle()
                case UInt8(ascii: "\\") where isText: index += 1
                case UInt8(ascii: ","), UInt8(ascii: ":"), UInt8(ascii: "["), UInt8(ascii: "{"):
                    if !isText {
                        parts += 1
                        if parts > max { return parts }
                    }
                default: break
                }
                index += 1
            }
            return parts
        }
    }

    private static func walk(_ bytes: UnsafeRawBufferPointer, _ shape: UInt16, depth: Int, _ parts: inout Int) {
        guard depth < maxDepth else { return }
        let shape = MessageShape(shape)
        var scanner = ProtoScanner(bytes)
        while parts <= max, let field = scanner.next() {
            parts += 1
            if let nested = shape.nested(field.number) { walk(field.bytes, nested, depth: depth + 1, &parts) }
        }
    }
}
