// Hermes
// SPDX-License-Identifier: Apache-2.0

#if Pages
import HTTPTypes
import HermesCore
import Hummingbird
import NIOCore

/// The web pages of the HTTP port: registers their paths.
struct Pages: Sendable {
    /// The content security policy, up to the name of its last directive, `frame-ancestors`. A page may load content
    /// only from this server and connect only to this server.
    private static let policy =
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
        + "manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors "

    let pages: WebPages
    let home: HomePage
    /// The page at `/api`, for visitors on this machine and for others; nil if the page or the HTTP API is switched
    /// off.
    private let api: (local: PageText, distant: PageText)?
    /// The origins whose pages may show a live room in a frame.
    private let frames: [String]
    /// The key with which browsers subscribe to notifications (RFC 8292); empty if there are no notifications.
    private let pushKey: String
    /// Counts the viewers of live rooms; nil if there are no pages of rooms.
    private let audience: RoomAudience?

    /// - Parameters:
    ///   - routes: the routes of the HTTP API; nil if the API is switched off.
    ///   - program: the program in the commands that visitors from this machine see.
    init(
        _ pages: WebPages,
        routes: [APIRoute]? = nil,
        isAnonymousAllowed: Bool = false,
        hasKeys: Bool = true,
        program: LocalProgram? = nil,
        frames: [String] = [],
        pushKey: String = "",
        audience: RoomAudience? = nil
    ) {
        self.pages = pages
        self.frames = frames
        self.pushKey = pushKey
        self.audience = audience
        home = HomePage(
            pages: pages,
            hasAPI: routes != nil,
            hasKeys: hasKeys,
            isAnonymousAllowed: isAnonymousAllowed,
            program: program
        )
        let hasHome = pages.contains(.home)
        func api(_ routes: [APIRoute], _ program: LocalProgram?) -> PageText {
            PageText(APIPage.text(routes, hasHome: hasHome, program: program))
        }
        self.api = pages.contains(.api) ? routes.map { (api($0, program), api($0, nil)) } : nil
    }

    func register(on router: Router<HTTPContext>) {
        for method in [HTTPRequest.Method.get, .head] {
            if pages.contains(.home) {
                router.on("/", method: method) { [home] request, context in
                    let isLocal = Self.isLocal(request, context)
                    return Self.html(home.page(authority: request.head.authority, isLocal: isLocal), to: request)
                }
            }
            if let api {
                router.on("/api", method: method) { request, context in
                    Self.html(Self.isLocal(request, context) ? api.local : api.distant, to: request)
                }
            }
            if pages.contains(.chat) {
                router.on("/chat/push.json", method: method) { [pushAnswer] request, _ in
                    Self.json(.ok, pushAnswer, to: request)
                }
            }
            if pages.contains(.room), let audience {
                router.on("/room/{name}/viewers", method: method) { request, context in
                    guard let room = context.parameters.get("name").flatMap({ RoomName($0) }) else {
                        return Self.json(.badRequest, "{}", to: request)
                    }
                    return switch await audience.viewers(of: room) {
                    case .viewers(let count): Self.json(.ok, "{\"viewers\":\(count)}", to: request)
                    case .forbidden: Self.json(.forbidden, "{}", to: request)
                    case .busy: Self.json(.serviceUnavailable, "{}", [.retryAfter: "2"], to: request)
                    }
                }
            }
        }
        for file in WebFile.all where !pages.isDisjoint(with: file.pages) { register(file, on: router) }
    }

    private static func isLocal(_ request: Request, _ context: HTTPContext) -> Bool {
        HomePage.isLocal(
            address: context.isClientHidden ? nil : context.peer?.ipAddress,
            authority: request.head.authority,
            isForwarded: HTTPField.Name.proxyFields.contains { request.headers[$0] != nil }
        )
    }

    private func register(_ file: WebFile, on router: Router<HTTPContext>) {
        let packed = ByteBuffer(bytes: file.packed)
        var headers = Self.headers(file.contentType, [:], frames: file.isFramed ? frames : [])
        if file.isPublic {
            headers[.accessControlAllowOrigin] = "*"
            headers[.crossOriginResourcePolicy] = "cross-origin"
        }
        let answer: @Sendable (Request, HTTPContext) -> Response = { [headers] request, _ in
            Self.answer(request, headers, tag: file.tag, packed: packed) { WebFile.unpacked[file.path] }
        }
        let folder = file.path.hasSuffix("/index.html") ? file.path.dropLast("/index.html".count) : nil
        for method in [HTTPRequest.Method.get, .head] {
            router.on(RouterPath(file.path), method: method, use: answer)
            guard let folder else { continue }
            // The router accepts both forms of a folder's path; the page's relative links need the form that ends
            // with a slash.
            router.on(RouterPath(String(folder)), method: method) { request, context in
                guard !request.uri.path.hasSuffix("/") else { return answer(request, context) }
                return Self.redirect(to: "\(folder)/")
            }
            guard folder == "/room" else { continue }
            // Each room has its own page, which takes the room's name from the page's address.
            router.on("/room/{name}", method: method) { request, context in
                let path = request.uri.path
                guard path.hasSuffix("/") else { return answer(request, context) }
                // Two slashes at the beginning would name another host (RFC 3986, section 4.2).
                var target = path.drop { $0 == "/" }
                while target.last == "/" { target.removeLast() }
                return Self.redirect(to: "/\(target)")
            }
        }
    }

    // MARK: Answers

    private static func html(_ page: PageText, to request: Request) -> Response {
        answer(request, headers(.html, [:]), tag: page.tag, packed: page.packed) { page.plain }
    }

    private static func json(
        _ status: HTTPResponse.Status,
        _ text: String,
        _ further: HTTPFields = [:],
        to request: Request
    ) -> Response {
        var headers = Self.headers("application/json", further)
        headers[.cacheControl] = "no-store"
        return response(status, headers, ByteBuffer(string: text), to: request)
    }

    /// Returns an answer with content: compressed for clients that accept this, and without the content for clients
    /// that already have it.
    ///
    /// - Parameters:
    ///   - tag: the entity tag, which changes with the content.
    ///   - packed: the compressed content; nil if the content is never sent compressed.
    ///   - plain: the uncompressed content.
    private static func answer(
        _ request: Request,
        _ headers: HTTPFields,
        tag: String,
        packed: ByteBuffer?,
        plain: () -> ByteBuffer?
    ) -> Response {
        var headers = headers
        let body: ByteBuffer
        var suffix = ""
        if let packed, takesGzip(request.headers[values: .acceptEncoding]) {
            body = packed
            // The tags are strong, so the compressed bytes need a tag of their own (RFC 9110, section 8.8.3.3).
            suffix = "-gzip"
        } else {
            // `PagesTests` unpacks each file, so the content is never missing.
            body = plain() ?? ByteBuffer()
        }
        let tag = "\"\(tag)\(suffix)\""
        headers[.eTag] = tag
        headers[.cacheControl] = "no-cache"
        headers[.vary] = "Accept-Encoding"
        if request.headers[values: .ifNoneMatch].contains(where: { matches($0, tag) }) {
            headers[.contentType] = nil
            return Response(status: .notModified, headers: headers)
        }
        if !suffix.isEmpty { headers[.contentEncoding] = "gzip" }
        return response(.ok, headers, body, to: request)
    }

    static func redirect(to path: String) -> Response {
        Response(status: .permanentRedirect, headers: headers(.html, [.location: path]))
    }

    private static func response(
        _ status: HTTPResponse.Status,
        _ headers: HTTPFields,
        _ body: ByteBuffer,
        to request: Request
    ) -> Response {
        guard request.method == .head else {
            return Response(status: status, headers: headers, body: .init(byteBuffer: body))
        }
        var headers = headers
        headers[.contentLength] = String(body.readableBytes)
        return Response(status: status, headers: headers)
    }

    /// The JSON that the chat requests before it offers notifications. The key in it is base64url.
    var pushAnswer: String { "{\"publicKey\":\"\(pushKey.filter(Self.isBase64URL))\"}" }

    private static func isBase64URL(_ character: Character) -> Bool {
        character.isASCII && (character.isLetter || character.isNumber || "-_=".contains(character))
    }

    /// Returns the header fields that every answer has. They isolate the page from other sites.
    ///
    /// - Parameter frames: the origins whose pages may show this page in a frame.
    static func headers(_ type: String, _ further: HTTPFields, frames: [String] = []) -> HTTPFields {
        var headers = further
        headers[.contentType] = type
        headers[.contentSecurityPolicy] = policy + (frames.isEmpty ? "'none'" : frames.joined(separator: " "))
        headers[.xContentTypeOptions] = "nosniff"
        headers[.referrerPolicy] = "no-referrer"
        // `X-Frame-Options` cannot name origins. Browsers that know the directive `frame-ancestors` ignore this field.
        if frames.isEmpty { headers[.frameOptions] = "DENY" }
        headers[.crossOriginOpenerPolicy] = "same-origin"
        headers[.crossOriginResourcePolicy] = "same-origin"
        headers[.permissionsPolicy] = "camera=(), microphone=(), geolocation=(), payment=(), usb=()"
        return headers
    }

    /// Whether an `If-None-Match` field names a strong tag. A proxy may have made the tag in the field weak (RFC 9110,
    /// section 13.1.2).
    static func matches(_ field: String, _ tag: String) -> Bool {
        field.split(separator: ",").contains { candidate in
            let candidate = candidate.drop { $0 == " " || $0 == "\t" }.prefix { $0 != " " && $0 != "\t" }
            return candidate == "*" || candidate == tag || candidate == "W/" + tag
        }
    }

    /// Whether `Accept-Encoding` fields allow gzip (RFC 9110, section 12.5.3).
    static func takesGzip(_ fields: [String]) -> Bool {
        for coding in fields.joined(separator: ",").lowercased().split(separator: ",") {
            let parts = coding.split(separator: ";").map { $0.filter { $0 != " " && $0 != "\t" } }
            guard parts.first == "gzip" || parts.first == "x-gzip" else { continue }
            let weight = parts.dropFirst().first { $0.hasPrefix("q=") }.flatMap { Double($0.dropFirst(2)) }
            return weight.map { $0 > 0 } ?? true
        }
        return false
    }
}

extension String {
    fileprivate static let html = "text/html; charset=utf-8"
}
#endif
