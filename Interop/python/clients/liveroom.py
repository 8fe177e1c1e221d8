# Hermes
# SPDX-License-Identifier: Apache-2.0
"""LiveRoom: each frame is a little-endian length and type, and a proto2 message."""

import struct

from liveroom import liveroom_pb2 as pb

from clients.link import Link

JOIN, LEAVE, TEXT, GIFT, NOTICE, KICKED, HEARTBEAT, ENTER = 0, 1, 2, 3, 4, 5, 8, 9
BEAT = b"this is a heartBeat message "


def encode(kind: int, body: bytes = b"") -> bytes:
    return struct.pack("<IH", len(body), kind) + body


def someone(name: str, level: int = 7, icon: str = "icon1") -> pb.UserInfo:
    return pb.UserInfo(level=level, name=name, iconURL=icon)


class LiveRoom(Link):
    """A viewer. Its frames are (type, body)."""

    def take(self):
        if len(self.bytes) < 6:
            return None
        length, kind = struct.unpack_from("<IH", self.bytes)
        if len(self.bytes) < 6 + length:
            return None
        body = bytes(self.bytes[6:6 + length])
        del self.bytes[:6 + length]
        return kind, body

    def put(self, kind: int, body=b"") -> bytes:
        """Sends a frame and returns the bytes of its body."""
        data = body if isinstance(body, bytes) else body.SerializeToString()
        self.write(encode(kind, data))
        return data

    def join(self, name: str) -> bytes:
        return self.put(JOIN, someone(name))

    def leave(self, name: str) -> bytes:
        return self.put(LEAVE, someone(name))

    def text(self, name: str, text: str) -> bytes:
        return self.put(TEXT, pb.ChatMessage(user=someone(name), text=text))

    def gift(self, name: str, gift: str, count: int) -> bytes:
        return self.put(GIFT, pb.GiftMessage(user=someone(name), giftname=gift, giftURL="http://x/g.gif", giftcount=count))

    def beat(self) -> None:
        self.put(HEARTBEAT, BEAT)

    def gets(self, kind: int, body: bytes, what: str):
        return self.expect(lambda f: f == (kind, body), what)

    def settle(self, name: str) -> None:
        """Waits until this connection is in its room. It is there once its own text comes back."""
        self.gets(TEXT, self.text(name, f"{name} is here"), "one's own text")
        self.waiting.clear()
