// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore

/// The events of a connection, except for its frames. All calls are on the connection's event loop.
package protocol ConnectionEvents: AnyObject {
    /// Called when the connection is ready.
    func opened()

    /// Called before the connection is closed. Writes the protocol's last packet, if the protocol has one. The output
    /// is still flushed.
    func farewell(_ reason: CloseReason)

    /// Called last, when the connection is closed. Detaches and releases everything.
    func closed()

    /// Called when the queue is empty again, so that writes no longer have to wait.
    func becameWritable()

    /// Called when the operating system has taken everything that was written before ``Connection/reportWritten(_:)``.
    func written(_ mark: UInt64)

    /// Called when entries were committed to the inbox of this connection's user.
    func inboxAdvanced(_ entries: [InboxEntry])

    /// Called with an ephemeral event for this connection.
    func ephemeralArrived(_ event: EphemeralEvent)

    /// Called when a message that ``Connection/send(_:from:correlation:messages:)`` sent is committed or has failed.
    func sent(_ correlation: UInt64, _ result: Result<SendReceipt, HermesError>)

    /// Called when the topic rules were replaced, or when the account has a new name. Nothing that was derived from
    /// the earlier rules or the earlier name may be used any more. An MQTT connection ends when its account is
    /// renamed. There is no default implementation, because each protocol has rules to apply.
    func accessChanged()

    /// Called at the time that ``Connection/wake(in:)`` requested.
    func woken()

    /// Returns the code of the WebSocket close frame (RFC 6455, section 7.4.1) for a connection that the server ends.
    func webSocketCode(for reason: CloseReason) -> UInt16

    /// Removes the client from a room, if an operator removes the client's user or everybody from the room.
    ///
    /// - Returns: whether the removal is meant for this connection and the connection was in that room.
    func removed(by expulsion: RoomExpulsion) -> Bool

    /// The client as operators see it; nil if there is no client yet, or if the protocol's clients are not shown to
    /// operators.
    var operated: (any OperatedClient)? { get }
}

extension ConnectionEvents {
    package func opened() {}
    package func farewell(_ reason: CloseReason) {}
    package func closed() {}
    package func becameWritable() {}
    package func written(_ mark: UInt64) {}
    package func inboxAdvanced(_ entries: [InboxEntry]) {}
    package func ephemeralArrived(_ event: EphemeralEvent) {}
    package func sent(_ correlation: UInt64, _ result: Result<SendReceipt, HermesError>) {}
    package func woken() {}
    package func webSocketCode(for reason: CloseReason) -> UInt16 { reason.webSocketCode }
    package func removed(by expulsion: RoomExpulsion) -> Bool { false }
    package var operated: (any OperatedClient)? { nil }
}
