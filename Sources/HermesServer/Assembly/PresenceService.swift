// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import ServiceLifecycle

/// Tells watchers and observers about changes of presence of which they were not told at once.
struct PresenceService: Service {
    /// The time between two checks while no change waits. A change waits for a second at least.
    private static let interval = Duration.milliseconds(500)

    let devices: DeviceRegistry

    func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                let isWaiting = devices.tellLate()
                // Throws when the server stops; then the loop ends.
                try? await Task.sleep(for: isWaiting ? DeviceRegistry.lateInterval : Self.interval)
            }
        }
    }
}
