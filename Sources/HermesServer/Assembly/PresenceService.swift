// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import ServiceLifecycle

/// Reports changes of presence to the watchers and observers who were not told at once.
struct PresenceService: Service {
    /// The time between two checks while no change waits. Each change waits for at least a second.
    private static let interval = Duration.milliseconds(500)

    let devices: DeviceRegistry

    func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                let isWaiting = devices.tellLate()
                // When the server stops, the sleep throws and the loop ends.
                try? await Task.sleep(for: isWaiting ? DeviceRegistry.lateInterval : Self.interval)
            }
        }
        // At a graceful stop, the webhooks' service stops after this service, so it still stores the events that it
        // gets now.
        devices.tellObservers()
    }
}
