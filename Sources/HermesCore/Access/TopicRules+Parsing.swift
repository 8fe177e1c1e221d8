// Hermes
// SPDX-License-Identifier: Apache-2.0

extension TopicRules {
    /// An error in a rule file, and its line.
    package struct SyntaxError: Error, Sendable, Hashable, CustomStringConvertible {
        /// The number of the line. The first line has the number 1.
        package let line: Int
        /// The reason as a text for people.
        package let reason: String

        package init(line: Int, reason: String) {
            self.line = line
            self.reason = reason
        }

        package var description: String { "line \(line): \(reason)" }
    }

    /// The maximum size of a rule file, in bytes.
    package static let maxBytes = 1 << 20
    /// The maximum number of rules in a file. The number is limited because each connection keeps the rules that apply
    /// to it.
    package static let maxRules = 10_000

    /// Parses a rule file: one rule per line; empty lines and lines that begin with `#` are skipped.
    ///
    /// A rule is `allow|deny [all|anonymous|user NAME|client ID|key NAME] read|write|readwrite FILTER`; names and
    /// filters with spaces are in double quotes.
    package init(parsing text: String) throws(SyntaxError) {
        guard text.utf8.count <= Self.maxBytes else {
            throw SyntaxError(line: 1, reason: "the file is larger than \(Self.maxBytes) bytes")
        }
        var rules: [Rule] = []
        let scalars = text.unicodeScalars.drop { $0 == "\u{FEFF}" }
        for (index, line) in scalars.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            do throws(Problem) {
                guard let rule = try Self.rule(Substring(line)) else { continue }
                guard rules.count < Self.maxRules else { throw Problem("more than \(Self.maxRules) rules") }
                rules.append(rule)
            } catch {
                throw SyntaxError(line: index + 1, reason: error.reason)
            }
        }
        self.init(rules: rules)
    }

    private struct Problem: Error {
        let reason: String
        init(_ reason: String) { self.reason = reason }
    }

    private static func rule(_ line: Substring) throws(Problem) -> Rule? {
        var words = Words(rest: line)
        guard let permission = try words.next(), !permission.hasPrefix("#") else { return nil }
        let isDenial: Bool
        switch permission {
        case "allow": isDenial = false
        case "deny": isDenial = true
        default: throw Problem("a rule begins with allow or deny, not with \"\(shown(permission))\"")
        }
        var word = try words.next()
        var subject = Subject.all
        switch word {
        case "all":
            word = try words.next()
        case "anonymous":
            subject = .anonymous
            word = try words.next()
        case "user":
            guard let name = try words.next() else { throw Problem("user needs a name") }
            do throws(HermesError) { subject = .user(try NickName(name).key) } catch { throw Problem(error.message) }
            word = try words.next()
        case "client":
            guard let id = try words.next(), !id.isEmpty else { throw Problem("client needs a client id") }
            subject = .client(id)
            word = try words.next()
        case "key":
            guard let name = try words.next(), !name.isEmpty else { throw Problem("key needs the name of a key") }
            subject = .key(name)
            word = try words.next()
        default: break
        }
        let actions: Set<TopicAction>
        switch word {
        case "read": actions = [.subscribe]
        case "write": actions = [.publish]
        case "readwrite": actions = [.publish, .subscribe]
        case let other:
            throw Problem("read, write or readwrite is expected, not \"\(shown(other ?? "the end of the line"))\"")
        }
        guard let filter = try words.next() else { throw Problem("the topic filter is missing") }
        if let extra = try words.next() {
            throw Problem("\"\(shown(extra))\" is unexpected; put names and filters with spaces in double quotes")
        }
        do throws(TopicPattern.Refusal) {
            return Rule(isDenial: isDenial, subject: subject, actions: actions, pattern: try TopicPattern(filter))
        } catch {
            throw Problem(error.reason)
        }
    }

    private static func shown(_ word: String) -> String {
        String(
            String.UnicodeScalarView(
                word.unicodeScalars.prefix(40).filter { $0.properties.generalCategory != .control }
            )
        )
    }

    /// Splits a line at spaces and tabs; a word that begins with a double quote ends at the next double quote.
    private struct Words {
        var rest: Substring

        mutating func next() throws(Problem) -> String? {
            var scalars = rest.unicodeScalars.drop(while: Self.isSpace)
            guard let first = scalars.first else {
                rest = ""
                return nil
            }
            guard first == "\"" else {
                let word = scalars.prefix { !Self.isSpace($0) }
                rest = Substring(scalars[word.endIndex...])
                return String(word)
            }
            scalars.removeFirst()
            guard let end = scalars.firstIndex(of: "\"") else { throw Problem("the closing double quote is missing") }
            let after = scalars[scalars.index(after: end)...]
            guard after.first.map(Self.isSpace) ?? true else { throw Problem("a space must follow a double quote") }
            rest = Substring(after)
            return String(scalars[..<end])
        }

        private static func isSpace(_ scalar: Unicode.Scalar) -> Bool {
            scalar == " " || scalar == "\t" || scalar == "\r"
        }
    }
}
