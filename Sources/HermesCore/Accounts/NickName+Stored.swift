// Hermes
// SPDX-License-Identifier: Apache-2.0

extension NickName {
    /// Creates a name from its stored texts. The validating initializer made both texts before they were stored.
    package init(stored rawValue: String, key: String) {
        self.rawValue = rawValue
        self.key = key
    }
}
