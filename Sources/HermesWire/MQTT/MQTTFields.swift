// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// Reads the fields of a packet's body, and checks the length of each. The string with a field's name is created only
/// for an error.
extension ByteBuffer {
    mutating func readMQTTByte(_ field: @autoclosure () -> String) throws(MQTTPacketError) -> UInt8 {
        guard let byte = readInteger(as: UInt8.self) else { throw .malformed("\(field()) is missing") }
        return byte
    }

    mutating func readMQTTTwoBytes(_ field: @autoclosure () -> String) throws(MQTTPacketError) -> UInt16 {
        guard let integer = readInteger(as: UInt16.self) else { throw .malformed("\(field()) is missing") }
        return integer
    }

    mutating func readMQTTFourBytes(_ field: @autoclosure () -> String) throws(MQTTPacketError) -> UInt32 {
        guard let integer = readInteger(as: UInt32.self) else { throw .malformed("\(field()) is missing") }
        return integer
    }

    mutating func readMQTTVariableByteInteger(_ field: @autoclosure () -> String) throws(MQTTPacketError) -> Int {
        guard case .value(let value, let bytes) = MQTTVariableByteInteger.peek(self, at: readerIndex) else {
            throw .malformed("\(field()) is not a variable byte integer (1.5.5)")
        }
        moveReaderIndex(forwardBy: bytes)
        return value
    }

    /// Reads a packet identifier, which is never 0 [MQTT-2.2.1-3].
    mutating func readMQTTPacketID() throws(MQTTPacketError) -> UInt16 {
        let id = try readMQTTTwoBytes("the packet identifier")
        guard id != 0 else { throw .protocolError("a packet identifier is 0 [MQTT-2.2.1-3]") }
        return id
    }

    /// Reads bytes with a length prefix (1.5.6).
    mutating func readMQTTBinary(_ field: @autoclosure () -> String) throws(MQTTPacketError) -> ByteBuffer {
        guard let bytes = readLengthPrefixedSlice(as: UInt16.self) else {
            throw .malformed("\(field()) is shorter than its length says")
        }
        return bytes
    }

    /// Reads a string: UTF-8 without surrogates [MQTT-1.5.4-1], without U+0000 [MQTT-1.5.4-2], and with few combining
    /// marks in a row (``StreamSafeText``).
    mutating func readMQTTString(_ field: @autoclosure () -> String) throws(MQTTPacketError) -> String {
        let bytes = try readMQTTBinary(field())
        let view = bytes.readableBytesView
        guard let string = String(validating: view, as: UTF8.self) else {
            throw .malformed("\(field()) is not UTF-8 [MQTT-1.5.4-1]")
        }
        guard !view.contains(0) else { throw .malformed("\(field()) holds U+0000 [MQTT-1.5.4-2]") }
        guard StreamSafeText.isSafe(bytes) else { throw .malformed("\(field()) \(StreamSafeText.problem)") }
        return string
    }

    /// Reads a topic filter and checks that it is well formed [MQTT-4.7.1-1] [MQTT-4.7.1-2] [MQTT-4.7.3-1]. The check
    /// includes the group of a shared subscription [MQTT-4.8.2-1] [MQTT-4.8.2-2]. The rules for shared subscriptions
    /// also apply to 3.1.1, although that version does not define them.
    mutating func readMQTTFilter() throws(MQTTPacketError) -> String {
        let filter = try readMQTTString("a topic filter")
        guard MQTTTopic.isValidFilter(filter) else {
            // The reason code 0x8F would mean "correctly formed, but not accepted" (3.14.2.1).
            throw .malformed("a topic filter is not well formed [MQTT-4.7.1-1] [MQTT-4.7.3-1] [MQTT-4.8.2-1]")
        }
        return filter
    }

    /// - Throws: WireError `.notEncodable` if the string is longer than 65,535 bytes. If the function throws, it
    ///   writes nothing.
    mutating func writeMQTTString(_ string: String) throws(WireError) {
        guard let length = UInt16(exactly: string.utf8.count) else {
            throw WireError(.notEncodable, "a string of \(string.utf8.count) bytes is longer than 65,535 (1.5.4)")
        }
        writeInteger(length)
        writeString(string)
    }

    mutating func writeMQTTBinary(_ bytes: ByteBuffer) throws(WireError) {
        guard let length = UInt16(exactly: bytes.readableBytes) else {
            throw WireError(.notEncodable, "\(bytes.readableBytes) bytes are more than 65,535 (1.5.6)")
        }
        writeInteger(length)
        writeImmutableBuffer(bytes)
    }
}
