#!/usr/bin/env python3
"""Tests QSIOP and LiveRoom with only Python's standard library. For these two protocols, the test needs no protobuf
library."""

import os
import socket
import struct


def connect(name: str) -> socket.socket:
    return socket.create_connection(("127.0.0.1", int(os.environ[f"HERMES_LISTENERS_{name}_PORT"])), timeout=5)


def read(link: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = link.recv(count - len(data))
        if not more:
            raise SystemExit(f"closed after {data!r}")
        data += more
    return data


def qsiop() -> None:
    with connect("QSIOP") as link:
        link.sendall(struct.pack(">HHH", 1, 0, 0))
        answer = read(link, 6)
        assert answer == struct.pack(">HHH", 1, 1, 0), answer


def liveroom() -> None:
    def field(number: int, text: str) -> bytes:
        return bytes([number << 3 | 2, len(text)]) + text.encode()

    user = b"\x08\x01" + field(2, "smoke") + field(3, "")
    text = b"\x0a" + bytes([len(user)]) + user + field(2, "hello")
    with connect("LIVEROOM") as one, connect("LIVEROOM") as two:
        join = struct.pack("<IH", len(user), 0) + user
        one.sendall(join)
        assert read(one, len(join)) == join
        said = struct.pack("<IH", len(text), 2) + text
        # The second connection is a member once it receives its own join. It would not receive an earlier text.
        two.sendall(join)
        assert read(two, len(join)) == join
        one.sendall(said)
        while True:
            header = read(two, 6)
            body = read(two, struct.unpack("<IH", header)[0])
            if header + body == said:
                break


if __name__ == "__main__":
    qsiop()
    liveroom()
    print("smoke: QSIOP pong, LiveRoom text")
