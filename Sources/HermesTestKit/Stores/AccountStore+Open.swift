// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore

extension AccountStore {
    /// Opens a device that has proved its identity, without a limit on the number of devices.
    package func open(
        _ device: DeviceDescription,
        of user: UserID,
        token: TokenHash?,
        now: Timestamp
    ) async throws(HermesError) -> Device {
        try await open(DeviceOpening(user: user, device: device, token: token), now: now)
    }
}
