// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
package import HermesWire
import NIOCore

/// One viewer's connection: carries out the actions of ``LiveRoomConnection``, and writes its room's publications.
///
/// Owner: the connection's event loop.
package final class LiveRoomViewer: GatewayConnection, TopicSubscriber {
    package typealias Decoder = LiveRoomFrameDecoder

    package static let everyFrameIsLife = false
    /// A viewer's texts go to others, so the server reads them even if the viewer reads nothing.
    package static let pausesReadingWhenStuck = false

    private let connection: Connection
    private let gateway: LiveRoomGateway
    private let topics: TopicShard
    private var session: LiveRoomConnection
    /// The room's topic, cached because each frame needs it.
    private var topic: TopicName
    private var subscription: TopicSubscription?
    private var attachment: DeviceAttachment?
    private var access = ClientAccess()
    private var isServerStopping = false

    init(connection: Connection, gateway: LiveRoomGateway) {
        self.connection = connection
        self.gateway = gateway
        topics = connection.loop.topics
        session = LiveRoomConnection(rules: gateway.rules)
        topic = session.room.topic
    }

    // MARK: Room events

    package func deliver(_ delivery: Delivery, for subscription: TopicSubscription) {
        switch delivery.publication.kind {
        // A viewer that never sent *enter* does not know the server's types.
        case .room(.noticed) where !session.hasEntered, .room(.kicked) where !session.hasEntered:
            write(delivery, .liveRoomPlain, LiveRoomTranslation.plainFrame)
        // A viewer that has sent *enter* must not mistake another viewer's frame for a frame from the server.
        case .room(.application(let type)) where session.hasEntered && LiveRoomFrameType(rawValue: type).isServers:
            break
        case .plain, .room:
            write(delivery, .liveRoom, LiveRoomTranslation.frame)
        }
    }

    private func write(_ delivery: Delivery, _ slot: EncodingSlot, _ encode: (Publication) -> ByteBuffer) {
        let frame = delivery.encoded(slot, by: encode)
        guard frame.readableBytes > 0 else { return }
        connection.tally.messagesOut += 1
        connection.write(delivery.publication.dropClass, frame: frame)
    }

    // MARK: Connection events

    package func opened() {
        // If the listener or the topic rules require an account, the login deadline applies until the connection has
        // an account.
        guard !session.rules.requiresAccount, may(.subscribe, session.room) else { return }
        // No account is required, so there is no login to wait for.
        connection.authenticated()
        perform(session.accepted())
    }

    package func received(_ frame: LiveRoomFrame) {
        connection.charge(.parts(frame.partCount))
        perform(session.frameReceived(frame), frame: frame)
    }

    package func farewell(_ reason: CloseReason) {
        if case .shuttingDown = reason { isServerStopping = true }
        guard let kick = LiveRoomTranslation.kick(for: reason) else {
            lose()
            return
        }
        guard case .kick(let kick, let departure) = session.removalDecided(kick) else { return }
        depart(departure)
        tell(kick)
    }

    /// Sends the viewer the reason why it is removed, if the viewer knows the frame type for the reason.
    private func tell(_ kick: RoomRemoval) {
        guard session.hasEntered else { return }
        connection.write { try LiveRoomTranslation.write(kick, into: &$0) }
    }

    package func closed() {
        lose()
        detach()
    }

    /// Ends the visit of a lost viewer, to which nothing can be sent.
    private func lose() {
        if case .leave(let departure) = session.viewerLost() { depart(departure) }
    }

    /// Does nothing, because LiveRoom carries no inbox. A viewer is not a device of the account, so no entries wait for
    /// it.
    package func inboxAdvanced(_ entries: [InboxEntry]) {}

    package func removed(by expulsion: RoomExpulsion) -> Bool {
        guard expulsion.means(session.principal?.user), subscription != nil, topic == expulsion.room.topic else {
            return false
        }
        perform(session.removalDecided(.byOperator))
        return true
    }

    package func accessChanged() {
        access.forget()
        guard subscription != nil, !may(.subscribe, session.room) else { return }
        perform(session.removalDecided(.forbidden(session.room)))
    }

    /// Whether the viewer may perform an action in a room, by the rules in force.
    private func may(_ action: TopicAction, _ room: RoomName) -> Bool {
        let principal = session.principal
        return access.may(
            action,
            room,
            principal.map { ClientIdentity($0) } ?? ClientIdentity(clientID: ""),
            by: gateway.environment.access
        )
    }

    // MARK: Actions

    private func perform(_ action: LiveRoomConnection.Action, frame: LiveRoomFrame? = nil) {
        switch action {
        case .ignore(let reason):
            gateway.metrics.ignored(reason)
        case .live:
            connection.touch()
        case .enter(let room):
            enter(room)
        case .publish:
            // If the other viewers did not get the join, they do not get the leave either.
            let isJoin = frame?.type == .join
            guard may(.publish, session.room) else {
                if isJoin { session.joinRefused() }
                return gateway.metrics.ignored(.forbidden)
            }
            guard !isJoin || connection.tellsArrival(in: topic) else {
                session.joinRefused()
                return gateway.metrics.ignored(.crowded)
            }
            if let frame { publish(frame) }
        case .checkToken(let entry):
            check(entry)
        case .move(let departure, let room):
            if let departure { depart(departure) }
            guard may(.subscribe, room) else {
                return perform(session.removalDecided(.forbidden(room)))
            }
            connection.authenticated()
            if subscription == nil { enter(room) }
        case .leave(let departure):
            depart(departure.map { $0.said(if: may(.publish, $0.room) && isTold($0)) })
            connection.end(.finished)
        case .kick(let kick, let departure):
            depart(departure)
            tell(kick)
            connection.end(.finished)
        }
    }

    /// Whether the other viewers get a leave. A leave without a join is charged as an arrival.
    private func isTold(_ departure: LiveRoomDeparture) -> Bool {
        guard !departure.isOfJoin, departure.announcement != nil else { return true }
        guard connection.tellsArrival(in: departure.room.topic) else {
            gateway.metrics.ignored(.crowded)
            return false
        }
        return true
    }

    private func enter(_ room: RoomName) {
        topic = room.topic
        subscription = topics.subscribe(self, to: topic)
    }

    private func publish(_ frame: LiveRoomFrame) {
        connection.tally.messagesIn += 1
        let publication = LiveRoomTranslation.publication(of: frame, to: topic, sender: session.principal?.user)
        let outcome = topics.publish(publication)
        connection.keepPace(with: outcome)
        connection.charge(.viewers(outcome.localCount))
    }

    /// Announces a departure. The viewer's subscription ends first, so that the viewer does not get the announcement.
    private func depart(_ departure: LiveRoomDeparture?) {
        if let subscription { topics.unsubscribe(subscription) }
        subscription = nil
        // When the server stops, the work to announce each leave to all viewers would grow with the square of the
        // room's size.
        guard let departure, let announcement = departure.announcement, !isServerStopping else { return }
        let leave = Publication(.left, announcement, to: departure.room.topic, sender: session.principal?.user)
        let outcome = topics.publish(leave)
        // The connection may continue, because the viewer may only be changing rooms.
        connection.keepPace(with: outcome)
        connection.chargeInTheEnd(.viewers(outcome.localCount))
    }

    // MARK: Accounts

    private func check(_ entry: LiveRoomEntry) {
        let accounts = gateway.environment.messenger.accounts
        let device = entry.device
        let address = connection.remoteHost
        connection.charge(.login)
        connection.asksToAttach()
        connection.ask { () async throws(HermesError) -> Principal in
            try await accounts.admit(.tokenOfAnyDevice(entry.token), device: device, address: address)
                .principal(on: device)
        } then: { [self] result in
            switch result {
            case .success(let principal):
                guard gateway.environment.messenger.devices.mayWatch(principal, limit: accounts.maxDevices) else {
                    let refusal = HermesError(
                        .deviceLimitReached,
                        "the account already has the most viewers allowed (\(accounts.maxDevices)); close one first"
                    )
                    return perform(session.entryRefused(LiveRoomTranslation.kick(for: refusal)))
                }
                let action = session.entryAccepted(principal)
                access.forget()
                if session.principal != nil { attach(principal) }
                perform(action)
            case .failure(let error):
                connection.loginFailed(error.code, client: device.rawValue)
                perform(session.entryRefused(LiveRoomTranslation.kick(for: error)))
            }
        }
    }

    private func attach(_ principal: Principal) {
        detach()
        connection.authenticated()
        connection.account = principal.user
        let attachment = DeviceAttachment(principal: principal, connection: connection, takesEvents: false)
        self.attachment = attachment
        let devices = gateway.environment.messenger.devices
        connection.chargeInTheEnd(.watchers(devices.attach(attachment, by: connection.address)))
    }

    private func detach() {
        guard let attachment else { return }
        self.attachment = nil
        connection.leaves(attachment, gateway.environment.messenger.devices)
    }
}

@available(*, unavailable)
extension LiveRoomViewer: Sendable {}
