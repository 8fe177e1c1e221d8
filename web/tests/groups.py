# Hermes
# SPDX-License-Identifier: Apache-2.0
"""Sends requests, such as the creation of a group, over MQTT, for tests that have no other client."""

import json
import socket
import struct


def _text(value: str) -> bytes:
    return struct.pack(">H", len(value.encode())) + value.encode()


def _packet(kind: int, body: bytes) -> bytes:
    length, made = len(body), b""
    while True:
        length, low = divmod(length, 128)
        made += bytes([low | (0x80 if length else 0)])
        if not length:
            return bytes([kind]) + made + body


def ask(port: int, name: str, password: str, request: dict, answered: str, device: str = "phone") -> None:
    """Sends a request of the native protocol. Returns once the server has answered it with this kind of answer."""
    connect = _text("MQTT") + bytes([4, 0xC2, 0, 60]) + _text(device) + _text(name) + _text(password)
    subscribe = bytes([0, 1]) + _text("hermes/v1/down/json") + bytes([1])
    publish = _text("hermes/v1/up/json") + bytes([0, 2]) + json.dumps({"id": "77", **request}).encode()
    kind = f'"{answered}"'.encode()
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.settimeout(20)
        connection.sendall(_packet(0x10, connect) + _packet(0x82, subscribe) + _packet(0x32, publish))
        answer = b""
        while not (b'"77"' in answer and (kind in answer or b'"error"' in answer)):
            chunk = connection.recv(65536)
            if not chunk:
                break
            answer += chunk
        assert kind in answer and b'"error"' not in answer, answer
        connection.sendall(_packet(0xE0, b""))


def make_group(port: int, owner: str, password: str, name: str, members: list[int], device: str = "phone") -> None:
    """Creates a group. Returns once the server has confirmed it."""
    ask(port, owner, password, {"group": {"create": {"name": name, "memberUids": members}}}, "group", device)
