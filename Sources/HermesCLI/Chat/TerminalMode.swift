// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The terminal without line editing, echo and signal keys; put back as it was at the end.
enum TerminalMode {
    /// Switches the terminal of stdin over.
    ///
    /// - Returns: what puts it back; nil if stdin is no terminal.
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

    /// How many columns the terminal has.
    static var width: Int {
        var size = winsize()
        guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
        return Int(size.ws_col)
    }
}
