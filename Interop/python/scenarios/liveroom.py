# Hermes
# SPDX-License-Identifier: Apache-2.0
"""Checks of LiveRoom with viewers of a stream."""

import time

from clients import liveroom
from clients.liveroom import ENTER, GIFT, JOIN, KICKED, LEAVE, TEXT, pb, someone
from support.checks import equal, require
from support.world import World


def pair(world: World):
    """Returns two viewers. Both are certainly in the lobby."""
    a, b = world.liveroom(), world.liveroom()
    a.settle("ann")
    b.settle("bob")
    a.gets(TEXT, pb.ChatMessage(user=someone("bob"), text="bob is here").SerializeToString(), "the other's text")
    # An earlier text of one viewer may still be on its way to the other viewer.
    both = a.text("ann", "both are here")
    for viewer in (a, b):
        viewer.gets(TEXT, both, "a text after both had settled")
        viewer.waiting.clear()
    return a, b


def everything(world: World):
    """Joins, texts and gifts reach everybody unchanged, including the sender. Heartbeats reach nobody."""
    a, b = pair(world)
    sent = [(JOIN, a.join("ann")), (TEXT, a.text("ann", "你好 🙂"))]
    a.beat()
    sent.append((GIFT, a.gift("ann", "游艇", 99)))
    for viewer, who in ((a, "the sender"), (b, "the other")):
        equal([viewer.frame() for _ in sent], sent, f"what {who} got")


def without_join(world: World):
    """A connection belongs to its room as soon as it is accepted."""
    a, silent = world.liveroom(), world.liveroom()
    silent.settle("bob")
    a.settle("ann")
    body = a.text("ann", "to whoever is here")
    silent.gets(TEXT, body, "a text without ever having joined")


def leave(world: World):
    """The other viewers get a leave, but its sender does not. The sender's connection is closed."""
    a, b = pair(world)
    body = a.leave("ann")
    b.gets(LEAVE, body, "the leave")
    require(a.closes(5), "the connection of the one who left stays open")
    require((LEAVE, body) not in a.waiting, "the one who left got its own leave")
    b.settle("bob")


def unparsable(world: World):
    """Bodies that cannot be parsed are not forwarded. The frames after them are forwarded."""
    a, b = pair(world)
    a.put(JOIN, b"\x08\x07")                  # two required fields are missing
    a.put(TEXT, b"")
    a.put(TEXT, b"\xff\xff\xff")
    a.put(GIFT, pb.ChatMessage(user=someone("ann"), text="no gift").SerializeToString())
    a.put(LEAVE, b"\x08\x07")
    fence = a.text("ann", "fence")
    equal(b.frame(), (TEXT, fence), "the first thing the other got")
    equal(a.frame(), (TEXT, fence), "the first thing the sender got")


def huge(world: World):
    a, b = pair(world)
    a.write(bytes.fromhex("ffffffff0200"))
    require(a.closes(5), "a length of 4 GiB does not close the connection")
    b.settle("bob")


def application(world: World):
    """All types except those of the room, the heartbeat and enter belong to the application. They are forwarded
    unchanged."""
    a, b = pair(world)
    sent = [(kind, a.put(kind, b"\x00\xffown" * 3)) for kind in (4, 5, 6, 7, *range(10, 17), 100, 4711, 65535)]
    sent.append((17, a.put(17, b"")))
    equal([b.frame() for _ in sent], sent, "what the other got")
    equal([a.frame() for _ in sent], sent, "what the sender got")


def drip(world: World):
    a, b = pair(world)
    body = pb.ChatMessage(user=someone("ann"), text="one byte a segment").SerializeToString()
    a.drip(liveroom.encode(TEXT, body))
    b.gets(TEXT, body, "a text that came one byte a segment")
    texts = [pb.ChatMessage(user=someone("ann"), text=f"{n}").SerializeToString() for n in range(1000)]
    a.write(b"".join(liveroom.encode(TEXT, text) for text in texts))
    equal([b.frame() for _ in texts], [(TEXT, text) for text in texts], "a thousand texts in one write")


def enter(world: World):
    """The extension for entering another room on the same port with an account. A wrong token is refused."""
    person = world.person("ann")
    room = world.name("room")
    lobby = world.liveroom()
    lobby.settle("eve")
    a, b = world.liveroom(), world.liveroom()
    a.put(ENTER, pb.Enter(room=room))
    a.settle("ann")
    b.put(ENTER, pb.Enter(room=room, token=person.token, device_id="tv"))
    b.settle("bob")
    body = b.text("bob", "inside")
    a.gets(TEXT, body, "a text of the same room")
    lobby.settle("eve again")
    require((TEXT, body) not in lobby.waiting, "a text came into another room")
    # After enter, types below 16 belong to the server. It does not forward them from `a`, and `a` does not get them
    # from others.
    for kind in (4, 5, 6, 15):
        a.put(kind, b"own")
    plain = world.liveroom()
    plain.settle("carl")
    c = world.liveroom()
    c.put(ENTER, pb.Enter())
    c.settle("dora")
    plain.put(KICKED, pb.Kicked(code=3000, reason="forged"))
    plain.gets(KICKED, pb.Kicked(code=3000, reason="forged").SerializeToString(), "one's own type")
    body = plain.text("carl", "after")
    equal(c.frame(), (TEXT, body), "what the one who entered got")
    a.waiting.clear()
    body = a.text("ann", "after")
    equal(a.frame(), (TEXT, body), "what ann got")
    bad = world.liveroom()
    bad.put(ENTER, pb.Enter(room=room, token="x" * 43))
    kicked = bad.expect(lambda f: f[0] == KICKED, "a refusal")
    require(pb.Kicked.FromString(kicked[1]).reason, "no reason")
    require(bad.closes(5), "the connection stays open after a refusal")


def silence(world: World):
    """A client without a heartbeat for more than 10 s is removed, even if it sends texts. A client with heartbeats
    stays."""
    beating, talking, silent = world.liveroom(), world.liveroom(), world.liveroom()
    gone: dict[str, float] = {}
    began = time.monotonic()
    next_beat = began
    while len(gone) < 2 and time.monotonic() < began + 16:
        if time.monotonic() >= next_beat:
            next_beat += 2
            beating.beat()
            if "talking" not in gone:
                try:
                    talking.text("ann", "talking is no sign of life")
                except OSError:
                    pass
        for name, viewer in (("talking", talking), ("silent", silent)):
            if name not in gone and viewer.closes(0.1):
                gone[name] = time.monotonic() - began
    for name in ("talking", "silent"):
        require(name in gone, f"the {name} viewer was not removed")
        require(9.5 < gone[name] < 14, f"the {name} viewer was removed after {gone[name]:.1f} s")
    beating.settle("bob")
    return ", ".join(f"{name} after {seconds:.1f} s" for name, seconds in gone.items())


CHECKS = [
    ("LiveRoom: join, text and gift reach everyone, heartbeats nobody", everything),
    ("LiveRoom: in the room without a join", without_join),
    ("LiveRoom: leave", leave),
    ("LiveRoom: what does not parse is not forwarded", unparsable),
    ("LiveRoom: a huge length closes the connection", huge),
    ("LiveRoom: the application's own types", application),
    ("LiveRoom: one byte a segment, and a thousand frames in one", drip),
    ("LiveRoom: entering another room (extension)", enter),
    ("LiveRoom: the silent are removed", silence),
]
