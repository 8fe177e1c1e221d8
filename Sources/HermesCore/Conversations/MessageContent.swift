// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The content of a message. Opaque to the core, which passes, limits and stores it: the canonical encoding of
/// `hermes.v1.Content`, written and read by the gateways' translations.
///
/// All entries of a message share one content, and with it the ``reading(_:)``: so it is parsed once, however many get
/// it and over which protocols.
///
/// State: immutable, but for the reading, which is set once.
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

    /// Returns the gateways' reading of the bytes.
    ///
    /// - Parameter read: called if nobody has read the bytes yet. Two callers at the same time may both run theirs; all
    ///   callers get the same result.
    package func reading(_ read: ([UInt8]) -> any ContentReading) -> any ContentReading {
        let kept = shared.kept.load() ?? shared.kept.storeIfNil(Kept(read(bytes)))
        return kept.reading
    }

    /// The same bytes without a reading, for holders that keep them for long.
    package var unread: MessageContent { MessageContent(bytes: bytes) }

    package static func == (left: Self, right: Self) -> Bool {
        left.shared === right.shared || left.bytes == right.bytes
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(bytes) }
}

/// The gateways' reading of a content, made once; a class of theirs.
package protocol ContentReading: AnyObject, Sendable {}
