# Hermes
# SPDX-License-Identifier: Apache-2.0
"""Checks of servers with other settings: history, and small limits. For each limit, one client exceeds it while another
client does not."""

import time

from clients.delimited import Refused, encode
from clients.link import Closed
from hermes.v1 import message_pb2, packet_pb2
from support.checks import equal, require
from support.server import Server
from support.world import PASSWORD, World

LOGIN_DELAYED = 1007


def connections_per_address():
    with Server({"HERMES_LIMITS_CONNECTIONS_PER_ADDRESS": "3"}) as server:
        world, other = World(server.ports), World(server.ports)
        links = [world.impb(), world.delimited(), world.qsiop()]
        for link in links:
            link.ping()
        extra = world.delimited()
        try:
            extra.ping()
        except (Closed, OSError):
            pass
        else:
            raise AssertionError("a fourth connection from one address was served")
        other.delimited().ping()
        links.pop().close()
        deadline = time.monotonic() + 5
        while True:  # the server notices the close at an unknown time
            try:
                world.delimited().ping()
                break
            except (Closed, OSError):
                require(time.monotonic() < deadline, "the place of a closed connection is not free again")


def requests_per_second():
    """Requests above the rate wait or end their connection. Another client is served at the same time."""
    with Server({"HERMES_LIMITS_REQUESTS_PER_SECOND": "50"}) as server:
        world, other = World(server.ports), World(server.ports)
        quiet = other.app(other.person("ann"))
        loud = world.app(world.person("bob"))
        began = time.monotonic()
        try:
            loud.write(encode(packet_pb2.Packet(id=7, ping=packet_pb2.Ping())) * 5000)
            loud.closes(3)
        except OSError:
            pass
        seconds = time.monotonic() - began
        kicked = [p.kicked for p in loud.waiting if p.WhichOneof("body") == "kicked"]
        require(not kicked or kicked[0].reason == packet_pb2.Kicked.REASON_LIMIT, f"kicked with {kicked}")
        answered = sum(1 for p in loud.waiting if p.WhichOneof("body") == "pong")
        require(answered <= 50 * (seconds + 2), f"{answered} were answered in {seconds:.1f} s")
        began = time.monotonic()
        quiet.ping()
        require(time.monotonic() - began < 1, "the quiet one waited for the loud one")
        return f"{answered} answered in {seconds:.1f} s"


def time_to_authenticate():
    with Server({"HERMES_LIMITS_TIME_TO_AUTHENTICATE": "1s"}) as server:
        world = World(server.ports)
        links = {"impb": world.impb(), "delimited": world.delimited(), "qsiop": world.qsiop()}
        app = world.app(world.person("ann"))
        lived = {}
        for name, link in links.items():
            began = time.monotonic()
            require(link.closes(4), f"{name}: a connection that does not authenticate stays open")
            lived[name] = time.monotonic() - began
        app.closes(1.5)  # longer than the limit
        app.ping()


def idle():
    with Server({"HERMES_LIMITS_IDLE": "2s"}) as server:
        world = World(server.ports)
        silent, beating = world.app(world.person("ann")), world.app(world.person("bob"))
        equal(silent.session.idle_timeout_ms, 2000, "the idle time that is told")
        began = time.monotonic()
        while not silent.closes(0.5):
            beating.ping()
            require(time.monotonic() < began + 6, "a silent connection stays open")
        beating.ping()


def frame_size():
    with Server({"HERMES_LIMITS_FRAME": "2KiB"}) as server:
        world = World(server.ports)
        ann = world.person("ann")
        app = world.app(ann)
        equal(app.session.max_frame_bytes, 2048, "the frame size that is told")
        app.send(ann.uid, "x" * 1500)
        try:
            app.send(ann.uid, "x" * 3000)
        except (Closed, OSError):
            return
        raise AssertionError("a frame above the limit was served")


def login_failures():
    """Password guesses are delayed per address. Other clients can log in at the same time."""
    with Server({"HERMES_LIMITS_LOGIN_FAILURES_PER_ADDRESS": "5"}) as server:
        world, other = World(server.ports), World(server.ports)
        ann, bob = other.person("ann"), other.person("bob")
        delayed = None
        for n in range(30):
            try:
                world.delimited().login(world.name("nobody"), f"guess number {n}")
            except Refused as refusal:
                if refusal.code == LOGIN_DELAYED:
                    delayed = refusal
                    break
        require(delayed, "30 wrong guesses from one address were all answered at once")
        require(delayed.error.retry_after_ms > 0, "the delay is not told")
        other.app(bob)
        # Guesses of one account's password also delay that account, from any address.
        delayed = None
        for n in range(150):
            stranger = World(server.ports)
            try:
                stranger.delimited().login(ann.nick_name, f"guess number {n}")
            except Refused as refusal:
                if refusal.code == LOGIN_DELAYED:
                    delayed = refusal
                    break
            finally:
                stranger.close()
        require(delayed, "150 wrong guesses for one account from 150 addresses were all answered at once")
        other.delimited().login(token=ann.token)  # the owner's devices can log in with their tokens


def slow_reader():
    """A client does not read its messages. The server's memory stays bounded."""
    with Server({"HERMES_LIMITS_OUTBOUND_QUEUE": "64KiB"}) as server:
        world = World(server.ports)
        ann, bob = world.person("ann"), world.person("bob")
        a, slow = world.app(ann), world.app(bob)
        before = server.resident_bytes()
        text = "x" * 10_000
        ids = []
        for n in range(1000):  # 10 MB, of which the slow client reads nothing
            ids.append(a.send(bob.uid, text).message_id)
        grown = server.resident_bytes() - before
        require(grown < 200 << 20, f"memory grew by {grown >> 20} MiB")
        found = []
        try:  # unread messages are not lost, even if the server has closed the connection
            while len(found) < len(ids):
                event = slow.event(timeout=5)
                found.append(event.message.id)
                if len(found) % 50 == 0:
                    slow.acknowledge(event.seq)
        except (Closed, TimeoutError):
            slow = world.app(bob, epoch=slow.session.epoch, after=event.seq)
            while len(found) < len(ids):
                event = slow.event(timeout=5)
                found.append(event.message.id)
                if len(found) % 50 == 0:
                    slow.acknowledge(event.seq)
        equal(found, ids, "what the slow reader got in the end")
        return f"memory grew by {grown / (1 << 20):.1f} MiB"


def history():
    """With the history on, all messages can be read page by page, including delivered ones."""
    with Server({"HERMES_STORE_HISTORY_DAYS": "7"}) as server:
        world = World(server.ports)
        ann, bob = world.person("ann"), world.person("bob")
        a = world.app(ann)
        b = world.app(bob)
        ids = [a.send(bob.uid, f"n {n}").message_id for n in range(5)]
        for _ in ids:
            last = b.event()
        b.acknowledge(last.seq)
        conversation = message_pb2.Conversation(uid=bob.uid)
        answer = a.ask(history=message_pb2.HistoryRequest(conversation=conversation, limit=3)).history
        equal([m.id for m in answer.messages], ids[2:], "the newest three")
        require(answer.more, "more is not told")
        earlier = a.ask(history=message_pb2.HistoryRequest(
            conversation=conversation, limit=3, before_seq=answer.messages[0].conversation_seq)).history
        equal([m.id for m in earlier.messages], ids[:2], "those before")
        require(not earlier.more, "more is told where nothing is")


def registration_closed():
    with Server({"HERMES_ACCOUNTS_REGISTRATION": "closed"}) as server:
        world = World(server.ports)
        try:
            world.delimited().register(world.name("ann"), PASSWORD)
        except Refused as refusal:
            equal(refusal.code, 1008, "the code")
            return
        raise AssertionError("registration is open")


CHECKS = [
    ("limits: connections per address", connections_per_address),
    ("limits: requests per second", requests_per_second),
    ("limits: time to authenticate", time_to_authenticate),
    ("limits: idle", idle),
    ("limits: frame size", frame_size),
    ("limits: failed logins", login_failures),
    ("limits: a slow reader", slow_reader),
    ("limits: registration closed", registration_closed),
    ("history, switched on", history),
]
