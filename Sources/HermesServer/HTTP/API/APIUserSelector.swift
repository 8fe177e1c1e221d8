// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire

/// An account as the API names it: a number, or a text that is a uid if it has digits alone, and else a nick name. A name
/// that would be taken for a uid, or begins with `@`, is written with an `@` before it.
struct APIUserSelector: Sendable, Hashable {
    static let maxCharacters = NickName.maxCharacters + 1

    /// What was asked for, for messages.
    let text: String
    /// Nil where there can be no such account.
    let key: AccountKey?

    /// - Returns: nil for what is neither, by its form.
    init?(_ value: JSON) {
        switch value {
        case .number:
            guard let number = value.integer, UserID(number) != nil else { return nil }
            self.init(String(number))
        case .string(let text): self.init(text)
        case .null, .boolean, .array, .object: return nil
        }
    }

    /// - Returns: nil for what is empty or too long.
    init?(_ text: String) {
        guard (1...Self.maxCharacters).contains(text.unicodeScalars.count) else { return nil }
        self.text = text
        if text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) {
            key = Int32(text).flatMap { UserID(rawValue: $0) }.map(AccountKey.id)
        } else {
            let name = text.hasPrefix("@") ? String(text.dropFirst()) : text
            key = (try? NickName(name)).map(AccountKey.nickName)
        }
    }
}
