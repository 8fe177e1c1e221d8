# Hermes
# SPDX-License-Identifier: Apache-2.0
"""One account over IMPB, Delimited and QSIOP at once."""

from clients.impb import CHAT, sender_of, text_of
from clients.qsiop import PUSH
from support.checks import equal, require
from support.world import World


class Phone:
    """An IMPB device. It collects (message id, own, text) of each message."""

    def __init__(self, world: World, person):
        self.world, self.person = world, person
        self.link = world.phone(person, "phone")

    def collect(self, count: int):
        return [(m.message_id, sender_of(m) == self.person.uid, text_of(m))
                for m in (self.link.chat_message() for _ in range(count))]

    def send(self, to: int, text: str) -> str:
        return self.link.send_text(to, text).message_id

    def left(self):
        return [frame for frame in self.link.waiting if frame[1] == CHAT]

    def go(self) -> None:
        self.link.ping()  # the first frame after the deliveries acknowledges them all
        self.link.close()

    def come(self) -> None:
        self.link = self.world.phone(self.person, "phone")


class Tablet:
    """A Delimited device that keeps its cursor."""

    def __init__(self, world: World, person):
        self.world, self.person = world, person
        self.cursor = 0
        self.link = world.app(person, "tablet")

    def collect(self, count: int):
        found = []
        for _ in range(count):
            event = self.link.event()
            require(event.seq > self.cursor, f"seq {event.seq} after {self.cursor}")
            self.cursor = event.seq
            found.append((event.message.id, event.message.own, event.message.content.text))
        return found

    def send(self, to: int, text: str) -> str:
        receipt = self.link.send(to, text)
        return receipt.message_id

    def left(self):
        return [packet for packet in self.link.waiting if packet.WhichOneof("body") == "event"]

    def go(self) -> None:
        self.link.acknowledge(self.cursor)
        self.link.close()

    def come(self) -> None:
        self.link = self.world.app(self.person, "tablet", epoch=self.link.session.epoch, after=self.cursor)


class Watch:
    """A QSIOP device that confirms each push."""

    def __init__(self, world: World, person):
        self.world, self.person = world, person
        self.link = world.watch(person, "watch")

    def collect(self, count: int):
        found = []
        for _ in range(count):
            push = self.link.push()
            equal(self.link.confirm(push).get("code"), "0", "the confirmation")
            own = push.get("own", "0") in ("1", "true") or push.get("from") == str(self.person.uid)
            found.append((push["id"], own, push["body"]))
        return found

    def left(self):
        return [frame for frame in self.link.waiting if frame[0] == PUSH]

    def go(self) -> None:
        self.link.close()

    def come(self) -> None:
        self.link = self.world.watch(self.person, "watch")


def everyone(world: World):
    """Any device can send, and every device receives each message exactly once. Copies of own messages are marked. A
    device that was offline gets everything in order."""
    ann, bob = world.person("ann"), world.person("bob")
    phone, tablet, watch = devices = Phone(world, ann), Tablet(world, ann), Watch(world, ann)
    bob_phone, bob_app = Phone(world, bob), Tablet(world, bob)
    everything: list[str] = []

    def received(devices, wanted, what: str) -> None:
        for device in devices:
            equal(device.collect(len(wanted)), wanted, f"{what}: {type(device).__name__}")

    # The friend sends over both protocols.
    wanted = []
    for n in range(10):
        sender = (bob_phone, bob_app)[n % 2]
        text = f"from bob {n}"
        wanted.append((sender.send(ann.uid, text), False, text))
    received(devices, wanted, "from bob")
    # Each of the friend's two devices gets the messages of the other device, marked as own.
    equal(bob_phone.collect(5), [(i, True, t) for i, _, t in wanted[1::2]], "bob's own at his phone")
    equal(bob_app.collect(5), [(i, True, t) for i, _, t in wanted[0::2]], "bob's own at his app")
    everything += [i for i, _, _ in wanted]

    # Each device that can send writes to the friend. The other devices get the message, marked as own. The sending
    # device does not get it.
    for sender in (phone, tablet):
        text = f"to bob from the {type(sender).__name__}"
        sent = sender.send(bob.uid, text)
        received([d for d in devices if d is not sender], [(sent, True, text)], "one's own")
        received((bob_phone, bob_app), [(sent, False, text)], "at bob")
        everything.append(sent)

    # One device after another is offline, while the other devices continue. When it returns, it gets everything in
    # order.
    for away in devices:
        away.go()
        others = [d for d in devices if d is not away]
        wanted = []
        for n in range(20):
            if n % 3 == 2 and phone is not away:
                text = f"own while the {type(away).__name__} was away {n}"
                wanted.append((phone.send(bob.uid, text), True, text))
            else:
                text = f"while the {type(away).__name__} was away {n}"
                wanted.append((bob_app.send(ann.uid, text), False, text))
        for device in others:
            mine = [w for w in wanted if not (w[1] and device is phone)]
            equal(device.collect(len(mine)), mine, f"at the {type(device).__name__} while another was away")
        away.come()
        equal(away.collect(len(wanted)), wanted, f"at the {type(away).__name__} when it returned")
        everything += [i for i, _, _ in wanted]

    # No message comes twice: after the last message, no other message waits on any device.
    last = (bob_app.send(ann.uid, "last"), False, "last")
    received(devices, [last], "the last")
    equal(len(set(everything)), len(everything), "distinct ids")
    for device in devices:
        device.link.ping()
        left = device.left()
        require(not left, f"something else came to the {type(device).__name__}: {left[:3]}")


def all_at_once(world: World):
    """A new device of each kind starts at the account's oldest undelivered message."""
    ann, bob = world.person("ann"), world.person("bob")
    world.phone(ann, "phone").close()
    a = world.app(bob)
    ids = [a.send(ann.uid, f"n {n}").message_id for n in range(10)]
    for device in (Phone(world, ann), Tablet(world, ann), Watch(world, ann)):
        equal([i for i, _, _ in device.collect(10)], ids, f"at the new {type(device).__name__}")


CHECKS = [
    ("one person on three protocols: once per device, from any to all, in order after being away", everyone),
    ("one person on three protocols: new devices get what was not delivered yet", all_at_once),
]
