// Hermes
// SPDX-License-Identifier: Apache-2.0

extension Group {
    /// Returns the form in which searches compare names of groups, devices and topics. In this form, ASCII letters are
    /// in lower case, as after SQLite's `lower()`. All other characters are unchanged.
    package static func searchKey(_ text: String) -> String {
        String(decoding: text.utf8.map { (0x41...0x5A).contains($0) ? $0 + 32 : $0 }, as: UTF8.self)
    }
}
