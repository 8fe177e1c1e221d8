// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// The event streams of the HTTP API (`/v1/events`).
package struct EventSettings: Sendable, Hashable {
    /// The largest number of open streams; 0 allows none.
    package var maxStreams: Int
    package var maxStreamsPerKey: Int
    /// The largest number of events per second for one key, over all its streams.
    package var eventsPerSecond: Int
    /// The largest number of bytes that may wait for one slow reader.
    package var maxQueuedBytes: Int
    /// The largest payload of an event, in bytes.
    package var maxPayloadBytes: Int
    package var heartbeat: Duration

    package init(
        maxStreams: Int = 100,
        maxStreamsPerKey: Int = 20,
        eventsPerSecond: Int = 5_000,
        maxQueuedBytes: Int = 1 << 20,
        maxPayloadBytes: Int = 64 << 10,
        heartbeat: Duration = .seconds(15)
    ) {
        self.maxStreams = maxStreams
        self.maxStreamsPerKey = maxStreamsPerKey
        self.eventsPerSecond = eventsPerSecond
        self.maxQueuedBytes = maxQueuedBytes
        self.maxPayloadBytes = maxPayloadBytes
        self.heartbeat = heartbeat
    }
}

extension EventSettings {
    private static let defaults = EventSettings()
    private static let maxStreams = Setting.number(
        "http.events.streams",
        default: defaults.maxStreams,
        in: 0...10_000,
        "The largest number of streams of /v1/events that may be open at once. With 0, there are no streams. Each "
            + "stream also counts as a connection of the HTTP port."
    )
    private static let maxStreamsPerKey = Setting.number(
        "http.events.streamsPerKey",
        default: defaults.maxStreamsPerKey,
        in: 1...10_000,
        "The largest number of streams that one API key may have open at once."
    )
    private static let eventsPerSecond = Setting.number(
        "http.events.eventsPerSecond",
        default: defaults.eventsPerSecond,
        in: 1...1_000_000,
        "The largest number of events per second for one API key, over all its streams. Further events are dropped, "
            + "and the reader is told how many."
    )
    private static let maxQueuedBytes = Setting.byteCount(
        "http.events.queue",
        default: defaults.maxQueuedBytes,
        in: 64 << 10...64 << 20,
        "The largest number of bytes that may wait for one slow reader of a stream. Further events are dropped, and "
            + "the reader is told how many."
    )
    private static let maxPayloadBytes = Setting.byteCount(
        "http.events.payload",
        default: defaults.maxPayloadBytes,
        in: 1 << 10...1 << 20,
        "The largest payload that an event carries. For a larger payload, the event has only the topic and the size."
    )
    private static let heartbeat = Setting.duration(
        "http.events.heartbeat",
        default: defaults.heartbeat,
        in: .seconds(1) ... .seconds(30),
        "The time between two comments that keep a stream's connection open."
    )

    static let settings: [SettingDescriptor] = [
        maxStreams.descriptor, maxStreamsPerKey.descriptor, eventsPerSecond.descriptor, maxQueuedBytes.descriptor,
        maxPayloadBytes.descriptor, heartbeat.descriptor,
    ]

    init(_ values: SettingValues) throws(SettingsError) {
        self.init(
            maxStreams: try values.value(of: Self.maxStreams),
            maxStreamsPerKey: try values.value(of: Self.maxStreamsPerKey),
            eventsPerSecond: try values.value(of: Self.eventsPerSecond),
            maxQueuedBytes: try values.value(of: Self.maxQueuedBytes),
            maxPayloadBytes: try values.value(of: Self.maxPayloadBytes),
            heartbeat: try values.value(of: Self.heartbeat)
        )
    }
}
