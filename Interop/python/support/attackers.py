# Hermes
# SPDX-License-Identifier: Apache-2.0
"""Attackers of every kind. Each is a coroutine in its own process. It attacks from a few addresses or from many until
its time is over, and returns its counts. No reaction of the server counts as an error here."""

import asyncio
import itertools
import os
import random
import resource
import socket
import time

from clients import delimited, liveroom, mqtt
from hermes.v1 import account_pb2, group_pb2, inbox_pb2, message_pb2
from hermes.v1.packet_pb2 import Packet

REFUSED = (OSError, asyncio.IncompleteReadError, EOFError, asyncio.TimeoutError)


class Sources:
    """Loopback addresses, which are used in turn."""

    def __init__(self, many: bool, block: int):
        self.addresses = itertools.cycle(
            [f"127.{block}.{n // 200}.{n % 200 + 1}" for n in range(4_000 if many else 4)])

    def next(self) -> str:
        return next(self.addresses)


async def connect(port: int, source: str, receive_buffer: int = 0):
    link = socket.socket()
    if receive_buffer:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    link.setblocking(False)
    try:
        link.bind((source, 0))
        await asyncio.wait_for(asyncio.get_running_loop().sock_connect(link, ("127.0.0.1", port)), 5)
        return await asyncio.open_connection(sock=link, limit=4096 if receive_buffer else 1 << 20)
    except BaseException:
        link.close()
        raise


async def repeat(end: float, body) -> None:
    while time.monotonic() < end:
        try:
            await body()
        except REFUSED:
            await asyncio.sleep(0.01)


async def gather(count: int, body) -> None:
    await asyncio.gather(*(body(n) for n in range(count)))


async def drain(reader, end: float) -> None:
    """Reads and discards data."""
    try:
        while time.monotonic() < end and await asyncio.wait_for(reader.read(65536), max(0.01, end - time.monotonic())):
            pass
    except REFUSED:
        pass


async def silent(ports, end, sources, scale, _) -> str:
    """5,000 connections that send nothing."""
    count, held, opened = int(5_000 * scale), [], 0
    names = ("delimited", "impb", "qsiop", "mqtt", "liveroom", "http")
    while time.monotonic() < end:
        held = [link for link in held if not link[0].at_eof()]
        while len(held) < count and time.monotonic() < end:
            try:
                held.append(await connect(ports[names[opened % len(names)]], sources.next()))
                opened += 1
            except REFUSED:
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.2)  # the attack is to hold the connections
    return f"{opened} opened, {len(held)} held"


async def garbage(ports, end, sources, scale, _) -> str:
    """1,000 connections a second that send random bytes."""
    chance, rate, sent = random.Random(1), 1_000 * scale, 0
    names = ("delimited", "impb", "qsiop", "mqtt", "liveroom", "http")

    async def one() -> None:
        try:
            _, writer = await connect(ports[chance.choice(names)], sources.next())
            writer.write(chance.randbytes(chance.choice((7, 100, 4_096))))
            writer.transport.abort() if chance.random() < 0.5 else writer.close()
        except REFUSED:
            pass

    began = time.monotonic()
    while time.monotonic() < end:
        due = int((time.monotonic() - began) * rate) - sent
        await asyncio.gather(*(one() for _ in range(min(max(due, 0), 50))))
        sent += min(max(due, 0), 50)
        await asyncio.sleep(0.005)
    return f"{sent} connections"


async def slow_readers(ports, end, sources, scale, _) -> str:
    """200 slow readers of LiveRoom and MQTT, and two clients that send to them."""
    held, frames = [], 0
    for n in range(int(200 * scale)):
        try:
            if n % 2:
                reader, writer = await connect(ports["mqtt"], sources.next(), 4096)
                writer.write(mqtt.connect(f"slow-{n}") + mqtt.subscribe(1, [("attack/slow", n // 2 % 2)]))
            else:
                reader, writer = await connect(ports["liveroom"], sources.next(), 4096)
            writer.transport.pause_reading()
            held.append((reader, writer))
        except REFUSED:
            pass

    async def talk(_) -> None:
        nonlocal frames
        reader, writer = await connect(ports["mqtt"], sources.next())
        asyncio.ensure_future(drain(reader, end))
        writer.write(mqtt.connect(f"talker-{random.random()}"))
        batch = b"".join(mqtt.publish("attack/slow", bytes(8192), 1, n + 1) for n in range(10))
        while time.monotonic() < end:
            writer.write(batch)
            frames += 10
            await asyncio.wait_for(writer.drain(), 5)
            await asyncio.sleep(0.01)

    await gather(2, lambda n: repeat(end, lambda: talk(n)))
    return f"{len(held)} readers, {frames} messages of 8 KiB"


async def wildcards(ports, end, sources, scale, _) -> str:
    """A hundred clients that subscribe to # and + filters, and a publisher on thousands of topics."""
    for n in range(int(100 * scale)):
        try:
            reader, writer = await connect(ports["mqtt"], sources.next())
            writer.write(mqtt.connect(f"wild-{n}") + mqtt.subscribe(1, [("attack/#", 0), ("attack/+/+", 0), ("+/+/#", 0)]))
            asyncio.ensure_future(drain(reader, end))
        except REFUSED:
            pass
    sent = 0

    async def flood() -> None:
        nonlocal sent
        _, writer = await connect(ports["mqtt"], sources.next())
        writer.write(mqtt.connect("wild-publisher"))
        while time.monotonic() < end:
            writer.write(b"".join(mqtt.publish(f"attack/{(sent + n) % 5_000}/x", b"x" * 64) for n in range(50)))
            sent += 50
            await asyncio.wait_for(writer.drain(), 5)
            await asyncio.sleep(0)

    await repeat(end, flood)
    return f"{sent} messages"


async def retained(ports, end, sources, scale, _) -> str:
    """Anonymous clients that retain QoS 0 messages on a thousand topics each, without a pause."""
    sent = 0

    async def flood(n: int) -> None:
        nonlocal sent
        reader, writer = await connect(ports["mqtt"], sources.next())
        asyncio.ensure_future(drain(reader, end))
        writer.write(mqtt.connect(f"retaining-{n}"))
        while time.monotonic() < end:
            writer.write(b"".join(
                mqtt.publish(f"attack/r{n}/{(sent + k) % 1_000}", b"r" * 512, retain=True) for k in range(50)))
            sent += 50
            await asyncio.wait_for(writer.drain(), 5)

    await gather(4, lambda n: repeat(end, lambda: flood(n)))
    return f"{sent} messages"


async def logins(ports, end, sources, scale, _) -> str:
    """Logins with wrong passwords, over MQTT and the native protocol."""
    tried = 0

    async def one(n: int) -> None:
        nonlocal tried
        source = sources.next()
        tried += 1
        if n % 2:
            reader, writer = await connect(ports["mqtt"], source)
            writer.write(mqtt.connect(f"login-{n}", user=f"pair-a{n}", password="wrong"))
        else:
            reader, writer = await connect(ports["delimited"], source)
            request = account_pb2.Authenticate(
                device=delimited.device("x"),
                password=account_pb2.PasswordCredential(nick_name=f"nobody{n}", password="wrong"))
            writer.write(delimited.encode(Packet(id=1, authenticate=request)))
        await asyncio.wait_for(reader.read(4096), 5)
        writer.transport.abort()

    await gather(int(40 * scale) + 2, lambda n: repeat(end, lambda: one(n)))
    return f"{tried} attempts"


async def registrations(ports, end, sources, scale, _) -> str:
    """Registers as many accounts as the server allows."""
    asked = 0

    async def one(_) -> None:
        nonlocal asked
        asked += 1
        reader, writer = await connect(ports["delimited"], sources.next())
        request = account_pb2.Register(nick_name=f"r{os.getpid()}x{asked}", password="correct horse",
                                       device=delimited.device("x"))
        writer.write(delimited.encode(Packet(id=1, register=request)))
        await asyncio.wait_for(reader.read(4096), 10)
        writer.transport.abort()

    await gather(int(40 * scale) + 2, lambda n: repeat(end, lambda: one(n)))
    return f"{asked} attempts"


async def storm(ports, end, sources, scale, kind: str, qos: int, **connecting) -> str:
    """Clients that subscribe to 10,000 filters and unsubscribe again, in a loop. `connecting` has the arguments of
    CONNECT."""
    count, rounds = 10_000, 0
    more = mqtt.subscribe(1, [(f"attack/{kind}/{n}", qos) for n in range(count)])
    less = mqtt.unsubscribe(2, [f"attack/{kind}/{n}" for n in range(count)])

    async def one(n: int) -> None:
        nonlocal rounds
        reader, writer = await connect(ports["mqtt"], sources.next())
        asyncio.ensure_future(drain(reader, end))
        writer.write(mqtt.connect(f"{kind}-{n}", keep_alive=0, **connecting))
        while time.monotonic() < end:
            writer.write(more + less)
            rounds += 1
            await asyncio.wait_for(writer.drain(), max(0.1, end - time.monotonic()))

    await gather(int(20 * scale) + 1, lambda n: repeat(end, lambda: one(n)))
    return f"{rounds} rounds written"


async def subscriptions(ports, end, sources, scale, _) -> str:
    """Clean sessions that subscribe to 10,000 filters and unsubscribe again, in a loop."""
    return await storm(ports, end, sources, scale, "storm", 0)


async def kept_filters(ports, end, sources, scale, _) -> str:
    """Kept sessions that subscribe to 10,000 filters and unsubscribe again, in a loop."""
    return await storm(ports, end, sources, scale, "kept", 1, clean=False, expiry=600)


async def absent(ports, end, sources, scale, _) -> str:
    """5,000 kept sessions without a connection, and a flood of QoS 1 publications for all of them."""
    count, kept, sent = int(5_000 * scale), 0, 0

    async def leave(n: int) -> None:
        nonlocal kept
        while n < count and time.monotonic() < end:
            try:
                reader, writer = await connect(ports["mqtt"], sources.next())
                writer.write(mqtt.connect(f"absent-{n}", clean=False, expiry=600)
                             + mqtt.subscribe(1, [("attack/absent", 1)]))
                buffer = bytearray()
                while not any(kind == mqtt.SUBACK for kind, *_ in mqtt.packets(buffer)):
                    more = await asyncio.wait_for(reader.read(4096), max(0.1, end - time.monotonic()))
                    if not more:
                        raise EOFError
                    buffer += more
                writer.close()
                kept += 1
                n += 20
            except REFUSED:
                await asyncio.sleep(0.01)

    async def flood(n: int) -> None:
        nonlocal sent
        reader, writer = await connect(ports["mqtt"], sources.next())
        asyncio.ensure_future(drain(reader, end))
        writer.write(mqtt.connect(f"flood-{n}-{random.random()}", keep_alive=0))
        while time.monotonic() < end:
            writer.write(b"".join(mqtt.publish("attack/absent", bytes(10), 1, i + 1) for i in range(20)))
            sent += 20
            await asyncio.wait_for(writer.drain(), max(0.1, end - time.monotonic()))
            await asyncio.sleep(0.02)

    await asyncio.gather(gather(20, leave), gather(4, lambda n: repeat(end, lambda: flood(n))))
    return f"{kept} sessions kept, {sent} publications written"


async def members(ports, count: int, world: str):
    """Registers accounts and logs them in before the attack begins."""
    made = []
    for n in range(count):
        # Each account has its own address, because the registrations are not part of the attack.
        reader, writer = await connect(ports["delimited"], f"127.77.{n // 200}.{n % 200 + 1}")
        request = account_pb2.Register(nick_name=f"{world}{os.getpid()}x{n}", password="correct horse",
                                       device=delimited.device("x"))
        writer.write(delimited.encode(Packet(id=1, register=request)))
        buffer = bytearray()
        while (data := delimited.cut(buffer)) is None:
            more = await asyncio.wait_for(reader.read(65536), 30)
            if not more:
                raise EOFError
            buffer += more
        session = Packet.FromString(data).result.session
        if session.uid:
            made.append((session.uid, reader, writer))
    return made


async def synchronizing(ports, end, sources, scale, people) -> str:
    """Clients that synchronize a full inbox without a pause."""
    asked = 0

    async def one(n: int) -> None:
        nonlocal asked
        uid, reader, writer = people[n]
        asyncio.ensure_future(drain(reader, end))
        for number in range(1_000):
            writer.write(delimited.encode(delimited.text_to(0, people[n - 1][0], f"{number} " + "x" * 500)))
        request = b"".join(delimited.encode(Packet(synchronize=inbox_pb2.Synchronize(after_seq=0, limit=1_000)))
                           for _ in range(100))
        while time.monotonic() < end:
            writer.write(request)
            asked += 100
            await asyncio.wait_for(writer.drain(), max(0.1, end - time.monotonic()))

    await gather(len(people), lambda n: guarded(one(n)))
    return f"{asked} requests written"


async def typing(ports, end, sources, scale, people) -> str:
    """A group of 150 members who all send typing indicators without a pause."""
    uids = [uid for uid, _, _ in people]
    people[0][2].write(delimited.encode(Packet(id=7, group=group_pb2.GroupRequest(
        create=group_pb2.CreateGroup(name="all", member_uids=uids[1:])))))
    group, buffer = 0, bytearray()
    while not group:
        buffer += await asyncio.wait_for(people[0][1].read(65536), 30)
        while (data := delimited.cut(buffer)) is not None:
            packet = Packet.FromString(data)
            group = packet.result.group.id or group
            if packet.result.HasField("error"):
                return f"no group: {packet.result.error.message}"
    sign = delimited.encode(Packet(typing=message_pb2.Typing(conversation=message_pb2.Conversation(group_id=group)))) * 50
    signs = 0

    async def one(n: int) -> None:
        nonlocal signs
        _, reader, writer = people[n]
        asyncio.ensure_future(drain(reader, end))
        while time.monotonic() < end:
            writer.write(sign)
            signs += 50
            await asyncio.wait_for(writer.drain(), max(0.1, end - time.monotonic()))

    await gather(len(people), lambda n: guarded(one(n)))
    return f"{signs} signs of {len(people)} written"


async def unread(ports, end, sources, scale, people) -> str:
    """Clean sessions with QoS 1 that never acknowledge, and messages to an inbox that nobody reads."""
    held, sent = [], 0
    for n in range(int(50 * scale) + 1):
        try:
            reader, writer = await connect(ports["mqtt"], sources.next(), 4096)
            writer.write(mqtt.connect(f"never-{n}") + mqtt.subscribe(1, [("attack/never", 1)]))
            asyncio.ensure_future(drain(reader, end))
            held.append(writer)
        except REFUSED:
            pass

    async def publish() -> None:
        nonlocal sent
        reader, writer = await connect(ports["mqtt"], sources.next())
        asyncio.ensure_future(drain(reader, end))
        writer.write(mqtt.connect("never-publisher"))
        while time.monotonic() < end:
            writer.write(b"".join(mqtt.publish("attack/never", bytes(8192), 1, n + 1) for n in range(10)))
            sent += 10
            await asyncio.wait_for(writer.drain(), 5)
            await asyncio.sleep(0.01)

    async def fill() -> None:
        _, reader, writer = people[0]
        asyncio.ensure_future(drain(reader, end))
        batch = b"".join(delimited.encode(delimited.text_to(0, people[1][0], "x" * 16_000)) for _ in range(10))
        people[1][2].transport.abort()
        while time.monotonic() < end:
            writer.write(batch)
            await asyncio.wait_for(writer.drain(), max(0.1, end - time.monotonic()))

    await asyncio.gather(repeat(end, publish), guarded(fill()))
    gone = sum(writer.transport.is_closing() for writer in held)
    return f"{len(held)} sessions, {gone} put out, {sent} messages of 8 KiB"


async def guarded(body) -> None:
    try:
        await body
    except REFUSED:
        pass


ALL = (silent, garbage, slow_readers, wildcards, retained, logins, registrations, subscriptions, synchronizing, typing, unread,
       kept_filters, absent)
# The number of accounts that an attack needs.
PEOPLE = {synchronizing: lambda _: 4, typing: lambda scale: max(10, int(150 * scale)), unread: lambda _: 2}


def run(body, ports, seconds: float, many: bool, scale: float, link) -> None:
    """Runs an attacker in its own process, which runs only when a processor is free. A real attacker has its own
    processors, so its work must not slow the server down. The process reports when it is ready, and begins after an
    answer."""
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    sources = Sources(many, 20 + ALL.index(body))

    async def whole() -> str:
        people = await members(ports, PEOPLE[body](scale), body.__name__[:4]) if body in PEOPLE else []
        link.send("ready")
        await asyncio.to_thread(link.recv)
        return await body(ports, time.monotonic() + seconds, sources, scale, people)

    try:
        link.send(asyncio.run(whole()))
    except Exception as error:  # the parent reports it
        link.send(f"FAILED {type(error).__name__}: {error}")
