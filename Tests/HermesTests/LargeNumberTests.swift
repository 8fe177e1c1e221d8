// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import Testing

@testable import Hermes

/// Numbers that do not fit into the 32-bit Int of a watch. On other devices, they arrive unchanged.
@Suite struct LargeNumberTests {
    private static let largest = Int(clamping: UInt32.max)

    @Test func `a message's and a group's numbers are clamped`() {
        var content = Hermes_V1_Content()
        content.image.url = "https://example.com/a.png"
        content.image.width = .max
        content.image.height = .max
        guard case .image(_, let width, let height) = MessageContent(content) else {
            Issue.record("not an image")
            return
        }
        #expect(width == Self.largest)
        #expect(height == Self.largest)
        var group = Hermes_V1_Group()
        group.memberCount = .max
        #expect(ChatGroup(group).memberCount == Self.largest)
    }

    @Test func `an MQTT server's limit is clamped, and a number that is no reason has none`() {
        let connack = MQTTConnack(reason: .success, properties: [.maximumPacketSize(.max)])
        #expect(MQTTClient.Connection(connack, clientID: "a").maxPacketBytes == Self.largest)
        for number: UInt32 in [0, 499, 500, 627, 756, 0x8000_0000, .max] {
            #expect(HermesClientError(HermesClientError.Code(rawValue: number), "").mqttReason == nil)
        }
        for number: UInt32 in [628, 755] {
            let error = HermesClientError(HermesClientError.Code(rawValue: number), "")
            #expect(error.mqttReason?.rawValue == UInt8(number - 500))
        }
    }

    @Test func `a damaged length in the store is no length`() {
        let contents = RecordLog.read(RecordLog.header(1) + [UInt8](repeating: 0xFF, count: 32))
        #expect(contents?.table.records.isEmpty == true)
    }
}
