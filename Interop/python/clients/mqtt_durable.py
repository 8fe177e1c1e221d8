# Hermes
# SPDX-License-Identifier: Apache-2.0
"""A publisher and a subscriber with persistent sessions. They reconnect after crashes of the server and keep journals.

They follow the standard exactly (sections 4.3 and 4.4). On the next connection, the publisher sends each unacknowledged
message again once, in the original order, with the same packet id and with DUP. With QoS 2, the subscriber accepts a
packet id only once until its release. Every violation of the standard by the server becomes a complaint.
"""

import asyncio
import dataclasses
import logging
import struct

from clients import mqtt

# asyncio logs warnings for writes to closed connections. These clients often write to a connection that a kill has cut.
logging.getLogger("asyncio").setLevel(logging.ERROR)

EXPIRY = 3600
LIMIT = 20


@dataclasses.dataclass
class PublisherBook:
    """The journal of one publisher: its sent and acknowledged messages. Numbers begin at 1 for each quality of
    service."""

    name: str
    acknowledged: dict[int, set[int]] = dataclasses.field(default_factory=lambda: {1: set(), 2: set()})
    retained: int = 0
    """The largest number whose retained publication was acknowledged."""
    retained_sent: int = 0
    again: int = 0
    complaints: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class SubscriberBook:
    """The journal of one subscriber: the received numbers in order, by publisher and quality of service."""

    name: str
    qualities: tuple[int, ...] = (1, 2)
    taken: dict[tuple[str, int], list[int]] = dataclasses.field(default_factory=dict)
    again: int = 0
    complaints: list[str] = dataclasses.field(default_factory=list)


class Client(asyncio.Protocol):
    """A client with one client id. It reconnects whenever the connection is lost, until `end` is called."""

    def __init__(self, port: int, client_id: str, version: int, complaints: list[str]):
        self.port, self.client_id, self.version, self.complaints = port, client_id, version, complaints
        self.transport: asyncio.Transport | None = None
        self.buffer = bytearray()
        self.lost = asyncio.Event()
        self.live = False
        self.ending = False
        self.connections = 0
        self.had_session = False

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        while not self.ending:
            self.lost.clear()
            try:
                await loop.create_connection(lambda: self, "127.0.0.1", self.port)
            except OSError:
                await asyncio.sleep(0.05)  # the server is down: try again, bounded by the test's time limit
                continue
            await self.lost.wait()

    def complain(self, text: str) -> None:
        if len(self.complaints) < LIMIT:
            self.complaints.append(text)

    def connection_made(self, transport) -> None:
        self.transport = transport
        self.buffer.clear()
        self.connections += 1
        transport.write(mqtt.connect(self.client_id, self.version, clean=False, keep_alive=0,
                                     expiry=EXPIRY if self.version == mqtt.FIVE else 0))

    def connection_lost(self, _) -> None:
        self.live = False
        self.transport = None
        self.lost.set()

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        try:
            for kind, flags, body in mqtt.packets(self.buffer):
                self._packet(kind, flags, body)
        except (mqtt.Malformed, struct.error, IndexError, UnicodeDecodeError) as error:
            self.complain(f"malformed: {error}")
            self.transport.abort()
        if self.transport is not None:
            self.after_batch()

    def _packet(self, kind: int, flags: int, body: bytes) -> None:
        if kind == mqtt.CONNACK:
            if body[1] != 0:
                self.complain(f"CONNACK with {body[1]:#x}")
                return self.transport.abort()
            present = body[0] == 1
            if self.had_session and not present:
                self.complain("the session is gone")
            self.had_session = True
            self.live = True
            self.connected(present)
        elif not self.live:
            self.complain(f"packet {kind} before CONNACK")
        elif kind == mqtt.DISCONNECT:
            pass  # the server announces an orderly shutdown
        else:
            self.received(kind, flags, body)

    def end(self) -> None:
        """Sends DISCONNECT and closes the connection. The session remains."""
        self.ending = True
        if self.transport is not None:
            self.transport.write(mqtt.BYE)
            self.transport.close()
        self.lost.set()

    def connected(self, present: bool) -> None:
        raise NotImplementedError

    def received(self, kind: int, flags: int, body: bytes) -> None:
        raise NotImplementedError

    def after_batch(self) -> None:
        """Called when all received packets were handled."""


class Publisher(Client):
    """Publishes numbers with QoS 1 and 2 as fast as the server acknowledges them. Each quality has its own topic. Every
    fiftieth number with QoS 1 is also published as a retained message."""

    def __init__(self, port: int, root: str, name: str, version: int, window: int, book: PublisherBook):
        super().__init__(port, f"{root}-{name}", version, book.complaints)
        self.root, self.name, self.window, self.book = root, name, window, book
        self.next = {1: 1, 2: 1}
        self.inflight: dict[int, list] = {}  # packet id -> [quality, number, released, topic, retained], oldest first
        self.last_id = 0
        self.sending = True

    def connected(self, present: bool) -> None:
        made = bytearray()
        for packet_id, (quality, count, released, topic, retained) in self.inflight.items():
            self.book.again += 1
            made += mqtt.acknowledge(mqtt.PUBREL, packet_id) if released else mqtt.publish(
                topic, b"%d" % count, quality, packet_id, True, retained, self.version)
        self.transport.write(bytes(made))

    def after_batch(self) -> None:
        if not (self.live and self.sending):
            return
        made = bytearray()
        for quality in (1, 2):
            under_way = sum(1 for one in self.inflight.values() if one[0] == quality)
            for _ in range(self.window - under_way):
                count = self.next[quality]
                self.next[quality] += 1
                made += self._new(quality, count, f"{self.root}/{self.name}/{quality}", False)
                if quality == 1 and count % 50 == 0:
                    self.book.retained_sent = count
                    made += self._new(1, count, f"{self.root}/{self.name}/kept", True)
        if made:
            self.transport.write(bytes(made))

    def _new(self, quality: int, count: int, topic: str, retained: bool) -> bytes:
        while True:
            self.last_id = self.last_id % 65535 + 1
            if self.last_id not in self.inflight:
                break
        self.inflight[self.last_id] = [quality, count, False, topic, retained]
        return mqtt.publish(topic, b"%d" % count, quality, self.last_id, False, retained, self.version)

    def received(self, kind: int, flags: int, body: bytes) -> None:
        packet_id = struct.unpack_from(">H", body)[0]
        entry = self.inflight.get(packet_id)
        # The server answers "not found" to a repeated PUBREL that it had already received (section 3.7.2.1).
        if mqtt.reason(kind, body) >= 0x80 and (kind, mqtt.reason(kind, body)) != (mqtt.PUBCOMP, 0x92):
            return self.complain(f"packet {kind} for {packet_id} with {mqtt.reason(kind, body):#x}")
        if entry is None or kind not in (mqtt.PUBACK, mqtt.PUBREC, mqtt.PUBCOMP):
            return self.complain(f"packet {kind} for {packet_id}, which is not under way")
        quality, count, released, _, retained = entry
        if (kind == mqtt.PUBACK) != (quality == 1):
            return self.complain(f"packet {kind} for a message of QoS {quality}")
        if kind == mqtt.PUBREC:
            entry[2] = True
            self.book.acknowledged[2].add(count)
            self.transport.write(mqtt.acknowledge(mqtt.PUBREL, packet_id))
            return
        if kind == mqtt.PUBCOMP and not released:
            return self.complain(f"PUBCOMP for {packet_id} before PUBREC")
        if retained:
            self.book.retained = max(self.book.retained, count)
        elif kind == mqtt.PUBACK:
            self.book.acknowledged[1].add(count)
        del self.inflight[packet_id]


class Subscriber(Client):
    """Subscribes to everything below the root, and records the received numbers."""

    def __init__(self, port: int, root: str, client_id: str, version: int, book: SubscriberBook):
        super().__init__(port, client_id, version, book.complaints)
        self.root, self.book = root, book
        self.subscribed = False
        self.unreleased: dict[int, tuple[str, bytes]] = {}  # QoS 2, over all connections
        self.this_connection: set[int] = set()
        self.count = 0

    def connected(self, present: bool) -> None:
        self.this_connection.clear()
        if not self.subscribed:
            filters = [(f"{self.root}/+/{quality}", quality) for quality in self.book.qualities]
            self.transport.write(mqtt.subscribe(1, filters, self.version))

    def received(self, kind: int, flags: int, body: bytes) -> None:
        if kind == mqtt.SUBACK:
            if any(code >= 0x80 for code in body[-len(self.book.qualities):]):
                self.complain(f"SUBACK {body.hex()}")
            self.subscribed = True
        elif kind == mqtt.PUBREL:
            packet_id = struct.unpack_from(">H", body)[0]
            self.unreleased.pop(packet_id, None)
            self.this_connection.discard(packet_id)
            self.transport.write(mqtt.acknowledge(mqtt.PUBCOMP, packet_id))
        elif kind == mqtt.PUBLISH:
            self._publication(mqtt.Publication(flags, body, self.version))
        else:
            self.complain(f"packet {kind}")

    def _publication(self, one: mqtt.Publication) -> None:
        _, publisher, quality = one.topic.rsplit("/", 2)
        if one.qos != int(quality):
            return self.complain(f"{one.topic} came at QoS {one.qos}")
        if one.dup:
            self.book.again += 1
        if one.qos == 2:
            if one.packet_id in self.this_connection:
                self.complain(f"packet id {one.packet_id} is used a second time before PUBREL")
            self.this_connection.add(one.packet_id)
            before = self.unreleased.get(one.packet_id)
            if before is not None:
                if before != (one.topic, one.payload):
                    self.complain(f"packet id {one.packet_id} was {before}, now {(one.topic, one.payload)}")
                if not one.dup:
                    self.complain(f"packet id {one.packet_id} comes again without DUP")
            else:
                self.unreleased[one.packet_id] = (one.topic, one.payload)
                self._take(publisher, 2, int(one.payload))
            self.transport.write(mqtt.acknowledge(mqtt.PUBREC, one.packet_id))
        else:
            self._take(publisher, 1, int(one.payload))
            self.transport.write(mqtt.acknowledge(mqtt.PUBACK, one.packet_id))

    def _take(self, publisher: str, quality: int, count: int) -> None:
        self.book.taken.setdefault((publisher, quality), []).append(count)
        self.count += 1


def violations(publishers: list[PublisherBook], subscribers: list[SubscriberBook],
               retained: dict[str, int] | None = None) -> list[str]:
    """Returns the violations of the guarantees, at most a few of each kind."""
    found = [f"{book.name}: {text}" for book in [*publishers, *subscribers] for text in book.complaints]
    for subscriber in subscribers:
        for publisher in publishers:
            for quality in subscriber.qualities:
                who = f"{subscriber.name} from {publisher.name} at QoS {quality}"
                found += _stream(who, quality, subscriber.taken.get((publisher.name, quality), []),
                                 publisher.acknowledged[quality])
        known = {publisher.name for publisher in publishers}
        found += [f"{subscriber.name}: from {name}, who never published" for name, _ in subscriber.taken if name not in known]
    for publisher in publishers:
        if retained is not None:
            kept = retained.get(publisher.name, 0)
            if not publisher.retained <= kept <= publisher.retained_sent:
                found.append(f"{publisher.name}: {kept} is retained, {publisher.retained} was acknowledged")
    return found


def _stream(who: str, quality: int, taken: list[int], acknowledged: set[int]) -> list[str]:
    found: list[str] = []
    newest = 0
    for count in taken:
        if count > newest + 1:
            found.append(f"{who}: {newest + 1} is missing before {count}")
        elif count <= newest and quality == 2:
            found.append(f"{who}: {count} a second time, after {newest}")
        newest = max(newest, count)
    lost = sorted(acknowledged - set(taken))
    if lost:
        found.append(f"{who}: {len(lost)} that were acknowledged never came, the first is {lost[0]}")
    return found[:LIMIT]
