// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Hermes
import HermesProtocols

/// The command `hermes qsiop`. Its subcommands act as a small device.
struct QSIOPCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "qsiop",
        abstract: "Act as a small QSIOP device: ping, report, wait for pushes.",
        discussion: """
            Examples:
              hermes qsiop ping
              hermes qsiop report --user ann
              hermes qsiop listen --user ann --count 1
            """,
        subcommands: [QSIOPPing.self, QSIOPReport.self, QSIOPListen.self]
    )
}

/// The command `hermes qsiop ping`.
struct QSIOPPing: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ping",
        abstract: "Measure the server's response time.",
        discussion: """
            Examples:
              hermes qsiop ping --count 5
              hermes qsiop ping --host far.example.org --wait 20
            """
    )

    @Option(help: ArgumentHelp("The number of pings.", valueName: "n"))
    var count = 3

    @Option(help: ArgumentHelp("How long to wait for the connection, and for each answer.", valueName: "seconds"))
    var wait = 5.0

    @OptionGroup(title: "Server") var server: ServerOptions

    func validate() throws {
        guard (1...1_000_000).contains(count) else { throw ValidationError("--count \(count): must be 1 to 1000000") }
        guard (0.001...3_600).contains(wait) else { throw ValidationError("--wait \(wait): must be 0.001 to 3600") }
    }

    func run() async throws {
        var address = server.address(defaultPort: 7979)
        address.connectTimeout = .seconds(wait)
        try await reportingFailures(server: address) {
            var configuration = QSIOPClient.Configuration(server: address, identity: nil)
            configuration.reconnect = .never
            configuration.requestTimeout = .seconds(wait)
            let client = try QSIOPClient(configuration)
            do {
                try await client.connect()
                for number in 1...count {
                    let time = try await client.ping()
                    let text = time.formatted(.units(allowed: [.milliseconds, .microseconds]))
                    try CommandOutput.print("pong \(number): \(text)")
                }
            } catch {
                await client.close()
                throw error
            }
            await client.close()
        }
    }
}

/// The account of a device.
struct QSIOPIdentityOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp("The account's number; also give --token if the server requires a token.", valueName: "uid")
    )
    var uid: UInt32?

    @Option(help: ArgumentHelp("The token of an earlier login.", valueName: "token"))
    var token: String?

    @Option(
        help: ArgumentHelp(
            "The account's name. The command uses a stored login token, or asks for the password.",
            valueName: "name"
        )
    )
    var user: String?

    @Option(name: .customLong("as"), help: ArgumentHelp("The device's name in QSIOP.", valueName: "id"))
    var deviceName: String?

    @Option(help: ArgumentHelp("The server's Delimited port, for --user.", valueName: "port"))
    var chatPort = 9000

    @OptionGroup(title: "Login, with --user") var login: LoginOptions
    @OptionGroup(title: "Server") var server: ServerOptions

    func validate() throws {
        if uid == nil, user == nil {
            throw ValidationError("the account is missing: give --user NAME, or --uid UID and --token TOKEN")
        }
        if uid != nil, user != nil { throw ValidationError("--uid and --user cannot be used together") }
    }

    /// Returns the identity. Logs in over Delimited if the account is given by its name and no stored token can be
    /// used.
    ///
    /// - Parameter refused: the stored token that the server has refused; nil if none was refused.
    private func identity(besides refused: String? = nil) async throws -> QSIOPClient.Identity {
        if let uid { return QSIOPClient.Identity(uid: UserID(rawValue: uid), token: token, device: deviceName) }
        var address = server.address(defaultPort: chatPort)
        address.port = chatPort
        let login = Login(name: user ?? "", server: address, options: login, deviceSuffix: "-qsiop")
        let device = login.device
        if refused != nil { login.cache.remove(name: login.name, server: address, device: device) }
        if !self.login.noCache, !self.login.register,
            let entry = login.cache.entry(name: login.name, server: address, device: device)
        {
            let uid = UserID(rawValue: entry.uid)
            return QSIOPClient.Identity(uid: uid, token: entry.token, device: deviceName ?? device)
        }
        let client = try login.makeClient(reconnect: .never, device: device)
        do {
            let session = try await login.logIn(client, device: device)
            await client.close()
            return QSIOPClient.Identity(uid: session.uid, token: session.token, device: deviceName ?? device)
        } catch {
            await client.close()
            throw error
        }
    }

    func connect() async throws -> QSIOPClient {
        let identity = try await identity()
        do {
            return try await connect(as: identity)
        } catch let error as HermesClientError where error.code == .invalidToken && user != nil {
            // The stored token is no longer valid.
            return try await connect(as: self.identity(besides: identity.token))
        }
    }

    private func connect(as identity: QSIOPClient.Identity) async throws -> QSIOPClient {
        var configuration = QSIOPClient.Configuration(server: server.address(defaultPort: 7979), identity: identity)
        configuration.reconnect = .interactive
        let client = try QSIOPClient(configuration)
        do {
            try await client.connect()
            return client
        } catch {
            await client.close()
            throw error
        }
    }
}

/// The command `hermes qsiop report`.
struct QSIOPReport: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "report",
        abstract: "Report the device's account, and print the server's answer.",
        discussion: """
            Examples:
              hermes qsiop report --user ann
              hermes qsiop report --uid 12 --token TOKEN --as meter-7
            """
    )

    @OptionGroup var identity: QSIOPIdentityOptions

    func run() async throws {
        try await reportingFailures(server: identity.server.address(defaultPort: 7979)) {
            let client = try await identity.connect()
            await client.close()
            try CommandOutput.confirm("accepted")
        }
    }
}

/// The command `hermes qsiop listen`.
struct QSIOPListen: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "listen",
        abstract: "Print the device's pushes, and acknowledge them, until Ctrl-C.",
        discussion: """
            Examples:
              hermes qsiop listen --user ann
              hermes qsiop listen --user ann --count 1 --wait 10
            """
    )

    @Option(help: ArgumentHelp("End after this many pushes.", valueName: "n"))
    var count: Int?

    @Option(help: ArgumentHelp("End after this time.", valueName: "seconds"))
    var wait: Double?

    @OptionGroup var identity: QSIOPIdentityOptions

    func validate() throws {
        if let count, count < 1 { throw ValidationError("--count \(count): must be at least 1") }
        if let wait, !(0...1e9).contains(wait) { throw ValidationError("--wait \(wait): must be 0 to 1000000000") }
    }

    func run() async throws {
        try await reportingFailures(server: identity.server.address(defaultPort: 7979)) {
            let client = try await identity.connect()
            StandardError.tell("waiting for pushes")
            let progress = PrintProgress()
            do {
                try await listen(client, progress)
            } catch {
                await client.close(takingLastPush: progress.isComplete)
                throw error
            }
            await client.close(takingLastPush: progress.isComplete)
        }
    }

    private func listen(_ client: QSIOPClient, _ progress: PrintProgress) async throws {
        let count = count
        let wait = wait
        let console = Console(isInteractive: false)
        try await withThrowingTaskGroup(of: Void.self) { group in
            defer { group.cancelAll() }
            group.addTask {
                await Interrupts.wait()
                throw CancellationError()
            }
            if let wait { group.addTask { try await Task.sleep(for: .seconds(wait)) } }
            group.addTask {
                var seen = 0
                for await push in client.pushes {
                    progress.arrived()
                    let line = PushText.line(
                        title: push.title,
                        body: push.body,
                        type: push.values["message-type"] ?? "",
                        data: push.values["data"] ?? ""
                    )
                    try await console.print(line)
                    progress.printed()
                    seen += 1
                    if let count, seen >= count { return }
                }
                try await client.run()
            }
            try await group.next()
        }
    }
}
