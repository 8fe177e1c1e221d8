// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import NIOCore

/// The stored form of a publication without its payload. The form is only ever extended, because later versions must
/// read older files.
enum PublicationCoding {
    // MARK: Flags

    /// Returns the flags of the delivery (bits 0, 1, 2) and of the published packet (bits 4, 5, 6).
    static func flags(qos: QoS, retain: Bool, _ publication: StoredPublication) -> Int64 {
        Int64(qos.rawValue) | (retain ? 4 : 0) | Int64(publication.qos.rawValue) << 4 | (publication.retain ? 64 : 0)
    }

    static func delivery(_ flags: Int64) throws -> (qos: QoS, retain: Bool) {
        guard let qos = QoS(rawValue: UInt8(flags & 3)) else { throw StoreFailure.damagedRow }
        return (qos, flags & 4 != 0)
    }

    static func published(_ flags: Int64) throws -> (qos: QoS, retain: Bool) { try delivery(flags >> 4) }

    static func encode(_ options: SubscriptionOptions) -> Int64 {
        Int64(options.qos.rawValue) | (options.noLocal ? 4 : 0) | (options.retainAsPublished ? 8 : 0)
            | (options.isLiveAtMostOnceOnly ? 16 : 0)
    }

    static func options(_ bits: Int64, identifiers: [UInt32]) throws -> SubscriptionOptions {
        guard let qos = QoS(rawValue: UInt8(bits & 3)) else { throw StoreFailure.damagedRow }
        return SubscriptionOptions(
            qos: qos,
            noLocal: bits & 4 != 0,
            retainAsPublished: bits & 8 != 0,
            identifiers: identifiers,
            isLiveAtMostOnceOnly: bits & 16 != 0
        )
    }

    // MARK: Identifiers

    /// Encodes subscription identifiers in four bytes each, little-endian; nil if there are none.
    static func encode(_ identifiers: [UInt32]) -> [UInt8]? {
        guard !identifiers.isEmpty else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(identifiers.count * 4)
        for identifier in identifiers { StoredForm.append(UInt64(identifier), count: 4, to: &bytes) }
        return bytes
    }

    static func identifiers(_ bytes: [UInt8]) -> [UInt32] {
        var rest = bytes[...]
        var identifiers: [UInt32] = []
        while let identifier = StoredForm.take(4, from: &rest) { identifiers.append(UInt32(identifier)) }
        return identifiers
    }

    // MARK: Targets

    /// Encodes the targets that have a part of a publication: the number of sessions and their ids, then the shared
    /// subscriptions.
    static func encode(_ targets: [PublicationTarget]) -> [UInt8] {
        var bytes: [UInt8] = []
        let sessions = targets.filter { $0.share == nil }
        StoredForm.append(UInt64(sessions.count), count: 4, to: &bytes)
        for target in sessions {
            StoredForm.append(UInt64(bitPattern: target.session.rawValue), count: 8, to: &bytes)
        }
        for share in targets.compactMap(\.share) { append(share.utf8, to: &bytes) }
        return bytes
    }

    /// Adds the targets of one part to a partial publication.
    static func read(_ bytes: [UInt8], into partial: inout PartialPublication) throws {
        var rest = bytes[...]
        guard let count = StoredForm.take(4, from: &rest), rest.count >= Int(count) * 8 else {
            throw StoreFailure.damagedRow
        }
        for _ in 0..<count {
            guard let id = StoredForm.take(8, from: &rest) else { throw StoreFailure.damagedRow }
            partial.sessions.insert(DurableSessionID(rawValue: Int64(bitPattern: id)))
        }
        while !rest.isEmpty { partial.shares.insert(TopicText(try takeText(from: &rest))) }
    }

    // MARK: Details

    private static let isText: UInt8 = 1
    private static let hasContentType: UInt8 = 2
    private static let hasResponseTopic: UInt8 = 4
    private static let hasCorrelation: UInt8 = 8

    /// Encodes everything except the expiry, which has its own column; nil if there is nothing to encode. The column
    /// of the expiry then shows whether there are details.
    static func encode(_ details: PublicationDetails?) -> [UInt8]? {
        guard let details else { return nil }
        var flags: UInt8 = details.payloadIsUTF8 ? isText : 0
        if details.contentType != nil { flags |= hasContentType }
        if details.responseTopic != nil { flags |= hasResponseTopic }
        if details.correlationData != nil { flags |= hasCorrelation }
        guard flags != 0 || !details.userProperties.isEmpty || details.expiresAt == nil else { return nil }
        var bytes = [flags]
        if let text = details.contentType { append(text.utf8, to: &bytes) }
        if let text = details.responseTopic { append(text.utf8, to: &bytes) }
        if let data = details.correlationData { append(data.readableBytesView, to: &bytes) }
        for (name, value) in details.userProperties {
            append(name.utf8, to: &bytes)
            append(value.utf8, to: &bytes)
        }
        return bytes
    }

    static func details(_ bytes: [UInt8]?, expiresAt: Timestamp?) throws -> PublicationDetails? {
        guard let bytes, let flags = bytes.first else {
            return expiresAt.map { PublicationDetails(expiresAt: $0) }
        }
        var rest = bytes.dropFirst()
        let contentType = flags & hasContentType == 0 ? nil : try takeText(from: &rest)
        let responseTopic = flags & hasResponseTopic == 0 ? nil : try takeText(from: &rest)
        let correlation = flags & hasCorrelation == 0 ? nil : ByteBuffer(bytes: try take(from: &rest))
        var properties: [(name: String, value: String)] = []
        while !rest.isEmpty { properties.append((try takeText(from: &rest), try takeText(from: &rest))) }
        return PublicationDetails(
            expiresAt: expiresAt,
            payloadIsUTF8: flags & isText != 0,
            contentType: contentType,
            responseTopic: responseTopic,
            correlationData: correlation,
            userProperties: properties
        )
    }

    /// Appends the length in four bytes, then the bytes.
    private static func append(_ content: some Collection<UInt8>, to bytes: inout [UInt8]) {
        StoredForm.append(UInt64(content.count), count: 4, to: &bytes)
        bytes.append(contentsOf: content)
    }

    private static func take(from bytes: inout ArraySlice<UInt8>) throws -> ArraySlice<UInt8> {
        guard let count = StoredForm.take(4, from: &bytes), bytes.count >= Int(count) else {
            throw StoreFailure.damagedRow
        }
        defer { bytes = bytes.dropFirst(Int(count)) }
        return bytes.prefix(Int(count))
    }

    private static func takeText(from bytes: inout ArraySlice<UInt8>) throws -> String {
        String(decoding: try take(from: &bytes), as: UTF8.self)
    }
}
