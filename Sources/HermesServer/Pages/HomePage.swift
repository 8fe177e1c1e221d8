// Hermes
// SPDX-License-Identifier: Apache-2.0

#if Pages
import HermesGateways
import Synchronization

/// The page at `/`: the server, its addresses, and first steps.
///
/// State: one `Mutex` around the listeners, which are known once all are open, and around the last pages.
final class HomePage: Sendable {
    /// A listener that is open.
    struct Listener: Sendable {
        let address: BoundAddress
        /// The name of its protocol.
        let gateway: String
        let isEncrypted: Bool
        /// Whether only visitors from this machine see it.
        var isPrivate = false
    }

    /// The visitors that get the same page.
    struct Visitor: Hashable {
        /// The server's name in the page.
        let host: String
        /// Whether the visitors are on this machine.
        let isLocal: Bool
    }

    struct State {
        var listeners: [Listener] = []
        /// The pages that were made so far, by their visitors.
        var pages: [Visitor: PageText] = [:]
    }

    /// The largest number of kept pages: a server has few names, but a request may contain any name.
    static let maxNames = 16

    private let pages: WebPages
    private let hasAPI: Bool
    private let hasKeys: Bool
    private let isAnonymousAllowed: Bool
    private let program: LocalProgram?
    let state = Mutex(State())

    /// - Parameters:
    ///   - pages: the pages that are switched on.
    ///   - hasKeys: whether the command line can create keys of the HTTP API. It cannot if the store is in the memory
    ///     of the server's process.
    ///   - isAnonymousAllowed: whether MQTT clients need no account.
    ///   - program: the program in the commands that visitors from this machine see; nil if they see the same commands
    ///     as all others.
    init(
        pages: WebPages,
        hasAPI: Bool,
        hasKeys: Bool = true,
        isAnonymousAllowed: Bool,
        program: LocalProgram? = nil
    ) {
        self.hasKeys = hasKeys
        self.program = program
        self.pages = pages
        self.hasAPI = hasAPI
        self.isAnonymousAllowed = isAnonymousAllowed
    }

    func opened(_ opened: [Listener]) { state.withLock { $0 = State(listeners: opened) } }

    /// Returns the page. It is made once for each name of the server, separately for visitors from this machine and for
    /// others.
    ///
    /// - Parameters:
    ///   - authority: the `Host` field of the request, from which the commands take the server's name.
    ///   - isLocal: whether the visitor is on this machine.
    func page(authority: String?, isLocal: Bool) -> PageText {
        let host = Self.host(of: authority)
        let visitor = Visitor(host: host, isLocal: isLocal)
        let (known, listeners) = state.withLock { ($0.pages[visitor], $0.listeners) }
        if let known { return known }
        let program = isLocal ? self.program : nil
        let page = PageText(text(host, listeners.filter { isLocal || !$0.isPrivate }, program))
        state.withLock { state in
            // The listeners may have opened in the meantime.
            guard state.listeners.count == listeners.count else { return }
            // If there are too many names, all pages are dropped and made anew.
            if state.pages.count >= Self.maxNames { state.pages.removeAll(keepingCapacity: true) }
            state.pages[visitor] = page
        }
        return page
    }

    private func text(_ host: String, _ listeners: [Listener], _ program: LocalProgram?) -> String {
        HTML.page(title: "Hermes") { html in
            html.element("h1", "This is Hermes \(HermesVersion.current)")
            html.element("p", "A messaging server and MQTT broker. It is running.")
            links(listeners, &html)
            html.element("h2", "Listeners")
            Self.table(listeners, &html)
            html.element("h2", "First steps")
            firstSteps(listeners, host, program, &html)
        }
    }

    private func links(_ listeners: [Listener], _ html: inout HTML) {
        html.element("ul", with: "class=\"pages\"") { html in
            func link(_ target: String, _ title: String, _ text: String) {
                html.element("li") { html in
                    html.element("a", with: "href=\"\(target)\"") { html in
                        html.element("strong", title)
                        html.element("span", text)
                    }
                }
            }
            if pages.contains(.chat) {
                link("/chat/", "Chat", "Create an account and write to others, in this browser.")
            }
            if pages.contains(.room) {
                link("/room/lobby", "Live room", "Watch a room and talk in it, in this browser.")
            }
            if pages.contains(.api), hasAPI { link("/api", "HTTP API", "Every call that a back end can make.") }
            if hasAPI { link("/v1/openapi.json", "OpenAPI document", "The same, for client generators.") }
            if let console = listeners.first(where: { $0.gateway == "console" }), let address = console.linked {
                link(address, "Console", "Figures, accounts, rooms and topics, for those who run this server.")
            }
            link("/metrics", "Metrics", "The counters of this server, for Prometheus.")
        }
    }

    /// The purposes of the listeners that serve no wire protocol, by name.
    private static let purposes = [
        "console": "the console, which only visitors from this machine see in this list",
        "stun": "STUN: clients learn their address as others see it",
        "http": "this page, the HTTP API, WebSocket at /ws and /mqtt",
    ]

    private static func table(_ listeners: [Listener], _ html: inout HTML) {
        html.element("table") { html in
            html.element("tr") { html in
                for title in ["Name", "Address", "TLS", "For"] { html.element("th", title, with: "scope=\"col\"") }
            }
            for listener in listeners {
                let address = listener.address
                html.element("tr") { html in
                    html.element("td", address.name)
                    html.element("td") { html in
                        html.element("code", String(address.description.dropFirst(address.name.count + 1)))
                    }
                    html.element("td", listener.isEncrypted ? "yes" : "no")
                    html.element(
                        "td",
                        GatewayCatalog.gateway(named: listener.gateway)?.purpose ?? purposes[listener.gateway] ?? ""
                    )
                }
            }
        }
    }

    private func firstSteps(_ listeners: [Listener], _ host: String, _ program: LocalProgram?, _ html: inout HTML) {
        let hermes = program?.command ?? "hermes"
        func port(_ name: String) -> Int? {
            let plain = listeners.first { $0.gateway == name && !$0.isEncrypted && !$0.address.host.contains("/") }
            return plain?.address.port
        }
        if pages.contains(.chat) {
            let text = "Open the chat in two windows, create an account in each, and write from one to the other. "
            html.element("p", text + "The second window begins as the first; its menu adds an account.")
        }
        if let port = port("delimited") {
            html.element("p", "Create an account and chat in a terminal:")
            html.commands(["\(hermes) chat ann --register --host \(host) --port \(port)"])
        }
        if let port = port("mqtt") {
            let login = isAnonymousAllowed ? "" : " -u NAME -P PASSWORD"
            html.element("p", "Subscribe in one terminal, publish in another:")
            html.commands(["mosquitto_sub -h \(host) -p \(port)\(login) -t 'home/#' -v"])
            html.commands(["mosquitto_pub -h \(host) -p \(port)\(login) -t home/kitchen/temperature -m 21.5"])
        }
        if let port = port("liveroom") {
            html.element("p", "Say something in a live room:")
            html.commands(["echo \"hello, everybody\" | \(hermes) room lobby --name ann --host \(host) --port \(port)"])
        }
        if hasAPI, hasKeys, let port = port("http") {
            html.element("p", "Push from a back end, on this machine with a key of its own:")
            html.commands([
                "\(hermes) apikey create shop\(program?.dataOption ?? "") > shop.key",
                "\(hermes) push --to ann --title Parcel --body \"It is at your door\" --key-file shop.key "
                    + "--host \(host) --port \(port)",
            ])
        }
        html.element("p", "A click marks a whole command.", with: "class=\"muted\"")
    }

    /// Returns the name of the server for visitors of the page; a loopback address if the name is missing or has
    /// characters that a plain name cannot have.
    static func host(of authority: String?) -> String {
        guard let authority else { return "127.0.0.1" }
        var host = Substring(authority)
        if host.first == "[" {
            host = host.dropFirst().prefix { $0 != "]" }
        } else if let colon = host.lastIndex(of: ":") {
            host = host[..<colon]
        }
        let isPlain = host.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: ":"):
                true
            // A hyphen must not come first: a command would take the name for an option.
            case UInt8(ascii: "-"): host.utf8.first != byte
            default: false
            }
        }
        return (1...253).contains(host.utf8.count) && isPlain ? String(host) : "127.0.0.1"
    }
}

extension HomePage {
    /// Whether a request comes from this machine, as far as the server can tell.
    ///
    /// A proxy on this machine acts for others, so its requests must not count as local. They are recognized because
    /// the proxy names its client, or keeps the name under which the client knows the server.
    ///
    /// - Parameters:
    ///   - address: the peer's address; nil if it is not known, or if the peer is a proxy that hides its client.
    ///   - isForwarded: whether the request names a client behind a proxy.
    static func isLocal(address: String?, authority: String?, isForwarded: Bool) -> Bool {
        guard let address, let authority, !isForwarded else { return false }
        return ListenerSettings(host: address, port: 0).isLoopback && WebOrigins.isLocal(authority: authority)
    }
}

extension HomePage.Listener {
    /// The address of the console at this listener; nil unless the listener is on a loopback address.
    fileprivate var linked: String? {
        guard ListenerSettings(host: address.host, port: 0).isLoopback else { return nil }
        let place = address.description.dropFirst(address.name.count + 1)
        return "\(isEncrypted ? "https" : "http")://\(place)/console/"
    }
}
#endif
