# Hermes
# SPDX-License-Identifier: Apache-2.0
"""Pages on the screen of a small phone."""

import contextlib
from collections.abc import Iterator

from chat_browser import Browser

WIDTH = 360
# Returns the widths of the screen and of the page, and the texts that reach beyond the screen. Texts in parts that
# scroll are not returned.
WIDER = """
const range = document.createRange();
const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
const wide = [];
while (texts.nextNode()) {
    range.selectNodeContents(texts.currentNode);
    const isWide = [...range.getClientRects()].some((one) => one.right > innerWidth + 0.5);
    if (isWide && !texts.currentNode.parentElement.closest(".scroll, pre, .hidden-text, .search label")) wide.push(texts.currentNode.data.slice(0, 100));
}
return [innerWidth, document.documentElement.scrollWidth, wide];
"""


@contextlib.contextmanager
def narrow(browser: Browser) -> Iterator[None]:
    """Makes the screen 360 pixels wide. The window of a headless browser is always at least 500 pixels wide."""
    screen = {"width": WIDTH, "height": 740, "deviceScaleFactor": 1, "mobile": False}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    try:
        browser.until(lambda: browser.driver.execute_script("return innerWidth") == WIDTH, "a narrow screen")
        yield
    finally:
        browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def check_fits(browser: Browser, place: str) -> None:
    inner, scrolled, wide = browser.driver.execute_script(WIDER)
    assert inner == WIDTH and scrolled <= inner and wide == [], (place, inner, scrolled, wide)
