// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
import HermesWire

/// Ephemeral events, which are never stored: typing, presence, signals.
extension NativeConnection {
    func typing(_ request: Hermes_V1_Typing, id: UInt64, from sender: Sender) {
        guard let conversation = conversation(request.conversation, id: id, from: sender) else { return }
        let user = sender.principal.user
        // The limit on typing events is checked before anything is read from the store.
        let now = messenger.time.now()
        guard messenger.typing.admits(conversation, by: user, isStopped: request.stopped, now: now) else {
            return succeed(id)
        }
        let event = EphemeralEvent.typing(conversation, by: user, stopped: request.stopped)
        switch conversation {
        case .direct:
            guard let peer = conversation.peer(of: user) else { return succeed(id) }
            let messenger = messenger
            connection.ask { () async throws(HermesError) in
                try await messenger.tell(peer, event, from: user)
            } then: { [self] result in
                switch result {
                case .failure(let error):
                    messenger.typing.forget(conversation, by: user)
                    fail(id, error)
                // The answer does not say whether anybody got the event, because that would reveal a block.
                case .success(let reached):
                    connection.chargeForEvent(toldTo: reached)
                    succeed(id)
                }
            }
        case .group(let group):
            let groups = messenger.groups
            connection.ask { () async throws(HermesError) in
                try await groups.listeners(in: group, to: user)
            } then: { [self] result in
                switch result {
                case .failure(let error):
                    messenger.typing.forget(conversation, by: user)
                    fail(id, error)
                case .success(let others):
                    connection.charge(.listeners(others.count))
                    let reached = others.reduce(0) { $0 + messenger.devices.notify($1, event) }
                    connection.chargeForEvent(toldTo: reached, of: others.count)
                    succeed(id)
                }
            }
        }
    }

    func presence(_ request: Hermes_V1_PresenceRequest, id: UInt64, from sender: Sender) {
        let asked = request.watchUids
        guard asked.count <= 1_000, request.unwatchUids.count <= 1_000 else {
            return fail(id, HermesError(.tooLarge, "name at most 1,000 uids"))
        }
        // A uid that no account can have is shown as offline, like the uid of an unknown account.
        let watched = asked.compactMap { UserID($0) }
        let unwatched = request.unwatchUids.compactMap { UserID($0) }
        connection.charge(.watched(asked.count + request.unwatchUids.count))
        let devices = messenger.devices
        if request.hasAppState {
            switch request.appState {
            case .background, .suspended: devices.setResting(true, sender.link.attachment)
            case .foreground: devices.setResting(false, sender.link.attachment)
            case .unspecified, .UNRECOGNIZED: break
            }
        }
        let attachment = sender.link.attachment
        if !unwatched.isEmpty {
            devices.unwatch(unwatched, by: attachment)
            connection.watches(devices.watchedCount(by: attachment))
        }
        guard !asked.isEmpty else { return succeed(id, .presence(Hermes_V1_PresenceList())) }
        let contacts = messenger.contacts
        connection.ask { () async throws(HermesError) in
            try await contacts.watch(watched, by: attachment)
        } then: { [self] result in
            connection.watches(devices.watchedCount(by: attachment))
            switch result {
            case .failure(let error): fail(id, error)
            case .success(let online):
                var list = Hermes_V1_PresenceList()
                list.presences = asked.map { uid in
                    var presence = Hermes_V1_Presence()
                    presence.uid = uid
                    presence.isOnline = UserID(uid).map { online.contains($0) } ?? false
                    return presence
                }
                succeed(id, .presence(list))
            }
        }
    }

    /// The largest size of the reason for a signal's end, in bytes.
    private static let maxSignalReason = 256
    /// The largest size of a signal's data, in bytes.
    private static let maxSignalData = 16_384
    /// The largest size of a whole signal, in bytes.
    private static let maxSignalBytes = maxSignalData + 1_024

    func signal(_ request: Hermes_V1_Signal, id: UInt64, from sender: Sender) {
        guard request.signal != nil else {
            return fail(id, HermesError(.invalidArgument, "a signal needs one of address, data and end"))
        }
        // A uid that no account can have gets the same answer as the uid of a stranger.
        guard let peer = UserID(request.toUid) else { return fail(id, Messenger.notAContact) }
        guard (1...64).contains(request.sessionID.utf8.count) else {
            let code: HermesError.Code = request.sessionID.isEmpty ? .invalidArgument : .tooLarge
            return fail(id, HermesError(code, "session_id is 1 to 64 bytes"))
        }
        if case .data(let data) = request.signal, data.count > Self.maxSignalData {
            return fail(id, HermesError(.tooLarge, "a signal's data is at most 16 KiB"))
        }
        if case .end(let end) = request.signal, end.reason.utf8.count > Self.maxSignalReason {
            return fail(id, HermesError(.tooLarge, "the reason for a signal's end is at most 256 bytes"))
        }
        let payload: [UInt8]
        do {
            let given: [UInt8] = try request.wireBytes()
            // This check also limits the fields of newer versions.
            guard given.count <= Self.maxSignalBytes else {
                return fail(id, HermesError(.tooLarge, "a signal is at most 17 KiB"))
            }
            if case .address(var address) = request.signal {
                var passedOn = request
                let hosts = DirectAddress(
                    local: address.localHost,
                    reported: address.observedHost,
                    observed: connection.remoteHost
                )
                address.localHost = hosts.localHost
                address.observedHost = hosts.observedHost
                address.seenByServer = hosts.isSeenByServer
                passedOn.address = address
                payload = try passedOn.wireBytes()
            } else {
                payload = given
            }
        } catch {
            return fail(id, HermesError(.invalidArgument, "the signal cannot be passed on", cause: error))
        }
        connection.charge(.bytes(payload.count))
        let principal = sender.principal
        let event = EphemeralEvent.signal(from: principal.user, device: principal.device, payload: payload)
        let messenger = messenger
        connection.ask { () async throws(HermesError) in
            try await messenger.tellContact(peer, event, from: principal.user)
        } then: { [self] result in
            switch result {
            case .failure(let error): fail(id, error)
            case .success(0): fail(id, HermesError(.notFound, "the user is not connected"))
            case .success(let devices):
                connection.chargeForEvent(toldTo: devices, bytes: payload.count)
                succeed(id)
            }
        }
    }

    package func ephemeralArrived(_ event: EphemeralEvent) {
        guard let user, let ephemeral = NativeTranslation.ephemeral(event, reader: user)
        else {
            return
        }
        var packet = Hermes_V1_Packet()
        packet.ephemeral = ephemeral
        // If the client does not keep up, this packet may be dropped, because it is useful only at this moment.
        write(packet, .presence)
    }
}
