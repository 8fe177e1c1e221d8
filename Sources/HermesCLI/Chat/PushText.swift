// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Writes pushes as lines for people.
enum PushText {
    /// Returns the line of a push. A push without title and body is described by what else it has.
    ///
    /// - Parameters:
    ///   - type: the type of the back end's own message; empty: none.
    ///   - data: the application's own JSON; empty: none.
    static func line(title: String, body: String, type: String, data: String) -> String {
        let parts = [title.isEmpty ? "" : "[\(title.printable)]", body.printable].filter { !$0.isEmpty }
        if !parts.isEmpty { return parts.joined(separator: " ") }
        if !type.isEmpty { return "[push of type \(type.printable)]" }
        return data.isEmpty ? "[push without text]" : "[push with data \(data.printable)]"
    }
}
