# Hermes
# SPDX-License-Identifier: Apache-2.0
"""Checks of the HTTP port, and of a restart and a shutdown from the view of clients."""

import urllib.error
import urllib.request

from hermes.v1 import packet_pb2
from support.checks import equal, require
from support.world import World


def fetch(world: World, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{world.ports['http']}{path}", timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def http(world: World):
    equal(fetch(world, "/healthz")[0], 200, "/healthz")
    equal(fetch(world, "/readyz")[0], 200, "/readyz")
    status, text = fetch(world, "/metrics")
    equal(status, 200, "/metrics")
    require("# TYPE" in text and "hermes" in text, f"no metrics of ours: {text[:200]}")
    equal(fetch(world, "/no/such/page")[0], 404, "a page that is not there")


def restart(world: World, server):
    """After SIGTERM, the server informs connected clients and exits with 0. It keeps accounts, tokens and waiting
    messages."""
    ann, bob = world.person("ann"), world.person("bob")
    b = world.app(bob)
    session, token = b.session, b.token
    b.close()
    a = world.app(ann)
    receipt = a.send(bob.uid, "before the restart")
    idle = world.app(ann, "idle")
    equal(server.stop(), 0, "the exit code after SIGTERM")
    require(idle.closes(5), "the connection stays open")
    told = [p.WhichOneof("body") for p in idle.waiting]
    require("notice" in told or "kicked" in told, f"the client was not told: {told}")
    for packet in idle.waiting:
        if packet.WhichOneof("body") == "kicked":
            equal(packet.kicked.reason, packet_pb2.Kicked.REASON_SHUTDOWN, "the reason")
    server.start()
    b = world.delimited()
    again = b.login(token=token)
    equal((again.uid, again.epoch), (session.uid, session.epoch), "uid and epoch after the restart")
    equal(b.event().message.id, receipt.message_id, "what waited")


CHECKS = [("HTTP: health, readiness, metrics", http)]
