# Hermes
# SPDX-License-Identifier: Apache-2.0
"""Malicious or broken peers. Each runs in its own process until `stop` is set."""

import os
import random
import socket
import ssl
import struct
import time

from clients import delimited, impb, liveroom, qsiop
from hermes.v1 import packet_pb2

TCP = ("impb", "liveroom", "qsiop", "delimited", "http")


def connect(port: int, source: str, receive_buffer: int = 0) -> socket.socket:
    link = socket.socket()
    if receive_buffer:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    link.settimeout(2)
    try:
        link.bind((source, 0))
    except OSError:
        pass  # this system cannot bind to the address
    link.connect(("127.0.0.1", port))
    return link


def until(stop, body) -> None:
    """Repeats `body` until `stop` is set. No reaction of the server counts as an error here."""
    while not stop.is_set():
        try:
            body()
        except OSError:
            time.sleep(0.005)  # refused or reset: the pause prevents a busy loop


def random_bytes(ports, stop, _):
    """Sends random bytes to every port."""
    chance = random.Random(1)

    def body():
        link = connect(ports[chance.choice(TCP)], "127.2.0.1")
        link.sendall(chance.randbytes(chance.choice((1, 7, 100, 4096, 65536))))
        if chance.random() < 0.5:
            link.settimeout(0.05)
            try:
                link.recv(4096)
            except OSError:
                pass
        link.close()

    until(stop, body)


def plausible_bytes(ports, stop, _):
    """Sends valid headers with random bodies, so that the inner decoders are tested, too."""
    chance = random.Random(2)

    def body():
        junk = chance.randbytes(chance.randrange(0, 300))
        kind = chance.randrange(4)
        if kind == 0:
            link, data = connect(ports["impb"], "127.2.0.2"), impb.encode(chance.randrange(9), chance.choice((1, 2, 3, 4, 9)), junk)
        elif kind == 1:
            link, data = connect(ports["liveroom"], "127.2.0.2"), liveroom.encode(chance.choice((1, 4, 5, 9, 12)), junk)
        elif kind == 2:
            link = connect(ports["qsiop"], "127.2.0.2")
            data = struct.pack(">HHH", 1, chance.randrange(8), len(junk)) + junk
        else:
            link, data = connect(ports["delimited"], "127.2.0.2"), delimited.prefix(len(junk)) + junk
        link.sendall(data * 5)
        link.close()

    until(stop, body)


def half_headers(ports, stop, _):
    """Sends half a header on 60 connections and holds them open. Opens new connections when the server closes them."""
    halves = {"impb": b"\x81\x00\x00", "liveroom": b"\x17\x00\x00", "qsiop": b"\x00\x01\x00", "delimited": b"\x80",
              "http": b"GET /hea"}
    held: list[tuple[str, socket.socket]] = []

    def body():
        while len(held) < 60 and not stop.is_set():
            name = TCP[len(held) % len(TCP)]
            link = connect(ports[name], "127.2.0.3")
            link.sendall(halves[name])
            link.setblocking(False)
            held.append((name, link))
        time.sleep(0.1)  # the attack is to hold the connections
        for name, link in list(held):
            try:
                ended = not link.recv(4096)
            except BlockingIOError:
                ended = False
            except OSError:
                ended = True
            if ended:
                link.close()
                held.remove((name, link))

    until(stop, body)


def huge_lengths(ports, stop, _):
    """Sends lengths of up to 4 GiB, and then as many bytes as the server accepts."""
    frames = {"impb": b"\x81\x00\x00\x00\x01\x03\xff\xff", "liveroom": b"\xff\xff\xff\xff\x02\x00",
              "qsiop": b"\x00\x01\x00\x02\xff\xff", "delimited": b"\xff\xff\xff\xff\x0f",
              "http": b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999999\r\n\r\n"}
    chance = random.Random(3)

    def body():
        name = chance.choice(TCP)
        link = connect(ports[name], "127.2.0.4")
        link.sendall(frames[name])
        link.settimeout(0.2)
        for _ in range(16):
            link.sendall(b"\x00" * 65536)
        link.close()

    until(stop, body)


def never_authenticate(ports, stop, results):
    """Opens 100 connections that never authenticate. Reports how long the last connection of each protocol stayed
    open."""
    links = []
    began = time.monotonic()
    for n in range(100):
        name = ("impb", "delimited", "qsiop")[n % 3]
        link = connect(ports[name], "127.2.0.5")
        link.setblocking(False)
        links.append((name, link))
    ping = delimited.encode(packet_pb2.Packet(id=1, ping=packet_pb2.Ping()))
    frames = {"impb": impb.encode(1, impb.PING), "delimited": ping, "qsiop": qsiop.encode(qsiop.PING)}
    lived: dict[str, float] = {}
    open_links = list(links)
    while open_links and not stop.is_set():
        for name, link in list(open_links):
            try:
                link.send(frames[name])  # pings do not authenticate
                while True:
                    if not link.recv(4096):
                        raise ConnectionError
            except BlockingIOError:
                continue
            except OSError:
                lived[name] = time.monotonic() - began
                link.close()
                open_links.remove((name, link))
        stop.wait(0.25)
    results.put(("never authenticated", len(open_links), lived))


def slow_readers(ports, stop, tokens):
    """Clients that cause many answers and read nothing: pings on Delimited and IMPB, and viewers of a room. All have
    small receive buffers."""
    text = liveroom.encode(liveroom.TEXT, liveroom.pb.ChatMessage(
        user=liveroom.someone("loud"), text="x" * 1000).SerializeToString()) * 10
    beat = liveroom.encode(liveroom.HEARTBEAT, liveroom.BEAT)
    ping = delimited.encode(packet_pb2.Packet(id=1, ping=packet_pb2.Ping(client_time_ms=1 << 40))) * 20
    echo = impb.encode(1, impb.PING) * 20
    hello = delimited.encode(delimited.authenticate(1, "slow", tokens[0]))
    # The bytes that each client sends after connecting, and then every 10 ms. This is at most 2,000 frames a second,
    # which is below the server's default limit.
    roles = [("delimited", hello, ping), ("impb", b"", echo)] + [("liveroom", b"", beat)] * 5 + [("liveroom", beat, text)]
    links: list[socket.socket | None] = [None] * len(roles)
    rounds = 0

    def body():
        nonlocal rounds
        rounds += 1
        for index, (name, first, again) in enumerate(roles):
            link = links[index]
            try:
                if link is None:
                    link = links[index] = connect(ports[name], "127.2.0.6", 4096)
                    link.sendall(first)
                    link.setblocking(False)
                if again is not beat or rounds % 100 == 0:
                    link.send(again)
                if again is text:
                    link.recv(1 << 20)  # only the sender of texts reads
            except BlockingIOError:
                pass
            except OSError:
                if link is not None:
                    link.close()
                links[index] = None
        time.sleep(0.01)

    until(stop, body)


def storm(ports, stop, _):
    """Connects and resets the connection, as fast as possible."""
    linger = struct.pack("ii", 1, 0)
    chance = random.Random(4)

    def body():
        link = connect(ports[chance.choice(TCP)], "127.2.0.7")
        link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        link.close()

    until(stop, body)


def tls_garbage(ports, stop, _):
    """Sends TLS, and bytes that look like TLS, to ports without TLS."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    chance = random.Random(5)

    def body():
        link = connect(ports[chance.choice(TCP)], "127.2.0.8")
        link.settimeout(0.2)
        if chance.random() < 0.5:
            link.sendall(b"\x16\x03\x01\xff\xff" + os.urandom(200))
            link.close()
            return
        try:
            context.wrap_socket(link, server_hostname="localhost").close()
        finally:
            link.close()

    until(stop, body)


def wrong_passwords(ports, stop, _):
    """Guesses passwords on eight connections at once."""
    chance = random.Random(6)

    def body():
        links = [connect(ports["impb"], f"127.2.1.{n + 1}") for n in range(8)]
        for link in links:
            login = impb.pb.login_request(nick_name=f"nobody-{chance.random()}", pwd="guess-guess", device_id="x")
            link.sendall(impb.request(1, 0, impb.user(2, login)))
        for link in links:
            try:
                link.recv(4096)
            except OSError:
                pass
            link.close()
        time.sleep(0.2)  # slow enough that the rate limit does not stop the guesses at once

    until(stop, body)


def trickle(ports, stop, tokens):
    """Authenticates on ten connections, and then sends a frame of 1 MB on each, one byte every 10 ms."""
    links = []
    for token in tokens[1:]:
        link = connect(ports["delimited"], "127.2.0.9")
        link.sendall(delimited.encode(delimited.authenticate(1, "trickle", token)) + delimited.prefix(1_000_000))
        links.append(link)

    def body():
        for link in links:
            link.send(b"\x00")
        time.sleep(0.01)

    until(stop, body)


ALL = [random_bytes, plausible_bytes, half_headers, huge_lengths, never_authenticate, slow_readers, storm, tls_garbage,
       wrong_passwords, trickle]
