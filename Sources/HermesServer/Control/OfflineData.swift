// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesCore
import HermesSQLite
import Logging

/// The data directory of a command that works without a server.
///
/// With a wrong directory, a command would create a database that no server uses, and would report success. So only
/// commands that prepare the first start may create a database.
struct OfflineData {
    private let settings: ServerSettings
    /// The absolute path of the directory.
    private let directory: String

    init(_ settings: ServerSettings) {
        self.settings = settings
        directory = AbsolutePath.of(settings.data.directory)
    }

    /// The absolute path of the database.
    var database: String { "\(directory)/\(SQLiteStore.fileName)" }

    /// Whether the command creates the database, because there is none yet.
    ///
    /// - Throws: if there is no database, and the command must not create one.
    func isCreated(by request: ControlRequest) throws(ServerFailure) -> Bool {
        let files = FileManager.default
        guard !files.fileExists(atPath: database) else { return false }
        // In a directory that this process may not enter, every database seems to be missing. The attempt to open the
        // database then fails with the real reason.
        if access(database, F_OK) != 0, errno == EACCES { return false }
        let isThere = files.fileExists(atPath: directory)
        guard request.preparesFirstStart, isThere || !isGivenByHand else {
            throw ServerFailure(
                .badConfiguration,
                "there is no database \(database)\(isThere ? "" : ", and no such directory"): name the server's data "
                    + "directory with --data DIR, or its configuration with --config FILE"
            )
        }
        return true
    }

    /// Whether the directory was given on the command line.
    private var isGivenByHand: Bool {
        settings.inForce.contains { $0.key == "data.directory" && $0.origin == "command line" }
    }

    /// Opens the store, after no server has answered on the control socket.
    func open(_ logger: Logger) throws(ServerFailure) -> OpenStore {
        do throws(ServerFailure) {
            return try OpenStore.open(settings, logger: logger)
        } catch {
            guard error.exitCode == .dataInUse else { throw error }
            throw ServerFailure(
                .dataInUse,
                "another process uses \(directory), and no server answers on its socket \(ControlSocket.fileName). If "
                    + "a server runs on this directory without a control socket, its log says why. If another command "
                    + "uses the directory, try again when that command has ended"
            )
        }
    }
}

extension ControlRequest {
    /// Whether the request is useful before the first start of a server, and so may create the database.
    fileprivate var preparesFirstStart: Bool {
        switch self {
        case .addUser, .addAdministrator, .createAPIKey, .createInvitation: true
        case .listUsers, .setPassword, .setDisabled, .deleteUser, .listDevices, .listConversations, .removeDevice,
            .listClients, .disconnectClient, .figureHistory, .listAPIKeys, .revokeAPIKey, .listInvitations,
            .revokeInvitation, .listAdministrators, .removeAdministrator, .setAdministratorPassword,
            .setAdministratorRole, .newSecondFactor, .removeSecondFactor, .auditLog, .trace, .stats, .deliveries,
            .backup:
            false
        }
    }
}
