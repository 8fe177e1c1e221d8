#!/usr/bin/env python3
# Hermes
# SPDX-License-Identifier: Apache-2.0
"""Tests the page of live rooms in headless Chromium against a real server. HERMES_BIN names the server's program.

    room_browser.py         everything
    room_browser.py page    everything except the load test
    room_browser.py load    only the load test, which compares times; the machine must be otherwise idle

Needs what chat_browser.py needs. If WEB_SCREENSHOTS names a folder, the screenshots are written to it.
"""

import contextlib
import functools
import http.server
import pathlib
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable

from chat_browser import ACCESS, PROGRAM, Browser, Server
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

# A frame that took more than LATE milliseconds is late. The page caused a late frame only if its scripts, styles and
# layout took more than WORK milliseconds in the frame.
LATE, WORK = 50, 10
# The number of measurements, because a busy machine may disturb them, and the number of late frames by which the room
# may exceed the empty page.
ATTEMPTS, MORE_LATE = 3, 3
# Records the time between two frames. For frames of more than 50 ms, it also records how long the page worked in them.
FRAMES = """
window.frames = [];
window.slow = [];
const observer = new PerformanceObserver((list) => {
    for (const { duration, scripts, startTime, styleAndLayoutStart } of list.getEntries()) {
        const script = scripts.reduce((sum, one) => sum + one.duration, 0);
        const layout = styleAndLayoutStart ? startTime + duration - styleAndLayoutStart : 0;
        window.slow.push({ duration, work: script + layout });
    }
});
observer.observe({ type: "long-animation-frame" });
let last = performance.now();
const next = (now) => {
    window.frames.push(now - last);
    last = now;
    window.watching = requestAnimationFrame(next);
};
window.watching = requestAnimationFrame(next);
// The observer gets the entry of a frame only after the frame.
window.stopFrames = (done) => setTimeout(() => {
    cancelAnimationFrame(window.watching);
    observer.disconnect();
    done([window.frames, window.slow]);
}, 500);
"""
# An empty page across which forty words fly, as texts do on the stage.
EMPTY = """
document.body.style = "position: relative; height: 400px; overflow: hidden; contain: strict";
for (let count = 0; count < 40; count += 1) {
    const word = document.createElement("span");
    word.textContent = `a word that flies, number ${count}`;
    word.style = `position: absolute; top: ${count * 10}px; white-space: nowrap; will-change: transform`;
    document.body.append(word);
    const way = [{ transform: "translateX(1100px)" }, { transform: "translateX(-300px)" }];
    word.animate(way, { duration: 9000, iterations: Infinity, delay: -count * 220 });
}
"""


def step(text: str) -> None:
    print(f"room: {text}", flush=True)


def say(browser: Browser, text: str) -> None:
    browser.fill("input[name=text]", text)
    browser.find("input[name=text]").send_keys(Keys.ENTER)


def join(browser: Browser, name: str) -> None:
    browser.fill("input[name=name]", name)
    browser.fill("input[name=password]", "correct horse")
    browser.press("Create account")
    browser.sees("connected", ".state")
    browser.find("input[name=text]")


def check(ann: Browser, bob: Browser, server: Server) -> None:
    for browser in (ann, bob):
        browser.find("input[name=name]")
        browser.check_access()
    bob.driver.get("about:blank")
    join(ann, "ann")
    ann.sees("1 viewer", ".viewers")
    bob.driver.get(bob.url)
    bob.sees("watching", ".state")
    bob.sees("Log in to talk", ".invitation")
    # The page requests the number of viewers. The server counts the watcher, too.
    bob.sees("2 viewers", ".viewers")
    say(ann, "hello to all who watch")
    ann.find("button[data-gift=star]").click()
    bob.sees("ann hello to all who watch", ".log p")
    bob.sees("hello to all who watch", ".flying")
    bob.sees("ann gives ⭐ star × 1", ".log p")
    bob.check_access()
    bob.shot("room-watching")
    step("who has no account watches, and sees how many do")
    join(bob, "bob")
    for browser in (ann, bob):
        browser.sees("2 viewers", ".viewers")
    step("two people are in a room, and see that")

    odd = "<img src=x onerror=alert(1)> hello"
    say(ann, odd)
    for browser in (ann, bob):
        browser.sees(f"ann {odd}", ".log p")
        browser.sees(odd, ".flying")
        assert not browser.driver.find_elements(By.CSS_SELECTOR, "img"), "markup became an element"
    assert ann.find(".log .own") and not bob.driver.find_elements(By.CSS_SELECTOR, ".log .own")
    step("a text flies over the stage and stays in the log, as text")

    bob.find("button[data-gift=rocket]").click()
    for browser in (ann, bob):
        browser.sees("bob 🚀 rocket × 1", ".gift")
        browser.sees("bob gives 🚀 rocket × 1", ".log p")
    bob.shot("room-gift")
    step("a gift lights up")

    room = ["--port", str(server.liveroom)]
    heard = subprocess.run(
        [PROGRAM, "room", "main.hall", "--name", "cat", *room],
        input="from another protocol\n",
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert heard.returncode == 0, heard.stderr
    bob.sees("cat from another protocol", ".log p")
    ann.until(lambda: ann.text(".viewers") == "2 viewers", "the viewer who left")
    step("a LiveRoom client says something in the same room")

    say(ann, "שלום, hello!")
    bob.sees("שלום", ".log p:last-child span")
    direction = "return getComputedStyle(document.querySelector(arguments[0])).direction"
    assert bob.driver.execute_script(direction, ".log p:last-child span") == "rtl"
    assert bob.driver.execute_script(direction, ".log p:last-child b") == "ltr"
    bob.driver.execute_script("document.documentElement.dir = 'rtl'")
    overflow = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert bob.driver.execute_script(overflow) <= 0
    bob.shot("room-right-to-left")
    bob.driver.execute_script("document.documentElement.dir = ''")
    step("a text from right to left has its own direction, and a page from right to left fits")

    bob.press("Pause")
    say(ann, "not seen by bob")
    ann.sees("not seen by bob", ".log p")
    assert bob.find("button[aria-pressed]").get_attribute("aria-pressed") == "true"
    time.sleep(0.5)
    assert "not seen by bob" not in bob.text(".log")
    bob.press("Pause")
    bob.sees("1 more, during the pause", ".left-out")
    say(ann, "seen again")
    bob.sees("seen again", ".log p")
    step("paused, nothing moves; what was missed is counted")

    server.kill()
    bob.until(lambda: "connected" != bob.text(".state"), "the end of the connection")
    server.start()
    for browser in (ann, bob):
        browser.sees("connected", ".state", 60)
    # Both pages have entered the room again by themselves.
    ann.until(lambda: spoken(ann, bob), "a text after the restart", 60)
    for browser in (ann, bob):
        browser.sees("2 viewers", ".viewers")
    step("the room goes on after a restart of the server")

    bob.driver.set_window_size(400, 700)
    assert bob.driver.execute_script(overflow) <= 0
    say(bob, "from a phone")
    ann.sees("bob from a phone", ".log p")
    bob.shot("room-narrow")
    for browser in (ann, bob):
        browser.check_access()
        for element in browser.driver.find_elements(By.CSS_SELECTOR, "button, input"):
            if element.is_displayed():
                assert element.accessible_name, element.get_attribute("outerHTML")
    bob.driver.set_window_size(1100, 800)
    step("a narrow window; every control has a name")

    bob.driver.get(bob.url)
    bob.sees("connected", ".state")
    bob.sees("2 viewers", ".viewers")
    say(bob, "back")
    ann.sees("bob back", ".log p")
    bob.driver.switch_to.new_window("tab")
    bob.driver.get(bob.url)
    bob.sees("2 viewers", ".viewers")
    say(bob, "from the second tab")
    first, second = bob.driver.window_handles
    bob.driver.switch_to.window(first)
    bob.sees("from the second tab", ".log p")
    bob.driver.close()
    bob.driver.switch_to.window(second)
    bob.until(lambda: spoken(ann, bob), "a text after the first tab was closed")
    step("two tabs are in the room once; when the leading one is closed, the other goes on")

    bob.press("Log out")
    bob.find("input[name=password]")
    ann.sees("1 viewer", ".viewers")
    bob.fill("input[name=name]", "bob")
    bob.fill("input[name=password]", "correct horse")
    bob.press("Log in")
    bob.sees("2 viewers", ".viewers")
    for browser in (ann, bob):
        assert browser.log() == [], browser.log()
    step("logging out leaves the room; logging in enters it")


def spoken(ann: Browser, bob: Browser) -> bool:
    say(ann, "still here?")
    return "still here?" in bob.text(".log p:nth-last-child(-n+2)")


class Frames:
    """The frames of a page during a call of `during`. The test sends the page no other commands in that time."""

    def __init__(self, browser: Browser, during: Callable[[], None]):
        had = browser.processor()
        browser.driver.execute_script(FRAMES)
        during()
        self.times, slow = browser.driver.execute_async_script("window.stopFrames(arguments[0])")
        self.ran, waited = (now - then for now, then in zip(browser.processor(), had))
        self.late = [time for time in self.times if time > LATE]
        # Late frames in which the page worked. In the other late frames, the machine was busy with other programs.
        self.worked = [one["work"] for one in slow if one["work"] > WORK]
        self.idle = len(slow) - len(self.worked)
        self.most = max(self.worked, default=0)
        self.text = (
            f"{len(self.times)} frames, {len(self.late)} over {LATE} ms, the longest {max(self.times):.0f} ms; in "
            f"{len(self.worked)} that the browser calls long the page worked for more than {WORK} ms, at most "
            f"{self.most:.0f} ms, and in {self.idle} it did not (the page ran for {self.ran:.1f} s and waited for a "
            f"processor for {waited:.1f} s)"
        )


def field(number: int, value: bytes) -> bytes:
    """Returns a protobuf field with at most 127 bytes."""
    return bytes([number << 3 | 2, len(value)]) + value


def frame(kind: int, body: bytes) -> bytes:
    """Returns a LiveRoom frame (docs/protocols.md)."""
    return struct.pack("<IH", len(body), kind) + body


def check_load(ann: Browser, server: Server) -> None:
    """LiveRoom clients send 1,000 texts a second. Compares the page of the room with an empty page that moves as many
    words."""
    sent = 0

    def drain(connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while connection.recv(1 << 18):
                pass

    def talk(rate: int, seconds: float) -> None:
        """A LiveRoom client that sends texts. It discards everything that it receives, because it shares the processors
        with the page."""
        nonlocal sent
        with socket.create_connection(("127.0.0.1", server.liveroom)) as connection:
            threading.Thread(target=drain, args=(connection,), daemon=True).start()
            fan = field(2, b"fan")
            connection.sendall(frame(9, field(1, b"main.hall")) + frame(0, b"\x08\x07" + fan + field(3, b"x")))
            began = time.monotonic()
            for tick in range(int(50 * seconds)):
                texts = (f"text {sent + count}".encode() for count in range(rate // 50))
                connection.sendall(b"".join(frame(2, field(1, b"\x08\x07" + fan + field(3, b"x")) + field(2, text)) for text in texts))
                sent += rate // 50
                time.sleep(max(0, began + tick / 50 - time.monotonic()))
            time.sleep(0.5)  # closing the connection at once would lose the last texts

    thread = threading.Thread(target=talk, args=(1000, 4))
    thread.start()
    ann.sees("too many to show", ".left-out")
    flying = "return [...document.querySelectorAll('.flying')].filter((one) => !one.hidden).length"
    ann.until(lambda: ann.driver.execute_script(flying) > 20, "a crowded stage")
    ann.shot("room-crowded")
    thread.join()
    room = ann.driver.current_window_handle
    ann.driver.switch_to.new_window("tab")
    ann.driver.get("about:blank")
    ann.driver.execute_script(EMPTY)
    empty = ann.driver.current_window_handle

    def measured(page: str) -> Frames:
        ann.driver.switch_to.window(page)
        # A hidden page paints no frames.
        ann.driver.execute_cdp_cmd("Page.bringToFront", {})
        ann.until(lambda: not ann.driver.execute_script("return document.hidden"), "the page in front")
        return Frames(ann, lambda: talk(1000, 10))

    problems = []
    for attempt in range(1, ATTEMPTS + 1):
        before = sent
        alone = measured(empty)
        step(f"an empty page with forty words that fly, beside {sent - before} texts: {alone.text}")
        before = sent
        began = time.monotonic()
        crowded = measured(room)
        elapsed = time.monotonic() - began
        step(f"the room with {sent - before} texts in {elapsed:.0f} s: {crowded.text}")
        problems = [
            crowded.most > LATE and f"the page worked for {crowded.most:.0f} ms in one frame",
            len(crowded.late) > len(alone.late) + MORE_LATE
            and f"{len(crowded.late)} late frames, {len(alone.late)} on the empty page",
            crowded.ran > elapsed / 3 and f"the page ran for {crowded.ran:.1f} s of {elapsed:.1f} s",
        ]
        problems = [problem for problem in problems if problem]
        if not problems:
            break
        step(f"attempt {attempt} of {ATTEMPTS}: {'; '.join(problems)}")
    assert problems == [], problems
    ann.driver.switch_to.window(empty)
    ann.driver.close()
    ann.driver.switch_to.window(room)
    lines = len(ann.driver.find_elements(By.CSS_SELECTOR, ".log p"))
    assert lines <= 100 and len(ann.driver.find_elements(By.CSS_SELECTOR, ".flying")) <= 40, lines
    left = ann.driver.execute_script(
        "return [...document.querySelectorAll('.left-out')].reduce((sum, e) => sum + parseInt(e.textContent.slice(2)), 0)"
    )
    # The server also drops texts if a client reads too slowly.
    assert left > 100, (left, sent)
    step(f"{sent} texts in all are thinned out; the log tells of {left} of them")
    say(ann, "after the crowd")
    ann.sees("after the crowd", ".log p")


def check_widget(ann: Browser, bob: Browser) -> None:
    """A page of another host shows a room if the operator's settings name that host."""
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        handler = functools.partial(QuietFiles, directory=str(folder))
        host = stack.enter_context(http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler))
        threading.Thread(target=host.serve_forever, daemon=True).start()
        stack.callback(host.shutdown)
        data = stack.enter_context(tempfile.TemporaryDirectory())
        server = Server(data, settings=("--http.pages.frames", f"http://127.0.0.1:{host.server_port}"))
        stack.callback(lambda: server.kill())
        origin = f"http://127.0.0.1:{server.port}"
        policy = f"default-src 'none'; script-src {origin}; frame-src {origin}"
        (folder / "index.html").write_text(
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>A page</title>'
            f'<meta http-equiv="Content-Security-Policy" content="{policy}"><main><h1>A page</h1>'
            f'<script src="{origin}/room/embed.js" data-room="main.hall" data-theme="dark" async></script></main>'
        )
        ann.driver.get(f"{origin}/room/main.hall")
        join(ann, "ann")
        bob.driver.get(f"http://127.0.0.1:{host.server_port}/")
        frame = bob.find("iframe")
        assert frame.accessible_name == "Live room main.hall", frame.accessible_name
        bob.driver.switch_to.frame(frame)
        bob.sees("watching", ".state")
        bob.sees("Open the room to talk", ".foot a")
        bob.sees("2 viewers", ".viewers")
        assert not bob.driver.find_elements(By.CSS_SELECTOR, "input"), "somebody could log in inside another page"
        say(ann, "hello to the page")
        bob.sees("ann hello to the page", ".log p")
        bob.sees("hello to the page", ".flying")
        problems = bob.driver.execute_script(ACCESS)
        assert problems == [], problems
        paper = "return getComputedStyle(document.body).backgroundColor"
        assert bob.driver.execute_script(paper) == "rgb(20, 23, 28)"
        bob.driver.switch_to.default_content()
        bob.shot("room-widget")
        assert bob.log() == [], bob.log()
        step("a page of a host that the operator names shows the room, dark, to watch")

        # The same files under another host name, which the settings do not name.
        bob.driver.get(f"http://localhost:{host.server_port}/")
        bob.driver.switch_to.frame(bob.find("iframe"))
        bob.until(lambda: bob.driver.execute_script("return location.href").startswith("chrome-error:"), "a refusal")
        bob.driver.switch_to.default_content()
        assert any("frame-ancestors" in line for line in bob.log())
        step("another host's page does not")

        server.kill()
        server.settings += ("--access.anonymous", "false")
        server.start()
        bob.driver.get(f"http://127.0.0.1:{host.server_port}/")
        bob.driver.switch_to.frame(bob.find("iframe"))
        bob.sees("This room can be watched with an account only.", ".foot")
        bob.driver.switch_to.default_content()
        step("where the operator wants accounts, nobody watches without one")


class QuietFiles(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


def main() -> None:
    parts = sys.argv[1:] or ["page", "load"]
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        server = Server(folder, ("liveroom",))
        stack.callback(lambda: server.kill())
        url = f"http://127.0.0.1:{server.port}/room/main.hall"
        ann = Browser(url)
        stack.callback(ann.driver.quit)
        if "page" in parts:
            bob = Browser(url, is_dark=True)
            stack.callback(bob.driver.quit)
            check(ann, bob, server)
        else:
            join(ann, "ann")
            ann.sees("1 viewer", ".viewers")
        if "load" in parts:
            check_load(ann, server)
    if "page" not in parts:
        return
    with contextlib.ExitStack() as stack:
        ann = Browser("about:blank")
        stack.callback(ann.driver.quit)
        bob = Browser("about:blank")
        stack.callback(bob.driver.quit)
        check_widget(ann, bob)


if __name__ == "__main__":
    main()
