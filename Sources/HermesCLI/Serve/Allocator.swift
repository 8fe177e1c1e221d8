// Hermes
// SPDX-License-Identifier: Apache-2.0

#if canImport(Glibc)
import Glibc
#endif

/// The memory allocator of the server's process.
enum Allocator {
    /// Makes the allocator return large blocks to the system when they are freed.
    ///
    /// By default, glibc maps each block of at least 128 KiB separately, and returns it to the system when it is freed.
    /// But when such a block is freed, glibc raises this threshold, up to 32 MiB. Then the 16 MiB of a password hash
    /// would stay with every thread that has ever hashed a password. A threshold that is set here stays fixed
    /// (mallopt(3)).
    static func returnLargeBlocks() {
        #if canImport(Glibc)
        // mallopt is looked up at run time, because the Glibc module and some C libraries lack it. The parameter
        // numbers are those of malloc.h.
        guard let symbol = dlsym(nil, "mallopt") else { return }
        let mallopt = unsafeBitCast(symbol, to: (@convention(c) (CInt, CInt) -> CInt).self)
        let (trimThreshold, mmapThreshold): (CInt, CInt) = (-1, -3)
        _ = mallopt(mmapThreshold, 4 << 20)
        _ = mallopt(trimThreshold, 4 << 20)
        #endif
    }
}
