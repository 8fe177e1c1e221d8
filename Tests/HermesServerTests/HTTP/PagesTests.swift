// Hermes
// SPDX-License-Identifier: Apache-2.0

#if Pages
import Crypto
import Foundation
import HermesGateways
import HermesTestKit
import HermesWire
import NIOCore
import Synchronization
import Testing

@testable import HermesServer

extension HomePage {
    fileprivate var keptPages: Int { state.withLock { $0.pages.count } }
}

/// The web pages of the HTTP port.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct PagesTests {
    /// The paths of the HTTP port. The console has its own port.
    private static let paths = WebFile.all.filter { $0.pages != .console }.map(\.path)

    @Test func `the home page names every listener and commands that reach them`() async throws {
        try await withServer { server in
            let page = try await HTTPProbe.send("GET", "/", port: server.port("http"))
            #expect(page.status == 200)
            #expect(page.headers["content-type"] == "text/html; charset=utf-8")
            for name in ["impb", "liveroom", "qsiop", "delimited", "mqtt", "http"] {
                #expect(page.text.contains("<code>127.0.0.1:\(server.port(name))</code>"), "\(name)")
            }
            #expect(
                page.text.contains("hermes chat ann --register --host localhost --port \(server.port("delimited"))")
            )
            #expect(page.text.contains("mosquitto_sub -h localhost -p \(server.port("mqtt")) "))
            #expect(page.text.contains("href=\"/chat/\"") && page.text.contains("href=\"/api\""))
        }
    }

    @Test func `the API page shows every route`() async throws {
        try await withServer { server in
            let page = try await HTTPProbe.send("GET", "/api", port: server.port("http"))
            #expect(page.status == 200)
            #expect(page.text.contains("<a href=\"/\">"))
            let routes = try #require(try server.assembly().api?.routes)
            #expect(routes.count > 20)
            for route in routes {
                #expect(page.text.contains("<code>\(HTML.escaped("/v1" + route.path))</code>"), "\(route.id)")
                #expect(page.text.contains(HTML.escaped(route.summary)), "\(route.id)")
            }
        }
    }

    @Test func `every answer forbids scripts from elsewhere, frames and guesses about its type`() async throws {
        try await withServer { server in
            for path in ["/", "/api", "/chat", "/room/lobby", "/room/lobby/"] + Self.paths {
                let answer = try await HTTPProbe.send("GET", path, port: server.port("http"))
                let policy = answer.headers["content-security-policy"] ?? ""
                #expect(policy.hasPrefix("default-src 'none'; script-src 'self'; style-src 'self';"), "\(path)")
                #expect(policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"), "\(path)")
                #expect(answer.headers["x-content-type-options"] == "nosniff", "\(path)")
                #expect(answer.headers["x-frame-options"] == "DENY", "\(path)")
                #expect(answer.headers["referrer-policy"] == "no-referrer", "\(path)")
            }
        }
    }

    @Test func `answers that are no pages run nothing, fit into no frame and stay in no cache`() async throws {
        try await withServer { server in
            for path in ["/healthz", "/readyz", "/metrics", "/v1/openapi.json", "/v1/users", "/ws", "/nothing"] {
                let answer = try await HTTPProbe.send("GET", path, port: server.port("http"))
                let policy = answer.headers["content-security-policy"]
                #expect(policy == "default-src 'none'; frame-ancestors 'none'", "\(path)")
                #expect(answer.headers["x-content-type-options"] == "nosniff", "\(path)")
                #expect(answer.headers["x-frame-options"] == "DENY", "\(path)")
                #expect(answer.headers["cache-control"] != nil, "\(path)")
            }
        }
    }

    /// The content security policy forbids inline scripts and styles, so a page with them would not work.
    @Test func `no page has scripts or styles of its own`() async throws {
        try await withServer { server in
            for path in ["/", "/api"] + Self.paths.filter({ $0.hasSuffix(".html") }) {
                let text = try await HTTPProbe.get(path, port: server.port("http")).text
                #expect(text.hasPrefix("<!doctype html>"), "\(path)")
                #expect(text.firstMatch(of: /<script(?![^>]*\ssrc=)/.ignoresCase()) == nil, "\(path)")
                #expect(text.firstMatch(of: /<style|\sstyle=|\son[a-z]+=|javascript:/.ignoresCase()) == nil, "\(path)")
                #expect(text.firstMatch(of: /(src|href)="(https?:)?\/\//.ignoresCase()) == nil, "\(path)")
            }
        }
    }

    @Test func `a file is sent compressed to those who ask, and not again to those who have it`() async throws {
        try await withServer { server in
            let file = try #require(WebFile.all.first { $0.path == "/hermes.js" })
            func get(_ fields: [(String, String)], _ method: String = "GET") async throws -> HTTPProbe.Answer {
                try await HTTPProbe.send(method, file.path, headers: fields, port: server.port("http"))
            }
            let plain = try await get([])
            #expect(plain.text.hasPrefix("// Hermes") && plain.text.contains("class HermesClient"))
            #expect(plain.headers["content-encoding"] == nil)
            #expect(plain.headers["access-control-allow-origin"] == "*")
            let tag = try #require(plain.headers["etag"])
            let packed = try await get([("Accept-Encoding", "br, gzip")], "HEAD")
            #expect(packed.headers["content-encoding"] == "gzip")
            #expect(packed.headers["content-length"] == String(file.packed.count))
            // The tag is strong, so other bytes have another tag.
            #expect(tag == "\"\(file.tag)\"" && packed.headers["etag"] == "\"\(file.tag)-gzip\"")
            #expect(try await get([("Accept-Encoding", "gzip;q=0")], "HEAD").headers["content-encoding"] == nil)
            let again = try await get([("If-None-Match", "\"other\", \(tag)")])
            #expect(again.status == 304 && again.text.isEmpty)
            #expect(try await get([("If-None-Match", "W/" + tag)]).status == 304)
            #expect(try await get([("If-None-Match", "*")]).status == 304)
            #expect(try await get([("If-None-Match", tag), ("Accept-Encoding", "gzip")], "HEAD").status == 200)
            #expect(try await get([("If-None-Match", "\"other\"")]).status == 200)
        }
    }

    @Test(arguments: ["/", "/api"])
    func `a page of the server's own is sent compressed, and not again to those who have it`(path: String) async throws
    {
        try await withServer { server in
            func get(_ fields: [(String, String)], _ method: String = "GET") async throws -> HTTPProbe.Answer {
                try await HTTPProbe.send(method, path, headers: fields, port: server.port("http"))
            }
            let plain = try await get([])
            #expect(plain.status == 200 && plain.headers["content-encoding"] == nil)
            #expect(plain.headers["cache-control"] == "no-cache" && plain.headers["vary"] == "Accept-Encoding")
            let tag = try #require(plain.headers["etag"])
            let hash = SHA256.hash(data: Data(plain.text.utf8)).map { String(format: "%02x", $0) }.joined()
            #expect(tag == "\"\(hash.prefix(32))\"")
            let packed = try await get([("Accept-Encoding", "gzip, br")], "HEAD")
            #expect(packed.status == 200 && packed.headers["content-encoding"] == "gzip")
            #expect(packed.headers["etag"] == "\"\(hash.prefix(32))-gzip\"")
            let length = try #require(packed.headers["content-length"].flatMap { Int($0) })
            #expect(length > 100 && length < plain.text.utf8.count / 2)
            let packedTag = try #require(packed.headers["etag"])
            let again = try await get([("Accept-Encoding", "gzip"), ("If-None-Match", packedTag)])
            #expect(again.status == 304 && again.text.isEmpty && again.headers["etag"] == packedTag)
            #expect(again.headers["content-security-policy"]?.hasPrefix("default-src 'none'") == true)
            #expect(try await get([("If-None-Match", tag)]).status == 304)
            #expect(try await get([("If-None-Match", packedTag)]).status == 200)
        }
    }

    @Test func `the home page is made once for each of the server's names, of which few are kept`() throws {
        let home = HomePage(pages: [.home], hasAPI: true, isAnonymousAllowed: false)
        let first = home.page(authority: "one.example.org:8080", isLocal: false)
        #expect(
            try Gzip.unpacked(Array(#require(first.packed).readableBytesView)) == Array(first.plain.readableBytesView)
        )
        #expect(home.page(authority: "one.example.org", isLocal: false).tag == first.tag && home.keptPages == 1)
        for number in 0..<10 * HomePage.maxNames { _ = home.page(authority: "host\(number)", isLocal: false) }
        #expect(home.keptPages <= HomePage.maxNames)
        let address = BoundAddress(name: "impb", host: "127.0.0.1", port: 9)
        home.opened([HomePage.Listener(address: address, gateway: "impb", isEncrypted: false)])
        #expect(home.page(authority: "one.example.org", isLocal: false).tag != first.tag && home.keptPages == 1)
    }

    /// The tag is the beginning of the content's hash.
    @Test(arguments: WebFile.all.map(\.path)) func `what is unpacked is what was packed`(path: String) throws {
        let file = try #require(WebFile.all.first { $0.path == path })
        let content = try #require(WebFile.unpacked[path])
        let hash = SHA256.hash(data: Data(content.readableBytesView)).map { String(format: "%02x", $0) }.joined()
        #expect(hash.hasPrefix(file.tag) && file.tag.count == 32)
    }

    @Test func `the SDK takes at most 29 KiB as it is sent`() throws {
        let sdk = try #require(WebFile.all.first { $0.path == "/hermes.js" })
        #expect(sdk.packed.count <= 29 * 1024)
        #expect(WebFile.all.filter(\.isPublic).count == 4)
    }

    @Test func `the chat is a folder, for the sake of its links`() async throws {
        try await withServer { server in
            let page = try await HTTPProbe.send("GET", "/chat/", port: server.port("http"))
            #expect(page.status == 200 && page.headers["content-type"] == "text/html; charset=utf-8")
            let bare = try await HTTPProbe.send("GET", "/chat", port: server.port("http"))
            #expect(bare.status == 308 && bare.headers["location"] == "/chat/")
            #expect(bare.headers["content-security-policy"] != nil)
        }
    }

    @Test func `every room has the page of rooms`() async throws {
        try await withServer { server in
            let page = try await HTTPProbe.send("GET", "/room/", port: server.port("http"))
            for path in ["/room/lobby", "/room/stage-2.main", "/room/a%20b"] {
                let other = try await HTTPProbe.send("GET", path, port: server.port("http"))
                #expect(other.status == 200 && other.text == page.text, "\(path)")
                #expect(other.headers["content-type"] == "text/html; charset=utf-8", "\(path)")
            }
            // Relative links start from the folder, so the name must be the last part of the path.
            for path in ["/room/lobby/", "/room/lobby//", "//room/lobby/", "///room/lobby//"] {
                let other = try await HTTPProbe.send("GET", path, port: server.port("http"))
                #expect(other.status == 308 && other.headers["location"] == "/room/lobby", "\(path)")
            }
            let script = try await HTTPProbe.send("GET", "/room/room.js", port: server.port("http"))
            #expect(script.headers["content-type"] == "text/javascript; charset=utf-8")
            #expect(try await HTTPProbe.get("/", port: server.port("http")).text.contains("href=\"/room/lobby\""))
        }
    }

    @Test func `only a live room may be framed, and only by the origins that the operator names`() async throws {
        let origins = ["https://example.org", "https://*.example.net:8443"]
        func framed(_ settings: inout ServerSettings) { settings.pages.frames = origins }
        try await withServer(configure: framed) { server in
            for path in ["/room/lobby", "/room/", "/room/index.html"] {
                let room = try await HTTPProbe.send("GET", path, port: server.port("http"))
                let policy = try #require(room.headers["content-security-policy"])
                #expect(policy.hasSuffix("; frame-ancestors https://example.org https://*.example.net:8443"), "\(path)")
                #expect(room.headers["x-frame-options"] == nil, "\(path)")
            }
            for path in ["/", "/api", "/chat/", "/room/room.js", "/room/embed.js"] {
                let other = try await HTTPProbe.send("GET", path, port: server.port("http"))
                let policy = try #require(other.headers["content-security-policy"])
                #expect(policy.hasSuffix("frame-ancestors 'none'"), "\(path)")
                #expect(other.headers["x-frame-options"] == "DENY", "\(path)")
            }
            // Pages of other hosts load the script.
            let script = try await HTTPProbe.send("GET", "/room/embed.js", port: server.port("http"))
            #expect(script.status == 200 && script.headers["cross-origin-resource-policy"] == "cross-origin")
        }
    }

    @Test func `the chat learns the key for notifications`() async throws {
        try await withServer { server in
            let none = try await HTTPProbe.send("GET", "/chat/push.json", port: server.port("http"))
            #expect(none.status == 200 && none.text == "{\"publicKey\":\"\"}")
            #expect(none.headers["content-type"] == "application/json" && none.headers["cache-control"] == "no-store")
        }
        let pages = Pages(.chat, routes: nil, isAnonymousAllowed: false, frames: [], pushKey: "BP-k_x\"<=")
        let response = pages.pushAnswer
        #expect(response == "{\"publicKey\":\"BP-k_x=\"}")
    }

    @Test func `a page that is switched off is not there, and nothing points to it`() async throws {
        func homeOnly(_ settings: inout ServerSettings) { settings.pages.served = [.home] }
        func nothing(_ settings: inout ServerSettings) { settings.pages.served = [] }
        func chatOnly(_ settings: inout ServerSettings) { settings.pages.served = [.home, .chat] }
        func roomOnly(_ settings: inout ServerSettings) { settings.pages.served = [.home, .room] }
        func status(_ path: String, _ server: TestServer) async throws -> Int {
            try await HTTPProbe.get(path, port: server.port("http")).status
        }
        let chat = ["/chat/", "/chat/chat.js", "/chat/push.json"]
        let room = ["/room/lobby", "/room/room.js", "/room/embed.js", "/room/lobby/viewers"]
        try await withServer(configure: chatOnly) { server in
            for path in chat + ["/hermes.js"] { #expect(try await status(path, server) == 200, "\(path)") }
            for path in room { #expect(try await status(path, server) == 404, "\(path)") }
            let home = try await HTTPProbe.get("/", port: server.port("http")).text
            #expect(home.contains("/chat/") && !home.contains("/room/"))
        }
        try await withServer(configure: roomOnly) { server in
            for path in room + ["/hermes.js"] { #expect(try await status(path, server) == 200, "\(path)") }
            for path in chat { #expect(try await status(path, server) == 404, "\(path)") }
            let home = try await HTTPProbe.get("/", port: server.port("http")).text
            #expect(!home.contains("/chat/") && home.contains("/room/") && !home.contains("Open the chat"))
        }
        try await withServer(configure: homeOnly) { server in
            for path in ["/api", "/chat", "/room/lobby", "/room/lobby/viewers", "/hermes.js"] {
                #expect(try await HTTPProbe.get(path, port: server.port("http")).status == 404, "\(path)")
            }
            let home = try await HTTPProbe.get("/", port: server.port("http")).text
            #expect(!home.contains("/chat/") && !home.contains("/room/") && !home.contains("\"/api\""))
        }
        func apiOnly(_ settings: inout ServerSettings) { settings.pages.served = [.api] }
        try await withServer(configure: apiOnly) { server in
            #expect(try await status("/", server) == 404)
            let api = try await HTTPProbe.get("/api", port: server.port("http"))
            #expect(api.status == 200 && !api.text.contains("href=\"/\""))
        }
        try await withServer(configure: nothing) { server in
            for path in ["/", "/home/home.css"] {
                let answer = try await HTTPProbe.get(path, port: server.port("http"))
                #expect(answer.status == 404, "\(path)")
            }
        }
    }

    @Test(arguments: [
        ("chat.example.org:8080", "chat.example.org"), ("[::1]:8080", "::1"), ("localhost", "localhost"),
        ("a;rm -rf /", "127.0.0.1"), ("<script>", "127.0.0.1"), ("$(id)", "127.0.0.1"), ("-oProxyCommand", "127.0.0.1"),
        ("", "127.0.0.1"),
    ])
    func `commands on the home page take only plain names from the request`(authority: String, host: String) {
        #expect(HomePage.host(of: authority) == host)
    }

    @Test(
        arguments: [
            ("127.0.0.1", "localhost:8080", false, true), ("::1", "[::1]:8080", false, true),
            ("127.0.0.1", "127.0.0.1:8080", true, false), ("10.0.0.1", "localhost:8080", false, false),
            ("203.0.113.7", "127.0.0.1", false, false), ("127.0.0.1", "hermes.example.org", false, false),
            (nil, "localhost", false, false), ("127.0.0.1", nil, false, false),
        ] as [(String?, String?, Bool, Bool)]
    )
    func `only who comes from this machine is told of its private listeners`(
        address: String?,
        authority: String?,
        isForwarded: Bool,
        isLocal: Bool
    ) {
        #expect(HomePage.isLocal(address: address, authority: authority, isForwarded: isForwarded) == isLocal)
        let page = HomePage(pages: .home, hasAPI: false, isAnonymousAllowed: false)
        page.opened([
            HomePage.Listener(
                address: BoundAddress(name: "stun", host: "0.0.0.0", port: 3478),
                gateway: "stun",
                isEncrypted: false,
                isPrivate: true
            )
        ])
        let text = String(buffer: page.page(authority: authority, isLocal: isLocal).plain)
        #expect(text.contains("0.0.0.0:3478") == isLocal)
    }

    /// A command may be pasted in any directory. After `make run`, `hermes` is usually not in the search path of the
    /// shell.
    @Test func `only who comes from this machine gets commands with the paths of the program and its data`() throws {
        let program = LocalProgram(executable: "/opt/a b/hermes", searchPath: "/bin", dataDirectory: "/srv/it's here")
        #expect(program.command == "'/opt/a b/hermes'" && program.dataOption == #" --data '/srv/it'\''s here'"#)
        let home = HomePage(pages: .home, hasAPI: true, isAnonymousAllowed: false, program: program)
        home.opened(
            ["http", "delimited"].map {
                let address = BoundAddress(name: $0, host: "127.0.0.1", port: 9)
                return HomePage.Listener(address: address, gateway: $0, isEncrypted: false)
            }
        )
        let here = String(buffer: home.page(authority: "localhost", isLocal: true).plain)
        let command = "'/opt/a b/hermes' apikey create shop --data '/srv/it'\\''s here' > shop.key"
        #expect(here.contains(HTML.escaped(command)))
        #expect(here.contains(HTML.escaped("'/opt/a b/hermes' chat ann --register")))
        let elsewhere = String(buffer: home.page(authority: "localhost", isLocal: false).plain)
        #expect(elsewhere.contains("hermes apikey create shop &gt; shop.key") && !elsewhere.contains("/opt"))
        #expect(!elsewhere.contains("/srv"))
    }

    @Test func `a program that its name leads to is called by its name`() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: folder) }
        var programs: [String] = []
        for name in ["first", "second"] {
            let place = folder.appendingPathComponent(name)
            try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
            let path = place.appendingPathComponent("hermes").path
            let attributes = [FileAttributeKey.posixPermissions: 0o755]
            #expect(FileManager.default.createFile(atPath: path, contents: Data(), attributes: attributes))
            programs.append(path)
        }
        func command(_ executable: String?, _ searchPath: String) -> String {
            LocalProgram(executable: executable, searchPath: searchPath, dataDirectory: nil).command
        }
        let (first, second) = ("\(folder.path)/first", "\(folder.path)/second")
        #expect(command(programs[0], "/nowhere:\(first):\(second)") == "hermes")
        #expect(command(programs[1], "\(first):\(second)") == programs[1], "another program has the name")
        #expect(command(programs[0], "") == programs[0] && command(programs[0], ".:first") == programs[0])
        #expect(command("/usr/bin/other", "") == "hermes", "the server is a part of another program")
        #expect(command(nil, "") == "hermes")
        let data = LocalProgram(executable: nil, searchPath: "", dataDirectory: "./hermes-data").dataOption
        #expect(data == " --data " + LocalProgram.word(FileManager.default.currentDirectoryPath + "/hermes-data"))
        #expect(LocalProgram.word("") == "''" && LocalProgram.word("a\n$(id)`b`") == "'a\n$(id)`b`'")
    }

    @Test func `commands on the home page name the data of this server, to nobody behind a proxy`() async throws {
        try await withServer(store: .sqlite) { server in
            let port = server.port("http")
            let option = LocalProgram(executable: nil, searchPath: "", dataDirectory: server.dataDirectory).dataOption
            let here = try await HTTPProbe.send("GET", "/", port: port).text
            #expect(here.contains("apikey create shop\(HTML.escaped(option)) &gt; shop.key"))
            for field in ["X-Forwarded-For", "Forwarded", "X-Real-IP", "Via", "X-Forwarded-Proto", "X-Forwarded-Host"] {
                let text = try await HTTPProbe.send("GET", "/", headers: [(field, "x")], port: port).text
                #expect(text.contains("apikey create shop &gt; shop.key"), "\(field)")
            }
        }
        // A server with the memory store has no keys that a command could reach.
        try await withServer { server in
            let page = try await HTTPProbe.get("/", port: server.port("http"))
            #expect(page.status == 200 && !page.text.contains("apikey"))
        }
    }

    @Test func `the visitor is whom a PROXY header names, even if the proxy is on this machine`() async throws {
        func proxied(_ settings: inout ServerSettings) { settings.http.listener.proxyProtocol = .v2 }
        try await withServer(store: .sqlite, configure: proxied) { server in
            let option = LocalProgram(executable: nil, searchPath: "", dataDirectory: server.dataDirectory).dataOption
            func page(_ header: [UInt8]) async throws -> String {
                let client = try await WebSocketClient.connect(port: server.port("http"))
                try await client.send(ProxyHeader.signature + header)
                try await client.send("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                return await client.rest()
            }
            let strangers: [[UInt8]] = [
                [0x21, 0x11, 0, 12, 203, 0, 113, 5, 127, 0, 0, 1, 1, 1, 2, 2],
                // The header has no address if the client is of an unknown kind, if the client uses a Unix socket, or
                // if the proxy itself checks the server.
                [0x21, 0, 0, 0], [0x21, 0x31, 0, 216] + [UInt8](repeating: 0, count: 216), [0x20, 0, 0, 0],
            ]
            for header in strangers {
                let stranger = try await page(header)
                #expect(stranger.contains("apikey create shop &gt; shop.key"), "\(header.prefix(4))")
                #expect(!stranger.contains(HTML.escaped(option)), "\(header.prefix(4))")
            }
            let local = try await page([0x21, 0x11, 0, 12, 127, 0, 0, 1, 127, 0, 0, 1, 1, 1, 2, 2])
            #expect(local.contains("apikey create shop\(HTML.escaped(option)) &gt; shop.key"))
        }
    }

    @Test func `text in pages is escaped`() {
        let html = HTML.page(title: "<b>") { $0.element("p", "a & \"b\" <script>'") }
        #expect(html.contains("<title>&lt;b&gt;</title>"))
        #expect(html.contains("<p>a &amp; &quot;b&quot; &lt;script&gt;&#39;</p>"))
    }
}
#endif
