# Hermes
# SPDX-License-Identifier: Apache-2.0
"""The wire format of MQTT 3.1.1 and 5.0, written from the text of the standards. It has only the parts that the crash
test and the hostile peers need."""

import struct
from collections.abc import Iterator

CONNECT, CONNACK, PUBLISH, PUBACK, PUBREC, PUBREL, PUBCOMP = 1, 2, 3, 4, 5, 6, 7
SUBSCRIBE, SUBACK, UNSUBSCRIBE, UNSUBACK, PINGREQ, PINGRESP, DISCONNECT, AUTH = 8, 9, 10, 11, 12, 13, 14, 15
FOUR, FIVE = 4, 5
SESSION_EXPIRY, RECEIVE_MAXIMUM = 0x11, 0x21


class Malformed(Exception):
    """The peer sent bytes that are not an MQTT packet."""


def number(value: int) -> bytes:
    """Returns a variable byte integer."""
    made = bytearray()
    while True:
        value, low = divmod(value, 128)
        made.append(low | (0x80 if value else 0))
        if not value:
            return bytes(made)


def text(value: str | bytes) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return struct.pack(">H", len(raw)) + raw


def packet(kind: int, body: bytes = b"", flags: int = 0) -> bytes:
    return bytes([kind << 4 | flags]) + number(len(body)) + body


def properties(version: int, raw: bytes = b"") -> bytes:
    return number(len(raw)) + raw if version == FIVE else b""


def connect(client_id: str, version: int = FIVE, clean: bool = True, keep_alive: int = 60, expiry: int = 0,
            receive_maximum: int = 0, user: str | None = None, password: str | None = None,
            will: tuple[str, bytes] | None = None) -> bytes:
    """Returns CONNECT. `will` is the topic and the payload of the will, which has QoS 0 and is retained."""
    raw = b""
    if expiry:
        raw += struct.pack(">BI", SESSION_EXPIRY, expiry)
    if receive_maximum:
        raw += struct.pack(">BH", RECEIVE_MAXIMUM, receive_maximum)
    flags = (2 if clean else 0) | (0x80 if user is not None else 0) | (0x40 if password is not None else 0) \
        | (0x24 if will else 0)
    body = text("MQTT") + struct.pack(">BBH", version, flags, keep_alive) + properties(version, raw) + text(client_id)
    if will:
        body += properties(version) + text(will[0]) + text(will[1])
    for more in (user, password):
        if more is not None:
            body += text(more)
    return packet(CONNECT, body)


def publish(topic: str, payload: bytes, qos: int = 0, packet_id: int = 0, dup: bool = False, retain: bool = False,
            version: int = FIVE, raw: bytes = b"") -> bytes:
    body = text(topic) + (struct.pack(">H", packet_id) if qos else b"") + properties(version, raw) + payload
    return packet(PUBLISH, body, (8 if dup else 0) | qos << 1 | (1 if retain else 0))


def acknowledge(kind: int, packet_id: int) -> bytes:
    """Returns PUBACK, PUBREC, PUBREL or PUBCOMP without a reason code. In both versions, this means success."""
    return packet(kind, struct.pack(">H", packet_id), 2 if kind == PUBREL else 0)


def subscribe(packet_id: int, filters: list[tuple[str, int]], version: int = FIVE) -> bytes:
    body = struct.pack(">H", packet_id) + properties(version) + b"".join(text(name) + bytes([qos]) for name, qos in filters)
    return packet(SUBSCRIBE, body, 2)


def unsubscribe(packet_id: int, filters: list[str], version: int = FIVE) -> bytes:
    body = struct.pack(">H", packet_id) + properties(version) + b"".join(text(name) for name in filters)
    return packet(UNSUBSCRIBE, body, 2)


PING, BYE = packet(PINGREQ), packet(DISCONNECT)


def packets(buffer: bytearray) -> Iterator[tuple[int, int, bytes]]:
    """Removes complete packets from the front of the buffer, and yields their kind, flags and body."""
    at = 0
    try:
        while len(buffer) - at >= 2:
            length, shift, place = 0, 0, at + 1
            while True:
                if place >= len(buffer):
                    return
                if shift > 21:
                    raise Malformed("a remaining length of five bytes")
                byte = buffer[place]
                length |= (byte & 0x7F) << shift
                shift += 7
                place += 1
                if byte < 0x80:
                    break
            if place + length > len(buffer):
                return
            body = bytes(buffer[place:place + length])
            kind, flags = buffer[at] >> 4, buffer[at] & 15
            at = place + length
            yield kind, flags, body
    finally:
        del buffer[:at]


def take_number(body: bytes, at: int) -> tuple[int, int]:
    """Returns the variable byte integer at this position, and the position after it."""
    value = shift = 0
    while True:
        if at >= len(body) or shift > 21:
            raise Malformed("a broken variable byte integer")
        byte = body[at]
        value |= (byte & 0x7F) << shift
        shift += 7
        at += 1
        if byte < 0x80:
            return value, at


class Publication:
    """A received PUBLISH."""

    __slots__ = ("topic", "payload", "qos", "dup", "retain", "packet_id")

    def __init__(self, flags: int, body: bytes, version: int):
        self.qos, self.dup, self.retain = flags >> 1 & 3, bool(flags & 8), bool(flags & 1)
        if self.qos == 3 or (self.dup and not self.qos):
            raise Malformed(f"PUBLISH with flags {flags:#x}")
        length = struct.unpack_from(">H", body)[0]
        self.topic = body[2:2 + length].decode()
        at = 2 + length
        self.packet_id = 0
        if self.qos:
            self.packet_id = struct.unpack_from(">H", body, at)[0]
            at += 2
            if not self.packet_id:
                raise Malformed("PUBLISH with packet id 0")
        if version == FIVE:
            length, at = take_number(body, at)
            at += length
        self.payload = body[at:]


def reason(kind: int, body: bytes) -> int:
    """Returns the reason code of an acknowledgement."""
    return body[2] if kind in (PUBACK, PUBREC, PUBREL, PUBCOMP) and len(body) > 2 else 0
