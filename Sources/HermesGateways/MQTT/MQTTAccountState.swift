// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// The further state of a client with an account. Owner: the connection's event loop.
final class MQTTAccountState {
    /// The proof with which the device is registered later; nil if a login of the native protocol has already
    /// registered it.
    let admission: Admission?
    let device: DeviceDescription
    /// Whether the server assigned the client id. Such a client is not a device, because nobody can connect with this
    /// id again.
    let isIDAssigned: Bool
    /// The login of the client's device; nil while the account does not have the device. The device is registered when
    /// the client first asks for the inbox.
    var login: Login?
    /// The client's side of the native protocol; nil until the client uses it.
    var inbox: MQTTInbox?
    /// The largest number of publications of QoS 1 and 2 that the client accepts before it has acknowledged them.
    var receiveMaximum = Int(UInt16.max)
    /// The part of ``receiveMaximum`` that only the inbox can use. It is the part that `mqtt.maxInflight` leaves
    /// over, but at least one slot if there are two, so that other publications cannot block the inbox.
    var ownSlots = 0
    /// The subscriptions that ask for the inbox. A subscription that has ended stays in the set until the next
    /// ``MQTTConnection/adjustInbox(of:)``.
    var asking: Set<TopicText> = []

    init(admission: Admission?, device: DeviceDescription, isIDAssigned: Bool, login: Login?) {
        self.admission = admission
        self.device = device
        self.isIDAssigned = isIDAssigned
        self.login = login
    }
}
