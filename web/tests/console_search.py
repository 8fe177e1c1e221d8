# Hermes
# SPDX-License-Identifier: Apache-2.0
"""Searches for one thing of each kind in the console's search box, and opens the view to which the result links."""

import pathlib
import re
import time
from collections.abc import Callable

from chat_browser import Browser

SOURCE = pathlib.Path(__file__).resolve().parents[1] / "console/search.js"
# Returns the kind, name, address and further text of each result, or null until the results are there.
RESULTS = """
const [text] = arguments;
if (document.querySelector("main h2")?.textContent !== `Results for “${text}”`) return null;
return { rows: [...document.querySelectorAll("main tbody tr")].map(({ cells: [kind, name, more] }) =>
    [kind.textContent, name.textContent, name.querySelector("a").getAttribute("href"), more.textContent]) };
"""


def kinds() -> set[str]:
    """Returns the titles of all kinds of results, from the page's source."""
    found = re.search(r"const kinds = .*?\n\}\);", SOURCE.read_text(), re.S)
    return set(re.findall(r'^    \w+: \["([^"]+)", "\w+"\],$', found.group(), re.M))


def wait_for_rate(browser: Browser) -> None:
    """If the rate limit refused a search, repeats the search one second later."""
    if "Too many requests at once" not in browser.text("main"):
        return
    assert all("429" in line for line in browser.log())
    time.sleep(1)  # polling another process, bounded by the deadline
    browser.driver.execute_script("""
        const buttons = [...document.querySelectorAll("button")].filter((button) => button.offsetParent);
        const named = (name) => buttons.find((button) => button.innerText.trim() === name);
        (named("Read again") ?? named("Find"))?.click();""")


def results(browser: Browser, text: str) -> list[list[str]]:
    """Returns the results of the search box for a text. The rate limit counts earlier searches and changes, too."""
    browser.fill("#search", text)
    browser.press("Find")

    def found():
        answer = browser.driver.execute_script(RESULTS, text)
        if answer is None:
            wait_for_rate(browser)
        return answer

    return browser.until(found, f"the results for {text}")["rows"]


class Search:
    """The searches of one browser."""

    def __init__(self, browser: Browser):
        self.browser = browser
        self.found: set[str] = set()

    def finds(self, kind: str, text: str, name: str, more: str, view: str, shows: Callable[[], bool]) -> None:
        """Checks that a text finds exactly one thing of a kind, and that its link opens the view that shows it. An
        empty `name` matches every name."""
        rows = results(self.browser, text)
        fitting = [row for row in rows if row[0] == kind and name in ("", row[1]) and more in row[3]]
        assert len(fitting) == 1, (kind, text, rows)
        self.browser.find(f'main td a[href="{fitting[0][2]}"]').click()
        self.browser.sees(view, "main h1")
        self.browser.until(lambda: shows() or wait_for_rate(self.browser), f"{kind} {name} in the view {view}")
        self.found.add(kind)
