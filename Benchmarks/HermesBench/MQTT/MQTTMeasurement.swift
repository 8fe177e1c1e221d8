// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import HermesWire
import NIOCore

/// One run of `hermes-bench mqtt`.
struct MQTTMeasurement: Sendable {
    let plan: MQTTBenchPlan
    let run: BenchRun<MQTTBenchRun>
    let transport: BenchTransport
    let probe: ServerProbe?
    let options: BenchOptions

    /// The time without progress, in seconds, after which missing messages count as lost.
    private static let patience: Double = 2

    // MARK: Shapes

    func flow() async throws {
        options.progress("connecting \(plan.subscribers) subscribers, \(plan.publishers) publishers")
        let channels = try await subscribers(keepsSessions: false) + publishers()
        try await ready(plan.subscribers + plan.publishers)
        let loop = transport.loop
        try await run.on { $0.start(on: loop) }
        options.progress("warming up for \(options.warmup) s, measuring for \(options.seconds) s")
        try await sleepWatching(options.warmup)
        let before = try await run.on { run in
            run.beginMeasuring()
            return run.counts
        }
        let start = ContinuousClock.now
        let use = try await ServerUse.during(probe) { try await sleepWatching(options.seconds) }
        let seconds = (ContinuousClock.now - start).inSeconds
        let after = try await run.on { run in
            run.stop()
            return run.counts
        }
        try await settle { $0.isDrained }
        var report = common("mqtt-\(plan.shape.rawValue)")
        report.add("publishers", "publishers", plan.publishers)
        report.add("subscribers", "subscribers", plan.subscribers)
        report.add("window", "unfinished messages of a publisher", plan.window)
        if let rate = plan.rate { report.add("rate_wanted", "wanted", rate, digits: 0, "messages/s") }
        report.add("seconds", "measured for", seconds, digits: 2, "s")
        let delivered = after.delivered - before.delivered
        report.add("deliveries", "deliveries", delivered)
        report.add("deliveries_per_second", "rate", Double(delivered) / seconds, digits: 0, "deliveries/s")
        let published = Double(after.published - before.published) / seconds
        report.add("published_per_second", "published", published, digits: 0, "messages/s")
        if plan.qos != .atMostOnce {
            let acknowledged = Double(after.acknowledged - before.acknowledged) / seconds
            report.add("acknowledged_per_second", "acknowledged", acknowledged, digits: 0, "messages/s")
        }
        let wanted = try await run.on { $0.sent * $0.plan.fan }
        try await finish(&report, wanted: wanted, latency: "latency", use, per: "delivery", count: delivered, channels)
    }

    func idle(_ count: Int) async throws {
        let memory = probe?.residentBytes()
        let start = ContinuousClock.now
        let channels = try await transport.connect(0..<count) { count in
            if count.isMultiple(of: 1000) { options.progress("\(count) connections") }
        } _: { [run] index in
            MQTTBenchHandler(run: run.bound.value, role: .idle(index))
        }
        try await ready(count)
        let took = (ContinuousClock.now - start).inSeconds
        options.progress("settling for \(options.warmup) s, measuring for \(options.seconds) s")
        try await Task.sleep(for: .seconds(options.warmup))
        let connected = probe?.residentBytes()
        let before = try await run.on { $0.counts.acknowledged }
        let use = try await ServerUse.during(probe) { try await Task.sleep(for: .seconds(options.seconds)) }
        let pings = try await run.on { $0.counts.acknowledged } - before
        var report = common("mqtt-conn")
        report.add("connections", "connections", count)
        report.add("connects_per_second", "connected at", Double(count) / took, digits: 0, "connections/s")
        report.add("keep_alive", "keep-alive", plan.keepAlive, "s")
        report.add("seconds", "measured for", options.seconds, digits: 2, "s")
        report.add("pings", "pings answered", pings)
        if let memory, let connected {
            let each = Double(connected - memory) / Double(count)
            report.add("server_bytes_per_connection", "server memory", each, digits: 0, "bytes per connection")
        }
        try await finish(&report, wanted: 0, latency: nil, use, per: "ping", count: pings, channels)
    }

    func churn(_ slots: Int) async throws {
        options.progress("\(slots) at once; warming up for \(options.warmup) s, measuring for \(options.seconds) s")
        let (seconds, warmup, measured) = (options.warmup + options.seconds, options.warmup, options.seconds)
        let end = ContinuousClock.now + .seconds(seconds)
        var report = common("mqtt-churn")
        var cycles = 0
        let use = try await withThrowingTaskGroup(of: ServerUse?.self) { group in
            for slot in 0..<slots {
                group.addTask { [run, transport, slots] in
                    var number = slot
                    while ContinuousClock.now < end {
                        let index = number
                        let channel = try await transport.connect(number: index) {
                            MQTTBenchHandler(run: run.bound.value, role: .churn(index))
                        }
                        try await channel.closeFuture.get()
                        number += slots
                        // Stop if the server has refused or dropped more than 100 connections.
                        if try await run.on({ $0.counts.refused + $0.counts.disconnected }) > 100 { break }
                    }
                    return nil
                }
            }
            group.addTask { [run, probe] in
                try await Task.sleep(for: .seconds(warmup))
                let before = try await run.on { run in
                    run.beginMeasuring()
                    return run.counts.cycles
                }
                let use = try await ServerUse.during(probe) { try await Task.sleep(for: .seconds(measured)) }
                try await run.on { run in
                    run.isMeasuring = false
                    run.cyclesMeasured = run.counts.cycles - before
                }
                return use
            }
            var use: ServerUse?
            for try await result in group { use = result ?? use }
            return use
        }
        cycles = try await run.on { $0.cyclesMeasured }
        report.add("slots", "at once", slots)
        report.add("seconds", "measured for", measured, digits: 2, "s")
        report.add("cycles", "cycles", cycles)
        report.add("cycles_per_second", "rate", Double(cycles) / measured, digits: 0, "cycles/s")
        try await finish(&report, wanted: 0, latency: "cycle", use, per: "cycle", count: cycles, [])
    }

    func offline() async throws {
        let wanted = plan.subscribers * plan.publishers * (plan.messages ?? 0)
        options.progress("\(plan.subscribers) sessions subscribe and go away")
        let first = try await subscribers(keepsSessions: true)
        try await ready(plan.subscribers)
        try await leave(first)
        let channels = try await publishers()
        try await ready(plan.subscribers + plan.publishers)
        let memory = probe?.residentBytes()
        options.progress("publishing \(wanted) messages to them")
        let loop = transport.loop
        var start = ContinuousClock.now
        let queueing = try await ServerUse.during(probe) {
            try await run.on { $0.start(on: loop) }
            try await settle { $0.isPublished }
        }
        let queueSeconds = (ContinuousClock.now - start).inSeconds
        let queued = probe?.residentBytes()
        options.progress("the sessions come back")
        let resumed = try await run.on { run in
            run.beginMeasuring()
            return run.counts.resumed
        }
        start = ContinuousClock.now
        var back: [any Channel] = []
        let draining = try await ServerUse.during(probe) {
            back = try await subscribers(keepsSessions: true)
            try await settle { $0.counts.delivered >= wanted }
        }
        let drainSeconds = (ContinuousClock.now - start).inSeconds
        var report = common("mqtt-offline")
        report.add("publishers", "publishers", plan.publishers)
        report.add("subscribers", "sessions", plan.subscribers)
        report.add("messages", "messages of each publisher", plan.messages ?? 0)
        report.add("sessions_resumed", "sessions resumed", try await run.on { $0.counts.resumed } - resumed)
        report.add("queued_per_second", "queued", Double(wanted) / queueSeconds, digits: 0, "messages/s")
        let delivered = try await run.on { $0.counts.delivered }
        report.add("drained_per_second", "drained", Double(delivered) / drainSeconds, digits: 0, "messages/s")
        if let memory, let queued {
            let each = Double(queued - memory) / Double(wanted)
            report.add("server_bytes_per_queued", "server memory per queued", each, digits: 1, "bytes")
        }
        queueing?.addShare(to: &report, per: "queued", count: wanted)
        // Leave no sessions on the server: reconnect once more with clean sessions, which ends the kept sessions.
        try await leave(back)
        let before = try await run.on { $0.ready }
        let last = try await subscribers(keepsSessions: false)
        _ = try await run.wait(seconds: 5) { $0.ready >= before + plan.subscribers }
        try await leave(last)
        try await finish(&report, wanted: wanted, latency: nil, draining, per: "drained", count: delivered, channels)
    }
}

// MARK: - Parts of the shapes
extension MQTTMeasurement {
    private func subscribers(keepsSessions: Bool) async throws -> [any Channel] {
        try await transport.connect(0..<plan.subscribers) { [run] index in
            MQTTBenchHandler(run: run.bound.value, role: .subscriber(index), keepsSession: keepsSessions)
        }
    }

    private func publishers() async throws -> [any Channel] {
        try await transport.connect(0..<plan.publishers) { [run] index in
            MQTTBenchHandler(run: run.bound.value, role: .publisher(index))
        }
    }

    /// Waits until this number of connections is ready. Throws an error after a failure, or if not all connections are
    /// ready within a minute.
    private func ready(_ count: Int) async throws {
        _ = try await run.wait(seconds: 60) { $0.ready >= count || !$0.firstFailure.isEmpty }
        let (ready, failure) = try await run.on { ($0.ready, $0.firstFailure) }
        guard ready < count else { return }
        let reason = failure.isEmpty ? "the server did not answer within a minute" : failure
        throw BenchFailure("\(ready) of \(count) connections are ready: \(reason)", exitCode: ExitCode(69))
    }

    /// Sends DISCONNECT on each channel, and waits until all channels are closed.
    private func leave(_ channels: [any Channel]) async throws {
        try await run.on { $0.isEnding = true }
        for channel in channels where channel.isActive {
            channel.writeAndFlush(ByteBuffer(bytes: [0xE0, 0]), promise: nil)
            channel.eventLoop.scheduleTask(in: .seconds(5)) { channel.close(promise: nil) }
        }
        for channel in channels { try? await channel.closeFuture.get() }
        try await run.on { $0.isEnding = false }
    }

    /// Sleeps. If nothing arrives for 400 ms during the sleep, the publishers stop waiting for lost messages.
    private func sleepWatching(_ seconds: Double) async throws {
        let end = ContinuousClock.now + .seconds(seconds)
        var last = -1
        var lastAt = ContinuousClock.now
        while ContinuousClock.now < end {
            try await Task.sleep(for: min(.milliseconds(50), end - ContinuousClock.now))
            let progress = try await run.on { $0.counts.delivered + $0.counts.acknowledged }
            if progress != last {
                (last, lastAt) = (progress, ContinuousClock.now)
            } else if ContinuousClock.now - lastAt > .milliseconds(400), plan.rate == nil {
                try await run.on { $0.writeOff() }
                lastAt = ContinuousClock.now
            }
        }
    }

    /// Waits until the condition is true, or until nothing has happened for the time of ``patience``.
    private func settle(until isDone: @escaping @Sendable (MQTTBenchRun) -> Bool) async throws {
        var last = -1
        while true {
            let progress = try await run.on { $0.counts.delivered + $0.counts.acknowledged + $0.counts.published }
            guard progress != last else { return }
            last = progress
            if try await run.wait(seconds: Self.patience, every: .milliseconds(5), until: isDone) { return }
        }
    }

    private func common(_ name: String) -> BenchReport {
        var report = BenchReport(name)
        report.add("protocol", "protocol", plan.version == .v5 ? "MQTT 5.0" : "MQTT 3.1.1")
        report.add("qos", "QoS", plan.qos.rawValue)
        report.add("bytes", "payload", plan.bytes, "bytes")
        return report
    }

    /// Adds the common results, prints the report, and throws exit code 1 if messages were lost or anything else was
    /// wrong.
    private func finish(
        _ report: inout BenchReport,
        wanted: Int,
        latency: String?,
        _ use: ServerUse?,
        per what: String,
        count: Int,
        _ channels: [any Channel]
    ) async throws {
        let (counts, failure, latencies) = try await run.on { run in
            run.isEnding = true
            return (run.counts, run.firstFailure, run.latencies)
        }
        for channel in channels { channel.close(promise: nil) }
        let lost = max(0, wanted - counts.delivered)
        report.add("lost", "lost", lost)
        report.add("duplicates", "duplicates", counts.duplicates)
        report.add("out_of_order", "out of order", counts.disorders)
        report.add("violations", "wrong answers", counts.violations)
        report.add("disconnected", "disconnected", counts.disconnected + counts.refused)
        if !failure.isEmpty { report.add("first_failure", "first failure", failure) }
        if let latency { report.add(latency, latency, latencies: latencies) }
        use?.add(to: &report, per: what, count: count)
        if let bytes = probe?.residentBytes() {
            report.add("server_resident_bytes", "server memory in all", bytes, "bytes")
        }
        report.print(asJSON: options.json)
        let isGood =
            lost == 0 && (counts.duplicates == 0 || plan.qos == .atLeastOnce) && counts.disorders == 0
            && counts.violations == 0 && counts.disconnected == 0 && counts.refused == 0
        if !isGood { throw ExitCode(1) }
    }
}

extension Duration {
    /// The duration as a number of seconds.
    var inSeconds: Double { Double(components.seconds) + Double(components.attoseconds) / 1e18 }
}
