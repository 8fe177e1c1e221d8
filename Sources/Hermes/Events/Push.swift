// Hermes
// SPDX-License-Identifier: Apache-2.0

public import SwiftProtobuf

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A push from a back end.
public struct Push: Hashable, Sendable {
    /// The push's id: 26 characters, sortable by time.
    public var id: String
    /// The title: at most 256 characters.
    public var title: String
    /// The text: at most 4,096 characters.
    public var body: String
    /// The application's own JSON object, at most 16 KiB long; may be empty. See ``data(as:)``.
    public var dataJSON: String
    /// The key under which a newer push replaces this one; may be empty.
    public var collapseKey: String
    /// The time after which the push is not worth showing; nil if the back end set none.
    public var expiresAt: Date?
    /// Whether to wake a sleeping device at once.
    package var isUrgent: Bool
    /// The topic of a push to a topic; empty for a push to a user.
    public var topic: String
    /// The full name of the type of ``messageBytes``, for example "shop.OrderShipped"; may be empty.
    public var messageType: String
    /// The back end's own message, at most 16 KiB long; may be empty. See ``message(as:)``.
    public var messageBytes: [UInt8]

    package init(
        id: String,
        title: String,
        body: String,
        dataJSON: String,
        collapseKey: String,
        expiresAt: Date? = nil,
        isUrgent: Bool = false,
        topic: String = "",
        messageType: String = "",
        messageBytes: [UInt8] = []
    ) {
        self.id = id
        self.title = title
        self.body = body
        self.dataJSON = dataJSON
        self.collapseKey = collapseKey
        self.expiresAt = expiresAt
        self.isUrgent = isUrgent
        self.topic = topic
        self.messageType = messageType
        self.messageBytes = messageBytes
    }

    /// Decodes the application's own JSON into a type of the app.
    ///
    /// - Throws: DecodingError if there is no JSON, or if it does not fit the type.
    public func data<Value: Decodable>(as type: Value.Type) throws -> Value {
        try JSONDecoder().decode(type, from: Data(dataJSON.utf8))
    }

    /// Decodes the back end's own message as the app's protobuf type of the same name.
    ///
    /// ```swift
    /// if let order = try push.message(as: Shop_OrderShipped.self) { show(order) }
    /// ```
    ///
    /// - Returns: nil if the push has no message, or a message of another type.
    /// - Throws: an error of SwiftProtobuf if the bytes are not a message of this type.
    public func message<Message: SwiftProtobuf.Message>(as type: Message.Type) throws -> Message? {
        guard messageType == type.protoMessageName else { return nil }
        return try Message(serializedBytes: messageBytes)
    }
}
