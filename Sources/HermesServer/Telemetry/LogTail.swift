// Hermes
// SPDX-License-Identifier: Apache-2.0

package import Logging
import Synchronization

/// The last lines of the log, for the console. They are kept in memory only, and their number and size are limited.
/// Thread-safe.
///
/// State: one `Mutex`, taken once per line.
package final class LogTail: Sendable {
    package struct Line: Sendable, Hashable {
        /// The number of the line. Numbers ascend without gaps.
        package let number: Int64
        /// In milliseconds since 1970.
        package let time: Int64
        package let level: Logger.Level
        /// The listener that the line is about; the label of the logger if the line names no listener.
        package let label: String
        package let message: String
        /// The metadata of the line: `key=value`, separated by blanks.
        package let fields: String

        fileprivate var bytes: Int { 128 + label.utf8.count + message.utf8.count + fields.utf8.count }
    }

    private struct State {
        var lines: [Line] = []
        /// The number of lines at the beginning of `lines` that are dropped but not removed yet.
        var gone = 0
        var bytes = 0
        var last: Int64 = 0
    }

    package static let maxLines = 2_000
    package static let maxBytes = 1 << 20
    /// The largest size of one line, in bytes; longer lines are cut.
    static let maxLineBytes = 4_096
    /// Parts of keys. If a field's key contains one of them, the field is shown without its value.
    private static let secretWords = ["password", "secret", "token", "authorization", "cookie", "credential"]

    private let state = Mutex(State())

    package init() {}

    /// Adds a line.
    ///
    /// - Parameters:
    ///   - time: in milliseconds since 1970.
    ///   - fields: the fields of the line, without its message.
    package func append(
        time: Int64,
        level: Logger.Level,
        label: String,
        message: String,
        fields: [(key: String, value: String)]
    ) {
        let label = fields.first { $0.key == "gateway" }?.value ?? label
        let text = fields.map { key, value in
            let isSecret = Self.secretWords.contains { key.lowercased().contains($0) }
            return "\(key)=\(isSecret ? "…" : value)"
        }.joined(separator: " ")
        let message = Self.cut(message, to: Self.maxLineBytes)
        let shown = Self.cut(text, to: Self.maxLineBytes - message.utf8.count)
        state.withLock { state in
            state.last += 1
            let line = Line(
                number: state.last,
                time: time,
                level: level,
                label: Self.cut(label, to: 64),
                message: message,
                fields: shown
            )
            state.lines.append(line)
            state.bytes += line.bytes
            while state.lines.count - state.gone > Self.maxLines || state.bytes > Self.maxBytes {
                state.bytes -= state.lines[state.gone].bytes
                state.gone += 1
            }
            // Dropped lines are removed only now and then, because the removal moves all other lines.
            guard state.gone > Self.maxLines / 4 else { return }
            state.lines.removeFirst(state.gone)
            state.gone = 0
        }
    }

    /// Returns the newest matching lines, the oldest of them first.
    ///
    /// - Parameters:
    ///   - number: only lines after this one; nil for all lines.
    ///   - level: only lines of at least this level.
    ///   - label: only lines with exactly this label; nil for all labels.
    ///   - text: only lines that contain this text, ignoring case; empty for all lines.
    package func lines(
        after number: Int64? = nil,
        atLeast level: Logger.Level = .trace,
        label: String? = nil,
        containing text: String = "",
        limit: Int
    ) -> [Line] {
        let all = state.withLock { state in state.lines[state.gone...] }
        let wanted = text.lowercased()
        var found: [Line] = []
        for line in all.reversed() {
            if let number, line.number <= number { break }
            guard line.level >= level, label == nil || line.label == label else { continue }
            if !wanted.isEmpty {
                let isFound = [line.message, line.fields].contains { $0.lowercased().contains(wanted) }
                guard isFound else { continue }
            }
            found.append(line)
            if found.count >= limit { break }
        }
        return found.reversed()
    }

    /// The number of the newest line; 0 if there is none.
    package var last: Int64 { state.withLock { $0.last } }

    private static func cut(_ text: String, to bytes: Int) -> String {
        guard text.utf8.count > bytes else { return text }
        return String(decoding: text.utf8.prefix(max(0, bytes)), as: UTF8.self) + "…"
    }
}
