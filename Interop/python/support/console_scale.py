# Hermes
# SPDX-License-Identifier: Apache-2.0
"""The console of a large server: the time of its requests and pages, and the cost of an open page."""

import json
import os
import re
import resource
import selectors
import shutil
import socket
import sqlite3
import statistics
import subprocess
import time
import urllib.request

from clients import mqtt
from support.checks import Report, Skipped, require
from support.console import Console, quoted
from support.environment import ROOT
from support.server import Server

MOST = 0.3
"""The longest time of a request or a page, in seconds."""
SHARE = 3.0
"""The percentage of a core that the server may use with the page open, including the cost of all idle clients."""
PER_ADDRESS = 4_000
SPARE = 200
"""The number of files that this process may need in addition to the connections."""
PAGES = ROOT / "web" / "tests" / "console_pages.py"
SOURCES = ROOT / "Sources" / "HermesServer" / "Console"
STREAMS = {"/rooms/{room}/watch", "/topics/watch"}
"""The routes whose answers never end."""
GROUPS = 10_000
MEMBERS = 500
"""The number of members of the first group, and the maximum for a group. Each other group has ten members."""


def most_files(wanted: int) -> int:
    """Raises the number of files that this process may open, up to `wanted`, and returns it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, max(hard, wanted)))
        return wanted
    except (ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, wanted), hard))
        return min(hard, wanted)


def add_accounts(server: Server, count: int) -> None:
    """Makes copies of one account, because hashing so many passwords would take an hour. The server must not run."""
    with sqlite3.connect(f"{server.data}/hermes.db") as store:
        (password,) = store.execute("SELECT password FROM account LIMIT 1").fetchone()
        now = int(time.time() * 1000)
        names = ((f"Person {number}", f"person {number}", password, now) for number in range(count))
        store.executemany("INSERT INTO account (nick_name, nick_key, password, created_at) VALUES (?, ?, ?, ?)", names)
    store.close()


def add_groups(server: Server, count: int) -> None:
    """Makes groups. The first group has `MEMBERS` accounts; each other group has ten. The server must not run."""
    with sqlite3.connect(f"{server.data}/hermes.db") as store:
        now = int(time.time() * 1000)
        store.executemany("INSERT INTO chat_group (name, avatar_url, is_muted, created_at) VALUES (?, '', 0, ?)",
                          ((f"Group {number}", now) for number in range(count)))
        first, owner, member = 1, 3, 1
        store.executemany("INSERT INTO group_member (group_id, user, role, muted_until) VALUES (?, ?, ?, 0)", (
            (group, 1 + (group * 7 + place) % 90_000, member if place else owner)
            for group in range(first, first + count) for place in range(MEMBERS if group == first else 10)))
    store.close()


def get_routes(openapi: dict) -> set[str]:
    """Returns the paths of all GET requests of the console, from the declarations in the sources. The requests that the
    console shares with the HTTP API are found by their ids in the API's document."""
    source = "\n".join(file.read_text() for file in sorted(SOURCES.glob("*.swift")))
    views = re.findall(r'\bview\(\s*"(/[^"]*)",\s*"\w+"', source)
    require(len(views) == len(re.findall(r"\bview\(", source)) - 1, "a view is declared in a way that cannot be read here")
    others = re.findall(r'method: \.get,\s*path: "(/[^"]*)"', source)
    require(len(others) == source.count("method: .get,") - 1, "a route is declared in a way that cannot be read here")
    [reused] = re.findall(r"static let reused: \[String: AdministratorRole\] = \[(.*?)\n    \]", source, re.S)
    ids = set(re.findall(r'"(\w+)": \.', reused))
    named = {methods["get"]["operationId"]: path.removeprefix("/v1") for path, methods in openapi["paths"].items() if "get" in methods}
    found = {named[one] for one in ids & set(named)} | set(views) | set(others)
    require(len(found) >= 25 and STREAMS <= found, found)
    return found


def missing(routes: set[str], asked: list[str]) -> list[str]:
    """Returns the routes that no request uses."""
    plain = {path.partition("?")[0] for path in asked}
    # If a path matches several routes, the route without parameters applies.
    fixed = plain & routes
    return sorted(route for route in routes - STREAMS - fixed if not any(
        re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", route), path) for path in plain - fixed))


class Crowd:
    """Idle MQTT clients from several addresses. Each of the first `rooms` clients is in its own room."""

    def __init__(self, port: int, connections: int, rooms: int):
        self.sockets: list[socket.socket] = []
        waiting = selectors.DefaultSelector()
        opened = 0
        while opened < connections or waiting.get_map():
            while opened < connections and len(waiting.get_map()) < 200:
                one = socket.socket()
                one.bind((f"127.0.{1 + opened // PER_ADDRESS}.1", 0))
                one.connect(("127.0.0.1", port))
                one.sendall(mqtt.connect(f"client-{opened}", keep_alive=0)
                            + (mqtt.subscribe(1, [(f"room/room-{opened:05}", 0)]) if opened < rooms else b""))
                # The expected packets: a CONNACK, and also a SUBACK for a client in a room.
                waiting.register(one, selectors.EVENT_READ, [bytearray(), 2 if opened < rooms else 1])
                self.sockets.append(one)
                opened += 1
            ready = waiting.select(20)
            require(ready, f"{len(waiting.get_map())} of {opened} clients get no answer")
            for key, _ in ready:
                buffer, wanted = key.data
                data = key.fileobj.recv(4096)
                require(data, f"the server closed one of {opened} connections")
                buffer += data
                for kind, _, body in mqtt.packets(buffer):
                    require(kind != mqtt.CONNACK or body[1] == 0, f"refused: {body!r}")
                    require(kind != mqtt.SUBACK or body[-1] < 0x80, f"no subscription: {body!r}")
                    wanted -= 1
                key.data[1] = wanted
                if wanted == 0:
                    waiting.unregister(key.fileobj)
        waiting.close()

    def close(self) -> None:
        for one in self.sockets:
            one.close()


def processor(server: Server) -> float:
    """Returns the processor time that the server has used, in seconds of one core."""
    fields = open(f"/proc/{server.process.pid}/stat").read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def paths(accounts: int) -> list[str]:
    """Returns the paths of all requests of the console that read, with searches that have many, few and no results."""
    last = accounts - 10
    found = ["/session", "/overview", "/figures", "/figures?span=hour", "/figures?span=month", "/configuration",
             "/administrators", "/audit?limit=200", "/keys", "/invitations", "/log?limit=500", "/log?text=nothing-like-it&limit=500",
             "/trace?id=nothing", "/webhooks?limit=500", "/stats/delivery",
             "/stats/delivery?period=month", "/stats/delivery/series?period=month", "/rooms", "/users?limit=50",
             f"/users?after={last}&limit=50", f"/users/{last}", f"/users/{quoted('@Person 7')}", f"/users/{last}/devices", f"/users/{last}/tokens",
             f"/users/{last}/groups", "/topics/retained?topic=news"]
    for text in ("person", "999", "son 12345", "nobody-like-this"):
        found += [f"/search/users?text={quoted(text)}&limit=50"]
    # A session may send a burst of only 30 searches.
    for text in ("person", "client-1", "room-0", "nobody-like-this"):
        found += [f"/search?text={quoted(text)}"]
    found += ["/groups?after=0&limit=50", f"/groups?after={GROUPS - 20}&limit=50", "/groups/1", f"/groups/{GROUPS}",
              "/topics/retained/list?filter=%23&limit=50", "/topics/retained/list?filter=%23&after=150&limit=50"]
    for text in ("group", "999", "nothing-like-this"):
        found += [f"/groups?text={quoted(text)}&limit=50"]
    for which in ("clients", "sessions"):
        found += [f"/{which}?after=0&limit=200", f"/{which}?after=19000&limit=50"]
        found += [f"/{which}?after=0&limit=50&text={quoted(text)}" for text in ("client-1", "19999", "nobody-like-this")]
    return found


def run(report: Report, connections: int, accounts: int, rooms: int) -> None:
    files = most_files(connections + SPARE)
    if files < connections + SPARE:
        print(f"      {files - SPARE} connections in place of {connections}: no more files may be open (ulimit -Hn)", flush=True)
        connections = files - SPARE
    settings = {"HERMES_LIMITS_CONNECTIONS": str(connections + 1_000), "HERMES_LIMITS_CONNECTIONS_PER_ADDRESS": str(PER_ADDRESS + 100),
                "HERMES_LISTENERS_CONSOLE_ENABLED": "true"}
    server = Server(settings, listeners=("http", "mqtt", "console"))
    crowd = None
    try:
        server.start()
        console = Console(server.ports["console"], server.data)
        status, answer, _ = console.ask("POST", "/users", {"nick_name": "first", "password": "secret-6+"})
        require(status == 201, answer)
        require(server.stop() == 0, "the server did not stop")
        add_accounts(server, accounts)
        add_groups(server, GROUPS)
        server.start(timeout=120)
        console = Console(server.ports["console"], server.data, "vera")
        retain(server)
        began = time.monotonic()
        crowd = Crowd(server.ports["mqtt"], connections, rooms)
        print(f"      {connections} connections, {accounts} accounts, {rooms} rooms in {time.monotonic() - began:.0f} s; "
              f"{server.resident_bytes() / 1048576:.0f} MiB", flush=True)
        found = console.get("/rooms")["total"]
        require(found == rooms, f"{found} rooms")
        report.run("each GET route of the console is among the requests", complete, server, accounts)
        report.run(f"no request takes over {MOST * 1000:.0f} ms", requests, console, accounts)
        report.run(f"no page takes over {MOST * 1000:.0f} ms", pages, server)
        report.run(f"the open page costs at most {SHARE} % of a core", cost, server)
    finally:
        if crowd:
            crowd.close()
        server.remove()


def retain(server: Server, count: int = 200) -> None:
    """Makes retained publications with one MQTT client."""
    with socket.create_connection(("127.0.0.1", server.ports["mqtt"]), 20) as client:
        client.sendall(mqtt.connect("sensors", keep_alive=0))
        buffer = bytearray()
        for number in range(count):
            client.sendall(mqtt.publish("news" if number == 0 else f"sensors/{number}", b"x" * 100, 1, number + 1, retain=True))
            while not any(kind == mqtt.PUBACK for kind, _, _ in mqtt.packets(buffer)):
                data = client.recv(65_536)
                require(data, "the server closed the connection")
                buffer += data


def complete(server: Server, accounts: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{server.ports['http']}/v1/openapi.json") as answer:
        routes = get_routes(json.load(answer))
    require(not (left := missing(routes, paths(accounts))), f"not timed: {left}")
    # This proves that `missing` finds a missing route.
    without = [path for path in paths(accounts) if not path.startswith("/groups/")]
    require(missing(routes, without) == ["/groups/{group}"], missing(routes, without))
    return f"{len(routes)} routes, of which {len(STREAMS)} are streams"


def requests(console: Console, accounts: int) -> str:
    took = {}
    for path in paths(accounts):
        times = [console.timed(path) for _ in range(7)]
        took[path] = (statistics.median(time for time, _ in times), max(time for time, _ in times), times[0][1])
    slow = sorted(took.items(), key=lambda item: -item[1][0])
    for path, (middle, worst, size) in slow[:6]:
        print(f"      {middle * 1000:7.1f} ms, at most {worst * 1000:.1f} ms, {size:8,} bytes  {path}", flush=True)
    for path, (_, worst, _) in slow:
        require(worst <= MOST, f"{path} takes {worst * 1000:.0f} ms at worst")
    return f"{len(took)} requests, the slowest {slow[0][1][0] * 1000:.0f} ms in the middle of seven, " \
           f"{max(worst for _, worst, _ in took.values()) * 1000:.0f} ms at worst"


def browser(server: Server, *arguments: str) -> subprocess.Popen:
    python = next((one for one in ("/usr/bin/python3", shutil.which("python3") or "") if one and subprocess.run(
        [one, "-c", "import selenium"], capture_output=True, env={"PATH": os.environ["PATH"]}).returncode == 0), None)
    if not python or not shutil.which("chromedriver"):
        raise Skipped("needs chromium-driver and python3-selenium")
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    return subprocess.Popen([python, str(PAGES), "--port", str(server.ports["console"]), "--http", str(server.ports["http"]), *arguments], text=True, env=clean,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def pages(server: Server) -> str:
    process = browser(server, "--name", "vera")
    output, _ = process.communicate(timeout=180)
    require(process.returncode == 0, f"the browser failed: {output[-500:]}")
    took = json.loads(output.splitlines()[-1])
    for title, milliseconds in sorted(took.items(), key=lambda item: -item[1])[:4]:
        print(f"      {milliseconds:7.1f} ms  {title}", flush=True)
    for title, milliseconds in took.items():
        require(milliseconds <= MOST * 1000, f"{title} takes {milliseconds:.0f} ms")
    return f"{len(took)} pages, the slowest {max(took.values()):.0f} ms from the click to the painted frame"


def cost(server: Server, seconds: float = 40) -> str:
    def share() -> float:
        before, began = processor(server), time.monotonic()
        time.sleep(seconds)  # the time of the measurement
        return 100 * (processor(server) - before) / (time.monotonic() - began)

    idle = share()
    process = browser(server, "--name", "vera", "--stay")
    try:
        require(process.stdout.readline().strip() == "open", "the page did not open")
        time.sleep(2)  # the cost of opening the page is not part of the measurement
        open_ = share()
    finally:
        process.communicate("\n", timeout=60)
    require(open_ <= SHARE, f"{open_:.2f} % of a core with the page, {idle:.2f} % without")
    return f"{idle:.2f} % of a core without, {open_:.2f} % with the page of live figures open"
