# Hermes
# SPDX-License-Identifier: Apache-2.0
"""Delimited over WebSocket, with PyPI's websocket-client. Binary messages carry a stream of bytes. Text messages carry
packets as JSON, which Google's library writes and reads."""

import json

import websocket
from google.protobuf import json_format

from clients.delimited import Delimited, Packet, cut, encode


class Stream:
    """A WebSocket with the interface of a socket."""

    def __init__(self, web: websocket.WebSocket):
        self.web = web
        self.messages = 0

    def sendall(self, data: bytes) -> None:
        self.web.send_binary(data)

    def recv(self, _limit: int) -> bytes:
        data = self._message(websocket.ABNF.OPCODE_BINARY)
        if data is None:
            return b""
        assert data, "an empty message"
        return data

    def _message(self, expected: int) -> bytes | None:
        """Returns the next message, which must be of this kind, or None if the connection has ended."""
        try:
            opcode, data = self.web.recv_data()
        except websocket.WebSocketTimeoutException:
            raise TimeoutError from None
        except (websocket.WebSocketConnectionClosedException, ConnectionError):
            return None
        if opcode == websocket.ABNF.OPCODE_CLOSE:
            return None
        assert opcode == expected, f"a message with opcode {opcode}"
        self.messages += 1
        return data

    def settimeout(self, seconds: float) -> None:
        self.web.settimeout(seconds)

    def setsockopt(self, *option) -> None:
        self.web.sock.setsockopt(*option)

    def shutdown(self, _how: int) -> None:
        self.web.send_close()

    def close(self) -> None:
        self.web.shutdown()


class Texts(Stream):
    """A WebSocket with text messages. Each text message is one packet."""

    def __init__(self, web: websocket.WebSocket):
        super().__init__(web)
        self.unsent = bytearray()

    def sendall(self, data: bytes) -> None:
        self.unsent += data
        while (packet := cut(self.unsent)) is not None:
            if packet:
                self.web.send(json_format.MessageToJson(Packet.FromString(packet), indent=None))

    def recv(self, _limit: int) -> bytes:
        data = self._message(websocket.ABNF.OPCODE_TEXT)
        if data is None:
            return b""
        assert isinstance(json.loads(data.decode("utf-8")), dict), "no JSON object"
        return encode(json_format.Parse(data, Packet()))


class WebDelimited(Delimited):
    """A client that behaves like an app in a browser."""

    SUBPROTOCOLS = ["hermes.v1"]
    STREAM = Stream

    def __init__(self, port: int, source: str | None = None, timeout: float = 10, host: str = "127.0.0.1", tls=None):
        super().__init__(port, source, timeout, host, tls)
        web = websocket.create_connection(
            f"ws://{host}:{port}/ws", timeout=timeout, subprotocols=self.SUBPROTOCOLS, socket=self.socket,
        )
        assert web.getsubprotocol() == self.SUBPROTOCOLS[0], f"the subprotocol is {web.getsubprotocol()}"
        self.socket = self.STREAM(web)


class WebTexts(WebDelimited):
    """A client that behaves like a page without protobuf."""

    SUBPROTOCOLS = ["hermes.v1.json", "hermes.v1"]
    STREAM = Texts


def opens(port: int, subprotocol: str) -> int:
    """Requests a WebSocket at /ws, and returns the HTTP status of the answer."""
    try:
        websocket.create_connection(f"ws://127.0.0.1:{port}/ws", timeout=10, subprotocols=[subprotocol]).shutdown()
        return 101
    except websocket.WebSocketBadStatusException as refusal:
        return refusal.status_code
