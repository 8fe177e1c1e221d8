// Hermes
// SPDX-License-Identifier: Apache-2.0

import HTTPTypes
import Hummingbird
import NIOCore

/// The web pages of the HTTP port: registers their paths.
struct Pages: Sendable {
    /// A page may load from this server, connect to it, and nothing else.
    private static let policy =
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
        + "manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors "

    let pages: WebPages
    let home: HomePage
    /// The text of `/api`; nil: the HTTP API is switched off.
    private let api: String?
    /// The origins whose pages may show a live room in a frame.
    private let frames: [String]
    /// The key with which browsers subscribe to notifications (RFC 8292); empty: there are none.
    private let pushKey: String

    /// - Parameter routes: those of the HTTP API; nil: it is switched off.
    init(_ pages: WebPages, routes: [APIRoute]?, isAnonymousAllowed: Bool, frames: [String], pushKey: String) {
        self.pages = pages
        self.frames = frames
        self.pushKey = pushKey
        home = HomePage(pages: pages, hasAPI: routes != nil, isAnonymousAllowed: isAnonymousAllowed)
        api = pages.contains(.api) ? routes.map(APIPage.text) : nil
    }

    func register(on router: Router<HTTPContext>) {
        for method in [HTTPRequest.Method.get, .head] {
            if pages.contains(.home) {
                router.on("/", method: method) { [home] request, _ in
                    Self.html(home.text(authority: request.head.authority), to: request)
                }
            }
            if let api { router.on("/api", method: method) { request, _ in Self.html(api, to: request) } }
            if pages.contains(.chat) {
                router.on("/chat/push.json", method: method) { [pushAnswer] request, _ in
                    let headers = Self.headers("application/json", [.cacheControl: "no-store"])
                    return Self.response(headers, ByteBuffer(string: pushAnswer), to: request)
                }
            }
        }
        for file in WebFile.all where !pages.isDisjoint(with: file.pages) { register(file, on: router) }
    }

    private func register(_ file: WebFile, on router: Router<HTTPContext>) {
        let packed = ByteBuffer(bytes: file.packed)
        // Weak: the same content is sent in two encodings (RFC 9110, section 8.8.3.3).
        let tag = "W/\"\(file.tag)\""
        let frames = file.isFramed ? frames : []
        let answer: @Sendable (Request, HTTPContext) -> Response = { request, _ in
            let caching: HTTPFields = [.eTag: tag, .cacheControl: "no-cache", .vary: "Accept-Encoding"]
            var headers = Self.headers(file.contentType, caching, frames: frames)
            if file.isPublic {
                headers[.accessControlAllowOrigin] = "*"
                headers[.crossOriginResourcePolicy] = "cross-origin"
            }
            if request.headers[values: .ifNoneMatch].contains(where: { Self.matches($0, tag) }) {
                headers[.contentType] = nil
                return Response(status: .notModified, headers: headers)
            }
            if !Self.takesGzip(request.headers[values: .acceptEncoding]), let plain = WebFile.unpacked[file.path] {
                return Self.response(headers, plain, to: request)
            }
            headers[.contentEncoding] = "gzip"
            return Self.response(headers, packed, to: request)
        }
        let folder = file.path.hasSuffix("/index.html") ? file.path.dropLast("/index.html".count) : nil
        for method in [HTTPRequest.Method.get, .head] {
            router.on(RouterPath(file.path), method: method, use: answer)
            guard let folder else { continue }
            // The router takes both forms of a folder; the page's relative links need the one that ends with a slash.
            router.on(RouterPath(String(folder)), method: method) { request, context in
                guard !request.uri.path.hasSuffix("/") else { return answer(request, context) }
                return Self.redirect(to: "\(folder)/")
            }
            guard folder == "/room" else { continue }
            // Each room has a page of its own, which takes the room's name from its address.
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

    private static func html(_ text: String, to request: Request) -> Response {
        response(headers(.html, [.cacheControl: "no-store"]), ByteBuffer(string: text), to: request)
    }

    static func redirect(to path: String) -> Response {
        Response(status: .permanentRedirect, headers: headers(.html, [.location: path]))
    }

    private static func response(_ headers: HTTPFields, _ body: ByteBuffer, to request: Request) -> Response {
        guard request.method == .head else {
            return Response(status: .ok, headers: headers, body: .init(byteBuffer: body))
        }
        var headers = headers
        headers[.contentLength] = String(body.readableBytes)
        return Response(status: .ok, headers: headers)
    }

    /// What the chat asks for before it offers notifications; the key is base64url.
    var pushAnswer: String { "{\"publicKey\":\"\(pushKey.filter(Self.isBase64URL))\"}" }

    private static func isBase64URL(_ character: Character) -> Bool {
        character.isASCII && (character.isLetter || character.isNumber || "-_=".contains(character))
    }

    /// The headers of every answer, which keep a page to itself.
    ///
    /// - Parameter frames: the origins whose pages may show it in a frame.
    static func headers(_ type: String, _ further: HTTPFields, frames: [String] = []) -> HTTPFields {
        var headers = further
        headers[.contentType] = type
        headers[.contentSecurityPolicy] = policy + (frames.isEmpty ? "'none'" : frames.joined(separator: " "))
        headers[.xContentTypeOptions] = "nosniff"
        headers[.referrerPolicy] = "no-referrer"
        // It cannot name origins; browsers that know the policy's directive ignore it.
        if frames.isEmpty { headers[.frameOptions] = "DENY" }
        headers[.crossOriginOpenerPolicy] = "same-origin"
        headers[.crossOriginResourcePolicy] = "same-origin"
        headers[.permissionsPolicy] = "camera=(), microphone=(), geolocation=(), payment=(), usb=()"
        return headers
    }

    /// The headers of an answer that is no page, such as `/metrics`; its route may set others.
    static let bareHeaders: HTTPFields = [
        .contentSecurityPolicy: "default-src 'none'; frame-ancestors 'none'",
        .xContentTypeOptions: "nosniff",
        .referrerPolicy: "no-referrer",
        .frameOptions: "DENY",
        .cacheControl: "no-store",
    ]

    /// Whether an `If-None-Match` field names the weak tag (RFC 9110, section 13.1.2).
    static func matches(_ field: String, _ tag: String) -> Bool {
        field.split(separator: ",").contains { candidate in
            let candidate = candidate.drop { $0 == " " || $0 == "\t" }.prefix { $0 != " " && $0 != "\t" }
            return candidate == "*" || candidate == tag || "W/" + candidate == tag
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

extension HTTPField.Name {
    // Constants of this file, all of them tokens.
    fileprivate static let referrerPolicy = HTTPField.Name("Referrer-Policy") ?? .vary
    fileprivate static let frameOptions = HTTPField.Name("X-Frame-Options") ?? .vary
    fileprivate static let crossOriginOpenerPolicy = HTTPField.Name("Cross-Origin-Opener-Policy") ?? .vary
    fileprivate static let crossOriginResourcePolicy = HTTPField.Name("Cross-Origin-Resource-Policy") ?? .vary
    fileprivate static let permissionsPolicy = HTTPField.Name("Permissions-Policy") ?? .vary
}
