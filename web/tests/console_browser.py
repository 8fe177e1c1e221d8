#!/usr/bin/env python3
# Hermes
# SPDX-License-Identifier: Apache-2.0
"""Drives the console in headless Chromium against a real server: HERMES_BIN names its program.

Needs what chat_browser.py needs; screenshots go to the folder that WEB_SCREENSHOTS names, if any.
"""

import base64
import contextlib
import hashlib
import hmac
import pathlib
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "Interop/python"))
from support.control import control  # noqa: E402

from chat_browser import PROGRAM, PROTOCOLS, Browser
from selenium.webdriver.common.by import By

PASSWORD = "correct horse battery"

# Texts that become markup, attributes or scripts wherever a page is careless; each fits into a name.
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


class Server:
    """A real server with nothing open but its console."""

    def __init__(self, folder: str):
        self.folder = folder
        arguments = [PROGRAM, "serve", "--data.directory", folder, "--listeners.http.enabled", "false"]
        arguments += ["--listeners.console.port", "0"]
        for name in PROTOCOLS[:-1]:
            arguments += [f"--listeners.{name}.enabled", "false"]
        arguments += ["--listeners.mqtt.port", "0"]
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
        """A request of the command line, over the control socket."""
        return control(self.folder, request, **values)


def mqtt_client(port: int, client_id: str, topic: str) -> socket.socket:
    """A client of MQTT 3.1.1 that subscribes to a topic and reads nothing."""

    def text(value: str) -> bytes:
        return struct.pack(">H", len(value.encode())) + value.encode()

    connection = socket.create_connection(("127.0.0.1", port))
    connect = text("MQTT") + bytes([4, 2, 0, 0]) + text(client_id)
    subscribe = bytes([0, 1]) + text(topic) + bytes([0])
    connection.sendall(bytes([0x10, len(connect)]) + connect + bytes([0x82, len(subscribe)]) + subscribe)
    connection.recv(4)
    return connection


def code(secret: str) -> str:
    """RFC 6238."""
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


def check(server: Server, browsers: contextlib.ExitStack) -> None:
    url = f"http://127.0.0.1:{server.port}/console/"
    server.ask("addAdministrator", name="olga", role="administrator", password=PASSWORD)
    server.ask("addAdministrator", name="victor", role="viewer", password=PASSWORD)
    secret = server.ask("newSecondFactor", name="olga")["secondFactor"]["secret"]

    olga = Browser(url)
    browsers.callback(olga.driver.quit)
    olga.find("input[name=name]")
    olga.check_access()
    olga.shot("console-login")
    olga.fill("input[name=name]", "olga")
    olga.fill("input[name=password]", "wrong password")
    olga.press("Log in")
    olga.sees("is wrong", ".error")
    log_in(olga, "olga")
    olga.sees("A code is needed", ".error")
    olga.fill("input[name=code]", code(secret))
    olga.press("Log in")
    olga.sees("olga, administrator", "header")
    # The browser tells of refused requests: nobody was logged in, and the password was wrong.
    assert all("/api/session" in line or "/api/login" in line for line in olga.log())
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
    olga.find("dialog button[value=yes]").click()
    olga.until(lambda: PAYLOADS[0] not in olga.text("td") and PAYLOADS[1] in olga.text("td"), "the account is gone")
    check_harmless(olga, "deletion")
    step("an account is deleted after its name was typed")

    open_view(olga, "Topics")
    publish = olga.driver.find_elements(By.CSS_SELECTOR, "form")[1]
    publish.find_element(By.CSS_SELECTOR, "input[name=topic]").send_keys("a/<b>")
    publish.find_element(By.CSS_SELECTOR, "input[name=text]").send_keys(PAYLOADS[1])
    publish.find_element(By.CSS_SELECTOR, "input[name=retain]").click()
    publish.find_element(By.CSS_SELECTOR, "button").click()
    olga.until(lambda: "Published" in olga.driver.find_element(By.ID, "status").get_attribute("textContent"), "published")
    olga.fill("main form input[name=topic]", "a/<b>")
    olga.press("Look")
    olga.sees(PAYLOADS[1], "pre")
    check_harmless(olga, "topics")
    step("a publication with markup is retained and shown as a text")

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
    olga.find("td button").click()
    olga.sees("You are watching lobby", ".lines li")
    say = next(form for form in olga.driver.find_elements(By.CSS_SELECTOR, "form") if "Say" in form.text)
    for name, value in (("room", "lobby"), ("text", PAYLOADS[2]), ("name", PAYLOADS[3])):
        say.find_element(By.CSS_SELECTOR, f"input[name={name}]").send_keys(value)
    say.find_element(By.CSS_SELECTOR, "button").click()
    olga.sees(f"{PAYLOADS[3]}: {PAYLOADS[2]}", ".lines li")
    check_harmless(olga, "a watched room")
    olga.check_access()
    olga.shot("console-room")
    olga.find("td button.danger").click()
    olga.sees("Close the room lobby?", "dialog")
    olga.fill("dialog input", "lobby")
    olga.find("dialog button[value=yes]").click()
    olga.until(
        lambda: "connections are removed" in olga.driver.find_element(By.ID, "status").get_attribute("textContent"), "removed"
    )

    def is_empty() -> bool:
        olga.press("Read again")
        return "Nobody is in a room" in olga.text("p.muted")

    olga.until(is_empty, "an empty list of rooms")
    step("a room is watched and closed, a client is listed; what they are called is shown as texts")

    open_view(olga, "MQTT clients")
    olga.press("Disconnect")
    olga.sees(f"Disconnect {PAYLOADS[1]}?", "dialog")
    olga.find("dialog button[value=yes]").click()
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

    olga.press("中文")
    olga.until(lambda: "概览" in olga.text("nav a"), "Chinese")
    olga.check_access()
    olga.shot("console-chinese")
    olga.press("English")
    olga.until(lambda: "Overview" in olga.text("nav a"), "English")
    step("the page speaks Chinese")

    for title in ("Configuration", "Administrators", "Apps", "Rooms", "MQTT sessions", "Webhooks", "Trace", "Log"):
        open_view(olga, title)
        olga.check_access()
    step("the audit log has all of it; every view is accessible")

    victor = Browser(url, width=420, is_dark=True)
    browsers.callback(victor.driver.quit)
    log_in(victor, "victor")
    victor.sees("victor, viewer", "header")
    assert victor.text("nav a") == "Overview|Accounts|Rooms|Apps|Keys and invitations", victor.text("nav a")
    open_view(victor, "Accounts")
    victor.sees("Devices", "button")
    assert "Delete" not in victor.text("button") and "Create" not in victor.text("button")
    victor.check_access()
    server.ask("setAdministratorRole", name="victor", role="operator")
    victor.driver.refresh()
    victor.find("input[name=password]")
    log_in(victor, "victor")
    victor.sees("victor, operator", "header")
    step("a viewer sees no buttons that change something; a new role ends the session")

    # Rates need two samples.
    open_view(olga, "Overview")
    open_view(victor, "Overview")
    olga.sees("Connections", ".panel h2", 30)
    victor.sees("Memory", ".panel h2", 30)
    olga.until(lambda: "mqtt" in olga.text(".legend"), "a listener in the plot")
    wide = victor.driver.execute_script("return document.documentElement.scrollWidth - innerWidth")
    assert wide <= 0, wide
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
