// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire

/// An account in the API: a number (the uid) or a text. A text of digits is a uid, and any other text is a nick name.
/// A nick name that consists of digits or begins with `@` must be written with an additional `@` before it.
struct APIUserSelector: Sendable, Hashable {
    /// The longest text, in bytes of UTF-8.
    static let maxBytes = NickName.maxBytes + 1

    /// The requested text, for messages.
    let text: String
    /// Nil if there can be no such account.
    let key: AccountKey?

    private static let digits = UInt8(ascii: "0")...UInt8(ascii: "9")

    private init(text: String, key: AccountKey?) {
        self.text = text
        self.key = key
    }

    /// - Returns: nil for a value of another form.
    init?(_ value: JSON) {
        switch value {
        case .number(let written):
            guard let number = value.integer else {
                // A whole number may have more than 64 bits. No account has such a number.
                let digits = written.utf8.drop { $0 == UInt8(ascii: "-") }
                guard written.utf8.count <= Self.maxBytes, digits.allSatisfy({ Self.digits.contains($0) }) else {
                    return nil
                }
                self.init(text: written, key: nil)
                return
            }
            self.init(text: String(number), key: UserID(number).map(AccountKey.id))
        case .string(let text): self.init(text)
        case .null, .boolean, .array, .object: return nil
        }
    }

    /// - Returns: nil for a text that is empty or too long.
    init?(_ text: String) {
        guard (1...Self.maxBytes).contains(text.utf8.count) else { return nil }
        self.text = text
        guard text.utf8.first == UInt8(ascii: "@") else {
            key = try? AccountKey(uidOrName: text)
            return
        }
        let name = String(Substring(text.utf8.dropFirst()))
        key = (try? NickName(name)).map(AccountKey.nickName)
    }
}
