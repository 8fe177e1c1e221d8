// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The traces of logins that are not in the store yet. They are written periodically, so that the login of a known
/// device needs no write. The table is bounded. If a trace is lost, the "last seen" of a device stays older than its
/// last login, or a network is not recognized at the next login.
struct LoginLedger: Sendable {
    private enum Key: Hashable, Sendable {
        case device(UserID, DeviceID)
        case network(UserID, NetworkMark)

        init(_ trace: LoginTrace) {
            switch trace {
            case .device(let device, let user, _): self = .device(user, device.id)
            case .network(let network, let user, _): self = .network(user, network)
            }
        }
    }

    /// The accuracy of "last seen". Smaller changes are not worth a write.
    static let deviceInterval = Duration.seconds(60)
    static let networkInterval = Duration.seconds(86_400)

    private let maxCount: Int
    private var waiting: [Key: LoginTrace] = [:]
    /// The traces that are being written.
    private var leaving: [Key: LoginTrace] = [:]

    init(maxCount: Int = 65_536) { self.maxCount = maxCount }

    mutating func note(_ trace: LoginTrace) {
        let key = Key(trace)
        guard waiting.count < maxCount || waiting[key] != nil else { return }
        waiting[key] = trace
    }

    func hasNetwork(_ network: NetworkMark, of user: UserID) -> Bool {
        let key = Key.network(user, network)
        return waiting[key] != nil || leaving[key] != nil
    }

    /// Returns a device with the description and the "last seen" of its latest trace.
    func renewed(_ device: Device, of user: UserID) -> Device {
        let key = Key.device(user, device.description.id)
        guard case .device(let description, _, let time) = waiting[key] ?? leaving[key] else { return device }
        var device = device
        device.description = description
        device.lastSeenAt = max(device.lastSeenAt, time)
        return device
    }

    /// Adds up to `limit` waiting traces to the traces that are being written. Returns all traces that are being
    /// written. They stay visible until ``written()`` is called.
    mutating func take(_ limit: Int) -> [LoginTrace] {
        for (key, trace) in waiting.prefix(limit) { leaving[key] = trace }
        for key in leaving.keys { waiting[key] = nil }
        return Array(leaving.values)
    }

    mutating func written() { leaving = [:] }

    /// Makes the traces wait again, because they could not be written. Newer traces replace them.
    mutating func putBack() {
        waiting.merge(leaving) { newer, _ in newer }
        leaving = [:]
    }
}
