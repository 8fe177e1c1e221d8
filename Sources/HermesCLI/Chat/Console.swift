// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Everything a chat writes: what people say to stdout, what the program says to stderr. On a terminal the line being
/// typed stays below it.
actor Console {
    /// Whether lines are edited here, on a terminal.
    nonisolated let isInteractive: Bool
    private var prompt = ""
    private var editor = LineEditor()
    private var isDrawn = false

    init(isInteractive: Bool) { self.isInteractive = isInteractive }

    /// What somebody said.
    func print(_ line: String) { write(line + "\n", to: STDOUT_FILENO) }

    /// What the program has to say.
    func status(_ line: String) { write((isInteractive ? "-- " : "hermes: ") + line + "\n", to: STDERR_FILENO) }

    /// What stands before the line being typed.
    func setPrompt(_ prompt: String) {
        self.prompt = prompt
        draw()
    }

    /// Takes keys.
    func feed(_ byte: UInt8) -> LineEditor.Action? {
        let action = editor.feed(byte)
        switch action {
        case .redraw: draw()
        case .submit, .interrupt, .endOfInput: erase()
        case nil: break
        }
        return action
    }

    /// Takes the line being typed off the screen, at the end.
    func finish() {
        erase()
        prompt = ""
    }

    private func write(_ text: String, to descriptor: Int32) {
        erase()
        Self.write(text, to: descriptor)
        draw()
    }

    private func erase() {
        guard isDrawn else { return }
        isDrawn = false
        Self.write("\r\u{1B}[K", to: STDOUT_FILENO)
    }

    private func draw() {
        guard isInteractive, !prompt.isEmpty else { return }
        isDrawn = true
        Self.write(Self.picture(prompt: prompt, editor: editor, width: TerminalMode.width), to: STDOUT_FILENO)
    }

    /// The line as it is drawn: a window of it that holds the cursor and fits the terminal.
    static func picture(prompt: String, editor: LineEditor, width: Int) -> String {
        let room = max(8, width - columns(prompt) - 1)
        var start = editor.cursor
        var used = 0
        while start > 0, used + columns(editor.text[start - 1]) <= room {
            start -= 1
            used += columns(editor.text[start])
        }
        var end = editor.cursor
        var behind = 0
        while end < editor.text.count, used + behind + columns(editor.text[end]) <= room {
            behind += columns(editor.text[end])
            end += 1
        }
        let back = behind > 0 ? "\u{1B}[\(behind)D" : ""
        return "\r\u{1B}[K\(prompt)\(String(editor.text[start..<end]))\(back)"
    }

    private static func columns(_ text: String) -> Int { text.reduce(0) { $0 + columns($1) } }

    /// Two for the wide characters of East Asia and for emoji, one for all others.
    private static func columns(_ character: Character) -> Int {
        guard let scalar = character.unicodeScalars.first else { return 0 }
        switch scalar.value {
        case 0x1100...0x115F, 0x2E80...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F, 0xFF00...0xFF60,
            0xFFE0...0xFFE6, 0x1F300...0x1FAFF, 0x20000...0x3FFFD:
            return 2
        default:
            return 1
        }
    }

    private static func write(_ text: String, to descriptor: Int32) {
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0 {
                if errno == EINTR || errno == EAGAIN { continue }
                return
            }
            bytes = bytes.dropFirst(count)
        }
    }
}

extension String {
    /// Without what would move the cursor or change the colours of the terminal it is shown on.
    var printable: String {
        var result = ""
        for scalar in unicodeScalars {
            switch scalar.value {
            case 0x0A: result += "\n    "
            case 0x09: result += " "
            case 0..<0x20, 0x7F..<0xA0, 0x202A...0x202E, 0x2066...0x2069: result += "\u{FFFD}"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}
