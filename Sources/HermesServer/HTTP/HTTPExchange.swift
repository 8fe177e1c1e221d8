// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOHTTP1

/// One connection of the HTTP port: what of a request has come, what answers are owed, and until when it may take. Does no
/// I/O; times are of a clock that never goes back.
///
/// Answers go out in the order of the requests, so what refuses one waits until those before it are written.
package struct HTTPExchange: Sendable {
    /// How long things may take, and how much may come.
    package struct Limits: Sendable, Hashable {
        /// For the head of a request, from the connection or its first byte on.
        package var head = Duration.seconds(5)
        /// For the rest of a request, from its head on.
        package var body = Duration.seconds(20)
        /// Between two requests.
        package var idle = Duration.seconds(30)
        /// For the peer to take something of an answer.
        package var answer = Duration.seconds(60)
        /// Of a request's body. More than any path takes, which says so in its own words.
        package var bodyBytes = 2 << 20

        package init() {}
    }

    /// An answer after which the connection ends.
    struct LastWord: Error, Sendable, Hashable {
        let status: HTTPResponseStatus
        let text: String
    }

    /// What becomes of a last word.
    enum Say: Sendable, Hashable {
        case now
        /// Other answers are owed first.
        case afterAnswers
        /// The answer to the very request has begun: the connection can only be closed.
        case nothing
    }

    /// What is to be done when the deadline was reached.
    enum Lateness: Sendable, Hashable {
        case wait(until: Duration)
        case say(LastWord)
        /// Nothing of a request came, or the peer takes nothing of its answer.
        case close
    }

    /// What comes next from the peer.
    private enum Reading: Hashable {
        /// A request, of which nothing has come.
        case nothing
        case head
        case body(received: Int)
        /// What comes is ignored.
        case over
    }

    let limits: Limits
    private var reading = Reading.nothing
    /// Requests whose heads were taken and whose answers are not written in full.
    private(set) var owed = 0
    /// When what is awaited from the peer must be there.
    private(set) var readDeadline: Duration
    private var answerDeadline: Duration
    private var isLast = false
    /// Of the request whose answer is the next.
    private var isAnswerBegun = false

    init(limits: Limits = Limits(), now: Duration) {
        self.limits = limits
        readDeadline = now + limits.head
        answerDeadline = now
    }

    /// When to look again.
    var deadline: Duration {
        switch reading {
        case .nothing, .head, .over: owed > 0 ? answerDeadline : readDeadline
        case .body: readDeadline
        }
    }

    /// Whether what comes is still looked at.
    var isReading: Bool { reading != .over }

    /// Whether the connection ends with the answers that are owed.
    var endsAfterAnswers: Bool { isLast || reading == .over }

    // MARK: What came

    mutating func bytesArrived(now: Duration) {
        guard reading == .nothing else { return }
        reading = .head
        // The first head has its time from the connection on.
        readDeadline = min(max(readDeadline, now), now + limits.head)
    }

    /// - Throws: the request is not one, or is too large.
    mutating func headReceived(_ head: HTTPRequestHead, now: Duration) throws(LastWord) {
        guard reading != .over else { return }
        if let problem = Self.problem(with: head, maxBodyBytes: limits.bodyBytes) { throw problem }
        if owed == 0 { answerDeadline = now + limits.answer }
        owed += 1
        reading = .body(received: 0)
        readDeadline = now + limits.body
        if !head.isKeepAlive || head.headers.contains(name: "upgrade") { isLast = true }
    }

    /// - Throws: there is too much of it.
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

    /// Nothing further is looked at: what came last gets a last word.
    mutating func ended(now: Duration) -> Say {
        defer { reading = .over }
        answerDeadline = now + limits.answer
        switch reading {
        case .nothing, .head: return owed == 0 ? .now : .afterAnswers
        case .body:
            guard owed > 0, owed > 1 || !isAnswerBegun else { return .nothing }
            // The last word is the answer.
            owed -= 1
            return owed == 0 ? .now : .afterAnswers
        case .over: return .nothing
        }
    }

    // MARK: What is written

    /// The peer takes what is written to it.
    mutating func answerMoved(now: Duration) { answerDeadline = now + limits.answer }

    mutating func answerBegan() { isAnswerBegun = true }

    /// An answer is written in full.
    ///
    /// - Returns: whether it was the last one.
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

    /// Answers no request any more once those are answered that were begun.
    ///
    /// - Returns: whether there are none.
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
        case .head: return owed > 0 ? .close : .say(Self.tooLate("The request did not come in time."))
        case .body: return .say(Self.tooLate("The request's body did not come in time."))
        }
    }

    // MARK: What is no request

    private static func tooLate(_ text: String) -> LastWord { LastWord(status: .requestTimeout, text: text) }

    private static func tooLarge(_ most: Int) -> LastWord {
        LastWord(status: .payloadTooLarge, text: "The body of a request has at most \(most) bytes.")
    }

    private static func bad(_ text: String) -> LastWord { LastWord(status: .badRequest, text: text) }

    /// What the parser found.
    static func lastWord(on error: HTTPParserError) -> LastWord {
        switch error {
        case .headerOverflow:
            LastWord(status: .requestHeaderFieldsTooLarge, text: "The head of the request is too large.")
        case .invalidVersion:
            LastWord(status: .httpVersionNotSupported, text: "Only HTTP/1.1 and HTTP/1.0 are spoken here.")
        default: bad("This is no HTTP request.")
        }
    }

    /// What the parser lets pass and is none all the same (RFC 9112, sections 3.2 and 6.1), or must not be taken in two
    /// ways by this server and a proxy before it.
    static func problem(with head: HTTPRequestHead, maxBodyBytes: Int) -> LastWord? {
        let hosts = head.headers["host"]
        guard hosts.count <= 1, hosts.count == 1 || head.version == .http1_0 else {
            return bad("A request has one Host.")
        }
        if let host = hosts.first, host.contains(where: { "/\\?#@, \t".contains($0) }) {
            return bad("Host is a name or address, with a port or without.")
        }
        guard
            head.uri.first == "/" || head.uri.hasPrefix("http://") || head.uri.hasPrefix("https://") || head.uri == "*"
        else { return bad("The request's target is a path.") }
        let lengths = head.headers["content-length"]
        let codings = head.headers["transfer-encoding"]
        if !codings.isEmpty {
            guard lengths.isEmpty, head.version != .http1_0 else {
                return bad("Transfer-Encoding goes with HTTP/1.1 and without Content-Length.")
            }
            guard codings.count == 1, codings[0].lowercased() == "chunked" else {
                return LastWord(status: .notImplemented, text: "Of Transfer-Encoding only chunked is understood.")
            }
        }
        guard lengths.count <= 1 else { return bad("A request has one Content-Length.") }
        if let length = lengths.first {
            guard let bytes = Int(length), bytes >= 0, length.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
                return bad("Content-Length is a number of bytes.")
            }
            guard bytes <= maxBodyBytes else { return tooLarge(maxBodyBytes) }
        }
        return nil
    }
}
