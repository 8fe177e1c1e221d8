// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import HermesServer

struct UserConversations: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "conversations",
        abstract: "List an account's conversations: user or group, name, unread messages, last message and its time.",
        discussion: """
            The newest come first. A message is unread if it is from another account, was not recalled, and is newer \
            than the account's read mark. In a group, only messages that were sent after the account joined count.

            Examples:
              hermes user conversations anna
              hermes user conversations anna --unread
            """
    )

    private static let pageSize = 1_000

    @Argument(help: "The name.")
    var name: String

    @Flag(help: "Show only conversations with unread messages.")
    var unread = false

    @Flag(help: "Print JSON.")
    var json = false

    @OptionGroup var data: DataOptions

    func run() async throws {
        let administrator = Administrator(data)
        var all: [ControlConversation] = []
        var after: String?
        repeat {
            let request = ControlRequest.listConversations(nickName: name, after: after, limit: Self.pageSize)
            guard case .conversations(let page, let next) = try await administrator.ask(request) else { return }
            all += unread ? page.filter { $0.unread > 0 } : page
            after = next
        } while after != nil
        all.sort { ($0.lastAt ?? 0) > ($1.lastAt ?? 0) }
        if json { return try CommandOutput.print(ViewFormat.json(all)) }
        for conversation in all { try CommandOutput.print(ViewFormat.text(conversation)) }
    }
}

extension ViewFormat {
    /// Returns a line with tabs between the columns.
    static func text(_ conversation: ControlConversation) -> String {
        let columns = [
            conversation.place, conversation.name.isEmpty ? "deleted" : conversation.name,
            "\(conversation.unread) unread", "last message \(conversation.lastSeq)",
            conversation.lastAt.map(moment) ?? "-",
        ]
        return line(columns)
    }
}
