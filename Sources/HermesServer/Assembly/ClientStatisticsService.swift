// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import Logging
import ServiceLifecycle

/// Saves the clients' reports about deliveries in the data directory, every 300 seconds and when the server stops.
struct ClientStatisticsService: Service {
    static let fileName = "deliveries"
    private static let interval = Duration.seconds(300)

    private let statistics: ClientStatistics
    private let file: KeptFile
    private let logger: Logger

    /// Continues with the reports that the last run saved. If the file is damaged, the statistics begin anew.
    init(_ statistics: ClientStatistics, directory: String, logger: Logger) {
        self.statistics = statistics
        self.logger = logger
        file = KeptFile(Self.fileName, in: directory, maxBytes: DeliveryHistory.maxBytes)
        guard let bytes = file.read() else { return }
        if let history = DeliveryHistory(bytes: bytes) {
            statistics.resume(history)
        } else {
            logger.warning("the delivery statistics begin anew", metadata: ["unreadable": "\(file.path)"])
        }
    }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                // When the server stops, the sleep throws and the loop ends.
                try? await Task.sleep(for: Self.interval)
                if !Task.isCancelled { save() }
            }
        }
        save()
    }

    private func save() {
        do {
            try file.write(statistics.history.bytes)
        } catch {
            logger.warning("delivery statistics not written", metadata: ["error": "\(error)"])
        }
    }
}
