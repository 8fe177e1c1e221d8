# Hermes
# SPDX-License-Identifier: Apache-2.0
"""The world of a check: its accounts, and its connections to one server. The connections are closed after the check."""

import dataclasses
import itertools
import secrets

from clients.delimited import Delimited
from clients.impb import IMPB
from clients.link import Link
from clients.liveroom import LiveRoom
from clients.qsiop import QSIOP

PASSWORD = "correct horse"
_addresses = itertools.count(2)


@dataclasses.dataclass
class Person:
    uid: int
    nick_name: str
    token: str


class World:
    """The world of one check. It has its own source address, so that other checks do not use up its limits per
    address."""

    def __init__(self, ports: dict[str, int]):
        self.ports = ports
        number = next(_addresses)
        self.source = f"127.1.{number // 250}.{number % 250 + 2}"
        self.links: list[Link] = []

    def _open(self, kind, listener: str, **more):
        link = kind(self.ports[listener], source=self.source, **more)
        self.links.append(link)
        return link

    def impb(self) -> IMPB:
        return self._open(IMPB, "impb")

    def liveroom(self) -> LiveRoom:
        return self._open(LiveRoom, "liveroom")

    def qsiop(self) -> QSIOP:
        return self._open(QSIOP, "qsiop")

    def delimited(self) -> Delimited:
        return self._open(Delimited, "delimited")

    def name(self, stem: str) -> str:
        return f"{stem}-{secrets.token_hex(4)}"

    def person(self, stem: str) -> Person:
        """Creates a new account without a connected device."""
        link = self.impb()
        nick_name = self.name(stem)
        answer = link.register(nick_name, PASSWORD)
        link.close()
        return Person(answer.uid, nick_name, answer.token)

    def phone(self, person: Person, device: str = "phone", **more) -> IMPB:
        link = self.impb()
        link.login(person.nick_name, PASSWORD, device=device, **more)
        return link

    def app(self, person: Person, device: str = "tablet", **more) -> Delimited:
        link = self.delimited()
        link.login(person.nick_name, PASSWORD, device_id=device, **more)
        return link

    def watch(self, person: Person, device: str = "watch") -> QSIOP:
        link = self.qsiop()
        answer = link.report(person.uid, device=device, token=person.token)
        assert answer.get("code") == "0", f"the report was refused: {answer}"
        return link

    def close(self) -> None:
        for link in self.links:
            link.close()


class WebWorld(World):
    """A world whose apps connect over WebSocket."""

    def delimited(self) -> Delimited:
        from clients.web import WebDelimited  # needs a package that not every program has

        return self._open(WebDelimited, "http")


class TextWorld(World):
    """A world whose apps connect over WebSocket and use JSON."""

    def delimited(self) -> Delimited:
        from clients.web import WebTexts

        return self._open(WebTexts, "http")
