# Hermes
# SPDX-License-Identifier: Apache-2.0
"""Causes errors at known rates during the comparison of the console's figures: refused connections, dropped messages,
full queues."""

import socket
import sqlite3
import struct
import threading
import time

from clients import mqtt
from clients.link import Link
from support.checks import require
from support.console import Console, metrics, total
from support.control import control
from support.server import Server

PER_ADDRESS = 200
CROWDED = "127.0.0.9"
EXPIRY = 0x02
QUEUE = 20
WILLS = 8
FAILING = {"commits.failed": ("hermes_commits_failed_total", ""),
           "dropped.not_stored": ("hermes_mqtt_messages_dropped_total", '"not_stored"')}
FLOOD = b"f" * 8_192
SETTINGS = {
    "HERMES_LIMITS_CONNECTIONS_PER_ADDRESS": str(PER_ADDRESS), "HERMES_LIMITS_STUCK": "1 h",
    "HERMES_LIMITS_OUTBOUND_QUEUE": "64 KiB", "HERMES_HTTP_EVENTS_QUEUE": "64 KiB",
    "HERMES_MQTT_MAX_QUEUED_MESSAGES": str(QUEUE),
}


def quantile(share: float, now: dict[str, float], before: dict[str, float]) -> float:
    """Returns a quantile in seconds from two scrapes of a histogram, with the same formula as Prometheus."""
    bounds = sorted((float(labels.split('"')[1]), now[labels] - before.get(labels, 0)) for labels in now)
    rank = share * bounds[-1][1]
    low, below = 0.0, 0.0
    for bound, count in bounds:
        if count >= rank and count > below:
            return low if bound == float("inf") else low + (bound - low) * (rank - below) / (count - below)
        low, below = bound, count
    return low


class Waiting:
    """A subscriber that accepts one message at a time and acknowledges it after one second. Messages that wait longer
    expire."""

    def __init__(self, port: int, counts: dict[str, int]):
        link = Link(port)
        link.write(mqtt.connect("waiting", keep_alive=0, receive_maximum=1))
        link.write(mqtt.subscribe(1, [("soon", 1)]))
        self.socket, self.counts = link.socket, counts
        self.socket.settimeout(0.05)
        self.problem: BaseException | None = None
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        buffer = bytearray()
        held: tuple[int, float] | None = None
        while True:
            try:
                data = self.socket.recv(1 << 16)
                if not data:
                    return
                self.counts["bytes.out"] += len(data)
                buffer += data
            except TimeoutError:
                pass
            except OSError:
                return
            for kind, _, body in mqtt.packets(buffer):
                if kind != mqtt.PUBLISH:
                    continue
                at = 2 + struct.unpack(">H", body[:2])[0]
                held = (struct.unpack(">H", body[at:at + 2])[0], time.monotonic())
                self.counts["messages.out"] += 1
                self.counts["dropped.expired"] -= 1
            if held and time.monotonic() - held[1] > 1:
                data = mqtt.acknowledge(mqtt.PUBACK, held[0])
                held = None
                self.socket.sendall(data)
                self.counts["bytes.in"] += len(data)
                self.counts["frames.in"] += 1


def deaf(port: int) -> socket.socket:
    """Opens a connection whose client end buffers almost nothing."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    made.connect(("127.0.0.1", port))
    return made


class Troubles:
    """Clients that are refused, that read nothing, that are offline, or that lack a right. All of them are ready before
    the load begins."""

    ONLINE, AWAY = 4, 7

    def __init__(self, server: Server, counts: dict[str, int], publisher, scrape):
        """`publisher` is an MQTT connection whose bytes are counted. `scrape()` reads the metrics."""
        self.server, self.counts, self.publisher = server, counts, publisher
        for name in ("opened.refused", "dropped.slow_reader", "dropped.queue_full", "dropped.expired", "dropped.forbidden",
                     "dropped.events"):
            counts[name] = 0
        port = server.ports["mqtt"]
        self.packet = 0
        # Kept sessions: some are connected and some are offline. The queue of the last session is full.
        self.kept = []
        for number in range(self.ONLINE + self.AWAY):
            link = Link(port)
            link.write(mqtt.connect(f"kept-{number}", clean=False, keep_alive=0, expiry=3_600))
            if number == self.ONLINE + self.AWAY - 1:
                link.write(mqtt.subscribe(1, [("full", 1)]))
                self.gets(link, mqtt.SUBACK)
            else:
                self.gets(link, mqtt.CONNACK)
            if number < self.ONLINE:
                self.kept.append(link)
            else:
                link.write(mqtt.packet(mqtt.DISCONNECT))
                link.close()
        self.crowd = []
        for number in range(PER_ADDRESS):
            one = Link(port, source=CROWDED)
            one.write(mqtt.connect(f"crowd-{number}", keep_alive=0))
            self.crowd.append(one)
        for one in self.crowd:
            self.gets(one, mqtt.CONNACK)
        self.waiting = Waiting(port, counts)
        self.slow = deaf(port)
        self.slow.sendall(mqtt.connect("slow", keep_alive=0) + mqtt.subscribe(1, [("flood", 0)]))
        secret = control(server.data, "createAPIKey", name="troubles", scopes="all")["apiKeyCreated"]["secret"]
        self.stream = deaf(server.ports["http"])
        self.stream.sendall((f"GET /v1/events?topic=flood HTTP/1.1\r\nHost: 127.0.0.1:{server.ports['http']}\r\n"
                             f"Authorization: Bearer {secret}\r\n\r\n").encode())
        self._fill(scrape)
        self.held = self.ONLINE + PER_ADDRESS + 2  # two more: `waiting` and `slow`

    @staticmethod
    def gets(link: Link, wanted: int) -> None:
        buffer = bytearray()
        while True:
            data = link.socket.recv(4_096)
            require(data, "the server closed a connection")
            buffer += data
            if any(kind == wanted for kind, _, _ in mqtt.packets(buffer)):
                return

    def _fill(self, scrape) -> None:
        """Fills the kept session's queue, and the system's buffers for the clients that read nothing."""
        for _ in range(QUEUE + 1):
            self._publish("full", b"x", 1)
        deadline = time.monotonic() + 120
        while True:
            values = scrape()
            if all(sum(values.get(name, {}).values()) > 2 for name in (
                    "hermes_frames_dropped_total", "hermes_events_dropped_total")) \
                    and sum(values.get("hermes_mqtt_queue_full_total", {}).values()) > 0:
                return
            require(time.monotonic() < deadline, "those that read nothing still get everything")
            for _ in range(50):
                self._publish("flood", FLOOD)

    def _publish(self, topic: str, payload: bytes, qos: int = 0, raw: bytes = b"") -> None:
        self.packet = self.packet % 60_000 + 1
        self.publisher.send(mqtt.publish(topic, payload, qos, self.packet, raw=raw), 1)

    def tick(self, number: int) -> None:
        """The errors of one tick. There are fifty ticks in a second."""
        if number % 5 == 0:
            Link(self.server.ports["mqtt"], source=CROWDED).close()
            self.counts["opened.refused"] += 1
            self._publish("$SYS/forbidden", b"x")
            self.counts["dropped.forbidden"] += 1
            self._publish("flood", FLOOD)
            self.counts["dropped.slow_reader"] += 1
            self.counts["dropped.events"] += 1
            self.counts["messages.in"] += 1
            self.counts["messages.out"] += 1
        if number % 10 == 0:
            # The message is stored for the kept session and replaces the oldest message.
            self._publish("full", b"x", 1)
            self.counts["commits.operations"] += 1
            self.counts["dropped.queue_full"] += 1
            self._publish("soon", b"x", 1, struct.pack(">BI", EXPIRY, 1))
            # The message counts as expired. If it arrives in time, `Waiting` corrects the count.
            self.counts["dropped.expired"] += 1
            self.counts["messages.in"] += 2


def following(console: Console, newest: int) -> tuple[dict[str, float], int, float]:
    """Waits for the next row of the console. Returns the row, its time, and the time at which it arrived."""
    deadline = time.monotonic() + 30
    while True:
        first, interval, values = console.figures(newest)
        count = len(values.get("frames.in", []))
        if count:
            last = first + (count - 1) * interval
            return {name: each[-1] for name, each in values.items()}, last, time.monotonic()
        require(time.monotonic() < deadline, "the console has no new rows")
        time.sleep(0.02)  # polling another process, bounded by the deadline


class Rows(threading.Thread):
    """Collects the console's rows from now on, and the times at which they arrived. A row has rates over the time since
    the previous row."""

    def __init__(self, console: Console):
        super().__init__(daemon=True)
        self.console = console
        self.is_over = False
        self.problem: BaseException | None = None
        _, self.newest, at = following(console, 0)
        _, self.newest, at = following(console, self.newest)
        self.times = [at]
        self.rows: list[dict[str, float]] = []

    def run(self) -> None:
        try:
            while not self.is_over:
                row, self.newest, at = following(self.console, self.newest)
                self.rows.append(row)
                self.times.append(at)
        except BaseException as problem:  # the check reports it
            self.problem = problem

    def until(self, moment: float) -> None:
        """Waits until the rows include everything that happened before a moment."""
        deadline = time.monotonic() + 60
        while self.problem is None and self.times[-2:][0] < moment:
            require(time.monotonic() < deadline, "the console has no new rows")
            time.sleep(0.1)  # polling a thread, bounded by the deadline
        self.is_over = True
        require(self.problem is None, repr(self.problem))

    def sum(self, name: str) -> float:
        return sum(row[name] * (now - before) for row, before, now in zip(self.rows, self.times, self.times[1:]))


def stall(server: Server, console: Console, operation, count: int) -> str:
    """Another process locks the database for a moment, and the figures are sampled in this time. `count` operations
    must wait. Then the process locks the database for longer than the server waits, so commits fail. One failed commit
    is for the inboxes. The other failed commits are for the wills of clients that vanish in this time; these wills are
    lost. `operation(n)` sends one operation for the inboxes and one operation of MQTT.
    """
    vanishing = []
    for number in range(WILLS):
        link = Link(server.ports["mqtt"])
        link.write(mqtt.connect(f"vanishing-{number}", keep_alive=0, will=(f"vanished/{number}", b"x")))
        Troubles.gets(link, mqtt.CONNACK)
        vanishing.append(link)
    store = sqlite3.connect(f"{server.data}/hermes.db", timeout=10, isolation_level=None)
    _, newest, _ = following(console, 0)
    interval = console.figures()[1] / 1_000
    begins = ((time.time() + 0.5) // interval + 1) * interval
    # A row is sampled within one second after it begins, and the server waits 2 s for the database.
    time.sleep(max(0.0, begins - 0.5 - time.time()))
    store.execute("BEGIN IMMEDIATE")
    try:
        for number in range(count):
            operation(number)
        while newest < begins * 1_000:
            row, newest, _ = following(console, newest)
    finally:
        store.execute("ROLLBACK")
    waiting = row["waiting.operations"], row["waiting.mqtt"]
    require(waiting == (count, count), f"{waiting} operations wait, not {count}")
    row, newest, _ = following(console, newest)
    require((row["waiting.operations"], row["waiting.mqtt"]) == (0, 0), f"something waits: {row}")

    before = metrics(server.ports["http"])

    def grown() -> dict[str, float]:
        now = metrics(server.ports["http"])
        return {name: total(now, metric, part) - total(before, metric, part) for name, (metric, part) in FAILING.items()}

    rows = Rows(console)
    rows.start()
    store.execute("BEGIN IMMEDIATE")
    try:
        operation(count)
        for link in vanishing:
            link.reset()
        deadline = time.monotonic() + 60
        # In each commit, the server waits 2 s for the database. There are several commits, one after another. Each
        # request for /metrics makes a commit, too, because it checks whether the store can write.
        while grown()["dropped.not_stored"] < WILLS or grown()["commits.failed"] == 0:
            require(time.monotonic() < deadline, f"not all of it has failed: {grown()}")
            time.sleep(0.2)  # polling another process, bounded by the deadline
    finally:
        store.execute("ROLLBACK")
    store.close()
    rows.until(time.monotonic())
    found = grown()
    require(found["dropped.not_stored"] == WILLS, f"{found['dropped.not_stored']} wills were lost, not {WILLS}")
    for name, count in found.items():
        require(abs(rows.sum(name) - count) <= 0.02 * count, f"{name}: {rows.sum(name)}, in /metrics {count}")
    return f"{waiting[0]:.0f} of each waited, {found['commits.failed']:.0f} failed, {WILLS} wills were lost"
