// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The content of a message: the canonical encoding of `hermes.v1.Content`, which the gateways' translations write and
/// read. The core passes on the bytes, limits their number and stores them, but does not interpret them.
///
/// All entries of a message share one content, and so also the parsed form (``reading(_:)``). So the content is parsed
/// only once, even if many devices and protocols get it.
///
/// State: immutable except for the parsed form, which is set once.
package struct MessageContent: Sendable, Hashable {
    private final class Shared: Sendable {
        let bytes: [UInt8]
        let kept = AtomicLazyReference<Kept>()

        init(bytes: [UInt8]) { self.bytes = bytes }
    }

    private final class Kept: Sendable {
        let reading: any ContentReading

        init(_ reading: any ContentReading) { self.reading = reading }
    }

    private let shared: Shared

    package init(bytes: [UInt8]) { shared = Shared(bytes: bytes) }

    package var bytes: [UInt8] { shared.bytes }

    /// Returns the bytes in the form that the gateways parsed.
    ///
    /// - Parameter read: parses the bytes; called if they are not parsed yet. If two callers need the bytes at the same
    ///   time, both may parse them, but all callers get the same result.
    package func reading(_ read: ([UInt8]) -> any ContentReading) -> any ContentReading {
        let kept = shared.kept.load() ?? shared.kept.storeIfNil(Kept(read(bytes)))
        return kept.reading
    }

    /// A content with the same bytes and without the parsed form, for holders that keep it for a long time.
    package var unread: MessageContent { MessageContent(bytes: bytes) }

    package static func == (left: Self, right: Self) -> Bool {
        left.shared === right.shared || left.bytes == right.bytes
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(bytes) }
}

/// The parsed form of a message's content. The class that implements this protocol is in the gateways
/// (`CanonicalReading`).
package protocol ContentReading: AnyObject, Sendable {}
