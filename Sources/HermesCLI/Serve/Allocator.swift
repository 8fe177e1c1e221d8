// Hermes
// SPDX-License-Identifier: Apache-2.0

#if canImport(Glibc)
import Glibc
#endif

/// How the memory of the server's process is managed.
enum Allocator {
    /// Large blocks are given back to the system when they are freed.
    ///
    /// glibc takes blocks from 128 KiB on from the system, but raises that limit, up to 32 MiB, with each such block that
    /// is freed; then the 16 MiB that a password hash works in stay with every thread that ever hashed one. Limits that
    /// are set do not move (mallopt(3)).
    static func returnLargeBlocks() {
        #if canImport(Glibc)
        // Not in the Glibc module, and not in every C library: looked up. The numbers are malloc.h's.
        guard let symbol = dlsym(nil, "mallopt") else { return }
        let mallopt = unsafeBitCast(symbol, to: (@convention(c) (CInt, CInt) -> CInt).self)
        let (trimThreshold, mmapThreshold): (CInt, CInt) = (-1, -3)
        _ = mallopt(mmapThreshold, 4 << 20)
        _ = mallopt(trimThreshold, 4 << 20)
        #endif
    }
}
