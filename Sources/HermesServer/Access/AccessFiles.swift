// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesCore
import HermesGateways
import Logging
import ServiceLifecycle

/// The files with access rules: topic rules and token keys. Read at start and on SIGHUP. The rules are also read when
/// their file has changed, once it has been the same for ``interval``; a file that has become empty needs SIGHUP, because
/// editors and shells empty a file before they write it.
struct AccessFiles: Service {
    /// The interval of checks of the rule file.
    static let interval = Duration.seconds(1)

    let access: TopicAccess
    let verifier: JWTVerifier?
    private let settings: AccessSettings
    private let logger: Logger
    /// The rule file's properties before it was read: a change from then on is noticed, also during the start.
    private let stamp: Stamp?

    /// Reads the files.
    ///
    /// - Throws: the error in one of them, and its place.
    init(_ settings: AccessSettings, logger: Logger) throws(ServerFailure) {
        self.settings = settings
        self.logger = logger
        stamp = settings.rulesPath.flatMap { Stamp($0) }
        var rules = TopicRules()
        if let path = settings.rulesPath {
            do {
                rules = try Self.rules(path)
            } catch {
                throw ServerFailure(.badConfiguration, "access.rules: \"\(path)\" cannot be used: \(error)")
            }
        }
        access = TopicAccess(rules)
        if let tokens = settings.tokens {
            do {
                verifier = try JWTVerifier(tokens)
            } catch {
                throw ServerFailure(
                    .badConfiguration,
                    "access.jwt.keys: \"\(tokens.keysPath)\" cannot be used: \(error)"
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
        await cancelWhenGracefulShutdown {
            var (last, seen) = (stamp, stamp)
            while !Task.isCancelled {
                // A file that is gone, empty, or other than a moment ago is being replaced.
                let stamp = Stamp(path)
                if let stamp, stamp == seen, stamp != last, !stamp.isEmpty {
                    last = stamp
                    reloadRules()
                }
                seen = stamp
                // Throws when the server stops; then the loop ends.
                try? await Task.sleep(for: Self.interval)
            }
        }
    }

    /// Reads everything again; an unreadable file changes nothing.
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
            let stamp = Stamp(path)
            let rules = try Self.rules(path)
            guard Stamp(path) == stamp else { throw Changing() }
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
        let file = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
        defer { try? file.close() }
        let data = try file.read(upToCount: TopicRules.maxBytes + 1) ?? Data()
        guard let text = String(validating: data, as: UTF8.self) else {
            throw TopicRules.SyntaxError(line: 1, reason: "the file is not UTF-8")
        }
        return try TopicRules(parsing: text)
    }

    private struct Changing: Error, CustomStringConvertible {
        var description: String { "it changes at this moment" }
    }

    /// The properties that change with a file.
    private struct Stamp: Equatable {
        var isEmpty: Bool { size == 0 }

        let modified: Date?
        let size: UInt64?
        let number: UInt64?

        init?(_ path: String) {
            guard let attributes = try? FileManager.default.attributesOfItem(atPath: path) else { return nil }
            modified = attributes[.modificationDate] as? Date
            size = (attributes[.size] as? NSNumber)?.uint64Value
            number = (attributes[.systemFileNumber] as? NSNumber)?.uint64Value
        }
    }
}
