// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore
import Testing

@testable import Hermes

/// Runs the cases of `web/cases/connection.json` on the connection's state machine.
@Suite struct ConnectionCaseTests {
    struct Case: MachineCase {
        enum CodingKeys: String, CodingKey, CaseIterable { case name, heartbeat, learned, steps }

        enum Heartbeat: String, Decodable { case adaptive }

        struct Learned: Decodable, Sendable {
            let interval: Double
            let isStable: Bool
        }

        let name: String
        let heartbeat: Heartbeat?
        let learned: Learned?
        let steps: [Step]
    }

    struct Step: CaseStep {
        enum CodingKeys: String, CodingKey, CaseIterable {
            case event = "do"
            case now, code, retryAfter, atMost, mayReturn, advice, interval, app, isOnline
            case expect, expectIn, state, error, nextDeadline, within, failures, learned
        }

        enum Event: String, Decodable {
            case start, stop, connected, authenticated, refused, received, wrote, deadline, requestExpired, kicked
            case shutdownAnnounced, reconnectAdvised, failed, closed, suggested, conditions
        }

        enum App: String, Decodable { case foreground, background, suspended }

        let event: Event
        let now: Double?
        let code: UInt32?
        let retryAfter: Double?
        let atMost: Double?
        let mayReturn: Bool?
        let advice: CaseAdvice?
        let interval: Double?
        let app: App?
        let isOnline: Bool?
        let expect: [String]?
        /// The actions by language, if the languages differ on purpose.
        let expectIn: [String: [String]]?
        let state: String?
        let error: UInt32?
        let nextDeadline: Expected<Double>?
        let within: [Double]?
        let failures: Int?
        let learned: Double?

        var time: NIODeadline { get throws { NIODeadline(caseTime: try #require(now)) } }

        /// The error in the event.
        var cause: HermesClientError {
            HermesClientError(
                code.map { HermesClientError.Code(rawValue: $0) } ?? .connectionLost,
                "test",
                retryAfter: retryAfter.map { .milliseconds($0) }
            )
        }

        var conditions: DeviceConditions.Snapshot {
            get throws {
                let state: DeviceConditions.AppState =
                    switch try #require(app) {
                    case .foreground: .foreground
                    case .background: .background
                    case .suspended: .suspended
                    }
                let path = NetworkPath(label: NetworkPath.unknown.label, isUsable: isOnline == true)
                return DeviceConditions.Snapshot(appState: state, path: path)
            }
        }
    }

    static let cases = try? MachineCases.read("connection", as: Case.self)

    @Test func `the cases can be read`() throws { #expect(try !MachineCases.read("connection", as: Case.self).isEmpty) }

    @Test(arguments: cases ?? [])
    func `the machine does what the cases say`(_ entry: Case) throws {
        var machine = Machine(
            heartbeat: entry.heartbeat == .adaptive ? .adaptive : .push,
            reconnect: .standard,
            learned: entry.learned.map {
                LearnedHeartbeat(interval: .milliseconds($0.interval), isStable: $0.isStable)
            },
            seed: 1
        )
        for (index, step) in entry.steps.enumerated() {
            let actions = try Self.run(step, &machine)
            let place = Comment(rawValue: "step \(index) (\(step.event.rawValue))")
            if let expect = step.expectIn?["swift"] ?? step.expect { #expect(actions.map(Self.text) == expect, place) }
            try Self.check(machine, step, place)
        }
    }

    private static func run(_ step: Step, _ machine: inout Machine) throws -> [Machine.Action] {
        switch step.event {
        case .start: return machine.startRequested()
        case .stop: return machine.stopRequested()
        case .connected: return try machine.connected(now: step.time)
        case .authenticated:
            let atMost = step.atMost.map { Duration.milliseconds($0) }
            return try machine.authenticated(heartbeatAtMost: atMost, now: step.time)
        case .refused: return try machine.authenticationRefused(step.cause, now: step.time)
        case .received: try machine.bytesReceived(now: step.time)
        case .wrote: try machine.bytesWritten(now: step.time)
        case .deadline: return try machine.deadlineReached(now: step.time)
        case .requestExpired: return try machine.requestExpired(now: step.time)
        case .kicked:
            return try machine.kicked(
                step.cause,
                mayReturn: step.mayReturn == true,
                advice: step.advice?.advice,
                now: step.time
            )
        case .shutdownAnnounced: try machine.shutdownAnnounced(#require(step.advice).advice, now: step.time)
        case .reconnectAdvised: try machine.reconnectAdvised(#require(step.advice).advice, now: step.time)
        case .failed: return try machine.failed(step.cause, now: step.time)
        case .closed:
            // If the connection was not open yet, the event means that it could not be opened.
            if case .connecting = machine.state {
                try machine.connectFailed(step.cause, now: step.time)
            } else {
                try machine.connectionClosed(step.cause, now: step.time)
            }
        case .suggested: try machine.heartbeatSuggested(.milliseconds(#require(step.interval)))
        case .conditions: return try machine.conditionsChanged(step.conditions, now: step.time)
        }
        return []
    }

    private static func check(_ machine: Machine, _ step: Step, _ place: Comment) throws {
        let (state, error) = text(machine.state)
        if let expected = step.state { #expect(state == expected, place) }
        if let code = step.error { #expect(error?.code.rawValue == code, place) }
        if let expected = step.nextDeadline { #expect(machine.nextDeadline?.caseTime == expected.value, place) }
        if let within = step.within {
            let at = try #require(machine.nextDeadline, place).caseTime
            #expect(at >= within[0] && at <= within[1], place)
        }
        if let failures = step.failures { #expect(machine.failures == failures, place) }
        if let learned = step.learned { #expect(machine.learned.interval == .milliseconds(learned), place) }
    }

    private static func text(_ state: Machine.State) -> (String, HermesClientError?) {
        switch state {
        case .idle: ("idle", nil)
        case .connecting: ("connecting", nil)
        case .authenticating: ("authenticating", nil)
        case .live: ("live", nil)
        case .lost(let error, _): ("lost", error)
        case .waiting(let waiting): ("waiting", waiting.error)
        case .stopped(let error): ("stopped", error)
        }
    }

    private static func text(_ action: Machine.Action) -> String {
        switch action {
        case .connect(let endpoint): endpoint.map { "connect \($0)" } ?? "connect"
        case .authenticate: "authenticate"
        case .becameLive: "becameLive"
        case .sendHeartbeat: "sendHeartbeat"
        case .close: "close"
        case .abandon: "abandon"
        }
    }
}
