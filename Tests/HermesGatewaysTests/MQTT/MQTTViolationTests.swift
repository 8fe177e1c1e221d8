// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesGateways
import HermesTestKit
import HermesWire
import NIOCore
import Testing

/// Packets that break the rules. Each is sent over a separate connection, which has to end without harm to another
/// connection.
@Suite(.inTurns, .timeLimit(.minutes(2))) struct MQTTViolationTests {
    /// Bytes, and the statements of the standards that they violate.
    struct Violation: Sendable, CustomTestStringConvertible {
        let statements: String
        let version: MQTTVersion
        let hex: String
        /// The reason code of DISCONNECT in 5.0.
        let reason: MQTTReasonCode
        var testDescription: String { statements }

        init(
            _ statements: String,
            _ version: MQTTVersion,
            _ hex: String,
            _ reason: MQTTReasonCode = .malformedPacket
        ) {
            (self.statements, self.version, self.hex) = (statements, version, hex.filter { !$0.isWhitespace })
            self.reason = reason
        }
    }

    /// Makes a packet from its header and its body.
    private static func packet(_ header: String, _ body: String) -> String {
        let body = body.filter { !$0.isWhitespace }
        let length = String(body.count / 2, radix: 16)
        return header + (length.count == 1 ? "0" : "") + length + body
    }

    /// Makes a CONNECT with these flags and this payload. The payload begins with the client identifier.
    private static func connect(_ version: MQTTVersion, _ flags: String, _ payload: String) -> String {
        let level = version == .v5 ? "05" : "04"
        return packet("10", "0004 4d515454" + level + flags + "003c" + (version == .v5 ? "00" : "") + payload)
    }

    private static let client = "0001 61"

    // MARK: In place of CONNECT

    static let beforeConnect: [Violation] = [
        Violation("3.1.1 [MQTT-3.1.0-1]: PUBLISH first", .v311, "30 03 0001 61"),
        Violation("5.0 [MQTT-3.1.0-1]: PINGREQ first", .v5, "c0 00"),
        Violation("3.1.1 [MQTT-3.1.2-1]: another protocol name", .v311, "10 0d 0004 4d515458 04 02 003c 0001 61"),
        Violation("5.0 [MQTT-3.1.2-1]: another protocol name", .v5, "10 0e 0004 4d515458 05 02 003c 00 0001 61"),
        Violation("3.1.1 [MQTT-3.1.2-3] [MQTT-3.1.4-1]: the reserved flag", .v311, connect(.v311, "03", client)),
        Violation("5.0 [MQTT-3.1.2-3] [MQTT-3.1.4-1]: the reserved flag", .v5, connect(.v5, "03", client)),
        Violation(
            "3.1.1 [MQTT-3.1.2-13] [MQTT-3.1.2-11]: a will's QoS without a will",
            .v311,
            connect(.v311, "0a", client)
        ),
        Violation("5.0 [MQTT-3.1.2-11]: a will's QoS without a will", .v5, connect(.v5, "0a", client)),
        Violation("3.1.1 [MQTT-3.1.2-15]: will retain without a will", .v311, connect(.v311, "22", client)),
        Violation("5.0 [MQTT-3.1.2-13]: will retain without a will", .v5, connect(.v5, "22", client)),
        Violation("3.1.1 [MQTT-3.1.2-14]: a will of QoS 3", .v311, connect(.v311, "1e", client + "0001 77 0000")),
        Violation("5.0 [MQTT-3.1.2-12]: a will of QoS 3", .v5, connect(.v5, "1e", client + "00 0001 77 0000")),
        Violation("3.1.1 [MQTT-3.1.2-9]: a will flag without a will", .v311, connect(.v311, "06", client)),
        Violation("5.0 [MQTT-3.1.2-9]: a will flag without a will", .v5, connect(.v5, "06", client)),
        Violation(
            "3.1.1 [MQTT-3.1.2-18]: a user name without its flag",
            .v311,
            connect(.v311, "02", client + "0001 75")
        ),
        Violation("5.0 [MQTT-3.1.2-16]: a user name without its flag", .v5, connect(.v5, "02", client + "0001 75")),
        Violation("3.1.1 [MQTT-3.1.2-19]: a flag without a user name", .v311, connect(.v311, "82", client)),
        Violation("5.0 [MQTT-3.1.2-17]: a flag without a user name", .v5, connect(.v5, "82", client)),
        Violation(
            "3.1.1 [MQTT-3.1.2-20]: a password without its flag",
            .v311,
            connect(.v311, "82", client + "0001 75 0001 70")
        ),
        Violation(
            "5.0 [MQTT-3.1.2-18]: a password without its flag",
            .v5,
            connect(.v5, "82", client + "0001 75 0001 70")
        ),
        Violation("3.1.1 [MQTT-3.1.2-21]: a flag without a password", .v311, connect(.v311, "c2", client + "0001 75")),
        Violation("5.0 [MQTT-3.1.2-19]: a flag without a password", .v5, connect(.v5, "c2", client + "0001 75")),
        Violation(
            "3.1.1 [MQTT-3.1.2-22]: a password without a user name",
            .v311,
            connect(.v311, "42", client + "0001 70")
        ),
        Violation("3.1.1 [MQTT-3.1.3-3]: no client identifier", .v311, connect(.v311, "02", "")),
        Violation("5.0 [MQTT-3.1.3-3]: no client identifier", .v5, connect(.v5, "02", "")),
        Violation(
            "3.1.1 [MQTT-3.1.3-1]: the user name before the client identifier's end",
            .v311,
            connect(.v311, "82", "00ff 61")
        ),
        Violation(
            "5.0 [MQTT-3.1.3-1]: the user name before the client identifier's end",
            .v5,
            connect(.v5, "82", "00ff 61")
        ),
        Violation(
            "3.1.1 [MQTT-1.5.3-1] [MQTT-3.1.3-4]: a surrogate in the client identifier",
            .v311,
            connect(.v311, "02", "0003 eda080")
        ),
        Violation(
            "5.0 [MQTT-1.5.4-1] [MQTT-3.1.3-4]: a surrogate in the client identifier",
            .v5,
            connect(.v5, "02", "0003 eda080")
        ),
        Violation("3.1.1 [MQTT-1.5.3-2]: U+0000 in the client identifier", .v311, connect(.v311, "02", "0003 610061")),
        Violation("5.0 [MQTT-1.5.4-2]: U+0000 in the client identifier", .v5, connect(.v5, "02", "0003 610061")),
        Violation(
            "3.1.1 [MQTT-3.1.3-10]: a will topic that is not UTF-8",
            .v311,
            connect(.v311, "06", client + "0001 ff 0000")
        ),
        Violation(
            "5.0 [MQTT-3.1.3-11]: a will topic that is not UTF-8",
            .v5,
            connect(.v5, "06", client + "00 0001 ff 0000")
        ),
        Violation(
            "3.1.1 [MQTT-3.1.3-11]: a user name that is not UTF-8",
            .v311,
            connect(.v311, "82", client + "0001 ff")
        ),
        Violation("5.0 [MQTT-3.1.3-12]: a user name that is not UTF-8", .v5, connect(.v5, "82", client + "0001 ff")),
        Violation(
            "5.0 [MQTT-1.5.7-1]: a user property's value that is not UTF-8",
            .v5,
            "10 14 0004 4d515454 05 02 003c 06 26 0001 61 0001 ff 0001 61"
        ),
        Violation("5.0 [MQTT-3.15.1-1]: AUTH first", .v5, "f0 00"),
    ]

    @Test(arguments: beforeConnect)
    func `nothing else is a connect`(_ violation: Violation) async throws {
        try await GatewayHarness.withMQTT { harness in
            let client = try await MQTTTestClient.open(harness, violation.version)
            try await client.send(hex: violation.hex)
            // In 3.1.1, the server does not answer a CONNECT that does not conform. 5.0 [MQTT-3.2.2-7] [MQTT-3.14.0-1]
            // also allows the server to send no answer, and forbids a DISCONNECT before a CONNACK.
            #expect(try await client.untilEnd().isEmpty)
            #expect(try await harness.mqtt("after", violation.version).untilPong().isEmpty)
        }
    }

    // MARK: After CONNECT

    static let afterConnect: [Violation] = [
        Violation("3.1.1 [MQTT-3.1.0-2] [MQTT-4.8.0-1]: a second CONNECT", .v311, connect(.v311, "02", client)),
        Violation(
            "5.0 [MQTT-3.1.0-2] [MQTT-4.13.1-1]: a second CONNECT",
            .v5,
            connect(.v5, "02", client),
            .protocolError
        ),
        Violation("3.1.1 [MQTT-3.3.1-4]: PUBLISH with QoS 3", .v311, "36 05 0001 61 0001"),
        Violation("5.0 [MQTT-3.3.1-4]: PUBLISH with QoS 3", .v5, "36 06 0001 61 0001 00"),
        Violation("3.1.1 [MQTT-3.3.1-2]: DUP with QoS 0", .v311, "38 03 0001 61"),
        Violation("5.0 [MQTT-3.3.1-2]: DUP with QoS 0", .v5, "38 04 0001 61 00"),
        Violation("3.1.1 [MQTT-2.3.1-1]: packet identifier 0", .v311, "32 05 0001 61 0000"),
        Violation("5.0 [MQTT-2.2.1-3]: packet identifier 0", .v5, "32 06 0001 61 0000 00", .protocolError),
        Violation("3.1.1 [MQTT-3.3.2-2] [MQTT-4.7.1-1]: a wildcard in a topic name", .v311, "30 05 0003 612f2b"),
        Violation(
            "5.0 [MQTT-3.3.2-2] [MQTT-4.7.0-1]: a wildcard in a topic name",
            .v5,
            "30 06 0003 612f23 00",
            .topicNameInvalid
        ),
        Violation("3.1.1 [MQTT-4.7.3-1]: an empty topic name", .v311, "30 02 0000"),
        // Without a topic alias, an empty topic name is a Protocol Error (3.3.2.1).
        Violation("5.0 [MQTT-4.7.3-1]: an empty topic name", .v5, "30 03 0000 00", .protocolError),
        Violation("3.1.1 [MQTT-4.7.3-2]: U+0000 in a topic name", .v311, "30 05 0003 610061"),
        Violation("5.0 [MQTT-4.7.3-2]: U+0000 in a topic name", .v5, "30 06 0003 610061 00"),
        Violation("3.1.1 [MQTT-3.3.2-1]: a topic name that is not UTF-8", .v311, "30 04 0002 c328"),
        Violation("5.0 [MQTT-3.3.2-1]: a topic name that is not UTF-8", .v5, "30 05 0002 c328 00"),
        Violation("3.1.1 [MQTT-2.2.2-1] [MQTT-2.2.2-2]: PINGREQ with flags", .v311, "c1 00"),
        Violation("5.0 [MQTT-2.1.3-1]: PINGREQ with flags", .v5, "c1 00"),
        Violation("3.1.1 [MQTT-3.6.1-1]: PUBREL with other flags", .v311, "60 02 0001"),
        Violation("5.0 [MQTT-3.6.1-1]: PUBREL with other flags", .v5, "60 02 0001"),
        Violation("3.1.1 [MQTT-3.8.1-1]: SUBSCRIBE with other flags", .v311, "80 06 0001 0001 61 00"),
        Violation("5.0 [MQTT-3.8.1-1]: SUBSCRIBE with other flags", .v5, "80 07 0001 00 0001 61 00"),
        Violation("3.1.1 [MQTT-3.10.1-1]: UNSUBSCRIBE with other flags", .v311, "a0 05 0001 0001 61"),
        Violation("5.0 [MQTT-3.10.1-1]: UNSUBSCRIBE with other flags", .v5, "a0 06 0001 00 0001 61"),
        Violation("3.1.1 [MQTT-3.14.1-1]: DISCONNECT with flags", .v311, "e1 00"),
        Violation("5.0 [MQTT-3.14.1-1]: DISCONNECT with flags", .v5, "e1 00"),
        Violation("5.0 [MQTT-3.15.1-1]: AUTH with flags", .v5, "f1 00"),
        Violation("5.0 [MQTT-4.12.0-1]: AUTH without an authentication method", .v5, "f0 00", .protocolError),
        Violation("3.1.1 [MQTT-3.8.3-1]: a filter that is not UTF-8", .v311, "82 07 0001 0002 c328 00"),
        Violation("5.0 [MQTT-3.8.3-1]: a filter that is not UTF-8", .v5, "82 08 0001 00 0002 c328 00"),
        Violation("3.1.1 [MQTT-3.8.3-3]: SUBSCRIBE without a filter", .v311, "82 02 0001"),
        Violation("5.0 [MQTT-3.8.3-2]: SUBSCRIBE without a filter", .v5, "82 03 0001 00", .protocolError),
        Violation("3.1.1 [MQTT-3.8.3-4]: reserved bits of a requested QoS", .v311, "82 06 0001 0001 61 04"),
        Violation("3.1.1 [MQTT-3.8.3-4]: a requested QoS of 3", .v311, "82 06 0001 0001 61 03"),
        Violation("5.0 [MQTT-3.8.3-5]: reserved bits of the options", .v5, "82 07 0001 00 0001 61 40"),
        Violation(
            "5.0 [MQTT-3.8.3-4]: no local on a shared subscription",
            .v5,
            "82 10 0001 00 000a 2473686172652f672f61 04",
            .protocolError
        ),
        Violation("3.1.1 [MQTT-3.10.3-1]: UNSUBSCRIBE from what is not UTF-8", .v311, "a2 06 0001 0002 c328"),
        Violation("5.0 [MQTT-3.10.3-1]: UNSUBSCRIBE from what is not UTF-8", .v5, "a2 07 0001 00 0002 c328"),
        Violation("3.1.1 [MQTT-3.10.3-2]: UNSUBSCRIBE from nothing", .v311, "a2 02 0001"),
        Violation("5.0 [MQTT-3.10.3-2]: UNSUBSCRIBE from nothing", .v5, "a2 03 0001 00", .protocolError),
        Violation(
            "5.0 [MQTT-3.3.4-6]: PUBLISH with a subscription identifier",
            .v5,
            "30 06 0001 61 02 0b01",
            .protocolError
        ),
        Violation("5.0 [MQTT-3.3.2-8]: the topic alias 0", .v5, "30 07 0001 61 03 23 0000", .topicAliasInvalid),
        Violation(
            "5.0 [MQTT-3.3.2-9]: a topic alias above the maximum",
            .v5,
            "30 07 0001 61 03 23 ffff",
            .topicAliasInvalid
        ),
        Violation(
            "5.0 [MQTT-3.3.2-7]: a topic alias that was never set",
            .v5,
            "30 06 0000 03 23 0001",
            .protocolError
        ),
        Violation("5.0 [MQTT-3.3.2-13]: a response topic that is not UTF-8", .v5, "30 09 0001 61 05 08 0002 c328"),
        Violation(
            "5.0 [MQTT-3.3.2-14]: a response topic with a wildcard",
            .v5,
            "30 08 0001 61 04 08 0001 23",
            .protocolError
        ),
        Violation("5.0 [MQTT-3.3.2-19]: a content type that is not UTF-8", .v5, "30 09 0001 61 05 03 0002 c328"),
        Violation("3.1.1 [MQTT-2.2.2-2]: there is no packet of type 0", .v311, "00 00"),
        Violation("3.1.1 [MQTT-4.8.0-1]: a remaining length of five bytes", .v311, "30 ff ff ff ff 01"),
        Violation("5.0 [MQTT-4.13.1-1]: a CONNACK from a client", .v5, "20 03 00 00 00", .protocolError),
    ]

    @Test(arguments: afterConnect)
    func `a violation ends its connection alone`(_ violation: Violation) async throws {
        try await GatewayHarness.withMQTT { harness in
            let other = try await harness.mqtt("other", violation.version)
            let client = try await harness.mqtt("violator", violation.version)
            try await client.send(hex: violation.hex)
            let packets = try await client.untilEnd()
            switch violation.version {
            case .v311:
                #expect(packets.isEmpty)
            case .v5:
                // 5.0 [MQTT-4.13.2-1] [MQTT-3.14.2-1] [MQTT-3.14.2-2] [MQTT-3.14.4-1] [MQTT-3.14.4-2]
                #expect(packets.count == 1)
                guard case .disconnect(let disconnect)? = packets.first else { throw Unexpected("\(packets)") }
                #expect(disconnect.reason == violation.reason)
                #expect(
                    !disconnect.properties.list.contains { if case .sessionExpiryInterval = $0 { true } else { false } }
                )
            }
            #expect(try await other.untilPong().isEmpty)
        }
    }

    // MARK: Filters

    /// Sends SUBSCRIBE and UNSUBSCRIBE with this filter, each over a separate connection, which has to end.
    ///
    /// - Parameter count: the number of valid filters before it.
    private func expectEnd(_ version: MQTTVersion, _ filter: String, behind count: Int = 1) async throws {
        try await GatewayHarness.withMQTT { harness in
            let filters = (0..<count).map { "good/\($0)" } + [filter]
            let subscriptions = filters.map { MQTTSubscription(filter: $0) }
            let packets: [MQTTPacket] = [
                .subscribe(MQTTSubscribe(packetID: 1, subscriptions: subscriptions)),
                .unsubscribe(MQTTUnsubscribe(packetID: 1, filters: filters)),
            ]
            for packet in packets {
                let client = try await harness.mqtt("one", version)
                try await client.send(packet)
                let answers = try await client.untilEnd()
                guard version == .v5 else {
                    #expect(answers.isEmpty)
                    continue
                }
                guard case .disconnect(let disconnect)? = answers.first, answers.count == 1 else {
                    throw Unexpected("\(answers)")
                }
                // 0x8F is only for correctly formed filters (3.14.2.1).
                #expect(disconnect.reason == .malformedPacket)
            }
        }
    }

    @Test(arguments: MQTTVersion.allCases)
    func `a filter that is not well formed ends the connection, behind however many`(
        _ version: MQTTVersion
    ) async throws {
        try await expectEnd(version, "a+", behind: 1_000)
    }

    @Test(
        .statements(
            "3.1.1 [MQTT-4.7.1-2] [MQTT-4.7.1-3] [MQTT-4.7.3-1], 5.0 [MQTT-4.7.1-1] [MQTT-4.7.1-2] [MQTT-4.7.3-1] [MQTT-4.13.1-1], 3.1.1 [MQTT-4.8.0-1]"
        ),
        arguments: MQTTVersion.allCases,
        ["a/#/b", "a#", "a/b#", "#/a", "a+", "+a", "a/b+/c", ""]
    )
    func `such filters end the connection`(_ version: MQTTVersion, _ filter: String) async throws {
        try await expectEnd(version, filter)
    }

    @Test(
        .statements("5.0 [MQTT-4.8.2-1] [MQTT-4.8.2-2]"),
        arguments: MQTTVersion.allCases,
        ["$share//a", "$share/g+/a", "$share/#/a", "$share/g", "$share/g/", "$share/g/a+"]
    )
    func `a share name is not empty, has no wildcard, and a filter follows it`(
        _ version: MQTTVersion,
        _ filter: String
    ) async throws {
        // In 3.1.1, shared subscriptions are an extension with the rules of 5.0.
        try await expectEnd(version, filter)
    }
}
