// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A text that is compared byte by byte, as servers and stores compare texts. Examples are a topic, a topic filter
/// [MQTT-4.7.3-4], a client id and the key of a record. `==` of `String` compares normalized texts, so two texts with
/// different bytes could be equal.
package struct ExactText: Hashable, Sendable {
    package let text: String

    package init(_ text: String) { self.text = text }

    package static func == (left: Self, right: Self) -> Bool { left.text.utf8.elementsEqual(right.text.utf8) }

    package func hash(into hasher: inout Hasher) {
        var text = text
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}

extension ExactText: ExpressibleByStringLiteral {
    package init(stringLiteral text: String) { self.init(text) }
}
