#!/usr/bin/env python3
# Hermes
# SPDX-License-Identifier: Apache-2.0
"""People on different protocols talk to each other over a real server. HERMES_BIN names the server's program. Needs
what chat_browser.py needs, protoc, and the packages protobuf and selenium of PyPI, which are installed into a separate
environment.

First, two people talk: one on the web page, one on IMPB. Then a group of five people talks on five protocols: the page
(JSON over WebSocket), IMPB, Delimited, MQTT (`hermes/v1/up`, `hermes/v1/down`) and QSIOP. The QSIOP device gets the
group's messages as pushes and writes none. LiveRoom is not tested here, because it has rooms but no conversations
between accounts. Each text arrives exactly once at each other person, and all people see the texts in the same order.
"""

import contextlib
import pathlib
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "Interop/python"))
from support import environment  # noqa: E402

environment.enter_with_messages("selenium>=4.8,<5")

from chat_browser import ROOT, Browser, Server  # noqa: E402
from clients import mqtt  # noqa: E402
from clients.delimited import Delimited, Packet  # noqa: E402
from clients.impb import CHAT, IMPB, encode, sender_of, text_of  # noqa: E402
from clients.link import Link  # noqa: E402
from clients.qsiop import QSIOP  # noqa: E402
from hermes.v1 import inbox_pb2, message_pb2  # noqa: E402
from impb import impb_pb2 as pb  # noqa: E402

PASSWORD = "correct horse"
ALONE = 50
ROUNDS = 30
PROTOCOLS = ("impb", "qsiop", "delimited", "mqtt")
TEXTS = "return [...document.querySelectorAll('.line:not(.note) .text')].map((line) => line.textContent)"
# Collects every text that the page shows, because the page renders only the texts near the end. When a row changes, the
# page replaces it. A text that is removed and added in the same change is therefore not new.
WATCH = """
window.shown = [];
window.watcher?.disconnect();
const texts = (records, list) => records.flatMap((record) => [...record[list]]).flatMap((row) => {
    const text = row.classList?.contains("line") && row.querySelector(".text")?.textContent;
    return text ? [[row.classList.contains("own"), text]] : [];
});
window.watcher = new MutationObserver((records) => {
    const gone = texts(records, "removedNodes").map(String);
    for (const one of texts(records, "addedNodes")) {
        const place = gone.indexOf(String(one));
        if (place < 0) window.shown.push(one);
        else gone.splice(place, 1);
    }
});
window.watcher.observe(document.querySelector(".lines"), { childList: true });
"""


def step(text: str) -> None:
    print(f"protocols: {text}", flush=True)


class Phone(IMPB):
    """An IMPB client that also sends texts to groups."""

    def say(self, group: int, text: str) -> None:
        message = pb.Group_msg(group_id=group, type=pb.text, content=pb.msg_text_content(text=text).SerializeToString())
        body = pb.base_msg(type=pb.base_msg.group, body=message.SerializeToString())
        seq = self.next()
        self.write(encode(seq, CHAT, body.SerializeToString()))
        self.reply(seq)

    def hear(self, group: int) -> str:
        """Returns the next text in the group."""
        while True:
            frame = self.expect(lambda frame: frame[1] == CHAT, "a message to the group")
            base = pb.base_msg.FromString(frame[2])
            if base.type != pb.base_msg.group:
                continue
            message = pb.Group_msg.FromString(base.body)
            assert message.group_id == group, message
            # The next frame that the client sends acknowledges the message.
            self.ping()
            return pb.msg_text_content.FromString(message.content).text


class Tablet(Delimited):
    """A client of the native protocol over TCP."""

    def say(self, group: int, text: str) -> None:
        to = message_pb2.Conversation(group_id=group)
        self.ask(send=message_pb2.Send(to=to, content=message_pb2.Content(text=text)))

    def hear(self, group: int) -> str:
        event = self.event("message", "a message to the group")
        assert event.message.conversation.group_id == group, event
        self.put(wanted=False, acknowledge=inbox_pb2.Acknowledge(up_to_seq=event.seq))
        return event.message.content.text


class Board(Link):
    """A client of the native protocol over MQTT 5.0. The payload of each publication is a Packet."""

    packet_id = correlation = 0

    def __init__(self, port: int, name: str):
        super().__init__(port)
        self.write(mqtt.connect("board", user=name, password=PASSWORD))
        self.until(mqtt.CONNACK, 1)
        self.write(mqtt.subscribe(1, [("hermes/v1/down", 1)]))
        self.until(mqtt.SUBACK, -1)

    def until(self, kind: int, place: int) -> None:
        """Waits for an answer of this kind, and checks that the reason code at this index is a success."""
        _, _, body = self.expect(lambda frame: isinstance(frame, tuple) and frame[0] == kind, f"packet {kind}")
        assert body[place] < 0x80, f"refused: {body.hex()}"

    def take(self):
        found = next(mqtt.packets(self.bytes), None)
        if found is None or found[0] != mqtt.PUBLISH:
            return found
        publication = mqtt.Publication(found[1], found[2], mqtt.FIVE)
        assert publication.topic == "hermes/v1/down" and not publication.dup, vars(publication)
        if publication.qos:
            self.write(mqtt.acknowledge(mqtt.PUBACK, publication.packet_id))
        return Packet.FromString(publication.payload)

    def say(self, group: int, text: str) -> None:
        self.correlation += 1
        self.packet_id = self.packet_id % 65_535 + 1
        to = message_pb2.Conversation(group_id=group)
        send = message_pb2.Send(to=to, content=message_pb2.Content(text=text))
        payload = Packet(id=self.correlation, send=send).SerializeToString()
        self.write(mqtt.publish("hermes/v1/up", payload, qos=1, packet_id=self.packet_id))
        answer = self.expect(lambda one: isinstance(one, Packet) and one.id == self.correlation, "the receipt")
        assert answer.result.HasField("receipt"), answer
        packet_id = struct.pack(">H", self.packet_id)
        self.expect(lambda one: isinstance(one, tuple) and one[0] == mqtt.PUBACK and one[2][:2] == packet_id, "PUBACK")

    def hear(self, group: int) -> str:
        packet = self.expect(
            lambda one: isinstance(one, Packet) and one.event.WhichOneof("event") == "message", "a message to the group"
        )
        assert packet.event.message.conversation.group_id == group, packet
        return packet.event.message.content.text


class Pager(QSIOP):
    """A small device that only reads."""

    def hear(self, group: int) -> str:
        push = self.push("a push of the group")
        assert push["group"] == str(group), push
        assert self.confirm(push).get("code") == "0", push
        return push["body"]


class Page:
    """The chat in a browser."""

    def __init__(self, browser: Browser):
        self.browser = browser
        self.heard = 0

    def say(self, _group: int, text: str) -> None:
        self.browser.say(text)

    def hear(self, _group: int) -> str:
        """Returns the next text of another person that the page showed."""
        look = "return window.shown.filter(([isOwn]) => !isOwn)[arguments[0]]?.[1] ?? null"
        text = self.browser.until(lambda: self.browser.driver.execute_script(look, self.heard), f"text {self.heard}")
        self.heard += 1
        return text


def two(web: Browser, server: Server) -> None:
    """One person on IMPB and one person on the web."""
    phone = IMPB(server.impb)
    phone.register("pat", PASSWORD)
    phone.login("pat", PASSWORD)
    web.chat_with("pat")
    web.driver.execute_script(WATCH)
    page = Page(web)
    web.say("hello Pat 你好 <b>")
    first = phone.chat_message("the page's first text")
    assert text_of(first) == "hello Pat 你好 <b>", first
    to = sender_of(first)
    began = time.monotonic()
    for number in range(ALONE):
        web.say(f"web {number}")
        phone.send_text(to, f"phone {number}")
    phone.timeout = 30
    got = [text_of(phone.chat_message(f"text {number} of the page")) for number in range(ALONE)]
    assert got == [f"web {number}" for number in range(ALONE)], got
    heard = [page.hear(0) for _ in range(ALONE)]
    assert heard == [f"phone {number}" for number in range(ALONE)], heard
    took = time.monotonic() - began
    # The next text in each direction shows that no earlier text came twice.
    phone.send_text(to, "the end")
    assert page.hear(0) == "the end"
    web.say("the end, too")
    assert text_of(phone.chat_message("the end")) == "the end, too"
    web.sees("sent", ".line.own .meta")
    phone.close()
    step(f"two people, one on IMPB and one on the web: {ALONE} texts each way, each once and in order; {took:.1f} s")


def five(web: Browser, server: Server) -> None:
    """A group of five people on five protocols."""
    phone, tablet, pager = Phone(server.impb), Tablet(server.delimited), Pager(server.qsiop)
    phone.register("ida", PASSWORD)
    phone.login("ida", PASSWORD)
    tablet.register("dee", PASSWORD)
    registered(server, "mia")
    quin = registered(server, "quin")
    board = Board(server.mqtt, "mia")
    answer = pager.report(quin.uid, device="pager", token=quin.token)
    assert answer["code"] == "0", answer

    web.press("Menu")
    web.press("New group")
    web.fill("dialog input[name=group]", "five")
    web.fill("dialog input[name=members]", "ida, dee, mia, quin")
    web.press("Create")
    web.sees("five", ".pane h2")
    created = tablet.event("group", "the new group")
    group = created.group.group.id
    web.driver.execute_script(WATCH)
    page = Page(web)

    writers = {"web": page, "impb": phone, "delimited": tablet, "mqtt": board}
    readers = {**writers, "qsiop": pager}
    began = time.monotonic()
    for number in range(ROUNDS):
        for name, person in writers.items():
            person.say(group, f"{name} {number}")
    count = ROUNDS * len(writers)
    heard = {}
    for name, person in readers.items():
        person.timeout = 30
        expected = count - (ROUNDS if name in writers else 0)
        heard[name] = [person.hear(group) for _ in range(expected)]
    took = time.monotonic() - began
    # Each person writes a last text after all texts have arrived. A text that came twice would arrive before the last
    # text.
    for name, person in writers.items():
        person.say(group, f"{name} ends")
        for other, reader in readers.items():
            if other != name:
                text = reader.hear(group)
                assert text == f"{name} ends", f"{other} got {text!r}"
    order = heard["qsiop"]
    assert len(set(order)) == count, order
    for writer in writers:
        own = [text for text in order if text.split()[0] == writer]
        assert own == [f"{writer} {number}" for number in range(ROUNDS)], own
    for name, texts in heard.items():
        assert texts == [text for text in order if text.split()[0] != name], f"{name} got {texts}, the order is {order}"
    shown = web.driver.execute_script(TEXTS)
    assert shown[-len(writers) :] == [f"{name} ends" for name in writers], shown
    deliveries = sum(len(texts) for texts in heard.values())
    step(
        f"a group of five on {', '.join(readers)}: {count} texts, {deliveries} deliveries, each once, all in one order; "
        f"{took:.1f} s"
    )
    for link in (phone, tablet, board, pager):
        link.close()


def registered(server: Server, name: str):
    """Registers an account for a protocol without registration, and returns its session."""
    link = Delimited(server.delimited)
    session = link.register(name, PASSWORD)
    link.close()
    return session


def main() -> None:
    began = time.monotonic()
    with contextlib.ExitStack() as stack:
        server = Server(stack.enter_context(tempfile.TemporaryDirectory()), PROTOCOLS)
        stack.callback(server.kill)
        served = stack.enter_context(tempfile.TemporaryDirectory())
        subprocess.run([ROOT / "scripts/embed-web", "--to", served], check=True)
        process = subprocess.Popen([ROOT / "scripts/web-serve", "0", served], stdout=subprocess.PIPE, text=True)
        stack.callback(lambda: (process.kill(), process.wait()))
        web = Browser(f"{process.stdout.readline().strip()}chat/?server=ws://127.0.0.1:{server.port}")
        stack.callback(web.driver.quit)
        web.join("wim")
        two(web, server)
        five(web, server)
        assert web.log() == [], web.log()
    print(f"protocols: good; {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
