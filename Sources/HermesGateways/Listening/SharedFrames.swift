// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Large frames that the system has not taken yet, each counted once for all connections of a loop that share its
/// bytes. Pure.
struct SharedFrames {
    private struct Frame {
        var writes: Int
        let bytes: Int
    }

    /// By the place of the bytes in memory, which is theirs as long as one write of them is under way.
    private var frames: [UInt: Frame] = [:]
    /// The bytes of all frames, and the same for each write of each.
    private var bytes = 0
    private var writtenBytes = 0

    /// The part of what connections hold by these writes that is there: each of many that share a frame holds little.
    var part: Double { writtenBytes > 0 ? Double(bytes) / Double(writtenBytes) : 1 }

    /// A write begins.
    ///
    /// - Returns: the bytes that it adds to those of all frames.
    mutating func add(_ place: UInt, bytes: Int) -> Int {
        if let known = frames[place] {
            frames[place]?.writes += 1
            writtenBytes &+= known.bytes
            return 0
        }
        frames[place] = Frame(writes: 1, bytes: bytes)
        self.bytes &+= bytes
        writtenBytes &+= bytes
        return bytes
    }

    /// A write is over.
    ///
    /// - Returns: the bytes that are gone with it.
    mutating func remove(_ place: UInt) -> Int {
        guard var frame = frames.removeValue(forKey: place) else { return 0 }
        frame.writes -= 1
        writtenBytes &-= frame.bytes
        guard frame.writes > 0 else {
            bytes &-= frame.bytes
            return frame.bytes
        }
        frames[place] = frame
        return 0
    }
}
