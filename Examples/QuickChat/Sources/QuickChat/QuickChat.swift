// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import Hermes

/// Chats in a terminal, over TCP, WebSocket or MQTT. The chat survives restarts of the server and of this program.
@main
struct QuickChat {
    static func main() async throws {
        let arguments = CommandLine.arguments.dropFirst()
        guard arguments.count == 4, let server = ServerAddress(arguments[1]) else {
            return print("usage: QuickChat ADDRESS NAME PASSWORD PEER")
        }
        let (name, password, peer) = (arguments[2], arguments[3], arguments[4])
        let device = DeviceDescription(id: "quickchat-\(name)", name: "QuickChat")
        var configuration = HermesClient.Configuration(server: server, device: device)
        configuration.store = try FileLocalStore(path: "\(name).hermes")
        configuration.reconnect = .interactive

        let client = try HermesClient(configuration)
        do {
            _ = try await client.logIn(.register(nickName: name, password: password))
        } catch let error as HermesClientError where error.code == .nameTaken {
            _ = try await client.logIn(.password(nickName: name, password: password))
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await show(client.events) }
            group.addTask {
                for await entry in client.outbox.changes {
                    if case .sent(let receipt) = entry.status { print("* message \(receipt.conversationSeq) is there") }
                    if case .failed(let error) = entry.status { print("* refused: \(error.message)") }
                }
            }
            let uid = try await client.account(named: peer).uid
            var last: SentMessage?
            for await line in lines() { last = try await client.send(line, to: .user(uid)) }
            try await last?.receipt()
            await client.close()
            try await group.waitForAll()
        }
    }

    static func show(_ events: ClientEvents<InboxEvent>) async {
        for await event in events {
            if let message = event.message, !message.isOwn {
                print("\(message.fromNickName): \(message.text ?? "(not a text)")")
            } else if let order = try? event.push?.message(as: Shop_OrderShipped.self) {
                print("order \(order.number) is on its way with \(order.carrier)")
            } else if let push = event.push {
                print("[\(push.title)] \(push.body)")
            }
        }
    }

    /// The lines of the input, read on a thread of their own, because reading blocks.
    static func lines() -> AsyncStream<String> {
        AsyncStream { continuation in
            Thread {
                while let line = readLine() { continuation.yield(line) }
                continuation.finish()
            }
            .start()
        }
    }
}
