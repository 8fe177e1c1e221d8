#!/usr/bin/env python3
# Hermes
# SPDX-License-Identifier: Apache-2.0
"""Attacks the pages and the console of a real server from outside. HERMES_BIN names the server's program.

Tests headers, cookies, inline scripts, caches, forged requests, roles, sessions, floods of logins, path traversal,
redirects, methods and foreign origins, on every page, over HTTP and over TLS. Needs only Python; the part over TLS also
needs openssl. payloads_browser.py tests hostile names and texts in a browser.
"""

import contextlib
import html.parser
import http.client
import itertools
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "Interop/python"))
from groups import make_group  # noqa: E402
from support.control import control  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = os.environ["HERMES_BIN"]
PASSWORD = "correct horse battery"
SECRET = "a file that nobody may read"
_addresses = itertools.count(1)

# Every request of the console that changes something: id, method, path, body, and the lowest role that may send it.
CHANGES = [
    ("removeDevice", "DELETE", "/users/ann/devices/phone", None, "operator"),
    ("revokeTokens", "DELETE", "/users/ann/tokens", None, "operator"),
    ("sayInRoom", "POST", "/rooms/lobby/messages", {"text": "hello", "name": "x"}, "operator"),
    ("removeFromRoom", "DELETE", "/rooms/lobby/members/ann", None, "operator"),
    ("closeRoom", "DELETE", "/rooms/lobby/members", None, "operator"),
    ("publish", "POST", "/topics/publish", {"topic": "a/b", "payload": {"text": "x"}, "retain": True}, "operator"),
    ("deleteRetained", "DELETE", "/topics/retained?topic=kept", None, "operator"),
    ("disconnectClient", "DELETE", "/clients/1", None, "operator"),
    ("removeFromGroup", "DELETE", "/groups/1/members/bob", None, "operator"),
    ("changeRoleInGroup", "PATCH", "/groups/1/members/cat", {"role": "administrator"}, "administrator"),
    ("dissolveGroup", "DELETE", "/groups/1", None, "administrator"),
    ("sendWebhookAgain", "POST", "/webhooks/01K2Y5QZ8V3T7N4M6R9W0XABCD/again", None, "operator"),
    ("createUser", "POST", "/users", {"nick_name": "new", "password": "secret-6+"}, "administrator"),
    ("changeUser", "PATCH", "/users/ann", {"disabled": True}, "administrator"),
    ("deleteUser", "DELETE", "/users/ann", None, "administrator"),
    ("createInvitation", "POST", "/invitations", {"name": "new", "uses": 1, "days": 1}, "administrator"),
    ("revokeInvitation", "DELETE", "/invitations/course", None, "administrator"),
    ("createKey", "POST", "/keys", {"name": "new", "scopes": "push"}, "administrator"),
    ("revokeKey", "DELETE", "/keys/shop", None, "administrator"),
    ("logOut", "POST", "/logout", None, "viewer"),
]
# The paths that only this role and higher roles may read.
READS = {
    "operator": ["/configuration", "/audit", "/keys", "/log", "/clients", "/sessions", "/trace?id=x", "/webhooks",
                 "/topics/retained?topic=kept", "/rooms/lobby/watch", "/topics/watch?filter=%23",
                 "/topics/retained/list?filter=%23"],
    "administrator": ["/administrators"],
}
PAGES = ["/", "/api", "/chat/", "/chat/chat.js", "/chat/chat.css", "/chat/worker.js", "/chat/manifest.webmanifest",
         "/chat/icon.svg", "/chat/push.json", "/room/", "/room/lobby", "/room/room.js", "/room/room.css", "/hermes.js",
         "/room/embed.js", "/room/lobby/viewers", "/service-worker.js", "/notifications.js", "/home/home.css", "/home/icon.svg"]
OTHERS = ["/healthz", "/readyz", "/metrics", "/v1/openapi.json", "/v1/users", "/ws", "/mqtt", "/nothing", "/chat/nothing"]
CONSOLE = ["/", "/console/", "/console/console.js", "/console/console.css", "/console/icon.svg", "/console/api/session",
           "/console/api/nothing", "/console/api/login", "/nothing"]
# Files that any page may load. Only the server's own pages may load the other files.
PUBLIC = {"/hermes.js", "/service-worker.js", "/notifications.js", "/room/embed.js"}
RANKS = ["viewer", "operator", "administrator"]


def step(text: str) -> None:
    print(f"security: {text}", flush=True)


def require(condition, *what) -> None:
    if not condition:
        raise AssertionError(*what)


class Answer:
    def __init__(self, status: int, fields: list[tuple[str, str]], body: bytes):
        self.status, self.body = status, body
        self.fields = [(name.lower(), value) for name, value in fields]

    def __getitem__(self, name: str) -> str:
        return ", ".join(value for key, value in self.fields if key == name)

    def __repr__(self) -> str:
        return f"{self.status} {self.fields} {self.body[:200]!r}"


def address() -> str:
    """Returns another loopback address each time, so that the limits per address do not refuse the test's own
    requests."""
    number = next(_addresses)
    return f"127.20.{number // 250 % 250}.{number % 250 + 1}"


def ask(port: int, method: str, target: str, headers: dict[str, str] | None = None, body=None, *,
        tls: bool = False, source: str | None = None) -> Answer:
    """Sends a request with its target unchanged."""
    source = source or address()
    if tls:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=20, source_address=(source, 0), context=context)
    else:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20, source_address=(source, 0))
    connection._validate_path = lambda _: None  # the test needs hostile paths
    fields = dict(headers or {})
    if isinstance(body, (dict, list)):
        body = json.dumps(body)
        fields.setdefault("Content-Type", "application/json")
    try:
        connection.request(method, target, body, fields)
        answer = connection.getresponse()
        endless = answer.getheader("content-type", "").startswith("text/event-stream")
        return Answer(answer.status, answer.getheaders(), b"" if endless else answer.read())
    finally:
        connection.close()


def raw(port: int, data: bytes) -> bytes:
    """Sends bytes, and returns the server's answer. The answer ends when the server closes the connection, or after 3 s
    without data."""
    with socket.socket() as connection:
        connection.settimeout(3)
        connection.bind((address(), 0))
        connection.connect(("127.0.0.1", port))
        connection.sendall(data)
        answer = b""
        with contextlib.suppress(TimeoutError, ConnectionError):
            while chunk := connection.recv(65536):
                answer += chunk
        return answer


class Server:
    """A real server with its pages, its console and MQTT, each on a free port."""

    def __init__(self, folder: str, settings: tuple[str, ...] = ()):
        self.folder = folder
        arguments = [PROGRAM, "serve", "--data.directory", folder]
        for name in ("impb", "liveroom", "qsiop", "delimited"):
            arguments += [f"--listeners.{name}.enabled", "false"]
        for name in ("http", "mqtt", "console"):
            arguments += [f"--listeners.{name}.port", "0"]
        log = pathlib.Path(f"{folder}.log")
        # The output goes to a file, because a full pipe that nobody reads would block the server.
        with log.open("w") as output:
            self.process = subprocess.Popen([*arguments, *settings], stdout=output, stderr=output)
        deadline = time.monotonic() + 60
        while not (ready := re.search(r"^.*ready:.*$", log.read_text(), re.M)):
            require(self.process.poll() is None and time.monotonic() < deadline, "no start", log.read_text())
            time.sleep(0.05)  # polling another process, bounded by the deadline
        ports = dict(re.findall(r" (\w+) \S*?:(\d+)", ready.group()))
        self.http, self.mqtt, self.console = (int(ports[name]) for name in ("http", "mqtt", "console"))

    def control(self, request: str, /, **values) -> dict:
        """Sends a request over the control socket, as the command line does."""
        return control(self.folder, request, **values)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(20)


class Administrator:
    """An administrator who is logged in to the console."""

    def __init__(self, server: Server, name: str, cookie: str = "", source: str | None = None):
        self.port, self.source = server.console, source
        fields = {"Cookie": cookie} if cookie else {}
        answer = ask(self.port, "POST", "/console/api/login", fields, {"name": name, "password": PASSWORD}, source=source)
        require(answer.status == 200, name, answer)
        self.set_cookie = answer["set-cookie"]
        self.cookie = self.set_cookie.partition(";")[0]
        self.token = json.loads(answer.body)["csrf_token"]

    def ask(self, method: str, path: str, body=None, token: str | None = None, **fields: str) -> Answer:
        headers = {"Cookie": self.cookie, **fields}
        token = self.token if token is None else token
        if token:
            headers["X-CSRF-Token"] = token
        return ask(self.port, method, f"/console/api{path}", headers, body, source=self.source)


# MARK: Headers

def directives(policy: str) -> dict[str, list[str]]:
    parts = [part.split() for part in policy.split(";") if part.strip()]
    require(len({part[0] for part in parts}) == len(parts), "a directive twice", policy)
    return {part[0]: part[1:] for part in parts}


def check_policy(answer: Answer, target: str) -> None:
    policy = directives(answer["content-security-policy"])
    require(policy.get("default-src") == ["'none'"], target, answer)
    require(policy.get("frame-ancestors") == ["'none'"], target, policy)
    for name, sources in policy.items():
        for source in sources:
            allowed = {"'none'", "'self'"} | ({"data:", "blob:"} if name == "img-src" else set())
            require(source in allowed, target, name, source)
    for name in ("script-src", "style-src"):
        require(policy.get(name, ["'self'"]) == ["'self'"], target, policy)
    if "script-src" in policy:
        require(policy.get("base-uri") == ["'none'"] and policy.get("form-action") == ["'none'"], target, policy)


def check_headers(port: int, target: str, name: str = "localhost", tls: bool = False) -> Answer:
    answer = ask(port, "GET", target, {"Host": name}, tls=tls)
    require(answer.status < 500, target, answer)
    check_policy(answer, target)
    require(answer["x-content-type-options"] == "nosniff", target, answer)
    require(answer["x-frame-options"] == "DENY", target, answer)
    require(answer["referrer-policy"] == "no-referrer", target, answer)
    # This header would also affect the other services under this host name (docs/security.md).
    require(not answer["strict-transport-security"], target, answer)
    require(answer["server"] in ("", "hermes") and not answer["x-powered-by"], target, answer)
    require(answer["cache-control"] in ("no-store", "no-cache"), target, answer)
    if answer.body and answer.status != 308:
        require(answer["content-type"], target, answer)
    if answer["content-type"].startswith("text/"):
        require("charset=utf-8" in answer["content-type"], target, answer)
    public = target in PUBLIC
    require(answer["access-control-allow-origin"] == ("*" if public else ""), target, answer)
    return answer


def check_pages(server: Server) -> None:
    for port, targets in ((server.http, PAGES + OTHERS), (server.console, CONSOLE)):
        for target in targets:
            answer = check_headers(port, target)
            if target not in PAGES and target not in CONSOLE:
                continue
            # The address /console/api/login accepts only POST.
            require("nothing" in target or target == "/console/api/login" or answer.status != 404, target, answer)
            if answer.status == 200:
                require(answer["cross-origin-opener-policy"] == "same-origin", target, answer)
                policy = "cross-origin" if target in PUBLIC else "same-origin"
                require(answer["cross-origin-resource-policy"] == policy, target, answer)
                require("camera=()" in answer["permissions-policy"], target, answer)
            if answer["etag"]:
                require(answer["cache-control"] == "no-cache" and "Accept-Encoding" in answer["vary"], target, answer)
                again = ask(port, "GET", target, {"Host": "localhost", "If-None-Match": answer["etag"]})
                require(again.status == 304 and not again.body, target, again)
                check_policy(again, target)
            else:
                require(answer["cache-control"] == "no-store", target, answer)
    step(f"headers and caches of {len(PAGES + OTHERS)} addresses of the HTTP port and {len(CONSOLE)} of the console")


class Sources(html.parser.HTMLParser):
    """Finds everything in a page's HTML that would run a script or load a file in an unsafe way."""

    def __init__(self):
        super().__init__()
        self.problems: list[str] = []
        self.script = False

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.script = tag == "script"
        if tag in ("style", "base", "iframe", "object", "embed", "form"):
            self.problems.append(f"<{tag}>")
        if tag == "script" and not values.get("src"):
            self.problems.append("an inline script")
        for name, value in attributes:
            if name.startswith("on") or name in ("style", "srcdoc"):
                self.problems.append(f"{name}=")
            if name in ("src", "href", "action") and not re.match(r"[\w./#-]*$|https?://[\w.:-]+/[\w./-]*$", value or ""):
                self.problems.append(f"{name}={value}")
            if name == "src" and "//" in value:
                self.problems.append(f"another host: {value}")

    def handle_data(self, data):
        if self.script and data.strip():
            self.problems.append(f"an inline script: {data[:40]}")

    def handle_comment(self, data):
        self.problems.append(f"a comment: {data}")


def check_sources(server: Server) -> None:
    count = 0
    for port, targets in ((server.http, PAGES), (server.console, CONSOLE)):
        for target in targets:
            answer = ask(port, "GET", target, {"Host": "localhost"})
            text = answer.body.decode()
            # Only visitors from this machine see the path of the data in the commands of these pages.
            elsewhere = ask(port, "GET", target, {"Host": "localhost", "X-Forwarded-For": "192.0.2.7"}).body.decode()
            require(str(server.folder) not in (elsewhere if target in ("/", "/api") else text) and "/home/" not in
                    elsewhere.replace("/home/home.css", "").replace("/home/icon.svg", ""), "a path of the machine", target)
            if answer["content-type"].startswith("text/html") and answer.status == 200:
                sources = Sources()
                sources.feed(text)
                require(sources.problems == [], target, sources.problems)
                count += 1
            if target.endswith(".js"):
                for word in (r"\beval\(", r"\bnew Function\b", r"\binnerHTML\b", r"\bouterHTML\s*=", r"insertAdjacentHTML",
                             r"document\.write", r"\bTODO\b", r"\bFIXME\b", r"srcdoc", r"setTimeout\(\s*[\"'`]"):
                    require(not re.search(word, text), target, word)
    step(f"no inline script, style or handler, and no other host, in {count} pages; no script that makes markup of texts")


def check_methods(server: Server) -> None:
    for port, targets in ((server.http, PAGES), (server.console, CONSOLE)):
        for target in targets:
            for method in ("TRACE", "TRACK", "CONNECT", "PUT", "DELETE", "PATCH", "POST", "OPTIONS", "DEBUG", "PROPFIND"):
                if method == "CONNECT":
                    continue
                marker = "marker-of-a-request"
                answer = ask(port, method, target, {"Host": "localhost", "X-Test": marker})
                require(answer.status in (400, 401, 403, 404, 405, 415, 501), method, target, answer)
                require(marker.encode() not in answer.body, method, target, answer)
                require(not answer["access-control-allow-methods"], method, target, answer)
    step("no page takes another method than GET and HEAD, and none repeats a request")


# MARK: Paths

def traversals() -> list[str]:
    made = []
    steps = ["../", "..%2f", "%2e%2e/", "%2e%2e%2f", "..%5c", "..\\", "%252e%252e%252f", "..;/", "..%00/", "....//",
             "%c0%ae%c0%ae/", "%c0%ae%c0%ae%c0%af", "..%c1%9c", "%uff0e%uff0e%u2215", "/%2e%2e/", ".%2e/", "..%ef%bc%8f"]
    for start in ("/", "/chat/", "/room/", "/console/", "/home/"):
        for one in steps:
            made.append(f"{start}{one * 8}etc/passwd")
            made.append(f"{start}{one}secret.txt")
    made += ["/chat/%00", "/chat/chat.js%00.png", "//etc/passwd", "/./etc/passwd", "/chat//../../etc/passwd",
             "/etc/passwd", "/hermes.db", "/data/hermes.db", "/.git/config", "/.env", "/chat/.", "/chat/..", "/%",
             "/%zz", "/chat/%2", "/room/%2e%2e%2f%2e%2e%2fetc%2fpasswd", "file:///etc/passwd", "/chat/tests/axe.py",
             "/tests/axe.py", "/cases/inbox.json", "/web/chat/chat.js", "/console/../secret.txt", "/~root/.bashrc"]
    return made


def check_paths(server: Server) -> None:
    paths = traversals()
    for port in (server.http, server.console):
        for path in paths:
            for method in ("GET", "HEAD"):
                answer = raw(port, f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
                status = int(answer.split(b" ", 2)[1])
                require(b"root:" not in answer and SECRET.encode() not in answer and b"SQLite format" not in answer, path)
                # A room can have any name. The page is the same for all rooms, and contains no part of the address.
                require(status in (308, 400, 401, 404, 421) or status == 200 and path.startswith(("/room/", "/chat/")), path, answer)
                if status == 200 and method == "GET":
                    require(b"passwd" not in answer and b"secret.txt" not in answer, path, answer)
    step(f"{len(paths)} paths out of the served files lead nowhere, on both ports")


def check_redirects(server: Server) -> None:
    hostile = ["//evil.example/", "//evil.example/chat", "//evil.example//chat/", "/\\evil.example/", "///evil.example/%2e%2e",
               "//room/evil.example/", "//room//", "///room/evil/", "/room//evil.example/", "/room/\\evil.example/",
               "/room/%0d%0aX-Injected:%20yes/", "/room/%0d%0a%0d%0a<script>/", "/room/a%00b/", "/chat?next=//evil.example",
               "/room/%5cevil.example/", "//chat", "///chat", "//console", "/%2f%2fevil.example/", "/room/..//evil.example/",
               "/chat%0d%0aSet-Cookie:a=b", "http://evil.example/chat", "http://evil.example/room/x/", "/room/a%E2%80%A8b/"]
    for port in (server.http, server.console):
        for path in hostile:
            answer = raw(port, f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
            head = answer.partition(b"\r\n\r\n")[0].decode("latin-1")
            require("x-injected" not in head.lower().replace("%0d%0ax-injected", "") and "set-cookie" not in
                    head.lower().replace("%0d%0aset-cookie", ""), path, head)
            for location in re.findall(r"(?im)^location:\s*(.*?)\s*$", head):
                require(re.match(r"/(?![/\\])", location), "a redirect to elsewhere", path, location)
    injected = raw(server.http, b"GET /room/x/ HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n")
    require(b"evil.example" not in injected, injected)
    step(f"{len(hostile)} addresses that try to lead elsewhere, or to write into the head of the answer")


def check_smuggling(server: Server) -> None:
    tries = [
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        b"GET /hidden HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nContent-Length: 9\r\n\r\nabcdGET /",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: xchunked\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost : localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: a\0b\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET\t/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ]
    for port in (server.http, server.console):
        for data in tries[:2] + tries[3:6]:
            answer = raw(port, data)
            require(answer.count(b"HTTP/1.1 ") <= 1, "two answers to one request", data, answer)
        for data in tries:
            answer = raw(port, data)
            require(not answer or re.match(rb"HTTP/1\.[01] (200|30\d|40\d|42\d|50[15])", answer), data, answer[:200])
    for bad in ("<script>alert(1)</script>", "a\"><img src=x onerror=alert(1)>", "evil.example", "localhost:8080'--"):
        page = raw(server.http, f"GET / HTTP/1.1\r\nHost: {bad}\r\nConnection: close\r\n\r\n".encode())
        require(b"<script>alert" not in page and b"<img src=x" not in page, bad, page)
        if bad.startswith("localhost"):
            continue
        console = raw(server.console, f"GET /console/ HTTP/1.1\r\nHost: {bad}\r\nConnection: close\r\n\r\n".encode())
        require(console.startswith((b"HTTP/1.1 421", b"HTTP/1.1 400")), bad, console[:200])
    step("requests that hide another one, and names that are not the server's")


# MARK: The console

def check_routes() -> None:
    """Fails if the console offers a request that this script does not know."""
    found = set()
    sources = ROOT / "Sources/HermesServer"
    if not sources.is_dir():
        return
    for file in (sources / "Console").glob("*.swift"):
        for method, name in re.findall(r'method: \.(\w+),\s*path: "[^"]*",\s*id: "(\w+)"', file.read_text()):
            if method != "get":
                found.add(name)
    core = (sources / "Console/ConsoleCore.swift").read_text()
    offered = set(re.findall(r'"(\w+)": \.(?:viewer|operator|administrator)', core))
    for file in (sources / "HTTP/API").glob("*.swift"):
        for method, name in re.findall(r'method: \.(\w+),\s*path: "[^"]*",\s*id: "(\w+)"', file.read_text()):
            if method != "get" and name in offered:
                found.add(name)
    known = {change[0] for change in CHANGES} | {"logIn"}
    require(found == known, "the console's requests differ from those tried here", found ^ known)


def contents(server: Server) -> list:
    """Returns all data that a forbidden request could have changed."""
    eve = Administrator(server, "eve")
    paths = ["/users", "/users/ann", "/users/ann/devices", "/rooms", "/topics/retained?topic=kept", "/topics/retained?topic=a/b",
             "/keys", "/invitations", "/groups", "/groups/1"]
    return [[eve.ask("GET", path).status, eve.ask("GET", path).body] for path in paths]


def check_roles(server: Server) -> None:
    before = contents(server)
    tried = 0
    for name, method, path, body, least in CHANGES:
        for fields, status in (({}, 401), ({"Cookie": "hermes-console=" + "0" * 43}, 401)):
            answer = ask(server.console, method, f"/console/api{path}", {**fields, "X-CSRF-Token": "x"}, body)
            require(answer.status == status, name, answer)
        for role in RANKS[: RANKS.index(least)]:
            somebody = Administrator(server, role)
            for overridden in ({}, {"X-HTTP-Method-Override": method}, {"X-Original-URL": f"/console/api{path}"}):
                answer = somebody.ask(method, path, body, **overridden)
                require(answer.status == 403, role, name, answer)
                tried += 1
            disguised = somebody.ask("GET", path, None, **{"X-HTTP-Method-Override": method, "X-Method-Override": method})
            require(disguised.status in (200, 400, 403, 404), role, name, disguised)
    for least, paths in READS.items():
        for role in RANKS[: RANKS.index(least)]:
            somebody = Administrator(server, role)
            for path in paths:
                require(somebody.ask("GET", path).status == 403, role, path)
        for path in paths:
            require(ask(server.console, "GET", f"/console/api{path}").status == 401, path)
    viewer = Administrator(server, "viewer")
    for path in ("/users/ann/messages?with=bob", "/users/ann/commands", "/push", "/openapi.json", "/events?kind=online"):
        for method in ("GET", "POST"):
            require(viewer.ask(method, path).status in (401, 404, 405), path)
    require(contents(server) == before, "a forbidden request changed something")
    step(f"{len(CHANGES)} requests that change something: {tried} tries with too low a role, and those of strangers, "
         "change nothing")


def check_forgery(server: Server) -> None:
    before = contents(server)
    tried = 0
    other = Administrator(server, "administrator")
    for name, method, path, body, _ in CHANGES:
        eve = Administrator(server, "eve")
        forged = [
            ({}, "", "no token"), ({}, "x", "another token"), ({}, other.token, "the token of another session"),
            ({"Origin": "https://evil.example"}, None, "another origin"), ({"Origin": "null"}, None, "a hidden origin"),
            ({"Origin": "http://localhost.evil.example"}, None, "an origin that begins alike"),
            ({"Sec-Fetch-Site": "cross-site"}, None, "another site"), ({"Sec-Fetch-Site": "same-site"}, None, "the same site"),
            ({"Host": "evil.example"}, None, "another name"),
        ]
        for fields, token, what in forged:
            answer = eve.ask(method, path, body, token, **fields)
            require(answer.status in (403, 421), name, what, answer)
            tried += 1
        # A form of another page can send these types without a preflight request.
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
            answer = eve.ask(method, path, json.dumps(body or {}), "", **{"Content-Type": kind})
            require(answer.status in (403, 415), name, kind, answer)
            tried += 1
    for fields in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        answer = ask(server.console, "POST", "/console/api/login", fields, {"name": "eve", "password": PASSWORD})
        require(answer.status == 403 and not answer["set-cookie"], answer)
    answer = ask(server.console, "POST", "/console/api/login", {"Content-Type": "text/plain"},
                 json.dumps({"name": "eve", "password": PASSWORD}))
    require(answer.status == 415 and not answer["set-cookie"], answer)
    require(contents(server) == before, "a forged request changed something")
    step(f"{tried} forged requests change nothing; nobody can log somebody else in")


def check_sessions(server: Server) -> None:
    chosen = "hermes-console=" + "A" * 43
    eve = Administrator(server, "eve", cookie=chosen)
    require(eve.cookie != chosen, "the server took a session's token from outside")
    require(ask(server.console, "GET", "/console/api/overview", {"Cookie": chosen}).status == 401)
    for fields in ({}, {"Cookie": chosen}, {"Cookie": f"{chosen}; {eve.cookie}"}):
        nobody = ask(server.console, "GET", "/console/api/session", fields)
        require(nobody.status == 200 and json.loads(nobody.body) == {"session": None}, nobody)
    require(ask(server.console, "GET", f"/console/api/overview?{eve.cookie}").status in (400, 401))
    again = Administrator(server, "eve", cookie=eve.cookie)
    require(again.cookie != eve.cookie and again.token != eve.token, "a login kept the session")
    require(eve.ask("GET", "/overview").status == 401, "the session before the login still works")
    both = ask(server.console, "GET", "/console/api/overview", {"Cookie": f"{chosen}; {again.cookie}"})
    require(both.status == 401, "two cookies of the name", both)
    require(again.ask("POST", "/logout").status == 204)
    require(again.ask("GET", "/overview").status == 401, "the session outlives its logout")
    victor = Administrator(server, "viewer")
    server.control("setAdministratorPassword", name="viewer", password=PASSWORD + "2")
    require(victor.ask("GET", "/overview").status == 401, "the session outlives its password")
    server.control("setAdministratorPassword", name="viewer", password=PASSWORD)
    attributes = {part.strip().lower() for part in eve.set_cookie.split(";")[1:]}
    require({"httponly", "samesite=strict", "path=/console"} <= attributes, eve.set_cookie)
    require("domain" not in eve.set_cookie.lower(), eve.set_cookie)
    tokens = {Administrator(server, "eve").cookie for _ in range(20)}
    require(len(tokens) == 20 and all(len(token.partition("=")[2]) >= 43 for token in tokens), tokens)
    step("a session is new with each login, ends with the logout and with the password; its cookie is the browser's alone")


def check_flood(server: Server) -> None:
    source = "127.66.6.6"
    known = Administrator(server, "eve", source="127.77.7.7")
    answers, slowest = [], 0.0
    for number in range(120):
        answers.append(ask(server.console, "POST", "/console/api/login", {}, {"name": "eve", "password": f"wrong {number}"},
                           source=source))
        if number % 10 == 0:
            began = time.monotonic()
            require(known.ask("GET", "/overview").status == 200)
            slowest = max(slowest, time.monotonic() - began)
    checked = sum(answer.status == 403 for answer in answers)
    require(all(answer.status in (403, 429) for answer in answers) and checked <= 21, checked, answers[-1])
    require(answers[-1].status == 429 and answers[-1]["retry-after"], answers[-1])
    right = ask(server.console, "POST", "/console/api/login", {}, {"name": "eve", "password": PASSWORD}, source=source)
    require(right.status == 429, "the flood did not shut its own address out", right)
    require(slowest < 1, "others wait for a flood of logins", slowest)
    Administrator(server, "eve", source="127.77.7.7")
    for number in range(150):
        ask(server.console, "POST", "/console/api/login", {}, {"name": "eve", "password": f"wrong {number}"})
    Administrator(server, "eve", source="127.77.7.7")
    require(sum(answer.status == 403 for answer in
                [ask(server.console, "POST", "/console/api/login", {}, {"name": "eve", "password": "x"}) for _ in range(10)]) == 0)
    # An unknown name gets the same answer as a wrong password.
    nobody = ask(server.console, "POST", "/console/api/login", {}, {"name": "nobody", "password": "x" * 12})
    wrong = ask(server.console, "POST", "/console/api/login", {}, {"name": "operator", "password": "x" * 12})
    require((nobody.status, nobody.body) == (wrong.status, wrong.body), nobody, wrong)
    step(f"of 120 wrong passwords from one address {checked} are checked; the owner's address is not shut out, "
         f"and others wait {slowest * 1000:.0f} ms at most")


def check_origins(server: Server) -> None:
    origin = {"Origin": "https://evil.example"}
    for target in ("/v1/users", "/v1/openapi.json", "/metrics", "/chat/", "/readyz"):
        answer = ask(server.http, "GET", target, origin)
        require(not answer["access-control-allow-origin"] and not answer["access-control-allow-credentials"], target, answer)
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
               "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
    for target, protocol in (("/ws", "hermes.v1.json"), ("/mqtt", "mqtt")):
        for foreign in ("https://evil.example", "null", "http://localhost.evil.example", "file://"):
            answer = ask(server.http, "GET", target, {**upgrade, "Sec-WebSocket-Protocol": protocol, "Origin": foreign})
            require(answer.status == 403, target, foreign, answer)
    for method, target in (("POST", "/v1/users"), ("DELETE", "/v1/users/ann"), ("POST", "/v1/push")):
        answer = ask(server.http, method, target, {"Cookie": "hermes-console=x", **origin}, {})
        require(answer.status == 401, target, answer)
    step("pages of other origins get no answer that they may read, no WebSocket and no change")


def check_allowed(server: Server) -> None:
    """Each change succeeds with the role that may make it. Otherwise, the refusals above would prove nothing. This
    function destroys the existing data."""
    for name, method, path, body, least in CHANGES:
        if name == "deleteUser":
            path = "/users/new"
        answer = Administrator(server, least).ask(method, path, body)
        absent = ("sendWebhookAgain", "disconnectClient", "removeDevice", "removeFromRoom")
        accepted = answer.status < 300 or (answer.status == 404 and name in absent)
        require(accepted, name, answer)
    step("each of them is possible with the role that it needs")


def check_tls(folder: str) -> None:
    if not shutil.which("openssl"):
        step("TLS SKIPPED: needs openssl")
        return
    key, certificate = f"{folder}/key.pem", f"{folder}/certificate.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days",
                    "2", "-subj", "/CN=localhost"], check=True, stderr=subprocess.DEVNULL)
    settings = ["--console.origins", "https://chat.example.com"]
    for name in ("http", "console"):
        settings += [f"--listeners.{name}.tls.certificate", certificate, f"--listeners.{name}.tls.privateKey", key]
    server = Server(f"{folder}/tls", tuple(settings))
    try:
        server.control("addAdministrator", name="eve", role="administrator", password=PASSWORD)
        for port, targets in ((server.http, PAGES + OTHERS), (server.console, CONSOLE)):
            for target in targets:
                check_headers(port, target, "chat.example.com", tls=True)
        answer = ask(server.console, "POST", "/console/api/login", {}, {"name": "eve", "password": PASSWORD}, tls=True)
        attributes = {part.strip().lower() for part in answer["set-cookie"].split(";")[1:]}
        require({"secure", "httponly", "samesite=strict", "path=/"} <= attributes, answer)
        require(answer["set-cookie"].startswith("__Host-"), answer)
        for version in (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1):
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            with contextlib.suppress(ValueError, ssl.SSLError, OSError), socket.create_connection(("127.0.0.1", server.http)) as one:
                context.set_ciphers("ALL:@SECLEVEL=0")
                context.minimum_version = ssl.TLSVersion.TLSv1
                context.maximum_version = version
                with context.wrap_socket(one):
                    raise AssertionError(f"the server speaks {version}")
    finally:
        server.stop()
    step("over TLS: the same headers, and a cookie that never leaves TLS")


def check(server: Server) -> None:
    for role in RANKS:
        server.control("addAdministrator", name=role, role=role, password=PASSWORD)
    server.control("addAdministrator", name="eve", role="administrator", password=PASSWORD)
    server.control("addUser", nickName="ann", password="secret-6+")
    server.control("addUser", nickName="bob", password="secret-6+")
    server.control("addUser", nickName="cat", password="secret-6+")
    make_group(server.mqtt, "ann", "secret-6+", "garden", [2, 3])
    server.control("createAPIKey", name="shop", scopes="push")
    server.control("createInvitation", name="course", uses=1, days=1)
    eve = Administrator(server, "eve")
    kept = {"topic": "kept", "payload": {"text": "x"}, "retain": True}
    require(eve.ask("POST", "/topics/publish", kept).status < 300)
    checks = [check_pages, check_sources, check_methods, check_paths, check_redirects, check_smuggling, check_origins,
              check_roles, check_forgery, check_sessions, check_flood, check_allowed]
    failed = []
    for one in checks:
        try:
            one(server)
        except AssertionError as error:
            failed.append(one.__name__)
            step(f"FAILED {one.__name__}: {error}")
    return failed


def main() -> None:
    check_routes()
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "secret.txt").write_text(SECRET)
        server = Server(f"{folder}/data")
        try:
            failed = check(server)
            require(server.process.poll() is None, "the server ended")
        finally:
            server.stop()
        try:
            check_tls(folder)
        except AssertionError as error:
            failed.append("check_tls")
            step(f"FAILED check_tls: {error}")
    if failed:
        sys.exit(f"security: failed: {', '.join(failed)}")
    print("security: good", flush=True)


if __name__ == "__main__":
    main()
