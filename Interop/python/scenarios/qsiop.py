# Hermes
# SPDX-License-Identifier: Apache-2.0
"""Checks of QSIOP with a small device."""

from clients import qsiop
from clients.link import Closed
from clients.qsiop import CONFIRM, PING, PONG, REPORT, RESPONSE
from support.checks import equal, require
from support.world import World


def pings(world: World):
    device = world.qsiop()
    device.ping()
    device.drip(qsiop.encode(PING))
    equal(device.frame(), (PONG, {}), "the answer to a ping one byte a segment")
    device.write(qsiop.encode(PING) * 1000)
    equal([device.frame() for _ in range(1000)], [(PONG, {})] * 1000, "a thousand pongs")


def report(world: World):
    person, other = world.person("ann"), world.person("bob")
    equal(world.qsiop().report(person.uid, token=person.token).get("code"), "0", "the code of a report")
    for what, uid, token in (
        ("without a token", person.uid, None),
        ("with an invented token", person.uid, "x" * 43),
        ("with another's token", person.uid, other.token),
        ("of nobody", 2**31 - 1, person.token),
    ):
        answer = world.qsiop().report(uid, token=token)
        require(answer.get("code") not in (None, "0"), f"a report {what} was accepted: {answer}")
        require(answer.get("msg"), f"a report {what}: no msg")
    device = world.qsiop()
    device.write(qsiop.encode(REPORT, {"userid": "not a number", "token": person.token}))
    require(device.response("an answer").get("code") != "0", "a userid that is no number was accepted")


def pushes(world: World):
    """A message to the account arrives as a push. A confirmed push does not come again."""
    ann, bob = world.person("ann"), world.person("bob")
    watch = world.watch(bob)
    a = world.phone(ann)
    text = "line 1\nline 2: with a colon, 你好"
    receipt = a.send_text(bob.uid, text)
    push = watch.push()
    equal(push["id"], receipt.message_id, "the push's id")
    require("line 1" in push["body"] and "你好" in push["body"], f"the push's body: {push}")
    watch.close()
    watch = world.watch(bob)
    again = watch.push("the unconfirmed push again")
    equal(again["id"], receipt.message_id, "the push after a reconnect")
    equal(watch.confirm(again).get("code"), "0", "the confirmation's code")
    watch.close()
    watch = world.watch(bob)
    fence = a.send_text(bob.uid, "fence")
    equal(watch.push()["id"], fence.message_id, "the first push after the confirmed one")


def errors(world: World):
    person = world.person("ann")
    watch = world.watch(person)
    watch.put(99, any="thing")
    equal(watch.response("the answer to an unknown op").get("code"), "404", "an unknown op")
    watch.put(CONFIRM, id="0" * 26)
    require("code" in watch.response("the answer to a strange confirmation"), "no code")
    watch.ping()


def before_report(world: World):
    device = world.qsiop()
    device.put(CONFIRM, id="0" * 26)
    require(device.response("an answer").get("code") != "0", "a confirmation before a report was accepted")


def bad(world: World):
    """Invalid UTF-8 and another version cause an error or a closed connection. Other connections are not affected."""
    neighbour = world.watch(world.person("ann"))
    for data in (bytes.fromhex("000100020004fffe3ac0"), bytes.fromhex("000000000000"), b"GET / HTTP/1.1\r\n\r\n"):
        device = world.qsiop()
        device.write(data)
        try:
            op, properties = device.frame(5)
            require(op == RESPONSE and properties.get("code") not in (None, "0"), f"answered with {op} {properties}")
        except Closed:
            pass
    neighbour.ping()


def operations(world: World):
    """Unknown ops from 6 to 15, and ops from 16 on without subscribers, are answered with 404. An op before a report is
    an error."""
    watch = world.watch(world.person("ann"))
    for op in (6, 15, 16, 65535):
        watch.put(op, t="21")
        equal(watch.response("an answer").get("code"), "404", f"op {op}")
    stranger = world.qsiop()
    stranger.put(16, t="21")
    require(stranger.response("an answer").get("code") not in ("0", "404"), "an operation before a report")


CHECKS = [
    ("QSIOP: pings", pings),
    ("QSIOP: report binds to the account, with its token alone", report),
    ("QSIOP: pushes and confirmations", pushes),
    ("QSIOP: unknown ops", errors),
    ("QSIOP: ops of the application", operations),
    ("QSIOP: nothing to confirm before a report", before_report),
    ("QSIOP: bad UTF-8, bad version, another protocol", bad),
]
