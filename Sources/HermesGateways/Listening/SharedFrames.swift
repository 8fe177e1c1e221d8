// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Large frames that the operating system has not taken yet. Each frame is counted once for all connections of a loop
/// that share its bytes. This type does no I/O.
struct SharedFrames {
    private struct Frame {
        var writes: Int
        let bytes: Int
    }

    /// The frames, by the addresses of their bytes. While a write of a frame is under way, no other frame can have its
    /// address.
    private var frames: [UInt: Frame] = [:]
    /// The size of all frames together, in bytes.
    private var bytes = 0
    /// The size of all writes together, in bytes. A frame counts once for each of its writes.
    private var writtenBytes = 0

    /// The part of the written bytes that really occupies memory. If many connections share a frame, each of them is
    /// charged for only a small part of the frame.
    var part: Double { writtenBytes > 0 ? Double(bytes) / Double(writtenBytes) : 1 }

    /// Counts the beginning of a write.
    ///
    /// - Returns: the number of bytes by which the write increases the sum for all frames.
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

    /// Counts the end of a write.
    ///
    /// - Returns: the number of bytes by which the write reduces the sum for all frames.
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
