// Hermes
// SPDX-License-Identifier: Apache-2.0

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// The time at which a file was created. Nobody can set it, unlike the other times of a file.
enum FileBirth {
    /// - Returns: nanoseconds since 1970; nil if the file cannot be read, or if its file system does not record the
    ///   time.
    static func time(of path: String) -> Int64? {
        #if canImport(Darwin)
        var file = stat()
        guard stat(path, &file) == 0 else { return nil }
        return nanoseconds(Int64(file.st_birthtimespec.tv_sec), UInt32(clamping: file.st_birthtimespec.tv_nsec))
        #else
        guard let statx else { return nil }
        return withUnsafeTemporaryAllocation(byteCount: structureBytes, alignment: 8) { buffer in
            guard statx(AT_FDCWD, path, 0, birthMask, buffer.baseAddress) == 0,
                buffer.loadUnaligned(as: UInt32.self) & birthMask != 0
            else { return nil }
            return nanoseconds(
                buffer.loadUnaligned(fromByteOffset: birthOffset, as: Int64.self),
                buffer.loadUnaligned(fromByteOffset: birthOffset + 8, as: UInt32.self)
            )
        }
        #endif
    }

    private static func nanoseconds(_ seconds: Int64, _ rest: UInt32) -> Int64? {
        let (product, overflows) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        return overflows ? nil : product.addingReportingOverflow(Int64(rest)).partialValue
    }

    #if !canImport(Darwin)
    private typealias Statx =
        @convention(c) (Int32, UnsafePointer<CChar>, Int32, UInt32, UnsafeMutableRawPointer?) -> Int32

    /// The C library's `statx` (Linux 4.11), which its headers do not show to Swift.
    private static let statx: Statx? = dlsym(nil, "statx").map { unsafeBitCast($0, to: Statx.self) }
    /// `STATX_BTIME`.
    private static let birthMask: UInt32 = 0x800
    /// The size of `struct statx`, in bytes.
    private static let structureBytes = 256
    /// The offset of `stx_btime` in `struct statx`, in bytes. The field has the seconds in 64 bits, then the
    /// nanoseconds in 32 bits.
    private static let birthOffset = 80
    #endif
}
