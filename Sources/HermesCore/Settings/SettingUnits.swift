// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Parses and formats the written form of sizes and durations.
package enum SettingUnits {
    private static let byteUnits: [(name: String, bytes: Int)] = [
        ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1),
    ]
    private static let timeUnits: [(name: String, milliseconds: Int)] = [
        ("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000), ("ms", 1),
    ]

    /// Parses a size such as `64 KiB`. A unit is required, except for 0.
    /// - Returns: nil for any other text, for negative numbers, and for numbers that are too large.
    package static func parse(bytes text: String) -> Int? {
        parse(text, units: byteUnits.map { ($0.name, $0.bytes) })
    }

    /// Parses a duration such as `10 s`. A unit is required, except for 0.
    /// - Returns: nil for any other text, for negative numbers, and for numbers that are too large.
    package static func parse(duration text: String) -> Duration? {
        guard let milliseconds = parse(text, units: timeUnits.map { ($0.name, $0.milliseconds) }) else { return nil }
        return .milliseconds(milliseconds)
    }

    /// Formats a size in the largest unit in which the size is a whole number.
    package static func format(bytes: Int) -> String {
        guard bytes != 0, let unit = byteUnits.first(where: { bytes % $0.bytes == 0 }) else { return "0 B" }
        return "\(bytes / unit.bytes) \(unit.name)"
    }

    /// Formats a duration in the largest unit in which the duration is a whole number. Fractions of a millisecond are
    /// cut off.
    package static func format(_ duration: Duration) -> String {
        let (seconds, attoseconds) = duration.components
        let milliseconds = seconds &* 1000 &+ attoseconds / 1_000_000_000_000_000
        guard milliseconds != 0, let unit = timeUnits.first(where: { milliseconds % Int64($0.milliseconds) == 0 })
        else { return "0 s" }
        return "\(milliseconds / Int64(unit.milliseconds)) \(unit.name)"
    }

    /// Formats a number with commas between thousands.
    static func grouped(_ number: Int) -> String {
        let digits = String(number.magnitude)
        var text = ""
        for (index, digit) in digits.enumerated() {
            if index > 0, (digits.count - index) % 3 == 0 { text.append(",") }
            text.append(digit)
        }
        return number < 0 ? "-" + text : text
    }

    private static func parse(_ text: String, units: [(String, Int)]) -> Int? {
        let digits = text.prefix { ("0"..."9").contains($0) }
        guard digits.count <= 15, let number = Int(digits) else { return nil }
        let unit = text.dropFirst(digits.count).drop { $0 == " " }
        if unit.isEmpty, number == 0 { return 0 }
        guard let (_, factor) = units.first(where: { $0.0 == unit }) else { return nil }
        let (product, overflow) = number.multipliedReportingOverflow(by: factor)
        return overflow ? nil : product
    }
}
