// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire

/// The topic filter of a subscription: as the client wrote it, and as it is matched (4.7, 4.8.2).
struct MQTTFilter {
    /// The client's text, with the group of a shared subscription.
    let text: TopicText
    let filter: TopicFilter
    /// The group of a shared subscription.
    let group: String?
    let shape: TopicShape

    /// Creates a filter; nil if the text is not a valid filter, is too long or has too many levels.
    init?(_ text: String) {
        let shared = MQTTTopic.sharedParts(of: text)
        guard let (filter, shape) = TopicFilter.withShape(shared.map { String($0.filter) } ?? text) else { return nil }
        self.text = TopicText(text)
        self.filter = filter
        group = shared.map { String($0.group) }
        self.shape = shared == nil ? shape : shape.shared
    }
}
