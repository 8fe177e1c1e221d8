// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The format of a file to which changes are appended.
///
///     file:   "HERMES" 0x01 LF, frames
///     frame:  length of the body u32, CRC-32C of the body u32, body
///     body:   changes, all or none: 1 (put) or 2 (remove) u8, length of the key u8, key, and of a put
///             length of the value u32, value
///
/// Numbers are little-endian. A process that is killed during a write leaves an incomplete frame at the end, which is
/// dropped. A damaged frame is dropped too. Reading continues at the offset that the damaged frame's length gives, if a
/// valid frame begins there. Otherwise it continues at the next offset at which length, checksum and body match.
enum RecordLog {
    static let header: [UInt8] = [0x48, 0x45, 0x52, 0x4D, 0x45, 0x53, 0x01, 0x0A]
    /// The largest body, in bytes; longer ones are neither written nor read.
    static let maxBodyBytes = 8 * 1_048_576

    /// The contents of a file.
    struct Contents {
        var table = RecordTable()
        /// The end of the last valid frame.
        var end: Int
        /// The number of damaged frames.
        var damagedFrames = 0
    }

    /// Returns the largest size of a record in a log, in bytes.
    static func bytes(key: String, value: [UInt8]) -> Int { 8 + 2 + key.utf8.count + 4 + value.count }

    /// Encodes changes as one frame.
    ///
    /// - Returns: nil if a key is empty or longer than 255 bytes, or the frame would be too long.
    static func frame(_ changes: [LocalChange]) -> [UInt8]? {
        var body: [UInt8] = []
        for change in changes {
            let key = Array(change.key.utf8)
            guard let length = UInt8(exactly: key.count), length > 0 else { return nil }
            guard body.count + key.count + (change.value?.count ?? 0) + 6 <= maxBodyBytes else { return nil }
            body.append(change.value == nil ? 2 : 1)
            body.append(length)
            body += key
            guard let value = change.value else { continue }
            body += littleEndian(UInt32(value.count))
            body += value
        }
        guard !body.isEmpty else { return nil }
        return littleEndian(UInt32(body.count)) + littleEndian(checksum(body[...])) + body
    }

    /// Reads a file's bytes, even if parts of them are damaged.
    ///
    /// - Returns: nil if the file is not such a log.
    static func read(_ bytes: [UInt8]) -> Contents? {
        guard bytes.count >= header.count else {
            // The process was killed while it created the file.
            return header.starts(with: bytes) ? Contents(end: 0) : nil
        }
        guard bytes.starts(with: header) else { return nil }
        var contents = Contents(end: header.count)
        var effort = bytes.count &* maxEffort
        while contents.end < bytes.count {
            if let frame = body(at: contents.end, of: bytes), frame.isWell, let changes = changes(bytes[frame.range]) {
                contents.table.apply(changes)
                contents.end = frame.range.upperBound
            } else {
                guard let next = nextFrame(behind: contents.end, of: bytes, effort: &effort) else { break }
                contents.damagedFrames += 1
                contents.end = next
            }
        }
        return contents
    }

    /// The limit on the work of all searches for a valid frame after damage, in multiples of the file's size.
    private static let maxEffort = 16

    /// Returns the offset of the next valid frame after a damaged one; nil if there is none.
    private static func nextFrame(behind offset: Int, of bytes: [UInt8], effort: inout Int) -> Int? {
        if let damaged = body(at: offset, of: bytes) {
            effort -= damaged.range.count
            let end = damaged.range.upperBound
            if let next = body(at: end, of: bytes), next.isWell, changes(bytes[next.range]) != nil { return end }
        }
        var candidate = offset + 1
        while bytes.count - candidate > 8, effort > 0 {
            effort -= 1
            defer { candidate += 1 }
            // The length and the first byte rule out most offsets without reading the whole body.
            guard let range = bodyRange(at: candidate, of: bytes), range.count >= 3 else { continue }
            guard (1...2).contains(bytes[range.lowerBound]), bytes[range.lowerBound + 1] > 0 else { continue }
            effort -= range.count
            if let next = body(at: candidate, of: bytes), next.isWell, changes(bytes[range]) != nil { return candidate }
        }
        return nil
    }

    private static func body(at offset: Int, of bytes: [UInt8]) -> (range: Range<Int>, isWell: Bool)? {
        guard let range = bodyRange(at: offset, of: bytes) else { return nil }
        return (range, checksum(bytes[range]) == number(bytes[offset + 4..<offset + 8]))
    }

    /// Returns the position of the body of the frame at an offset.
    private static func bodyRange(at offset: Int, of bytes: [UInt8]) -> Range<Int>? {
        guard bytes.count - offset > 8 else { return nil }
        let length = Int(number(bytes[offset..<offset + 4]))
        guard length > 0, length <= maxBodyBytes, bytes.count - offset - 8 >= length else { return nil }
        return offset + 8..<offset + 8 + length
    }

    private static func changes(_ body: ArraySlice<UInt8>) -> [LocalChange]? {
        var rest = body
        var changes: [LocalChange] = []
        while let operation = rest.popFirst() {
            guard let length = rest.popFirst(), let keyBytes = take(Int(length), of: &rest),
                let key = String(validating: keyBytes, as: UTF8.self), !key.isEmpty
            else { return nil }
            switch operation {
            case 1:
                guard let size = take(4, of: &rest), let value = take(Int(number(size)), of: &rest) else { return nil }
                changes.append(LocalChange(key: key, value: Array(value)))
            case 2:
                changes.append(LocalChange(key: key, value: nil))
            default:
                return nil
            }
        }
        return changes
    }

    private static func take(_ count: Int, of rest: inout ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        guard rest.count >= count else { return nil }
        defer { rest = rest.dropFirst(count) }
        return rest.prefix(count)
    }

    private static func littleEndian(_ number: UInt32) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
    }

    private static func number(_ bytes: ArraySlice<UInt8>) -> UInt32 {
        bytes.reversed().reduce(0) { $0 << 8 | UInt32($1) }
    }

    /// CRC-32C (Castagnoli), reflected polynomial 0x82F63B78 (RFC 3720, appendix B.4).
    static func checksum(_ bytes: ArraySlice<UInt8>) -> UInt32 {
        var crc = UInt32.max
        for byte in bytes { crc = table[Int(UInt8(truncatingIfNeeded: crc) ^ byte)] ^ (crc >> 8) }
        return ~crc
    }

    private static let table: [UInt32] = (0..<256).map { index in
        (0..<8).reduce(UInt32(index)) { crc, _ in crc & 1 == 1 ? 0x82F6_3B78 ^ (crc >> 1) : crc >> 1 }
    }
}
