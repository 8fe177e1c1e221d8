// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import Hermes

/// Stores the tokens of earlier logins, with their devices, in files that only the user can read. The files are in
/// `$XDG_CONFIG_HOME/hermes` or `~/.config/hermes`. There is one file for each combination of account, server and
/// device.
struct TokenCache {
    struct Entry: Codable, Hashable {
        var uid: UInt32
        var device: String
        var token: String
    }

    let directory: URL

    /// Creates a cache in a directory. If it is nil, the cache is in the user's own directory.
    init(directory: URL? = nil) {
        self.directory = directory ?? Self.userDirectory(environment: ProcessInfo.processInfo.environment)
    }

    static func userDirectory(environment: [String: String]) -> URL {
        if let base = environment["XDG_CONFIG_HOME"], base.hasPrefix("/") {
            return URL(fileURLWithPath: base).appendingPathComponent("hermes")
        }
        let home =
            environment["HOME"].map { URL(fileURLWithPath: $0) } ?? FileManager.default.homeDirectoryForCurrentUser
        return home.appendingPathComponent(".config/hermes")
    }

    /// Returns the device id of this machine. It is chosen once and stored; if it cannot be stored, each call chooses a
    /// new one.
    func deviceID() -> String {
        let file = directory.appendingPathComponent("device-id")
        let known = (try? String(contentsOf: file, encoding: .utf8))?.trimmingCharacters(in: .whitespacesAndNewlines)
        if let known, (1...40).contains(known.utf8.count), known.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) {
            return known
        }
        let id = "cli-" + String(UInt32.random(in: 0...UInt32.max), radix: 36)
        try? write(Data((id + "\n").utf8), to: file)
        return id
    }

    func entry(name: String, server: ServerAddress, device: String) -> Entry? {
        guard let data = try? Data(contentsOf: file(name, server, device)) else { return nil }
        return try? JSONDecoder().decode(Entry.self, from: data)
    }

    func store(_ entry: Entry, name: String, server: ServerAddress) throws {
        try write(JSONEncoder().encode(entry), to: file(name, server, entry.device))
    }

    func remove(name: String, server: ServerAddress, device: String) {
        try? FileManager.default.removeItem(at: file(name, server, device))
    }

    func file(_ name: String, _ server: ServerAddress, _ device: String) -> URL {
        let label = [name.lowercased(), "\(server.host):\(server.port)", device].map(Self.escaped).joined(
            separator: ","
        )
        return directory.appendingPathComponent("tokens").appendingPathComponent(label + ".json")
    }

    /// Keeps ASCII letters, digits, "-", "_" and ":". Every other byte becomes % and two hexadecimal digits, so that
    /// different names give different files.
    private static func escaped(_ text: String) -> String {
        text.utf8.map { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: ":"):
                String(UnicodeScalar(byte))
            default:
                "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
            }
        }.joined()
    }

    /// Writes a file of mode 0600, and creates missing directories with mode 0700. Readers see the whole new file or
    /// the previous state.
    private func write(_ data: Data, to file: URL) throws {
        let folder = file.deletingLastPathComponent()
        try FileManager.default.createDirectory(
            at: folder,
            withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o700]
        )
        let temporary = folder.appendingPathComponent(".\(UInt64.random(in: 0...UInt64.max)).tmp")
        let descriptor = open(temporary.path, O_WRONLY | O_CREAT | O_EXCL, 0o600)
        guard descriptor >= 0 else {
            throw ClientFailure("\(temporary.path) cannot be written: \(String(cString: strerror(errno)))")
        }
        let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        do {
            try handle.write(contentsOf: data)
            try handle.close()
            guard rename(temporary.path, file.path) == 0 else {
                throw ClientFailure("\(file.path) cannot be written: \(String(cString: strerror(errno)))")
            }
        } catch {
            unlink(temporary.path)
            throw error
        }
    }
}
