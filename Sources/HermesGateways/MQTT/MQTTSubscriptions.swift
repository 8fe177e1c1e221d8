// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire

/// The subscriptions of one client, and their costs. This type does no I/O.
///
/// The shape of a filter (``TopicShape``) is the set of positions of its wildcards. The shape of a new subscription is
/// counted when the subscription is granted (``reserve(_:newLease:)``). The subscription itself may be added much later
/// (``hold(_:_:)``), because it may have to be stored first. Owner: the connection's event loop.
struct MQTTSubscriptions {
    /// The subscriptions, by the client's texts.
    private(set) var held: [TopicText: MQTTHeldSubscription] = [:]
    /// The shapes of the filters of all granted subscriptions.
    private var shapes = TopicShapes()
    /// The client's part of the budget for costly shapes; created with its first costly shape.
    private(set) var lease: ShapeLease?
    /// The sum of the levels of the filters with wildcards.
    private var levels = 0
    /// The size of all texts together, in bytes.
    private var textBytes = 0
    /// Whether any subscription matches, or has ever matched, topics that the client may not read.
    var hasFiltered = false

    /// The largest number of shapes that the filters of one client may have. A publication matches at most one filter
    /// of each shape.
    static let maxShapes = 64
    /// The approximate memory of a level of a filter with wildcards, on each loop.
    private static let bytesPerLevel = 48
    /// The approximate memory of a subscription, without its text. It was measured with a million subscriptions.
    private static let bytesPerSubscription = 416
    /// The number of copies of each text: one here, and one in the index of topics.
    private static let copiesOfText = 2

    var count: Int { held.count }

    subscript(text: TopicText) -> MQTTHeldSubscription? { held[text] }

    /// The approximate memory, in bytes.
    ///
    /// - Parameter loops: the number of event loops; each has a tree of all filters with wildcards.
    func bytes(loops: Int) -> Int {
        levels &* Self.bytesPerLevel &* loops &+ Self.copiesOfText &* textBytes
            &+ Self.bytesPerSubscription &* held.count
    }

    /// Whether there is room for a new subscription.
    ///
    /// - Parameters:
    ///   - granted: the number of new subscriptions that were already granted for the same packet, and the bytes of
    ///     their texts.
    ///   - maxBytes: the maximum total size of all texts, in bytes.
    func hasRoom(
        for filter: MQTTFilter,
        besides granted: (count: Int, bytes: Int),
        maxCount: Int,
        maxBytes: Int
    ) -> Bool {
        held.count + granted.count < maxCount
            && textBytes + granted.bytes + filter.text.rawValue.utf8.count <= maxBytes
    }

    /// Counts the shape of a new subscription.
    ///
    /// - Parameter newLease: creates the client's part of the budget for costly shapes.
    /// - Returns: false if there is no room, because the client has reached its limit on shapes or the budget for
    ///   costly shapes is used up.
    mutating func reserve(_ shape: TopicShape, newLease: () -> ShapeLease) -> Bool {
        guard shapes.take(shape, limit: Self.maxShapes) else { return false }
        guard shape.isCostly, !lease(newLease).take(shape) else { return true }
        shapes.giveBack(shape)
        return false
    }

    /// Counts the shape of a subscription that was granted over an earlier connection.
    mutating func restore(_ shape: TopicShape, newLease: () -> ShapeLease) {
        shapes.add(shape)
        if shape.isCostly { lease(newLease).add(shape) }
    }

    /// Stops counting the shape of a subscription that has ended, or that was granted but is not added. A granted
    /// subscription is not added if it is refused later, or if its filter was already added.
    mutating func giveBack(_ shape: TopicShape) {
        shapes.giveBack(shape)
        lease?.giveBack(shape)
    }

    private mutating func lease(_ newLease: () -> ShapeLease) -> ShapeLease {
        let lease = lease ?? newLease()
        self.lease = lease
        return lease
    }

    /// Adds a subscription whose shape is already counted.
    mutating func hold(_ filter: MQTTFilter, _ subscription: MQTTHeldSubscription) {
        if subscription.options.isFiltered { hasFiltered = true }
        guard held.updateValue(subscription, forKey: filter.text) == nil else { return }
        textBytes += filter.text.rawValue.utf8.count
        levels += filter.shape.levels
    }

    /// Changes the options of a subscription.
    mutating func change(_ text: TopicText, _ options: SubscriptionOptions) {
        if options.isFiltered { hasFiltered = true }
        held[text]?.options = options
    }

    /// Notes that each subscription may match topics that the client may not read. The topic of each waiting message
    /// may also be forbidden, even if its subscription has ended.
    ///
    /// - Returns: the texts of all subscriptions.
    mutating func filterAll() -> [TopicText] {
        var index = held.startIndex
        while index != held.endIndex {
            if !held.values[index].options.isFiltered { held.values[index].options.isFiltered = true }
            held.formIndex(after: &index)
        }
        hasFiltered = true
        return Array(held.keys)
    }

    /// Notes whether a subscription matches topics that the client may not read.
    mutating func filter(_ text: TopicText, _ isFiltered: Bool) {
        if held[text]?.options.isFiltered != isFiltered { held[text]?.options.isFiltered = isFiltered }
    }

    /// Removes a subscription that has ended.
    ///
    /// - Returns: the subscription; nil if there was none.
    @discardableResult
    mutating func end(_ text: TopicText) -> MQTTHeldSubscription? {
        guard let ended = held.removeValue(forKey: text) else { return nil }
        let shape = TopicShape(of: text.rawValue)
        textBytes -= text.rawValue.utf8.count
        levels -= shape.levels
        giveBack(shape)
        return ended
    }
}
