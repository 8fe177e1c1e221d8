// Hermes
// SPDX-License-Identifier: Apache-2.0

extension NickName {
    /// A name from a store: the validating initializer made both texts when it was stored.
    package init(stored rawValue: String, key: String) {
        self.rawValue = rawValue
        self.key = key
    }
}
