// Hermes
// SPDX-License-Identifier: Apache-2.0

extension RandomAccessCollection where Index == Int {
    /// Returns the elements in order, in slices of `count` elements; the last slice may be shorter.
    ///
    /// - Parameter count: the number of elements in a slice; at least 1.
    func slices(of count: Int) -> some Sequence<SubSequence> {
        stride(from: startIndex, to: endIndex, by: count).lazy.map { start in
            self[start..<Swift.min(start + count, endIndex)]
        }
    }
}
