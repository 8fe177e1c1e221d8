#!/usr/bin/env python3
# Hermes
# SPDX-License-Identifier: Apache-2.0
"""Opens every view of a running console in headless Chromium, and prints the time that each took, in milliseconds, as
JSON. With --http, it measures the pages of that HTTP port, too.

    console_pages.py --port 8090 --name vera           the password is that of Interop/python/support/console.py
    console_pages.py --port 8090 --name vera --stay    opens the overview, prints "open", and waits for a line of input
"""

import argparse
import json
import os
import sys

os.environ.setdefault("HERMES_BIN", "")

from budget_browser import PAGES, measure  # noqa: E402
from chat_browser import Browser  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402

PASSWORD = "correct horse battery"
# Measures the time from the click until a frame with the contents is painted.
MEASURE = """
const [title, address, done] = arguments;
const link = [...document.querySelectorAll("nav a")].find((one) => one.textContent === title);
const old = document.querySelector("main h1");
const began = performance.now();
const watch = () => {
    const heading = document.querySelector("main h1");
    const is = heading !== old && heading?.textContent === title && document.querySelector("main").children.length > 1
        && ![...document.querySelectorAll("main > p.muted")].some((one) => one.textContent === "…");
    if (!is) return requestAnimationFrame(watch);
    requestAnimationFrame(() => { const port = new MessageChannel(); port.port1.onmessage = () => done(performance.now() - began);
        port.port2.postMessage(0); });
};
requestAnimationFrame(watch);
if (address) location.hash = address;
else link.click();
"""
# Addresses that no link has: a search with many results, a search without results, and an opened group.
ADDRESSES = {"Search: frequent": ("Search", "#search/person"), "Search: nothing": ("Search", "#search/nobody-like-this"),
             "An opened group": ("Groups", "#groups/1")}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--http", type=int)
    parser.add_argument("--name", required=True)
    parser.add_argument("--stay", action="store_true")
    options = parser.parse_args()
    browser = Browser(f"http://127.0.0.1:{options.port}/console/")
    try:
        browser.fill("input[name=name]", options.name)
        browser.fill("input[name=password]", PASSWORD)
        browser.press("Log in")
        browser.sees(options.name, "header")
        browser.sees("Overview", "main h1")
        if options.stay:
            print("open", flush=True)
            sys.stdin.readline()
            return
        links = [link.text for link in browser.driver.find_elements(By.CSS_SELECTOR, "nav a")]
        # The view that is already open comes last.
        views = {title: (title, "") for title in links[1:]} | ADDRESSES | {links[0]: (links[0], "")}
        took: dict[str, list[float]] = {}
        for _ in range(5):
            for name, (title, address) in views.items():
                took.setdefault(name, []).append(browser.driver.execute_async_script(MEASURE, title, address))
        assert browser.log() == [], browser.log()
        for path, selector in PAGES.items() if options.http else ():
            origin = f"http://127.0.0.1:{options.http}"
            if path != "console":
                url = origin + path.replace("lobby", "room-00001")
                took[path] = [1000 * measure(browser, url, selector)[0] for _ in range(5)]
        print(json.dumps({title: sorted(times)[len(times) // 2] for title, times in took.items()}))
    finally:
        browser.driver.quit()


if __name__ == "__main__":
    main()
