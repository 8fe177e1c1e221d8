#!/usr/bin/env python3
# Hermes
# SPDX-License-Identifier: Apache-2.0
"""Drives the page of live rooms in headless Chromium against a real server: HERMES_BIN names its program.

Needs what chat_browser.py needs; screenshots go to the folder that WEB_SCREENSHOTS names, if any.
"""

import contextlib
import subprocess
import tempfile
import threading
import time

from chat_browser import PROGRAM, Browser, Server
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

FRAMES = """
window.frames = [];
let last = performance.now();
const next = (now) => {
    window.frames.push(now - last);
    last = now;
    window.watching = requestAnimationFrame(next);
};
window.watching = requestAnimationFrame(next);
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
    join(ann, "ann")
    ann.sees("1 viewer", ".viewers")
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
    # Both are in the room again by themselves.
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


def metrics(browser: Browser) -> dict[str, float]:
    found = browser.driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return {metric["name"]: metric["value"] for metric in found}


def check_load(ann: Browser, server: Server) -> None:
    """1,000 texts a second, from LiveRoom clients."""
    clients = 4
    rate = 250
    seconds = 10
    ann.driver.execute_cdp_cmd("Performance.enable", {})
    ann.driver.execute_script(FRAMES)
    start = metrics(ann)
    before = ann.driver.execute_script("return performance.now()")
    sent = 0

    def talk(number: int) -> None:
        nonlocal sent
        arguments = [PROGRAM, "room", "main.hall", "--name", f"fan{number}", "--port", str(server.liveroom)]
        out = subprocess.DEVNULL
        process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=out, stderr=out, text=True)
        began = time.monotonic()
        for count in range(rate * seconds):
            process.stdin.write(f"text {count} of {number}\n")
            process.stdin.flush()
            sent += 1
            time.sleep(max(0, began + count / rate - time.monotonic()))
        process.stdin.close()
        process.wait()

    threads = [threading.Thread(target=talk, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    ann.sees("too many to show", ".left-out")
    ann.until(lambda: len(ann.driver.find_elements(By.CSS_SELECTOR, ".flying")) > 20, "a crowded stage")
    ann.shot("room-crowded")
    for thread in threads:
        thread.join()
    frames = ann.driver.execute_script("cancelAnimationFrame(window.watching); return window.frames")
    elapsed = (ann.driver.execute_script("return performance.now()") - before) / 1000
    lines = len(ann.driver.find_elements(By.CSS_SELECTOR, ".log p"))
    flying = len(ann.driver.find_elements(By.CSS_SELECTOR, ".flying"))
    assert lines <= 100 and flying <= 60, (lines, flying)
    long = [frame for frame in frames if frame > 50]
    after = metrics(ann)
    busy = {name: after[name] - start[name] for name in ("ScriptDuration", "LayoutDuration", "TaskDuration")}
    # Figures, not limits: the browser, the server and the talkers share this machine.
    step(
        f"{sent} texts in {elapsed:.0f} s are thinned out: {len(frames)} frames, {len(long)} over 50 ms, the longest "
        f"{max(frames):.0f} ms; the page was busy for {busy['TaskDuration']:.1f} s, with scripts for "
        f"{busy['ScriptDuration']:.1f} s, with layout for {busy['LayoutDuration']:.1f} s"
    )
    say(ann, "after the crowd")
    ann.sees("after the crowd", ".log p")


def main() -> None:
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        server = Server(folder, ("liveroom",))
        stack.callback(lambda: server.kill())
        url = f"http://127.0.0.1:{server.port}/room/main.hall"
        ann = Browser(url)
        stack.callback(ann.driver.quit)
        bob = Browser(url, is_dark=True)
        stack.callback(bob.driver.quit)
        check(ann, bob, server)
        check_load(ann, server)


if __name__ == "__main__":
    main()
