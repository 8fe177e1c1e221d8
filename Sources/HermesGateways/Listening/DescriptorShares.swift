// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The parts of the process's descriptors: for the server itself, for the HTTP port and for the gateways. Together,
/// the parts never exceed the number of descriptors. So clients cannot use up the descriptors of the store, of a
/// backup or of the console.
package struct DescriptorShares: Sendable, Hashable {
    /// The descriptors for the console and for the server's own files.
    package let own: Int
    /// The limits of the HTTP port.
    package let http: ConnectionCounter.HTTPShares
    /// The largest limit on gateway connections; at least 1.
    package let gateways: Int

    /// The descriptors that the server itself gets, if there are enough. It uses them for the sockets of its
    /// listeners, the files of the store, a backup and the command line, and it uses three for each event loop. In
    /// measurements with two event loops, the server used 35 descriptors at the start, and up to 20 more for reads
    /// and a backup.
    private static let ownFew = 96
    /// The largest number of descriptors for the connections of the console and for the server's own files.
    private static let ownMany = 2_048 + ConnectionCounter.HTTPShares.full.reserve + 128

    /// - Parameter files: the number of descriptors that the process may have.
    package init(of files: Int) {
        let files = max(0, files)
        own = min(Self.ownMany, max(files / 3, min(files / 2, Self.ownFew)))
        let left = files - own
        http = .fitting(left / 5 * 2)
        let shared = left - http.reserve
        // A fifth for HTTP is a quarter of the other four fifths.
        gateways = max(1, shared - max(http.floor, min(10_000, shared / 5)))
    }

    /// The limits of the console, which has a part of the server's own descriptors.
    package var console: ConnectionCounter.HTTPShares { .fitting(own / 4) }

    /// The parts of the descriptors that this process may have now.
    package static var present: DescriptorShares {
        DescriptorShares(of: DescriptorLimit.current().map { Int(clamping: $0.soft) } ?? .max)
    }
}
