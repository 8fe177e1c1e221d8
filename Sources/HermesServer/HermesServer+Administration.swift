// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesCore
import HermesGateways
import Logging

extension HermesServer {
    /// Checks the configuration, and the files that it names, as `run` does.
    ///
    /// - Parameters:
    ///   - readsFiles: whether to read the files: rules, keys, certificates.
    ///   - warn: gets a sentence about each setting that is allowed but probably not intended.
    /// - Returns: the values in force and their sources, one line per setting.
    package static func checkConfiguration(
        arguments: [String],
        environment: [String: String] = ProcessInfo.processInfo.environment,
        file: String?,
        readsFiles: Bool = true,
        warn: (String) -> Void = { _ in }
    ) async throws(ServerFailure) -> String {
        do throws(SettingsError) {
            let sources = sources(arguments, environment, file)
            let settings = ServerSettings.all(for: sources)
            let values = try sources.load(settings)
            let checked = try ServerSettings(values)
            let problems = readsFiles ? await ConfigurationFiles.problems(of: checked) : []
            guard problems.isEmpty else { throw SettingsError(problems: problems) }
            for warning in checked.warnings { warn(warning) }
            if readsFiles { for warning in ConfigurationFiles.warnings(of: checked) { warn(warning) } }
            return ConfigurationText.effective(values, of: settings)
        } catch {
            throw ServerFailure(error)
        }
    }

    /// Carries out an administrator's request. If a server runs on the data directory, that server carries out the
    /// request. Otherwise this process works on the directory itself.
    ///
    /// - Parameter note: gets a sentence for the person at the command line if the command has created a database.
    /// - Throws: errors of the configuration and of opening the directory; errors of the request are in the response.
    package static func administer(
        _ request: ControlRequest,
        arguments: [String],
        environment: [String: String] = ProcessInfo.processInfo.environment,
        file: String?,
        note: (String) -> Void = { _ in }
    ) async throws(ServerFailure) -> ControlResponse {
        // The server may close the connection; writing then fails instead of ending the process.
        signal(SIGPIPE, SIG_IGN)
        let settings = try load(arguments: arguments, environment: environment, file: file)
        guard settings.data.storeKind == .sqlite else {
            throw ServerFailure(.badConfiguration, "store.kind is memory: there is no data to work on")
        }
        if let response = try await ControlClient.ask(request, directory: settings.data.directory) { return response }
        let data = OfflineData(settings)
        let isNew = try data.isCreated(by: request)
        let logger = Logger(label: "hermes") { _ in LineLogHandler(level: .warning, format: settings.log.format) }
        let store = try data.open(logger)
        if isNew { note("created the database \(data.database); the server must use the same data directory") }
        let messenger = Messenger(
            accountStore: store.accounts,
            messageStore: store.messages,
            socialStore: store.social,
            sessionStore: store.sessions,
            pushTokenStore: store.pushTokens,
            accountSettings: settings.accounts,
            messageSettings: settings.messages,
            durableSettings: settings.durableSettings
        )
        let keys = APIKeyService(store: store.apiKeys, time: messenger.time)
        let administration = Administration(
            messenger: messenger,
            store: store.messages,
            keys: keys,
            administrators: AdministratorService(
                store: store.administrators,
                time: messenger.time,
                passwordCost: settings.accounts.passwordParameters
            )
        )
        let response: Result<ControlResponse, ServerFailure>
        do throws(ServerFailure) {
            // The deletion of an account needs the loaded sessions and retained publications. As at each start, the
            // sessions that a crash left connected begin to expire, and interrupted jobs continue.
            if case .deleteUser = request { try await ServerAssembly.load(messenger) }
            response = .success(await administration.perform(request))
        } catch {
            response = .failure(error)
        }
        await messenger.shutdown()
        do {
            try store.close()
        } catch {
            throw ServerFailure(.diskFailed, "the data directory could not be closed: \(error)")
        }
        return try response.get()
    }
}
