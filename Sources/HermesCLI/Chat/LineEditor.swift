// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Turns the bytes of a terminal's keys into lines. Does no I/O.
struct LineEditor {
    enum Action: Hashable {
        /// The line's display changed.
        case redraw
        /// A line is complete.
        case submit(String)
        /// Ctrl-C.
        case interrupt
        /// Ctrl-D on an empty line.
        case endOfInput
    }

    private(set) var text: [Character] = []
    /// The index of the character after the cursor.
    private(set) var cursor = 0
    private var pending: [UInt8] = []
    private var history: [String] = []
    private var historyIndex = 0

    /// The longest line, in characters.
    static let maxCharacters = 16_384
    private static let maxHistory = 100

    /// Handles the next byte from the terminal.
    mutating func feed(_ byte: UInt8) -> Action? {
        if !pending.isEmpty { return more(byte) }
        switch byte {
        case 0x03: return .interrupt
        case 0x04:
            if text.isEmpty { return .endOfInput }
            return delete(forward: true)
        case 0x0A, 0x0D: return submit()
        case 0x01: return move(to: 0)
        case 0x05: return move(to: text.count)
        case 0x02: return move(to: cursor - 1)
        case 0x06: return move(to: cursor + 1)
        case 0x08, 0x7F: return delete(forward: false)
        case 0x0B: return edit { $0.text.removeSubrange($0.cursor...) }
        case 0x0C: return .redraw
        case 0x15:
            return edit {
                $0.text.removeSubrange(..<$0.cursor)
                $0.cursor = 0
            }
        case 0x17: return deleteWord()
        case 0x10: return recall(-1)
        case 0x0E: return recall(1)
        case 0x1B, 0xC2...0xF4:
            pending = [byte]
            return nil
        case 0x20...0x7E: return insert(Character(UnicodeScalar(byte)))
        default: return nil
        }
    }

    /// Handles the second or a later byte of an escape sequence or character.
    private mutating func more(_ byte: UInt8) -> Action? {
        pending.append(byte)
        guard pending.first == 0x1B else { return character() }
        if pending.count == 2, byte == UInt8(ascii: "[") || byte == UInt8(ascii: "O") { return nil }
        // A sequence has parameters, and then a final byte from 0x40 to 0x7E.
        if pending.count > 2, !(0x40...0x7E).contains(byte), pending.count < 16 { return nil }
        let sequence = pending.dropFirst(2)
        pending = []
        switch sequence.map({ String(UnicodeScalar($0)) }).joined() {
        case "A": return recall(-1)
        case "B": return recall(1)
        case "C": return move(to: cursor + 1)
        case "D": return move(to: cursor - 1)
        case "H", "1~", "7~": return move(to: 0)
        case "F", "4~", "8~": return move(to: text.count)
        case "3~": return delete(forward: true)
        default: return nil
        }
    }

    private mutating func character() -> Action? {
        let length = (pending.first ?? 0) < 0xE0 ? 2 : (pending.first ?? 0) < 0xF0 ? 3 : 4
        guard pending.count >= length || (pending.last ?? 0) & 0xC0 != 0x80 else { return nil }
        let bytes = pending
        pending = []
        guard let string = String(validating: bytes, as: UTF8.self), let character = string.first else { return nil }
        return insert(character)
    }

    private mutating func insert(_ character: Character) -> Action? {
        guard text.count < Self.maxCharacters else { return nil }
        // A combining character merges with the character before it.
        if cursor > 0 {
            let joined = String(text[cursor - 1]) + String(character)
            if joined.count == 1, let whole = joined.first {
                text[cursor - 1] = whole
                return .redraw
            }
        }
        text.insert(character, at: cursor)
        cursor += 1
        return .redraw
    }

    private mutating func delete(forward: Bool) -> Action? {
        let index = forward ? cursor : cursor - 1
        guard text.indices.contains(index) else { return nil }
        text.remove(at: index)
        cursor = index
        return .redraw
    }

    private mutating func deleteWord() -> Action? {
        var start = cursor
        while start > 0, text[start - 1] == " " { start -= 1 }
        while start > 0, text[start - 1] != " " { start -= 1 }
        return edit {
            $0.text.removeSubrange(start..<$0.cursor)
            $0.cursor = start
        }
    }

    private mutating func edit(_ change: (inout LineEditor) -> Void) -> Action? {
        change(&self)
        return .redraw
    }

    private mutating func move(to index: Int) -> Action? {
        cursor = min(max(index, 0), text.count)
        return .redraw
    }

    private mutating func recall(_ step: Int) -> Action? {
        let index = historyIndex + step
        guard (0...history.count).contains(index) else { return nil }
        historyIndex = index
        text = index < history.count ? Array(history[index]) : []
        cursor = text.count
        return .redraw
    }

    private mutating func submit() -> Action? {
        let line = String(text)
        text = []
        cursor = 0
        if !line.isEmpty, history.last != line {
            history.append(line)
            if history.count > Self.maxHistory { history.removeFirst() }
        }
        historyIndex = history.count
        return .submit(line)
    }
}
