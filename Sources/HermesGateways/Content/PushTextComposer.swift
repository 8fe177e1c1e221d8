// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
import HermesWire

/// Composes the text of a notification for a message.
package enum PushTextComposer {
    /// The part of a message that the push services see.
    package enum Preview: String, Sendable, CaseIterable {
        /// The sender and the text.
        case full
        /// Only the sender.
        case sender
        /// Neither the sender nor the text.
        case none
    }

    /// The longest text, in characters; no screen shows more.
    private static let maxCharacters = 500

    /// Returns the title and the body of the notification.
    package static func text(of message: Message, preview: Preview) -> PushText {
        switch preview {
        case .full: PushText(title: message.senderName, body: body(of: message))
        case .sender: PushText(title: message.senderName, body: "New message")
        case .none: PushText(title: "", body: "New message")
        }
    }

    private static func body(of message: Message) -> String {
        switch CanonicalContent.parsed(message.content).kind {
        case .text(let text): String(text.prefix(maxCharacters))
        case .image: "🖼 Picture"
        case .sound: "🎤 Voice message"
        case .location(let location): location.label.isEmpty ? "📍 Location" : "📍 \(location.label)"
        case .video: "🎬 Video"
        case .expression(let expression): expression.name.isEmpty ? "New message" : "[\(expression.name)]"
        case .custom, nil: "New message"
        }
    }
}
