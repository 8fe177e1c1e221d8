// Hermes
// SPDX-License-Identifier: Apache-2.0

extension NickName {
    /// A name as a store gives it back: both texts were made by the validating initialiser when it was stored.
    package init(stored rawValue: String, key: String) {
        self.rawValue = rawValue
        self.key = key
    }
}
