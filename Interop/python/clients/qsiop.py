# Hermes
# SPDX-License-Identifier: Apache-2.0
"""QSIOP: each frame is a 6-byte big-endian header and key:value lines."""

import struct

from clients.link import Link

PING, PONG, REPORT, RESPONSE, PUSH, CONFIRM = 0, 1, 2, 3, 4, 5


def encode(op: int, properties: dict[str, str] | None = None, version: int = 1) -> bytes:
    lines = "".join(f"{key}:{value}\n" for key, value in (properties or {}).items()).encode()
    return struct.pack(">HHH", version, op, len(lines)) + lines


def decode(lines: bytes) -> dict[str, str]:
    pairs = (line.partition(":") for line in lines.decode().split("\n") if line)
    return {key: value for key, _, value in pairs}


class QSIOP(Link):
    """A small device. Its frames are (op, properties)."""

    def take(self):
        if len(self.bytes) < 6:
            return None
        version, op, length = struct.unpack_from(">HHH", self.bytes)
        assert version == 1, f"the server sent version {version}"
        if len(self.bytes) < 6 + length:
            return None
        properties = decode(bytes(self.bytes[6:6 + length]))
        del self.bytes[:6 + length]
        return op, properties

    def put(self, op: int, **properties) -> None:
        self.write(encode(op, properties))

    def response(self, what: str) -> dict[str, str]:
        return self.expect(lambda f: f[0] == RESPONSE, what)[1]

    def ping(self) -> None:
        self.put(PING)
        self.expect(lambda f: f == (PONG, {}), "a pong")

    def report(self, uid: int, device: str | None = None, token: str | None = None) -> dict[str, str]:
        properties = {"userid": str(uid)}
        if token:
            properties["token"] = token
        if device:
            properties["device"] = device
        self.put(REPORT, **properties)
        return self.response("the answer to a report")

    def push(self, what: str = "a push", timeout: float | None = None) -> dict[str, str]:
        return self.expect(lambda f: f[0] == PUSH, what, timeout)[1]

    def confirm(self, push: dict[str, str]) -> dict[str, str]:
        self.put(CONFIRM, id=push["id"])
        return self.response("the answer to a confirmation")
