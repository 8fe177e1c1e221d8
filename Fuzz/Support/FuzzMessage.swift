// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
package import NIOCore
package import SwiftProtobuf

/// Parses bytes as a message; checks that writing and parsing it again gives the same.
///
/// - Returns: the message, if the bytes are one.
@discardableResult
package func fuzz<Body: SwiftProtobuf.Message>(_ bytes: ByteBuffer, as type: Body.Type) -> Body? {
    guard let message = try? Body(wire: bytes) else { return nil }
    // Bytes are compared, not messages, because a message with a NaN is not equal to itself.
    do {
        let written = try canonicalBytes(message)
        let again = try canonicalBytes(Body(wire: written, maxParts: nil))
        invariant(again == written, "writing changes a \(Body.protoMessageName)")
        writeAsJSON(message)
    } catch {
        broken("a \(Body.protoMessageName) that was read cannot be written and read again: \(error)")
    }
    return message
}

/// Parses JSON as a message; checks that it can be written as bytes and as JSON.
package func fuzz<Body: SwiftProtobuf.Message>(json: ByteBuffer, as type: Body.Type) {
    guard let message = try? Body(wireJSON: json) else { return }
    invariant(message.hasEncodableEnums, "a \(Body.protoMessageName) holds an enum that cannot be written")
    writeAsJSON(message)
    // Required fields may be missing, and nesting may be deeper than the binary form allows.
    guard let written = try? message.wireBuffer() else { return }
    fuzz(written, as: type)
}

/// Writes a message as JSON, reads it and writes it as bytes: no write may pass a buffer's end.
private func writeAsJSON<Body: SwiftProtobuf.Message>(_ message: Body) {
    // Some values have no JSON form, a NaN in a Struct among them.
    guard let json = try? message.jsonString(),
        let again = try? Body(wireJSON: ByteBuffer(string: json), maxParts: nil)
    else { return }
    invariant(again.hasEncodableEnums, "a \(Body.protoMessageName) holds an enum that cannot be written")
    _ = try? canonicalBytes(again)
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
