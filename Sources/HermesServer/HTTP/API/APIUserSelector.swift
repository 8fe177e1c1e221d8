// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire

/// An account in the API: a number (the uid) or a text. A text of digits is a uid, and any other text is a nick name. A
/// nick name that consists of digits or begins with `@` must have another `@` before it.
struct APIUserSelector: Sendable, Hashable {
    /// The longest text, in bytes of UTF-8.
    static let maxBytes = NickName.maxBytes + 1

    /// The requested text, for messages.
    let text: String
    /// Nil if there can be no such account.
    let key: AccountKey?

    /// - Returns: nil for a value of another form.
    init?(_ value: JSON) {
        switch value {
        case .number:
            guard let number = value.integer, UserID(number) != nil else { return nil }
            self.init(String(number))
        case .string(let text): self.init(text)
        case .null, .boolean, .array, .object: return nil
        }
    }

    /// - Returns: nil for an empty or too long text.
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
