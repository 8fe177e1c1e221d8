// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// The text of a benchmark's message. It contains a number and a time, which show the message's order and age.
///
/// The number has eight characters of six bits each. The time has ten such characters. The rest is padding.
enum BenchStamp {
    static let minBytes = 18

    /// Writes a text of `bytes` bytes.
    static func write(_ number: UInt64, at nanoseconds: UInt64, bytes: Int, into buffer: inout ByteBuffer) {
        for shift in stride(from: UInt64(42), through: 0, by: -6) { buffer.writeInteger(digit(number >> shift)) }
        for shift in stride(from: UInt64(54), through: 0, by: -6) { buffer.writeInteger(digit(nanoseconds >> shift)) }
        buffer.writeRepeatingByte(UInt8(ascii: "."), count: max(0, bytes - minBytes))
    }

    /// Parses a text; nil if the text is too short for a stamp.
    static func read(_ bytes: UnsafeRawBufferPointer) -> (number: UInt64, nanoseconds: UInt64)? {
        guard bytes.count >= minBytes else { return nil }
        var number: UInt64 = 0
        var nanoseconds: UInt64 = 0
        for index in 0..<8 { number = number << 6 | value(bytes[index]) }
        for index in 8..<18 { nanoseconds = nanoseconds << 6 | value(bytes[index]) }
        return (number, nanoseconds)
    }

    private static func digit(_ bits: UInt64) -> UInt8 { UInt8(truncatingIfNeeded: bits & 63) + 48 }
    private static func value(_ byte: UInt8) -> UInt64 { UInt64(byte &- 48) & 63 }

    static var now: UInt64 { NIODeadline.now().uptimeNanoseconds }
}
