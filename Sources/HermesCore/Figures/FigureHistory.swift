// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The values of figures (metrics) over time. The history has all values of the last hour, and the mean and the maximum
/// of each half hour of the last 30 days. Does no I/O; the number of figures determines the size.
package struct FigureHistory: Sendable, Hashable {
    /// The interval of a row of the last hour, in milliseconds.
    package static let interval: Int64 = 10_000
    package static let thinInterval: Int64 = 1_800_000
    static let rows = 360
    static let thinRows = 1_440
    package static let maxFigures = 96
    package static let maxNameBytes = 64

    package let names: [String]
    package private(set) var recent: FigureRing
    package private(set) var means: FigureRing
    package private(set) var maxima: FigureRing
    /// For each figure, the number of values in the mean of the newest half hour.
    private(set) var counts: [Float]

    /// - Parameter names: the names of at most ``maxFigures`` figures; further names are left out.
    package init(names: [String]) {
        self.names = Array(names.filter { $0.utf8.count <= Self.maxNameBytes }.prefix(Self.maxFigures))
        let columns = self.names.count
        recent = FigureRing(interval: Self.interval, rows: Self.rows, columns: columns)
        means = FigureRing(interval: Self.thinInterval, rows: Self.thinRows, columns: columns)
        maxima = means
        counts = Array(repeating: 0, count: columns)
    }

    /// Adds the values of an interval.
    ///
    /// - Parameter values: the values, in the order of ``names``. A value is nil if it is unknown.
    package mutating func add(_ values: [Float?], at time: Timestamp) {
        guard values.count == names.count else { return }
        recent.set(values.map { $0 ?? .nan }, number: recent.number(at: time))
        let number = means.number(at: time)
        if means.newest != number {
            // If the clock was set back, the half hour may already have values. The number of these values is not
            // known, so the half hour counts as complete.
            counts = names.indices.map { column in
                means.value(column, number: number) == nil ? 0 : Float(Self.thinInterval / Self.interval)
            }
        }
        var mean: [Float] = []
        var maximum: [Float] = []
        for (column, value) in values.enumerated() {
            let before = means.value(column, number: number)
            guard let value, value.isFinite else {
                mean.append(before ?? .nan)
                maximum.append(maxima.value(column, number: number) ?? .nan)
                continue
            }
            counts[column] += 1
            mean.append(before.map { $0 + (value - $0) / counts[column] } ?? value)
            maximum.append(max(maxima.value(column, number: number) ?? value, value))
        }
        means.set(mean, number: number)
        maxima.set(maximum, number: number)
    }

    /// Returns the history with other figures. Figures that both histories have keep their values.
    package func renamed(_ names: [String]) -> FigureHistory {
        var other = FigureHistory(names: names)
        guard other.names != self.names else { return self }
        let columns = other.names.map { self.names.firstIndex(of: $0) }
        func copied(_ ring: FigureRing) -> FigureRing {
            var copy = FigureRing(interval: ring.interval, rows: ring.rows, columns: columns.count)
            guard let newest = ring.newest else { return copy }
            for number in max(0, newest - Int64(ring.rows) + 1)...newest {
                copy.set(
                    columns.map { column in column.flatMap { ring.value($0, number: number) } ?? .nan },
                    number: number
                )
            }
            return copy
        }
        other.recent = copied(recent)
        other.means = copied(means)
        other.maxima = copied(maxima)
        other.counts = columns.map { $0.map { counts[$0] } ?? 0 }
        return other
    }
}

// MARK: As bytes

extension FigureHistory {
    /// The beginning of the file: "HFG" and the version of the format.
    private static let mark: [UInt8] = [0x48, 0x46, 0x47, 1]

    /// The history, encoded for a file.
    package var bytes: [UInt8] {
        var bytes = Self.mark
        bytes.append(UInt8(names.count))
        for name in names {
            bytes.append(UInt8(name.utf8.count))
            bytes += Array(name.utf8)
        }
        for count in counts { Self.append(UInt64(count.bitPattern), 4, to: &bytes) }
        for ring in [recent, means, maxima] {
            Self.append(UInt64(bitPattern: ring.newest ?? -1), 8, to: &bytes)
            for value in ring.values { Self.append(UInt64(value.bitPattern), 4, to: &bytes) }
        }
        return bytes
    }

    /// The maximum number of ``bytes``.
    package static let maxBytes =
        5 + maxFigures * (1 + maxNameBytes + 4) + 3 * 8 + maxFigures * 4 * (rows + 2 * thinRows)

    /// - Returns: nil if the bytes do not encode a history.
    package init?(bytes: [UInt8]) {
        var rest = bytes[...]
        guard bytes.count <= Self.maxBytes, rest.starts(with: Self.mark) else { return nil }
        rest = rest.dropFirst(Self.mark.count)
        guard let count = rest.popFirst(), count <= Self.maxFigures else { return nil }
        var names: [String] = []
        for _ in 0..<count {
            guard let length = rest.popFirst(), rest.count >= Int(length), length <= Self.maxNameBytes else {
                return nil
            }
            names.append(String(decoding: rest.prefix(Int(length)), as: UTF8.self))
            rest = rest.dropFirst(Int(length))
        }
        self.init(names: names)
        guard self.names == names else { return nil }
        let columns = names.count
        guard rest.count == columns * 4 * (1 + Self.rows + 2 * Self.thinRows) + 3 * 8 else { return nil }
        func float() -> Float { Float(bitPattern: UInt32(truncatingIfNeeded: Self.take(4, from: &rest))) }
        counts = (0..<columns).map { _ in
            let count = float()
            return count.isFinite && count >= 0 ? count : 0
        }
        func ring(_ empty: FigureRing) -> FigureRing? {
            let newest = Int64(bitPattern: Self.take(8, from: &rest))
            let values = (0..<empty.rows * columns).map { _ in
                let value = float()
                return value.isFinite ? value : .nan
            }
            // The row's time must be in the range of ``Timestamp``, so that no arithmetic on it overflows.
            guard newest >= -1, newest <= Int64.max / empty.interval - 1 else { return nil }
            return FigureRing(
                interval: empty.interval,
                rows: empty.rows,
                columns: columns,
                newest: newest < 0 ? nil : newest,
                values: values
            )
        }
        guard let recent = ring(recent), let means = ring(means), let maxima = ring(maxima) else { return nil }
        self.recent = recent
        self.means = means
        self.maxima = maxima
    }

    private static func append(_ word: UInt64, _ count: Int, to bytes: inout [UInt8]) {
        for index in 0..<count { bytes.append(UInt8(truncatingIfNeeded: word >> UInt64(8 * index))) }
    }

    /// - Precondition: there are at least `count` bytes.
    private static func take(_ count: Int, from bytes: inout ArraySlice<UInt8>) -> UInt64 {
        var word: UInt64 = 0
        for (index, byte) in bytes.prefix(count).enumerated() { word |= UInt64(byte) << UInt64(8 * index) }
        bytes = bytes.dropFirst(count)
        return word
    }
}
