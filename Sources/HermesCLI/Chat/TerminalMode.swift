// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The raw mode of the terminal, without line editing, echo and signal keys.
enum TerminalMode {
    /// Switches the terminal of stdin to the raw mode.
    ///
    /// - Returns: a function that restores the terminal's mode; nil if stdin is not a terminal.
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

    /// The number of columns of the terminal; 80 if it is unknown.
    static var width: Int {
        var size = winsize()
        guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
        return Int(size.ws_col)
    }
}
