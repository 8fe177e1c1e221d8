# Hermes
# SPDX-License-Identifier: Apache-2.0
"""Delimited: each frame is a varint length and one hermes.v1.Packet."""

from google.protobuf.internal.encoder import _VarintBytes

from hermes.v1 import account_pb2, inbox_pb2, message_pb2, packet_pb2
from hermes.v1.packet_pb2 import Packet

from clients.link import Link


class Refused(Exception):
    """The result of a request was an error."""

    def __init__(self, error):
        super().__init__(f"{error.code} {error.message}")
        self.error = error
        self.code = error.code


def prefix(length: int) -> bytes:
    return _VarintBytes(length)


def encode(packet: Packet) -> bytes:
    data = packet.SerializeToString()
    return prefix(len(data)) + data


def cut(buffer: bytearray):
    """Removes one packet from the front of the buffer and returns its bytes, or None if it is not complete."""
    length = shift = index = 0
    while True:
        if index >= len(buffer):
            return None
        byte = buffer[index]
        length |= (byte & 0x7F) << shift
        index, shift = index + 1, shift + 7
        if byte < 0x80:
            break
        assert index < 5, "the server sent a varint that is too long"
    if len(buffer) < index + length:
        return None
    data = bytes(buffer[index:index + length])
    del buffer[:index + length]
    return data


def device(name: str) -> account_pb2.DeviceDescription:
    return account_pb2.DeviceDescription(id=name, name=name, platform="interop", app_version="1.0")


def authenticate(correlation: int, device_id: str, token: str, epoch: int = 0, after: int = 0) -> Packet:
    return Packet(id=correlation, authenticate=account_pb2.Authenticate(
        token=token, device=device(device_id), epoch=epoch, acknowledged_seq=after))


def text_to(correlation: int, uid: int, text: str, client_id: str = "") -> Packet:
    return Packet(id=correlation, send=message_pb2.Send(
        to=message_pb2.Conversation(uid=uid), client_id=client_id, content=message_pb2.Content(text=text)))


class Delimited(Link):
    """An app. Its frames are Packets."""

    correlation = 0
    session = None
    token = ""

    def take(self):
        data = cut(self.bytes)
        return None if data is None else Packet.FromString(data)

    def put(self, wanted: bool = True, **body) -> int:
        """Sends a packet with one body, and returns the packet's id."""
        if wanted:
            self.correlation += 1
        packet = Packet(id=self.correlation if wanted else 0, **body)
        self.write(encode(packet))
        return packet.id

    def result(self, correlation: int, timeout: float | None = None):
        """Waits for the answer to a request. Raises Refused if it is an error."""
        packet = self.expect(lambda p: p.id == correlation and p.WhichOneof("body") == "result",
                             f"the result of {correlation}", timeout)
        if packet.result.HasField("error"):
            raise Refused(packet.result.error)
        return packet.result

    def ask(self, **body):
        return self.result(self.put(**body))

    def register(self, nick_name: str, password: str, device_id: str = "tablet"):
        self.session = self.ask(register=account_pb2.Register(
            nick_name=nick_name, password=password, device=device(device_id))).session
        self.token = self.session.token
        return self.session

    def login(self, nick_name: str = "", password: str = "", device_id: str = "tablet", token: str = "",
              epoch: int = 0, after: int = 0):
        request = account_pb2.Authenticate(device=device(device_id), epoch=epoch, acknowledged_seq=after)
        if token:
            request.token = token
        else:
            request.password.CopyFrom(account_pb2.PasswordCredential(nick_name=nick_name, password=password))
        self.session = self.ask(authenticate=request).session
        self.token = self.session.token or token
        return self.session

    def ping(self) -> None:
        correlation = self.put(ping=packet_pb2.Ping(client_time_ms=7))
        self.expect(lambda p: p.id == correlation and p.pong.client_time_ms == 7, "a pong")

    def send(self, uid: int, text: str = "", client_id: str = "", content=None, expires: int = 0):
        """Sends a message and returns its receipt."""
        return self.ask(send=message_pb2.Send(
            to=message_pb2.Conversation(uid=uid), client_id=client_id, expires_in_seconds=expires,
            content=content if content is not None else message_pb2.Content(text=text))).receipt

    def event(self, kind: str = "message", what: str | None = None, timeout: float | None = None):
        """Waits for the next inbox entry of a kind."""
        packet = self.expect(
            lambda p: p.WhichOneof("body") == "event" and p.event.WhichOneof("event") == kind,
            what or f"an inbox entry: {kind}", timeout)
        return packet.event

    def ephemeral(self, kind: str, what: str | None = None, matches=lambda event: True):
        packet = self.expect(
            lambda p: p.WhichOneof("body") == "ephemeral" and p.ephemeral.WhichOneof("event") == kind
            and matches(getattr(p.ephemeral, kind)), what or f"an ephemeral event: {kind}")
        return getattr(packet.ephemeral, kind)

    def kicked(self):
        return self.expect(lambda p: p.WhichOneof("body") == "kicked", "a kick").kicked

    def acknowledge(self, seq: int) -> None:
        """Acknowledges entries and waits for the answer."""
        self.ask(acknowledge=inbox_pb2.Acknowledge(up_to_seq=seq))
