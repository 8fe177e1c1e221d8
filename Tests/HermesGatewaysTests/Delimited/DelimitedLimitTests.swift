// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesCore
import HermesGateways
import HermesTestKit
import HermesWire
import SwiftProtobuf
import Testing

/// The limits that the comments of `Proto/hermes/v1` state for the fields of clients' packets.
@Suite(.inTurns, .timeLimit(.minutes(1)))
struct DelimitedLimitTests {
    /// A field with a limit.
    struct Field: Sendable, CustomTestStringConvertible {
        let name: String
        /// The limit in bytes.
        let limit: Int
        /// Ann's request whose field has `length` bytes. `bob` is the uid of another account.
        let body: @Sendable (_ length: Int, _ bob: UInt32) -> Hermes_V1_Packet.OneOf_Body

        var testDescription: String { name }
    }

    private static func content(
        _ name: String,
        _ limit: Int,
        _ set: @escaping @Sendable (inout Hermes_V1_Content, String) -> Void
    ) -> Field {
        Field(name: "Content.\(name)", limit: limit) { length, bob in
            .send(
                .with {
                    $0.to.uid = bob
                    set(&$0.content, String(repeating: "x", count: length))
                }
            )
        }
    }

    private static func room(
        _ name: String,
        _ limit: Int,
        _ set: @escaping @Sendable (inout Hermes_V1_RoomRequest, String) -> Void
    ) -> Field {
        Field(name: "RoomRequest.\(name)", limit: limit) { length, _ in
            .room(
                .with {
                    $0.room = "lobby"
                    set(&$0, String(repeating: "x", count: length))
                }
            )
        }
    }

    static let fields =
        [
            // A content has at most 64 KiB in total, including the tags and lengths of its fields.
            content("text", 65_536 - 4) { $0.text = $1 },
            content("Image.url", 4_096) { $0.image.url = $1 },
            content("Sound.source_url", 4_096) { $0.sound.sourceURL = $1 },
            content("Sound.location_url", 4_096) { $0.sound.locationURL = $1 },
            content("Sound.file_name", 256) { $0.sound.fileName = $1 },
            content("Location.label", 256) { $0.location.label = $1 },
            content("Video.url", 4_096) { $0.video.url = $1 },
            content("Video.thumbnail_url", 4_096) { $0.video.thumbnailURL = $1 },
            content("Expression.name", 64) { $0.expression.name = $1 },
            content("Custom.type", 64) { $0.custom.type = $1 },
            content("Custom.data", 65_536 - 8) { $0.custom.data = Data($1.utf8) },
            content("attributes", 4_096) {
                $0.text = "hello"
                $0.attributes = ["k": String($1.dropFirst())]
            },
            Field(name: "Send.client_id", limit: 64) { length, bob in
                .send(
                    .with {
                        $0.to.uid = bob
                        $0.clientID = String(repeating: "x", count: length)
                        $0.content.text = "hello"
                    }
                )
            },
            Field(name: "AddContact.message", limit: 256) { length, bob in
                .contact(
                    .with {
                        $0.add.uid = bob
                        $0.add.message = String(repeating: "x", count: length)
                    }
                )
            },
            Field(name: "AnswerContact.message", limit: 256) { length, bob in
                .contact(
                    .with {
                        $0.answer.uid = bob
                        $0.answer.message = String(repeating: "x", count: length)
                    }
                )
            },
            Field(name: "Signal.session_id", limit: 64) { length, bob in
                .signal(
                    .with {
                        $0.toUid = bob
                        $0.sessionID = String(repeating: "x", count: length)
                        $0.end.reason = "busy"
                    }
                )
            },
            Field(name: "Signal.data", limit: 16_384) { length, bob in
                .signal(
                    .with {
                        $0.toUid = bob
                        $0.sessionID = "call"
                        $0.data = Data(count: length)
                    }
                )
            },
            Field(name: "SignalEnd.reason", limit: 256) { length, bob in
                .signal(
                    .with {
                        $0.toUid = bob
                        $0.sessionID = "call"
                        $0.end.reason = String(repeating: "x", count: length)
                    }
                )
            },
            Field(name: "ProfileChange.avatar_url", limit: 1_024) { length, _ in
                .account(.with { $0.changeProfile.avatarURL = String(repeating: "x", count: length) })
            },
            Field(name: "PasswordChange.new_password", limit: 256) { length, _ in
                .account(
                    .with {
                        $0.changePassword.oldPassword = "password of ann"
                        $0.changePassword.newPassword = String(repeating: "x", count: length)
                    }
                )
            },
            Field(name: "PushToken.app_id", limit: 128) { length, _ in
                .device(
                    .with {
                        $0.setPushToken.service = .fcm
                        $0.setPushToken.token = "token"
                        $0.setPushToken.appID = String(repeating: "x", count: length)
                    }
                )
            },
            Field(name: "PushToken.token", limit: 4_096) { length, _ in
                .device(
                    .with {
                        $0.setPushToken.service = .fcm
                        $0.setPushToken.token = String(repeating: "x", count: length)
                        $0.setPushToken.appID = "org.example"
                    }
                )
            },
            Field(name: "CreateGroup.name", limit: 64) { length, _ in
                .group(.with { $0.create.name = String(repeating: "x", count: length) })
            },
            Field(name: "Statistics.app_version", limit: 32) { length, _ in
                .statistics(.with { $0.appVersion = String(repeating: "x", count: length) })
            },
            Field(name: "NetworkStatistics.label", limit: 64) { length, _ in
                .statistics(
                    .with {
                        $0.networks = [.with { $0.label = String(repeating: "x", count: length) }]
                    }
                )
            },
            Field(name: "RoomRequest.room", limit: 64) { length, _ in
                .room(
                    .with {
                        $0.room = String(repeating: "x", count: length)
                        $0.enter.user.name = "ann"
                    }
                )
            },
            Field(name: "RemoveDevice.device_id", limit: 64) { length, _ in
                .device(.with { $0.remove.deviceID = String(repeating: "x", count: length) })
            },
            Field(name: "ProfileChange.nick_name", limit: 64) { length, _ in
                .account(.with { $0.changeProfile.nickName = String(repeating: "x", count: length) })
            },
            room("RoomUser.name", 256) { $0.enter.user.name = $1 },
            room("RoomUser.icon_url", 1_024) { $0.enter.user.iconURL = $1 },
            room("RoomText.text", 4_096) { $0.text.text = $1 },
            room("RoomGift.name", 256) { $0.gift.name = $1 },
            room("RoomGift.url", 1_024) { $0.gift.url = $1 },
            room("RoomCustom.data", 65_536) {
                $0.custom.type = 16
                $0.custom.data = Data($1.utf8)
            },
        ]

    @Test(arguments: fields) func `a field has the length that its comment gives, and no more`(
        _ field: Field
    )
        async throws
    {
        try await GatewayHarness.with { server in
            let bob = UInt32(try await server.register("bob").principal.user.rawValue)
            for (name, length, isShort) in [("ann", field.limit, true), ("carl", field.limit + 1, false)] {
                let client = try await server.delimited()
                _ = try await client.register(name)
                var room = Hermes_V1_RoomRequest()
                room.room = "lobby"
                room.enter.user.name = name
                _ = try await client.ask(2, .room(room))
                let error = try await client.ask(3, field.body(length, bob)).error
                let isRefused = error.code == HermesError.Code.tooLarge.rawValue
                #expect(isRefused != isShort, "\(length) bytes: \(error.code) \(error.message)")
            }
        }
    }
}
