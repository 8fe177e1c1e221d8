// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
package import Logging

/// The format of log lines.
package enum LogFormat: String, CaseIterable, Sendable {
    case logfmt
    case json
}

/// Writes one line per event to standard error: `time=… level=info msg="listening" gateway=impb port=6969`.
package struct LineLogHandler: LogHandler {
    package var metadataProvider: Logger.MetadataProvider?
    package var metadata: Logger.Metadata = [:]
    package var logLevel: Logger.Level
    private let format: LogFormat
    private let label: String
    private let tail: LogTail?
    private let write: @Sendable (String) -> Void

    /// - Parameters:
    ///   - level: events below it are left out.
    ///   - format: logfmt or JSON.
    ///   - label: the label of the logger; only the tail gets it.
    ///   - tail: also gets each line.
    ///   - write: gets one line with its line feed; nil for standard error.
    package init(
        level: Logger.Level,
        format: LogFormat,
        label: String = "hermes",
        tail: LogTail? = nil,
        write: (@Sendable (String) -> Void)? = nil
    ) {
        logLevel = level
        self.format = format
        self.label = label
        self.tail = tail
        self.write = write ?? Self.standardError
    }

    package subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    package func log(event: LogEvent) {
        var all = metadata
        if let provided = metadataProvider?.get() { all.merge(provided) { $1 } }
        if let own = event.metadata { all.merge(own) { $1 } }
        if let error = event.error { all["error"] = "\(error)" }
        let pairs = all.sorted { $0.key < $1.key }.map { (key: $0.key, value: $0.value.description) }
        let now = Date.now
        tail?.append(
            time: Int64(now.timeIntervalSince1970 * 1000),
            level: event.level,
            label: label,
            message: event.message.description,
            fields: pairs
        )
        let head = [
            ("time", now.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))),
            ("level", event.level.rawValue),
            ("msg", event.message.description),
        ]
        switch format {
        case .logfmt:
            write((head + pairs).map { "\(Self.key($0))=\(Self.logfmt($1))" }.joined(separator: " ") + "\n")
        case .json:
            write("{" + (head + pairs).map { "\(Self.json($0)):\(Self.json($1))" }.joined(separator: ",") + "}\n")
        }
    }

    /// Uses one write call per line, so that lines of several threads do not mix. A line that cannot be written (disk
    /// full, pipe closed) is lost; the server continues.
    private static func standardError(_ line: String) {
        try? FileHandle.standardError.write(contentsOf: Data(line.utf8))
    }

    private static func key(_ text: String) -> String {
        text.replacing(/[^A-Za-z0-9_.\-]/, with: "_")
    }

    private static func logfmt(_ text: String) -> String {
        let isPlain =
            !text.isEmpty
            && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "=") }
        return isPlain ? text : json(text)
    }

    /// Returns a JSON string. Control characters are escaped, so that no value can forge a line.
    private static func json(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": result += "\\\""
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            case "\r": result += "\\r"
            case "\t": result += "\\t"
            case _ where scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value) || scalar.value == 0x2028:
                let digits = String(scalar.value, radix: 16)
                result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }
}
