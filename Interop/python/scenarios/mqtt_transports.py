# Hermes
# SPDX-License-Identifier: Apache-2.0
"""Checks of MQTT over TLS and WebSocket with Eclipse Paho."""

import socket
import ssl

from clients.paho_client import V5, V311, Cast
from scenarios.mqtt_delivery import NAMES
from support.broker import Address
from support.checks import Failed, equal, require


def exchange(cast: Cast, version: int, address: Address):
    a, b = cast.device(version=version, address=address), cast.device(version=version, address=cast.broker.tcp)
    a.subscribe(cast.topic("a"), 2)
    b.subscribe(cast.topic("b"), 2)
    payloads = [b"", b"x", bytes(range(256)) * 1200]
    for quality in (0, 1, 2):
        for payload in payloads:
            a.publish(cast.topic("b"), payload, quality)
            b.publish(cast.topic("a"), payload, quality)
            require(a.message().payload == payload and b.message().payload == payload, f"{len(payload)} bytes came otherwise")
    lost = cast.device(version=version, address=address, will={"topic": cast.topic("b"), "payload": "lost", "qos": 1})
    lost.drop()
    equal(b.message().payload, b"lost", "the will")


def websocket(cast: Cast, version: int):
    """Messages of every QoS to and from a client on TCP, and a will."""
    exchange(cast, version, cast.broker.websocket)


def tls(cast: Cast, version: int):
    exchange(cast, version, cast.broker.tcp)


def stranger(cast: Cast):
    """A client that does not trust the authority disconnects. Plain text on the TLS port is refused. Other clients are
    served."""
    context = ssl.create_default_context()
    with socket.create_connection(("127.0.0.1", cast.broker.tcp.port), timeout=5) as raw:
        try:
            context.wrap_socket(raw, server_hostname="localhost").close()
        except ssl.SSLCertVerificationError:
            pass
        else:
            raise Failed("an unknown authority was trusted")
    with socket.create_connection(("127.0.0.1", cast.broker.tcp.port), timeout=15) as raw:
        raw.sendall(bytes.fromhex("101000044d5154540402003c000474657374"))
        try:
            answer = raw.recv(100)
        except ConnectionResetError:
            answer = b""
        require(not answer.startswith(b"\x20"), "CONNACK in plain text")
    cast.device().publish(cast.topic(), "x", 1)


PLAIN = [(f"Paho {NAMES[version]}: WebSocket", websocket, version) for version in (V311, V5)]
SECURE = [(f"Paho {NAMES[version]}: TLS", tls, version) for version in (V311, V5)]
SECURE += [(f"Paho {NAMES[version]}: WebSocket in TLS", websocket, version) for version in (V311, V5)]
SECURE += [("TLS: a stranger and plain text", stranger)]
