// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesCore
import HermesWire

/// Shortens a notification to a service's limit, by the same rule for all services: first the data is left out, then
/// the body is cut, then the title. `hermes.truncated` tells the app to fetch the whole content from its inbox.
enum PayloadFitting {
    /// Returns the payload with as much of the notification as fits into `limit` bytes.
    ///
    /// - Parameter encode: encodes a notification; its second argument says whether something was left out.
    static func fit(
        _ notification: PushNotification,
        limit: Int,
        encode: (PushNotification, Bool) -> JSON
    ) -> Data {
        var payload = Data(encode(notification, false).text.utf8)
        guard payload.count > limit else { return payload }
        var cut = notification
        cut.data = nil
        payload = Data(encode(cut, true).text.utf8)
        for field in [\PushNotification.body, \PushNotification.title] {
            // JSON escapes some characters, so one cut may not be enough.
            while payload.count > limit, !cut[keyPath: field].isEmpty {
                let excess = payload.count - limit
                let text = cut[keyPath: field]
                let room = min(text.utf8.count - 1, max(0, text.utf8.count - excess - 3))
                cut[keyPath: field] = prefix(of: text, bytes: room)
                payload = Data(encode(cut, true).text.utf8)
            }
        }
        return payload
    }

    /// Returns as much of a text as fits, with an ellipsis at its end; empty if no character fits.
    static func prefix(of text: String, bytes: Int) -> String {
        var result = ""
        var count = 3
        for character in text {
            count += character.utf8.count
            if count > bytes { break }
            result.append(character)
        }
        return result.isEmpty ? "" : result + "…"
    }

    /// Returns the reference with which the app finds the entry in its inbox.
    static func reference(_ notification: PushNotification, isTruncated: Bool) -> JSON {
        .members([
            "conversation": notification.reference.conversation.map { .string($0) },
            "message": notification.reference.messageID.map { .string($0) },
            "seq": .integer(notification.reference.inboxSeq),
            "truncated": isTruncated ? true : nil,
            "uid": notification.reference.user.map { .integer($0.rawValue) },
        ])
    }

    /// Returns the application's own data; nil if there is none or it is not an object.
    static func data(of notification: PushNotification) -> JSON? {
        guard let text = notification.data, let value = try? JSONParser.parse(Array(text.utf8)), case .object = value
        else { return nil }
        return value
    }
}
