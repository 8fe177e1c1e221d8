// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import Synchronization

/// What a running server shows of itself.
extension Administration {
    func respond(toViewRequest request: ControlRequest) throws(HermesError) -> ControlResponse {
        guard let running else {
            throw HermesError(
                .notFound,
                "No server runs on this data directory. Only a running one has this in its memory."
            )
        }
        guard let assembly = running.assembly else {
            throw HermesError(.shuttingDown, "The server starts or stops; try again shortly.", retryAfter: .seconds(1))
        }
        switch request {
        case .trace(let id): return .traces(messenger.traces.find(id).map(ControlTrace.init))
        case .stats: return .stats(ControlStats(assembly, uptime: running.uptime))
        default: throw HermesError(.internalError, "this request is not about what the server shows")
        }
    }
}

extension ControlStats {
    init(_ assembly: ServerAssembly, uptime: Duration) {
        version = HermesVersion.current
        time = assembly.messenger.time.latest().rawValue
        uptimeSeconds = uptime.components.seconds
        online = assembly.messenger.sessions.count
        listeners = assembly.opened.withLock { $0 }.map {
            ControlListener(name: $0.name, host: $0.host, port: $0.port)
        }
        figures = assembly.figures?.history.summary ?? []
    }
}

extension FigureHistory {
    /// The newest value of each figure, and the mean and the maximum of the last hour.
    var summary: [ControlFigure] {
        guard let newest = recent.newest else { return [] }
        return names.enumerated().map { column, name in
            let rows = max(0, newest - Int64(recent.rows) + 1)...newest
            let values = rows.compactMap { recent.value(column, number: $0).map(Double.init) }
            return ControlFigure(
                name: name,
                now: recent.value(column, number: newest).map(Double.init),
                mean: values.isEmpty ? nil : values.reduce(0, +) / Double(values.count),
                maximum: values.max()
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
        senderDevice = message.senderDevice?.rawValue
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
