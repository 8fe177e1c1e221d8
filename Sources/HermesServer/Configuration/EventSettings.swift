// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore

/// The event streams of the HTTP API (`/v1/events`).
package struct EventSettings: Sendable, Hashable {
    /// The largest number of open streams; 0 allows none.
    package var maxStreams = 100
    package var maxStreamsPerKey = 20
    /// The largest number of events per second for one key, over all its streams.
    package var eventsPerSecond = 5_000
    /// The largest number of bytes that may wait for one slow reader.
    package var maxQueuedBytes = 1 << 20
    /// The largest payload of an event, in bytes.
    package var maxPayloadBytes = 64 << 10
    package var heartbeat = Duration.seconds(15)

    package init() {}
}

extension EventSettings: SettingFields {
    package static let fields: [SettingField<Self>] = [
        .number(
            \.maxStreams,
            "http.events.streams",
            in: 0...10_000,
            "The largest number of streams of /v1/events that may be open at once. With 0, there are no streams. Each "
                + "stream also counts as a connection of the HTTP port."
        ),
        .number(
            \.maxStreamsPerKey,
            "http.events.streamsPerKey",
            in: 1...10_000,
            "The largest number of streams that one API key may have open at once."
        ),
        .number(
            \.eventsPerSecond,
            "http.events.eventsPerSecond",
            in: 1...1_000_000,
            "The largest number of events per second for one API key, over all its streams. Further events are "
                + "dropped, and the reader is told how many."
        ),
        .byteCount(
            \.maxQueuedBytes,
            "http.events.queue",
            in: 64 << 10...64 << 20,
            "The largest number of bytes that may wait for one slow reader of a stream. Further events are dropped, "
                + "and the reader is told how many."
        ),
        .byteCount(
            \.maxPayloadBytes,
            "http.events.payload",
            in: 1 << 10...1 << 20,
            "The largest payload that an event carries. For a larger payload, the event has only the topic and the "
                + "size."
        ),
        .duration(
            \.heartbeat,
            "http.events.heartbeat",
            in: .seconds(1) ... .seconds(30),
            "The time between two comments that keep a stream's connection open."
        ),
    ]
}
