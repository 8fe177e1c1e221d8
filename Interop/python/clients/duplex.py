# Hermes
# SPDX-License-Identifier: Apache-2.0
"""A Delimited client on asyncio. It sends at full speed, reconnects after crashes of the server, and keeps a
journal."""

import asyncio
import dataclasses

from hermes.v1 import inbox_pb2
from hermes.v1.packet_pb2 import Packet

from clients import delimited


@dataclasses.dataclass
class Journal:
    """The journal of one device of one account. The checker reads only journals."""

    uid: int
    peer: int
    device: str
    sends: bool
    # The number of each acknowledged message -> (message id, conversation seq, inbox seq).
    acknowledged: dict[int, tuple[str, int, int]] = dataclasses.field(default_factory=dict)
    # The received entries, in order: (inbox seq, message id, from uid, number, conversation seq, own).
    taken: list[tuple[int, str, int, int, int, bool]] = dataclasses.field(default_factory=list)
    # Descriptions of events that a client must never see.
    complaints: list[str] = dataclasses.field(default_factory=list)
    repeats: int = 0
    duplicates: int = 0


class Duplex(asyncio.Protocol):
    """Sends numbered messages to a peer with a window of unacknowledged messages, reads its inbox, and reconnects by
    itself.

    The numbers start at 1 and are the client ids, so that the client can safely send a message again after a crash.
    """

    def __init__(self, port: int, journal: Journal, token: str, peer: int, window: int):
        self.port, self.journal, self.token, self.peer, self.window = port, journal, token, peer, window
        self.unacknowledged: dict[int, bytes] = {}
        self.next_number = 1
        self.sending = journal.sends
        self.seen: dict[int, str] = {}
        self.cursor = 0
        self.acknowledged_cursor = 0
        self.epoch = 0
        self.last_of_connection = 0
        self.buffer = bytearray()
        self.transport = None
        self.live = False
        self.authenticated = asyncio.Event()
        self.lost = asyncio.Event()

    # --- The connection -------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Connects, and reconnects whenever the connection is lost, until the task is cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            self.lost.clear()
            try:
                await loop.create_connection(lambda: self, "127.0.0.1", self.port)
            except OSError:
                await asyncio.sleep(0.02)  # the server is down
                continue
            await self.lost.wait()

    def connection_made(self, transport) -> None:
        self.transport = transport
        self.buffer.clear()
        self.last_of_connection = 0
        hello = delimited.authenticate(1 << 40, self.journal.device, self.token, self.epoch, self.cursor)
        transport.write(delimited.encode(hello))

    def connection_lost(self, _) -> None:
        self.live = False
        self.authenticated.clear()
        self.lost.set()

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        for packet in self._packets():
            body = packet.WhichOneof("body")
            if body == "result":
                self._result(packet)
            elif body == "event":
                self._event(packet.event)
            elif body == "kicked" and packet.kicked.reason != packet.kicked.REASON_SHUTDOWN:
                self._complain(f"kicked: {packet.kicked.message or packet.kicked.reason}")
        if self.live:
            self._acknowledge()
            self._fill()

    def _packets(self):
        """Yields all complete packets, and then removes them from the buffer in one step."""
        buffer, position = self.buffer, 0
        while True:
            length = shift = 0
            index = position
            while index < len(buffer):
                byte = buffer[index]
                length |= (byte & 0x7F) << shift
                index, shift = index + 1, shift + 7
                if byte < 0x80:
                    break
            else:
                break
            if len(buffer) < index + length:
                break
            yield Packet.FromString(bytes(buffer[index:index + length]))
            position = index + length
        del buffer[:position]

    # --- Sending --------------------------------------------------------------------------------------------------

    def _fill(self) -> None:
        if not self.sending:
            return
        frames = []
        while len(self.unacknowledged) < self.window:
            number = self.next_number
            self.next_number += 1
            frame = delimited.encode(delimited.text_to(number, self.peer, f"{number:<64}", f"{number}"))
            self.unacknowledged[number] = frame
            frames.append(frame)
        if frames:
            self.transport.write(b"".join(frames))

    def _result(self, packet: Packet) -> None:
        result = packet.result
        if packet.id == 1 << 40:
            if result.HasField("error"):
                self._complain(f"login refused: {result.error.code} {result.error.message}")
                return
            if self.epoch not in (0, result.session.epoch):
                self._complain(f"epoch {result.session.epoch} after {self.epoch}")
            self.epoch = result.session.epoch
            self.live = True
            self.authenticated.set()
            # The unacknowledged messages are sent again in their old order, before any new message.
            self.transport.write(b"".join(self.unacknowledged.values()))
        elif result.HasField("error"):
            self._complain(f"message {packet.id} refused: {result.error.code} {result.error.message}")
        elif result.HasField("receipt"):
            receipt = result.receipt
            found = (receipt.message_id, receipt.conversation_seq, receipt.inbox_seq)
            self.journal.duplicates += receipt.duplicate
            known = self.journal.acknowledged.setdefault(packet.id, found)
            if known != found:
                self._complain(f"message {packet.id} has two receipts: {known} and {found}")
            self.unacknowledged.pop(packet.id, None)
            self._mark(receipt.inbox_seq, receipt.message_id)

    # --- Receiving ------------------------------------------------------------------------------------------------

    def _event(self, event: inbox_pb2.Event) -> None:
        seq = event.seq
        if event.WhichOneof("event") != "message":
            self._complain(f"seq {seq} is no message but {event.WhichOneof('event')}")
            return
        if seq <= self.last_of_connection:
            self._complain(f"seq {seq} after {self.last_of_connection} on one connection")
        self.last_of_connection = seq
        message = event.message
        known = self.seen.get(seq)
        if known is not None:
            self.journal.repeats += 1
            if known != message.id:
                self._complain(f"seq {seq} is {message.id} and was {known}")
            if message.own:
                return
        if known is None or message.own:
            entry = (seq, message.id, message.from_uid, int(message.content.text), message.conversation_seq, message.own)
            self.journal.taken.append(entry)
            self._mark(seq, message.id)

    def _mark(self, seq: int, message_id: str) -> None:
        self.seen.setdefault(seq, message_id)
        while self.cursor + 1 in self.seen:
            self.cursor += 1

    def _acknowledge(self) -> None:
        if self.cursor >= self.acknowledged_cursor + 100:
            self.acknowledged_cursor = self.cursor
            self.transport.write(delimited.encode(Packet(acknowledge=inbox_pb2.Acknowledge(up_to_seq=self.cursor))))

    def _complain(self, text: str) -> None:
        if len(self.journal.complaints) < 20:
            self.journal.complaints.append(text)
