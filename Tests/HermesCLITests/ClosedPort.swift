// Hermes
// SPDX-License-Identifier: Apache-2.0

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// A TCP port of this machine that refuses connections.
enum ClosedPort {
    private struct Failed: Error { let number: Int32 }

    /// Runs a body with a closed port. A socket that does not listen holds the port, so that no other test gets it.
    static func with(_ body: (Int) async throws -> Void) async throws {
        #if canImport(Glibc)
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        #else
        let descriptor = socket(AF_INET, SOCK_STREAM, 0)
        #endif
        guard descriptor >= 0 else { throw Failed(number: errno) }
        defer { close(descriptor) }
        try await body(try bound(descriptor))
    }

    /// Binds a socket to a port that the system chooses, and returns the port.
    private static func bound(_ descriptor: Int32) throws -> Int {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let result = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { place in
                bind(descriptor, place, size) == 0 ? getsockname(descriptor, place, &size) : -1
            }
        }
        guard result == 0 else { throw Failed(number: errno) }
        return Int(UInt16(bigEndian: address.sin_port))
    }
}
