// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The cost of requests in every protocol. It is defined only here.
///
/// A unit is about 10 µs of processor time, which is the cost of a plain request.
/// ``ConnectionLimits/requestsPerSecond`` and the limits of accounts and addresses are in units per second. Each
/// frame costs 1. The rest of its cost is charged as soon as it is known. In every protocol, the rest includes the
/// cost of the frame's bytes and of the parts of its message. MQTT publications cost nothing here, because the
/// subscribers' pace and acknowledgements slow publishers down. The exceptions, which are charged, are many
/// properties, long topics, topics that very many filters match, retained topics with many levels, and the queues of
/// kept sessions. docs/security.md has the same table.
package enum RequestCost: Sendable, Hashable {
    /// A packet of a protocol whose frames are not counted.
    case packet
    /// WebSocket frames of one read beyond the one frame that each message needs: frames without payload, or fragments
    /// of a message.
    case furtherFrames(Int)
    /// Contents of this number of bytes.
    case bytes(Int)
    /// A packet of this number of bytes of JSON, which is parsed about ten times slower than protobuf.
    case json(Int)
    /// Fields and elements of a message (``MessageParts``); each takes up to a microsecond to parse.
    case parts(Int)
    /// Topic filters that are subscribed or unsubscribed. Filters of kept sessions, which outlive their connections,
    /// are also stored.
    case filters(Int, isKept: Bool)
    /// Retained publications that are examined for new subscriptions, and waiting publications that are examined when
    /// shared subscriptions end.
    case records(Int)
    /// Properties of an MQTT packet; each is parsed and kept separately.
    case properties(Int)
    /// Filters that match the topic of a publication, and steps of the search for them. This cost is charged once for
    /// each new topic.
    case matches(Int)
    /// Levels of a retained topic, or the levels of a filter with wildcards times the number of event loops. Each
    /// level may be a new record in a tree.
    case levels(Int)
    /// Inboxes that get an entry, except the inboxes of the sender and of the first recipient.
    case recipients(Int)
    /// Queues of kept sessions that get a publication.
    case queues(Int)
    /// Connected devices that get an entry whose content has this number of bytes, except one device of the sender and
    /// one of the recipient. The loop of each device is notified, and writes the content to the device.
    case devices(Int, bytes: Int)
    /// Users that get an ephemeral event.
    case listeners(Int)
    /// Users who are notified that the user of the connection came online or went offline. This cost is also charged
    /// after the connection has ended.
    case watchers(Int)
    /// A room's viewers on this loop that get a frame.
    case viewers(Int)
    /// Subscribers on this loop that get a publication of MQTT. No budget is charged for them; they only make the
    /// publisher's turn end sooner. Each subscriber may get a copy of the topic.
    case receivers(Int, topicBytes: Int)
    /// The topic of an MQTT publication, which is looked up, matched and checked. In the packet, a short alias may
    /// replace the topic.
    case topic(bytes: Int)
    /// A page that is read, with this number of entries.
    case page(entries: Int)
    /// Accounts whose presence is read or watched, or is no longer watched. Each account is looked up twice, and has an
    /// entry in two tables.
    case watched(Int)
    /// A read of one item in the store. It takes about 200 µs on the store's threads.
    case lookup
    /// A change in the store, which is committed together with other changes.
    case change
    /// The creation or the change of a group.
    case group
    /// A login with a token, or the login of an anonymous MQTT client.
    case login
    /// A check or change of a password, which uses 16 MiB of memory for about 50 ms.
    case password

    /// Whether the connection pays. If not, only its account and address pay. The connection need not pay for a
    /// login, because it has only one login at a time.
    var isOfConnection: Bool {
        switch self {
        case .login, .password: false
        case .packet, .furtherFrames, .bytes, .json, .parts, .filters, .records, .properties, .levels, .matches,
            .recipients, .queues, .devices,
            .listeners, .watchers, .viewers, .receivers, .topic, .page, .watched, .lookup, .change, .group:
            true
        }
    }

    package var units: Int {
        switch self {
        case .packet: 1
        case .furtherFrames(let count): (count + 23) / 24
        case .bytes(let count): count / 8_192
        case .json(let count): count / 1_024
        case .parts(let count): count / 12
        case .filters(let count, let isKept): isKept ? 2 * count : count
        case .records(let count): count / 100
        case .properties(let count): count / 15
        case .levels(let count): count / 16
        case .matches(let count): count / 32
        case .recipients(let count): count
        case .queues(let count): count / 2
        case .devices(let count, let bytes): count &+ count &* bytes / 16_384
        case .listeners(let count): (count + 1) / 2
        // Other users decide whether they watch this user, so the user pays for at most 50 watchers.
        case .watchers(let count): 2 * min(count, 50)
        case .viewers(let count): count / 32
        case .receivers(let count, let topicBytes): count / 32 &+ count &* topicBytes / 65_536
        case .topic(let bytes): bytes / 1_024
        case .page(let entries): 15 + entries / 4
        case .watched(let count): (3 * count + 3) / 4
        case .lookup: 20
        case .change: 4
        case .group: 20
        case .login: 20
        case .password: 2_000
        }
    }
}
