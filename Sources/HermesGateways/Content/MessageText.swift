// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
import HermesWire
import SwiftProtobuf

/// Converts text to message contents, and message contents to text or JSON, mainly for the HTTP API.
package enum MessageText {
    /// The longest text, in bytes. The limit on the content of a message (`limits.message`) may be lower.
    package static let maxBytes = CanonicalContent.maxTextBytes

    /// Encodes a text as the content of a message.
    /// - Throws: `.tooLarge`.
    package static func content(_ text: String) throws(HermesError) -> MessageContent {
        var content = Hermes_V1_Content()
        content.text = text
        return try CanonicalContent.validated(content).get()
    }

    /// Returns the text of a message; nil if the content is not a text.
    package static func text(of content: MessageContent) -> String? {
        guard case .text(let text) = CanonicalContent.parsed(content).kind else { return nil }
        return text
    }

    /// Returns the content as the JSON of `hermes.v1.Content`.
    package static func json(of content: MessageContent) -> String {
        // This cannot fail, because all values have a JSON form.
        (try? CanonicalContent.parsed(content).jsonString()) ?? "{}"
    }
}
