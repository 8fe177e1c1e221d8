// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore

extension SettingGroup {
    /// Creates the default values, and changes some of them.
    package init(_ change: (inout Self) -> Void) {
        self.init()
        change(&self)
    }
}
