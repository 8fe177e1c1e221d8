// Hermes
// SPDX-License-Identifier: Apache-2.0

#if canImport(Glibc)
import Glibc
#endif

/// The memory allocator of the server's process.
enum Allocator {
    /// Returns freed large blocks to the system.
    ///
    /// glibc gets blocks of 128 KiB and more from the system, but raises that limit with each such block that is freed,
    /// up to 32 MiB. Then the 16 MiB of a password hash would stay with every thread that ever hashed one. A fixed
    /// limit does not move (mallopt(3)).
    static func returnLargeBlocks() {
        #if canImport(Glibc)
        // Looked up at run time, because the Glibc module and some C libraries lack it. The numbers are malloc.h's.
        guard let symbol = dlsym(nil, "mallopt") else { return }
        let mallopt = unsafeBitCast(symbol, to: (@convention(c) (CInt, CInt) -> CInt).self)
        let (trimThreshold, mmapThreshold): (CInt, CInt) = (-1, -3)
        _ = mallopt(mmapThreshold, 4 << 20)
        _ = mallopt(trimThreshold, 4 << 20)
        #endif
    }
}
