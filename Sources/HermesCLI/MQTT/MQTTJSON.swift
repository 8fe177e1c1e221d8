// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import Hermes
import NIOCore

/// A message as one line of JSON, with the members of mosquitto_sub's %j and %J.
enum MQTTJSON {
    /// - Parameter payloadIsJSON: whether the payload is inserted as JSON instead of as a string.
    /// - Throws: ClientFailure if `payloadIsJSON` is true and the payload is not JSON.
    static func object(_ message: MQTTMessage, at date: Date, payloadIsJSON: Bool) throws -> [UInt8] {
        var members = [
            "\"tst\":\"\(MQTTTime.iso(date, fraction: true))\"",
            "\"topic\":\(quoted(message.topic.utf8))",
            "\"qos\":\(message.qos.rawValue)",
            "\"retain\":\(message.retain ? 1 : 0)",
            "\"payloadlen\":\(message.payload.readableBytes)",
        ]
        if message.qos != .atMostOnce { members.append("\"mid\":\(message.packetID)") }
        let properties = properties(message.properties)
        if !properties.isEmpty { members.append("\"properties\":{\(properties.joined(separator: ","))}") }
        let payload = message.payload.readableBytesView
        guard payloadIsJSON else {
            members.append("\"payload\":\(quoted(payload))")
            return Array("{\(members.joined(separator: ","))}".utf8)
        }
        guard (try? JSONSerialization.jsonObject(with: Data(payload), options: .fragmentsAllowed)) != nil else {
            throw ClientFailure("a payload is not JSON, on the topic \(message.topic.printable)")
        }
        return Array("{\(members.joined(separator: ",")),\"payload\":".utf8) + payload + [UInt8(ascii: "}")]
    }

    private static func properties(_ properties: MQTTMessage.Properties) -> [String] {
        var members: [String] = []
        if let alias = properties.topicAlias { members.append("\"topic-alias\":\(alias)") }
        let identifiers = properties.subscriptionIdentifiers
        if identifiers.count == 1 {
            members.append("\"subscription-identifier\":\(identifiers[0])")
        } else if !identifiers.isEmpty {
            members.append("\"subscription-identifier\":[\(identifiers.map(String.init).joined(separator: ","))]")
        }
        if !properties.userProperties.isEmpty {
            let pairs = properties.userProperties.map { "\(quoted($0.name.utf8)):\(quoted($0.value.utf8))" }
            members.append("\"user-properties\":{\(pairs.joined(separator: ","))}")
        }
        if let type = properties.contentType { members.append("\"content-type\":\(quoted(type.utf8))") }
        if let topic = properties.responseTopic { members.append("\"response-topic\":\(quoted(topic.utf8))") }
        if let data = properties.correlationData {
            members.append("\"correlation-data\":\(quoted(data.readableBytesView))")
        }
        if let isText = properties.isText { members.append("\"payload-format-indicator\":\(isText ? 1 : 0)") }
        if let expiry = properties.expiry { members.append("\"message-expiry-interval\":\(expiry.components.seconds)") }
        return members
    }

    /// Returns a JSON string; invalid UTF-8 becomes U+FFFD.
    private static func quoted(_ bytes: some Collection<UInt8>) -> String {
        var result = "\""
        for scalar in String(decoding: bytes, as: UTF8.self).unicodeScalars {
            switch scalar {
            case "\"", "\\": result += "\\\(scalar)"
            case "\n": result += "\\n"
            case "\r": result += "\\r"
            case "\t": result += "\\t"
            case _ where scalar.value < 0x20 || scalar.value == 0x7F:
                result += String(format: "\\u%04x", scalar.value)
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }
}

/// Times as text, in local time.
enum MQTTTime {
    /// Formats a time as 2026-05-07T08:09:10+0200, with microseconds if `fraction` is true.
    static func iso(_ date: Date, fraction: Bool = false) -> String {
        let micros = fraction ? String(format: ".%06d", nanoseconds(date) / 1000) : ""
        return strftime("%Y-%m-%dT%H:%M:%S", date) + micros + strftime("%z", date)
    }

    /// Returns the seconds since 1970, with nine decimal places.
    static func unix(_ date: Date) -> String {
        String(format: "%lld.%09d", Int64(date.timeIntervalSince1970.rounded(.down)), nanoseconds(date))
    }

    /// Formats a time with a conversion character of strftime. The additional character "N" gives the nanoseconds.
    static func words(_ conversion: String, _ date: Date) -> String {
        conversion == "N" ? String(format: "%09d", nanoseconds(date)) : strftime("%\(conversion)", date)
    }

    private static func nanoseconds(_ date: Date) -> Int {
        let time = date.timeIntervalSince1970
        return min(999_999_999, max(0, Int((time - time.rounded(.down)) * 1e9)))
    }

    private static func strftime(_ format: String, _ date: Date) -> String {
        var seconds = time_t(date.timeIntervalSince1970.rounded(.down))
        var parts = tm()
        guard localtime_r(&seconds, &parts) != nil else { return "" }
        var buffer = [CChar](repeating: 0, count: 256)
        let count = Foundation.strftime(&buffer, buffer.count, format, &parts)
        return String(decoding: buffer.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
