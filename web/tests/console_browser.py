#!/usr/bin/env python3
# Hermes
# SPDX-License-Identifier: Apache-2.0
"""Tests the console in headless Chromium against a real server. HERMES_BIN names the server's program.

Needs what chat_browser.py needs. If WEB_SCREENSHOTS names a folder, the screenshots are written to it.
"""

import base64
import contextlib
import hashlib
import hmac
import http.server
import json
import pathlib
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "Interop/python"))
from support.control import control  # noqa: E402

from chat_browser import PROGRAM, PROTOCOLS, Browser
from console_search import Search, kinds, results
from groups import ask, make_group
from narrow import WIDTH, check_fits, narrow
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

PASSWORD = "correct horse battery"
MEMBER_PASSWORD = "secret-6+"

# Texts that become markup, attributes or scripts in a page that does not escape them. Each is short enough for a name.
PAYLOADS = [
    f"{number}{text}"
    for number, text in enumerate(
        [
            "<script>document.title='hit'</script>", "<img src=x onerror=document.title='hit'>",
            "<svg/onload=document.title='hit'>", "\"><script>document.title='hit'</script>", "'><b id=hit>x</b>",
            "<iframe srcdoc='<script>1</script>'>", "<a href=javascript:document.title='hit'>x</a>", "{{7*7}}${7*7}",
            "</textarea><script>1</script>", "<style>*{display:none}</style>", "<details open ontoggle=alert(1)>",
            "javascript:alert(1)", "&lt;b&gt;&#60;i&#62;", "<!--", "]]><b>", "`${document.title='hit'}`",
            "<math><mi xlink:href='javascript:1'>", "<form action=//evil.example><input>", "<base href=//evil.example>",
            "<meta http-equiv=refresh content=0>", "' onfocus='alert(1)' autofocus='", "\\u003cscript\\u003e",
            "<object data=data:text/html,x>", "<video><source onerror=alert(1)>", "<link rel=stylesheet href=//e>",
        ]
    )
]


def step(text: str) -> None:
    print(f"console: {text}", flush=True)


class Receiver:
    """Receives webhooks, and keeps the ids of their events."""

    def __init__(self):
        receiver = self
        self.ids: list[str] = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                receiver.ids.append(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["id"])
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


class Server:
    """A real server on which only the console and MQTT are open."""

    def __init__(self, folder: str):
        self.hooks = Receiver()
        self.folder = folder
        arguments = [PROGRAM, "serve", "--data.directory", folder, "--listeners.http.enabled", "false"]
        arguments += ["--listeners.console.port", "0"]
        for name in PROTOCOLS[:-1]:
            arguments += [f"--listeners.{name}.enabled", "false"]
        arguments += ["--listeners.mqtt.port", "0", "--webhooks.url", f"http://127.0.0.1:{self.hooks.server.server_port}/"]
        self.process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.port = self.mqtt = 0
        self.output = ""
        for line in self.process.stdout:
            self.output += line
            if found := re.search(r"ready:.* console \S*:(\d+)", line):
                self.port = int(found.group(1))
                self.mqtt = int(re.search(r" mqtt \S*:(\d+)", line).group(1))
                return
        raise SystemExit("the server did not start")

    def ask(self, request: str, /, **values) -> dict:
        """Sends a request over the control socket, as the command line does."""
        return control(self.folder, request, **values)


def mqtt_client(port: int, client_id: str, topic: str, user: str = "", is_kept: bool = False) -> socket.socket:
    """Returns an MQTT 3.1.1 client that subscribes to a topic and reads nothing. A client with a user is a device; a
    client without a user is anonymous. `is_kept` makes its session persistent."""

    def text(value: str) -> bytes:
        return struct.pack(">H", len(value.encode())) + value.encode()

    connection = socket.create_connection(("127.0.0.1", port), 20)
    connect = text("MQTT") + bytes([4, (0xC0 if user else 0) | (0 if is_kept else 2), 0, 0]) + text(client_id)
    if user:
        connect += text(user) + text(MEMBER_PASSWORD)
    topics = [topic, *(["hermes/v1/down/json"] if user else [])]
    subscribe = bytes([0, 1]) + b"".join(text(one) + bytes([0]) for one in topics)
    connection.sendall(bytes([0x10, len(connect)]) + connect + bytes([0x82, len(subscribe)]) + subscribe)
    answer = b""
    while len(answer) < 8 + len(topics):
        answer += connection.recv(8 + len(topics) - len(answer)) or b"the server closed the connection"
    assert answer == bytes([0x20, 2, 0, 0, 0x90, 2 + len(topics), 0, 1, *(0 for _ in topics)]), answer
    return connection


def is_open(connection: socket.socket) -> bool:
    """Sends PINGREQ, and returns whether PINGRESP arrives."""
    try:
        connection.sendall(bytes([0xC0, 0]))
        return connection.recv(2) == bytes([0xD0, 0])
    except ConnectionError:
        return False


def code(secret: str) -> str:
    """Returns the current code of a second factor (RFC 6238)."""
    digest = hmac.digest(base64.b32decode(secret), struct.pack(">Q", int(time.time()) // 30), hashlib.sha1)
    offset = digest[-1] & 15
    return str((struct.unpack(">I", digest[offset : offset + 4])[0] & 0x7FFFFFFF) % 1_000_000).zfill(6)


def log_in(browser: Browser, name: str) -> None:
    browser.fill("input[name=name]", name)
    browser.fill("input[name=password]", PASSWORD)
    browser.press("Log in")


def open_view(browser: Browser, title: str) -> None:
    for link in browser.driver.find_elements(By.CSS_SELECTOR, "nav a"):
        if link.text == title:
            link.click()
    browser.sees(title, "main h1")
    browser.until(lambda: "…" not in browser.text("main > p.muted"), f"the contents of {title}")


def check_harmless(browser: Browser, place: str) -> None:
    found = browser.driver.execute_script(
        "return [document.title, document.querySelectorAll('#hit, main script, main img, main iframe, main svg:not(.plot),"
        " main object, main video, main base, main meta, main link, main style, main [onfocus]').length]"
    )
    assert "hit" not in found[0] and found[1] == 0, (place, found)
    assert browser.log() == [], (place, browser.log())


def told(browser: Browser) -> str:
    """Returns the page's last status message."""
    return browser.driver.find_element(By.ID, "status").get_attribute("textContent")


def publish(browser: Browser, topic: str, text: str, retain: bool = False) -> None:
    """Fills in the form for a publication and submits it."""
    form = browser.driver.find_element(By.CSS_SELECTOR, "input[name=retain]").find_element(By.XPATH, "ancestor::form")
    for name, value in (("topic", topic), ("text", text)):
        field = form.find_element(By.CSS_SELECTOR, f"input[name={name}]")
        field.clear()
        field.send_keys(value)
    box = form.find_element(By.CSS_SELECTOR, "input[name=retain]")
    if box.is_selected() != retain:
        box.click()
    form.find_element(By.CSS_SELECTOR, "button").click()


def check_topics(olga: Browser) -> None:
    open_view(olga, "Topics")
    olga.fill("main input[name=filter]", "a/#")
    olga.press("Watch")
    olga.sees("You are watching a/#", ".lines li")
    publish(olga, "a/<b>", PAYLOADS[1], retain=True)
    olga.until(lambda: "Published" in told(olga), "published")
    olga.sees(f"a/<b>  {PAYLOADS[1]}", ".lines li")
    olga.click(".panel select[name=form] option[value=hex]")
    publish(olga, "a/hex", "<\u00e9")
    olga.sees("a/hex  3c c3 a9", ".lines li")
    olga.click(".panel select[name=form] option[value=JSON]")
    publish(olga, "a/long", "x" * 700)
    olga.sees("(200 more)", ".lines li")
    check_harmless(olga, "watched topics")
    olga.check_access()
    olga.shot("console-topics")
    olga.press("Stop watching")
    olga.until(lambda: olga.text(".lines") == "", "no watched topics")
    olga.fill("main input[name=filter]", "a/#/b")
    olga.press("Watch")
    olga.sees("filter must be a topic filter", ".lines li")
    assert "ended" not in olga.text(".lines li"), olga.text(".lines li")
    olga.press("Stop watching")
    # The browser logs the refusal, too.
    assert all("topics/watch" in line for line in olga.log())
    step("topics are watched; payloads are shown as texts, as JSON and in hexadecimal digits, and cut")

    olga.sees(PAYLOADS[1], "td")
    publish(olga, "a/<b>", PAYLOADS[2], retain=True)
    olga.sees("Replace what is retained on a/<b>?", "dialog")
    olga.press("Cancel")
    olga.press("Show")
    olga.sees(PAYLOADS[1], "pre")
    publish(olga, "a/<b>", PAYLOADS[2], retain=True)
    olga.click("dialog button[value=yes]")
    olga.sees(PAYLOADS[2], "td")
    olga.fill("main form input[name=topic]", "a/<b>")
    olga.press("Look")
    olga.sees(PAYLOADS[2], "pre")
    olga.fill("main input[name=kept]", "nothing/+")
    olga.press("List")
    olga.sees("There are none", "p.muted")
    olga.fill("main input[name=kept]", "a/+")
    olga.press("List")
    olga.sees("a/<b>", "td")
    publish(olga, "a/other", "stays", retain=True)
    olga.sees("a/other", "td")
    olga.click("td button.danger")
    olga.sees("Remove what is retained on a/<b>?", "dialog")
    olga.click("dialog button[value=yes]")
    olga.until(lambda: "a/<b>" not in olga.text("td") and "a/other" in olga.text("td"), "it is removed")
    check_harmless(olga, "topics")
    step("retained publications are listed, shown and removed; one is replaced only after a question")


def check_groups(olga: Browser, server: Server) -> None:
    for name in ("ann", "bob", "cat"):
        server.ask("addUser", nickName=name, password="secret-6+")
    ann = len(PAYLOADS) + 1
    for name in (PAYLOADS[5], "garden"):
        make_group(server.mqtt, "ann", "secret-6+", name, [ann + 1, ann + 2])
    open_view(olga, "Groups")
    olga.sees(PAYLOADS[5], "td")
    check_harmless(olga, "groups")
    olga.fill("main input[name=text]", "GARD")
    olga.press("Search")
    olga.until(lambda: PAYLOADS[5] not in olga.text("td") and "garden" in olga.text("td"), "one group")
    olga.press("Members")
    olga.sees("bob", "td")
    olga.check_access()
    olga.shot("console-groups")
    olga.click("select[name=role] option[value=administrator]")
    olga.press("Change role")
    olga.sees("Make bob administrator of garden?", "dialog")
    olga.click("dialog button[value=yes]")
    olga.until(lambda: "administrator" in olga.text("main td:nth-child(2)").split("|"), "the new role")
    olga.press("Remove")
    olga.sees("Remove bob from garden?", "dialog")
    olga.click("dialog button[value=yes]")
    olga.until(lambda: "bob" not in olga.text("main td a") and "cat" in olga.text("main td a"), "bob is removed")
    olga.press("Dissolve the group")
    olga.sees("Dissolve garden?", "dialog")
    assert not olga.find("dialog button[value=yes]").is_enabled()
    olga.fill("dialog input", "garden")
    olga.click("dialog button[value=yes]")
    olga.sees("There are none", "p.muted")
    check_harmless(olga, "groups")
    step("a group is found; a member gets another role and is removed; it is dissolved after its name was typed")


def check_search(olga: Browser) -> None:
    for title in ("Audit log", "Trace", "Overview"):
        open_view(olga, title)
        olga.driver.find_element(By.TAG_NAME, "body").send_keys("/")
        olga.until(lambda: olga.driver.switch_to.active_element.get_attribute("id") == "search", "the search box")
    box = olga.driver.switch_to.active_element
    # In the search box, the key types its character.
    box.send_keys("a/other" + Keys.ENTER)
    olga.sees("a/other", "td a")
    olga.sees("Retained", "td")
    olga.click("td a")
    olga.sees("stays", "pre")
    olga.fill("#search", PAYLOADS[3])
    olga.press("Find")
    olga.sees(PAYLOADS[3], "td a")
    check_harmless(olga, "search results")
    olga.check_access()
    olga.shot("console-search")
    olga.click("td a")
    olga.sees("Accounts", "main h1")
    olga.until(lambda: olga.text("td").count("offline") == 1, "one account")
    for text, kind in (("http.port", "Setting"), (PAYLOADS[5], "Group")):
        olga.fill("#search", text)
        olga.press("Find")
        olga.sees(f"“{text}”", "main h2")
        olga.sees(kind, "td")
        olga.click("td a")
        olga.until(lambda: "Search" not in olga.text("main h1"), "another view")
    olga.fill("#search", "nothing-has-this-name")
    olga.press("Find")
    olga.sees("Nothing has this text", "p.muted")
    for bad in ("#search/%E0%A4%A", "#search/", "#groups/<b>", "#topics/%00", "#nothing/x"):
        olga.driver.execute_script("location.hash = arguments[0]", bad)
        olga.until(lambda: olga.text("main h1") != "", bad)
    open_view(olga, "Overview")
    check_addresses(olga, "addresses that lead nowhere")
    step("the search box is reached by its key from every view, and its results lead to the views")


def labelled(browser: Browser, label: str):
    return browser.find(f'main [aria-label="{label}"]')


def asks(browser: Browser, press, question: str, cancelled, done) -> None:
    """Presses a button twice. The first question is cancelled, and nothing may happen. The second question is
    confirmed, and the action must happen."""
    press()
    browser.sees(question, "dialog h2")
    browser.press("Cancel")
    browser.until(lambda: not browser.driver.find_elements(By.CSS_SELECTOR, "dialog"), "the end of the question")
    assert cancelled(), f"{question}: it was done without a yes"
    press()
    browser.sees(question, "dialog h2")
    browser.click("dialog button[value=yes]")
    browser.until(done, f"the end of: {question}")


def check_account(olga: Browser, server: Server) -> None:
    """Tests an account, from its creation to the actions that end its logins."""

    def find() -> None:
        # Otherwise, the form may still belong to the previous view.
        open_view(olga, "Accounts")
        olga.fill("main input[name=text]", "dora")
        olga.press("Search")
        olga.until(lambda: len(olga.driver.find_elements(By.CSS_SELECTOR, "main tbody tr")) == 1, "one account")

    def state() -> str:
        return olga.text("main tbody td:nth-child(3)")

    open_view(olga, "Accounts")
    olga.fill("main input[name=name]", "dora")
    olga.fill("main input[name=password]", MEMBER_PASSWORD)
    olga.press("Create")
    olga.until(lambda: told(olga) == "dora is created.", "the new account")
    olga.sees("dora", "main td")
    tablet = mqtt_client(server.mqtt, "tablet", "room/lobby", "dora")
    find()
    labelled(olga, "Devices of dora").click()
    olga.sees("tablet", "main td")
    # The device logged in with the password, and nobody issued a token.
    olga.sees("Tokens", "main section.panel th")
    olga.sees("none", "main section.panel td")
    olga.check_access()
    asks(olga, lambda: labelled(olga, "Remove tablet").click(), "Remove the device tablet of dora?",
         lambda: is_open(tablet) and "tablet" in olga.text("main td"), lambda: "None." in olga.text("main section.panel"))
    assert not is_open(tablet), "the removed device is still connected"

    tablet = mqtt_client(server.mqtt, "tablet", "room/lobby", "dora")
    find()
    asks(olga, lambda: labelled(olga, "Log dora out").click(), "Log dora out everywhere?", lambda: is_open(tablet),
         lambda: told(olga) == "dora is logged out everywhere.")
    assert not is_open(tablet), "the account is still connected"

    tablet = mqtt_client(server.mqtt, "tablet", "room/lobby", "dora")
    find()
    asks(olga, lambda: labelled(olga, "Disable dora").click(), "Disable dora?", lambda: is_open(tablet) and state() == "online",
         lambda: state() == "disabled")
    assert not is_open(tablet), "the disabled account is still connected"
    labelled(olga, "Enable dora").click()
    olga.until(lambda: state() == "offline", "an account that may log in")
    step("an account is created, its device removed, logged out, disabled after a yes; nothing happens after a no")


def check_kick(olga: Browser, server: Server) -> None:
    tablet = mqtt_client(server.mqtt, "tablet", "room/lobby", "dora")
    open_view(olga, "Rooms")
    olga.sees("lobby", "main td")
    members = "main tbody td:nth-child(2)"

    def press() -> None:
        form = next(one for one in olga.driver.find_elements(By.CSS_SELECTOR, "main form")
                    if one.find_elements(By.CSS_SELECTOR, "input[name=user]"))
        for name, value in (("room", "lobby"), ("user", "dora")):
            field = form.find_element(By.CSS_SELECTOR, f"input[name={name}]")
            field.clear()
            field.send_keys(value)
        form.find_element(By.CSS_SELECTOR, "button").click()

    def is_unchanged() -> bool:
        olga.press("Read again")
        return olga.text(members) == "1"

    asks(olga, press, "Remove dora from lobby?", is_unchanged, lambda: told(olga) == "dora is removed from lobby.")
    olga.sees("Nobody is in a room", "main p.muted")
    tablet.close()
    step("an account is removed from a room after a yes")


def check_keys(olga: Browser, server: Server) -> None:
    for kind, what, question in (("key", "scopes", "Revoke the key gate?"), ("invitation", "uses", "Revoke the invitation gate?")):
        open_view(olga, "Keys and invitations")
        form = next(one for one in olga.driver.find_elements(By.CSS_SELECTOR, "main form")
                    if one.find_elements(By.CSS_SELECTOR, f"input[name={what}]"))
        form.find_element(By.CSS_SELECTOR, "input[name=name]").send_keys("gate")
        form.find_element(By.CSS_SELECTOR, "button").click()
        olga.sees(f"The new {kind}", "dialog h2")
        assert len(olga.text("dialog pre")) >= 10, olga.text("dialog pre")
        olga.check_access()
        olga.press("Done")
        olga.sees("gate", "main td")

        def names() -> list[str]:
            return olga.text("main td:first-child").split("|")

        asks(olga, lambda: labelled(olga, "Revoke gate").click(), question, lambda: "gate" in names(), lambda: "gate" not in names())
    step("a key and an invitation are created, shown once, and revoked after a yes")


def check_again(olga: Browser, server: Server) -> None:
    open_view(olga, "Webhooks")
    olga.sees("online", "main td")
    event = olga.find("main tbody code").text
    olga.until(lambda: event in server.hooks.ids, "the event")

    def count() -> int:
        return server.hooks.ids.count(event)

    before = count()
    asks(olga, lambda: labelled(olga, f"Send {event} again").click(), f"Send the event {event} again?",
         lambda: count() == before, lambda: told(olga) == "The event is queued.")
    olga.until(lambda: count() == before + 1, "the event once more")
    olga.check_access()
    step("an event is sent again after a yes")


def check_filters(olga: Browser, server: Server) -> None:
    open_view(olga, "Configuration")
    everything = len(olga.driver.find_elements(By.CSS_SELECTOR, "main tbody tr"))
    olga.find("main input[type=search]").send_keys("HTTP.Port")
    olga.until(lambda: olga.text("main tbody td:first-child") == "listeners.http.port", "one setting")
    olga.find("main input[type=search]").send_keys("-none")
    olga.until(lambda: olga.text("main tbody td") == "", "no setting")
    olga.fill("main input[type=search]", "webhooks.url")
    olga.sees(f":{server.hooks.server.server_port}", "main tbody td")
    assert everything > 100, everything

    open_view(olga, "Log")
    cells = "main tbody td:nth-child({})"

    def choose(level: str = "trace", label: str = "", text: str = "") -> None:
        olga.click(f"main select[name=level] option[value={level}]")
        for name, value in (("label", label), ("text", text)):
            olga.fill(f"main input[name={name}]", value)
        olga.press("Read again")

    def all_rows(column: int, fits) -> bool:
        found = olga.text(cells.format(column)).split("|")
        return found != [""] and all(fits(one) for one in found)

    label = olga.text(cells.format(3)).split("|")[0]
    choose(text="closeRoom")
    olga.until(lambda: all_rows(4, lambda line: "closeRoom" in line), "the lines with a text")
    choose(label=label)
    olga.until(lambda: all_rows(3, lambda one: one == label) and "closeRoom" in olga.text(cells.format(4)), f"the lines of {label}")
    for none in ({"label": "no.such.label"}, {"text": "no such text"}, {"level": "critical"}):
        choose(**none)
        olga.sees("There are no such lines", "main p.muted")
    choose(text="createUser")
    olga.until(lambda: all_rows(4, lambda line: "createUser" in line), "the lines with a text")
    assert "erin" not in olga.text(cells.format(4))
    # The view shows lines that are logged later.
    open_view(olga, "Accounts")
    olga.fill("main input[name=name]", "erin")
    olga.fill("main input[name=password]", MEMBER_PASSWORD)
    olga.press("Create")
    olga.until(lambda: told(olga) == "erin is created.", "the new account")
    open_view(olga, "Log")
    choose(text="createUser")
    olga.sees("erin", cells.format(4))
    step("the configuration and the log are filtered")


def check_kinds(olga: Browser, server: Server, browsers: contextlib.ExitStack) -> str:
    """Searches for one thing of each kind, and opens it. Returns the id of a webhook's event."""
    scale = mqtt_client(server.mqtt, "orchard-scale", "room/orchard", is_kept=True)
    browsers.callback(scale.close)
    server.ask("createInvitation", name="orchard-fair", uses=1, days=1)
    server.ask("createAPIKey", name="orchard-desk", scopes="push")
    ann = len(PAYLOADS) + 1
    make_group(server.mqtt, "ann", MEMBER_PASSWORD, "orchard keepers", [ann + 1])
    text = {"to": {"uid": ann}, "clientId": "orchard-text", "content": {"text": "The apples are ripe."}}
    ask(server.mqtt, "dora", MEMBER_PASSWORD, {"send": text}, "receipt", device="tablet")
    open_view(olga, "Topics")
    publish(olga, "orchard/soil/depth", "damp", retain=True)
    olga.until(lambda: "Published" in told(olga), "published")
    event = server.hooks.ids[-1]
    search = Search(olga)

    def rows(*texts: str) -> Callable[[], bool]:
        """Checks that the table has exactly one row, and that the row has these texts."""

        def shows() -> bool:
            found = olga.driver.find_elements(By.CSS_SELECTOR, "main tbody tr")
            return len(found) == 1 and all(one in found[0].text for one in texts)

        return shows

    def has(selector: str, *texts: str) -> Callable[[], bool]:
        return lambda: all(one in olga.text(selector) for one in texts)

    search.finds("Account", "eri", "erin", "#", "Accounts", rows("erin"))
    search.finds("Device", "tabl", "tablet", "dora", "Accounts", rows("dora"))
    search.finds("Group", "rd keep", "orchard keepers", "#", "Groups", has("main h2", "orchard keepers"))
    search.finds("Room", "rchar", "orchard", "", "Rooms", rows("orchard"))
    search.finds("Invitation", "d-fai", "orchard-fair", "", "Keys and invitations", has("main td", "orchard-fair"))
    search.finds("API key", "d-des", "orchard-desk", "", "Keys and invitations", has("main td", "orchard-desk"))
    search.finds("Retained", "soil/d", "orchard/soil/depth", "", "Topics", has("main pre", "damp"))
    search.finds("MQTT client", "d-scal", "orchard-scale", "", "MQTT clients", rows("orchard-scale"))
    search.finds("MQTT session", "rd-scal", "orchard-scale", "", "MQTT sessions", rows("orchard-scale"))
    search.finds("Message", "orchard-text", "", "orchard-text", "Trace", has("main section", "client id orchard-text", "committed"))
    search.finds("Webhook", event, event, "", "Webhooks", lambda: set(olga.text("main td code").split("|")) == {event})
    search.finds("Setting", "hooks.UR", "webhooks.url", "", "Configuration", has("main td", "webhooks.url"))
    # The view begins with the newest entry.
    search.finds("Audit entry", "erin", "olga: createUser", "erin", "Audit log", has("main tbody tr:first-child", "createUser", "erin"))
    search.finds("Log line", "erin", "", "erin", "Log", has("main tbody td:nth-child(4)", "createUser", "erin"))
    search.finds("Administrator", "icto", "victor", "viewer", "Administrators", has("main td", "victor"))
    assert search.found == kinds(), search.found ^ kinds()
    found = {kind for kind, *_ in results(olga, "orchard")}
    assert found >= {"Group", "Room", "Invitation", "API key", "Retained", "MQTT client", "MQTT session"}, found
    olga.check_access()
    olga.shot("console-search-kinds")
    step(f"the search box finds each of {len(search.found)} kinds by a part of its name or by its id, and opens it")
    return event


def check_chinese(olga: Browser) -> None:
    olga.press("中文")
    olga.until(lambda: "概览" in olga.text("nav a"), "Chinese")
    olga.check_access()
    olga.shot("console-chinese")
    open_view(olga, "账号")
    olga.fill("main input[name=text]", "987654321")
    olga.press("搜索")
    olga.sees("没有找到", "main .error")
    statuses: list[int] = []

    def is_answered() -> bool:
        """The rate limit counts searches and changes together, including the earlier searches."""
        statuses.append(olga.driver.execute_async_script(
            """const done = arguments[0];
            fetch("api/session").then((answer) => answer.json()).then(({ session }) =>
                fetch("api/users/987654321", { method: "DELETE", headers: { "X-CSRF-Token": session.csrf_token } }),
            ).then((answer) => done(answer.status));"""))
        if statuses[-1] == 429:
            time.sleep(1)  # polling another process, bounded by the deadline
        return statuses[-1] != 429

    olga.until(is_answered, "an answer")
    assert statuses[-1] == 404, statuses
    # The views that the search results open send several requests each. The rate limit may refuse some of these
    # requests.
    complaints = [line for line in olga.log() if "429" not in line]
    assert all("users/987654321" in line for line in complaints), complaints
    open_view(olga, "审计日志")
    olga.sees("删除账号", "main td")
    olga.sees("名称或密码错误", "main td")
    olga.sees("没有找到", "main td")
    open_view(olga, "配置")
    olga.sees("命令行", "main td")
    olga.sees("默认值", "main td")
    olga.check_access()
    olga.press("English")
    olga.until(lambda: "Overview" in olga.text("nav a"), "English")
    step("the page speaks Chinese, in errors and in the server's fixed values, too")


def check_narrow(olga: Browser) -> None:
    titles = olga.text("nav a").split("|")
    # Addresses that no link has, and details that are opened in a view.
    details = {"#search/orchard": "Search", "#groups/1": "Groups", "#topics/a%2Fother": "Topics"}
    with narrow(olga):
        for title in titles:
            open_view(olga, title)
            check_fits(olga, title)
            # A new view begins at the top, so that the header with the search box is visible.
            olga.until(lambda: olga.driver.execute_script("return scrollY") == 0, f"the beginning of {title}")
            olga.driver.execute_script("scrollTo(0, document.body.scrollHeight)")
        for address, title in details.items():
            olga.driver.execute_script("location.hash = arguments[0]", address)
            olga.sees(title, "main h1")
            olga.until(lambda: "…" not in olga.text("main > p.muted"), address)
            check_fits(olga, address)
        open_view(olga, "Accounts")
        labelled(olga, f"Devices of {PAYLOADS[2]}").click()
        olga.sees(PAYLOADS[2], "main h2")
        check_fits(olga, "devices")
        labelled(olga, f"Delete {PAYLOADS[2]}").click()
        olga.sees(PAYLOADS[2], "dialog h2")
        check_fits(olga, "a question")
        olga.press("Cancel")
    olga.log()
    step(f"{len(titles)} views fit on a screen of {WIDTH} pixels, and begin with the header")


def check_plots(olga: Browser) -> None:
    def plot(title: str) -> str:
        panels = olga.driver.find_elements(By.CSS_SELECTOR, ".plots .panel")
        return next((one.text for one in panels if one.find_element(By.TAG_NAME, "h2").text == title), "")

    olga.until(lambda: "entries" in plot("Entries in all inboxes"), "the number of entries")
    entries = re.search(r"entries\s*(\S+)", plot("Entries in all inboxes"))
    assert entries and entries.group(1).replace(",", "").isdigit(), plot("Entries in all inboxes")
    assert re.search(r"\d (B|KiB|MiB)", plot("Bytes in all inboxes")), plot("Bytes in all inboxes")
    most = "return document.querySelectorAll('path.most[d^=M]').length"
    assert olga.driver.execute_script(most) == 0 and "half-hour" not in olga.find("main").text
    olga.click("main select option[value=month]")
    olga.until(lambda: olga.driver.execute_script(most) > 0, "the maxima of a month")
    assert "half-hour" in olga.find("main").text and ", at most " in olga.text(".legend b")
    olga.click("main select option[value=hour]")
    olga.until(lambda: olga.driver.execute_script(most) == 0, "an hour without maxima")
    step("plots have one unit each; those of a month have the maxima, too")


def check_viewer_search(victor: Browser, event: str) -> None:
    found = {kind for kind, *_ in results(victor, "orchard")}
    assert found == {"Group", "Room", "Invitation"}, found
    for text, expected in (("erin", {"Account"}), ("tablet", {"Device"}), ("orchard-text", set()), (event, set()),
                           ("webhooks.url", set()), ("victor", set())):
        found = {kind for kind, *_ in results(victor, text)}
        assert found == expected, (text, found)
    step("a viewer finds only what a viewer may see")


def check_addresses(browser: Browser, place: str) -> None:
    """As ``check_harmless``, but the server may refuse the request for the thing that the address names."""
    assert "hit" not in browser.driver.title, place
    complaints = [line for line in browser.log() if "Failed to load resource" not in line]
    assert complaints == [], (place, complaints)


def check(server: Server, browsers: contextlib.ExitStack) -> None:
    url = f"http://127.0.0.1:{server.port}/console/"
    server.ask("addAdministrator", name="olga", role="administrator", password=PASSWORD)
    server.ask("addAdministrator", name="victor", role="viewer", password=PASSWORD)
    secret = server.ask("newSecondFactor", name="olga")["secondFactor"]["secret"]

    olga = Browser(url)
    browsers.callback(olga.driver.quit)
    olga.find("input[name=name]")
    assert not olga.driver.find_element(By.CSS_SELECTOR, "input[name=code]").is_displayed()
    olga.check_access()
    olga.shot("console-login")
    with narrow(olga):
        check_fits(olga, "the login")
    assert olga.log() == [], "to be logged out is no error"
    olga.fill("input[name=name]", "olga")
    olga.fill("input[name=password]", "wrong password")
    olga.press("Log in")
    olga.sees("is wrong", ".error")
    assert not olga.driver.find_element(By.CSS_SELECTOR, "input[name=code]").is_displayed()
    log_in(olga, "olga")
    olga.sees("A code is needed", ".error")
    olga.fill("input[name=code]", code(secret))
    olga.press("Log in")
    olga.sees("olga, administrator", "header")
    # The browser logs refused requests. Here, the password was wrong.
    assert all("/api/login" in line for line in olga.log())
    step("a wrong password is refused; a login needs its code")

    cookies = olga.driver.execute_cdp_cmd("Network.getAllCookies", {})["cookies"]
    assert [(c["httpOnly"], c["sameSite"], c["path"]) for c in cookies] == [(True, "Strict", "/console")], cookies
    assert olga.driver.execute_script("return document.cookie") == ""
    step("scripts do not see the cookie")

    for payload in PAYLOADS:
        server.ask("addUser", nickName=payload, password="secret-6+")
        server.ask("createInvitation", name=payload.replace(" ", "_"), uses=1, days=1)
        server.ask("createAPIKey", name=payload.replace(" ", "_"), scopes="push")
    open_view(olga, "Accounts")
    olga.sees(PAYLOADS[-1], "td")
    texts = olga.text("td")
    assert all(payload in texts for payload in PAYLOADS)
    check_harmless(olga, "accounts")
    olga.check_access()
    olga.shot("console-accounts")
    open_view(olga, "Keys and invitations")
    olga.sees(PAYLOADS[-1].replace(" ", "_"), "td")
    check_harmless(olga, "keys")
    step(f"{len(PAYLOADS)} hostile names are shown as texts")

    open_view(olga, "Accounts")
    olga.fill("input[name=text]", PAYLOADS[0])
    olga.press("Search")
    olga.until(lambda: olga.text("td").count("offline") == 1, "one account")
    olga.press("Delete")
    olga.sees(f"Delete {PAYLOADS[0]} for good?", "dialog")
    assert not olga.find("dialog button[value=yes]").is_enabled()
    olga.press("Cancel")
    olga.press("Delete")
    olga.fill("dialog input", PAYLOADS[0])
    olga.click("dialog button[value=yes]")
    olga.until(lambda: PAYLOADS[0] not in olga.text("td") and PAYLOADS[1] in olga.text("td"), "the account is gone")
    check_harmless(olga, "deletion")
    step("an account is deleted after its name was typed")

    check_topics(olga)
    check_groups(olga, server)
    check_search(olga)

    open_view(olga, "Audit log")
    olga.sees("deleteUser", "td")
    olga.sees("wrong name or password", "td")
    check_harmless(olga, "audit")
    olga.check_access()
    olga.shot("console-audit")
    client = mqtt_client(server.mqtt, PAYLOADS[1], "room/lobby")
    browsers.callback(client.close)
    open_view(olga, "MQTT clients")
    olga.sees(PAYLOADS[1], "td")
    check_harmless(olga, "clients")
    olga.check_access()
    olga.shot("console-clients")
    open_view(olga, "Rooms")
    olga.sees("lobby", "td")
    olga.click("td button")
    olga.sees("You are watching lobby", ".lines li")
    say = next(form for form in olga.driver.find_elements(By.CSS_SELECTOR, "form") if "Say" in form.text)
    for name, value in (("room", "lobby"), ("text", PAYLOADS[2]), ("name", PAYLOADS[3])):
        say.find_element(By.CSS_SELECTOR, f"input[name={name}]").send_keys(value)
    say.find_element(By.CSS_SELECTOR, "button").click()
    olga.sees(f"{PAYLOADS[3]}: {PAYLOADS[2]}", ".lines li")
    check_harmless(olga, "a watched room")
    olga.check_access()
    olga.shot("console-room")
    olga.click("td button.danger")
    olga.sees("Close the room lobby?", "dialog")
    olga.fill("dialog input", "lobby")
    olga.click("dialog button[value=yes]")
    olga.until(
        lambda: "1 connection is removed" in olga.driver.find_element(By.ID, "status").get_attribute("textContent"), "removed"
    )

    def is_empty() -> bool:
        olga.press("Read again")
        return "Nobody is in a room" in olga.text("p.muted")

    olga.until(is_empty, "an empty list of rooms")
    step("a room is watched and closed, a client is listed; what they are called is shown as texts")

    open_view(olga, "MQTT clients")
    olga.press("Disconnect")
    olga.sees(f"Disconnect {PAYLOADS[1]}?", "dialog")
    olga.click("dialog button[value=yes]")
    olga.sees("There are none", "p.muted")
    open_view(olga, "Trace")
    olga.fill("main input[name=id]", PAYLOADS[4])
    olga.press("Search")
    olga.sees("Nothing is known of it", "p.muted")
    open_view(olga, "Log")
    olga.sees("closeRoom", "td")
    check_harmless(olga, "log")
    olga.shot("console-log")
    step("a client is disconnected; the log has it")

    check_account(olga, server)
    check_kick(olga, server)
    check_keys(olga, server)
    check_again(olga, server)
    check_filters(olga, server)
    event = check_kinds(olga, server, browsers)
    assert olga.log() == [], olga.log()

    check_chinese(olga)

    for title in ("Configuration", "Administrators", "Apps", "Rooms", "MQTT sessions", "Webhooks", "Trace", "Log"):
        open_view(olga, title)
        olga.check_access()
    step("the audit log has all of it; every view is accessible")
    check_narrow(olga)

    victor = Browser(url, width=420, is_dark=True)
    browsers.callback(victor.driver.quit)
    log_in(victor, "victor")
    victor.sees("victor, viewer", "header")
    assert victor.text("nav a") == "Overview|Accounts|Groups|Rooms|Apps|Keys and invitations", victor.text("nav a")
    open_view(victor, "Accounts")
    victor.sees("Devices", "button")
    assert "Delete" not in victor.text("button") and "Create" not in victor.text("button")
    victor.check_access()
    open_view(victor, "Groups")
    victor.sees(PAYLOADS[5], "td")
    victor.press("Members")
    victor.sees("ann", "td a")
    assert not {"Remove", "Change role", "Dissolve the group"} & set(victor.text("button").split("|")), victor.text("button")
    victor.check_access()
    victor.fill("#search", "listeners.http")
    victor.press("Find")
    victor.sees("Nothing has this text", "p.muted")
    check_viewer_search(victor, event)
    server.ask("setAdministratorRole", name="victor", role="operator")
    victor.driver.refresh()
    victor.find("input[name=password]")
    log_in(victor, "victor")
    victor.sees("victor, operator", "header")
    step("a viewer sees no buttons that change something; a new role ends the session")

    # A rate needs two samples.
    open_view(olga, "Overview")
    open_view(victor, "Overview")
    olga.sees("Connections", ".panel h2", 30)
    victor.sees("Memory", ".panel h2", 30)
    olga.until(lambda: "mqtt" in olga.text(".legend"), "a listener in the plot")
    check_plots(olga)
    for browser, name in ((olga, "console"), (victor, "console-dark-narrow")):
        browser.check_access()
        browser.shot(name)
    step("plots in both themes and widths")

    olga.press("Log out")
    olga.sees("You are logged out", ".error")
    olga.driver.refresh()
    olga.find("input[name=password]")
    step("a logout ends the session")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as browsers:
        server = Server(folder)
        assert "hermes admin add" in server.output
        try:
            check(server, browsers)
        finally:
            server.process.send_signal(signal.SIGTERM)
            server.process.wait(20)
    print("console: good", flush=True)


if __name__ == "__main__":
    main()
