// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Hermes
import NIOCore

/// The connection options of `hermes pub` and `hermes sub`, named as in mosquitto_pub and mosquitto_sub.
struct MQTTOptions: ParsableArguments {
    @Option(name: [.customShort("h"), .long], help: ArgumentHelp("The server's name or address.", valueName: "host"))
    var host: String?

    @Option(
        name: [.short, .long],
        help: ArgumentHelp(
            "The server's port. Default: 1883, or 8883 with TLS. Port 8883 implies TLS.",
            valueName: "port"
        )
    )
    var port: Int?

    @Option(
        name: [.customShort("L"), .long],
        help: ArgumentHelp(
            "Server, login and topic in one: mqtt://USER:PASSWORD@HOST:PORT/TOPIC; mqtts:// with TLS.",
            valueName: "url"
        )
    )
    var url: String?

    @Option(name: [.customShort("u"), .long], help: ArgumentHelp("The user name.", valueName: "name"))
    var username: String?

    @Option(
        name: [.customShort("P"), .customLong("pw")],
        parsing: .unconditional,
        help: ArgumentHelp(
            "The password or token. Other users can see it on the command line. Default: HERMES_PASSWORD.",
            valueName: "password"
        )
    )
    var password: String?

    @Option(
        name: [.short, .customLong("id")],
        help: ArgumentHelp("The client id. Default: a new one.", valueName: "id")
    )
    var id: String?

    @Option(
        name: [.customShort("I"), .long],
        help: ArgumentHelp("The prefix of the client id; the process id follows.", valueName: "text")
    )
    var idPrefix: String?

    @Option(
        name: [.customShort("V"), .long],
        help: ArgumentHelp("mqttv5 or mqttv311 (also 5 or 311).", valueName: "version")
    )
    var protocolVersion = "mqttv5"

    @Option(
        name: [.short, .long],
        help: ArgumentHelp("The keep-alive interval; 0 means no keep-alive.", valueName: "seconds")
    )
    var keepalive = 60

    @Flag(
        name: [.customShort("c"), .long],
        help: "Keep the session, so that the server stores messages for the next connection. Needs -i or -I."
    )
    var disableCleanSession = false

    @Option(
        name: [.customShort("x"), .long],
        parsing: .unconditional,
        help: ArgumentHelp(
            "How long the server keeps the session. -1 means forever, which is the default with -c.",
            valueName: "seconds"
        )
    )
    var sessionExpiryInterval: Int64?

    @Option(
        name: [.customShort("D"), .long],
        help: ArgumentHelp(
            "A property of a packet: connect, publish, subscribe or will. "
                + "The value of a user-property is a name and a value.",
            valueName: "command name value"
        ),
        transform: { try MQTTPropertyArgument(words: MQTTPropertyArguments.words($0)) }
    )
    var property: [MQTTPropertyArgument] = []

    @Option(
        help: ArgumentHelp(
            "The topic of the will, which the server publishes if the connection breaks.",
            valueName: "topic"
        )
    )
    var willTopic: String?

    @Option(parsing: .unconditional, help: ArgumentHelp("The payload of the will.", valueName: "text"))
    var willPayload: String?

    @Option(help: ArgumentHelp("The will's QoS: 0, 1 or 2.", valueName: "qos"))
    var willQos = 0

    @Flag(help: "Retain the will for later subscribers.")
    var willRetain = false

    @Flag(help: "Encrypt the connection, and trust the system's certificates.")
    var tls = false

    @Flag(name: .customLong("tls-use-os-certs"), help: .hidden)
    var usesSystemCertificates = false

    @Option(help: ArgumentHelp("Trust the certificates in this PEM file; implies --tls.", valueName: "file"))
    var cafile: String?

    @Option(help: ArgumentHelp("Present this client certificate (PEM); implies --tls.", valueName: "file"))
    var cert: String?

    @Option(help: ArgumentHelp("The private key of the client certificate (PEM).", valueName: "file"))
    var key: String?

    @Flag(help: "Do not check the server's certificate; for experiments only; implies --tls.")
    var insecure = false

    @Option(help: ArgumentHelp("Connect by WebSocket, with this path, for example /mqtt.", valueName: "path"))
    var wsPath: String?

    @Flag(name: [.customShort("d"), .long], help: "Describe each step on stderr.")
    var debug = false

    @Flag(help: "Print no errors.")
    var quiet = false

    @Flag(name: .customLong("nodelay"), help: .hidden)
    var noDelay = false

    func validate() throws {
        if let port, !(1...65_535).contains(port) { throw ValidationError("-p \(port): must be 1 to 65535") }
        guard (0...65_535).contains(keepalive) else { throw ValidationError("-k \(keepalive): must be 0 to 65535") }
        guard (0...2).contains(willQos) else { throw ValidationError("--will-qos \(willQos): must be 0, 1 or 2") }
        if willTopic == nil, willPayload != nil || willRetain || willQos != 0 {
            throw ValidationError("a will needs a --will-topic")
        }
        let version = try version()
        if version == .v311, !property.isEmpty || sessionExpiryInterval != nil {
            throw ValidationError("-D and -x: MQTT 3.1.1 has no properties; use -V mqttv5")
        }
        if let expiry = sessionExpiryInterval, !(-1...4_294_967_295).contains(expiry) {
            throw ValidationError("-x \(expiry): must be -1 to 4294967295")
        }
        if disableCleanSession, id == nil, idPrefix == nil {
            throw ValidationError("-c needs a client id: give -i ID")
        }
        if id != nil, idPrefix != nil { throw ValidationError("-i and -I cannot be used together") }
        if key != nil, cert == nil { throw ValidationError("--key needs the key's certificate: give --cert") }
        if let url {
            guard host == nil, port == nil, username == nil, password == nil else {
                throw ValidationError("-L cannot be used with -h, -p, -u or -P: put these values into the URL")
            }
            guard MQTTURL(url) != nil else {
                throw ValidationError("-L \(url): must be mqtt://[USER[:PASSWORD]@]HOST[:PORT]/TOPIC, or mqtts://…")
            }
        }
    }

    func version() throws -> MQTTClient.Version {
        switch protocolVersion.lowercased() {
        case "5", "mqttv5": .v5
        case "311", "4", "mqttv311": .v311
        default: throw ValidationError("-V \(protocolVersion): must be mqttv5 or mqttv311")
        }
    }

    /// The topic in the URL of -L; nil without -L.
    var urlTopic: String? { url.flatMap { MQTTURL($0)?.topic } }

    var address: ServerAddress {
        let url = url.flatMap { MQTTURL($0) }
        let wanted = url?.port ?? port
        let usesTLS =
            tls || usesSystemCertificates || cafile != nil || cert != nil || insecure || url?.usesTLS == true
            || (url == nil && wanted == 8883)
        var options = TLSOptions(trustedCertificates: cafile.map { .file($0) }, verifiesServer: !insecure)
        options.certificate = cert.map { .file($0) }
        options.privateKey = key.map { .file($0) }
        // Clear text is the default, as in mosquitto's tools.
        return ServerAddress(
            host: url?.host ?? host ?? "localhost",
            port: wanted ?? (usesTLS ? 8883 : 1883),
            webSocketPath: wsPath,
            security: usesTLS ? .tls(options) : .clearText
        )
    }

    /// The client's configuration.
    func configuration() throws -> MQTTClient.Configuration {
        let version = try version()
        var configuration = MQTTClient.Configuration(server: address)
        configuration.version = version
        configuration.clientID =
            id ?? idPrefix.map { "\($0)\(ProcessInfo.processInfo.processIdentifier)" }
            ?? (version == .v311 ? "hermes-\(UInt64.random(in: 0...UInt64.max))" : "")
        configuration.cleanStart = !disableCleanSession
        let expiry = sessionExpiryInterval ?? (disableCleanSession ? -1 : 0)
        configuration.sessionExpiry = .seconds(expiry < 0 ? Int64(UInt32.max) : expiry)
        let url = url.flatMap { MQTTURL($0) }
        configuration.userName = url?.userName ?? username
        configuration.password = url?.password ?? password
        if configuration.password == nil, configuration.userName != nil {
            configuration.password = ProcessInfo.processInfo.environment["HERMES_PASSWORD"]
        }
        // With 0, there is no keep alive. The interval of a year does not fit into the field in CONNECT, so the field
        // is 0.
        configuration.heartbeat.interval = keepalive == 0 ? .seconds(86_400 * 365) : .seconds(keepalive)
        configuration.reconnect = .interactive
        if let willTopic {
            var message = MQTTMessage(topic: willTopic, text: willPayload ?? "")
            message.qos = MQTTClient.QoS(rawValue: UInt8(clamping: willQos)) ?? .atMostOnce
            message.retain = willRetain
            message.properties = property.message(.will)
            configuration.will = message
        }
        for property in property.of(.will) {
            if case .willDelayInterval(let seconds) = property { configuration.willDelay = .seconds(Int64(seconds)) }
        }
        for property in property.of(.connect) {
            switch property {
            case .sessionExpiryInterval(let seconds): configuration.sessionExpiry = .seconds(Int64(seconds))
            case .receiveMaximum(let maximum): configuration.receiveMaximum = Int(maximum)
            case .maximumPacketSize(let bytes): configuration.maxPacketBytes = Int(bytes)
            case .topicAliasMaximum(let maximum): configuration.topicAliasMaximum = Int(maximum)
            case .userProperty(let name, let value): configuration.userProperties.append(.init(name, value))
            default: break  // not a property of CONNECT
            }
        }
        return configuration
    }
}

/// A URL with a server, a login and a topic.
struct MQTTURL: Hashable {
    let usesTLS: Bool
    let host: String
    let port: Int?
    let userName: String?
    let password: String?
    let topic: String

    init?(_ text: String) {
        guard let scheme = text.range(of: "://") else { return nil }
        switch text[..<scheme.lowerBound].lowercased() {
        case "mqtt": usesTLS = false
        case "mqtts": usesTLS = true
        default: return nil
        }
        // The topic may contain characters that are special in URLs, such as #.
        let rest = text[scheme.upperBound...]
        guard let slash = rest.firstIndex(of: "/") else { return nil }
        topic = String(rest[rest.index(after: slash)...])
        guard !topic.isEmpty else { return nil }
        var place = rest[..<slash]
        if let at = place.lastIndex(of: "@") {
            let login = place[..<at].split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            userName = String(login[0]).removingPercentEncoding
            password = login.count > 1 ? String(login[1]).removingPercentEncoding : nil
            place = place[place.index(after: at)...]
        } else {
            userName = nil
            password = nil
        }
        if place.hasPrefix("["), let end = place.firstIndex(of: "]") {
            host = String(place[place.index(after: place.startIndex)..<end])
            place = place[place.index(after: end)...]
        } else {
            let end = place.firstIndex(of: ":") ?? place.endIndex
            host = String(place[..<end])
            place = place[end...]
        }
        guard !host.isEmpty else { return nil }
        if place.isEmpty {
            port = nil
        } else {
            guard place.hasPrefix(":"), let number = Int(place.dropFirst()), (1...65_535).contains(number) else {
                return nil
            }
            port = number
        }
    }
}
