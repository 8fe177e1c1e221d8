// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// The limit for consecutive combining marks in text from the network.
///
/// Swift compares and hashes strings by canonical equivalence. To do so, it sorts each run of combining marks, in a
/// time that grows with the square of the run's length: a run of 60 KiB takes a quarter of a second, and a run of 1
/// MiB takes minutes. So a text with a run longer than ``maxRun`` is refused before it becomes a string. The time to
/// compare accepted texts is linear in their length.
package enum StreamSafeText {
    /// The largest number of combining marks in a row. Unicode's Stream-Safe Text Format allows 30 (UAX #15, section
    /// 13), which is far more than any language needs. The limit is higher because decorated text in chats has more.
    package static let maxRun = 128

    /// The end of an error message about a text that is not safe.
    package static let problem = "holds more than \(maxRun) combining marks in a row"

    /// Returns whether no text in the bytes has a run longer than ``maxRun``. The bytes may also hold data other than
    /// text.
    package static func isSafe(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var scan = Scan()
        return scan.isSafe(bytes, withEscapes: false)
    }

    package static func isSafe(_ buffer: ByteBuffer) -> Bool { buffer.withUnsafeReadableBytes(isSafe) }

    package static func isSafe(_ text: some Collection<UInt8>) -> Bool {
        text.withContiguousStorageIfAvailable { isSafe(UnsafeRawBufferPointer($0)) }
            ?? Array(text).withUnsafeBytes(isSafe)
    }

    /// Returns whether no text in a JSON document has a run longer than ``maxRun``. Marks that are written as `\u` and
    /// four digits count, too.
    package static func isSafe(json buffer: ByteBuffer) -> Bool {
        buffer.withUnsafeReadableBytes { bytes in
            var scan = Scan()
            return scan.isSafe(bytes, withEscapes: true)
        }
    }

    /// A scan of bytes that counts the present run of combining marks.
    private struct Scan {
        private var run = 0

        mutating func isSafe(_ bytes: UnsafeRawBufferPointer, withEscapes: Bool) -> Bool {
            var index = 0
            while index < bytes.count {
                if index + 8 <= bytes.count {
                    let word = bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)
                    if word & 0x8080_8080_8080_8080 == 0, !withEscapes || !Self.hasBackslash(word) {
                        run = 0
                        index += 8
                        continue
                    }
                }
                if withEscapes, bytes[index] == UInt8(ascii: "\\") {
                    let (scalar, length) = Self.escape(in: bytes, at: index)
                    guard take(scalar) else { return false }
                    index += length
                } else {
                    let (scalar, length) = Self.scalar(in: bytes, at: index)
                    guard take(scalar) else { return false }
                    index += length
                }
            }
            return true
        }

        private mutating func take(_ scalar: UInt32) -> Bool {
            guard Self.isCombining(scalar) else {
                run = 0
                return true
            }
            run += 1
            return run <= maxRun
        }

        /// Whether a scalar counts as a combining mark. It does if normalization sorts the scalar itself, or the marks
        /// into which the scalar decomposes.
        private static func isCombining(_ value: UInt32) -> Bool {
            // The combining marks begin at U+0300; the large scripts of East Asia contain no combining marks.
            guard value >= 0x300, !(0x3400...0x9FFF).contains(value), !(0xAC00...0xD7A3).contains(value),
                let scalar = Unicode.Scalar(value)
            else { return false }
            // These three vowel signs have the combining class 0, but each decomposes into two marks that are sorted.
            return scalar.properties.canonicalCombiningClass != .notReordered || [0xF73, 0xF75, 0xF81].contains(value)
        }

        /// Decodes the UTF-8 scalar at an index.
        ///
        /// - Returns: the scalar and its length in bytes. For ASCII and for bytes that are not UTF-8, the scalar is 0
        ///   and the length is 1.
        private static func scalar(in bytes: UnsafeRawBufferPointer, at index: Int) -> (UInt32, length: Int) {
            let lead = bytes[index]
            let length: Int
            var value: UInt32
            switch lead {
            case 0xC2...0xDF: (length, value) = (2, UInt32(lead & 0x1F))
            case 0xE0...0xEF: (length, value) = (3, UInt32(lead & 0x0F))
            case 0xF0...0xF4: (length, value) = (4, UInt32(lead & 0x07))
            default: return (0, 1)
            }
            guard index + length <= bytes.count else { return (0, 1) }
            for place in index + 1..<index + length {
                guard bytes[place] & 0xC0 == 0x80 else { return (0, 1) }
                value = value << 6 | UInt32(bytes[place] & 0x3F)
            }
            return (value, length)
        }

        // MARK: Escapes of JSON

        private static func hasBackslash(_ word: UInt64) -> Bool {
            let difference = word ^ 0x5C5C_5C5C_5C5C_5C5C
            return (difference &- 0x0101_0101_0101_0101) & ~difference & 0x8080_8080_8080_8080 != 0
        }

        /// Reads the JSON escape at an index.
        ///
        /// - Returns: the scalar and the escape's length in bytes; the scalar is 0 unless the escape begins with `\u`
        ///   and is valid.
        private static func escape(in bytes: UnsafeRawBufferPointer, at index: Int) -> (UInt32, length: Int) {
            guard let unit = unit(in: bytes, at: index) else { return (0, 2) }
            guard (0xD800..<0xDC00).contains(unit) else { return (unit, 6) }
            guard let low = self.unit(in: bytes, at: index + 6), (0xDC00..<0xE000).contains(low) else { return (0, 6) }
            return (0x10000 + (unit - 0xD800) << 10 + (low - 0xDC00), 12)
        }

        private static func unit(in bytes: UnsafeRawBufferPointer, at index: Int) -> UInt32? {
            guard index + 6 <= bytes.count, bytes[index] == UInt8(ascii: "\\"), bytes[index + 1] == UInt8(ascii: "u")
            else { return nil }
            var value: UInt32 = 0
            for byte in bytes[index + 2..<index + 6] {
                guard let digit = Character(Unicode.Scalar(byte)).hexDigitValue else { return nil }
                value = value << 4 | UInt32(digit)
            }
            return value
        }
    }
}
