// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The history as the bytes of a file.
extension DeliveryHistory {
    /// The beginning of the file: "HDH" and the version of the format.
    private static let mark: [UInt8] = [0x48, 0x44, 0x48, 1]
    private static let maxRowBytes = 8 + 1 + maxGroups * (1 + 4 * ReportRing.Row.columns)

    /// The maximum number of ``bytes``.
    package static let maxBytes =
        mark.count + 2 + maxGroups * (2 + ClientReport.maxVersionBytes + ClientReport.maxLabelBytes) + 4
        + (emptyRecent.length + emptyThin.length) * maxRowBytes

    package var bytes: [UInt8] {
        var bytes = Self.mark
        bytes.append(UInt8(ReportRing.Row.columns))
        bytes.append(UInt8(groups.count))
        for group in groups {
            for name in [group.appVersion, group.network] {
                bytes.append(UInt8(name.utf8.count))
                bytes += Array(name.utf8)
            }
        }
        for ring in [recent, thin] {
            Self.append(UInt64(ring.rows.count), 2, to: &bytes)
            for row in ring.rows {
                Self.append(UInt64(bitPattern: row.number), 8, to: &bytes)
                bytes.append(UInt8(row.groups.count))
                bytes += row.groups
                for count in row.counts { Self.append(UInt64(count), 4, to: &bytes) }
            }
        }
        return bytes
    }

    /// Reads a history. The file may come from an older version of the server, which had fewer figures.
    ///
    /// - Returns: nil if the bytes do not encode a history.
    package init?(bytes: [UInt8]) {
        guard bytes.count <= Self.maxBytes, bytes.starts(with: Self.mark) else { return nil }
        var reader = Reader(rest: bytes.dropFirst(Self.mark.count))
        guard let columns = reader.number(1).map({ Int($0) }), (1...ReportRing.Row.columns).contains(columns),
            let count = reader.number(1)
        else { return nil }
        var groups: [Group] = []
        for _ in 0..<count {
            guard let version = reader.name(atMost: ClientReport.maxVersionBytes),
                let network = reader.name(atMost: ClientReport.maxLabelBytes)
            else { return nil }
            groups.append(Group(appVersion: version, network: network))
        }
        guard let recent = reader.ring(Self.emptyRecent, columns: columns),
            let thin = reader.ring(Self.emptyThin, columns: columns), reader.rest.isEmpty
        else { return nil }
        self.init(groups: groups, recent: recent, thin: thin)
    }

    private static func append(_ word: UInt64, _ count: Int, to bytes: inout [UInt8]) {
        for index in 0..<count { bytes.append(UInt8(truncatingIfNeeded: word >> (8 * UInt64(index)))) }
    }

    /// Parses bytes that may be malformed.
    private struct Reader {
        var rest: ArraySlice<UInt8>

        mutating func bytes(_ count: Int) -> ArraySlice<UInt8>? {
            guard rest.count >= count else { return nil }
            defer { rest = rest.dropFirst(count) }
            return rest.prefix(count)
        }

        mutating func number(_ count: Int) -> UInt64? {
            bytes(count).map { $0.reversed().reduce(0) { $0 << 8 | UInt64($1) } }
        }

        mutating func name(atMost most: Int) -> String? {
            guard let count = number(1), let text = bytes(Int(count)) else { return nil }
            return try? ClientReport.name(String(decoding: text, as: UTF8.self), atMost: most, "name")
        }

        /// - Parameter columns: the number of figures in the file. The counts of figures that the file does not contain
        ///   are 0.
        mutating func ring(_ empty: ReportRing, columns: Int) -> ReportRing? {
            guard let count = number(2), count <= empty.length else { return nil }
            var rows: [ReportRing.Row] = []
            for _ in 0..<count {
                guard let place = number(8), let size = number(1), let groups = bytes(Int(size)),
                    let words = bytes(Int(size) * 4 * columns)
                else { return nil }
                var counts: [UInt32] = []
                for group in 0..<Int(size) {
                    for column in 0..<columns {
                        let start = words.startIndex + 4 * (group * columns + column)
                        counts.append(words[start..<start + 4].reversed().reduce(0) { $0 << 8 | UInt32($1) })
                    }
                    counts += repeatElement(0, count: ReportRing.Row.columns - columns)
                }
                guard
                    let row = ReportRing.Row(
                        number: Int64(bitPattern: place),
                        groups: Array(groups),
                        counts: counts
                    )
                else { return nil }
                rows.append(row)
            }
            return ReportRing(interval: empty.interval, length: empty.length, rows: rows)
        }
    }
}
