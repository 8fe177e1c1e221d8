# Hermes
# SPDX-License-Identifier: Apache-2.0
"""Makes groups as an MQTT client makes them, for tests that have no other client."""

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


def make_group(port: int, owner: str, password: str, name: str, members: list[int], device: str = "phone") -> None:
    """Returns once the server has answered that it is made."""
    connect = _text("MQTT") + bytes([4, 0xC2, 0, 60]) + _text(device) + _text(owner) + _text(password)
    subscribe = bytes([0, 1]) + _text("hermes/v1/down/json") + bytes([1])
    request = {"id": "77", "group": {"create": {"name": name, "memberUids": members}}}
    publish = _text("hermes/v1/up/json") + bytes([0, 2]) + json.dumps(request).encode()
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.settimeout(20)
        connection.sendall(_packet(0x10, connect) + _packet(0x82, subscribe) + _packet(0x32, publish))
        answer = b""
        while not (b'"77"' in answer and (b'"group"' in answer or b'"error"' in answer)):
            chunk = connection.recv(65536)
            if not chunk:
                break
            answer += chunk
        assert b'"group"' in answer and b'"error"' not in answer, answer
        connection.sendall(_packet(0xE0, b""))
