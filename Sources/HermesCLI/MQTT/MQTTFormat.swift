// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Hermes
import NIOCore

/// Prints messages in the format of `hermes sub`.
struct MQTTPrinter: Sendable {
    let format: MQTTFormat?
    let showsTopic: Bool
    let endsLine: Bool
    /// Whether the output is a terminal. A message must not control a terminal. For other outputs, bytes are printed
    /// unchanged.
    var isTerminal = false

    var output = StandardOutput()

    /// Prints a message. If the message must be acknowledged, returns only after the reader of a pipe has read it.
    ///
    /// - Throws: ClientFailure if the format does not fit the message; OutputFailure; CancellationError.
    func print(_ message: MQTTMessage) async throws {
        try output.write(try bytes(message, at: Date()))
        if message.qos != .atMostOnce { try await output.drain() }
    }

    func bytes(_ message: MQTTMessage, at date: Date) throws -> [UInt8] {
        var bytes: [UInt8]
        if let format {
            bytes = try format.bytes(message, at: date, isTerminal: isTerminal)
        } else {
            bytes = showsTopic ? Array(message.topic.utf8) + [0x20] : []
            bytes += message.payload.readableBytesView
            if isTerminal { bytes = Self.harmless(bytes) }
        }
        if endsLine { bytes.append(0x0A) }
        return bytes
    }
}

extension MQTTPrinter {
    /// Returns UTF-8 in which each harmful control character is replaced. A control character is harmful if it could
    /// move the cursor, or change colours or the direction of writing. Line ends and tabs stay.
    static func harmless(_ bytes: [UInt8]) -> [UInt8] {
        var result = ""
        for scalar in String(decoding: bytes, as: UTF8.self).unicodeScalars {
            switch scalar.value {
            case 0x09, 0x0A: result.unicodeScalars.append(scalar)
            case 0..<0x20, 0x7F..<0xA0, 0x202A...0x202E, 0x2066...0x2069: result += "\u{FFFD}"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return Array(result.utf8)
    }
}

/// A parsed format of mosquitto_sub's option -F.
struct MQTTFormat: Hashable, Sendable {
    enum Field: Character, Sendable, CaseIterable {
        case topicAlias = "A"
        case contentType = "C"
        case correlationData = "D"
        case expiry = "E"
        case payloadFormat = "F"
        case isoTime = "I"
        case json = "j"
        case jsonOfJSON = "J"
        case length = "l"
        case packetID = "m"
        case userProperties = "P"
        case payload = "p"
        case qos = "q"
        case responseTopic = "R"
        case retain = "r"
        case subscriptionIdentifiers = "S"
        case topic = "t"
        case unixTime = "U"
        case lowerHex = "x"
        case upperHex = "X"
    }

    enum Part: Hashable, Sendable {
        case literal([UInt8])
        case field(Field, Layout)
        /// A conversion character of strftime, such as "Y".
        case time(String)
    }

    struct Layout: Hashable, Sendable {
        var width = 0
        var precision: Int?
        var isLeft = false
        var padsWithZeros = false
    }

    private(set) var parts: [Part] = []

    /// Parses a format.
    ///
    /// - Throws: ValidationError that says what is wrong.
    init(_ text: String) throws(ValidationError) {
        var rest = Substring(text)
        while let character = rest.popFirst() {
            switch character {
            case "%": parts.append(try Self.field(&rest))
            case "@": parts.append(try Self.time(&rest))
            case "\\": append([try Self.escape(&rest)])
            default: append(Array(String(character).utf8))
            }
        }
    }

    private mutating func append(_ bytes: [UInt8]) {
        if case .literal(let before)? = parts.last {
            parts[parts.count - 1] = .literal(before + bytes)
        } else {
            parts.append(.literal(bytes))
        }
    }

    private static func field(_ rest: inout Substring) throws(ValidationError) -> Part {
        var layout = Layout()
        while let flag = rest.first, flag == "-" || flag == "0" {
            if flag == "-" { layout.isLeft = true } else { layout.padsWithZeros = true }
            rest.removeFirst()
        }
        layout.width = try number(&rest) ?? 0
        if rest.first == "." {
            rest.removeFirst()
            layout.precision = try number(&rest) ?? 0
        }
        guard let name = rest.popFirst() else { throw ValidationError("-F: the format ends in the middle of a %") }
        if name == "%" { return .literal([UInt8(ascii: "%")]) }
        guard let field = Field(rawValue: name) else {
            throw ValidationError("-F: there is no %\(name); %% prints a percent sign")
        }
        return .field(field, layout)
    }

    private static func number(_ rest: inout Substring) throws(ValidationError) -> Int? {
        let digits = rest.prefix { $0.isASCII && $0.isNumber }
        guard !digits.isEmpty else { return nil }
        rest = rest.dropFirst(digits.count)
        guard let number = Int(digits), number <= 10_000 else {
            throw ValidationError("-F: a width or precision of \(digits) is more than 10000")
        }
        return number
    }

    private static func time(_ rest: inout Substring) throws(ValidationError) -> Part {
        guard let name = rest.popFirst() else { throw ValidationError("-F: the format ends with an @") }
        if name == "@" { return .literal([UInt8(ascii: "@")]) }
        guard name.isASCII, name.isLetter else {
            throw ValidationError("-F: there is no @\(name); @@ prints an @")
        }
        return .time(String(name))
    }

    private static func escape(_ rest: inout Substring) throws(ValidationError) -> UInt8 {
        switch rest.popFirst() {
        case "\\": return UInt8(ascii: "\\")
        case "0": return 0
        case "a": return 0x07
        case "e": return 0x1B
        case "n": return 0x0A
        case "r": return 0x0D
        case "t": return 0x09
        case "v": return 0x0B
        case let other?: throw ValidationError("-F: there is no \\\(other); \\\\ prints a backslash")
        case nil: throw ValidationError("-F: the format ends with a backslash")
        }
    }
}

// MARK: - Printing
extension MQTTFormat {
    /// Returns the message in this format.
    ///
    /// - Parameter isTerminal: whether the message's control characters are replaced. The format's own characters stay.
    /// - Throws: ClientFailure if %J is used and the payload is not JSON.
    func bytes(_ message: MQTTMessage, at date: Date, isTerminal: Bool = false) throws -> [UInt8] {
        var result: [UInt8] = []
        for part in parts {
            switch part {
            case .literal(let bytes): result += bytes
            case .time(let name): result += MQTTTime.words(name, date).utf8
            case .field(let field, let layout):
                let (bytes, isNumber) = try Self.value(of: field, message, at: date, precision: layout.precision)
                let shown = isTerminal && !isNumber ? MQTTPrinter.harmless(bytes) : bytes
                result += layout.laidOut(shown, isNumber: isNumber)
            }
        }
        return result
    }

    private static func value(
        of field: Field,
        _ message: MQTTMessage,
        at date: Date,
        precision: Int?
    ) throws -> ([UInt8], isNumber: Bool) {
        let properties = message.properties
        func text(_ text: String?) -> ([UInt8], isNumber: Bool) { (limited((text ?? "").utf8), false) }
        func number(_ number: Int?) -> ([UInt8], isNumber: Bool) {
            (number.map { Array(String($0).utf8) } ?? [], number != nil)
        }
        func limited(_ bytes: some Collection<UInt8>) -> [UInt8] { Array(bytes.prefix(precision ?? bytes.count)) }
        switch field {
        case .topic: return text(message.topic)
        case .payload: return (limited(message.payload.readableBytesView), false)
        case .lowerHex, .upperHex:
            let digits = Array((field == .lowerHex ? "0123456789abcdef" : "0123456789ABCDEF").utf8)
            let hex = limited(message.payload.readableBytesView).flatMap {
                [digits[Int($0 >> 4)], digits[Int($0 & 15)]]
            }
            return (hex, true)
        case .qos: return number(Int(message.qos.rawValue))
        case .retain: return number(message.retain ? 1 : 0)
        case .packetID: return number(Int(message.packetID))
        case .length: return number(message.payload.readableBytes)
        case .contentType: return text(properties.contentType)
        case .responseTopic: return text(properties.responseTopic)
        case .correlationData: return (limited(properties.correlationData?.readableBytesView ?? .init()), false)
        case .expiry: return number(properties.expiry.map { Int($0.components.seconds) })
        case .payloadFormat: return number(properties.isText.map { $0 ? 1 : 0 })
        case .topicAlias: return number(properties.topicAlias)
        case .subscriptionIdentifiers:
            return text(properties.subscriptionIdentifiers.map(String.init).joined(separator: " "))
        case .userProperties:
            return text(properties.userProperties.map { "\($0.name):\($0.value)" }.joined(separator: " "))
        case .isoTime: return text(MQTTTime.iso(date))
        case .unixTime: return text(MQTTTime.unix(date))
        case .json: return (try MQTTJSON.object(message, at: date, payloadIsJSON: false), false)
        case .jsonOfJSON: return (try MQTTJSON.object(message, at: date, payloadIsJSON: true), false)
        }
    }
}

extension MQTTFormat.Layout {
    /// Pads a value to the width.
    func laidOut(_ bytes: [UInt8], isNumber: Bool) -> [UInt8] {
        // The width counts scalars. In UTF-8, all bytes of a scalar except its first begin with the bits 10.
        let count = bytes.count { $0 & 0xC0 != 0x80 }
        guard count < width else { return bytes }
        let zeros = padsWithZeros && isNumber && !isLeft
        let padding = [UInt8](repeating: UInt8(ascii: zeros ? "0" : " "), count: width - count)
        return isLeft ? bytes + padding : padding + bytes
    }
}
