// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOHTTP1

/// The state of one connection of the HTTP port: the part of a request that was received, the answers that are still
/// owed, and the deadlines. Does no I/O. Times are of a clock that never goes back.
///
/// Answers are sent in the order of the requests, so a refusal waits for the answers before it.
package struct HTTPExchange: Sendable {
    /// The limits of time and size.
    package struct Limits: Sendable, Hashable {
        /// The time for the head of a request. For the first request, it begins with the connection. For each later
        /// request, it begins with the request's first byte.
        package var head = Duration.seconds(5)
        /// The time for the rest of a request, counted from its head.
        package var body = Duration.seconds(20)
        /// The time between two requests.
        package var idle = Duration.seconds(30)
        /// The time in which the peer must read at least a part of an answer.
        package var answer = Duration.seconds(60)
        /// The longest body, in bytes. It is longer than any path accepts, so that each path can refuse a long body
        /// with its own message.
        package var bodyBytes = 2 << 20

        package init() {}
    }

    /// An answer after which the connection ends.
    struct LastWord: Error, Sendable, Hashable {
        let status: HTTPResponseStatus
        let text: String
    }

    /// The moment at which a last word is sent.
    enum Say: Sendable, Hashable {
        case now
        /// Other answers must be sent first.
        case afterAnswers
        /// The answer to this request has begun, so the connection can only be closed.
        case nothing
    }

    /// The action at a check of the deadline.
    enum Lateness: Sendable, Hashable {
        case wait(until: Duration)
        case say(LastWord)
        /// No byte of a request arrived, or the peer reads nothing of its answer.
        case close
    }

    /// The expected input.
    private enum Reading: Hashable {
        /// A request of which nothing has arrived yet.
        case nothing
        case head
        case body(received: Int)
        /// Input is ignored.
        case over
    }

    let limits: Limits
    private var reading = Reading.nothing
    /// The number of requests whose heads were accepted and whose answers are not complete.
    private(set) var owed = 0
    /// The deadline for the expected input.
    private(set) var readDeadline: Duration
    private var answerDeadline: Duration
    private var isFirst = true
    private var isLast = false
    /// Whether the next answer has begun.
    private var isAnswerBegun = false
    /// Whether the client waits for a 100 response before it sends the body of the last request.
    private var isBodyHeldBack = false

    init(limits: Limits = Limits(), now: Duration) {
        self.limits = limits
        readDeadline = now + limits.head
        answerDeadline = now
    }

    /// The time of the next check.
    var deadline: Duration {
        switch reading {
        case .nothing, .head, .over: owed > 0 ? answerDeadline : readDeadline
        case .body: readDeadline
        }
    }

    /// Whether input is still examined.
    var isReading: Bool { reading != .over }

    /// Whether the connection ends after the owed answers.
    var endsAfterAnswers: Bool { isLast || reading == .over }

    // MARK: Input

    mutating func bytesArrived(now: Duration) {
        guard reading == .nothing else { return }
        reading = .head
        // The time for the first head starts with the connection.
        if !isFirst { readDeadline = now + limits.head }
    }

    /// - Throws: if the request is invalid or too large.
    mutating func headReceived(_ head: HTTPRequestHead, now: Duration) throws(LastWord) {
        guard reading != .over else { return }
        if let problem = Self.problem(with: head, maxBodyBytes: limits.bodyBytes) { throw problem }
        if owed == 0 { answerDeadline = now + limits.answer }
        isFirst = false
        owed += 1
        reading = .body(received: 0)
        isBodyHeldBack = Self.isBodyHeldBack(by: head)
        readDeadline = now + limits.body
        if !head.isKeepAlive || head.headers.contains(name: "upgrade") { isLast = true }
    }

    /// Whether a client may hold back the body of a request until it gets a 100 response (RFC 9110, section 10.1.1).
    private static func isBodyHeldBack(by head: HTTPRequestHead) -> Bool {
        guard head.version == .http1_1,
            head.headers[canonicalForm: "expect"].contains(where: { $0.lowercased() == "100-continue" })
        else { return false }
        let length = head.headers.first(name: "content-length").flatMap { Int($0) } ?? 0
        return length > 0 || head.headers.contains(name: "transfer-encoding")
    }

    /// Whether the server must now tell the client to continue with a body; true at most once for each request. False
    /// while an earlier answer is owed, because the client would take the 100 response for a part of that answer. When
    /// true is returned, the time for the body begins anew.
    mutating func tellsToContinue(now: Duration) -> Bool {
        guard isBodyHeldBack, owed == 1, !isAnswerBegun, reading == .body(received: 0) else { return false }
        isBodyHeldBack = false
        readDeadline = now + limits.body
        return true
    }

    /// - Throws: if the body is too large.
    mutating func bodyReceived(_ bytes: Int) throws(LastWord) {
        guard case .body(let received) = reading else { return }
        guard received + bytes <= limits.bodyBytes else { throw Self.tooLarge(limits.bodyBytes) }
        reading = .body(received: received + bytes)
    }

    mutating func endReceived(now: Duration) {
        guard case .body = reading else { return }
        reading = isLast ? .over : .nothing
        readDeadline = now + limits.idle
        answerDeadline = now + limits.answer
    }

    /// Ends the input; a ``LastWord`` follows.
    ///
    /// - Returns: when to send it.
    mutating func ended(now: Duration) -> Say {
        defer { reading = .over }
        answerDeadline = now + limits.answer
        switch reading {
        case .nothing, .head: return owed == 0 ? .now : .afterAnswers
        case .body:
            guard owed > 0, owed > 1 || !isAnswerBegun else { return .nothing }
            // The last word is the answer to the request that is being received.
            owed -= 1
            return owed == 0 ? .now : .afterAnswers
        case .over: return .nothing
        }
    }

    // MARK: Output

    /// Notes that the peer reads output.
    mutating func answerMoved(now: Duration) { answerDeadline = now + limits.answer }

    mutating func answerBegan() { isAnswerBegun = true }

    /// Notes that an answer is complete.
    ///
    /// - Returns: whether it was the last answer of the connection.
    mutating func answered(now: Duration) -> Bool {
        owed = max(0, owed - 1)
        isAnswerBegun = false
        guard owed == 0 else { return false }
        switch reading {
        case .nothing: readDeadline = now + limits.idle
        case .head: readDeadline = now + limits.head
        case .body: break
        case .over: return true
        }
        return false
    }

    /// Ends the input, unless the body of a request is being received. Requests whose heads were accepted are still
    /// answered.
    ///
    /// - Returns: whether no answer is owed, so that the connection can be closed.
    mutating func stop() -> Bool {
        isLast = true
        if case .body = reading { return false }
        reading = .over
        return owed == 0
    }

    func deadlineReached(now: Duration) -> Lateness {
        guard now >= deadline else { return .wait(until: deadline) }
        switch reading {
        case .nothing, .over: return .close
        case .head: return owed > 0 ? .close : .say(Self.tooLate("The request did not arrive in time."))
        case .body: return .say(Self.tooLate("The request's body did not arrive in time."))
        }
    }

    // MARK: Malformed requests

    private static func tooLate(_ text: String) -> LastWord { LastWord(status: .requestTimeout, text: text) }

    private static func tooLarge(_ most: Int) -> LastWord {
        LastWord(status: .payloadTooLarge, text: "The body of a request has at most \(most) bytes.")
    }

    private static func bad(_ text: String) -> LastWord { LastWord(status: .badRequest, text: text) }

    /// Returns the last word for an error of the parser.
    static func lastWord(on error: HTTPParserError) -> LastWord {
        switch error {
        case .headerOverflow:
            LastWord(status: .requestHeaderFieldsTooLarge, text: "The head of the request is too large.")
        case .invalidVersion:
            LastWord(status: .httpVersionNotSupported, text: "Only HTTP/1.1 and HTTP/1.0 are supported.")
        default: bad("This is not an HTTP request.")
        }
    }

    /// The fields with names and addresses, which the server parses.
    private static let asciiFields = ["host", "origin", "forwarded", "x-forwarded-for", "x-forwarded-proto"]

    /// Returns the bytes of a request's target with its percent-encoding decoded. Malformed encoding stays as it is.
    private static func percentDecoded(_ target: String) -> [UInt8] {
        let encoded = Array(target.utf8)
        guard encoded.contains(UInt8(ascii: "%")) else { return encoded }
        var decoded: [UInt8] = []
        var index = 0
        while index < encoded.count {
            if encoded[index] == UInt8(ascii: "%"), index + 2 < encoded.count,
                let byte = UInt8(String(decoding: encoded[index + 1...index + 2], as: UTF8.self), radix: 16)
            {
                decoded.append(byte)
                index += 3
            } else {
                decoded.append(encoded[index])
                index += 1
            }
        }
        return decoded
    }

    /// Returns the reason to refuse a request that the parser accepts; nil if there is none. Two kinds of requests
    /// are refused: invalid requests (RFC 9112, sections 3.2 and 6.1), and requests that a proxy in front of this
    /// server could interpret differently from this server.
    static func problem(with head: HTTPRequestHead, maxBodyBytes: Int) -> LastWord? {
        // This check comes before all comparisons.
        guard head.uri.utf8.allSatisfy({ $0 < 0x80 }) else {
            return bad("The request's target must be ASCII; other characters are percent-encoded.")
        }
        guard StreamSafeText.isSafe(percentDecoded(head.uri)) else {
            return bad("The request's target \(StreamSafeText.problem).")
        }
        for (name, value) in head.headers where !StreamSafeText.isSafe(value.utf8) {
            return bad("The field \(name) \(StreamSafeText.problem).")
        }
        for name in asciiFields where !head.headers[name].allSatisfy({ $0.utf8.allSatisfy { $0 < 0x80 } }) {
            return bad("The field \(name) must be ASCII.")
        }
        let hosts = head.headers["host"]
        guard hosts.count <= 1, hosts.count == 1 || head.version == .http1_0 else {
            return bad("A request must have exactly one Host.")
        }
        if let host = hosts.first, host.contains(where: { "/\\?#@, \t".contains($0) }) {
            return bad("Host must be a name or address, with or without a port.")
        }
        guard
            head.uri.first == "/" || head.uri.hasPrefix("http://") || head.uri.hasPrefix("https://") || head.uri == "*"
        else { return bad("The request's target must be a path.") }
        // An http URI must have a host (RFC 9110, section 4.2.1).
        var path = head.uri.prefix { $0 != "?" }
        for scheme in ["http://", "https://"] where path.hasPrefix(scheme) {
            path = path.dropFirst(scheme.count)
            guard let first = path.first, first != "/", first != "#" else {
                return bad("The request's target needs a host.")
            }
        }
        // The routes ignore an empty segment, but a proxy that decides by the path may treat it as a part of the path.
        let segments = path.drop { $0 != "/" }.split(separator: "/")
        guard !path.contains("//") || segments.first != "v1" else {
            return bad("The path of a request of the API must not have an empty segment.")
        }
        let lengths = head.headers["content-length"]
        let codings = head.headers["transfer-encoding"]
        if !codings.isEmpty {
            guard lengths.isEmpty, head.version != .http1_0 else {
                return bad("Transfer-Encoding needs HTTP/1.1 and excludes Content-Length.")
            }
            guard codings.count == 1, codings[0].lowercased() == "chunked" else {
                return LastWord(status: .notImplemented, text: "The only supported Transfer-Encoding is chunked.")
            }
        }
        guard lengths.count <= 1 else { return bad("A request must have at most one Content-Length.") }
        if let length = lengths.first {
            guard let bytes = Int(length), bytes >= 0, length.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
                return bad("Content-Length must be a number of bytes.")
            }
            guard bytes <= maxBodyBytes else { return tooLarge(maxBodyBytes) }
        }
        return nil
    }
}
