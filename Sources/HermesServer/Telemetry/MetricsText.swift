// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Writes the Prometheus text format.
struct MetricsText {
    private(set) var lines = ""

    /// Writes the lines with the help text and the type of a metric, before its first sample.
    mutating func begin(_ name: String, kind: String) {
        if let help = MetricHelp.text(of: name) { lines += "# HELP \(name) \(help)\n" }
        lines += "# TYPE \(name) \(kind)\n"
    }

    mutating func add(_ name: String, _ labels: String, _ value: String) {
        lines += labels.isEmpty ? "\(name) \(value)\n" : "\(name){\(labels)} \(value)\n"
    }

    mutating func add(_ name: String, _ labels: String, _ histogram: HistogramSeries) {
        let separator = labels.isEmpty ? "" : ","
        var total: Int64 = 0
        for (index, count) in histogram.counts.enumerated() {
            total += count
            let bound = index < histogram.bounds.count ? Self.number(histogram.bounds[index]) : "+Inf"
            add("\(name)_bucket", "\(labels)\(separator)le=\"\(bound)\"", String(total))
        }
        add("\(name)_sum", labels, Self.number(histogram.sum))
        add("\(name)_count", labels, String(total))
    }

    /// Returns the name. Underscores replace the characters that Prometheus does not allow.
    static func name(_ label: String) -> String {
        let text = String(
            label.unicodeScalars.map { scalar in
                switch scalar {
                case "a"..."z", "A"..."Z", "0"..."9", "_", ":": Character(scalar)
                default: "_"
                }
            }
        )
        guard let first = text.first else { return "_" }
        return first.isNumber ? "_" + text : text
    }

    /// Returns the labels ordered by name, with their values escaped.
    static func labels(_ dimensions: [(String, String)]) -> String {
        dimensions.sorted { $0.0 < $1.0 }
            .map { "\(name($0.0).replacing(":", with: "_"))=\"\(escaped($0.1))\"" }
            .joined(separator: ",")
    }

    static func number(_ value: Double) -> String {
        if value.isInfinite { return value < 0 ? "-Inf" : "+Inf" }
        if value.isNaN { return "NaN" }
        if let whole = Int64(exactly: value) { return String(whole) }
        return String(value)
    }

    private static func escaped(_ value: String) -> String {
        var text = ""
        for scalar in value.unicodeScalars {
            switch scalar {
            case "\\": text += "\\\\"
            case "\"": text += "\\\""
            case "\n": text += "\\n"
            default: text.unicodeScalars.append(scalar)
            }
        }
        return text
    }
}
