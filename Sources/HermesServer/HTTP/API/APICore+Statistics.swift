// Hermes
// SPDX-License-Identifier: Apache-2.0

import HTTPTypes
import HermesCore
import HermesWire

/// Clients' delivery reports.
extension APICore {
    private typealias Field = APISchema.Field

    var statisticsRoutes: [APIRoute] {
        [
            APIRoute(
                method: .get,
                path: "/stats/delivery",
                id: "getDeliveryStatistics",
                summary:
                    "Deliveries of the last 24 hours as clients report them, per app version.",
                scope: .statsRead,
                success: .ok,
                answer: .object([
                    Field("window_seconds", Self.count, required: true, "The period that is summed up."),
                    Field("versions", .array(Self.version, count: 0...Int.max), required: true, "By name."),
                ]),
                handler: deliveryStatistics
            )
        ]
    }

    private static let count = APISchema.integer(0 ... .max)

    private static let version = APISchema.named(
        "DeliveryStatistics",
        .object([
            Field("app_version", .string(length: 0 ... .max), required: true, "Empty: unknown; other: the rest."),
            Field("reports", count, required: true, "The number of reports."),
            Field("received", count, required: true, "Entries that were received, each counted once."),
            Field("within_1s", count, required: true, "Received within a second."),
            Field("within_10s", count, required: true, "Received within ten seconds, and not within one."),
            Field("later", count, required: true, "Received later."),
            Field("never", count, required: true, "Lost and not repaired."),
            Field("duplicates", count, required: true, "Received again, and dropped."),
            Field("gaps", count, required: true, "Gaps in the numbers that were noticed."),
            Field("repaired", count, required: true, "Entries that were missing and fetched."),
            Field("topic_missed", count, required: true, "Pushes to topics and rooms that did not arrive."),
        ])
    )

    private func deliveryStatistics(_ call: APICall) async throws -> APIAnswer {
        let versions = messenger.clientStatistics.delivery(now: messenger.time.now())
        return APIAnswer([
            "window_seconds": .integer(DeliveryStatistics.window.components.seconds),
            "versions": .array(versions.map(document)),
        ])
    }

    private func document(of version: DeliveryStatistics.Version) -> JSON {
        let counts = version.counts
        return [
            "app_version": .string(version.appVersion),
            "reports": .integer(version.reports),
            "received": .integer(counts.received),
            "within_1s": .integer(counts.within1s),
            "within_10s": .integer(counts.within10s),
            "later": .integer(counts.later),
            "never": .integer(counts.lost),
            "duplicates": .integer(counts.duplicates),
            "gaps": .integer(counts.gaps),
            "repaired": .integer(counts.repaired),
            "topic_missed": .integer(counts.topicMissed),
        ]
    }
}
