// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Work on many items. In each turn of an event loop, a slice of the items is handled. This type does no I/O.
struct SlicedWork {
    private let count: Int
    private var done = 0
    /// Does the work for one slice. It gets the indices of the slice.
    private let body: (Range<Int>) -> Void

    init(_ count: Int, _ body: @escaping (Range<Int>) -> Void) {
        self.count = count
        self.body = body
    }

    var isDone: Bool { done >= count }

    /// Does the next slice.
    ///
    /// - Returns: the number of items in the slice.
    @discardableResult
    mutating func step(atMost size: Int) -> Int {
        let slice = done..<min(done + max(1, size), count)
        done = slice.upperBound
        if !slice.isEmpty { body(slice) }
        return slice.count
    }
}
