// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The terminal without line editing, echo and signal keys; restored at the end.
enum TerminalMode {
    /// Switches the terminal of stdin.
    ///
    /// - Returns: a function that restores it; nil if stdin is not a terminal.
    static func makeRaw() -> (@Sendable () -> Void)? {
        var settings = termios()
        guard tcgetattr(STDIN_FILENO, &settings) == 0 else { return nil }
        let original = settings
        settings.c_lflag &= ~tcflag_t(ICANON | ECHO | ISIG | IEXTEN)
        settings.c_iflag &= ~tcflag_t(IXON | ICRNL)
        guard tcsetattr(STDIN_FILENO, TCSADRAIN, &settings) == 0 else { return nil }
        return {
            var original = original
            tcsetattr(STDIN_FILENO, TCSADRAIN, &original)
        }
    }

    static func whileRaw<Result>(_ body: () throws -> Result) rethrows -> Result {
        let restore = makeRaw()
        defer { restore?() }
        return try body()
    }

    /// The number of the terminal's columns.
    static var width: Int {
        var size = winsize()
        guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
        return Int(size.ws_col)
    }
}
