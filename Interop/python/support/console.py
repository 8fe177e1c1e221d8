# Hermes
# SPDX-License-Identifier: Apache-2.0
"""The console of a server, as its page uses it, and the metrics beside it."""

import http.client
import json
import re
import time
import urllib.parse

from support.control import control

PASSWORD = "correct horse battery"


class Console:
    """An administrator's connection. Not thread-safe."""

    def __init__(self, port: int, directory: str, name: str = "olga", role: str = "administrator"):
        control(directory, "addAdministrator", name=name, role=role, password=PASSWORD)
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.asked = time.monotonic()
        self.cookie = self.token = ""
        status, answer, fields = self.ask("POST", "/login", {"name": name, "password": PASSWORD})
        assert status == 200, answer
        self.cookie = fields["Set-Cookie"].partition(";")[0]
        self.token = answer["csrf_token"]

    def ask(self, method: str, path: str, body=None):
        """Status, document, header fields."""
        headers = {"Content-Type": "application/json", "Cookie": self.cookie, "X-CSRF-Token": self.token}
        self.refresh()
        self.connection.request(method, f"/console/api{path}", json.dumps(body) if body is not None else None, headers)
        answer = self.connection.getresponse()
        data = answer.read()
        return answer.status, json.loads(data) if data else None, answer.headers

    def refresh(self) -> None:
        """Opens a new connection if this one has been idle for long: the console closes idle ones after 15 s."""
        if time.monotonic() - self.asked > 8:
            self.connection.close()
        self.asked = time.monotonic()

    def get(self, path: str):
        status, document, _ = self.ask("GET", path)
        assert status == 200, (path, status, document)
        return document

    def timed(self, path: str) -> tuple[float, int]:
        """The time from the request to the end of the answer, in seconds, and the answer's bytes."""
        headers = {"Cookie": self.cookie}
        for _ in range(10):
            self.refresh()
            began = time.perf_counter()
            self.connection.request("GET", f"/console/api{path}", None, headers)
            answer = self.connection.getresponse()
            data = answer.read()
            took = time.perf_counter() - began
            if answer.status != 429:
                break
            # An address and a session have rates, which this exceeds: what the answer says to wait is no part of it.
            time.sleep(float(answer.getheader("Retry-After") or 1))
        assert answer.status == 200, (path, answer.status, data[:300])
        return took, len(data)

    def figures(self, after: int | None = None) -> tuple[int, int, dict[str, list]]:
        """The time of the first row and the time between rows, in milliseconds, and the rows of each figure."""
        document = self.get("/figures?span=hour" + (f"&after_ms={after}" if after else ""))
        return document["from_ms"], document["interval_ms"], document["figures"]


def metrics(port: int) -> dict[str, dict[str, float]]:
    """`/metrics`: the values of each name, by their labels."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    found: dict[str, dict[str, float]] = {}
    for name, labels, value in re.findall(r"^(\w+)(?:\{(.*)\})? (\S+)$", text, re.M):
        found.setdefault(name, {})[labels] = float(value)
    return found


def total(values: dict[str, dict[str, float]], name: str, part: str = "") -> float:
    return sum(value for labels, value in values.get(name, {}).items() if part in labels)


def quoted(text: str) -> str:
    return urllib.parse.quote(text, safe="")
