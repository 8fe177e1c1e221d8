// Hermes
// SPDX-License-Identifier: Apache-2.0

import CoreMetrics
import HermesServer
import Testing

@Suite struct MetricsTests {
    @Test func `counters gauges and histograms are written`() {
        let registry = MetricsRegistry()
        registry.makeCounter(label: "a_total", dimensions: [("gateway", "impb")]).increment(by: 2)
        registry.makeCounter(label: "a_total", dimensions: [("gateway", "impb")]).increment(by: 3)
        registry.makeMeter(label: "b.c", dimensions: []).set(1.5)
        let timer = registry.makeTimer(label: "t_seconds", dimensions: [])
        timer.recordNanoseconds(200_000)
        timer.recordNanoseconds(20_000_000_000)
        let text = registry.text()
        #expect(text.contains("# TYPE a_total counter\na_total{gateway=\"impb\"} 5\n"))
        #expect(text.contains("# TYPE b_c gauge\nb_c 1.5\n"))
        #expect(text.contains("t_seconds_bucket{le=\"0.0001\"} 0\n"))
        #expect(text.contains("t_seconds_bucket{le=\"0.00025\"} 1\n"))
        #expect(text.contains("t_seconds_bucket{le=\"10\"} 1\n"))
        #expect(text.contains("t_seconds_bucket{le=\"+Inf\"} 2\n"))
        #expect(text.contains("t_seconds_count 2\n"))
        #expect(text.contains("t_seconds_sum 20.0002\n"))
        #expect(text.contains("process_cpu_seconds_total "))
    }

    @Test func `known metrics have a help text`() {
        let registry = MetricsRegistry()
        registry.makeMeter(label: "hermes_ready", dimensions: []).set(1.0)
        registry.makeMeter(label: "of_an_application", dimensions: []).set(1.0)
        let text = registry.text()
        #expect(text.contains("# HELP hermes_ready 1 if the store accepts writes, otherwise 0.\n# TYPE hermes_ready"))
        #expect(text.contains("# HELP process_cpu_seconds_total "))
        #expect(!text.contains("HELP of_an_application"))
    }

    @Test func `labels are escaped`() {
        let registry = MetricsRegistry()
        registry.makeCounter(label: "x", dimensions: [("a b", "one\"two\\three\nfour")]).increment(by: 1)
        #expect(registry.text().contains("x{a_b=\"one\\\"two\\\\three\\nfour\"} 1\n"))
    }

    @Test func `the number of series is bounded`() {
        let registry = MetricsRegistry()
        for index in 0..<3000 { registry.makeCounter(label: "n", dimensions: [("i", "\(index)")]).increment(by: 1) }
        let lines = registry.text().split(separator: "\n").filter { $0.hasPrefix("n{") }
        #expect(lines.count == 1001)
        #expect(lines.contains("n{overflow=\"true\"} 2000"))
    }

    @Test func `a name keeps its kind`() {
        let registry = MetricsRegistry()
        registry.makeCounter(label: "k", dimensions: []).increment(by: 1)
        registry.makeMeter(label: "k", dimensions: [("a", "b")]).set(7.0)
        #expect(!registry.text().contains("k{a="))
    }
}
