// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import Hermes

/// Chats in a terminal, also across restarts of the server and of this program. With a server of `make run`:
///
///     swift run QuickChat 127.0.0.1:9000 ann secret1 bob
///
/// Each line of the input goes to the peer. What arrives is printed, as are the receipts of what was sent.
@main
struct QuickChat {
    static func main() async throws {
        let arguments = CommandLine.arguments.dropFirst()
        guard arguments.count == 4, let address = ServerAddress(arguments[1]) else {
            return print("usage: QuickChat HOST:PORT NAME PASSWORD PEER")
        }
        let (name, password, peer) = (arguments[2], arguments[3], arguments[4])
        var configuration = HermesClient.Configuration(
            server: address,
            device: DeviceDescription(id: "quickchat-\(name)", name: "QuickChat")
        )
        configuration.store = try FileLocalStore(path: "\(name).hermes")
        configuration.reconnect = .interactive
        let client = try HermesClient(configuration)
        do {
            _ = try await client.logIn(.register(nickName: name, password: password))
        } catch let error as HermesClientError where error.code == .nameTaken {
            _ = try await client.logIn(.password(nickName: name, password: password))
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                for await event in client.events {
                    if let message = event.message, !message.isOwn {
                        print("\(message.fromNickName): \(message.text ?? "(not a text)")")
                    } else if let push = event.push {
                        print("[\(push.title)] \(push.body)")
                    }
                }
            }
            group.addTask {
                for await state in client.states {
                    if case .waiting(let error, _) = state { print("* \(error.message)") }
                }
            }
            group.addTask {
                for await entry in client.outbox.changes {
                    if case .sent(let receipt) = entry.status { print("* message \(receipt.conversationSeq) is there") }
                    if case .failed(let error) = entry.status { print("* refused: \(error.message)") }
                }
            }
            let bob = try await client.account(named: peer)
            var last: SentMessage?
            for await line in lines() { last = try await client.send(line, to: .user(bob.uid)) }
            // Messages to one peer arrive in order: with the last one all are there.
            try await last?.receipt()
            await client.close()
            try await group.waitForAll()
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
