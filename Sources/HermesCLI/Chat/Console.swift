// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The output of a chat: messages go to stdout, the program's own lines to stderr. On a terminal, the input line stays
/// below both.
actor Console {
    /// Whether lines are edited on a terminal.
    nonisolated let isInteractive: Bool
    private var prompt = ""
    private var editor = LineEditor()
    private var isDrawn = false
    private let output: StandardOutput
    private let errors: StandardOutput

    init(
        isInteractive: Bool,
        output: StandardOutput = StandardOutput(),
        errors: StandardOutput = StandardOutput(descriptor: STDERR_FILENO)
    ) {
        self.isInteractive = isInteractive
        self.output = output
        self.errors = errors
    }

    /// Prints a message. Returns after the message was written and, if the output is a pipe, after its reader has read
    /// it.
    ///
    /// - Throws: OutputFailure; CancellationError.
    func print(_ line: String) async throws {
        erase()
        try output.write(Array((line + "\n").utf8))
        draw()
        try await output.drain()
    }

    /// Prints a line of the program itself, without control characters. Does not wait for a reader.
    func status(_ line: String) {
        erase()
        try? errors.write(Array(((isInteractive ? "-- " : "hermes: ") + line.printable + "\n").utf8))
        draw()
    }

    /// Sets the prompt of the input line.
    func setPrompt(_ prompt: String) {
        self.prompt = prompt
        draw()
    }

    /// Handles a byte of a key.
    func feed(_ byte: UInt8) -> LineEditor.Action? {
        let action = editor.feed(byte)
        switch action {
        case .redraw: draw()
        case .submit, .interrupt, .endOfInput: erase()
        case nil: break
        }
        return action
    }

    /// Clears the input line and the prompt at the end of the chat.
    func finish() {
        erase()
        prompt = ""
    }

    private func erase() {
        guard isDrawn else { return }
        isDrawn = false
        try? output.write(Array("\r\u{1B}[K".utf8))
    }

    private func draw() {
        guard isInteractive, !prompt.isEmpty else { return }
        isDrawn = true
        try? output.write(Array(Self.picture(prompt: prompt, editor: editor, width: TerminalMode.width).utf8))
    }

    /// Returns the line to draw: the prompt, and the part of the text around the cursor that fits into the terminal's
    /// width.
    static func picture(prompt: String, editor: LineEditor, width: Int) -> String {
        let room = max(8, width - prompt.columns - 1)
        var start = editor.cursor
        var used = 0
        while start > 0, used + editor.text[start - 1].columns <= room {
            start -= 1
            used += editor.text[start].columns
        }
        var end = editor.cursor
        var behind = 0
        while end < editor.text.count, used + behind + editor.text[end].columns <= room {
            behind += editor.text[end].columns
            end += 1
        }
        let back = behind > 0 ? "\u{1B}[\(behind)D" : ""
        return "\r\u{1B}[K\(prompt)\(String(editor.text[start..<end]))\(back)"
    }
}

extension String {
    /// The text, with each harmful control character replaced. A control character is harmful if it could move the
    /// cursor, or change the terminal's colours or the direction of writing.
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
