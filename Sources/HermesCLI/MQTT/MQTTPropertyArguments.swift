// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Hermes
import NIOCore

/// Options with several words, as in mosquitto_pub and mosquitto_sub: `-D publish user-property a b`.
///
/// The argument parser supports only options with one word, so the words are joined before the parser sees them.
enum MQTTPropertyArguments {
    /// A control character that separates the joined words and does not occur in usual arguments.
    private static let separator: Character = "\u{1F}"

    /// Joins the words after each -D of `hermes pub` and `hermes sub`. Leaves all other arguments unchanged.
    static func joined(_ arguments: [String]) -> [String] {
        guard let command = arguments.first, command == "pub" || command == "sub" else { return arguments }
        var result: [String] = []
        var rest = arguments[...]
        while let word = rest.popFirst() {
            result.append(word)
            if word == "--" { break }
            guard word == "-D" || word == "--property" else { continue }
            let count = rest.dropFirst().first == "user-property" ? 4 : 3
            result.append(rest.prefix(count).joined(separator: String(separator)))
            rest = rest.dropFirst(count)
        }
        return result + rest
    }

    /// Returns the words that were joined into an argument.
    static func words(_ argument: String) -> [String] {
        argument.split(separator: separator, omittingEmptySubsequences: false).map(String.init)
    }
}

/// The value of -D: a property of a packet.
struct MQTTPropertyArgument: Hashable, Sendable {
    /// The packet that gets the property.
    enum Command: String, CaseIterable, Sendable {
        case connect, publish, subscribe, unsubscribe, disconnect, will
    }

    enum Property: Hashable, Sendable {
        case payloadFormatIndicator(Bool)
        case messageExpiryInterval(UInt32)
        case contentType(String)
        case responseTopic(String)
        case correlationData(String)
        case userProperty(String, String)
        case subscriptionIdentifier(Int)
        case sessionExpiryInterval(UInt32)
        case receiveMaximum(UInt16)
        case maximumPacketSize(UInt32)
        case topicAliasMaximum(UInt16)
        case willDelayInterval(UInt32)
    }

    let command: Command
    let property: Property

    init(words: [String]) throws(ValidationError) {
        guard words.count >= 3 else {
            throw ValidationError("-D needs COMMAND NAME VALUE, for example: -D publish content-type text/plain")
        }
        guard let command = Command(rawValue: words[0]) else {
            let all = Command.allCases.map(\.rawValue).joined(separator: ", ")
            throw ValidationError("-D \(words[0]): must be one of \(all)")
        }
        self.command = command
        property = try Self.property(words[1], words[2], words.count > 3 ? words[3] : nil)
        guard Self.allowed(words[1], in: command) else {
            throw ValidationError(
                "-D \(words[0]) \(words[1]): \(words[0]) has no such property, or hermes does not support it"
            )
        }
    }

    private static func property(_ name: String, _ value: String, _ second: String?) throws(ValidationError) -> Property
    {
        func number<Number: FixedWidthInteger>(_ type: Number.Type) throws(ValidationError) -> Number {
            guard let number = Number(value) else {
                throw ValidationError("-D … \(name) \(value): must be 0 to \(Number.max)")
            }
            return number
        }
        switch name {
        case "payload-format-indicator":
            guard value == "0" || value == "1" else { throw ValidationError("-D … \(name) \(value): must be 0 or 1") }
            return .payloadFormatIndicator(value == "1")
        case "message-expiry-interval": return .messageExpiryInterval(try number(UInt32.self))
        case "content-type": return .contentType(value)
        case "response-topic": return .responseTopic(value)
        case "correlation-data": return .correlationData(value)
        case "user-property":
            guard let second else { throw ValidationError("-D … user-property NAME VALUE: the value is missing") }
            return .userProperty(value, second)
        case "subscription-identifier":
            let identifier = Int(try number(UInt32.self))
            guard (1...268_435_455).contains(identifier) else {
                throw ValidationError("-D … \(name) \(value): must be 1 to 268435455")
            }
            return .subscriptionIdentifier(identifier)
        case "session-expiry-interval": return .sessionExpiryInterval(try number(UInt32.self))
        case "receive-maximum":
            let maximum = try number(UInt16.self)
            guard maximum > 0 else { throw ValidationError("-D … \(name) 0: must be at least 1") }
            return .receiveMaximum(maximum)
        case "maximum-packet-size": return .maximumPacketSize(try number(UInt32.self))
        case "topic-alias-maximum": return .topicAliasMaximum(try number(UInt16.self))
        case "will-delay-interval": return .willDelayInterval(try number(UInt32.self))
        default: throw ValidationError("-D … \(name): there is no such property, or hermes does not support it")
        }
    }

    private static func allowed(_ name: String, in command: Command) -> Bool {
        switch command {
        case .connect:
            [
                "session-expiry-interval", "receive-maximum", "maximum-packet-size", "topic-alias-maximum",
                "user-property",
            ].contains(name)
        case .publish, .will:
            [
                "payload-format-indicator", "message-expiry-interval", "content-type", "response-topic",
                "correlation-data", "user-property",
            ].contains(name) || (command == .will && name == "will-delay-interval")
        case .subscribe:
            name == "subscription-identifier"
        case .unsubscribe, .disconnect:
            false
        }
    }
}

extension [MQTTPropertyArgument] {
    /// The properties for one packet, in order.
    func of(_ command: MQTTPropertyArgument.Command) -> [MQTTPropertyArgument.Property] {
        filter { $0.command == command }.map(\.property)
    }

    /// The properties of a published message, or of the will.
    func message(_ command: MQTTPropertyArgument.Command) -> MQTTMessage.Properties {
        var properties = MQTTMessage.Properties()
        for property in of(command) {
            switch property {
            case .payloadFormatIndicator(let isText): properties.isText = isText
            case .messageExpiryInterval(let seconds): properties.expiry = .seconds(Int64(seconds))
            case .contentType(let type): properties.contentType = type
            case .responseTopic(let topic): properties.responseTopic = topic
            case .correlationData(let data): properties.correlationData = ByteBuffer(string: data)
            case .userProperty(let name, let value): properties.userProperties.append(.init(name, value))
            case .subscriptionIdentifier, .sessionExpiryInterval, .receiveMaximum, .maximumPacketSize,
                .topicAliasMaximum, .willDelayInterval:
                break  // not a property of a message
            }
        }
        return properties
    }
}
