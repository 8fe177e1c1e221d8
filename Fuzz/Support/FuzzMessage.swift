// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
package import NIOCore
package import SwiftProtobuf

/// Parses bytes as a message; if they are one, writing and parsing it again has to give the same.
///
/// - Returns: the message, if the bytes are one.
@discardableResult
package func fuzz<Body: SwiftProtobuf.Message>(_ bytes: ByteBuffer, as type: Body.Type) -> Body? {
    guard let message = try? Body(wire: bytes) else { return nil }
    // Bytes are compared, not messages, because a message with a NaN is not equal to itself.
    do {
        let written = try canonicalBytes(message)
        try invariant(canonicalBytes(Body(wire: written)) == written, "writing changes a \(Body.protoMessageName)")
    } catch {
        broken("a \(Body.protoMessageName) that was read cannot be written and read again: \(error)")
    }
    return message
}

/// Parses the bytes of a field as a message.
@discardableResult
package func fuzz<Body: SwiftProtobuf.Message>(
    _ bytes: some SwiftProtobufContiguousBytes & Sequence<UInt8>,
    as type: Body.Type
) -> Body? {
    fuzz(ByteBuffer(bytes: bytes), as: type)
}

private func canonicalBytes(_ message: some SwiftProtobuf.Message) throws -> [UInt8] {
    var options = BinaryEncodingOptions()
    options.useDeterministicOrdering = true
    return try message.serializedBytes(options: options)
}
