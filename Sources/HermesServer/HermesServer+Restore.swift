// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesCore
import HermesSQLite
import Logging

extension HermesServer {
    /// Replaces the database of a data directory with a copy of a database, as `hermes restore` does. No server may
    /// run on the directory.
    ///
    /// - Parameters:
    ///   - path: the absolute path of the copy.
    ///   - log: gets the lines about the progress; nil for standard error.
    /// - Returns: what was done, for people.
    package static func restore(
        _ path: String,
        arguments: [String],
        environment: [String: String] = ProcessInfo.processInfo.environment,
        file: String?,
        log: (@Sendable (String) -> Void)? = nil
    ) throws(ServerFailure) -> String {
        let settings = try load(arguments: arguments, environment: environment, file: file)
        guard settings.data.storeKind == .sqlite else {
            throw ServerFailure(.badConfiguration, "store.kind is memory: there is no database to replace")
        }
        let directory = AbsolutePath.of(settings.data.directory)
        var isDirectory: ObjCBool = false
        guard FileManager.default.fileExists(atPath: directory, isDirectory: &isDirectory), isDirectory.boolValue else {
            throw ServerFailure(
                .badConfiguration,
                "there is no directory \(directory): name the server's data directory with --data DIR, or its "
                    + "configuration with --config FILE. On a new machine, first create the directory for the server's "
                    + "user"
            )
        }
        let logger = Logger(label: "hermes") { _ in
            LineLogHandler(level: .notice, format: settings.log.format, write: log)
        }
        do throws(StoreOpenError) {
            let restored = try SQLiteStore.restore(path, in: directory, logger: logger)
            let kept = restored.replaced.map { "; the former database is in \($0)" } ?? ""
            return "restored \(directory)/\(SQLiteStore.fileName) from \(path): \(restored.bytes) bytes, accounts: "
                + "\(restored.accounts)\(kept)"
        } catch {
            guard error.reason == .locked else { throw ServerFailure(error) }
            throw ServerFailure(
                .dataInUse,
                "a server or another command uses \(directory); stop it, then restore, then start the server again. "
                    + "Nothing was changed"
            )
        }
    }
}
