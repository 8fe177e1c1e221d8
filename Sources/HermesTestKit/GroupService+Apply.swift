// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore

extension GroupService {
    /// Applies an action, and returns the group after the action.
    @discardableResult
    package func apply(_ command: GroupCommand, by principal: Principal) async throws(HermesError) -> Group {
        try await answer(command, by: principal).group
    }
}
