// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A message that a node publishes. A lost message causes a gap in the numbers of the link. For each case, "Lost:" says
/// how the receiver repairs the loss.
package enum ClusterMessage: Sendable {
    /// Entries that were committed to inboxes, in ascending order for each user. Lost: the receiver reads the heads of
    /// the inboxes.
    case entries([UserID: [InboxEntry]])
    /// These places belong to other connections now. Lost: the receiver reads the places.
    case taken([DevicePlace])
    /// Accounts came online or went offline. Lost: the receiver reads from the shared stores which accounts are online.
    case presence([PresenceChange])
    /// An account's connections end. The sending node numbers these messages. Lost: the receiver asks that node for the
    /// ``AccountEnd``s that did not arrive.
    case ended(AccountEnd, number: UInt64)
    /// A device got a push token. The sending node numbers these messages. Lost: the receiver asks that node for the
    /// devices that it does not know.
    case token(DeviceKey, number: UInt64)
    /// Entries that the receiver hands off to push services. Lost: the receiver reads which users have entries to push.
    case handOff([HandOffDue])
    /// The numbers of subscribers of these filters have changed. The sending node numbers these messages. Lost: the
    /// receiver asks that node for all its subscribers.
    case topics([TopicInterest], number: UInt64)
    /// Retained publications of these topics were stored or removed. Lost: the receiver reads all retained
    /// publications.
    case retained(ChangedNames<TopicName>)
    /// Kept sessions were opened, closed or removed, or have other subscriptions. Lost: the receiver reads all
    /// sessions.
    case sessions(ChangedNames<DurableSessionID>)
    /// Publications were queued for kept sessions that the receiver has open. The values are the new heads of the
    /// sessions' queues. Lost: the receiver reads all sessions.
    case queued([DurableSessionID: UInt64])
    /// An administrator was removed, or has other rights, another password or another second factor. Lost: the receiver
    /// reads all administrators who have sessions.
    case administrator(AdministratorName)
}

/// A message that may be lost.
package enum ClusterHint: Sendable {
    /// An event for the connected devices of a user.
    case ephemeral(UserID, EphemeralEvent)
    /// Publications of one event loop for the receiving node's subscribers. Each loop numbers them separately for each
    /// node. Publications that arrive late are dropped.
    case publications([NodePublication], loop: Int, number: UInt64)
    /// Webhooks were stored, and the receiver posts them. Lost: the receiver finds them within a minute.
    case webhooksStored
    /// A failed login, or the creation of an account. It counts against the limits. Lost: it counts only on the sending
    /// node. Repeated: it counts twice.
    case attempt(AccountService.CountedAttempt)
    /// A failed login to the console. It counts against the limits. Lost: it counts only on the sending node. Repeated:
    /// it counts twice.
    case administratorFailed(LoginThrottle.Charge)
    /// The node's figures for `$SYS`. Lost: the node's earlier figures still count.
    case figures(BrokerFigures)
    /// A client's report about its connections and deliveries. Lost: it counts only on the sending node. Repeated: it
    /// counts twice.
    case report(ClientStatistics.Received)
    /// A client has a connection and a session that is not stored. The client's earlier connection ends. Lost: the
    /// earlier connection stays.
    case attached(DurableSessions.AttachedClient)
}

package enum ClusterQuestion: Sendable, Hashable {
    /// The node's ``AccountEnd``s after a number; nil if only the number of the node's last ``AccountEnd`` is asked
    /// for.
    case ends(after: UInt64?)
    /// The devices that got a push token after a number; nil if only the number of the last token is asked for.
    case tokens(after: UInt64?)
    /// The node's subscribers, by filter.
    case topics
    /// The number of the node's subscribers of a topic.
    case subscriberCount(TopicName)
    /// The numbers of the node's subscribers of all topics that begin with a given text.
    case subscriberCounts(String)
    /// Removes the node's connections from a room.
    case remove(RoomExpulsion)
    /// The devices of a user that are connected to the node.
    case devices(of: UserID)
    /// Reads a kept session from the record.
    case session(DurableSessionID)
    /// Publishes with the topic's next number.
    case publish(NumberedPublication)
}

package enum ClusterAnswer: Sendable {
    /// The ``AccountEnd``s up to a number; nil if the node has forgotten some of them.
    case ends([AccountEnd]?, upTo: UInt64)
    /// The devices up to a number; nil if the node has forgotten some of them.
    case tokens([DeviceKey]?, upTo: UInt64)
    /// All subscribers of the node, as of the message with this number.
    case topics([TopicInterest], upTo: UInt64)
    case subscriberCount(Int)
    case subscriberCounts([TopicName: Int])
    /// The number of connections that were removed from the room.
    case removed(Int)
    case devices([DeviceID])
    /// The session was read.
    case session
    /// Whether the publication is retained, or the error that prevented the publication; nil if it was published and
    /// retaining was not requested.
    case published(Result<Bool?, HermesError>)
}

/// A change of an account. It ends the account's connections, gives the connections another name, or hides the account
/// from another account.
package enum AccountEnd: Sendable, Hashable {
    case devices(UserID, AttachmentEnd, EndedDevices)
    /// Connections that are logged in and have no inbox (``AccountService/EndOfTopicClients``).
    case topicClients(UserID, name: String?, AttachmentEnd, EndedDevices)
    case renamed(UserID, NickName)
    /// The second account does not see the first account's presence any more.
    case hidden(UserID, from: UserID)

    /// The form of this value for other nodes. The spared login is not on those nodes, and its number may belong to
    /// another login there.
    var elsewhere: AccountEnd {
        switch self {
        case .devices(let user, let reason, .allBut): .devices(user, reason, .all)
        case .devices(let user, let reason, .onlyBut(let device, _)): .devices(user, reason, .only(device))
        case .topicClients(let user, let name, let reason, .allBut): .topicClients(user, name: name, reason, .all)
        case .topicClients(let user, let name, let reason, .onlyBut(let device, _)):
            .topicClients(user, name: name, reason, .only(device))
        case .devices, .topicClients, .renamed, .hidden: self
        }
    }
}
