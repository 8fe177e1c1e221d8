#!/usr/bin/env python3
# Hermes
# SPDX-License-Identifier: Apache-2.0
"""Opens every view of a running console in headless Chromium, and prints how long each took, in milliseconds, as JSON.

    console_pages.py --port 8090 --name vera           the password is that of Interop/python/support/console.py
    console_pages.py --port 8090 --name vera --stay    prints "open" with the overview open, until its input has a line
"""

import argparse
import json
import os
import sys

os.environ.setdefault("HERMES_BIN", "")

from chat_browser import Browser  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402

PASSWORD = "correct horse battery"
# From the click until a frame with the contents was painted.
MEASURE = """
const [title, done] = arguments;
const link = [...document.querySelectorAll("nav a")].find((one) => one.textContent === title);
const began = performance.now();
const watch = () => {
    const is = document.querySelector("main h1")?.textContent === title && document.querySelector("main").children.length > 1
        && ![...document.querySelectorAll("main > p.muted")].some((one) => one.textContent === "…");
    if (!is) return requestAnimationFrame(watch);
    requestAnimationFrame(() => { const port = new MessageChannel(); port.port1.onmessage = () => done(performance.now() - began);
        port.port2.postMessage(0); });
};
requestAnimationFrame(watch);
link.click();
"""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
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
        browser.log()  # tells that nobody was logged in
        if options.stay:
            print("open", flush=True)
            sys.stdin.readline()
            return
        titles = [link.text for link in browser.driver.find_elements(By.CSS_SELECTOR, "nav a")]
        took: dict[str, list[float]] = {}
        for _ in range(5):
            for title in titles[1:] + titles[:1]:
                took.setdefault(title, []).append(browser.driver.execute_async_script(MEASURE, title))
        assert browser.log() == [], browser.log()
        print(json.dumps({title: sorted(times)[len(times) // 2] for title, times in took.items()}))
    finally:
        browser.driver.quit()


if __name__ == "__main__":
    main()
