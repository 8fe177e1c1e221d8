# Hermes
# SPDX-License-Identifier: Apache-2.0
"""Delimited over WebSocket: the checks of TCP again, and those of WebSocket alone."""

from clients import web
from clients.delimited import Packet, encode
from hermes.v1 import packet_pb2
from support.checks import equal, require
from support.world import World


def carrier(world: World):
    """the subprotocol, a message for each frame whatever shape they were sent in, pings, a close frame"""
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


def checks(over_tcp):
    """Those of TCP, and the carrier's own."""
    renamed = [(name.replace("Delimited", "WebSocket", 1), check) for name, check in over_tcp]
    return renamed + [("WebSocket: handshake, messages, ping, close", carrier)]
