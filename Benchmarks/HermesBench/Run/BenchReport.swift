// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The results of a benchmark, as readable text or as JSON.
struct BenchReport {
    private enum Value {
        case text(String)
        case number(Double, digits: Int)
    }

    private var lines: [(key: String, label: String, value: Value, unit: String)] = []

    init(_ benchmark: String) { add("benchmark", "benchmark", benchmark) }

    mutating func add(_ key: String, _ label: String, _ text: String) {
        lines.append((key, label, .text(text), ""))
    }

    mutating func add(_ key: String, _ label: String, _ number: some BinaryInteger, _ unit: String = "") {
        lines.append((key, label, .number(Double(number), digits: 0), unit))
    }

    mutating func add(_ key: String, _ label: String, _ number: Double, digits: Int, _ unit: String = "") {
        lines.append((key, label, .number(number, digits: digits), unit))
    }

    /// Adds percentiles and the maximum of the latencies, in microseconds.
    mutating func add(_ key: String, _ label: String, latencies: LatencyHistogram) {
        guard latencies.totalCount > 0 else { return }
        for (name, percentile) in [("p50", 50.0), ("p90", 90.0), ("p99", 99.0), ("p99_9", 99.9)] {
            let value = Double(latencies.valueAtPercentile(percentile)) / 1000
            add("\(key)_\(name)_us", "\(label) \(name.replacing("_", with: "."))", value, digits: 1, "us")
        }
        add("\(key)_max_us", "\(label) max", Double(latencies.max) / 1000, digits: 1, "us")
    }

    func print(asJSON: Bool) {
        Swift.print(asJSON ? json : text)
    }

    var text: String {
        let width = lines.map(\.label.count).max() ?? 0
        return lines.map { line in
            let label = line.label.padding(toLength: width, withPad: " ", startingAt: 0)
            let unit = line.unit.isEmpty ? "" : " \(line.unit)"
            return "\(label)  \(Self.format(line.value, grouped: true))\(unit)"
        }.joined(separator: "\n")
    }

    var json: String {
        let members = lines.map { line -> String in
            switch line.value {
            case .text(let text): "\(Self.quoted(line.key)):\(Self.quoted(text))"
            case .number: "\(Self.quoted(line.key)):\(Self.format(line.value, grouped: false))"
            }
        }
        return "{\(members.joined(separator: ","))}"
    }

    private static func format(_ value: Value, grouped: Bool) -> String {
        switch value {
        case .text(let text): return text
        case .number(let number, let digits):
            guard number.isFinite else { return grouped ? "-" : "null" }
            let plain = String(format: "%.\(digits)f", number)
            guard grouped else { return plain }
            let parts = plain.split(separator: ".")
            var whole = ""
            for (index, digit) in (parts.first ?? "").reversed().enumerated() {
                if index > 0, index % 3 == 0, digit != "-" { whole = "," + whole }
                whole = String(digit) + whole
            }
            return parts.count > 1 ? "\(whole).\(parts[1])" : whole
        }
    }

    private static func quoted(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\": result += "\\\(scalar)"
            case _ where scalar.value < 0x20: result += String(format: "\\u%04x", scalar.value)
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }
}

/// The server's processor time and memory over a period.
struct ServerUse {
    let cpuNanoseconds: UInt64
    let seconds: Double

    /// Measures while the body runs.
    ///
    /// - Returns: the use of the server; nil without a probe, or if the process cannot be read.
    static func during(
        _ probe: ServerProbe?,
        _ body: nonisolated(nonsending) () async throws -> Void
    ) async throws -> ServerUse? {
        let start = ContinuousClock.now
        let before = probe?.cpuTime()
        try await body()
        guard let before, let after = probe?.cpuTime() else { return nil }
        let time = ContinuousClock.now - start
        let seconds = Double(time.components.seconds) + Double(time.components.attoseconds) / 1e18
        return ServerUse(cpuNanoseconds: after.nanoseconds(since: before), seconds: seconds)
    }

    func add(to report: inout BenchReport, per what: String, count: Int) {
        let percent = Double(cpuNanoseconds) / seconds / 1e7
        report.add("server_cpu_percent", "server CPU", percent, digits: 1, "% of a core")
        addShare(to: &report, per: what, count: count)
    }

    /// Reports the processor time per item.
    func addShare(to report: inout BenchReport, per what: String, count: Int) {
        guard count > 0 else { return }
        let each = Double(cpuNanoseconds) / Double(count) / 1000
        report.add("server_cpu_us_per_\(what)", "server CPU per \(what)", each, digits: 3, "us")
    }
}
