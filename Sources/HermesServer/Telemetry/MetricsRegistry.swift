// Hermes
// SPDX-License-Identifier: Apache-2.0

package import CoreMetrics
import Synchronization

/// Keeps all metrics of the process and writes them as Prometheus text (exposition format 0.0.4).
///
/// Recording is one atomic operation; the `Mutex` is taken only to find or create a series, and to read all series.
/// Series are never removed, so their number is bounded: for each name, sets of labels beyond the first 1,000 are
/// counted under `overflow="true"`.
package final class MetricsRegistry: MetricsFactory, Sendable {
    /// The registry that `/metrics` shows.
    package static let shared = MetricsRegistry()
    /// Installs `shared` as the backend of swift-metrics; once per process, on first use.
    package static let installed: Void = MetricsSystem.bootstrap(shared)

    static let maxSeriesPerName = 1000

    enum Series {
        case counter(CounterSeries)
        case floatingPointCounter(FloatingPointCounterSeries)
        case gauge(GaugeSeries)
        case histogram(HistogramSeries)

        var kind: String {
            switch self {
            case .counter, .floatingPointCounter: "counter"
            case .gauge: "gauge"
            case .histogram: "histogram"
            }
        }
    }

    private struct Family {
        var kind: String
        /// The series by their labels as they are written, such as `gateway="impb",reason="idle"`.
        var series: [String: Series] = [:]
    }

    private let families = Mutex<[String: Family]>([:])

    package init() {}

    package func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        let series = find(label, dimensions) { .counter(CounterSeries()) }
        guard case .counter(let counter) = series else { return CounterSeries() }
        return counter
    }

    package func makeFloatingPointCounter(
        label: String,
        dimensions: [(String, String)]
    ) -> any FloatingPointCounterHandler {
        let series = find(label, dimensions) { .floatingPointCounter(FloatingPointCounterSeries()) }
        guard case .floatingPointCounter(let counter) = series else { return FloatingPointCounterSeries() }
        return counter
    }

    package func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
        gauge(label, dimensions)
    }

    package func makeRecorder(
        label: String,
        dimensions: [(String, String)],
        aggregate: Bool
    ) -> any RecorderHandler {
        guard aggregate else { return gauge(label, dimensions) }
        return histogram(label, dimensions, bounds: HistogramSeries.countBounds)
    }

    package func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        histogram(label, dimensions, bounds: HistogramSeries.timeBounds)
    }

    package func destroyCounter(_ handler: any CounterHandler) {}

    package func destroyFloatingPointCounter(_ handler: any FloatingPointCounterHandler) {}

    package func destroyMeter(_ handler: any MeterHandler) {}

    package func destroyRecorder(_ handler: any RecorderHandler) {}

    package func destroyTimer(_ handler: any TimerHandler) {}

    private func gauge(_ label: String, _ dimensions: [(String, String)]) -> GaugeSeries {
        let series = find(label, dimensions) { .gauge(GaugeSeries()) }
        guard case .gauge(let gauge) = series else { return GaugeSeries() }
        return gauge
    }

    func histogram(
        _ label: String,
        _ dimensions: [(String, String)] = [],
        bounds: [Double]
    ) -> HistogramSeries {
        let series = find(label, dimensions) { .histogram(HistogramSeries(bounds: bounds)) }
        guard case .histogram(let histogram) = series else { return HistogramSeries(bounds: bounds) }
        return histogram
    }

    /// Returns the series of a name and labels, and creates it if necessary. If the name already has series of another
    /// kind, the returned series is not shown.
    private func find(_ label: String, _ dimensions: [(String, String)], _ make: () -> Series) -> Series {
        let name = MetricsText.name(label)
        let labels = MetricsText.labels(dimensions)
        let new = make()
        return families.withLock { families in
            var family = families[name] ?? Family(kind: new.kind)
            guard family.kind == new.kind else { return new }
            var key = labels
            if family.series[key] == nil, family.series.count >= Self.maxSeriesPerName { key = "overflow=\"true\"" }
            if let series = family.series[key] { return series }
            family.series[key] = new
            families[name] = family
            return new
        }
    }

    /// Returns the values of all counters and gauges, by name and written labels.
    func snapshot() -> [String: [String: Double]] {
        let families = families.withLock { $0 }
        return families.mapValues { family in
            family.series.compactMapValues { series in
                switch series {
                case .counter(let counter): Double(counter.value)
                case .floatingPointCounter(let counter): counter.value
                case .gauge(let gauge): gauge.value
                case .histogram: nil
                }
            }
        }
    }

    /// Returns all metrics, and those of the process, as Prometheus text.
    package func text() -> String {
        let families = families.withLock { $0 }
        var text = MetricsText()
        for (name, family) in families.sorted(by: { $0.key < $1.key }) {
            text.begin(name, kind: family.kind)
            for (labels, series) in family.series.sorted(by: { $0.key < $1.key }) {
                switch series {
                case .counter(let counter): text.add(name, labels, String(counter.value))
                case .floatingPointCounter(let counter): text.add(name, labels, MetricsText.number(counter.value))
                case .gauge(let gauge): text.add(name, labels, MetricsText.number(gauge.value))
                case .histogram(let histogram): text.add(name, labels, histogram)
                }
            }
        }
        ProcessMetrics.read().write(to: &text)
        return text.lines
    }
}
