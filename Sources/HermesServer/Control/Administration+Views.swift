// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import Synchronization

/// The views of a running server.
extension Administration {
    /// Returns the running server.
    func assembly() throws(HermesError) -> ServerAssembly {
        guard let running else {
            throw HermesError(
                .notFound,
                "No server runs on this data directory. Only a running server has this information."
            )
        }
        guard let assembly = running.assembly else {
            throw HermesError(.shuttingDown, "The server starts or stops; try again shortly.", retryAfter: .seconds(1))
        }
        return assembly
    }

    func respond(toViewRequest request: ControlRequest) throws(HermesError) -> ControlResponse {
        let assembly = try assembly()
        let uptime = running?.uptime ?? .zero
        switch request {
        case .trace(let id): return .traces(messenger.traces.find(id).map(ControlTrace.init))
        case .stats(let period):
            return .stats(ControlStats(assembly, try Self.period(period), uptime: uptime))
        case .deliveries(let period):
            let history = messenger.clientStatistics.history
            let groups = try history.groups(Self.period(period), now: messenger.time.now())
            return .deliveries(groups.map { ControlDeliveries($0.group, $0.counts) })
        default: throw HermesError(.internalError, "this request is not about what the server shows")
        }
    }

    private static func period(_ name: String?) throws(HermesError) -> DeliveryHistory.Period {
        guard let name else { return .hour }
        guard let period = DeliveryHistory.Period(rawValue: name) else {
            throw HermesError(.invalidArgument, "\"\(name)\" is no period: hour, day or month.")
        }
        return period
    }
}

extension ControlDeliveries {
    init(_ group: DeliveryHistory.Group, _ counts: ReportCounts) {
        appVersion = group.appVersion
        network = group.network
        self.counts = Dictionary(uniqueKeysWithValues: ReportFigure.allCases.map { ($0.name, counts[$0]) })
    }
}

extension ControlStats {
    init(_ assembly: ServerAssembly, _ period: DeliveryHistory.Period, uptime: Duration) {
        version = HermesVersion.current
        time = assembly.messenger.time.latest().rawValue
        uptimeSeconds = uptime.components.seconds
        online = assembly.messenger.devices.count
        listeners = assembly.opened.withLock { $0 }.map {
            ControlListener(name: $0.name, host: $0.host, port: $0.port)
        }
        figures = assembly.figures?.history.summary(of: period) ?? []
    }
}

extension FigureHistory {
    /// Returns the newest value of each figure, and its mean and maximum over a period that ends now.
    func summary(of period: DeliveryHistory.Period) -> [ControlFigure] {
        guard let newest = recent.newest else { return [] }
        let (means, maxima) = period == .hour ? (recent, recent) : (means, maxima)
        let last = means.newest ?? 0
        let count = Int64(period.length / .milliseconds(means.interval))
        let rows = max(0, last - count + 1)...last
        return names.enumerated().map { column, name in
            let values = rows.compactMap { means.value(column, number: $0).map(Double.init) }
            return ControlFigure(
                name: name,
                now: recent.value(column, number: newest).map(Double.init),
                mean: values.isEmpty ? nil : values.reduce(0, +) / Double(values.count),
                maximum: rows.compactMap { maxima.value(column, number: $0).map(Double.init) }.max()
            )
        }
    }
}

extension ControlTrace {
    init(_ trace: MessageTrace) {
        let message = trace.message
        id = message.id.description
        clientID = message.clientID
        sender = message.sender?.rawValue
        senderDevice = message.senderDevice.flatMap { $0 == .backEnd ? nil : $0.rawValue }
        conversation = message.conversation.map { conversation in
            switch conversation {
            case .direct(let low, let high): "direct/\(low.rawValue)-\(high.rawValue)"
            case .group(let group): "group/\(group.rawValue)"
            }
        }
        recipients = message.recipients
        let accepted = message.acceptedTime
        func step(
            _ name: String,
            after: Duration,
            user: UserID? = nil,
            device: DeviceID? = nil,
            detail: String = ""
        )
            -> ControlTraceStep
        {
            ControlTraceStep(
                step: name,
                time: accepted.advanced(by: after).rawValue,
                afterMicroseconds: Int64(after / .microseconds(1)),
                user: user?.rawValue,
                device: device?.rawValue,
                detail: detail
            )
        }
        let done =
            if let refusal = message.refusal {
                step(
                    "refused",
                    after: message.committedAt - message.acceptedAt,
                    detail: "\(refusal.message) (error \(refusal.code.rawValue))"
                )
            } else {
                step(
                    "committed",
                    after: message.committedAt - message.acceptedAt,
                    detail: recipients == 1 ? "1 inbox" : "\(recipients) inboxes"
                )
            }
        steps =
            [step("accepted", after: .zero, user: message.sender, device: message.senderDevice), done]
            + trace.steps.map {
                step($0.kind.rawValue, after: $0.after, user: $0.user, device: $0.device, detail: $0.detail)
            }
    }
}
