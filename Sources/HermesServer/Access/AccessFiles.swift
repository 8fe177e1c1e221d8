// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesCore
import HermesGateways
import Logging
import ServiceLifecycle
import Synchronization

/// Reads the topic rules and the token keys from their files when the server starts and on SIGHUP. Topic rules are also
/// read again after their file has changed and has then stayed the same for one ``interval``. A rule file that has
/// become empty is read again only on SIGHUP, because editors and shells empty a file before they write it.
final class AccessFiles: Service, Sendable {
    /// The time between two checks of the rule file.
    static let interval = Duration.seconds(1)

    let access: TopicAccess
    let verifier: JWTVerifier?
    private let settings: AccessSettings
    private let logger: Logger
    private let watch: Mutex<FileWatch>

    /// Reads the files.
    ///
    /// - Throws: an error that names the unusable file and its setting.
    init(_ settings: AccessSettings, logger: Logger) throws(ServerFailure) {
        self.settings = settings
        self.logger = logger
        // The stamp is taken before the file is read, so that a change during or after the read is noticed.
        watch = Mutex(FileWatch(read: settings.rulesPath.flatMap { FileStamp($0) }))
        var rules = TopicRules()
        if let path = settings.rulesPath {
            do {
                rules = try Self.rules(path)
            } catch {
                throw ServerFailure(
                    .badConfiguration,
                    "access.rules: \"\(AbsolutePath.of(path))\" cannot be used: \(error)"
                )
            }
        }
        access = TopicAccess(rules)
        if let tokens = settings.tokens {
            do {
                verifier = try JWTVerifier(tokens)
            } catch {
                throw ServerFailure(
                    .badConfiguration,
                    "access.jwt.keys: \"\(AbsolutePath.of(tokens.keysPath))\" cannot be used: \(error)"
                )
            }
        } else {
            verifier = nil
        }
    }

    /// Checks the rule file until the server stops.
    func run() async throws {
        guard let path = settings.rulesPath else {
            try? await gracefulShutdown()
            return
        }
        await cancelWhenGracefulShutdown { [self] in
            while !Task.isCancelled {
                let stamp = FileStamp(path)
                if watch.withLock({ $0.isDue(stamp) }) { reloadRules() }
                // When the server stops, the sleep throws and the loop ends.
                try? await Task.sleep(for: Self.interval)
            }
        }
    }

    /// Reads all files again. If a file is unusable, its old contents stay in use.
    func reload() {
        reloadRules()
        guard let verifier else { return }
        do {
            try verifier.reload()
            logger.info("token keys read")
        } catch {
            logger.error("token keys are unusable; the old ones stay in use", metadata: ["error": "\(error)"])
        }
    }

    private func reloadRules() {
        guard let path = settings.rulesPath else { return }
        do {
            let stamp = FileStamp(path)
            let rules = try Self.rules(path)
            guard FileStamp(path) == stamp else { throw Changing() }
            watch.withLock { $0.read = stamp }
            access.replace(with: rules)
            logger.info("topic rules read", metadata: ["rules": "\(rules.count)"])
        } catch {
            logger.error(
                "topic rules are unusable; the old ones stay in use",
                metadata: ["file": "\(path)", "error": "\(error)"]
            )
        }
    }

    private static func rules(_ path: String) throws -> TopicRules {
        let data = try BoundedFile.read(path, atMost: TopicRules.maxBytes + 1)
        guard let text = String(validating: data, as: UTF8.self) else {
            throw TopicRules.SyntaxError(line: 1, reason: "the file is not UTF-8")
        }
        return try TopicRules(parsing: text)
    }

    private struct Changing: Error, CustomStringConvertible {
        var description: String { "the file is being changed" }
    }
}

/// Decides when a file that has changed is read again. Does no I/O.
struct FileWatch {
    /// The properties that the file had when it was last read successfully.
    var read: FileStamp? {
        didSet { judged = nil }
    }
    /// The properties that the file had at the last check.
    private var seen: FileStamp?
    /// The properties for which ``isDue(_:)`` last returned true. This version of the file is not read again, even if
    /// reading it failed.
    private var judged: FileStamp?

    init(read: FileStamp?) {
        self.read = read
        seen = read
    }

    /// Whether to read the file now. `stamp` holds the present properties of the file; nil means that there is no file.
    /// If the file is missing or empty, or has changed since the last check, somebody is probably replacing it, so it
    /// is not read yet.
    mutating func isDue(_ stamp: FileStamp?) -> Bool {
        defer { seen = stamp }
        guard let stamp, stamp == seen, stamp != read, stamp != judged, !stamp.isEmpty else { return false }
        judged = stamp
        return true
    }
}

/// The properties that show whether a file has changed.
struct FileStamp: Equatable {
    let modified: Date?
    let size: UInt64?
    let number: UInt64?

    var isEmpty: Bool { size == 0 }

    init(modified: Date?, size: UInt64?, number: UInt64?) {
        self.modified = modified
        self.size = size
        self.number = number
    }

    /// Follows all symbolic links and reads the properties of their target, because a link may be switched to another
    /// file.
    init?(_ path: String) {
        // This is false for a link whose target does not exist.
        guard FileManager.default.fileExists(atPath: path) else { return nil }
        let path = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
        guard let attributes = try? FileManager.default.attributesOfItem(atPath: path) else { return nil }
        modified = attributes[.modificationDate] as? Date
        size = (attributes[.size] as? NSNumber)?.uint64Value
        number = (attributes[.systemFileNumber] as? NSNumber)?.uint64Value
    }
}
