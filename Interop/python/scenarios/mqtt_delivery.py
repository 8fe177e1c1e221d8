# Hermes
# SPDX-License-Identifier: Apache-2.0
"""Checks of both versions of MQTT with Eclipse Paho: qualities of service, retained messages, wills, sessions."""

from clients.paho_client import V5, V31, V311, Cast
from support.checks import equal, require

NAMES = {V311: "3.1.1", V5: "5.0"}
TAKEN_OVER = 0x8E


def durable(cast: Cast, version: int, client_id: str | None = None, clean: bool = False, **more):
    """Returns a client whose session remains after the end of its connection."""
    return cast.device(client_id, version, clean, **({"expiry": 600} if version == V5 else {}), **more)


def qualities(cast: Cast, version: int):
    """Messages of every QoS for subscriptions of every QoS. Each message arrives with the lower QoS of the two."""
    a, b = cast.device(version=version), cast.device(version=version)
    for granted in (0, 1, 2):
        equal(b.subscribe(cast.topic(f"{granted}"), granted), [granted], "the granted quality")
        for sent in (0, 1, 2):
            a.publish(cast.topic(f"{granted}"), f"{sent}", sent)
            message = b.message()
            equal((message.topic, message.payload.decode(), message.qos, message.retain, message.dup),
                  (cast.topic(f"{granted}"), f"{sent}", min(sent, granted), False, False), "the message")
    equal(b.fence(a), [], "what came beside")


def filters(cast: Cast, version: int):
    """Wildcards, empty levels, and other scripts. Wildcards at the first level do not match topics that begin with
    $."""
    a, b = cast.device(version=version), cast.device(version=version)
    root = cast.root
    cases = [
        (f"{root}/+/c", f"{root}/b/c", f"{root}/b/d"),
        (f"{root}/x/#", f"{root}/x", f"{root}/xy"),
        (f"{root}/y/#", f"{root}/y/1/2/3", f"{root}/Y/1"),
        (f"{root}//e", f"{root}//e", f"{root}/e"),
        (f"{root}/+/", f"{root}/f/", f"{root}/f"),
        (f"{root}/温度/+", f"{root}/温度/客厅 🙂", f"{root}/温度"),
        (f"/{root}/g", f"/{root}/g", f"{root}/g"),
    ]
    for number, (subscribed, yes, no) in enumerate(cases):
        b.subscribe(subscribed, 1)
        a.publish(no, f"no {number}", 1)
        a.publish(yes, f"yes {number}", 1)
        message = b.message()
        equal((message.topic, message.payload.decode()), (yes, f"yes {number}"), f"what matches {subscribed}")
        b.unsubscribe(subscribed)
    every = cast.device(version=version)
    every.subscribe("#")
    every.subscribe("+/monitor/Clients")
    a.publish(cast.topic("after"), "x", 1)
    while True:
        message = every.message()
        require(not message.topic.startswith("$"), f"# matched {message.topic}")
        if message.topic == cast.topic("after"):
            break


def contents(cast: Cast, version: int):
    """An empty payload, a payload with every byte, and a payload of 600 KiB arrive unchanged."""
    a, b = cast.device(version=version), cast.device(version=version)
    b.subscribe(cast.topic(), 2)
    for quality in (0, 1, 2):
        for payload in (b"", bytes(range(256)), bytes(range(256)) * 2400):
            a.publish(cast.topic(), payload, quality)
            require(b.message().payload == payload, f"{len(payload)} bytes at QoS {quality} came otherwise")


def order(cast: Cast, version: int):
    """1,000 messages of each QoS arrive exactly once and in order."""
    a, b = cast.device(version=version), cast.device(version=version)
    b.subscribe(cast.topic("#"), 2)
    for quality in (0, 1, 2):
        numbers = [a.publish(cast.topic(f"{quality}"), f"{n}", quality, wait=False) for n in range(1000)]
        for number in numbers:
            a.acknowledged(number)
        equal(b.payloads(1000), [f"{n}" for n in range(1000)], f"QoS {quality}")
    equal(b.fence(a), [], "what came beside")


def overlapping(cast: Cast, version: int):
    """If two subscriptions match, at least one copy arrives, with the highest QoS. After both have ended, no copy
    arrives."""
    a, b = cast.device(version=version), cast.device(version=version)
    b.subscribe(cast.topic("a"), 1)
    b.subscribe(cast.topic("+"), 2)
    a.publish(cast.topic("a"), "x", 2)
    # Paho passes a QoS 2 message on when its PUBREL arrives. A later QoS 1 message may overtake it.
    found = [b.message(), *b.fence(a)]
    require(found and max(message.qos for message in found) == 2, f"qualities {[m.qos for m in found]}")
    b.unsubscribe(cast.topic("a"))
    a.publish(cast.topic("a"), "y", 1)
    equal([m.payload for m in b.fence(a)], [b"y"], "after the first is ended")
    b.unsubscribe(cast.topic("+"))
    a.publish(cast.topic("a"), "z", 1)
    equal(b.fence(a), [], "after both are ended")


def retained(cast: Cast, version: int):
    """Retained messages are kept, replaced and removed. The flag is set only for clients that subscribe later."""
    a = cast.device(version=version)
    live = cast.device(version=version)
    live.subscribe(cast.topic("#"), 1)
    a.publish(cast.topic("1"), "old", 1, retain=True)
    a.publish(cast.topic("1"), "new", 1, retain=True)
    a.publish(cast.topic("2/x"), "other", 2, retain=True)
    a.publish(cast.topic("3"), "not kept", 1)
    found = live.messages(4)
    equal([m.retain for m in found], [False] * 4, "the flag for who was there")
    late = cast.device(version=version)
    late.subscribe(cast.topic("#"), 1)
    found = sorted((m.topic, m.payload.decode(), m.retain, m.qos) for m in late.fence(a))
    equal(found, [(cast.topic("1"), "new", True, 1), (cast.topic("2/x"), "other", True, 1)], "for who comes later")
    for topic in ("1", "2/x"):
        a.publish(cast.topic(topic), "", 1, retain=True)
    later = cast.device(version=version)
    later.subscribe(cast.topic("#"), 1)
    equal(later.fence(a), [], "after clearing")


def will(cast: Cast, version: int):
    """A will is published if the connection is lost, but not after DISCONNECT. It is retained if the client asks for
    this."""
    watch = cast.device(version=version)
    watch.subscribe(cast.topic("#"), 2)
    polite = cast.device(version=version, will={"topic": cast.topic("polite"), "payload": "gone", "qos": 1})
    polite.disconnect()
    lost = cast.device(version=version, will={"topic": cast.topic("lost"), "payload": "lost", "qos": 2, "retain": True})
    lost.drop()
    message = watch.message()
    equal((message.topic, message.payload.decode(), message.qos), (cast.topic("lost"), "lost", 2), "the will")
    late = cast.device(version=version)
    late.subscribe(cast.topic("lost"), 1)
    message = late.message()
    equal((message.payload.decode(), message.retain), ("lost", True), "the will, retained")
    late.publish(cast.topic("lost"), "", 1, retain=True)
    equal([m.payload for m in watch.fence(late)], [b""], "what came beside")


def queued(cast: Cast, version: int):
    """Messages that are published while the session's client is offline wait in order. QoS 0 messages may be
    dropped."""
    a, b = cast.device(version=version), durable(cast, version)
    require(not b.present, "a session was there before")
    b.subscribe(cast.topic("#"), 2)
    b.disconnect()
    for n in range(100):
        a.publish(cast.topic("1"), f"one {n}", 1)
        a.publish(cast.topic("2"), f"two {n}", 2)
    again = durable(cast, version, b.client_id)
    require(again.present, "the session is not there any more")
    found = [m for m in again.messages(200)]
    for name, quality in (("one", 1), ("two", 2)):
        some = [(m.payload.decode(), m.qos) for m in found if m.payload.decode().startswith(name)]
        equal(some, [(f"{name} {n}", quality) for n in range(100)], f"QoS {quality}")
    equal(again.fence(a), [], "what came beside")
    again.disconnect()
    third = durable(cast, version, b.client_id)
    equal((third.present, third.fence(a)), (True, []), "a third connection")


def clean(cast: Cast, version: int):
    """A clean start ends the earlier session. A clean session leaves no session."""
    a, b = cast.device(version=version), durable(cast, version)
    b.subscribe(cast.topic(), 1)
    b.disconnect()
    a.publish(cast.topic(), "for nobody", 1)
    again = cast.device(b.client_id, version, clean=True)
    equal((again.present, again.fence(a)), (False, []), "a clean start")
    again.subscribe(cast.topic(), 1)
    again.disconnect()
    a.publish(cast.topic(), "for nobody", 1)
    third = durable(cast, version, b.client_id)
    equal((third.present, third.fence(a)), (False, []), "after a clean session")


def again_with_dup(cast: Cast, version: int):
    """Unacknowledged messages come again on the next connection, with DUP and before newer messages."""
    a = cast.device(version=version)
    a.subscribe(cast.topic("will"), 1)
    b = durable(cast, version, manual=True, will={"topic": cast.topic("will"), "payload": "gone", "qos": 1})
    b.subscribe(cast.topic(), 1)
    for n in range(5):
        a.publish(cast.topic(), f"{n}", 1)
    found = b.messages(5)
    for message in found[:2]:
        b.ack(message)
    b.client.loop_misc()
    b.fence(b)  # the acknowledgements have arrived
    b.drop()
    # Until the server notices the end of the connection, it sends messages to `b`, which then count as sent and get
    # DUP.
    equal(a.message().payload, b"gone", "the will of the lost connection")
    a.publish(cast.topic(), "5", 1)
    again = durable(cast, version, b.client_id)
    found = [(m.payload.decode(), m.dup) for m in again.fence(a)]
    equal(found, [("2", True), ("3", True), ("4", True), ("5", False)], "what came again")


def take_over(cast: Cast, version: int):
    """A second connection with the same client id ends the first one and continues the session. The first one's will is
    sent."""
    a = cast.device(version=version)
    a.subscribe(cast.topic("will"), 1)
    first = durable(cast, version, cast.name(), will={"topic": cast.topic("will"), "payload": "taken", "qos": 1})
    first.subscribe(cast.topic(), 1)
    second = durable(cast, version, first.client_id)
    reason = first.ended()
    if version == V5:
        equal(reason and reason.value, TAKEN_OVER, "the reason")
    require(second.present, "the session is not there any more")
    a.publish(cast.topic(), "for the second", 1)
    equal(second.message().payload, b"for the second", "the message")
    equal(a.message().payload, b"taken", "the will of the first")


def restart(cast: Cast, version: int):
    """Sessions, their waiting messages, and retained messages remain after a restart of the server."""
    a, b = cast.device(version=version), durable(cast, version)
    b.subscribe(cast.topic("#"), 2)
    b.disconnect()
    a.publish(cast.topic("1"), "one", 1)
    a.publish(cast.topic("2"), "two", 2, retain=True)
    cast.broker.restart()
    again = durable(cast, version, b.client_id)
    require(again.present, "the session is not there any more")
    equal([(m.topic, m.payload.decode(), m.qos) for m in again.messages(2)],
          [(cast.topic("1"), "one", 1), (cast.topic("2"), "two", 2)], "what waited")
    late = cast.device(version=version)
    late.subscribe(cast.topic("2"), 1)
    equal((late.message().payload, again.fence(late)), (b"two", []), "the retained message")
    late.publish(cast.topic("2"), "", 1, retain=True)


def killed(cast: Cast, version: int):
    """The same check with kill -9 immediately after the acknowledgement."""
    a, b = cast.device(version=version), durable(cast, version)
    b.subscribe(cast.topic("#"), 2)
    b.disconnect()
    a.publish(cast.topic("2"), "two", 2, retain=True)
    a.publish(cast.topic("1"), "one", 1)
    cast.broker.kill()
    again = durable(cast, version, b.client_id)
    require(again.present, "the session is not there any more")
    # Paho passes a QoS 2 message on when its PUBREL arrives, so the QoS 1 message may come first.
    equal(sorted(m.payload for m in again.messages(2)), [b"one", b"two"], "what waited")
    late = cast.device(version=version)
    late.subscribe(cast.topic("2"), 1)
    equal((late.message().payload, again.fence(late)), (b"two", []), "the retained message")
    late.publish(cast.topic("2"), "", 1, retain=True)


def pings(cast: Cast, version: int):
    """A client that only sends pings stays connected. A client that is silent for more than 1.5 times its keep-alive is
    disconnected."""
    watch = cast.device(version=version)
    watch.subscribe(cast.topic("will"), 1)
    quiet = cast.device(version=version, keep_alive=1)
    silent = cast.device(version=version, keep_alive=1, will={"topic": cast.topic("will"), "payload": "silent", "qos": 1})
    silent.client.loop_stop()
    equal(watch.message(6).payload, b"silent", "the will")
    equal((quiet.fence(watch), quiet.closed.is_set()), ([], False), "the one that pings")


def older(cast: Cast):
    """MQTT 3.1 is refused with the return code for an unsupported version."""
    a = cast.device(version=V31, connect=False)
    _, code, _ = a.connect(accepted=False)
    require(code.is_failure and "version" in str(code).lower(), f"answered {code}")


BOTH = [
    ("QoS 0, 1 and 2 both ways", qualities),
    ("topics and filters", filters),
    ("payloads", contents),
    ("order", order),
    ("overlapping subscriptions, unsubscribing", overlapping),
    ("retained messages: set, replaced, cleared", retained),
    ("will", will),
    ("a session's messages wait", queued),
    ("clean start", clean),
    ("sent again with DUP", again_with_dup),
    ("take-over", take_over),
    ("keep-alive", pings),
    ("a restart keeps sessions and retained messages", restart),
    ("kill -9 keeps sessions and retained messages", killed),
]
CHECKS = [(f"Paho {NAMES[version]}: {name}", body, version) for version in (V311, V5) for name, body in BOTH]
CHECKS.append(("Paho 3.1: refused", older))
