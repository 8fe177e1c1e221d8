// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesCore
import HermesGateways
import HermesServer
import Logging
import Testing

@Suite struct SettingsTests {
    private func load(
        _ arguments: [String] = [],
        environment: [String: String] = [:],
        yaml: String? = nil
    ) throws -> ServerSettings {
        try withFile(yaml) { file in
            try ServerSettings.load(SettingSources(arguments: arguments, environment: environment, file: file))
        }
    }

    private func withFile<Result>(_ text: String?, _ body: (String?) throws -> Result) throws -> Result {
        guard let text else { return try body(nil) }
        let path = NSTemporaryDirectory() + "/hermes-\(UUID().uuidString).yaml"
        try text.write(toFile: path, atomically: true, encoding: .utf8)
        defer { try? FileManager.default.removeItem(atPath: path) }
        return try body(path)
    }

    /// Returns the reported problems.
    private func problems(
        _ arguments: [String] = [],
        environment: [String: String] = [:],
        yaml: String? = nil
    ) throws -> String {
        do {
            _ = try load(arguments, environment: environment, yaml: yaml)
            Issue.record("nothing was refused")
            return ""
        } catch let error as SettingsError {
            return error.description
        }
    }

    @Test func `a settings file that cannot be read is refused with the reason, and no pipe is waited for`() throws {
        let files = try TemporaryFiles()
        defer { files.remove() }
        let pipe = try files.write("pipe", "")
        try FileManager.default.removeItem(atPath: pipe)
        try #require(mkfifo(pipe, 0o600) == 0)
        let large = try files.write("large", String(repeating: "#", count: (1 << 20) + 1))
        let directory = URL(fileURLWithPath: pipe).deletingLastPathComponent().path
        let cases = [
            (pipe, "it is a pipe"), (directory, "it is a directory"), (large, "it is larger than 1048576 bytes"),
            (pipe + "-none", "No such file or directory"),
        ]
        for (file, reason) in cases {
            let error = #expect(throws: SettingsError.self) {
                try ServerSettings.load(SettingSources(file: file))
            }
            #expect(error?.description.contains("cannot be read: \(reason)") == true, "\(file)")
        }
    }

    @Test func `every default is allowed`() throws {
        let settings = try ServerSettings.defaults()
        #expect(settings.data.directory == "./hermes-data")
        #expect(settings.gateways[listener: "impb"] == ListenerSettings(port: 6969))
        #expect(settings.gateways[listener: "liveroom"]?.port == 9898)
        #expect(settings.gateways[listener: "qsiop"]?.port == 7979)
        #expect(settings.gateways[listener: "delimited"]?.port == 9000)
        #expect(settings.http.listener.port == 8080)
        #expect(settings.gateways.room.silence == .seconds(10))
        #expect(settings.gateways.limits == ConnectionLimits())
        #expect(settings.gateways.room == LiveRoomSettings())
    }

    @Test func `keys and variables are unique`() {
        let settings = ServerSettings.all
        #expect(Set(settings.map(\.key)).count == settings.count)
        #expect(Set(settings.map(\.environmentName)).count == settings.count)
    }

    @Test func `command line wins over environment wins over file`() throws {
        let yaml = "listeners:\n  impb:\n    port: 1\n  qsiop:\n    port: 1\nlog:\n  level: debug\n"
        let environment = ["HERMES_LISTENERS_IMPB_PORT": "2", "HERMES_LISTENERS_QSIOP_PORT": "2"]
        let settings = try load(["--listeners.impb.port", "3"], environment: environment, yaml: yaml)
        #expect(settings.gateways[listener: "impb"]?.port == 3)
        #expect(settings.gateways[listener: "qsiop"]?.port == 2)
        #expect(settings.log.level == .debug)
    }

    @Test func `every default is that of its group`() throws {
        let groups = ServerSettings()
        var settings = try ServerSettings.defaults()
        #expect(settings.gateways == groups.gateways)
        // The dictionaries in these settings have no order.
        settings.gateways = groups.gateways
        #expect("\(settings)" == "\(groups)")
    }

    /// Settings of listeners, tokens and push services are left out, because they have an effect only together.
    @Test func `every setting has an effect, and no other setting has the same`() throws {
        let apart = ["access.jwt.", "push.apns.", "push.fcm.", "push.webPush."]
        let texts = [
            "false", "true", "1", "3", "1003", "30 KiB", "300 KiB", "3 MiB", "300 MiB", "7 s", "7 min", "7 h",
            "https://a.example", "10.0.0.0/8", "x",
        ]
        let defaults = try ServerSettings.defaults()
        // If two settings change the same property, a value that both allow leads to the same settings.
        var earlier: [(key: String, gateways: GatewaySettings, rest: String)] = []
        for setting in ServerSettings.all {
            if setting.key.hasPrefix("listeners."), !setting.key.hasPrefix("listeners.stun.") { continue }
            if apart.contains(where: { setting.key.hasPrefix($0) }) { continue }
            let words = setting.allowed.replacing("some of ", with: "").split(separator: ", ").map(String.init)
            let values = (words + texts).filter { $0 != setting.defaultText }
                .map { SettingValues(given: [setting.key: .init(text: $0, origin: "test")]) }
                .first { $0.problems(with: [setting]).isEmpty }
            var settings = try ServerSettings(try #require(values, "\(setting.key)"))
            let gateways = settings.gateways
            // The dictionaries in these settings have no order.
            settings.gateways = defaults.gateways
            let rest = "\(settings)"
            #expect(gateways != defaults.gateways || rest != "\(defaults)", "\(setting.key)")
            let same = earlier.first { $0.rest == rest && $0.gateways == gateways }
            #expect(same?.key == nil, "\(setting.key)")
            earlier.append((setting.key, gateways, rest))
        }
    }

    @Test func `every setting is read from the environment`() throws {
        for setting in ServerSettings.all {
            let sources = SettingSources(environment: [setting.environmentName: setting.defaultText])
            let values = try sources.load(ServerSettings.all)
            #expect(values.given[setting.key]?.text == setting.defaultText, "\(setting.key)")
            #expect(values.given[setting.key]?.origin == setting.environmentName)
        }
    }

    @Test func `camel case becomes words`() throws {
        let environment = ["HERMES_LIMITS_CONNECTIONS_PER_ADDRESS": "17", "HERMES_EVENT_LOOPS": "3"]
        let settings = try load(environment: environment)
        #expect(settings.gateways.limits.connectionsPerAddress == 17)
        #expect(settings.process.eventLoops == 3)
    }

    @Test func `arguments may use an equals sign`() throws {
        #expect(try load(["--data.directory=/tmp/a=b"]).data.directory == "/tmp/a=b")
    }

    @Test func `units are read`() throws {
        let settings = try load([
            "--limits.frame", "2 MiB", "--limits.idle", "90s", "--limits.timeToAuthenticate=1 min",
        ])
        #expect(settings.gateways.limits.maxFrameBytes == 2 << 20)
        #expect(settings.gateways.limits.idle == .seconds(90))
        #expect(settings.gateways.limits.timeToAuthenticate == .seconds(60))
    }

    @Test(arguments: [
        "", "10", "10 x", "-1 s", "1.5 s", "s", "999999999999999 d", "99999999999999999999 s", "1 s s", "１ s",
    ])
    func `durations that are none`(_ text: String) throws {
        let said = try problems(["--limits.idle", text])
        #expect(said.contains("limits.idle = \"\(text)\" (command line)"))
        #expect(said.contains("with a unit: ms, s, min, h or d"))
    }

    @Test(arguments: ["1", "1 kb", "1 TiB", "-1 B", "8 EiB", "9999999999 GiB", "0x10 B"])
    func `sizes that are none`(_ text: String) throws {
        #expect(try problems(["--limits.frame", text]).contains("B, KiB, MiB or GiB"))
    }

    @Test(arguments: [
        ("listeners.impb.port", "70000", "0 to 65,535"),
        ("listeners.impb.port", "nonsense", "0 to 65,535"),
        ("listeners.impb.enabled", "maybe", "true or false"),
        ("store.durability", "perhaps", "normal, full"),
        ("limits.connectionsPerAddress", "-1", "1 to 1,000,000"),
        ("liveroom.applicationTypes", "eat", "forward, drop"),
        ("liveroom.room", "", "1 to 64 bytes"),
        ("log.level", "loud", "trace, debug, info, notice, warning, error, critical"),
    ])
    func `refusals name key value and what is allowed`(_ key: String, _ value: String, _ allowed: String) throws {
        let said = try problems(["--\(key)", value])
        #expect(said.contains(key))
        #expect(said.contains("\"\(value)\""))
        #expect(said.contains(allowed))
    }

    @Test func `all problems are told at once`() throws {
        let said = try problems(
            ["--listeners.imbp.port", "1"],
            environment: ["HERMES_LOG_LEVLE": "debug", "HERMES_STRICT": "1", "PATH": "/bin"],
            yaml: "limits:\n  idle: soon\n  conections: 5\n"
        )
        #expect(said.contains("--listeners.imbp.port; did you mean --listeners.impb.port?"))
        #expect(said.contains("HERMES_LOG_LEVLE in the environment; did you mean HERMES_LOG_LEVEL?"))
        #expect(said.contains("limits.conections"))
        #expect(said.contains("line 3"))
        #expect(said.contains("did you mean limits.connections?"))
        #expect(said.contains("limits.idle = \"soon\""))
        #expect(!said.contains("HERMES_STRICT"))
    }

    @Test func `a section with one setting stands for it; without a hint, the list of settings is named`() throws {
        #expect(try problems(["--data", "x"]).contains("--data; did you mean --data.directory?"))
        #expect(try problems(environment: ["HERMES_DATA": "x"]).contains("did you mean HERMES_DATA_DIRECTORY?"))
        #expect(try problems(["--xylophone", "x"]).contains("hermes check-config --print-annotated"))
    }

    @Test func `what Kubernetes tells about a Service with the server's name is no setting`() throws {
        let environment = [
            "HERMES_SERVICE_HOST": "10.0.0.1", "HERMES_SERVICE_PORT": "80", "HERMES_SERVICE_PORT_MQTT_TLS": "8883",
            "HERMES_PORT": "tcp://10.0.0.1:80", "HERMES_PORT_80_TCP": "tcp://10.0.0.1:80",
            "HERMES_PORT_80_TCP_PROTO": "tcp", "HERMES_PORT_80_TCP_PORT": "80", "HERMES_PORT_80_TCP_ADDR": "10.0.0.1",
            "HERMES_PORT_3478_UDP": "udp://10.0.0.1:3478", "HERMES_PORT_5000_SCTP_ADDR": "10.0.0.1",
        ]
        _ = try load(environment: environment)
        let others = [
            ("HERMES_PORT", "80"), ("HERMES_PORTS", "80"), ("HERMES_SERVICE_HOSTS", "10.0.0.1"),
            ("HERMES_PORT_80", "80"), ("HERMES_PORT_X_TCP", "80"), ("HERMES_PORT_80_TLS", "80"),
            ("HERMES_PORT_80_TCP_HOST", "10.0.0.1"), ("HERMES_LOG_LEVLE", "debug"),
        ]
        for (name, value) in others {
            let said = try problems(environment: environment.merging([name: value]) { $1 })
            #expect(said.contains("unknown setting \(name) in the environment"))
        }
    }

    @Test func `the variables of the commands are no settings`() throws {
        let environment = ["HERMES_API_KEY": "hk_secret", "HERMES_PASSWORD": "secret", "HERMES_CONFIG": ""]
        _ = try load(environment: environment)
    }

    @Test func `a message repeats no value that may be a secret, and names no variable of the build`() throws {
        let said = try problems(
            ["--webhooks.secrt", "s3cret-1", "--zzzzzzzzzzzzzz", "s3cret-2", "--qsiop.requireToken", "s3cret-3"],
            environment: ["HERMES_API_KEYS": "s3cret-4", "HERMES_DEW": "1", "HERMES_BIM": "1"],
            yaml: "http:\n  key: s3cret-5\naccess:\n  jwt:\n    algorithms: s3cret-6\n"
        )
        // The last value is not a secret.
        #expect(!said.replacing("s3cret-6", with: "").contains("s3cret"))
        #expect(said.contains("HERMES_API_KEYS in the environment; did you mean HERMES_API_KEY?"))
        #expect(said.contains("qsiop.requireToken = \"…\" (command line)"))
        #expect(!said.contains("HERMES_DEV") && !said.contains("HERMES_BIN"))
    }

    @Test func `a path with the short form of a home directory is refused`() throws {
        for path in ["~", "~/hermes", "~/"] {
            #expect(try problems(["--data.directory", path]).contains("data.directory (command line) begins with ~"))
        }
        #expect(try problems(yaml: "access:\n  rules: \"~/rules\"\n").contains("write the whole path"))
        #expect(try load(["--data.directory", "a~"]).data.directory == "a~")
    }

    @Test func `a file that cannot be read is named with its whole path`() throws {
        let error = #expect(throws: SettingsError.self) {
            try ServerSettings.load(SettingSources(file: "missing-\(UUID().uuidString)/hermes.yaml"))
        }
        #expect(error?.description.contains("\"\(FileManager.default.currentDirectoryPath)/missing-") == true)
    }

    @Test func `a listener without a protocol is told what it needs`() throws {
        let said = try problems(["--listeners.factory.port", "1"], yaml: "listeners:\n  hall:\n    port: 1\n")
        #expect(said.contains("--listeners.factory.port: the listener factory needs listeners.factory.protocol"))
        #expect(said.contains("the listener hall needs listeners.hall.protocol"))
    }

    @Test func `a key far from all is referred to the list of all settings`() throws {
        #expect(try problems(["--zzzzzzzzzzzzzz", "1"]).contains("hermes check-config --print-annotated"))
    }

    @Test(arguments: [
        ("- a\n- b\n", "must hold keys and values"),
        ("just text", "must hold keys and values"),
        ("listeners: [\n", "is not YAML"),
        ("log: debug\n", "log holds further keys"),
        ("log:\n  level: [debug]\n", "must be a single value"),
        ("log:\n  level: debug\nlog:\n  format: json\n", "is not YAML"),
    ])
    func `files that are none`(_ yaml: String, _ message: String) throws {
        #expect(try problems(yaml: yaml).contains(message))
    }

    @Test(arguments: ["", "# nothing\n", "log:\n", "listeners:\n  impb:\n"])
    func `files that say nothing`(_ yaml: String) throws {
        let expected = try ServerSettings.defaults().gateways
        #expect(try load(yaml: yaml).gateways == expected)
    }

    @Test func `a file that does not exist is a problem`() throws {
        #expect(throws: SettingsError.self) {
            try ServerSettings.load(SettingSources(file: "/does/not/exist.yaml"))
        }
    }

    @Test func `an argument without value is a problem`() throws {
        #expect(try problems(["--log.level"]).contains("needs a value"))
        #expect(try problems(["log.level"]).contains("--KEY VALUE"))
    }

    @Test func `half a TLS configuration is refused`() throws {
        let half = try problems(["--listeners.impb.tls.certificate", "a.pem"])
        #expect(half.hasSuffix("not given: listeners.impb.tls.privateKey"))
        #expect(try problems(["--listeners.impb.tls.enabled", "true"]).contains("listeners.impb.tls.certificate"))
        let files = ["--listeners.impb.tls.certificate", "a.pem", "--listeners.impb.tls.privateKey", "b.pem"]
        let expected = TLSSettings(certificatePath: "a.pem", privateKeyPath: "b.pem")
        #expect(try load(files).gateways[listener: "impb"]?.tls == expected)
        #expect(try load(files + ["--listeners.impb.tls.enabled", "false"]).gateways[listener: "impb"]?.tls == nil)
    }

    @Test func `anonymous access on a public address is refused unless said`() throws {
        let wide = ["--listeners.liveroom.host", "0.0.0.0"]
        #expect(try problems(wide).contains("access.anonymousOnPublic: true"))
        #expect(
            try load(wide + ["--access.anonymousOnPublic", "true"]).gateways[listener: "liveroom"]?.host == "0.0.0.0"
        )
        let closed = try load(wide + ["--access.anonymous", "false"])
        #expect(!closed.gateways.room.isAnonymousAllowed)
        #expect(closed.gateways.device.isTokenRequired)
        // A protocol without anonymous access may listen on any address.
        #expect(try load(["--listeners.delimited.host", "::"]).gateways[listener: "delimited"]?.host == "::")
        #expect(try problems(["--listeners.qsiop.host", "192.0.2.1"]).contains("listeners.qsiop.host"))
        #expect(
            try load(["--listeners.qsiop.host", "192.0.2.1", "--qsiop.requireToken", "true"]).gateways[
                listener: "qsiop"
            ]?.isEnabled == true
        )
    }

    @Test(arguments: [
        ("127.0.0.1", true), ("127.8.9.1", true), ("localhost", true), ("LocalHost", true), ("::1", true),
        ("0.0.0.0", false), ("::", false), ("128.0.0.1", false), ("127.evil.example.org", false), ("127.0.0", false),
    ])
    func `loopback`(_ host: String, _ expected: Bool) {
        #expect(ListenerSettings(host: host, port: 1).isLoopback == expected)
    }

    @Test func `MQTT listens by default and over TLS with a certificate`() throws {
        let defaults = try ServerSettings.defaults().gateways
        #expect(defaults[listener: "mqtt"] == ListenerSettings(port: 1883))
        #expect(defaults[listener: "mqtts"] == ListenerSettings(isEnabled: false, port: 8883))
        #expect(defaults.broker == MQTTSettings())
        #expect(defaults.access == AccessSettings())
        #expect(defaults.listeners.map(\.name) == ["impb", "liveroom", "qsiop", "delimited", "mqtt", "mqtts"])
        let files = ["--listeners.mqtts.tls.certificate", "a.pem", "--listeners.mqtts.tls.privateKey", "b.pem"]
        let tls = TLSSettings(certificatePath: "a.pem", privateKeyPath: "b.pem")
        #expect(try load(files).gateways[listener: "mqtts"] == ListenerSettings(port: 8883, tls: tls))
        #expect(
            try load(files + ["--listeners.mqtts.enabled", "false"]).gateways[listener: "mqtts"]?.isEnabled == false
        )
        #expect(try problems(["--listeners.mqtts.enabled", "true"]).contains("listeners.mqtts.tls.certificate"))
        #expect(try problems(["--listeners.mqtts.tls.privateKey", "b"]).contains("listeners.mqtts.tls.certificate"))
        #expect(try problems(["--listeners.mqtt.host", "::"]).contains("access.anonymousOnPublic"))
        let socket = try load(["--listeners.mqtt.unixSocket", "/run/mqtt.sock"]).gateways
        #expect(socket.listeners.last?.name == "mqtt.unixSocket")
        #expect(socket.listeners.last?.gateway == "mqtt")
        #expect(socket.listeners.last?.settings.unixSocketPath == "/run/mqtt.sock")
        #expect(socket.listeners.last?.settings.isAnonymousAllowed == true)
        let closed = ["--listeners.mqtt.unixSocket", "/run/mqtt.sock", "--listeners.mqtt.anonymous", "false"]
        #expect(try load(closed).gateways.listeners.last?.settings.isAnonymousAllowed == false)
        let long = String(repeating: "x", count: 104)
        #expect(try problems(["--listeners.mqtt.unixSocket", long]).contains("103 bytes"))
    }

    @Test func `what is stored stays as long as the settings say`() throws {
        let long = try load(["--messages.recallWindow", "7 d", "--store.retention", "365 d"]).storeSettings
        #expect(long.recordPeriod == .seconds(7 * 86_400) && long.eventPeriod == .seconds(365 * 86_400))
        let short = try load(["--messages.recallWindow", "1 min", "--store.retention", "1 d"]).storeSettings
        #expect(short.recordPeriod == .seconds(86_400) && short.eventPeriod == .seconds(86_400))
    }

    @Test func `a store gets its own settings and those of other groups`() throws {
        let own = ["--store.historyDays", "3", "--accounts.groups", "7", "--limits.inboxEntries", "2000"]
        let queues = ["--mqtt.maxQueuedMessages", "12", "--mqtt.sessions.maxQueuedBytes", "1 MiB"]
        let settings = try load(own + queues).storeSettings
        #expect(settings.historyPeriod == .seconds(3 * 86_400) && settings.maxGroups == 7)
        #expect(settings.inbox.maxEntries == 2000)
        #expect(settings.maxQueuedMessages == 12 && settings.queuedBytes.total == 1 << 20)
    }

    @Test func `client certificates need TLS and an authority`() throws {
        let files = ["--listeners.mqtts.tls.certificate", "a.pem", "--listeners.mqtts.tls.privateKey", "b.pem"]
        let required = files + ["--listeners.mqtts.tls.clientCertificates", "required"]
        #expect(try problems(required).contains("listeners.mqtts.tls.clientAuthority"))
        let authority = required + ["--listeners.mqtts.tls.clientAuthority", "ca.pem"]
        let tls = try #require(try load(authority).gateways[listener: "mqtts"]?.tls)
        #expect(tls.clientCertificates == .required)
        #expect(tls.clientAuthorityPath == "ca.pem")
        #expect(!tls.isIdentityFromCertificate)
        let identity = ["--listeners.mqtts.tls.identityFromCertificate", "true"]
        #expect(try problems(files + identity).contains("clientCertificates"))
        let closed = ["--accounts.registration", "closed"]
        #expect(
            try load(authority + identity + closed).gateways[listener: "mqtts"]?.tls?.isIdentityFromCertificate == true
        )
        #expect(try problems(authority + identity).contains("accounts.registration: closed"))
        let wide = ["--listeners.mqtts.host", "0.0.0.0"]
        #expect(try problems(authority + wide).contains("access.anonymousOnPublic"))
        #expect(try load(authority + identity + closed + wide).gateways[listener: "mqtts"]?.host == "0.0.0.0")
        #expect(try problems(["--listeners.impb.tls.clientCertificates", "optional"]).contains("needs TLS"))
    }

    @Test func `access is read`() throws {
        let settings = try load(
            ["--access.jwt.keys", "k.pem", "--access.jwt.algorithms", "RS256,ES256", "--access.jwt.audience", "me"]
                + ["--access.rules", "rules", "--accounts.registration", "closed"]
                + ["--http.websocket.origins", "https://a.example, https://b.example"]
        )
        let tokens = AccessSettings.Tokens(keysPath: "k.pem", algorithms: [.rs256, .es256], audience: "me")
        #expect(settings.gateways.access == AccessSettings(rulesPath: "rules", tokens: tokens))
        #expect(settings.webSocket.origins == ["https://a.example", "https://b.example"])
        for text in ["", "none", "HS256,", "RS256 ES256", "hs256"] {
            #expect(try problems(["--access.jwt.algorithms", text]).contains("some of HS256, RS256, ES256"))
        }
        #expect(try problems(["--access.jwt.keys", "k.pem"]).contains("accounts.registration: closed"))
        #expect(try problems(["--http.websocket.origins", "a,,b"]).contains("http.websocket.origins"))
        let frames = ["https://a.example", "https://*.b.example:8443", "http://localhost:8000"]
        #expect(try load(["--http.pages.frames", frames.joined(separator: ", ")]).pages.frames == frames)
        #expect(try load([]).pages.frames == [])
        let all: WebPages = WebPages.areBuiltIn ? [.home, .api, .chat, .room] : []
        #expect(try load([]).pages.served == all)
        #expect(try load(["--http.pages.room", "false"]).pages.served == all.subtracting(.room))
        #expect(try load(["--http.pages.chat", "false"]).pages.served == all.subtracting(.chat))
        #expect(try load(["--http.websocket.enabled", "false"]).pages.served == all.subtracting([.chat, .room]))
        for text in [
            "*", "'self'", "example.org", "https://", "https://*", "https://a b", "https://a;script-src *",
            "https://a:x", "https://a:1:2", "https://a/path", "https://a..b", "https://a,", "javascript://a",
            "https://ä.example",
            "https://a:-1", "https://a:99999",
        ] {
            #expect(try problems(["--http.pages.frames", text]).contains("http.pages.frames"), "\(text)")
        }
        #expect(try problems(["--listeners.http.host", "0.0.0.0"]).contains("http.websocket.enabled: false"))
        #expect(
            try load(["--listeners.http.host", "::", "--http.websocket.enabled", "false"]).http.listener.host == "::"
        )
    }
}
