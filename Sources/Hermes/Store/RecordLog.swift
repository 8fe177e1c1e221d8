// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The format of a file to which changes are appended.
///
///     file:    header, frames
///     header:  "HERMES" 0x02 LF, salt u64, CRC-32C of the salt u32
///     frame:   length of the body u32, CRC-32C of the salt and the body u32, body
///     body:    changes, all or none: 1 (put) or 2 (remove) u8, length of the key u8, key, and for a put
///              length of the value u32, value
///
/// Numbers are little-endian. The salt is random, so that nobody can send a message whose content is a valid frame. A
/// file of version 1 has the header "HERMES" 0x01 LF and no salt.
///
/// A process that is killed during a write leaves an incomplete frame at the end of the file. This frame is dropped. A
/// damaged frame is dropped, too. If a valid frame begins at the offset that the damaged frame's length gives, reading
/// continues there. Otherwise, reading continues at the next offset at which length, checksum and body match.
enum RecordLog {
    private static let magic: [UInt8] = [0x48, 0x45, 0x52, 0x4D, 0x45, 0x53, 0x02, 0x0A]
    private static let magicOfVersion1: [UInt8] = [0x48, 0x45, 0x52, 0x4D, 0x45, 0x53, 0x01, 0x0A]
    private static let headerBytes = 20
    /// The largest body, in bytes. Longer bodies are neither written nor read.
    static let maxBodyBytes = 8 * 1_048_576

    /// The contents of a file.
    struct Contents {
        var table = RecordTable()
        /// The salt of the checksums; nil in a file of version 1, and in a file without a complete header.
        var salt: UInt64?
        /// The end of the last valid frame; 0 if the file has no complete header.
        var end: Int
        /// The number of damaged frames.
        var damagedFrames = 0
    }

    /// Returns the largest size of a record in a log, in bytes.
    static func bytes(key: String, value: [UInt8]) -> Int { 8 + 2 + key.utf8.count + 4 + value.count }

    /// Encodes the header of a file. In a file of version 1, the salt is nil.
    static func header(_ salt: UInt64?) -> [UInt8] {
        guard let salt else { return magicOfVersion1 }
        let bytes = littleEndian(salt)
        return magic + bytes + littleEndian(checksum(bytes[...]))
    }

    /// Encodes changes as one frame of a file. In a file of version 1, the salt is nil.
    ///
    /// - Returns: nil if a key is empty or longer than 255 bytes, or if the frame would be too long.
    static func frame(_ changes: [LocalChange], salt: UInt64?) -> [UInt8]? {
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
        return littleEndian(UInt32(body.count)) + littleEndian(checksum(body[...], after: state(after: salt))) + body
    }

    /// Reads a file's bytes, even if parts of them are damaged.
    ///
    /// - Returns: nil if the file is not such a log.
    static func read(_ bytes: [UInt8]) -> Contents? {
        guard var contents = beginning(of: bytes) else { return nil }
        guard contents.end > 0 else { return contents }
        let frames = Frames(bytes: bytes, state: state(after: contents.salt))
        var effort = bytes.count &* maxEffort
        while contents.end < bytes.count {
            if let frame = frames.body(at: contents.end), frame.isWell, let changes = changes(bytes[frame.range]) {
                contents.table.apply(changes)
                contents.end = frame.range.upperBound
            } else {
                guard let next = frames.next(behind: contents.end, effort: &effort) else { break }
                contents.damagedFrames += 1
                contents.end = next
            }
        }
        return contents
    }

    /// Reads the header.
    ///
    /// - Returns: the contents before the first frame; nil if the file is not such a log, or if its header is damaged.
    private static func beginning(of bytes: [UInt8]) -> Contents? {
        if bytes.starts(with: magicOfVersion1) { return Contents(end: magicOfVersion1.count) }
        guard bytes.count >= headerBytes else {
            // The process was killed while it created the file.
            let isBeginning = [magic, magicOfVersion1].contains { $0.starts(with: bytes.prefix($0.count)) }
            return isBeginning ? Contents(end: 0) : nil
        }
        let salt = bytes[magic.count..<magic.count + 8].reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return bytes.starts(with: header(salt)) ? Contents(salt: salt, end: headerBytes) : nil
    }

    /// The limit on the work of all searches for a valid frame after damage, in multiples of the file's size.
    private static let maxEffort = 16

    /// The frames of a file.
    private struct Frames {
        let bytes: [UInt8]
        /// The state of the checksum after the salt.
        let state: UInt32

        /// Returns the offset of the next valid frame after a damaged frame; nil if there is none.
        func next(behind offset: Int, effort: inout Int) -> Int? {
            if let damaged = body(at: offset) {
                effort -= damaged.range.count
                let end = damaged.range.upperBound
                if let next = body(at: end), next.isWell, RecordLog.changes(bytes[next.range]) != nil { return end }
            }
            var candidate = offset + 1
            while bytes.count - candidate > 8, effort > 0 {
                effort -= 1
                defer { candidate += 1 }
                // The length and the first byte rule out most offsets without reading the whole body.
                guard let range = bodyRange(at: candidate), range.count >= 3 else { continue }
                guard (1...2).contains(bytes[range.lowerBound]), bytes[range.lowerBound + 1] > 0 else { continue }
                effort -= range.count
                guard let next = body(at: candidate), next.isWell, RecordLog.changes(bytes[range]) != nil
                else { continue }
                return candidate
            }
            return nil
        }

        func body(at offset: Int) -> (range: Range<Int>, isWell: Bool)? {
            guard let range = bodyRange(at: offset) else { return nil }
            let expected = RecordLog.number(bytes[offset + 4..<offset + 8])
            return (range, RecordLog.checksum(bytes[range], after: state) == expected)
        }

        /// Returns the position of the body of the frame at an offset.
        private func bodyRange(at offset: Int) -> Range<Int>? {
            guard bytes.count - offset > 8 else { return nil }
            guard let length = Int(exactly: RecordLog.number(bytes[offset..<offset + 4])), length > 0,
                length <= RecordLog.maxBodyBytes, bytes.count - offset - 8 >= length
            else { return nil }
            return offset + 8..<offset + 8 + length
        }
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
                guard let size = take(4, of: &rest), let value = take(Int(clamping: number(size)), of: &rest)
                else { return nil }
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

    private static func littleEndian<Number: FixedWidthInteger>(_ number: Number) -> [UInt8] {
        (0..<Number.bitWidth / 8).map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
    }

    private static func number(_ bytes: ArraySlice<UInt8>) -> UInt32 {
        bytes.reversed().reduce(0) { $0 << 8 | UInt32($1) }
    }

    /// CRC-32C (Castagnoli), reflected polynomial 0x82F63B78 (RFC 3720, appendix B.4).
    ///
    /// - Parameter state: the state of the checksum after the preceding bytes.
    static func checksum(_ bytes: ArraySlice<UInt8>, after state: UInt32 = .max) -> UInt32 {
        var crc = state
        for byte in bytes { crc = table[Int(UInt8(truncatingIfNeeded: crc) ^ byte)] ^ (crc >> 8) }
        return ~crc
    }

    /// Returns the state of the checksum after a salt. In a file of version 1, the salt is nil.
    private static func state(after salt: UInt64?) -> UInt32 {
        salt.map { ~checksum(littleEndian($0)[...]) } ?? .max
    }

    private static let table: [UInt32] = (0..<256).map { index in
        (0..<8).reduce(UInt32(index)) { crc, _ in crc & 1 == 1 ? 0x82F6_3B78 ^ (crc >> 1) : crc >> 1 }
    }
}
