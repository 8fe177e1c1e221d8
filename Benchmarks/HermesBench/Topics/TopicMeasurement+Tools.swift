// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesCore
import Synchronization

#if canImport(Glibc)
import Glibc
#endif

/// Simulated event loops. Their work runs on the calling thread when ``settle()`` is called.
final class ImmediateLoops {
    private final class Loop: Sendable {
        let work = Mutex<[@Sendable () -> Void]>([])
    }

    private let loops: [Loop]
    private let plane: TopicPlane

    init(_ count: Int) {
        let loops = (0..<max(1, count)).map { _ in Loop() }
        self.loops = loops
        plane = TopicPlane(
            loops: loops.map { loop in
                LoopHandle(execute: { work in loop.work.withLock { $0.append(work) } }, isCurrent: { true })
            }
        )
    }

    var first: TopicShard { plane.shard(0) }

    func settle() {
        var isIdle = false
        while !isIdle {
            isIdle = true
            for loop in loops {
                let work = loop.work.withLock { work in
                    defer { work = [] }
                    return work
                }
                if !work.isEmpty { isIdle = false }
                for item in work { item() }
            }
        }
    }
}

/// Topics of four levels, region/site/device/value, and filters for them with wildcards at every level.
struct FilterShape {
    private var random = SeededRandom(state: 42)

    private mutating func levels() -> [String] {
        [
            "region-\(Int.random(in: 0..<10, using: &random))",
            "site-\(Int.random(in: 0..<100, using: &random))",
            "device-\(Int.random(in: 0..<2_000, using: &random))",
            "value-\(Int.random(in: 0..<50, using: &random))",
        ]
    }

    mutating func topic() -> TopicName { TopicName(levels().joined(separator: "/")) ?? TopicName(room: .lobby) }

    /// Returns a filter of one of ten kinds. Four of the kinds have no wildcard; `wildcardsOnly` leaves out these four.
    mutating func filter(wildcardsOnly: Bool) -> TopicFilter {
        var levels = levels()
        switch Int.random(in: (wildcardsOnly ? 4 : 0)..<10, using: &random) {
        case 4: levels[0] = "+"
        case 5: levels[1] = "+"
        case 6: levels[2] = "+"
        case 7: levels[3] = "+"
        case 8: levels[3] = "#"
        case 9:
            levels[0] = "+"
            levels[3] = "+"
        default: break
        }
        return TopicFilter(levels.joined(separator: "/")) ?? TopicFilter(TopicName(room: .lobby))
    }
}

/// A generator that produces the same random numbers in every run.
struct SeededRandom: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var word = state
        word = (word ^ (word >> 30)) &* 0xbf58_476d_1ce4_e5b9
        word = (word ^ (word >> 27)) &* 0x94d0_49bb_1331_11eb
        return word ^ (word >> 31)
    }
}

/// Measures processor time.
struct Stopwatch {
    let nanoseconds: Double

    static func measure(_ body: () -> Void) -> Stopwatch {
        let began = now
        body()
        return Stopwatch(nanoseconds: now - began)
    }

    /// The processor time so far, in nanoseconds. `clock()` counts in microseconds (POSIX).
    private static var now: Double { Double(clock()) * 1000 }

    func per(_ count: Int, _ what: String) -> String {
        TopicReport.number(nanoseconds / Double(max(1, count))) + " ns per \(what)"
    }
}

/// The memory of the process.
struct MemoryUse {
    let resident: Int
    /// The number of bytes that malloc has given out; nil if it is unknown.
    let allocated: Int?

    static var now: MemoryUse { MemoryUse(resident: residentBytes, allocated: allocatedBytes) }

    #if canImport(Glibc)
    private typealias Info = @convention(c) (Int32, UnsafeMutablePointer<FILE>?) -> Int32

    /// The memory that malloc has got from the system, minus its free part, as glibc's `malloc_info` reports it.
    private static var allocatedBytes: Int? {
        guard let symbol = dlsym(dlopen(nil, RTLD_NOW), "malloc_info") else { return nil }
        var text: UnsafeMutablePointer<CChar>?
        var size = 0
        guard let stream = open_memstream(&text, &size) else { return nil }
        _ = unsafeBitCast(symbol, to: Info.self)(0, stream)
        fclose(stream)
        defer { free(text) }
        // For each kind, the last line has the sum over all arenas.
        var sums: [String: Int] = [:]
        for line in text.map({ String(cString: $0) })?.split(separator: "\n") ?? [] {
            let parts = line.split(separator: "\"")
            guard line.hasPrefix("<total") || line.hasPrefix("<system"), parts.count > 3 else { continue }
            sums[String(parts[1])] = Int(parts[parts.count - 2])
        }
        guard let system = sums["current"] else { return nil }
        return system - (sums["fast"] ?? 0) - (sums["rest"] ?? 0) + (sums["mmap"] ?? 0)
    }
    #else
    private static var allocatedBytes: Int? { nil }
    #endif

    private static var residentBytes: Int {
        let text = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)) ?? ""
        let fields = text.split(separator: " ")
        return (fields.count > 1 ? Int(fields[1]) ?? 0 : 0) * Int(sysconf(Int32(_SC_PAGESIZE)))
    }

    static func - (left: MemoryUse, right: MemoryUse) -> MemoryUse {
        MemoryUse(
            resident: left.resident - right.resident,
            allocated: left.allocated.map { $0 - (right.allocated ?? 0) }
        )
    }

    func per(_ count: Int, _ what: String) -> String {
        let resident = "\(resident / max(1, count)) bytes resident"
        guard let allocated else { return "\(resident) per \(what)" }
        return "\(resident), \(allocated / max(1, count)) by malloc, per \(what)"
    }
}

/// The number of this thread's allocations. It is known only if Tests/AllocationCounter is loaded before the C library.
enum AllocationCount {
    private typealias Counter = @convention(c) () -> UInt64

    private static let counter: Counter? = dlsym(dlopen(nil, RTLD_NOW), "hermes_allocation_count")
        .map { unsafeBitCast($0, to: Counter.self) }

    static var now: UInt64? { counter?() }
}

/// A report that consists of titles and of lines with a name and a figure.
struct TopicReport {
    private(set) var lines: [String] = []

    mutating func title(_ text: String) { lines.append(lines.isEmpty ? text : "\n" + text) }

    mutating func line(_ name: String, _ figure: String) {
        lines.append("  " + name + String(repeating: " ", count: max(1, 34 - name.count)) + figure)
    }

    static func number(_ value: Double) -> String { String(format: value < 100 ? "%.1f" : "%.0f", value) }

    static func allocations(_ count: UInt64?, _ operations: Int, _ what: String) -> String {
        guard let count else { return "not counted (see scripts/bench-topics)" }
        return String(format: "%.3f", Double(count) / Double(max(1, operations))) + " per \(what)"
    }
}
