// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import Hermes
import HermesProtocols
import HermesTestKit
import Testing

/// Every kind of content over IMPB, to accounts and groups.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct IMPBContentTests {
    private static func url(_ text: String) throws -> URL { try #require(URL(string: text)) }

    private static func phone(_ server: TestServer, _ name: String) async throws -> (IMPBClient, UserID) {
        let client = try IMPBClient(
            IMPBClient.Configuration(
                server: ServerAddress(port: server.port("impb")),
                device: DeviceDescription(id: "phone")
            )
        )
        let login = try await client.logIn(.register(nickName: name, password: "secret-\(name)"))
        return (client, login.uid)
    }

    @Test func `every kind arrives as it was sent`() async throws {
        let contents: [MessageContent] = [
            .text("hello"),
            .image(url: try Self.url("https://example.org/a.png"), width: 0, height: 0),
            .sound(url: try Self.url("https://example.org/a.amr"), duration: .seconds(2), fileName: "a.amr"),
            .location(latitude: 26.25, longitude: 121.5, label: ""),
            .video(url: try Self.url("https://example.org/a.mp4"), duration: .zero, thumbnailURL: nil),
            .expression(id: 7, name: "smile"),
            .custom(type: "order", data: Array(#"{"id":7}"#.utf8)),
        ]
        try await withServer { server in
            let (ann, annUID) = try await Self.phone(server, "ann")
            let (bob, bobUID) = try await Self.phone(server, "bob")
            let admin = try HermesClient(
                HermesClient.Configuration(
                    server: ServerAddress(port: server.port("delimited")),
                    device: DeviceDescription(id: "desk")
                )
            )
            _ = try await admin.logIn(.password(nickName: "ann", password: "secret-ann"))
            let group = try await admin.createGroup(named: "all", with: [bobUID])
            for content in contents {
                try await ann.send(content, to: bobUID)
                try await ann.send(content, toGroup: group.id)
            }
            var left = contents.flatMap { [($0, GroupID?.none), ($0, group.id)] }[...]
            for await event in bob.events {
                guard case .message(let message) = event, let (content, id) = left.popFirst() else { continue }
                #expect(message.content == content)
                #expect(message.groupID == id)
                #expect(message.fromUID == annUID)
                if left.isEmpty { break }
            }
            for content in [MessageContent.unknown, .custom(type: "bytes", data: [0xFF])] {
                let error = await #expect(throws: HermesClientError.self) { try await ann.send(content, to: bobUID) }
                #expect(error?.code == .notEncodable)
            }
            for client in [ann, bob] { await client.close() }
            await admin.close()
        }
    }
}
