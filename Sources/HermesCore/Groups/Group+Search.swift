// Hermes
// SPDX-License-Identifier: Apache-2.0

extension Group {
    /// The form in which names of groups, devices and topics are searched for a text: ASCII letters in lower case, as
    /// SQLite's `lower()` makes them, and everything else as it is.
    package static func searchKey(_ text: String) -> String {
        String(decoding: text.utf8.map { (0x41...0x5A).contains($0) ? $0 + 32 : $0 }, as: UTF8.self)
    }
}
