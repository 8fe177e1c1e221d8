# Hermes
# SPDX-License-Identifier: Apache-2.0
"""Checks of the additions of MQTT 5.0 with Eclipse Paho: properties, reason codes, shared subscriptions, flow
control."""

from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from clients.paho_client import V5, Cast, Device, properties, with_user_properties
from support.checks import Skipped, equal, require

NO_MATCHING_SUBSCRIBERS, NO_SUBSCRIPTION_EXISTED, DISCONNECT_WITH_WILL = 0x10, 0x11, 0x04


def all_properties(cast: Cast):
    """User properties in their order, content type, response topic, correlation data, and payload format."""
    a, b = cast.device(), cast.device()
    b.subscribe(cast.topic(), 2)
    pairs = [("a", "1"), ("b", "2"), ("a", "3"), ("", ""), ("温", "度")]
    for quality in (0, 1, 2):
        made = with_user_properties(properties(
            PacketTypes.PUBLISH, PayloadFormatIndicator=1, ContentType="text/plain; charset=utf-8",
            ResponseTopic=cast.topic("answers"), CorrelationData=b"\x00\xff"), pairs)
        a.publish(cast.topic(), "x", quality, made=made)
        found = b.message().properties
        equal(found.UserProperty, pairs, "user properties")
        equal((found.PayloadFormatIndicator, found.ContentType, found.ResponseTopic, found.CorrelationData),
              (1, "text/plain; charset=utf-8", cast.topic("answers"), b"\x00\xff"), f"properties at QoS {quality}")
        require(not hasattr(found, "MessageExpiryInterval"), "an expiry that nobody asked for")


def request_and_response(cast: Cast):
    asking, answering = cast.device(), cast.device()
    asking.subscribe(cast.topic("answers/me"), 1)
    answering.subscribe(cast.topic("questions"), 1)
    asking.publish(cast.topic("questions"), "how much?", 1, ResponseTopic=cast.topic("answers/me"), CorrelationData=b"7")
    question = answering.message()
    answering.publish(question.properties.ResponseTopic, "42", 1, CorrelationData=question.properties.CorrelationData)
    answer = asking.message()
    equal((answer.payload, answer.properties.CorrelationData), (b"42", b"7"), "the answer")


def expiry(cast: Cast):
    """The expiry interval decreases while a message waits. Expired messages do not arrive. Retained messages expire,
    too."""
    a, b = cast.device(), cast.device(expiry=600, clean=False)
    b.subscribe(cast.topic("#"), 1)
    b.disconnect()
    a.publish(cast.topic("1"), "short", 1, MessageExpiryInterval=1)
    a.publish(cast.topic("1"), "long", 1, MessageExpiryInterval=100)
    a.publish(cast.topic("1"), "for ever", 1)
    a.publish(cast.topic("kept"), "short", 1, retain=True, MessageExpiryInterval=1)
    a.publish(cast.topic("kept too"), "long", 1, retain=True, MessageExpiryInterval=100)
    cast.later(2.2)
    again = cast.device(b.client_id, expiry=600, clean=False)
    found = again.fence(a)
    equal([m.payload.decode() for m in found], ["long", "for ever", "long"], "what came")
    left = found[0].properties.MessageExpiryInterval
    require(96 <= left <= 98, f"{left} s are left of 100 after 2.2")
    require(not hasattr(found[1].properties, "MessageExpiryInterval"), "an expiry that nobody asked for")
    late = cast.device()
    late.subscribe(cast.topic("#"), 1)
    found = late.fence(a)
    equal([(m.topic, m.payload.decode()) for m in found], [(cast.topic("kept too"), "long")], "what is retained")
    require(96 <= found[0].properties.MessageExpiryInterval <= 98, "the expiry of what is retained")


def subscription_identifiers(cast: Cast):
    """Each message has the identifier of the subscription that matched. If several match, it has all their
    identifiers."""
    a, b = cast.device(), cast.device()
    b.subscribe(cast.topic("a"), 1, identifier=1)
    b.subscribe(cast.topic("+"), 1, identifier=268_435_455)
    b.subscribe(cast.topic("none"), 1)
    a.publish(cast.topic("b"), "one", 1)
    equal(b.message().properties.SubscriptionIdentifier, [268_435_455], "by one subscription")
    a.publish(cast.topic("a"), "two", 1)
    found = sorted(number for m in b.fence(a) for number in m.properties.SubscriptionIdentifier)
    equal(found, [1, 268_435_455], "by two subscriptions")
    b.subscribe(cast.topic("+"), 1, identifier=5)
    a.publish(cast.topic("b"), "three", 1)
    equal(b.message().properties.SubscriptionIdentifier, [5], "after another identifier")
    b.unsubscribe(cast.topic("+"))
    b.subscribe(cast.topic("b"), 1)
    a.publish(cast.topic("b"), "four", 1)
    require(not hasattr(b.message().properties, "SubscriptionIdentifier"), "an identifier of an ended subscription")


def aliases(cast: Cast):
    """The client sets topic aliases and changes them. The server's aliases stay within the client's maximum."""
    a, b = cast.device(), cast.device(TopicAliasMaximum=3)
    allowed = getattr(a.connack[2], "TopicAliasMaximum", 0)
    require(allowed > 1, f"the server takes {allowed} aliases")
    b.subscribe(cast.topic("#"), 1)
    a.publish(cast.topic("a"), "1", 1, TopicAlias=1)
    a.publish("", "2", 1, TopicAlias=1)
    a.publish(cast.topic("b"), "3", 0, TopicAlias=1)
    a.publish("", "4", 1, TopicAlias=1)
    a.publish(cast.topic("c"), "5", 1, TopicAlias=allowed)
    equal([(m.topic, m.payload.decode()) for m in b.messages(5)],
          [(cast.topic(t), p) for t, p in zip("aabbc", "12345")], "by alias")
    for n in range(50):
        a.publish(cast.topic(f"{n % 5}"), f"{n}", 1, wait=n == 49)
    equal([(m.topic, m.payload.decode()) for m in b.messages(50)],
          [(cast.topic(f"{n % 5}"), f"{n}") for n in range(50)], "topics")
    require(all(alias <= 3 for alias in b.aliases), f"the server's aliases: {b.aliases}")
    return f"{len(b.aliases)} aliases of the server, {allowed} of the client"


def shared(cast: Cast):
    """Each message goes to one member of the group, and to all other subscribers."""
    a, every = cast.device(), cast.device()
    members = [cast.device() for _ in range(3)]
    every.subscribe(cast.topic("+"), 1)
    for member in members:
        member.subscribe(f"$share/group/{cast.topic('+')}", 1)
    other = cast.device()
    other.subscribe(f"$share/other/{cast.topic('+')}", 1)
    for n in range(90):
        a.publish(cast.topic(f"{n}"), f"{n}", 1)
    wanted = sorted(f"{n}" for n in range(90))
    equal(sorted(every.payloads(90)), wanted, "beside the groups")
    equal(sorted(other.payloads(90)), wanted, "the group of one")
    took = [[m.payload.decode() for m in member.fence(a)] for member in members]
    equal(sorted(one for some in took for one in some), wanted, "the group")
    require(all(took), f"somebody got nothing: {[len(some) for some in took]}")
    members[0].unsubscribe(f"$share/group/{cast.topic('+')}")
    a.publish(cast.topic("x"), "x", 1)
    equal(members[0].fence(a), [], "a member that left")
    return " + ".join(f"{len(some)}" for some in took)


def shared_hand_over(cast: Cast):
    """When a member's session ends, its unacknowledged messages go to another member."""
    a = cast.device()
    leaving = cast.device(manual=True)
    leaving.subscribe(f"$share/group/{cast.topic()}", 1)
    for n in range(10):
        a.publish(cast.topic(), f"{n}", 1)
    leaving.messages(10)
    staying = cast.device()
    staying.subscribe(f"$share/group/{cast.topic()}", 1)
    leaving.drop()
    equal(staying.payloads(10), [f"{n}" for n in range(10)], "what was handed over")


def no_local(cast: Cast):
    a, b = cast.device(), cast.device()
    a.subscribe(cast.topic(), 1, noLocal=True)
    a.publish(cast.topic(), "own", 1)
    b.publish(cast.topic(), "another's", 1)
    equal([m.payload for m in a.fence(b)], [b"another's"], "what came")


def retain_as_published(cast: Cast):
    a, b, c = cast.device(), cast.device(), cast.device()
    b.subscribe(cast.topic(), 1, retainAsPublished=True)
    c.subscribe(cast.topic(), 1, retainAsPublished=False)
    for retain in (True, False):
        a.publish(cast.topic(), "x", 1, retain=retain)
        equal((b.message().retain, c.message().retain), (retain, False), "the flags")
    a.publish(cast.topic(), "", 1, retain=True)


def retain_handling(cast: Cast):
    """Retain handling: with 0, retained messages are always sent; with 1, only for a new subscription; with 2,
    never."""
    a, b = cast.device(), cast.device()
    a.publish(cast.topic(), "kept", 1, retain=True)
    for handling, first, second in ((0, 1, 1), (1, 1, 0), (2, 0, 0)):
        b.subscribe(cast.topic(), 1, retainHandling=handling)
        equal(len(b.fence(a)), first, f"retain handling {handling}, a new subscription")
        b.subscribe(cast.topic(), 1, retainHandling=handling)
        equal(len(b.fence(a)), second, f"retain handling {handling}, the same again")
        b.unsubscribe(cast.topic())
    shared = cast.device()
    shared.subscribe(f"$share/g/{cast.topic()}", 1)
    equal(shared.fence(a), [], "a shared subscription")
    a.publish(cast.topic(), "", 1, retain=True)


def receive_maximum(cast: Cast):
    """The number of unacknowledged messages stays within the client's receive maximum. QoS 0 messages do not wait."""
    a, b = cast.device(), cast.device(ReceiveMaximum=3, manual=True)
    b.subscribe(cast.topic("#"), 1)
    for n in range(10):
        a.publish(cast.topic("1"), f"{n}", 1)
    a.publish(cast.topic("0"), "at most once", 0)
    found = b.messages(3)
    equal([m.payload.decode() for m in found if m.qos == 1], ["0", "1", "2"], "within the window")
    equal(b.message().payload, b"at most once", "QoS 0 beside it")
    cast.later(0.3)
    require(b.received.empty(), "more than three are unacknowledged")
    got = 3
    while got < 10:
        b.ack(found.pop(0))
        found.append(b.message())
        equal(found[-1].payload.decode(), f"{got}", "the next one")
        got += 1


def big_packets(cast: Cast):
    """A message that is too large for a client is not sent to it, and does not delay other messages."""
    a, b = cast.device(), cast.device(MaximumPacketSize=300)
    b.subscribe(cast.topic(), 2)
    for quality in (0, 1, 2):
        a.publish(cast.topic(), "x" * 500, quality)
        a.publish(cast.topic(), "small", quality)
        equal(b.message().payload, b"small", f"QoS {quality}")


def connecting(cast: Cast):
    """The properties of CONNACK, and a client id that the server assigns."""
    a = cast.device("", connect=False)
    _, _, found = a.connect()
    assigned = getattr(found, "AssignedClientIdentifier", "")
    require(assigned, "no client id was assigned")
    b = cast.device("")
    other = b.connack[2].AssignedClientIdentifier
    require(other != assigned, "two clients got one id")
    values = found.json()
    require(values.get("ReceiveMaximum", 65535) > 0 and values.get("RetainAvailable", 1) == 1
            and values.get("MaximumQoS", 2) == 2 and values.get("WildcardSubscriptionAvailable", 1) == 1
            and values.get("SharedSubscriptionAvailable", 1) == 1
            and values.get("SubscriptionIdentifierAvailable", 1) == 1, f"not all is there: {values}")
    return ", ".join(f"{name} {value}" for name, value in values.items() if name != "AssignedClientIdentifier")


def reason_codes(cast: Cast):
    """The reason codes for a message without subscribers and for an unknown subscription."""
    a, b = cast.device(), cast.device()
    equal(a.publish(cast.topic(), "x", 1), NO_MATCHING_SUBSCRIBERS, "to nobody")
    b.subscribe([cast.topic(), cast.topic("+")], 1)
    for quality in (1, 2):
        equal(a.publish(cast.topic(), "x", quality), 0, f"QoS {quality} to somebody")
    equal(b.unsubscribe(cast.topic(), cast.topic("no")), [0, NO_SUBSCRIPTION_EXISTED], "unsubscribing")
    equal(b.subscribe([cast.topic("a"), cast.topic("b"), cast.topic("c")], 2), [2, 2, 2], "subscribing to three")


def session_expiry(cast: Cast):
    """A session ends after its expiry interval. DISCONNECT can change the interval."""
    a = cast.device()
    short, changed = cast.device(expiry=1, clean=False), cast.device(expiry=600, clean=False)
    kept = cast.device(expiry=1, clean=False)
    for one in (short, changed, kept):
        one.subscribe(cast.topic(), 1)
    short.disconnect()
    changed.disconnect(SessionExpiryInterval=0)
    kept.disconnect(SessionExpiryInterval=600)
    cast.later(2.5)
    for one, present in ((short, False), (changed, False), (kept, True)):
        again = cast.device(one.client_id, expiry=600, clean=False)
        equal(again.present, present, "the session is there")


def will_delay(cast: Cast):
    """A will waits for its delay, and is dropped if the client reconnects. It has its properties. It is sent after a
    DISCONNECT that asks for it."""
    watch = cast.device()
    watch.subscribe(cast.topic("#"), 1)

    def dying(name: str, delay: int, **more) -> Device:
        made = with_user_properties(properties(
            PacketTypes.WILLMESSAGE, WillDelayInterval=delay, ContentType="text/plain", MessageExpiryInterval=60),
            [("why", "lost")])
        will = {"topic": cast.topic(name), "payload": name, "qos": 1, "properties": made}
        return cast.device(cast.name(), clean=False, will=will, **more)

    back, late = dying("back", 2, expiry=600), dying("late", 2, expiry=600)
    ended = dying("ended", 600, expiry=1)
    asked = dying("asked", 0, expiry=600)
    asked.disconnect(DISCONNECT_WITH_WILL)
    message = watch.message(2)
    equal(message.payload, b"asked", "DISCONNECT with will")
    equal((message.properties.ContentType, message.properties.UserProperty), ("text/plain", [("why", "lost")]),
          "the will's properties")
    for one in (back, late, ended):
        one.drop()
    equal(watch.fence(asked if asked.client.is_connected() else watch), [], "before the delay has passed")
    again = cast.device(back.client_id, clean=False, expiry=600)
    require(again.present, "the session is not there any more")
    found = {watch.message(6).payload.decode() for _ in range(2)}
    equal(found, {"late", "ended"}, "after the delay, or with the end of the session")
    cast.later(1)
    equal(watch.fence(), [], "what came beside")


def response_information(cast: Cast):
    """The server may send response information only if the client requests it."""
    a, b = cast.device(RequestResponseInformation=1), cast.device()
    require(not hasattr(b.connack[2], "ResponseInformation"), "response information that nobody asked for")
    return getattr(a.connack[2], "ResponseInformation", "none")


def statistics(cast: Cast):
    """A client that subscribes to $SYS gets statistics."""
    a = cast.device()
    a.subscribe("$SYS/#")
    message = a.message(15)
    require(message.topic.startswith("$SYS/"), message.topic)
    return f"{message.topic} = {message.payload.decode(errors='replace')[:40]}"


def account(cast: Cast):
    """A login with the right password, with a wrong password, and with an unknown name."""
    if cast.broker.name != "hermes":
        raise Skipped(f"{cast.broker.name} has no accounts")
    from support.broker import ACCOUNT, PASSWORD
    cast.broker.add_account()
    a = cast.device(user=(ACCOUNT, PASSWORD))
    a.subscribe(cast.topic(), 1)
    a.publish(cast.topic(), "x", 1)
    equal(a.message().payload, b"x", "the message")
    for user in ((ACCOUNT, "wrong password"), ("nobody", PASSWORD), (ACCOUNT, None)):
        b = cast.device(user=user, connect=False)
        _, code, _ = b.connect(accepted=False)
        require(code.value in (0x86, 0x87), f"{user[0]} was answered {code}")
    older = cast.device(user=(ACCOUNT, "wrong password"), connect=False, version=4)
    _, code, _ = older.connect(accepted=False)
    require(code.is_failure, "3.1.1 with a wrong password was let in")


BOTH = [
    ("properties", all_properties),
    ("request and response", request_and_response),
    ("message expiry", expiry),
    ("subscription identifiers", subscription_identifiers),
    ("topic aliases", aliases),
    ("shared subscriptions", shared),
    ("shared subscriptions: hand-over", shared_hand_over),
    ("no-local", no_local),
    ("retain-as-published", retain_as_published),
    ("retain handling", retain_handling),
    ("receive maximum", receive_maximum),
    ("maximum packet size", big_packets),
    ("CONNACK, assigned client id", connecting),
    ("reason codes", reason_codes),
    ("session expiry", session_expiry),
    ("will delay", will_delay),
    ("response information", response_information),
    ("$SYS", statistics),
    ("name and password", account),
]
CHECKS = [(f"Paho 5.0: {name}", body) for name, body in BOTH]
