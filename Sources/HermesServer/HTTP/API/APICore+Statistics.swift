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
                    "Deliveries as clients report them, per app version, and per app version and network. Kept for 30 days.",
                scope: .statsRead,
                query: [Self.period],
                success: .ok,
                answer: .object([
                    Field("window_seconds", Self.count, required: true, "The period that is summed up."),
                    Field("versions", .array(Self.version, count: 0...Int.max), required: true, "By name."),
                    Field(
                        "groups",
                        .array(Self.group, count: 0...DeliveryHistory.maxGroups),
                        required: true,
                        "By version and network."
                    ),
                ]),
                handler: deliveryStatistics
            ),
            APIRoute(
                method: .get,
                path: "/stats/delivery/series",
                id: "getDeliverySeries",
                summary: "The counts of /stats/delivery over time: the last hour in steps of 10 seconds, longer "
                    + "periods in steps of half an hour.",
                scope: .statsRead,
                query: [
                    Self.period,
                    APIRoute.Parameter(
                        "app_version",
                        .text(bytes: 0...ClientReport.maxVersionBytes),
                        "Only this version of the app; empty: those that tell none."
                    ),
                    APIRoute.Parameter(
                        "network",
                        .text(bytes: 0...ClientReport.maxLabelBytes),
                        "Only this kind of network; empty: those that tell none."
                    ),
                ],
                success: .ok,
                answer: .object([
                    Field("interval_ms", Self.count, required: true, "The length of a step."),
                    Field("from_ms", Self.time, required: true, "When the first step begins, in ms since 1970."),
                    Field("figures", Self.series, required: true, "The counts of each step."),
                ]),
                handler: deliverySeries
            ),
        ]
    }

    private static let count = APISchema.integer(0 ... .max)

    private static let period = APIRoute.Parameter(
        "period",
        .choice(DeliveryHistory.Period.allCases.map(\.rawValue)),
        "The time until now; day if absent, which is 24 hours. A month has 30 days."
    )

    private static let figures = ReportFigure.allCases.map {
        Field($0.name, count, required: true, $0.summary)
    }

    private static let version = APISchema.named(
        "DeliveryStatistics",
        .object(
            [
                Field(
                    "app_version",
                    .string(length: 0 ... .max),
                    required: true,
                    "Empty if it is unknown; \"other\" stands for all groups beyond the limit."
                )
            ] + figures
        )
    )

    private static let group = APISchema.named(
        "NetworkDeliveryStatistics",
        .object(
            [
                Field(
                    "app_version",
                    .string(length: 0 ... .max),
                    required: true,
                    "Empty if it is unknown; \"other\" stands for all groups beyond the limit."
                ),
                Field(
                    "network",
                    .string(length: 0 ... .max),
                    required: true,
                    "The clients' name for it; empty and \"other\" as in app_version."
                ),
            ] + figures
        )
    )

    private static let series = APISchema.named(
        "DeliverySeries",
        .object(
            ReportFigure.allCases.map {
                Field($0.name, .array(count, count: 0...DeliveryHistory.maxRows), required: true, $0.summary)
            }
        )
    )

    private static func period(of call: APICall) -> DeliveryHistory.Period {
        call.query[period.name].flatMap(DeliveryHistory.Period.init) ?? .day
    }

    private func deliveryStatistics(_ call: APICall) async throws -> APIAnswer {
        let (period, now) = (Self.period(of: call), messenger.time.now())
        let groups = messenger.clientStatistics.history.groups(period, now: now)
        return APIAnswer([
            "window_seconds": .integer(period.length.components.seconds),
            "versions": .array(
                DeliveryHistory.versions(of: groups).map { version, counts in
                    Self.document(of: counts, [.init(name: "app_version", value: .string(version))])
                }
            ),
            "groups": .array(
                groups.map { group, counts in
                    Self.document(
                        of: counts,
                        [
                            .init(name: "app_version", value: .string(group.appVersion)),
                            .init(name: "network", value: .string(group.network)),
                        ]
                    )
                }
            ),
        ])
    }

    private func deliverySeries(_ call: APICall) async throws -> APIAnswer {
        let series = messenger.clientStatistics.history.series(
            Self.period(of: call),
            appVersion: call.query["app_version"],
            network: call.query["network"],
            now: messenger.time.now()
        )
        return APIAnswer(text: Self.text(of: series))
    }

    private static func document(of counts: ReportCounts, _ names: [JSON.Member]) -> JSON {
        .object(names + ReportFigure.allCases.map { .init(name: $0.name, value: .integer(counts[$0])) })
    }

    /// Writes the text without building ``JSON`` values, because a month has some thirty thousand numbers.
    private static func text(of series: DeliveryHistory.Series) -> String {
        var text = "{\"interval_ms\":\(series.interval),\"from_ms\":\(series.from.rawValue),\"figures\":{"
        for figure in ReportFigure.allCases {
            if figure != ReportFigure.allCases.first { text += "," }
            let counts = series.rows.map { String($0[figure]) }.joined(separator: ",")
            text += "\"\(figure.name)\":[\(counts)]"
        }
        return text + "}}"
    }
}
