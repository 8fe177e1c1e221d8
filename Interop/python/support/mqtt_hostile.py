# Hermes
# SPDX-License-Identifier: Apache-2.0
"""MQTT clients that are too many, too fast, too slow or too large. Each attack is a coroutine in its own process. It
ends by itself and returns its counts. `seconds` limits the attacks that would otherwise not end."""

import asyncio
import itertools
import resource
import socket
import time

from clients import mqtt

DEEP = "/".join(["a"] * 32768)  # 65,535 bytes, 32,768 levels
_sources = itertools.count(1)


class Peer(asyncio.Protocol):
    """A connection that counts the received bytes and discards them. With `parse`, it also counts the packets of each
    kind."""

    def __init__(self, hello: bytes, parse: bool = False):
        self.hello, self.parse = hello, parse
        self.transport: asyncio.Transport | None = None
        self.accepted = asyncio.get_running_loop().create_future()
        self.ended = asyncio.Event()
        self.writable = asyncio.Event()
        self.writable.set()
        self.buffer = bytearray()
        self.bytes = 0
        self.counts: dict[int, int] = {}
        self.last = 0.0

    def connection_made(self, transport) -> None:
        self.transport = transport
        transport.write(self.hello)

    def data_received(self, data: bytes) -> None:
        self.bytes += len(data)
        self.last = time.monotonic()
        if not self.accepted.done():
            self.accepted.set_result(data[:1] == b"\x20" and data[3:4] == b"\x00")
        if self.parse:
            self.buffer += data
            for kind, _, _ in mqtt.packets(self.buffer):
                self.counts[kind] = self.counts.get(kind, 0) + 1

    def pause_writing(self) -> None:
        self.writable.clear()

    def resume_writing(self) -> None:
        self.writable.set()

    def connection_lost(self, _) -> None:
        if not self.accepted.done():
            self.accepted.set_result(False)
        self.ended.set()
        self.writable.set()

    async def write(self, data: bytes) -> bool:
        """Writes once the buffer has space. Returns False if the connection has ended."""
        await self.writable.wait()
        if self.ended.is_set():
            return False
        self.transport.write(data)
        return True

    async def gets(self, kind: int, count: int, patience: float = 30) -> bool:
        """Waits until `count` packets of a kind have arrived. Returns False if nothing arrives for `patience`
        seconds."""
        self.last = time.monotonic()
        while self.counts.get(kind, 0) < count:
            if self.ended.is_set() or time.monotonic() - self.last > patience:
                return False
            await asyncio.sleep(0.01)  # polling the data that this loop's protocol collects
        return True


async def peer(port: int, client_id: str, parse: bool = False, receive_buffer: int = 0, **more) -> Peer:
    """Connects from one of many loopback addresses, so that the client reaches no limit per address."""
    link = socket.socket()
    if receive_buffer:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    link.setblocking(False)
    link.bind((f"127.3.{next(_sources) // 4 % 250}.7", 0))
    loop = asyncio.get_running_loop()
    await loop.sock_connect(link, ("127.0.0.1", port))
    _, made = await loop.create_connection(lambda: Peer(mqtt.connect(client_id, **more), parse), sock=link)
    if not await made.accepted:
        raise ConnectionError(f"{client_id} was not accepted")
    return made


async def slow_consumers(port: int, seconds: float) -> str:
    """20 subscribers with QoS 0 and 1 that read nothing while messages of 8 KiB are published to them."""
    slow = []
    for n in range(20):
        one = await peer(port, f"slow-{n}", receive_buffer=4096)
        one.transport.write(mqtt.subscribe(1, [("hostile/slow", n % 2)]))
        slow.append(one)
    await asyncio.sleep(0.2)
    for one in slow:
        one.transport.pause_reading()
    publisher = await peer(port, "slow-publisher", parse=True)
    payload, sent, end = bytes(8192), 0, time.monotonic() + seconds
    while time.monotonic() < end:
        packet_id = sent % 65535 + 1
        quality = sent % 2
        if not await publisher.write(mqtt.publish("hostile/slow", payload, quality, packet_id if quality else 0)):
            raise ConnectionError(f"the publisher was put out after {sent} messages")
        sent += 1
        if sent % 20 == 0:
            await asyncio.sleep(0.005)  # 4,000 messages a second; the attack is the subscribers that do not read
    gone = sum(one.ended.is_set() for one in slow)
    return f"{sent} messages of 8 KiB, {gone} of 20 were put out"


async def publisher_flood(port: int, seconds: float) -> str:
    """4 publishers with QoS 0 that never pause, and one reader."""
    reader = await peer(port, "flood-reader")
    reader.transport.write(mqtt.subscribe(1, [("hostile/flood/#", 0)]))
    sent = [0] * 4

    async def flood(n: int) -> None:
        one = await peer(port, f"flood-{n}")
        batch = b"".join(mqtt.publish(f"hostile/flood/{n % 2}", b"x" * 64) for _ in range(500))
        end = time.monotonic() + seconds
        while time.monotonic() < end and await one.write(batch):
            sent[n] += 500
            await asyncio.sleep(0)
        one.transport.abort()

    await asyncio.gather(*(flood(n) for n in range(4)))
    if not all(sent):
        raise ConnectionError(f"a publisher was put out at once: {sent}")
    return f"{sum(sent) / seconds:,.0f} messages a second were taken"


async def retained_topics(port: int, seconds: float, count: int = 100_000) -> str:
    """100,000 retained topics, a subscriber to all of them, and the removal of all retained messages."""
    publisher = await peer(port, "retained-publisher", parse=True)

    async def publish_all(payload: bytes) -> float:
        began, before = time.monotonic(), publisher.counts.get(mqtt.PUBACK, 0)
        for at in range(0, count, 500):
            await publisher.write(b"".join(
                mqtt.publish(f"hostile/retained/{n // 100}/{n % 100}", payload, 1, n % 65535 + 1, retain=True)
                for n in range(at, min(at + 500, count))))
            # The publisher waits, so that it stays within the server's receive maximum.
            if not await publisher.gets(mqtt.PUBACK, before + at + 500 - 200):
                raise ConnectionError(f"no acknowledgements after {publisher.counts}")
        if not await publisher.gets(mqtt.PUBACK, before + count):
            raise ConnectionError("not all were acknowledged")
        return time.monotonic() - began

    setting = await publish_all(b"x" * 32)
    reader = await peer(port, "retained-reader", parse=True)
    began = time.monotonic()
    reader.transport.write(mqtt.subscribe(1, [("hostile/retained/#", 0)]))
    complete = await reader.gets(mqtt.PUBLISH, count)
    reading = time.monotonic() - began
    came = reader.counts.get(mqtt.PUBLISH, 0)
    reader.transport.abort()
    clearing = await publish_all(b"")
    if not complete:
        raise ConnectionError(f"{came} of {count} retained messages came")
    return f"set in {setting:.1f} s, read in {reading:.1f} s, cleared in {clearing:.1f} s"


async def deep_topics(port: int, seconds: float) -> str:
    """A topic of 65,535 bytes and 32,768 levels, with publications, retained messages, and subscriptions with wildcards
    at every level."""
    filters = [DEEP, "/".join(["+"] * 32768), "/".join(["+", "a"] * 16384), "/".join(["a"] * 16000) + "/#", "a/#",
               "/".join(["+"] * 30000) + "/#"]
    reader = await peer(port, "deep-reader", parse=True)
    for n, name in enumerate(filters):
        await reader.write(mqtt.subscribe(n + 1, [(name, 1 if n % 2 else 0)]))
    if not await reader.gets(mqtt.SUBACK, len(filters), 10):
        raise ConnectionError(f"the filters were not answered: {reader.counts}")
    publisher = await peer(port, "deep-publisher", parse=True)
    sent, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        sent += 1
        name = DEEP if sent % 2 else DEEP[:-1] + "b"
        if not await publisher.write(mqtt.publish(name, b"x", 1, sent % 65535 + 1, retain=sent % 10 == 0)):
            raise ConnectionError(f"the publisher was put out after {sent}")
        if not await publisher.gets(mqtt.PUBACK, sent, 10):
            raise ConnectionError(f"the publisher was put out after {sent}")
    for name in (DEEP, DEEP[:-1] + "b"):
        sent += 1
        await publisher.write(mqtt.publish(name, b"", 1, sent % 65535 + 1, retain=True))
    await publisher.gets(mqtt.PUBACK, sent, 10)
    return f"{sent / seconds:,.0f} publications a second, {reader.counts.get(mqtt.PUBLISH, 0)} came"


async def everybody(port: int, seconds: float, count: int = 1000) -> str:
    """1,000 clients that subscribe to # and get everything, including the pair's messages."""
    peers = []
    for at in range(0, count, 50):
        peers += await asyncio.gather(*(peer(port, f"all-{n}") for n in range(at, at + 50)))
    for one in peers:
        one.transport.write(mqtt.subscribe(1, [("#", 0)]))
    publisher = await peer(port, "all-publisher")
    sent, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        if not await publisher.write(mqtt.publish(f"hostile/all/{sent % 100}", b"x" * 64)):
            raise ConnectionError(f"the publisher was put out after {sent}")
        sent += 1
        await asyncio.sleep(0.05)
    await asyncio.sleep(0.2)
    gone = sum(one.ended.is_set() for one in peers)
    taken = sum(one.bytes for one in peers)
    for one in peers:
        one.transport.abort()
    return f"{sent} publications beside the pair's, {taken / 1e6:.0f} MB came, {gone} were put out"


async def many_subscriptions(port: int, seconds: float, count: int = 10_000) -> str:
    """One connection that makes and removes 10,000 subscriptions, in a loop. Two thirds of the filters have
    wildcards."""
    rounds, end = 0, time.monotonic() + seconds
    names = [f"hostile/many/{n // 3}/" + ("x", "+", "#")[n % 3] for n in range(count)]
    took = 0.0
    while time.monotonic() < end:
        began = time.monotonic()
        one = await peer(port, "many", parse=True)
        batches = [names[at:at + 500] for at in range(0, count, 500)]
        for number, batch in enumerate(batches):
            await one.write(mqtt.subscribe(number + 1, [(name, 1) for name in batch]))
        if not await one.gets(mqtt.SUBACK, len(batches)):
            raise ConnectionError(f"put out after {one.counts} while it subscribed")
        for n in range(1000):
            await one.write(mqtt.publish(f"hostile/many/{n}/x", b"x"))
        if not await one.gets(mqtt.PUBLISH, 1000):
            raise ConnectionError(f"only {one.counts} came")
        for number, batch in enumerate(batches[::2]):
            await one.write(mqtt.unsubscribe(number + 1, batch))
        if not await one.gets(mqtt.UNSUBACK, len(batches[::2])):
            raise ConnectionError(f"put out after {one.counts} while it unsubscribed")
        one.transport.abort()
        took = time.monotonic() - began
        rounds += 1
    return f"{rounds} rounds, the last in {took:.2f} s"


async def reconnect_storm(port: int, seconds: float, count: int = 10_000) -> str:
    """10,000 clients that connect, subscribe, lose their connections at the same moment, and connect again."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    count = min(count, limit - 200)
    waves = []
    for _ in range(2):
        began, peers = time.monotonic(), []
        places = asyncio.Semaphore(200)

        async def one(n: int) -> None:
            async with places:
                made = await peer(port, f"storm-{n}", clean=n % 4 != 0, expiry=0 if n % 4 else 30)
                made.transport.write(mqtt.subscribe(1, [(f"hostile/storm/{n}", 0)]))
                peers.append(made)

        await asyncio.gather(*(one(n) for n in range(count)))
        waves.append(time.monotonic() - began)
        for made in peers:
            made.transport.abort()
    return f"{count} connections in {waves[0]:.1f} s, again in {waves[1]:.1f} s"


ALL = [slow_consumers, publisher_flood, retained_topics, deep_topics, everybody, many_subscriptions, reconnect_storm]
