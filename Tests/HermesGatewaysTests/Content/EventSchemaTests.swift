// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire
import SwiftProtobuf
import Testing

@testable import HermesGateways

@Suite("Inbox events in the schema")
struct EventSchemaTests {
    private func reader() throws -> Principal {
        Principal(
            user: try #require(UserID(2)),
            nickName: try NickName("bob"),
            device: try #require(DeviceID("phone"))
        )
    }

    private func entry() throws -> InboxEntry {
        let contact = ContactEvent(kind: .accepted, user: try #require(UserID(1)), nickName: "ann", message: "hi")
        return InboxEntry(seq: 9, committedAt: Timestamp(rawValue: 7), event: .contact(contact))
    }

    @Test
    func `a kind is called as its field in the schema`() throws {
        let events: [Hermes_V1_Event.OneOf_Event] = [
            .message(.init()), .readMark(.init()), .recalled(.init()), .contact(.init()), .group(.init()),
            .push(.init()),
            .call(.init()), .expired(.init()), .oversized(.init()),
        ]
        for event in events {
            var wire = Hermes_V1_Event()
            wire.event = event
            var options = JSONEncodingOptions()
            options.preserveProtoFieldNames = true
            #expect(try wire.jsonString(options: options) == #"{"\#(event.name)":{}}"#)
        }
    }

    @Test
    func `IMPB: a kind without a type of its own goes as its event`() throws {
        let (entry, reader) = (try entry(), try reader())
        let notification = IMPBTranslation.inSchema(entry, reader: reader)
        #expect(notification.type == .event)
        #expect(notification.targetUid == 2)
        let event = try Hermes_V1_Event(wire: [UInt8](notification.body))
        #expect(event == Hermes_V1_Event(entry, reader: reader))
        #expect(event.seq == 9 && event.contact.nickName == "ann" && event.contact.kind == .accepted)
    }
}
