// Hermes
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import HermesCLI

@Suite struct LineEditorTests {
    /// Feeds text to the editor, and returns the actions without the redraws.
    private static func feed(_ bytes: some Sequence<UInt8>, to editor: inout LineEditor) -> [LineEditor.Action] {
        bytes.compactMap { editor.feed($0) }.filter { $0 != .redraw }
    }

    private static func type(_ text: String, into editor: inout LineEditor) -> [LineEditor.Action] {
        feed(text.utf8, to: &editor)
    }

    @Test(arguments: [
        ("hello\r", "hello"), ("héllo wörld\n", "héllo wörld"), ("日本語😀\r", "日本語😀"),
        ("helpo\u{7F}\u{7F}lo\r", "hello"), ("ae\u{1B}[Db\u{1B}[Ccd\r", "abecd"), ("b\u{01}a\u{05}c\r", "abc"),
        ("two words\u{17}more\r", "two more"), ("gone\u{15}here\r", "here"), ("ab\u{1B}[D\u{1B}[3~\r", "a"),
        ("ab\u{01}\u{0B}x\r", "x"), ("e\u{301}\u{7F}x\r", "x"), ("日本\u{7F}x\r", "日x"),
        ("a\u{1B}[5~b\u{1B}OHc\r", "cab"),
    ])
    func `keys make a line`(keys: String, line: String) {
        var editor = LineEditor()
        #expect(Self.type(keys, into: &editor) == [.submit(line)])
        #expect(editor.text.isEmpty)
    }

    @Test func `earlier lines come back`() {
        var editor = LineEditor()
        _ = Self.type("one\rtwo\r", into: &editor)
        #expect(Self.type("\u{1B}[A\u{1B}[A\r", into: &editor) == [.submit("one")])
        #expect(Self.type("\u{10}\u{10}\u{0E}\r", into: &editor) == [.submit("one")])
    }

    @Test func `Ctrl-C interrupts, Ctrl-D ends an empty line alone`() {
        var editor = LineEditor()
        #expect(Self.type("a\u{04}\u{01}\u{04}\u{04}\u{03}", into: &editor) == [.endOfInput, .interrupt])
    }

    @Test func `bytes that are no text do no harm`() {
        var editor = LineEditor()
        var random = SystemRandomNumberGenerator()
        for _ in 0..<20_000 { _ = editor.feed(UInt8.random(in: 0...255, using: &random)) }
        #expect(editor.cursor <= editor.text.count)
    }

    @Test func `a line that is longer than the terminal shows the part with the cursor`() {
        var editor = LineEditor()
        _ = Self.type(String(repeating: "x", count: 100) + "END", into: &editor)
        let picture = Console.picture(prompt: "> ", editor: editor, width: 20)
        #expect(picture.hasSuffix("xxEND"))
        #expect(picture.count < 30)
    }
}

@Suite struct ChatInputTests {
    @Test(arguments: [
        ("hello", ChatInput.say("hello")), ("", .nothing), ("   ", .nothing), ("//quit", .say("/quit")),
        ("/to bob", .to("bob")), ("/to  a b", .to("a b")), ("/history", .history(20)), ("/history 5", .history(5)),
        ("/list", .list(20)), ("/list 500", .list(500)),
        ("/who", .who), ("/quit", .quit), ("/help", .help), ("/devices", .devices),
    ])
    func `lines are understood`(line: String, input: ChatInput) { #expect(ChatInput(line) == input) }

    @Test(arguments: ["/to", "/history 0", "/history x", "/list 501", "/list -1", "/nonsense", "/"])
    func `wrong lines say what is wrong`(line: String) {
        guard case .wrong(let reason) = ChatInput(line) else {
            Issue.record("understood")
            return
        }
        #expect(reason.contains("/"))
    }

    @Test func `what others say cannot steer the terminal`() {
        #expect("a\u{1B}[2Jb\u{9B}c\u{202E}d".printable == "a\u{FFFD}[2Jb\u{FFFD}c\u{FFFD}d")
        #expect("one\ntwo".printable == "one\n    two")
    }

    @Test func `bytes are cut into lines`() {
        var lines = LineSplitter()
        #expect(lines.feed(Array("one\r\ntw".utf8)) == ["one"])
        #expect(lines.feed(Array("o\n\nthree".utf8)) == ["two", ""])
        #expect(lines.finish() == "three")
        #expect(lines.finish() == nil)
    }

    @Test func `gifts are understood`() {
        #expect(RoomCommand.Gift("rose")?.count == 1)
        #expect(RoomCommand.Gift("rose:3")?.count == 3)
        for wrong in ["", ":3", "rose:", "rose:0", "rose:x"] { #expect(RoomCommand.Gift(wrong) == nil) }
    }
}
