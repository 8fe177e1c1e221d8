// Hermes
// SPDX-License-Identifier: Apache-2.0

#if Pages
import Foundation

/// The command with which people on this machine call the server's program from any directory.
struct LocalProgram: Sendable, Hashable {
    private static let name = "hermes"

    /// The program as one word of a shell command: its path, unless the name `hermes` is enough.
    let command: String
    /// The option that names the server's data, with a space before it; empty if there is no data directory.
    let dataOption: String

    init(_ settings: ServerSettings) {
        self.init(
            executable: Bundle.main.executablePath,
            searchPath: ProcessInfo.processInfo.environment["PATH"] ?? "",
            dataDirectory: settings.data.storeKind == .memory ? nil : settings.data.directory
        )
    }

    /// - Parameters:
    ///   - executable: the path of this process's program, which is not `hermes` if the server is embedded in another
    ///     program.
    ///   - searchPath: the directories in which a shell looks for programs, separated by colons.
    ///   - dataDirectory: the data directory; nil if everything is in memory.
    init(executable: String?, searchPath: String, dataDirectory: String?) {
        let program = executable.map { URL(fileURLWithPath: $0) }
        if let program, program.lastPathComponent == Self.name, !Self.isFound(program, in: searchPath) {
            command = Self.word(program.standardizedFileURL.path)
        } else {
            command = Self.name
        }
        let data = dataDirectory.map { URL(fileURLWithPath: $0).standardizedFileURL.path }
        dataOption = data.map { " --data " + Self.word($0) } ?? ""
    }

    /// Whether the first program named `hermes` in the search path is this one.
    private static func isFound(_ program: URL, in searchPath: String) -> Bool {
        let places = searchPath.split(separator: ":").filter { $0.hasPrefix("/") }
        let candidates = places.map { URL(fileURLWithPath: String($0)).appendingPathComponent(name) }
        let first = candidates.first { FileManager.default.isExecutableFile(atPath: $0.path) }
        return first?.resolvingSymlinksInPath() == program.resolvingSymlinksInPath()
    }

    /// Returns a text as one word of a POSIX shell command.
    static func word(_ text: String) -> String {
        let isPlain = text.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"):
                true
            default: "/._-+:@%".utf8.contains(byte)
            }
        }
        return isPlain && !text.isEmpty ? text : "'" + text.replacing("'", with: "'\\''") + "'"
    }
}
#endif
