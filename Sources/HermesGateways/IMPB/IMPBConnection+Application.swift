// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
import HermesWire
import NIOCore

/// Broadcasts and custom messages: see ``IMPBApplication``.
extension IMPBConnection: TopicSubscriber {
    // MARK: From the client

    func broadcast(_ base: IMPB_base_msg, seq: UInt32, from sender: Sender) {
        guard let topic = TopicName(IMPBApplication.broadcast) else { return }
        // The rules are checked before anything is parsed.
        guard may(.publish, topic, sender) else {
            return fail(seq, HermesError(.forbidden, "the rules do not let this account send to everyone"))
        }
        guard let message: IMPB_C2C_msg = parse(base.body, seq) else { return }
        do throws(HermesError) {
            let content = try IMPBContent.canonical(message, counted: { connection.charge(.parts($0)) }).get()
            let payload = try IMPBApplication.payload(of: content)
            let details = PublicationDetails(payloadIsUTF8: true, contentType: "application/json")
            publish(payload, details, to: topic, seq: seq, from: sender)
        } catch {
            fail(seq, error)
        }
    }

    func custom(_ base: IMPB_base_msg, seq: UInt32, from sender: Sender) {
        guard base.body.count <= IMPBApplication.maxBytes else {
            return fail(seq, HermesError(.tooLarge, "a custom message has at most 32 KiB"))
        }
        guard let topic = IMPBApplication.customTopic(of: sender.principal) else {
            return fail(
                seq,
                HermesError(.invalidArgument, "a custom message needs a device id without '/', '+' and '#'")
            )
        }
        guard may(.publish, topic, sender) else {
            return fail(
                seq,
                HermesError(.forbidden, "the rules do not let this device publish to \(topic.rawValue)")
            )
        }
        publish(ByteBuffer(bytes: base.body), nil, to: topic, seq: seq, from: sender)
    }

    private func may(_ action: TopicAction, _ topic: TopicName, _ sender: Sender) -> Bool {
        access.allows(action, topic, ClientIdentity(sender.principal), by: environment.access)
    }

    /// Publishes a payload. The client gets the answer after the publication is stored for subscribers that are not
    /// connected.
    private func publish(
        _ payload: ByteBuffer,
        _ details: PublicationDetails?,
        to topic: TopicName,
        seq: UInt32,
        from sender: Sender
    ) {
        let publication = Publication(
            topic: topic,
            payload: payload,
            kind: Publication.plainKind,
            sender: sender.principal.user,
            qos: .atLeastOnce,
            details: details
        )
        let isHeard = connection.publish(publication, by: sender.principal, through: messenger) { [self] result in
            answer(seq, result)
        }
        switch isHeard {
        case true?: succeed(seq)
        case false?: fail(seq, HermesError(.notFound, "nobody is subscribed to \(topic.rawValue)"))
        case nil: break
        }
    }

    // MARK: To the client

    func subscribeToBroadcasts() {
        guard let filter = TopicFilter(IMPBApplication.broadcast) else { return }
        broadcasts = connection.loop.topics.subscribe(self, to: filter, options: SubscriptionOptions())
    }

    func unsubscribeFromBroadcasts() {
        guard let subscription = broadcasts else { return }
        broadcasts = nil
        connection.loop.topics.unsubscribe(subscription)
    }

    package func deliver(_ delivery: Delivery, for subscription: TopicSubscription) {
        // The rules may have changed since the subscription.
        guard let sender, may(.subscribe, delivery.publication.topic, sender) else { return }
        let frame = delivery.encoded(.impb, by: IMPBApplication.frame)
        guard frame.readableBytes > 0 else { return }
        connection.tally.messagesOut += 1
        connection.write(delivery.publication.dropClass, frame: frame)
    }
}
