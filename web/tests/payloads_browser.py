#!/usr/bin/env python3
# Hermes
# SPDX-License-Identifier: Apache-2.0
"""Writes 200 hostile texts (payloads.py) into every field, and checks every page that shows them, in headless Chromium
against a real server. HERMES_BIN names the server's program.

Fails if a text opens a dialog, runs as a script, becomes an element or an attribute, leads to another site, or is
stopped only by the page's Content-Security-Policy. Needs what chat_browser.py needs.
"""

import concurrent.futures
import contextlib
import functools
import http.server
import json
import pathlib
import struct
import socket
import tempfile
import threading
import time
import unicodedata
import urllib.parse

import security
from chat_browser import Browser
from payloads import PAYLOADS, name
from security import Administrator, ask
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

# Watches a page from its start. Records the scripts that run, the violations of the policy, and the added elements.
GUARD = """
(() => {
    const found = (window.injected = []);
    const note = (what) => { if (found.length < 50) found.push(what); };
    window.hit = () => note("a script ran: hit");
    for (const name of ["alert", "confirm", "prompt", "print", "open"]) window[name] = () => note(`a script ran: ${name}`);
    document.addEventListener("securitypolicyviolation", (event) =>
        note(`stopped by the policy alone: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
    const never = new Set(["IFRAME", "OBJECT", "EMBED", "BASE", "STYLE", "VIDEO", "AUDIO", "SOURCE", "TRACK", "MATH", "MARQUEE",
        "FRAMESET", "TEMPLATE", "PORTAL", "APPLET", "BGSOUND", "ISINDEX", "KEYGEN", "PLAINTEXT", "XMP", "IMG", "IMAGE",
        "FORM-ACTION", "USE", "ANIMATE", "SET", "DETAILS", "SCR<SCRIPT"]);
    const address = (value) => {
        try {
            return new URL(value, location.href);
        } catch {
            return null;
        }
    };
    const check = (element) => {
        const tag = element.tagName.toUpperCase();
        const inHead = document.head?.contains(element);
        if (never.has(tag) || (["SCRIPT", "LINK", "META"].includes(tag) && !inHead)) note(`<${tag}> ${element.outerHTML.slice(0, 80)}`);
        if (tag === "SCRIPT" && address(element.src)?.origin !== location.origin) note(`a script of ${element.src}`);
        if (element.id === "hit") note("an element with a payload's id");
        for (const { name, value } of element.attributes) {
            if (name.startsWith("on") || ["srcdoc", "formaction", "action", "background"].includes(name)) note(`${tag} ${name}=${value}`);
            if (!["href", "src", "xlink:href", "srcset", "poster", "data"].includes(name)) continue;
            const protocol = address(value)?.protocol;
            const isLink = tag === "A" && name === "href";
            if (!["http:", "https:"].includes(protocol)) note(`${tag} ${name}=${value}`);
            else if (!isLink && address(value).origin !== location.origin) note(`${tag} ${name}=${value}`);
            if (isLink && address(value).origin !== location.origin && !element.rel.includes("noreferrer"))
                note(`a link that tells where it comes from: ${value}`);
        }
    };
    const all = (node) => {
        if (node.nodeType !== 1) return;
        check(node);
        node.querySelectorAll("*").forEach(check);
    };
    new MutationObserver((changes) => {
        for (const { type, target, addedNodes } of changes) {
            if (type === "attributes") check(target);
            else addedNodes.forEach(all);
        }
    }).observe(document, { subtree: true, childList: true, attributes: true });
})();
"""
# Opens a second person's client in a page of the same origin. It can send everything that any client can send.
MALLORY = """
const [server, nickName, password, device, done] = arguments;
import("/hermes.js").then(async ({ HermesClient, MemoryStore }) => {
    const client = await HermesClient.open({ server, store: new MemoryStore(), device, followsPage: false });
    window.mallory = client;
    done((await client.logIn({ nickName, password })).uid);
}).catch((error) => done(String(error)));
"""
EACH = """
const [values, uid, done] = arguments;
const work = async (value) => { %s };
(async () => {
    let refused = 0;
    for (const value of values) await work(value).catch(() => { refused += 1; });
    done(refused);
})();
"""
# Searches for one text after another, as fast as the page allows. The guard sees the effect of each text.
SEARCH = """
const [selector, action, values, done] = arguments;
const pause = () => new Promise((resolve) => setTimeout(resolve, 20));
const shown = (all) => [...all].find((element) => element.checkVisibility());
(async () => {
    for (const value of values) {
        let field, button;
        // A view that is being built has no field and no button yet.
        for (let tries = 0; tries < 500 && !(field && button); tries += 1) {
            field = shown(document.querySelectorAll(selector));
            button = shown([...document.querySelectorAll("main button")].filter((one) => one.textContent.trim() === action));
            if (!(field && button)) await pause();
        }
        field.value = value;
        field.dispatchEvent(new Event("input", { bubbles: true }));
        button.click();
        await pause();
    }
    done(values.length);
})().catch((error) => done(String(error)));
"""
# Logs in one device after another, as any client can: by the password, or by the token of an earlier login.
DEVICES = """
const [server, nickName, password, devices, tokens, done] = arguments;
const logIn = (device, token) => new Promise((resolve, reject) => {
    const socket = new WebSocket(server, ["hermes.v1.json"]);
    const credential = token ? { token } : { password: { nickName, password } };
    socket.onopen = () => socket.send(JSON.stringify({ id: "1", authenticate: { ...credential, device } }));
    socket.onclose = () => reject(new Error("closed"));
    socket.onmessage = ({ data }) => {
        const { result } = JSON.parse(data);
        if (result?.session) resolve(result.session.token || token);
        else if (result) reject(new Error(data));
        else return;
        socket.close();
    };
});
(async () => {
    const made = [];
    for (const [number, device] of devices.entries()) made.push(await logIn(device, tokens[number]));
    return made;
})().then(done, (error) => done(String(error)));
"""
PASSWORD = "secret-6+"
MEMBERS = "return [...document.querySelectorAll('main section td a')].map((one) => one.textContent)"
# Gives gifts in a room, as a person who is in that room.
GIVE = "await window.mallory.giveInRoom('%s', { name: value, count: 3, url: value })"


BEGAN = time.monotonic()


def step(text: str) -> None:
    print(f"payloads: {text} [{time.monotonic() - BEGAN:.0f} s]", flush=True)


def browser_at(url: str) -> Browser:
    browser = Browser("about:blank")
    browser.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": GUARD})
    browser.url = url
    browser.driver.get(url)
    return browser


def harmless(browser: Browser, place: str) -> None:
    """Checks that the page did nothing harmful. An open dialog would make each of these calls fail."""
    found = browser.driver.execute_script("return [window.injected, document.title, location.origin]")
    assert found[0] == [] and "hit" != found[1], (place, found)
    assert browser.url.startswith(found[2]), (place, found)


def shown(browser: Browser, texts: list[str], selector: str, place: str, least: int) -> None:
    """Checks that the page shows at least `least` of the texts, character by character."""
    there = browser.driver.execute_script(
        "const [texts, selector] = arguments; const all = [...document.querySelectorAll(selector)].map((e) => e.textContent)"
        ".join('\\n'); return texts.filter((text) => all.includes(text)).length", texts, selector)
    assert there >= least, (place, there, least, browser.text(selector)[:500])
    harmless(browser, place)


def string(value: str) -> bytes:
    return struct.pack(">H", len(value.encode())) + value.encode()


def packet(kind: int, body: bytes) -> bytes:
    length, made = len(body), b""
    while True:
        length, low = divmod(length, 128)
        made += bytes([low | (0x80 if length else 0)])
        if not length:
            return bytes([kind]) + made + body


def mqtt(port: int, client_id: str, topics: list[str]) -> socket.socket:
    """Returns an MQTT 3.1.1 client with a persistent session."""
    connection = socket.create_connection(("127.0.0.1", port), source_address=(security.address(), 0))
    connection.sendall(packet(0x10, string("MQTT") + bytes([4, 0, 0, 0]) + string(client_id)))
    for topic in topics:
        connection.sendall(packet(0x82, bytes([0, 1]) + string(topic) + bytes([1])))
    connection.settimeout(10)
    connection.recv(4)
    return connection


def report(port: int, user: str, version: str, labels: list[str]) -> None:
    """Sends an app's statistics on deliveries over MQTT. Returns once the server has answered."""
    with socket.create_connection(("127.0.0.1", port), timeout=10, source_address=(security.address(), 0)) as connection:
        connection.sendall(packet(0x10, string("MQTT") + bytes([4, 0xC2, 0, 0]) + string("app") + string(user) + string(PASSWORD)))
        connection.sendall(packet(0x82, bytes([0, 1]) + string("hermes/v1/down/json") + bytes([1])))
        statistics = {"appVersion": version, "networks": [{"label": label, "received": "1", "within1S": "1"} for label in labels]}
        # The server's answers arrive only after the subscription.
        answer = b""
        while b"\x90\x03" not in answer:
            answer += connection.recv(4_096) or b"the server closed the connection"
            assert not answer.endswith(b"the connection"), answer
        deadline = time.monotonic() + 10
        while b'"77"' not in answer:
            assert time.monotonic() < deadline, answer
            connection.sendall(packet(0x30, string("hermes/v1/up/json") + json.dumps({"id": "77", "statistics": statistics}).encode()))
            answer += connection.recv(65_536)


def fill(server: security.Server, people: list[str]) -> str:
    """Creates everything that has a name in the API, with hostile names. Returns an API key with all rights."""
    server.control("addAdministrator", name="olga", role="administrator", password=security.PASSWORD)
    server.control("addAdministrator", name="otto", role="operator", password=security.PASSWORD)
    key = server.control("createAPIKey", name="all", scopes="all")["apiKeyCreated"]["secret"]
    api = {"Authorization": f"Bearer {key}"}
    refused = {}
    for number, text in enumerate(PAYLOADS):
        label = name(number, text).replace(" ", "_")
        tries = {
            "accounts": ("/v1/users", {"nick_name": people[number], "password": PASSWORD}),
            "invitations": ("/v1/invitations", {"name": label, "uses": 1, "days": 1}),
            "topics": ("/v1/topics/publish", {"topic": name(number, text).replace("#", "").replace("+", ""),
                                              "payload": {"text": text}, "retain": True}),
        }
        for what, (path, body) in tries.items():
            answer = ask(server.http, "POST", path, api, body)
            # The answer is never an HTML page.
            assert answer["content-type"].split(";")[0] in ("application/json", "application/problem+json"), answer
            assert answer["x-content-type-options"] == "nosniff" or answer["content-security-policy"] == "", answer
            if answer.status >= 300:
                refused.setdefault(what, []).append((answer.status, body))
        if label.isascii():
            server.control("createAPIKey", name=label, scopes="push")
        room = ask(server.http, "POST", f"/v1/rooms/{urllib.parse.quote(text, safe='')}/messages", api, {"text": "x"})
        safe = all(c.isascii() and (c.isalnum() or c in "-_.") for c in text)
        assert (room.status < 300) == safe, (text, room)
    assert all(len(which) <= 4 for which in refused.values()), refused
    step(f"200 names each of accounts, keys, invitations and topics; refused: "
         f"{ {what: len(which) for what, which in refused.items()} }; no room has such a name")
    return key


def check_console(server: security.Server, people: list[str], stack: contextlib.ExitStack, key: str) -> None:
    url = f"http://127.0.0.1:{server.console}/console/"
    clients = [mqtt(server.mqtt, name(number, text), ["room/lobby"] if number == 0 else [])
               for number, text in enumerate(PAYLOADS)]
    for one in clients:
        stack.callback(one.close)
    olga = browser_at(url)
    stack.callback(olga.driver.quit)
    olga.fill("input[name=name]", "olga")
    olga.fill("input[name=password]", security.PASSWORD)
    olga.press("Log in")
    olga.sees("olga, administrator", "header")

    def view(title: str) -> None:
        next(link for link in olga.driver.find_elements(By.CSS_SELECTOR, "nav a") if link.text == title).click()
        olga.sees(title, "main h1")
        olga.until(lambda: "…" not in olga.text("main > p.muted"), title)

    def pages(title: str, texts: list[str], least: int) -> None:
        """Checks every page of a list."""
        view(title)
        seen = 0
        for _ in range(8):
            there = olga.driver.execute_script("return document.querySelector('main').textContent")
            seen += sum(text in there for text in texts)
            harmless(olga, title)
            further = [b for b in olga.driver.find_elements(By.CSS_SELECTOR, "main button")
                       if b.is_displayed() and b.text.strip() in ("Next page", "Older ones")]
            if not further:
                break
            further[0].click()
            olga.until(lambda: olga.driver.execute_script("return document.querySelector('main').textContent") != there, title)
        assert seen >= least, (title, seen)

    labels = [name(number, text) for number, text in enumerate(PAYLOADS)]
    pages("Accounts", people, 196)
    pages("Groups", labels, 196)
    # The last page may be empty.
    view("Overview")
    view("Groups")
    olga.find("td button").click()
    olga.sees("mallory", "td a")
    harmless(olga, "a group")
    olga.fill("main input[name=text]", "crowd")
    olga.press("Search")
    olga.until(lambda: len(olga.driver.find_elements(By.CSS_SELECTOR, "tbody tr")) == 1, "one group")
    olga.press("Members")
    olga.sees("crowd", "main section h2")
    first = set(olga.driver.execute_script(MEMBERS))
    assert len(first) == 100, len(first)
    olga.press("Next page")
    olga.until(lambda: not first & set(olga.driver.execute_script(MEMBERS)), "the other members")
    there = first | set(olga.driver.execute_script(MEMBERS))
    assert len(there & set(people[:150])) >= 146, len(there)
    harmless(olga, "the members of a group")
    topics = [label.replace("#", "").replace("+", "") for label in labels]
    pages("Topics", topics, 150)
    pages("MQTT clients", labels, 196)
    pages("MQTT sessions", labels, 196)
    view("Keys and invitations")
    shown(olga, [label.replace(" ", "_") for label in labels], "td", "keys and invitations", 196)
    reported = [(number, text) for number, text in enumerate(PAYLOADS) if text.isascii() and text.isprintable()][:60]
    for first in range(0, len(reported), 15):
        part = reported[first:first + 15]
        report(server.mqtt, people[first], name(*part[0], 32), [name(*one) for one in part])
    view("Apps")
    shown(olga, [name(*one) for one in reported], "td", "apps", 56)
    shown(olga, [name(*one) for one in reported], "option", "apps", 56)
    view("Configuration")
    harmless(olga, "configuration")
    for what, title, selector, action in (
        ("accounts", "Accounts", "input[name=text]", "Search"), ("clients", "MQTT clients", "input[name=text]", "Search"),
        ("topics", "Topics", "main form input[name=topic]", "Look"), ("trace", "Trace", "main input[name=id]", "Search"),
    ):
        view(title)
        texts = [name(number, text).replace("#", "").replace("+", "") for number, text in enumerate(PAYLOADS)]
        searched = olga.driver.execute_async_script(SEARCH, selector, action, texts)
        assert searched == len(texts), (what, searched)
        harmless(olga, what)
    step("the console: lists, searches, keys, invitations, topics, sessions and the log")
    check_findings(server, olga, view, key)

    view("Rooms")
    olga.sees("lobby", "td")
    olga.find("td button").click()
    olga.sees("You are watching lobby", ".lines li")
    api = {"Authorization": f"Bearer {key}"}
    for number, text in enumerate(PAYLOADS):
        answer = ask(server.http, "POST", "/v1/rooms/lobby/messages", api, {"text": text, "name": name(number, text)})
        assert answer.status < 300 or not text.isprintable(), answer
    olga.sees(name(199, PAYLOADS[199]), ".lines li")
    shown(olga, [name(number, text) for number, text in enumerate(PAYLOADS)], ".lines li", "a watched room", 190)
    eve = check_devices(server, olga, view, stack)
    for begin in range(0, 200, 50):
        part = [text for text in PAYLOADS[begin : begin + 50] if text.isprintable()]
        for text in part:
            answer = ask(server.http, "POST", "/v1/rooms/lobby/messages", api, {"text": text})
            assert answer.status < 300, answer
        refused = eve.driver.execute_async_script(EACH % (GIVE % "lobby"), part, 0)
        assert refused == 0, refused
        olga.sees(f"eve gives 3 × {part[-1].strip()}", ".lines li")
        shown(olga, [f"Notice: {text}" for text in part], ".lines li", "notices of a watched room", len(part))
        shown(olga, [f"eve gives 3 × {text}" for text in part], ".lines li", "gifts of a watched room", len(part))
    step("the console: what is said, noticed and given in a watched room")
    for number, text in enumerate(PAYLOADS):
        if number % 25 == 0:
            # Each session has a rate limit for changes.
            administrator = Administrator(server, "otto")
        administrator.ask("DELETE", f"/topics/retained?topic={urllib.parse.quote(name(number, text))}")
        ask(server.console, "POST", "/console/api/login", {}, {"name": name(number, text), "password": "x"})
    pages("Audit log", labels, 190)
    view("Log")
    for action, least in (("deleteRetained", 190), ("wrong name or password", 190)):
        olga.fill("main input[name=text]", action)
        olga.press("Read again")
        lines = [olga.text("main tbody td:nth-child(4)")]
        olga.until(lambda: len(olga.driver.find_elements(By.CSS_SELECTOR, "main tbody tr")) >= least, f"lines with {action}: {lines}")
        shown(olga, labels, "main tbody code", f"lines of {action}", least)
    step("the console: the audit log, and its targets in the log")
    # The browser logs refused requests, such as those for things that do not exist.
    complaints = [line for line in olga.log() if "Failed to load resource" not in line]
    assert complaints == [], complaints


def check_devices(server: security.Server, olga: Browser, view, stack: contextlib.ExitStack) -> Browser:
    """Uses each text as the name, platform and version of a device. Returns the browser of a person who is in the
    lobby."""
    origin = f"http://127.0.0.1:{server.http}"
    eve = browser_at(f"{origin}/chat/")
    stack.callback(eve.driver.quit)
    log_in(eve, "eve")
    eve.sees("connected", ".connection")
    socket_url = origin.replace("http", "ws")
    made = eve.driver.execute_async_script(MALLORY, socket_url, "eve", PASSWORD, {"name": "in the lobby"})
    assert isinstance(made, int), made
    entered = eve.driver.execute_async_script(EACH % "await window.mallory.enterRoom(value, { name: 'eve' })", ["lobby"], 0)
    assert entered == 0, "not in the lobby"
    count = 40
    tokens: list[str] = []
    kept = [0, 0, 0]

    def cut(text: str, most: int) -> str:
        """Returns the text as the server stores it."""
        text = "".join(one for one in text if unicodedata.category(one) != "Cc")
        while len(text.encode()) > most:
            text = text[:-1]
        return text

    for begin in range(0, 200, count):
        parts = [[PAYLOADS[(begin + number + shift) % 200] for number in range(count)] for shift in (0, 67, 133)]
        devices = [{"id": f"device-{number}", "name": one, "platform": two, "appVersion": three}
                   for number, (one, two, three) in enumerate(zip(*parts))]
        tokens = eve.driver.execute_async_script(DEVICES, f"{socket_url}/ws", "eve", PASSWORD, devices, tokens)
        assert isinstance(tokens, list), tokens
        wanted = [[cut(text, most) for text in part] for part, most in zip(parts, (64, 64, 32))]
        eve.press("Menu")
        eve.press("Devices")
        eve.until(lambda: len(eve.driver.find_elements(By.CSS_SELECTOR, "dialog li")) == count + 2, "the devices")
        for number, part in enumerate(wanted):
            shown(eve, part, "dialog li", "devices", count)
            kept[number] += len(part)
        eve.press("Close")
        view("Accounts")
        olga.fill("main input[name=text]", "eve")
        olga.press("Search")
        olga.find('main [aria-label="Devices of eve"]').click()
        olga.sees("device-39", "main td")
        for column, part in ((2, wanted[0]), (3, wanted[1])):
            shown(olga, part, f"main section td:nth-child({column})", "devices", count)
    assert kept == [200, 200, 200], kept
    view("Rooms")
    olga.find("td button").click()
    olga.sees("You are watching lobby", ".lines li")
    step("the chat and the console: 200 names, platforms and versions of devices")
    return eve


def check_findings(server: security.Server, olga: Browser, view, key: str) -> None:
    """Checks the console's views of single things: search results, a device, traces, attempts of webhooks, watched
    topics."""
    api = {"Authorization": f"Bearer {key}"}
    found = 0
    texts = "return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)"

    def open_at(address: str, text: str) -> None:
        olga.driver.execute_script("location.hash = `#${arguments[0]}/${encodeURIComponent(arguments[1])}`", address, text)

    for begin in range(0, 200, 25):
        # Each session has a rate limit for searches.
        olga.press("Log out")
        olga.fill("input[name=name]", "olga")
        olga.fill("input[name=password]", security.PASSWORD)
        olga.press("Log in")
        olga.sees("olga, administrator", "header")
        for number in range(begin, begin + 25):
            text = name(number, PAYLOADS[number])
            open_at("search", text)
            olga.until(lambda: any(f"“{text}”" in one for one in olga.driver.execute_script(texts, "main h2")), text)
            found += text in olga.driver.execute_script(texts, "td a")
        harmless(olga, "search results")
    assert found >= 196, found
    step(f"the console: {found} of 200 searches find an account, a group, a client or a session of that name")

    traced = 0
    for number in range(0, 200, 4):
        client_id = PAYLOADS[number][:16]
        body = {"to": {"user": "zoe"}, "text": "x", "client_id": client_id}
        if ask(server.http, "POST", "/v1/users/mallory/messages", api, body).status >= 300:
            continue
        open_at("trace", client_id)
        olga.until(lambda: olga.text("main h1") == "Trace" and "…" not in olga.text("main > p.muted"), client_id)
        traced += any(client_id in one for one in olga.driver.execute_script(texts, "main p.muted"))
        harmless(olga, "a trace")
    assert traced >= 40, traced
    step(f"the console: traces by {traced} client ids")
    view("Webhooks")
    olga.sees("online", "td")
    harmless(olga, "webhooks")
    # Sets the filter as if somebody had typed it. The last filter matches no attempt.
    for text in [*PAYLOADS, "of no attempt"]:
        olga.driver.execute_script(
            """const field = document.querySelector("main input[type=search]");
            field.value = arguments[0];
            field.dispatchEvent(new Event("change"));""", text)
    olga.sees("There are none.", "main p.muted")
    harmless(olga, "filtered webhooks")
    olga.driver.execute_script("location.hash = '#webhooks/on'")
    olga.sees("online", "td")
    step("the console: 200 filters of webhooks")

    view("Topics")
    olga.fill("main input[name=filter]", "#")
    olga.press("Watch")
    olga.sees("You are watching #", ".lines li")
    refused = 0
    for number, text in enumerate(PAYLOADS):
        body = {"topic": name(number, text).replace("#", "").replace("+", ""), "payload": {"text": text}}
        refused += ask(server.http, "POST", "/v1/topics/publish", api, body).status >= 300
    assert refused <= 4, refused
    olga.sees("~199", ".lines li")
    shown(olga, [text for text in PAYLOADS if text.isprintable()], ".lines li", "watched topics", 150)
    olga.press("Stop watching")
    step("the console: attempts of webhooks, and 200 publications to watched topics")


def whole_list(browser: Browser, least: int) -> None:
    """Extends the list of conversations until it shows at least `least` of them."""

    def is_long() -> bool:
        for element in browser.driver.find_elements(By.CSS_SELECTOR, "nav button"):
            if element.text.strip() == "More conversations":
                browser.driver.execute_script("arguments[0].click()", element)
        return len(browser.driver.find_elements(By.CSS_SELECTOR, "nav button.row")) >= least

    browser.until(is_long, f"{least} conversations", 60)


def log_in(browser: Browser, who: str) -> None:
    browser.fill("input[name=name]", who)
    browser.fill("input[name=password]", PASSWORD)
    browser.press("Log in")


def check_chat(server: security.Server, people: list[str], stack: contextlib.ExitStack, key: str) -> None:
    origin = f"http://127.0.0.1:{server.http}"
    api = {"Authorization": f"Bearer {key}"}
    for who in ("zoe", "mallory", "eve"):
        answer = ask(server.http, "POST", "/v1/users", api, {"nick_name": who, "password": PASSWORD})
        assert answer.status < 300, answer
    zoe = browser_at(f"{origin}/chat/")
    stack.callback(zoe.driver.quit)
    log_in(zoe, "zoe")
    zoe.sees("connected", ".connection")
    uid = int(json.loads(ask(server.http, "GET", "/v1/users/zoe", api).body)["uid"])
    for person, text in zip(people, PAYLOADS):
        path = f"/v1/users/{urllib.parse.quote('@' + person, safe='')}/messages"
        ask(server.http, "POST", path, api, {"to": {"user": "zoe"}, "text": text})
        ask(server.http, "POST", "/v1/push", api, {"to": {"user": "zoe"}, "title": text, "body": text, "data": {"x": text}})
    whole_list(zoe, 195)
    shown(zoe, people, "nav", "conversations", 195)
    for row in range(0, 195, 8):
        zoe.driver.find_elements(By.CSS_SELECTOR, "nav button.row")[row].click()
        zoe.find(".pane h2")
        harmless(zoe, "a conversation")
    step("the chat: 200 senders, first texts and pushes")

    mallory = Browser("about:blank")
    stack.callback(mallory.driver.quit)
    mallory.driver.get(f"{origin}/chat/")
    made = mallory.driver.execute_async_script(MALLORY, origin.replace("http", "ws"), "mallory", PASSWORD, {"name": "hers"})
    assert isinstance(made, int), made

    def each(work: str, values: list) -> int:
        return mallory.driver.execute_async_script(EACH % work, values, uid)

    kinds = {
        "text": "{ text: value }",
        "image": "{ image: { url: value } }",
        "file name": "{ sound: { fileName: value, sourceUrl: value, locationUrl: value } }",
        "video": "{ video: { url: value, thumbnailUrl: value } }",
        "place": "{ location: { label: value } }",
        "expression": "{ expression: { id: 1, name: value.slice(0, 20) } }",
        "custom": "{ custom: { type: value.slice(0, 20), data: btoa(unescape(encodeURIComponent(value))) } }",
        "attributes": "{ text: 'x', attributes: { [value]: value } }",
    }
    opened = False
    for kind, content in kinds.items():
        for begin in range(0, 200, 20):
            texts = PAYLOADS[begin : begin + 20]
            end = f"{kind} until {begin + 20}"
            each(f"await window.mallory.outbox.send({content}, {{ uid }})", texts)
            each("await window.mallory.outbox.send(value, { uid })", [end])
            if not opened:
                zoe.until(lambda: "mallory" in zoe.text("nav .name"), "mallory's conversation", 30)
                next(row for row in zoe.driver.find_elements(By.CSS_SELECTOR, "nav button.row") if "mallory" in row.text).click()
                opened = True
            zoe.sees(end, ".line", 30)
            if kind == "text":
                whole = [text for text in texts if text.isprintable() and text == text.strip()]
                shown(zoe, whole, ".line .text", kind, len(whole))
            harmless(zoe, kind)
    step(f"the chat: {', '.join(kinds)}, of 200 each")
    links = zoe.driver.execute_script("return [...document.querySelectorAll('.line a')].map((a) => a.getAttribute('href'))")
    assert all(link.startswith(("http://", "https://")) for link in links), links

    refused = each("await window.mallory.createGroup(value, [uid])", [name(number, text) for number, text in enumerate(PAYLOADS)])
    assert refused <= 4, refused
    # A group that has more members than one page of the console shows.
    numbers = [json.loads(ask(server.http, "GET", f"/v1/users/{urllib.parse.quote('@' + person, safe='')}", api).body).get("uid")
               for person in people[:150]]
    crowd = [uid, *(int(one) for one in numbers if one)]
    made = mallory.driver.execute_async_script(EACH % "await window.mallory.createGroup('crowd', value)", [crowd], uid)
    assert made == 0 and len(crowd) > 140, (made, len(crowd))
    whole_list(zoe, 390)
    harmless(zoe, "groups")
    refused = each("await window.mallory.request({ statistics: { appVersion: value.slice(0, 30), networks: [{ label: "
                   "value.slice(0, 30), fromMs: Date.now() - 1000, toMs: Date.now(), received: 1, within1S: 1 }] } }, false)", PAYLOADS)
    assert refused <= 200, refused
    zoe.press("Contacts")
    harmless(zoe, "contacts")
    words = "return [...document.querySelectorAll('.request')].map((one) => one.textContent).join()"
    asked = 0
    for text in PAYLOADS[::5]:
        if each("await window.mallory.requestContact(uid, value)", [text]):
            continue  # longer than the text of a request may be
        if text.isprintable():
            zoe.until(lambda: text in zoe.driver.execute_script(words), f"the request {text!r}")
            asked += 1
        harmless(zoe, "a request for a contact")
        each("await window.mallory.removeContact(uid)", [text])
    assert asked >= 30, asked
    for number in range(0, 200, 10):
        zoe.driver.get(f"{origin}/chat/?server={urllib.parse.quote(PAYLOADS[number])}#{urllib.parse.quote(PAYLOADS[number])}")
        zoe.find("#app *")
        found = zoe.driver.execute_script("return window.injected")
        assert all("connect-src" in one for one in found), found
    step(f"the chat: 200 groups, devices, {asked} requests for contacts, and addresses of the page")


def check_room(server: security.Server, stack: contextlib.ExitStack, key: str) -> None:
    origin = f"http://127.0.0.1:{server.http}"
    api = {"Authorization": f"Bearer {key}"}
    bob = browser_at(f"{origin}/room/main.hall")
    stack.callback(bob.driver.quit)
    bob.sees("watching", ".state")
    seen: set[str] = set()
    everything = "return document.querySelector('main, #app').textContent"
    for number, text in enumerate(PAYLOADS):
        answer = ask(server.http, "POST", "/v1/rooms/main.hall/messages", api, {"text": text, "name": name(number, text)})
        assert answer.status < 300 or not text.isprintable(), answer
        # The page's log shows at most 5 lines a second. The stage shows more.
        time.sleep(0.12)
        if number % 5 == 4:
            there = bob.driver.execute_script(everything)
            seen |= {one for one in PAYLOADS if one in there}
            harmless(bob, "a room")
    # The page leaves out some texts. A busy machine shows fewer.
    assert len(seen) >= 100, len(seen)
    noticed = given = 0
    answer = ask(server.http, "POST", "/v1/users", api, {"nick_name": "gina", "password": PASSWORD})
    assert answer.status < 300, answer
    made = bob.driver.execute_async_script(MALLORY, origin.replace("http", "ws"), "gina", PASSWORD, {"name": "hers"})
    assert isinstance(made, int), made
    assert bob.driver.execute_async_script(EACH % "await window.mallory.enterRoom(value, { name: 'gina' })", ["main.hall"], 0) == 0
    for begin in range(0, 200, 5):
        part = [text for text in PAYLOADS[begin : begin + 5] if text.isprintable()]
        for text in part:
            assert ask(server.http, "POST", "/v1/rooms/main.hall/messages", api, {"text": text}).status < 300
        assert bob.driver.execute_async_script(EACH % (GIVE % "main.hall"), part, 0) == 0, "a gift was refused"
        # Notices are never left out.
        bob.until(lambda: all(one in bob.driver.execute_script(everything) for one in part), f"notices {part}")
        shown(bob, part, ".notice", "notices of a room", len(part))
        noticed += len(part)
        there = bob.driver.execute_script("return [...document.querySelectorAll('.gift, .note')].map((one) => one.textContent).join()")
        given += sum(text in there for text in part)
        harmless(bob, "gifts of a room")
        time.sleep(0.5)  # the page's log shows at most 5 lines a second
    assert noticed >= 190 and given >= 90, (noticed, given)
    for number, text in enumerate(PAYLOADS):
        for address in (f"/room/{urllib.parse.quote(text, safe='')}",) if number % 4 else (
                f"/room/?room={urllib.parse.quote(text)}&lang={urllib.parse.quote(text)}&theme={urllib.parse.quote(text)}",):
            bob.driver.get(origin + address)
            harmless(bob, address)
    step(f"the live room: {len(seen)} of 200 texts, {noticed} notices and {given} gifts seen on the page, all 200 as names of rooms in its address")


def check_frames(server: security.Server, stack: contextlib.ExitStack) -> None:
    """A page of another origin tries to show the server's pages in frames."""
    folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
    quiet = type("Quiet", (http.server.SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    host = stack.enter_context(http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(quiet, directory=str(folder))))
    threading.Thread(target=host.serve_forever, daemon=True).start()
    stack.callback(host.shutdown)
    targets = [f"http://127.0.0.1:{server.http}{path}" for path in ("/", "/api", "/chat/", "/room/lobby", "/metrics")]
    targets += [f"http://127.0.0.1:{server.console}{path}" for path in ("/console/", "/console/api/session")]
    tags = "".join(f'<iframe src="{one}"></iframe><object data="{one}"></object><embed src="{one}">' for one in targets)
    (folder / "index.html").write_text(f"<!doctype html><title>evil</title>{tags}")
    eve = Browser(f"http://127.0.0.1:{host.server_port}/")
    stack.callback(eve.driver.quit)
    count = len(eve.driver.find_elements(By.CSS_SELECTOR, "iframe"))
    refused = []
    for number in range(count):
        eve.driver.switch_to.default_content()
        eve.driver.switch_to.frame(eve.driver.find_elements(By.CSS_SELECTOR, "iframe")[number])
        # The text that Chromium shows in place of a refused page.
        text = eve.driver.execute_script("return [location.href, document.body?.innerText ?? '']")
        refused.append(text[0].startswith("chrome-error:") and "Hermes" not in text[1])
    eve.driver.switch_to.default_content()
    wrong = [target for target, is_refused in zip(targets, refused) if not is_refused and "/metrics" not in target]
    assert not wrong, wrong
    # The page of another origin also tries to read the server's pages with the visitor's cookies.
    stolen = eve.driver.execute_async_script(
        "const [targets, done] = arguments; Promise.all(targets.map((one) => fetch(one, { credentials: 'include' })"
        ".then((answer) => answer.text()).then((text) => `${one} ${text.slice(0, 40)}`, () => ''))).then(done)", targets)
    assert not any(stolen), stolen
    step(f"no page of another origin shows one of {len(targets)} pages in a frame, or reads it")


def main() -> None:
    people = [name(number, text) for number, text in enumerate(PAYLOADS)]
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        server = security.Server(f"{folder}/data", (
            "--http.api.requestsPerSecond", "100000", "--http.api.burst", "100000", "--log.level", "debug",
            "--limits.connectionsPerAddress", "5000", "--webhooks.url", "http://127.0.0.1:9/"))
        stack.callback(server.stop)
        key = fill(server, people)
        check_frames(server, stack)
        # Each test uses its own browsers.
        with concurrent.futures.ThreadPoolExecutor() as pool:
            room = pool.submit(check_room, server, stack, key)
            check_chat(server, people, stack, key)
            room.result()
        check_console(server, people, stack, key)
        assert server.process.poll() is None, "the server ended"
    print("payloads: good", flush=True)


if __name__ == "__main__":
    main()
