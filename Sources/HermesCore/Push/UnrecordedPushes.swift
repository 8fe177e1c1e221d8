// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The results of the pushes to one device, as far as the store must record them.
struct PushResult: Sendable {
    let key: HandOffKey
    let settlements: [PushSettlement]
    /// The notices that are not stored yet.
    var notices: [WebhookNotice]
}

/// The results that the store could not record, for example because the disk is full. Until a result is recorded,
/// nothing is sent to its device. Without this rule, the device would get the same notifications again and again. Does
/// no I/O. The owner is ``PushHandOff``.
struct UnrecordedPushes: Sendable {
    /// When this many devices have unrecorded results, nothing more is sent to any device. The batches that are already
    /// being sent can still add results above this number.
    static let limit = 1_000

    private var results: [HandOffKey: PushResult] = [:]
    /// Whether the results are being recorded now.
    private var isBeingRecorded = false

    var isEmpty: Bool { results.isEmpty }
    var isFull: Bool { results.count >= Self.limit }

    /// Whether the device has a result that is not recorded.
    func contains(_ key: HandOffKey) -> Bool { results[key] != nil }

    /// Keeps a result until it is recorded.
    mutating func keep(_ result: PushResult) { results[result.key] = result }

    /// Returns the results that are to be recorded; nil if there are none, or if they are already being recorded. If
    /// the call returns results, ``end(_:rest:)`` must be called afterwards.
    mutating func begin() -> [PushResult]? {
        guard !isBeingRecorded, !results.isEmpty else { return nil }
        isBeingRecorded = true
        return Array(results.values)
    }

    /// Ends the recording that ``begin()`` began.
    ///
    /// - Parameters:
    ///   - taken: the results that ``begin()`` returned.
    ///   - rest: the taken results that could not be recorded.
    mutating func end(_ taken: [PushResult], rest: [PushResult]) {
        isBeingRecorded = false
        for result in taken { results[result.key] = nil }
        for result in rest { results[result.key] = result }
    }
}
