// Hermes
// SPDX-License-Identifier: Apache-2.0

/// What requests cost, in every protocol: the one place that says so.
///
/// A unit is about 10 µs of a processor: a request without anything special. ``ConnectionLimits/requestsPerSecond`` and the
/// limits of accounts and addresses are units per second. Each frame costs 1; what it causes beside that is charged once it
/// is known. QoS 0 and 1 publications of MQTT cost nothing here: subscribers' pace and acknowledgements slow publishers
/// down. The table of docs/security.md says the same.
package enum RequestCost: Sendable, Hashable {
    /// A packet of a protocol whose frames are not counted.
    case packet
    /// Contents of so many bytes.
    case bytes(Int)
    /// Topic filters that are subscribed or unsubscribed; those of kept sessions are stored as well.
    case filters(Int, isKept: Bool)
    /// Retained publications that are looked at for new subscriptions.
    case records(Int)
    /// Inboxes that get an entry, beside the sender's and the first receiver's.
    case recipients(Int)
    /// Users who are told of something that matters only now.
    case listeners(Int)
    /// Viewers of a room on this loop that get a frame.
    case viewers(Int)
    /// A page that is read, with so many entries.
    case page(entries: Int)
    /// Accounts whose presence is asked for or watched.
    case watched(Int)
    /// A read or change of one thing in the store.
    case lookup
    /// A group that is created or changed.
    case group
    /// A login by token, or of an anonymous MQTT client.
    case login
    /// A password is checked or set: 16 MiB for some 50 ms.
    case password

    /// Whether the connection pays; else its account and address do alone, since a connection has one login at a time.
    var isOfConnection: Bool {
        switch self {
        case .login, .password: false
        case .packet, .bytes, .filters, .records, .recipients, .listeners, .viewers, .page, .watched, .lookup, .group:
            true
        }
    }

    package var units: Int {
        switch self {
        case .packet: 1
        case .bytes(let count): count / 8_192
        case .filters(let count, let isKept): isKept ? 2 * count : count
        case .records(let count): count / 100
        case .recipients(let count): count
        case .listeners(let count): (count + 1) / 2
        case .viewers(let count): count / 256
        case .page(let entries): 5 + entries / 4
        case .watched(let count): (count + 3) / 4
        case .lookup: 4
        case .group: 20
        case .login: 20
        case .password: 2_000
        }
    }
}
