// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The meaning of a typed line.
enum ChatInput: Hashable {
    case nothing
    case say(String)
    case to(String)
    case history(Int)
    case list(Int)
    case who
    case devices
    case help
    case quit
    case wrong(String)

    init(_ line: String) {
        guard line.hasPrefix("/"), !line.hasPrefix("//") else {
            let text = line.hasPrefix("//") ? String(line.dropFirst()) : line
            self = text.allSatisfy(\.isWhitespace) ? .nothing : .say(text)
            return
        }
        let words = line.dropFirst().split(separator: " ", maxSplits: 1)
        let argument = words.count > 1 ? words[1].trimmingPrefix { $0 == " " } : ""
        switch words.first ?? "" {
        case "to":
            self = argument.isEmpty ? .wrong("/to needs a name, for example /to bob") : .to(String(argument))
        case "history":
            self = Self.count(argument).map(Self.history) ?? .wrong("/history takes a number from 1 to 500")
        case "list":
            self = Self.count(argument).map(Self.list) ?? .wrong("/list takes a number from 1 to 500")
        case "who": self = .who
        case "devices": self = .devices
        case "help", "?": self = .help
        case "quit", "q", "exit": self = .quit
        case let name:
            self = .wrong(
                "there is no command /\(name); /help lists the commands; "
                    + "to send a text that begins with /, begin it with //"
            )
        }
    }

    /// Returns the number of items that the user asks for, 20 by default; nil if the argument is not a number from 1 to
    /// 500.
    private static func count(_ argument: some StringProtocol) -> Int? {
        argument.isEmpty ? 20 : Int(argument).flatMap { (1...500).contains($0) ? $0 : nil }
    }

    static let helpText = """
        /to NAME      talk to NAME from now on
        /list [N]     your newest N conversations, and how many messages are unread in each (default 20)
        /history [N]  the last N messages that the server keeps of this conversation (default 20)
        /who          the person you talk to, and whether they are online
        /devices      the devices of your account
        /quit         end (also Ctrl-D)
        //TEXT        send a text that begins with a /
        """
}
