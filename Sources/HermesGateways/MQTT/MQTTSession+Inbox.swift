// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire
import NIOCore

/// `hermes/v1/up` and `down`: the native protocol in publications; and rooms.
extension MQTTSession {
    func openInbox() {}

    func inboxClosed(_ client: MQTTClientState) {}

    /// Takes a publication that is not for subscribers but for the server.
    func takesSpecial(_ publication: Publication, _ head: MQTTPublishHead) -> Bool { false }
}
