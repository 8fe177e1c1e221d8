// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A topic filter of a rule. In the filter, `%u` stands for the client's user name, `%i` for the number (uid) of the
/// client's account, and `%c` for the client id.
package struct TopicPattern: Sendable, Hashable {
    enum Piece: Sendable, Hashable {
        case text(String)
        case userName
        case account
        case clientID
    }

    enum Level: Sendable, Hashable {
        /// Several pieces, at least one of which is a placeholder.
        case pieces([Piece])
        case bound(BoundTopicPattern.Level)
    }

    let levels: [Level]

    /// The reason why a text is not a pattern.
    package struct Refusal: Error, Sendable, Hashable {
        package let reason: String
    }

    /// Parses a pattern. A pattern is a topic filter that may contain `%u`, `%i` and `%c` as levels or parts of levels.
    /// `%%` stands for a percent sign.
    package init(_ text: String) throws(Refusal) {
        guard TopicFilter(text) != nil else { throw Refusal(reason: "\"\(text)\" is not a topic filter") }
        var levels: [Level] = []
        for level in BoundTopicPattern.split(text) {
            levels.append(try Self.level(level))
        }
        self.levels = levels
    }

    private static func level(_ text: Substring) throws(Refusal) -> Level {
        if text == "+" { return .bound(.anyOne) }
        if text == "#" { return .bound(.rest) }
        var pieces: [Piece] = []
        var literal = ""
        var rest = text[...]
        while let percent = rest.firstIndex(of: "%") {
            literal += rest[..<percent]
            rest = rest[rest.index(after: percent)...]
            switch rest.popFirst() {
            case "%": literal += "%"
            case "u":
                pieces += [.text(literal), .userName]
                literal = ""
            case "i":
                pieces += [.text(literal), .account]
                literal = ""
            case "c":
                pieces += [.text(literal), .clientID]
                literal = ""
            case .some, nil: throw Refusal(reason: "after % only u, i, c or % may follow in \"\(text)\"")
            }
        }
        literal += rest
        guard !pieces.isEmpty else { return .bound(.text(literal)) }
        return .pieces(pieces + [.text(literal)])
    }

    /// Whether the pattern contains the placeholder for the client id.
    var dependsOnClientID: Bool {
        levels.contains { if case .pieces(let pieces) = $0 { pieces.contains(.clientID) } else { false } }
    }

    /// Replaces the placeholders with a client's names.
    ///
    /// A name that is missing or contains `/`, `+`, `#` or U+0000 cannot widen access: an allowing pattern then matches
    /// nothing, and a denying pattern matches every text at that level.
    ///
    /// - Returns: nil if the pattern does not apply to this client.
    func bound(to identity: ClientIdentity, isDenial: Bool) -> BoundTopicPattern? {
        var result: [BoundTopicPattern.Level] = []
        result.reserveCapacity(levels.count)
        for level in levels {
            switch level {
            case .bound(let level): result.append(level)
            case .pieces(let pieces):
                if let text = Self.text(of: pieces, for: identity) {
                    result.append(.text(text))
                } else if isDenial {
                    result.append(.anyOne)
                } else {
                    return nil
                }
            }
        }
        return BoundTopicPattern(levels: result, isDenial: isDenial)
    }

    private static func text(of pieces: [Piece], for identity: ClientIdentity) -> String? {
        var text = ""
        for piece in pieces {
            switch piece {
            case .text(let literal): text += literal
            case .userName:
                guard let userName = identity.userName, isPlain(userName) else { return nil }
                text += userName
            case .account:
                guard let account = identity.account else { return nil }
                text += "\(account.rawValue)"
            case .clientID:
                guard isPlain(identity.clientID) else { return nil }
                text += identity.clientID
            }
        }
        return text
    }

    private static func isPlain(_ name: String) -> Bool {
        !name.isEmpty
            && name.utf8.allSatisfy {
                $0 != 0 && $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "+") && $0 != UInt8(ascii: "#")
            }
    }
}
