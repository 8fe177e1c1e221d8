// Hermes
// SPDX-License-Identifier: Apache-2.0

public import Foundation
import HermesCore
import HermesGateways
import Logging

/// The server as a program.
public enum HermesServer {
    /// Reads the configuration, serves until SIGTERM or SIGINT, drains and returns.
    ///
    /// Raises the process's limit of open files, and installs the backend of swift-metrics.
    ///
    /// - Parameters:
    ///   - arguments: settings as `--KEY VALUE`; they override the environment, which overrides the file.
    ///   - environment: variables that begin with `HERMES_`.
    ///   - file: the path of a YAML file; nil if there is none.
    public static func run(
        arguments: [String] = [],
        environment: [String: String] = ProcessInfo.processInfo.environment,
        file: String? = nil
    ) async throws(ServerFailure) {
        // By default, SIGHUP ends the process, so it is ignored from here on. ``EarlySignals`` below records it. That
        // object is created before the server reads any of the files that it reads again on SIGHUP.
        signal(SIGHUP, SIG_IGN)
        let configured = try load(arguments: arguments, environment: environment, file: file)
        let tail = LogTail()
        let logger = Logger(label: "hermes") { label in
            LineLogHandler(level: configured.log.level, format: configured.log.format, label: label, tail: tail)
        }
        // The reader of the output may disappear; writing then fails instead of ending the process.
        signal(SIGPIPE, SIG_IGN)
        let path = file ?? environment["HERMES_CONFIG"]
        let settingsFile = path.map { SettingsFile($0) }
        logger.info(
            "starting",
            metadata: [
                "version": "\(HermesVersion.current)", "data": "\(AbsolutePath.of(configured.data.directory))",
                "configuration": "\(path.map(AbsolutePath.of) ?? "none")",
            ]
        )
        for warning in configured.warnings { logger.warning("\(warning)") }
        let settings = fitted(configured, logger)
        let early = EarlySignals { name in logger.notice("stopped during the start", metadata: ["signal": "\(name)"]) }
        let server = try await ServerAssembly.start(settings, logger: logger, tail: tail, environment: environment)
        try await server.run(signals: early, settingsFile: settingsFile) { addresses in
            early.ready()
            let line = readyLine(
                addresses,
                hasHomePage: settings.pages.served.contains(.home),
                isHTTPS: settings.http.listener.tls != nil,
                isEncrypted: settings.gateways[listener: "delimited"]?.tls != nil
            )
            print(line)
            fflush(nil)
        }
    }

    /// Reads and checks the configuration as `run` does.
    package static func load(
        arguments: [String] = [],
        environment: [String: String] = ProcessInfo.processInfo.environment,
        file: String? = nil
    ) throws(ServerFailure) -> ServerSettings {
        do throws(SettingsError) {
            return try ServerSettings.load(sources(arguments, environment, file))
        } catch {
            throw ServerFailure(error)
        }
    }

    /// Returns the word that is most similar to `word`; nil if none is similar enough.
    ///
    /// - Parameter maxDistance: the number of letters that may differ.
    package static func nearest(to word: String, among words: [String], maxDistance: Int) -> String? {
        SettingsError.nearest(to: word, among: words, maxDistance: maxDistance)
    }

    static func sources(_ arguments: [String], _ environment: [String: String], _ file: String?) -> SettingSources {
        SettingSources(arguments: arguments, environment: environment, file: file ?? environment["HERMES_CONFIG"])
    }

    /// Returns the line on standard output with the server's addresses, its page for a browser, and a command to try.
    ///
    /// - Parameter isEncrypted: whether the listener for the command speaks TLS.
    package static func readyLine(
        _ addresses: [BoundAddress],
        hasHomePage: Bool = false,
        isHTTPS: Bool = false,
        isEncrypted: Bool = false
    ) -> String {
        let places = addresses.map(\.description).joined(separator: ", ")
        var line = "hermes \(HermesVersion.current) ready: \(places)"
        if hasHomePage, let http = addresses.first(where: { $0.name == "http" }), !http.host.contains("/") {
            let place = reachable(http.host)
            let host = place.contains(":") ? "[\(place)]" : place
            line += " - open \(isHTTPS ? "https" : "http")://\(host):\(http.port) in a browser"
        }
        if let delimited = addresses.first(where: { $0.name == "delimited" }), !delimited.host.contains("/") {
            let program = CommandLine.arguments.first ?? "hermes"
            let place = reachable(delimited.host)
            let host = place == "127.0.0.1" ? "" : " --host \(place)"
            let port = delimited.port == 9000 ? "" : " --port \(delimited.port)"
            line += " - try: \(program) chat ann --register\(host)\(port)\(tlsOption(place, isEncrypted))"
        }
        return line
    }

    /// Returns an address at which this machine reaches a listener.
    static func reachable(_ host: String) -> String {
        switch host {
        case "0.0.0.0", "": "127.0.0.1"
        case "::": "::1"
        default: host
        }
    }

    /// Returns the option that a client command needs. Without options, clients use TLS except to their own machine. A
    /// certificate names the server and not a loopback address, so a client on this machine cannot check it.
    private static func tlsOption(_ host: String, _ isEncrypted: Bool) -> String {
        let isLoopback = host == "::1" || host == "localhost" || host.hasPrefix("127.")
        if isLoopback { return isEncrypted ? " --tls-insecure" : "" }
        return isEncrypted ? "" : " --no-tls"
    }

    /// Raises the limit on open files, and lowers `limits.connections` to what that limit allows. Otherwise clients
    /// that use up all descriptors would shut out the operator.
    private static func fitted(_ settings: ServerSettings, _ logger: Logger) -> ServerSettings {
        guard let limit = DescriptorLimit.raise() else { return settings }
        var settings = settings
        let wanted = settings.gateways.limits.connections
        let most = ConnectionCounter.total(fitting: Int(clamping: limit.soft))
        settings.gateways.limits.connections = min(wanted, most)
        DescriptorLimit.reserve(ConnectionCounter.most(total: settings.gateways.limits.connections))
        guard most < wanted else { return settings }
        logger.notice(
            "limits.connections is lowered to what the system's limit on open files allows",
            metadata: [
                "files": "\(limit.soft)", "configured": "\(wanted)", "connections": "\(most)", "raise": "ulimit -Hn",
            ]
        )
        return settings
    }
}
