// Hermes
// SPDX-License-Identifier: Apache-2.0

import Metrics

/// Counts viewers' frames that were not forwarded, by reason.
struct LiveRoomMetrics: Sendable {
    private static func counter(_ reason: String) -> Counter {
        Counter(label: "hermes_liveroom_frames_ignored_total", dimensions: [("reason", reason)])
    }

    private let outside = counter("not_entered")
    private let badBody = counter("bad_body")
    private let serverType = counter("server_type")
    private let unknownType = counter("unknown_type")
    private let applicationType = counter("application_type")
    private let forbidden = counter("forbidden")
    private let crowded = counter("too_many_joins")

    func ignored(_ reason: LiveRoomConnection.Ignored) {
        switch reason {
        case .ended, .entering: break
        case .outside: outside.increment()
        case .badBody: badBody.increment()
        case .serverType: serverType.increment()
        case .unknownType: unknownType.increment()
        case .applicationType: applicationType.increment()
        case .forbidden: forbidden.increment()
        case .crowded: crowded.increment()
        }
    }
}
