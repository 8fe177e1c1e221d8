#!/usr/bin/env python3
# Hermes
# SPDX-License-Identifier: Apache-2.0
"""Does the first steps of a newcomer: starts the server as `make run` does, reads only its output, and lets two people
chat in two windows of one headless Chromium. HERMES_BIN names the server's program. Needs what chat_browser.py needs.

Fails if this takes 60 s or longer. The time does not include the build of the program.
"""

import contextlib
import os
import re
import signal
import subprocess
import tempfile
import threading
import time

from chat_browser import PROGRAM, Browser
from selenium.webdriver.common.by import By

PATIENCE = 60
BEGAN = time.monotonic()


def step(text: str) -> None:
    print(f"newcomer: {text} [{time.monotonic() - BEGAN:.1f} s]", flush=True)


def started(folder: str, stack: contextlib.ExitStack) -> str:
    """Starts the server without arguments. Returns the address that the server's output asks people to open."""
    names = ("HTTP", "CONSOLE", "IMPB", "LIVEROOM", "QSIOP", "DELIMITED", "MQTT")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("HERMES_")}
    # The server chooses free ports, because another server may already run on this machine.
    environment |= {f"HERMES_LISTENERS_{name}_PORT": "0" for name in names}
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    server = subprocess.Popen([PROGRAM, "serve"], cwd=folder, env=environment, **output)
    stack.callback(lambda: (server.send_signal(signal.SIGTERM), server.wait(20)))
    # Without the timer, the test would wait forever for a server that prints nothing.
    end = threading.Timer(PATIENCE, server.kill)
    end.start()
    stack.callback(end.cancel)
    for line in server.stdout:
        if found := re.search(r"open (http://\S+) in a browser", line):
            # A full pipe that nobody reads would block the server.
            threading.Thread(target=server.stdout.read, daemon=True).start()
            return found.group(1)
    raise AssertionError("the server names no page")


def follow(browser: Browser, title: str) -> None:
    """Clicks the link whose visible text begins with this title."""
    links = browser.driver.find_elements(By.CSS_SELECTOR, "a")
    next(link for link in links if link.text.startswith(title)).click()


def main() -> None:
    with contextlib.ExitStack() as stack:
        url = started(stack.enter_context(tempfile.TemporaryDirectory()), stack)
        step(f"the server says: open {url}")
        browser = Browser("about:blank")
        stack.callback(browser.driver.quit)
        windows = {"ann": browser.driver.current_window_handle}
        browser.driver.switch_to.new_window("window")
        windows["bob"] = browser.driver.current_window_handle
        for name, window in windows.items():
            browser.driver.switch_to.window(window)
            browser.driver.get(url)
            browser.sees("Open the chat in two windows")
            follow(browser, "Chat")
            # The second window starts with the first person's account, because this browser has already stored it.
            if name != "ann":
                browser.sees("connected", ".connection")
                browser.press("Menu")
                browser.press("Add an account")
            browser.join(name)
            step(f"{name} has an account")
        browser.chat_with("ann")
        browser.say("hello from the other window")
        browser.driver.switch_to.window(windows["ann"])
        browser.sees("bob", "nav .name")
        next(row for row in browser.driver.find_elements(By.CSS_SELECTOR, "nav button.row") if "bob" in row.text).click()
        browser.sees("hello from the other window", ".line")
        browser.say("and hello back")
        browser.driver.switch_to.window(windows["bob"])
        browser.sees("and hello back", ".line")
        took = time.monotonic() - BEGAN
        step("two people chat in two windows")
        assert took < PATIENCE, f"it took {took:.0f} s"
        for name, window in windows.items():
            browser.driver.switch_to.window(window)
            browser.driver.refresh()
            browser.sees("connected", ".connection")
            browser.sees(name, "header")
        step("each window keeps its person over a reload")
        assert browser.log() == [], browser.log()
    print("newcomer: good", flush=True)


if __name__ == "__main__":
    main()
