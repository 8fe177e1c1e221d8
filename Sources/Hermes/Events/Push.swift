// Hermes
// SPDX-License-Identifier: Apache-2.0

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A push from a back end.
public struct Push: Hashable, Sendable {
    /// The push's id: 26 characters, sortable by time.
    public var id: String
    /// The title: at most 256 bytes.
    public var title: String
    /// The text: at most 4 KiB.
    public var body: String
    /// The application's own JSON object: at most 16 KiB; may be empty.
    public var dataJSON: String
    /// The key under which a newer push replaces this one; may be empty.
    public var collapseKey: String
    /// The time after which the push is not worth showing; nil if unsaid.
    public var expiresAt: Date?
    /// Whether to wake a sleeping device at once.
    public var isUrgent: Bool
    /// The topic of a push to a topic; empty for a push to a user.
    public var topic: String

    package init(
        id: String,
        title: String,
        body: String,
        dataJSON: String,
        collapseKey: String,
        expiresAt: Date? = nil,
        isUrgent: Bool = false,
        topic: String = ""
    ) {
        self.id = id
        self.title = title
        self.body = body
        self.dataJSON = dataJSON
        self.collapseKey = collapseKey
        self.expiresAt = expiresAt
        self.isUrgent = isUrgent
        self.topic = topic
    }
}
