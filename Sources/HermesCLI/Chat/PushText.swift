// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Formats pushes as lines of text.
enum PushText {
    /// Returns the line of a push. If the push has neither a title nor a body, the line shows its type or its data
    /// instead.
    ///
    /// - Parameters:
    ///   - type: the type of the back end's own message; empty if there is no such message.
    ///   - data: the application's own JSON; empty if there is none.
    static func line(title: String, body: String, type: String, data: String) -> String {
        let parts = [title.isEmpty ? "" : "[\(title.printable)]", body.printable].filter { !$0.isEmpty }
        if !parts.isEmpty { return parts.joined(separator: " ") }
        if !type.isEmpty { return "[push of type \(type.printable)]" }
        return data.isEmpty ? "[push without text]" : "[push with data \(data.printable)]"
    }
}
