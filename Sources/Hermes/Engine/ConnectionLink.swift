// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesWire
package import NIOCore

/// A protocol's part of the connection engine: its frames, its login, and the handling of incoming frames.
///
/// A link is a value in a `ConnectionDriver` and does no I/O. It fills `effects`, and the driver carries out the
/// effects in order.
package protocol ConnectionLink: Sendable {
    /// Cuts incoming bytes into frames.
    associatedtype Decoder: FrameDecoder
    /// A request to the server.
    associatedtype Request: Sendable
    /// The answer to a request.
    associatedtype Answer: Sendable
    /// An event for the app.
    associatedtype Event: Sendable
    /// The result of a login.
    associatedtype Login: Sendable

    typealias Effects = [LinkEffect<Self>]

    /// The longest frame accepted from the server, in bytes.
    var maxFrameBytes: Int { get }

    /// Creates the decoder of a new connection.
    func makeDecoder() -> Decoder

    /// Handles a new, open connection: drops the state of the last connection and logs in. `.authenticated` or
    /// `.refused` must follow, from this method or from `received`. A thrown error means that the login cannot be
    /// written. This error is final.
    mutating func connected(effects: inout Effects) throws

    /// Handles a frame that arrived.
    mutating func received(_ frame: Decoder.Frame, now: NIODeadline, effects: inout Effects) throws

    /// Appends a request. The id of an app's request is at least 16, is unique among the unanswered requests, and is
    /// repeated in `.answer`. A request of the link itself has the id of its `.send`. If no answer is awaited, the id
    /// is 0.
    mutating func write(_ request: Request, id: UInt64, into buffer: inout ByteBuffer) throws

    /// Handles a request of the link itself that could not be written, for example because it is longer than the server
    /// accepts. Not called for a login, because such an error ends the login.
    mutating func sendFailed(_ request: Request, error: HermesClientError, effects: inout Effects)

    /// Appends a heartbeat.
    mutating func writeHeartbeat(into buffer: inout ByteBuffer) throws

    /// Handles a successful login. The packets that the link sends in this call precede the waiting requests.
    mutating func becameLive(now: NIODeadline, effects: inout Effects)

    /// Handles the loss of the connection.
    mutating func lost()

    /// Handles the stop: there will be no further connection unless the app asks for one.
    func stopped()

    /// Notes the reason why a logged-in connection ended, and the network from which the client had logged in.
    mutating func connectionEnded(_ end: ConnectionEnd, in network: NetworkPath)

    /// Notes the device's network and the heartbeat learned for it. Called when either changes.
    mutating func networkKnown(_ network: NetworkPath, heartbeat: LearnedHeartbeat)

    /// Notes the app's state. Called before the first connection and at each change. The link may send only if
    /// `isLive` is true.
    mutating func appStateKnown(_ state: DeviceConditions.AppState, isLive: Bool, effects: inout Effects)

    /// Whether a request of the app is sent at once even while other requests are sent one at a time; see
    /// `RequestTable.blame`.
    static func isUrgent(_ request: Request) -> Bool

    /// Returns the answer to a request that was sent again after the loss of a connection, if the server refuses it
    /// only because it has carried out the first try; otherwise nil.
    static func answer(toRepeated request: Request, refusedWith error: HermesClientError) -> Answer?

    /// Notes that a request was abandoned before its answer. Nothing waits for the answer any more.
    mutating func abandoned(id: UInt64)

    /// Handles the server's refusal of a frame for its length. If the link itself would send this frame again over
    /// later connections, the link abandons the frame. The connection is ending.
    ///
    /// - Parameter bytes: the length of the longest unanswered request that was written in one piece to the present
    ///   connection; 0 if there is none. A shorter frame is not the cause.
    mutating func refusedForLength(atLeast bytes: Int, effects: inout Effects)

    /// Sends the data that the link held back, because the client is about to close the connection.
    mutating func closing(effects: inout Effects)

    /// Appends the last bytes of a connection that the client closes.
    func writeFarewell(into buffer: inout ByteBuffer) throws

    /// Whether the app has seen the event under another number. If so, the event is skipped: the app does not get it
    /// again.
    func isRepeat(_ event: Event) -> Bool

    /// Whether the next start delivers the event again if the app has closed the client without taking it. If not, the
    /// event is delivered at most once.
    func comesAgain(_ event: Event) -> Bool

    /// Notes that the app has taken an event: it has asked for the next one.
    mutating func taken(_ event: Event, now: NIODeadline, effects: inout Effects)

    /// Notes that an event was skipped. The app need not have taken the events before it.
    mutating func skipped(_ event: Event, now: NIODeadline, effects: inout Effects)

    /// Returns an estimate of the memory that a waiting event takes, in bytes.
    func bytes(of event: Event) -> Int

    /// Notes the number and the size in bytes of the events that wait for the app. Called at each change.
    mutating func backlogChanged(_ count: Int, bytes: Int)

    /// The time at which the driver must call `deadlineReached`; nil if there is none.
    var nextDeadline: NIODeadline? { get }

    /// Carries out the work that is scheduled for `now` or earlier.
    mutating func deadlineReached(now: NIODeadline, effects: inout Effects)
}

extension ConnectionLink {
    package func makeDecoder() -> Decoder { Decoder(maxFrameBytes: maxFrameBytes) }
    package mutating func sendFailed(_ request: Request, error: HermesClientError, effects: inout Effects) {}
    package mutating func becameLive(now: NIODeadline, effects: inout Effects) {}
    package mutating func lost() {}
    package func stopped() {}
    package mutating func connectionEnded(_ end: ConnectionEnd, in network: NetworkPath) {}
    package mutating func networkKnown(_ network: NetworkPath, heartbeat: LearnedHeartbeat) {}
    package mutating func appStateKnown(_ state: DeviceConditions.AppState, isLive: Bool, effects: inout Effects) {}
    package static func isUrgent(_ request: Request) -> Bool { false }
    package static func answer(toRepeated request: Request, refusedWith error: HermesClientError) -> Answer? { nil }
    package mutating func abandoned(id: UInt64) {}
    package mutating func refusedForLength(atLeast bytes: Int, effects: inout Effects) {}
    package mutating func closing(effects: inout Effects) {}
    package func writeFarewell(into buffer: inout ByteBuffer) throws {}
    package func isRepeat(_ event: Event) -> Bool { false }
    package func comesAgain(_ event: Event) -> Bool { true }
    package mutating func taken(_ event: Event, now: NIODeadline, effects: inout Effects) {}
    package mutating func skipped(_ event: Event, now: NIODeadline, effects: inout Effects) {}
    package func bytes(of event: Event) -> Int { 0 }
    package mutating func backlogChanged(_ count: Int, bytes: Int) {}
    package var nextDeadline: NIODeadline? { nil }
    package mutating func deadlineReached(now: NIODeadline, effects: inout Effects) {}
}

/// The limits on the events that wait for the app.
package enum Backlog {
    /// Above this number of bytes, the client drops new events that are ephemeral or can be fetched again.
    package static let maxBytes = 64 * 1_048_576
    /// Above this number of events, new ephemeral events are dropped.
    package static let maxEphemeral = 8192
    /// Above this number of bytes, new ephemeral events are dropped.
    static let maxEphemeralBytes = 16 * 1_048_576
    /// Above this number of events, inbox entries are dropped too, and requested again later.
    package static let maxEvents = 16_384
}

/// An instruction from a link to its driver.
package enum LinkEffect<Link: ConnectionLink>: Sendable {
    /// The login succeeded. The server may limit the heartbeat interval and suggest an interval for the network.
    case authenticated(Link.Login, heartbeatAtMost: Duration? = nil, heartbeatPrior: Duration? = nil)
    /// The login failed. The failure is final unless the error has a `retryAfter`.
    case refused(HermesClientError)
    /// A request was answered.
    case answer(id: UInt64, Result<Link.Answer, HermesClientError>)
    /// Send this request. An id other than 0 means that the link awaits the answer. The id must differ from the ids of
    /// the app's requests, which count up from 16.
    case send(Link.Request, id: UInt64 = 0)
    /// Hand this event to the app.
    case event(Link.Event)
    /// Drop all waiting events, because they belong to another account.
    case forgetEvents
    /// The server is ending the connection, perhaps because a request broke the protocol.
    case kicked(
        HermesClientError,
        mayReturn: Bool,
        advice: ConnectionEngine.StateMachine.Advice?,
        isBreach: Bool = false
    )
    /// The server will end the connection soon.
    case shutdownAnnounced(ConnectionEngine.StateMachine.Advice)
    /// The server asks for a new connection.
    case reconnectAdvised(ConnectionEngine.StateMachine.Advice)
}
