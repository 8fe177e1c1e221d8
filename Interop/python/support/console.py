# Hermes
# SPDX-License-Identifier: Apache-2.0
"""The requests of a server's console, as its page sends them, and the server's metrics."""

import http.client
import json
import re
import time
import urllib.parse

from support.control import control

PASSWORD = "correct horse battery"


class Console:
    """An administrator's connection to the console. It is not thread-safe."""

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
        """Sends a request. Returns the status, the document and the header fields of the answer."""
        headers = {"Content-Type": "application/json", "Cookie": self.cookie, "X-CSRF-Token": self.token}
        self.refresh()
        self.connection.request(method, f"/console/api{path}", json.dumps(body) if body is not None else None, headers)
        answer = self.connection.getresponse()
        data = answer.read()
        return answer.status, json.loads(data) if data else None, answer.headers

    def refresh(self) -> None:
        """Opens a new connection if this one has been idle for more than 8 s. The console closes idle connections after
        15 s."""
        if time.monotonic() - self.asked > 8:
            self.connection.close()
        self.asked = time.monotonic()

    def get(self, path: str):
        status, document, _ = self.ask("GET", path)
        assert status == 200, (path, status, document)
        return document

    def timed(self, path: str) -> tuple[float, int]:
        """Returns the time from the request to the end of the answer, in seconds, and the number of bytes of the
        answer."""
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
            # The requests exceed the rate limits of an address and a session. The returned time does not include the
            # wait for the limit.
            time.sleep(float(answer.getheader("Retry-After") or 1))
        assert answer.status == 200, (path, answer.status, data[:300])
        return took, len(data)

    def figures(self, after: int | None = None) -> tuple[int, int, dict[str, list]]:
        """Returns the time of the first row and the time between rows, in milliseconds, and the rows of each figure."""
        document = self.get("/figures?span=hour" + (f"&after_ms={after}" if after else ""))
        return document["from_ms"], document["interval_ms"], document["figures"]


def metrics(port: int) -> dict[str, dict[str, float]]:
    """Reads `/metrics`. Returns the values of each metric, by their labels."""
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
