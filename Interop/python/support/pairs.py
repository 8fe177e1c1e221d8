# Hermes
# SPDX-License-Identifier: Apache-2.0
"""Well-behaved pairs, with one process for each protocol. The ends of a pair exchange a message and its answer, again
and again. No message may be lost, duplicated or changed."""

import contextlib
import multiprocessing
import os
import socket
import time

from clients import mqtt
from hermes.v1 import inbox_pb2
from clients.delimited import text_to
from clients.impb import text_of
from clients.liveroom import TEXT
from liveroom import liveroom_pb2
from support.checks import equal, require
from support.world import World

PATIENCE = 60


class Patient(World):
    """A world with a long time-out. Under attack, answers may be slow, and the caller measures them."""

    def _open(self, kind, listener: str, **more):
        return super()._open(kind, listener, timeout=PATIENCE, **more)


class DelimitedPair:
    def __init__(self, ports, number):
        world = Patient(ports)
        self.people = world.person(f"pair-a{number}"), world.person(f"pair-b{number}")
        self.ends = [world.app(person) for person in self.people]

    def exchange(self, text: str) -> None:
        for one in (0, 1):
            sender, receiver = self.ends[one], self.ends[1 - one]
            request = sender.put(send=text_to(0, self.people[1 - one].uid, text).send)
            event = receiver.event(timeout=PATIENCE)
            equal(event.message.content.text, text, "the message")
            equal(event.message.id, sender.result(request, timeout=PATIENCE).receipt.message_id, "its id")
            receiver.put(wanted=False, acknowledge=inbox_pb2.Acknowledge(up_to_seq=event.seq))


class IMPBPair:
    def __init__(self, ports, number):
        world = Patient(ports)
        self.people = world.person(f"pair-c{number}"), world.person(f"pair-d{number}")
        self.ends = [world.phone(person) for person in self.people]

    def exchange(self, text: str) -> None:
        for one in (0, 1):
            self.ends[one].send_text(self.people[1 - one].uid, text)
            equal(text_of(self.ends[1 - one].chat_message(timeout=PATIENCE)), text, "the message")


class QSIOPPair:
    """An app with the native protocol that sends to a small QSIOP device. The device confirms each message."""

    def __init__(self, ports, number):
        world = Patient(ports)
        self.person = world.person(f"pair-e{number}")
        self.app, self.watch = world.app(world.person(f"pair-f{number}")), world.watch(self.person)

    def exchange(self, text: str) -> None:
        request = self.app.put(send=text_to(0, self.person.uid, text).send)
        push = self.watch.push(timeout=PATIENCE)
        require(text in push.values(), f"{text} is not in {push}")
        self.watch.confirm(push)
        self.app.result(request, timeout=PATIENCE)


class LiveRoomPair:
    def __init__(self, ports, number):
        world = Patient(ports)
        self.ends = [world.liveroom(), world.liveroom()]
        self.name = f"viewer-{number}-"
        for one, end in enumerate(self.ends):
            end.settle(f"{self.name}{one}")

    def keep_alive(self) -> None:
        for end in self.ends:
            end.beat()

    def exchange(self, text: str) -> None:
        for one in (0, 1):
            text_here = f"{self.name}{one} {text}"
            self.ends[one].text(f"{self.name}{one}", text_here)
            for end in self.ends:
                end.expect(lambda f: f[0] == TEXT and liveroom_pb2.ChatMessage.FromString(f[1]).text == text_here,
                           "the text", PATIENCE)
                # Discards the texts of the other pairs in the same room.
                end.waiting.clear()


class MQTTEnd:
    def __init__(self, port: int, name: str, source: str):
        self.link = socket.create_connection(("127.0.0.1", port), PATIENCE, (source, 0))
        self.link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer, self.waiting = bytearray(), []
        self.link.sendall(mqtt.connect(name))
        self.take(mqtt.CONNACK)

    def take(self, kind: int) -> tuple[int, bytes]:
        while True:
            while self.waiting:
                found, flags, body = self.waiting.pop(0)
                if found == kind:
                    return flags, body
            data = self.link.recv(65536)
            require(data, "the server closed a well-behaved connection")
            self.buffer += data
            self.waiting += list(mqtt.packets(self.buffer))


class MQTTPair:
    def __init__(self, ports, number):
        self.number = number
        self.ends = [MQTTEnd(ports["mqtt"], f"pair-{number}-{one}", f"127.1.200.{number % 250 + 1}") for one in (0, 1)]
        for one, end in enumerate(self.ends):
            end.link.sendall(mqtt.subscribe(1, [(f"pair/{number}/{one}", 1)]))
            end.take(mqtt.SUBACK)
        self.sent = 0

    def exchange(self, text: str) -> None:
        for one in (0, 1):
            self.sent += 1
            sender, receiver = self.ends[one], self.ends[1 - one]
            sender.link.sendall(mqtt.publish(f"pair/{self.number}/{1 - one}", text.encode(), 1, self.sent % 65535 + 1))
            came = mqtt.Publication(*receiver.take(mqtt.PUBLISH), mqtt.FIVE)
            equal(came.payload, text.encode(), "the message")
            receiver.link.sendall(mqtt.acknowledge(mqtt.PUBACK, came.packet_id))
            sender.take(mqtt.PUBACK)


KINDS = {"delimited": DelimitedPair, "impb": IMPBPair, "qsiop": QSIOPPair, "liveroom": LiveRoomPair, "mqtt": MQTTPair}


def _serve(kind, ports, count, pause, link) -> None:
    """Runs the pairs of a protocol in their own process. If possible, it has the highest priority and does not wait for
    a processor, because real clients have their own processors and only the server is measured."""
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, -20)
    try:
        pairs = [KINDS[kind](ports, number) for number in range(count)]
        number, times, beaten = 0, [], 0.0
        link.send("ready")
        while True:
            if link.poll():
                if link.recv() == "end":
                    return
                link.send(times)
                times = []
            if kind == "liveroom" and time.monotonic() - beaten > 1:
                beaten = time.monotonic()
                for pair in pairs:
                    pair.keep_alive()
            number += 1
            began = time.perf_counter()
            pairs[number % count].exchange(f"m{number}")
            times.append(time.perf_counter() - began)
            time.sleep(pause)
    except Exception as error:  # the parent reports it
        link.send(f"{type(error).__name__}: {error}")


class Pairs:
    """`count` pairs of every protocol."""

    def __init__(self, ports, count: int, pause: float = 0.02):
        self.links = {}
        for kind in KINDS:
            mine, theirs = multiprocessing.Pipe()
            multiprocessing.Process(target=_serve, args=(kind, ports, count, pause, theirs), daemon=True).start()
            self.links[kind] = mine
        for kind, link in self.links.items():
            require(link.poll(120), f"the pairs of {kind} are not there")
            equal(link.recv(), "ready", f"the pairs of {kind}")

    def take(self) -> dict[str, list[float]]:
        """Returns the durations of the round trips since the last call, in seconds and in ascending order."""
        for kind, link in self.links.items():
            require(not link.poll(), lambda: f"a pair of {kind}: {link.recv()}")
            link.send("report")
        found = {}
        for kind, link in self.links.items():
            require(link.poll(PATIENCE + 5), f"a pair of {kind} hangs")
            said = link.recv()
            require(isinstance(said, list), f"a pair of {kind}: {said}")
            found[kind] = sorted(said)
        return found

    def end(self) -> None:
        for link in self.links.values():
            try:
                link.send("end")
            except OSError:
                pass  # its error was already reported


def p99(times: list[float]) -> float:
    return times[min(len(times) - 1, len(times) * 99 // 100)] if times else float("inf")
