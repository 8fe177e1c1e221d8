#!/usr/bin/env python3
# Hermes
# SPDX-License-Identifier: Apache-2.0
"""Opens the chat of an account to which a stranger sent thousands of long texts. HERMES_BIN names the server's program.

Needs what chat_browser.py needs.
"""

import contextlib
import subprocess
import tempfile
import time

from chat_browser import OPEN, ROOT, Browser, Server
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

COUNT = 3000
LENGTH = 10_000
# The longest time that a task of the page may take, in milliseconds, without the time in which it waits for a
# processor.
LONGEST = 200

# The texts have contents with a slow layout: several scripts, long words, combining marks, many lines.
FLOOD = """
const [uid, count, length, done] = arguments;
const pieces = [
    "hello ", "你好", "שלום ", "a\\u0301\\u0302\\u0303", "x".repeat(300), "👩‍👩‍👧 ", "\\n", "नमस्ते ",
];
let next = 0;
async function send() {
    while (next < count) {
        const number = next;
        next += 1;
        const mixed = pieces.map((_, index) => pieces[(number + index) % pieces.length]).join("");
        const long = `${number}: ${mixed.repeat(40)}`.padEnd(length, pieces[number % pieces.length]).slice(0, length);
        await window.client.send(long.replace(/[\\ud800-\\udbff]$/, "."), { uid });
    }
}
Promise.all(Array.from({ length: 8 }, send)).then(() => done("sent"), (error) => done(error.message));
"""

WATCH = """
window.tasks = [];
window.keys = [];
new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) window.tasks.push([Math.round(entry.startTime), entry.duration]);
}).observe({ type: "longtask", buffered: true });
new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) if (entry.name === "keydown") window.keys.push(entry.duration);
}).observe({ type: "event", durationThreshold: 16, buffered: true });
"""


def step(text: str) -> None:
    print(f"flood: {text}", flush=True)


def choose(browser: Browser) -> None:
    script = "return document.querySelector('button.row[data-key]')?.click() === undefined"
    chosen = "return document.querySelectorAll('.line').length > 0"
    browser.until(lambda: browser.driver.execute_script(script) and browser.driver.execute_script(chosen), "a text")


def last_number(browser: Browser) -> int:
    text = browser.driver.execute_script("return [...document.querySelectorAll('.line .text')].at(-1)?.textContent")
    return int(text.split(":")[0]) if text else -1


def numbers(browser: Browser) -> list[int]:
    script = "return [...document.querySelectorAll('.line .text')].map((e) => parseInt(e.textContent))"
    return browser.driver.execute_script(script)


def check(ann: Browser, mal: Browser, address: str) -> None:
    ann.join("ann")
    uid = ann.driver.execute_async_script(
        "const [url, done] = arguments; import('../hermes.js').then(({ IndexedDBStore }) => "
        "new IndexedDBStore(`hermes/${url} ann`).load()).then((all) => done(all.get('account').uid), done)",
        address,
    )
    assert isinstance(uid, int), uid
    ann.driver.get("about:blank")
    mal.driver.execute_async_script(OPEN, address, "mal")
    mal.driver.set_script_timeout(240)
    began = time.monotonic()
    outcome = mal.driver.execute_async_script(FLOOD, uid, COUNT, LENGTH)
    assert outcome == "sent", outcome
    mal.driver.get("about:blank")
    step(f"{COUNT} texts of {LENGTH} characters were sent in {time.monotonic() - began:.0f} s")

    had = ann.processor()
    ann.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
    began = time.monotonic()
    ann.driver.get(ann.url)
    choose(ann)
    words = "the page answers"
    field = ann.find("textarea")
    typed = []
    for letter in words:
        start = time.monotonic()
        field.send_keys(letter)
        typed.append(time.monotonic() - start)
        time.sleep(0.1)
    assert field.get_attribute("value") == words
    before = last_number(ann)
    ann.until(lambda: last_number(ann) == COUNT - 1, "the last text", 240)
    elapsed = time.monotonic() - began
    ran, waited = (now - then for now, then in zip(ann.processor(), had))
    share = ran / (ran + waited)
    tasks, keys = ann.driver.execute_script("return [window.tasks, window.keys]")
    longest = max((task[1] for task in tasks), default=0)
    rows = len(ann.driver.find_elements(By.CSS_SELECTOR, ".line"))
    step(
        f"all texts came in {elapsed:.0f} s ({before + 1} of them while a user typed); {len(tasks)} tasks over 50 ms, "
        f"the longest {longest:.0f} ms, with a processor for {share:.0%} of the time ({ran:.0f} s); a key took at most "
        f"{max(keys, default=0):.0f} ms; {rows} messages are rendered"
    )
    assert longest * share <= LONGEST, sorted(task[1] for task in tasks)[-10:]
    assert rows <= 60, rows
    field.clear()

    # The rendered messages follow the scroll position, and their number stays bounded.
    lines = ann.find(".lines")
    ann.driver.execute_script("window.tasks.length = 0")
    newest = numbers(ann)
    seen = set(newest)
    for _ in range(200):
        ann.driver.execute_script("arguments[0].scrollTop = 0", lines)
        seen.update(numbers(ann))
        if ann.driver.execute_script("return document.querySelector('.earlier')?.offsetParent != null"):
            break
        time.sleep(0.02)
    assert ann.find(".earlier button") and min(seen) < newest[0] - 50, (min(seen), newest[0])
    assert seen == set(range(min(seen), COUNT)), "some messages did not come by scrolling"
    kept = len(seen)
    rows = len(ann.driver.find_elements(By.CSS_SELECTOR, ".line"))
    assert rows <= 60 and COUNT - 1 not in numbers(ann), rows
    ann.press("Earlier messages")
    ann.until(lambda: min(numbers(ann)) < min(seen), "messages of the server's history")
    ann.until(
        lambda: (lines.send_keys(Keys.END), max(numbers(ann)) > min(seen) + 20)[1], "later messages by the keyboard"
    )
    ann.press("Newest messages")
    ann.until(lambda: last_number(ann) == COUNT - 1, "the newest messages")
    shown = "return [...document.querySelectorAll('.line .text')].at(-1).textContent.length"
    short = ann.driver.execute_script(shown)
    ann.driver.execute_script("[...document.querySelectorAll('.line .meta button')].at(-1).click()")
    assert short <= 1001 and ann.driver.execute_script(shown) == LENGTH
    ann.check_access()
    longest = max((task[1] for task in ann.driver.execute_script("return window.tasks")), default=0)
    assert longest * share <= LONGEST, longest
    step(f"{kept} messages are kept; they, the history and all of a long text come when they are asked for")

    began = time.monotonic()
    ann.driver.get(ann.url)
    choose(ann)
    ann.until(lambda: last_number(ann) == COUNT - 1, "the last text")
    step(f"the page opens again in {time.monotonic() - began:.1f} s")
    assert ann.log() == [], ann.log()


def main() -> None:
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        server = Server(folder, settings=("--limits.inbox", "1GiB", "--limits.unreadPerAccount", "1GiB"))
        stack.callback(lambda: server.kill())
        served = stack.enter_context(tempfile.TemporaryDirectory())
        subprocess.run([ROOT / "scripts/embed-web", "--to", served], check=True)
        process = subprocess.Popen([ROOT / "scripts/web-serve", "0", served], stdout=subprocess.PIPE, text=True)
        stack.callback(lambda: (process.kill(), process.wait()))
        address = f"ws://127.0.0.1:{server.port}"
        url = f"{process.stdout.readline().strip()}chat/?server={address}"
        ann = Browser(url)
        stack.callback(ann.driver.quit)
        mal = Browser(url)
        stack.callback(mal.driver.quit)
        check(ann, mal, address)


if __name__ == "__main__":
    main()
