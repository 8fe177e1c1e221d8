// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
package import HermesWire
import Metrics
import NIOCore

/// One device's connection: carries out the actions of ``QSIOPConnection``, and pushes the entries of the device's
/// inbox.
///
/// Owner: the connection's event loop.
package final class QSIOPDevice: GatewayConnection, TopicSubscriber {
    package typealias Decoder = QSIOPFrameDecoder

    /// The largest number of pushes that may be unacknowledged. Each push can fill a frame, and all of them together
    /// must fit into a connection's outbound queue. A device that never acknowledges gets no further pushes.
    static let window = 8

    private let connection: Connection
    private let gateway: QSIOPGateway
    private var session: QSIOPConnection
    private var inbox: InboxLink?
    /// The subscription to the application's operations for this device; nil before the login and after the end.
    private var subscription: TopicSubscription?
    private var access = ClientAccess()

    init(connection: Connection, gateway: QSIOPGateway) {
        self.connection = connection
        self.gateway = gateway
        session = QSIOPConnection(rules: gateway.rules)
    }

    // MARK: Connection events

    package func received(_ frame: QSIOPFrame) {
        connection.charge(.parts(frame.lineCount))
        perform(session.frameReceived(frame))
        connection.sessionHolds(session.waitingBytes)
    }

    package func farewell(_ reason: CloseReason) {
        // The inbox is closed at once, because a client can delay the close of its connection.
        defer { closeInbox() }
        unsubscribe()
        guard let answer = QSIOPTranslation.answer(for: reason) else {
            _ = session.connectionClosed()
            return
        }
        guard case .close(let answer?) = session.removalDecided(answer) else { return }
        respond(answer)
    }

    package func closed() {
        _ = session.connectionClosed()
        unsubscribe()
        closeInbox()
    }

    private func closeInbox() {
        inbox?.close()
        inbox = nil
    }

    package func inboxAdvanced(_ entries: [InboxEntry]) { inbox?.advanced(entries) }
    package func becameWritable() { inbox?.becameWritable() }
    package func accessChanged() { access.forget() }

    // MARK: Actions

    private func perform(_ action: QSIOPConnection.Action) {
        switch action {
        case .ignore:
            break
        case .pong:
            connection.write { try QSIOPFrame(.pong).write(into: &$0) }
        case .respond(let answer):
            respond(answer)
        case .acknowledge(let answer, let seq):
            respond(answer)
            inbox?.acknowledged(upTo: seq)
        case .check(let report):
            check(report)
        case .bind(_, let answer):
            respond(answer)
        case .refuse(let answer):
            respond(answer)
            takeWaiting()
        case .publish(let operation, let payload):
            publish(operation, payload)
        case .published(let answer):
            respond(answer)
            takeWaiting()
        case .close(let answer):
            if let answer { respond(answer) }
            connection.end(.finished)
        }
    }

    private func respond(_ answer: QSIOPAnswer) {
        connection.write { try QSIOPTranslation.frame(answer).write(into: &$0) }
    }

    /// Handles the requests that waited for the answer to an earlier request.
    private func takeWaiting() {
        while let frame = session.waitingTaken() { perform(session.frameReceived(frame)) }
        connection.sessionHolds(session.waitingBytes)
    }

    // MARK: Accounts

    /// Checks a report without `Connection.ask`, which would delay pings.
    private func check(_ report: QSIOPReport) {
        connection.charge(.login)
        connection.asksToAttach()
        let accounts = gateway.environment.messenger.accounts
        let loop = connection.loop
        let address = connection.remoteHost
        let device = loop.bound(self)
        // This needs a task, because the event loop cannot wait. The connection has at most one such task, because it
        // has at most one report that is being checked.
        Task {
            let result: Result<Login, HermesError>
            do throws(HermesError) {
                result = .success(try await QSIOPTranslation.logIn(report, address: address, by: accounts))
            } catch {
                result = .failure(error)
            }
            loop.post(.run { device.value.checked(result, report) })
        }
    }

    private func checked(_ result: Result<Login, HermesError>, _ report: QSIOPReport) {
        switch result {
        case .success(let login):
            let action = session.reportAccepted(login.principal)
            perform(action)
            guard case .bind(let principal, _) = action else { return }
            openInbox(of: principal, login)
            takeWaiting()
        case .failure(let error):
            connection.loginFailed(error.code, user: report.user?.description, client: report.device.rawValue)
            perform(session.reportRefused(QSIOPTranslation.answer(for: error)))
        }
    }

    // MARK: The application's operations

    private func publish(_ operation: QSIOPOperation, _ payload: ByteBuffer) {
        guard case .bound(let principal) = session.state else { return }
        guard let topics = QSIOPApplication.topics(of: principal),
            let topic = TopicName("\(topics)/\(operation.rawValue)")
        else {
            return respond(
                QSIOPAnswer(.invalidArgument, "an op from 16 on needs a device id without '/', '+' and '#'")
            )
        }
        guard access.allows(.publish, topic, ClientIdentity(principal), by: gateway.environment.access) else {
            return respond(QSIOPAnswer(.forbidden, "the rules do not let this device publish to \(topic.rawValue)"))
        }
        let publication = Publication(
            topic: topic,
            payload: payload,
            kind: Publication.plainKind,
            sender: principal.user,
            qos: .atLeastOnce,
            details: PublicationDetails(payloadIsUTF8: true, contentType: "application/json")
        )
        let messenger = gateway.environment.messenger
        let isHeard = connection.publish(publication, by: principal, through: messenger) { [self] result in
            switch result {
            case .success: perform(session.published(.done))
            case .failure(let error): perform(session.published(QSIOPTranslation.answer(for: error)))
            }
        }
        switch isHeard {
        case true?: respond(.done)
        case false?: respond(.nobody)
        case nil: session.storing()
        }
    }

    private func subscribe(as principal: Principal) {
        guard let topics = QSIOPApplication.topics(of: principal), let filter = TopicFilter("\(topics)/down/+") else {
            return
        }
        subscription = connection.loop.topics.subscribe(self, to: filter, options: SubscriptionOptions())
    }

    private func unsubscribe() {
        guard let subscription else { return }
        self.subscription = nil
        connection.loop.topics.unsubscribe(subscription)
    }

    package func deliver(_ delivery: Delivery, for subscription: TopicSubscription) {
        guard case .bound(let principal) = session.state else { return }
        let topic = delivery.publication.topic
        guard access.allows(.subscribe, topic, ClientIdentity(principal), by: gateway.environment.access) else {
            return
        }
        let frame = delivery.encoded(.qsiop, by: QSIOPApplication.frame)
        guard frame.readableBytes > 0 else { return gateway.refusedPayloads.increment() }
        connection.tally.messagesOut += 1
        connection.write(delivery.publication.dropClass, frame: frame)
    }

    // MARK: The inbox

    private func openInbox(of principal: Principal, _ login: Login) {
        connection.authenticated()
        // Without a token, anybody can claim to be the account. In that case only the client's address is charged.
        if principal.isProven { connection.account = principal.user }
        let inbox = InboxLink(
            principal: principal,
            connection: connection,
            messenger: gateway.environment.messenger,
            window: Self.window,
            write: { [unowned self] entry in push(entry, to: principal) }
        )
        self.inbox = inbox
        subscribe(as: principal)
        inbox.open(after: login.device.cursor, head: login.position.head)
    }

    private func push(_ entry: InboxEntry, to reader: Principal) {
        if let push = QSIOPTranslation.push(for: entry, reader: reader) {
            session.pushed(entry.lastSeq, id: push.id)
            connection.write { try push.frame.write(into: &$0) }
        } else if let seq = session.skipped(entry.lastSeq) {
            inbox?.acknowledged(upTo: seq)
        }
    }
}

@available(*, unavailable)
extension QSIOPDevice: Sendable {}
