// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The meaning of a typed line.
enum ChatInput: Hashable {
    case nothing
    case say(String)
    case to(String)
    case history(Int)
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
            guard !argument.isEmpty else {
                self = .history(20)
                return
            }
            guard let count = Int(argument), (1...500).contains(count) else {
                self = .wrong("/history takes a number from 1 to 500")
                return
            }
            self = .history(count)
        case "who": self = .who
        case "devices": self = .devices
        case "help", "?": self = .help
        case "quit", "q", "exit": self = .quit
        case let name: self = .wrong("there is no command /\(name); /help lists them; a text that begins with / is //…")
        }
    }

    static let helpText = """
        /to NAME      talk to NAME from now on
        /history [N]  the last N messages that the server keeps of this conversation (20)
        /who          whom you talk to, and whether they are there
        /devices      the devices of your account
        /quit         end (also Ctrl-D)
        //TEXT        send a text that begins with a /
        """
}
