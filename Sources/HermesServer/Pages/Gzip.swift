// Hermes
// SPDX-License-Identifier: Apache-2.0

#if Pages
import CZlib

/// Packs and unpacks the format of gzip (RFC 1952) with the system's zlib. It is for data of this program, not for data
/// from strangers.
enum Gzip {
    /// The data is cut, damaged or too long, or other data follows it.
    struct Malformed: Error {}

    /// The longest content in bytes, packed or not.
    static let maxBytes = 16 << 20
    /// The largest window (32 KiB); adding 16 selects the format of gzip.
    private static let windowBits: CInt = 15 + 16
    /// zlib's own default.
    private static let memoryLevel: CInt = 8
    private static let structureBytes = CInt(MemoryLayout<z_stream>.size)

    /// Packs content as tightly as zlib can. This is slow, so call it only once for the same content.
    ///
    /// - Returns: nil if the content is too long.
    static func packed(_ content: some Sequence<UInt8>) -> [UInt8]? {
        var content = Array(content)
        guard content.count <= maxBytes else { return nil }
        var stream = z_stream()
        // zlib remembers the address of the structure.
        return withUnsafeMutablePointer(to: &stream) { stream in
            let strategy = Z_DEFAULT_STRATEGY
            let version = ZLIB_VERSION
            guard
                deflateInit2_(
                    stream,
                    Z_BEST_COMPRESSION,
                    Z_DEFLATED,
                    windowBits,
                    memoryLevel,
                    strategy,
                    version,
                    structureBytes
                ) == Z_OK
            else { return nil }
            defer { deflateEnd(stream) }
            let bound = Int(deflateBound(stream, UInt(content.count)))
            var isWhole = false
            let packed = run(stream, over: &content, capacity: bound) {
                isWhole = deflate($0, Z_FINISH) == Z_STREAM_END
            }
            return isWhole ? packed : nil
        }
    }

    /// Unpacks data that was packed by one call to ``packed(_:)`` or by `scripts/embed-web`.
    static func unpacked(_ data: [UInt8]) throws(Malformed) -> [UInt8] {
        var data = data
        // The last four bytes are the length of the content.
        guard data.count >= 18 else { throw Malformed() }
        let length = data.suffix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
        guard max(data.count, length) <= maxBytes else { throw Malformed() }
        var stream = z_stream()
        let content: [UInt8]? = withUnsafeMutablePointer(to: &stream) { stream in
            guard inflateInit2_(stream, windowBits, ZLIB_VERSION, structureBytes) == Z_OK else { return nil }
            defer { inflateEnd(stream) }
            var isWhole = false
            // One more byte of capacity shows whether the content is longer than its stated length.
            let content = run(stream, over: &data, capacity: length + 1) { stream in
                isWhole = inflate(stream, Z_FINISH) == Z_STREAM_END && stream.pointee.avail_in == 0
            }
            return isWhole ? content : nil
        }
        guard let content else { throw Malformed() }
        return content
    }

    /// Lets zlib read `input` in one step.
    ///
    /// - Parameter capacity: the largest number of bytes that zlib writes.
    /// - Returns: the bytes that zlib wrote.
    private static func run(
        _ stream: UnsafeMutablePointer<z_stream>,
        over input: inout [UInt8],
        capacity: Int,
        _ step: (UnsafeMutablePointer<z_stream>) -> Void
    ) -> [UInt8] {
        input.withUnsafeMutableBufferPointer { input in
            [UInt8](unsafeUninitializedCapacity: capacity) { output, count in
                stream.pointee.next_in = input.baseAddress
                stream.pointee.avail_in = UInt32(clamping: input.count)
                stream.pointee.next_out = output.baseAddress
                stream.pointee.avail_out = UInt32(clamping: output.count)
                step(stream)
                count = output.count - Int(stream.pointee.avail_out)
            }
        }
    }
}
#endif
