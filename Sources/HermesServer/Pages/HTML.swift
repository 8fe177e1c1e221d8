// Hermes
// SPDX-License-Identifier: Apache-2.0

#if Pages
/// Writes HTML: text is escaped, tags are not.
struct HTML {
    private(set) var source: String

    /// Returns a page without scripts, in the style of the home page.
    static func page(title: String, _ body: (inout HTML) -> Void) -> String {
        var html = HTML(
            source: """
                <!doctype html>
                <html lang="en">
                <meta charset="utf-8">
                <meta name="viewport" content="width=device-width, initial-scale=1">
                <title>\(escaped(title))</title>
                <link rel="icon" href="/home/icon.svg">
                <link rel="stylesheet" href="/home/home.css">
                <main>

                """
        )
        body(&html)
        html.source += "</main>\n</html>\n"
        return html.source
    }

    /// - Parameters:
    ///   - text: the text, which is escaped.
    ///   - attributes: the attributes, which are written as they are.
    mutating func element(_ name: String, _ text: String, with attributes: String = "") {
        source += "<\(name)\(attributes.isEmpty ? "" : " ")\(attributes)>\(Self.escaped(text))</\(name)>\n"
    }

    /// Writes an element that contains others.
    mutating func element(_ name: String, with attributes: String = "", _ content: (inout HTML) -> Void) {
        source += "<\(name)\(attributes.isEmpty ? "" : " ")\(attributes)>\n"
        content(&self)
        source += "</\(name)>\n"
    }

    /// Writes commands that the reader can copy. One click selects them all, and the keyboard can scroll them.
    mutating func commands(_ lines: [String]) { element("pre", lines.joined(separator: "\n"), with: "tabindex=\"0\"") }

    static func escaped(_ text: String) -> String {
        var escaped = ""
        for character in text.unicodeScalars {
            switch character {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            case "\"": escaped += "&quot;"
            case "'": escaped += "&#39;"
            default: escaped.unicodeScalars.append(character)
            }
        }
        return escaped
    }
}
#endif
