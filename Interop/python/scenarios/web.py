# Hermes
# SPDX-License-Identifier: Apache-2.0
"""Checks of Delimited over WebSocket: the checks over TCP again, and checks for WebSocket only."""

import json

import websocket

from clients import web
from clients.delimited import Packet, encode
from hermes.v1 import packet_pb2
from support.checks import equal, require
from support.world import World


def carrier(world: World):
    """The subprotocol, one message for each frame even if frames were sent in pieces or together, pings, and a close
    frame."""
    equal(web.opens(world.ports["http"], "mqtt"), 426, "another subprotocol")
    app = world.delimited()
    app.drip(encode(Packet(id=1, ping=packet_pb2.Ping())))
    app.write(b"".join(encode(Packet(id=n, ping=packet_pb2.Ping())) for n in range(2, 51)))
    app.socket.web.ping(b"are you there")
    for number in range(1, 51):
        equal(app.frame().id, number, "the pong")
    equal(app.socket.messages, 50, "messages for 50 frames")
    app.socket.web.send_close()
    require(app.closes(5), "the connection stays open after the close frame")


def texts(world: World):
    """Login, sending and receiving with JSON that the check writes itself. Also fragments, an empty message, text and
    binary messages on one connection, and texts that are not packets."""
    ann, bob = world.person("ann"), world.person("bob")
    app = world.app(bob)
    page = world.delimited()
    socket = page.socket.web

    def result(number: str) -> dict:
        while True:
            packet = json.loads(socket.recv())
            if packet.get("id") == number:
                return packet["result"]

    socket.send(json.dumps({"id": "1", "authenticate": {"token": ann.token, "device": {"id": "page"}}, "later": {"x": [1]}}))
    equal(result("1")["session"]["uid"], ann.uid, "the uid")
    text = json.dumps({"id": 2, "send": {"to": {"uid": bob.uid}, "clientId": "c", "content": {"text": "你好 \u0000"}}})
    for index, piece in enumerate(text):
        frame = websocket.ABNF.create_frame(piece, 0x1 if index == 0 else 0x0, int(index == len(text) - 1))
        socket.send_frame(frame)
        if index == 10:
            socket.ping("between")
    equal(result("2")["receipt"]["conversationSeq"], "1", "a 64-bit number")
    equal(app.event().message.content.text, "你好 \0", "the text")
    app.send(ann.uid, "back")
    while json.loads(socket.recv()).get("event", {}).get("message", {}).get("content") != {"text": "back"}:
        pass  # the copy of her own message comes first
    socket.send("")
    socket.send_binary(encode(Packet(id=3, ping=packet_pb2.Ping())))
    opcode, data = socket.recv_data()
    equal((opcode, Packet.FromString(data[1:]).id), (websocket.ABNF.OPCODE_BINARY, 3), "the answer to a binary message")
    socket.send('{"id":"4","ping":{}}')
    equal(json.loads(socket.recv())["id"], "4", "the answer to a text message")
    for payload, code, closing in ((b"{", 4006, 1002), (b'{"send":{"clientId":"\xff"}}', 4007, 1007)):
        bad = world.delimited().socket.web
        bad.send(payload, websocket.ABNF.OPCODE_TEXT)
        equal(json.loads(bad.recv())["kicked"]["code"], code, "the code")
        opcode, data = bad.recv_data()
        equal((opcode, int.from_bytes(data[:2], "big")), (websocket.ABNF.OPCODE_CLOSE, closing), "the close frame")
    app.ping()


# The ends of the names of checks that cannot run with JSON. These checks send bytes that are no packets, or fields
# without a name.
_NOT_AS_TEXT = ("frames, whole and broken", "refused with a code", "that nobody here knows")


def checks(over_tcp):
    """Returns the checks over TCP, and the checks of the carrier."""
    renamed = [(name.replace("Delimited", "WebSocket", 1), check) for name, check in over_tcp]
    return renamed + [("WebSocket: handshake, messages, ping, close", carrier)]


def text_checks(over_tcp):
    """Returns the checks over TCP that send only packets, to be run with JSON, and the checks for JSON only."""
    renamed = [(name.replace("Delimited", "WebSocket JSON", 1), check) for name, check in over_tcp
               if not name.endswith(_NOT_AS_TEXT)]
    return renamed + [("WebSocket JSON: by hand", texts)]
