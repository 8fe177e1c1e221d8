// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import HermesServer

/// The command `hermes trace`.
struct TraceCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "trace",
        abstract:
            "Show the steps of a message and the time of each: accepted, committed, delivered, acknowledged, pushed.",
        discussion: """
            Asks the running server, which remembers the last 10,000 messages and pushes. For a message with many \
            recipients, it remembers 16 inboxes.

            Examples:
              hermes trace 01K2Y5QZ8V3T7N4M6R9W0XABCD
              hermes trace my-client-id-7 --json
            """
    )

    @Argument(help: "The message's id, or the client id that its sender gave it.")
    var id: String

    @Flag(help: "Print JSON.")
    var json = false

    @OptionGroup var data: DataOptions

    func run() async throws {
        guard case .traces(let found) = try await Administrator(data).ask(.trace(id: id)) else { return }
        if json { return try CommandOutput.print(ViewFormat.json(found)) }
        guard !found.isEmpty else {
            throw Report.failure(
                "no message with this id is among the last 10,000 messages and pushes that the server remembers"
            )
        }
        for trace in found { try CommandOutput.print(ViewFormat.text(trace)) }
    }
}

/// Formats the output of `hermes trace`, `hermes stats` and the commands that list something.
enum ViewFormat {
    static func json(_ value: some Encodable) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        return escaped(String(decoding: try encoder.encode(value), as: UTF8.self))
    }

    /// Returns JSON with its control characters escaped, so that they do not control the terminal. The line ends that
    /// the encoder has added stay. The encoder has escaped all other line ends.
    private static func escaped(_ json: String) -> String {
        var result = ""
        for scalar in json.unicodeScalars {
            if scalar != "\n", scalar.properties.isControl {
                for unit in String(scalar).utf16 { result += String(format: "\\u%04x", unit) }
            } else {
                result.unicodeScalars.append(scalar)
            }
        }
        return result
    }

    static func text(_ trace: ControlTrace) -> String {
        var head = "\(trace.id)"
        if let conversation = trace.conversation { head += "  \(conversation)" } else { head += "  push" }
        if let clientID = trace.clientID { head += "  client id \(printable(clientID))" }
        let rows = trace.steps.map { step in
            let place = [step.user.map { "#\($0)" }, step.device].compactMap(\.self).joined(separator: " ")
            return [milliseconds(step.afterMicroseconds), step.step, place, printable(step.detail)]
        }
        let time = trace.steps.first.map { moment($0.time) } ?? ""
        return "\(head)\n\(time)\n\(table(rows, rightAligned: [0]))\n"
    }

    /// Returns a table with two spaces between its columns.
    static func table(_ rows: [[String]], rightAligned: Set<Int>) -> String {
        let columns = rows.map(\.count).max() ?? 0
        let widths = (0..<columns).map { column in
            rows.compactMap { $0.count > column ? $0[column].count : nil }.max() ?? 0
        }
        return rows.map { row in
            var line = ""
            for (column, text) in row.enumerated() {
                let space = String(repeating: " ", count: widths[column] - text.count)
                line += (column > 0 ? "  " : "") + (rightAligned.contains(column) ? space + text : text + space)
            }
            return String(line.reversed().drop { $0 == " " }.reversed())
        }.joined(separator: "\n")
    }

    static func milliseconds(_ microseconds: Int64) -> String {
        let text = String(abs(microseconds) % 1_000)
        let fraction = String(repeating: "0", count: 3 - text.count) + text
        return "\(microseconds < 0 ? "-" : "+")\(abs(microseconds) / 1_000).\(fraction) ms"
    }

    static func number(_ value: Double?) -> String {
        guard let value else { return "-" }
        if value >= 100 || value == value.rounded() { return String(Int64(value.rounded())) }
        return String((value * 100).rounded() / 100)
    }

    static func moment(_ milliseconds: Int64) -> String {
        Date(timeIntervalSince1970: Double(milliseconds) / 1000)
            .formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
    }

    /// Returns a line with tabs between its columns. Each column is made ``printable(_:)``.
    static func line(_ columns: [String]) -> String { columns.map(printable).joined(separator: "\t") }

    /// Returns a text with each control character replaced by "?". Other people choose client ids, names and reasons,
    /// which must not control the terminal.
    static func printable(_ text: String) -> String {
        String(String.UnicodeScalarView(text.unicodeScalars.map { $0.properties.isControl ? "?" : $0 }))
    }
}

extension Unicode.Scalar.Properties {
    fileprivate var isControl: Bool {
        switch generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse: true
        default: false
        }
    }
}
