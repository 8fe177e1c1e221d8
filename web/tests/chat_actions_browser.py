#!/usr/bin/env python3
# Hermes
# SPDX-License-Identifier: Apache-2.0
"""Presses every button of the chat in headless Chromium against a real server. HERMES_BIN names the server's program.
Needs what chat_browser.py needs; the test in chat_browser.py runs before this one. Covers people, groups, devices, all
kinds of messages, and all actions by keyboard.

Checks the accessibility of every dialog while the dialog is shown, in the dark theme and in the light theme.
"""

import contextlib
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "Interop/python"))
from support.control import control  # noqa: E402

from chat_browser import ROOT, Browser, Server
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support import expected_conditions
from selenium.webdriver.support.ui import Select

EARLIER = 60
# For each kind of message: the fields of the dialog, the text that the receiver reads, and the address of the link.
KINDS = {
    "location": (
        {"latitude": "47.559602", "longitude": "7.588576", "label": "the lake"},
        "Place: the lake 47.55960, 7.58858",
        "https://www.openstreetmap.org/?mlat=47.559602&mlon=7.588576",
    ),
    "expression": ({"id": "-7", "name": "wave"}, "wave", None),
    "image": (
        {"url": "https://example.org/a.jpg", "width": "640", "height": "480"},
        "Image: https://example.org/a.jpg (640 × 480)",
        "https://example.org/a.jpg",
    ),
    "sound": (
        {"sourceUrl": "https://example.org/a.ogg", "durationSeconds": "2.5", "fileName": "hello.ogg"},
        "Sound: hello.ogg (2.5 s)",
        "https://example.org/a.ogg",
    ),
    "video": (
        {"url": "https://example.org/a.webm", "durationSeconds": "12", "thumbnailUrl": "https://example.org/a.png"},
        "Video: https://example.org/a.webm (12 s) · Still picture",
        "https://example.org/a.webm",
    ),
    "custom": ({"type": "order", "data": 'number=7 <b>"你好"</b>'}, "Content of kind order", None),
    "text": ({"text": "a text with attributes"}, "a text with attributes", None),
}

# Refuses the next request for earlier messages with the error of an overloaded server.
REFUSE_HISTORY = """
const send = WebSocket.prototype.send;
WebSocket.prototype.send = function (text) {
    const { id, history } = JSON.parse(text);
    if (!history) return send.call(this, text);
    WebSocket.prototype.send = send;
    const data = JSON.stringify({ id, result: { error: { code: 3001, message: "too many requests", retryAfterMs: "1000" } } });
    setTimeout(() => this.dispatchEvent(new MessageEvent("message", { data })));
};
"""


def step(text: str) -> None:
    print(f"chat: {text}", flush=True)


def last(browser: Browser, part: str = ".text") -> str:
    return browser.driver.execute_script(
        "return [...document.querySelectorAll('.line:not(.note)')].at(-1)?.querySelector(arguments[0])?.innerText ?? ''", part
    )


def rows(browser: Browser) -> str:
    return browser.text("dialog li")


def press_in_row(browser: Browser, person: str, name: str) -> None:
    browser.find(f'dialog [aria-label="{name}: {person}"]').click()


def press_until_drawn(browser: Browser, name: str) -> None:
    """Presses a button of “Group details”, and waits until the dialog shows the changed group."""
    old = browser.find("dialog h3")
    browser.press(name)
    browser.until(lambda: expected_conditions.staleness_of(old)(browser.driver), f"the group after {name!r}")


def press_last(browser: Browser, words: str) -> None:
    """In the top dialog, presses the button whose text begins with these words."""
    browser.driver.find_elements(By.XPATH, f"//dialog//button[starts-with(., '{words}')]")[-1].click()


def escape(browser: Browser) -> None:
    ActionChains(browser.driver).send_keys(Keys.ESCAPE).perform()


def strangers(ann: Browser, bob: Browser) -> None:
    bob.chat_with("ann")
    bob.say("you do not know me")
    ann.find("button.row").click()
    ann.sees("you do not know me", ".line")
    ann.press("Block")
    ann.sees("blocked", ".pane .bar .faint")
    ann.sees("Unblock", ".pane .bar")
    ann.check_access()
    bob.say("after the block")
    bob.sees("not sent", ".line.own .meta")
    bob.sees("this account does not accept anything from you", ".line.own .error")
    bob.check_access()
    ann.press("Contacts")
    ann.sees("blocked", ".person")
    assert "Accept" not in ann.text(".person")
    ann.press("Chats")
    assert "after the block" not in ann.text(".line")
    ann.driver.get(ann.url)
    ann.sees("connected", ".connection")
    ann.find("button.row").click()
    ann.sees("Unblock", ".pane .bar")
    ann.press("Unblock")
    ann.until(lambda: "blocked" not in ann.text(".pane .bar"), "no longer blocked")
    bob.press("Send again")
    ann.sees("after the block", ".line")
    step("a stranger is blocked and unblocked from the conversation")


def contacts(ann: Browser, bob: Browser) -> None:
    words = "we met at the lake <b>😀</b>"

    def ask(text: str) -> None:
        bob.fill("nav input[name=name]", "ann")
        # The driver cannot type characters above U+FFFF.
        bob.driver.execute_script("arguments[0].value = arguments[1]", bob.find("nav input[name=words]"), text)
        bob.press("Ask")
        bob.sees("asked", ".person")

    for browser in (ann, bob):
        browser.press("Contacts")
    ask(words)
    ann.sees(words, ".person .request")
    assert not ann.driver.find_elements(By.CSS_SELECTOR, ".request *"), "markup became an element"
    ann.shot("contact-request")
    for browser in (ann, bob):
        browser.check_access()
    ann.driver.get(ann.url)
    ann.press("Contacts")
    ann.sees(words, ".person .request")
    ann.press("Decline")
    for browser in (ann, bob):
        browser.sees("No contact yet", ".list")
    ask("")
    ann.sees("wants to be your contact", ".person")
    assert ann.text(".request") == "", "the words of an earlier request"
    ann.press("Accept")
    for browser in (ann, bob):
        browser.sees("online", ".person")
    ann.press("Remove")
    ann.sees("You and bob will be contacts no more", "dialog")
    ann.check_access()
    ann.press("Close")
    ann.until(lambda: not ann.text("dialog"), "the end of the question")
    assert "online" in ann.text(".person"), "removed without an answer"
    ann.press("Remove")
    press_last(ann, "Remove: bob")
    for browser in (ann, bob):
        browser.sees("No contact yet", ".list")
    ask("once more")
    ann.press("Block")
    ann.sees("blocked", ".person")
    bob.sees("No contact yet", ".list")
    ann.press("Unblock")
    ann.sees("No contact yet", ".list")
    for browser in (ann, bob):
        browser.press("Chats")
    step("contacts: asked with words, declined, removed, blocked, unblocked")


def all_kinds(ann: Browser, bob: Browser) -> None:
    bob.find("button.row").click()
    assert ann.find(".composer [aria-haspopup=dialog]").accessible_name == "Other contents"
    draft = ann.find(".composer textarea")
    draft.send_keys("a draft")
    for kind, (fields, words, address) in KINDS.items():
        ann.find(".composer [aria-haspopup=dialog]").click()
        Select(ann.find("dialog select")).select_by_value(kind)
        begun = ann.driver.execute_script("return document.querySelector('dialog [name=text]')?.value")
        assert begun == ("a draft" if kind == "text" else None), begun
        for name, value in fields.items():
            ann.fill(f"dialog [name={name}]", value)
        ann.fill("dialog [name=attributes]", "no pair")
        ann.press_main()
        ann.sees("Attributes are lines", "dialog .error")
        ann.fill("dialog [name=attributes]", f"colour = blue=green\nkind={kind} <i>\n")
        ann.check_access()
        ann.shot(f"compose-{kind}")
        ann.press_main()
        ann.until(lambda: not ann.driver.find_elements(By.CSS_SELECTOR, "dialog"), "the dialog's end")
        assert draft.get_property("value") == ("" if kind == "text" else "a draft"), kind
        for browser in (ann, bob):
            browser.until(lambda: last(browser) == words, f"{words!r}, not {last(browser)!r}")
            extra = last(browser, ".extra")
            assert extra.endswith(f"colour: blue=green\nkind: {kind} <i>"), extra
            if kind == "custom":
                assert extra.startswith(fields["data"]), extra
            links = browser.driver.execute_script(
                "return [...[...document.querySelectorAll('.line:not(.note)')].at(-1).querySelectorAll('a')].map((a) => a.href)"
            )
            assert links[:1] == ([address] if address else []), links
        ann.until(lambda: "sent" in last(ann, ".meta") or "read" in last(ann, ".meta"), "the receipt")
    for browser in (ann, bob):
        browser.check_access()
        browser.shot("kinds")
        assert not browser.driver.find_elements(By.CSS_SELECTOR, ".line img, .line i, .line b"), "markup became an element"
    bob.driver.get(bob.url)
    bob.find("button.row").click()
    bob.sees("the lake", ".line")
    assert [words for _, words, _ in KINDS.values()] == bob.text(".line:not(.note) .text").split("|")[-len(KINDS) :]
    step(f"{len(KINDS)} kinds of messages with attributes are composed, sent, shown and kept")


def limits(ann: Browser) -> None:
    """The dialog refuses values that the schema does not allow, and keeps the typed values."""
    ann.find(".composer [aria-haspopup=dialog]").click()
    for name, value in (("latitude", "91"), ("longitude", "7")):
        ann.fill(f"dialog [name={name}]", value)
    ann.press_main()
    assert ann.driver.execute_script("return !document.querySelector('dialog [name=latitude]').validity.valid")
    Select(ann.find("dialog select")).select_by_value("image")
    ann.fill("dialog [name=url]", "no address")
    ann.press_main()
    assert ann.driver.execute_script("return !document.querySelector('dialog [name=url]').validity.valid")
    ann.fill("dialog [name=url]", "https://example.org/")
    many = "\n".join(f"{number}=x" for number in range(33))
    ann.fill("dialog [name=attributes]", many)
    ann.press_main()
    ann.sees("32 at most", "dialog .error")
    assert ann.find("dialog [name=attributes]").get_attribute("value") == many
    ann.press("Close")
    step("a composed content that is not allowed is refused before it is sent")


def groups(ann: Browser, bob: Browser, cid: Browser) -> None:
    ann.press("Menu")
    ann.check_access()
    ann.press("New group")
    ann.check_access()
    ann.fill("dialog input[name=group]", "climbers")
    ann.fill("dialog input[name=members]", "bob")
    ann.press("Create")
    ann.sees("climbers", ".pane h2")
    for number in (1, 2, 3):
        ann.say(f"before Cid {number}")
    bob.sees("climbers", "nav .list")
    bob.driver.execute_script("document.querySelector('button.row').click()")
    bob.sees("before Cid 3", ".line")

    ann.press("Group details")
    ann.sees("bob", "dialog li")
    ann.check_access()
    ann.fill("dialog input[name=group]", "hikers")
    press_until_drawn(ann, "Save")
    for browser in (ann, bob):
        browser.sees("hikers", ".pane h2")
    ann.fill("dialog input[name=members]", "cid")
    ann.press("Add")
    ann.sees("cid", "dialog li")
    ann.press("Close")
    ann.say("after Cid came")
    cid.sees("hikers", "nav .list")
    cid.find("button.row").click()
    cid.sees("after Cid came", ".line")
    cid.sees("cid joined", ".line.note")
    cid.press("Earlier messages")
    cid.until(lambda: "keeps no earlier" in cid.text("#status"), "no earlier messages")
    cid.sees("keeps no earlier messages", ".earlier")
    cid.check_access()
    assert "before Cid" not in cid.text(".line")
    step("a group: renamed, a member added, who does not read what was said before")

    def details(member: Browser) -> None:
        member.press("Group details")
        member.sees("cid", "dialog li")

    details(ann)
    ann.find("dialog input[name=historyOpen]").click()
    press_until_drawn(ann, "Save")
    ann.press("Close")
    cid.press("Group details")
    cid.sees("New members read what was said before", "dialog")
    cid.check_access()
    cid.press("Close")
    escape(cid)
    cid.find("button.row").click()
    cid.sees("before Cid 1", ".line")
    assert not any(one.is_displayed() for one in cid.driver.find_elements(By.CSS_SELECTOR, ".earlier")), "before the first message"
    texts = cid.text(".line:not(.note) .text").split("|")
    assert texts == [*(f"before Cid {number}" for number in (1, 2, 3)), "after Cid came"], texts
    step("the group's history is opened: the group shows what was said before, and offers nothing earlier")

    details(ann)
    ann.find("dialog input[name=muted]").click()
    press_until_drawn(ann, "Save")
    ann.press("Close")
    cid.press("Group details")
    cid.sees("Only administrators may write", "dialog")
    cid.press("Close")
    bob.say("while all are muted")
    bob.sees("not sent", ".line.own .meta")
    bob.sees("only administrators may send to this group", ".line.own .error")
    ann.say("an administrator may")
    bob.sees("an administrator may", ".line")
    details(ann)
    ann.find("dialog input[name=muted]").click()
    press_until_drawn(ann, "Save")
    press_in_row(ann, "bob", "Mute")
    ann.sees("For a day", "dialog:last-of-type")
    ann.check_access()
    ann.press("For an hour")
    ann.until(lambda: "bob · muted until" in rows(ann), "the muted member")
    assert rows(ann).count("muted") == 1, rows(ann)
    ann.shot("group-muted")
    ann.check_access()
    press_in_row(ann, "bob", "Make administrator")
    ann.until(lambda: "bob (administrator) · muted until" in rows(ann), "still muted")
    press_in_row(ann, "bob", "Make member")
    ann.until(lambda: "bob · muted until" in rows(ann), "still muted")
    ann.press("Close")
    bob.press("Discard")
    bob.say("while Bob is muted")
    bob.sees("not sent", ".line.own .meta")
    bob.sees("you may not send to this group yet", ".line.own .error")
    cid.say("Cid is not")
    for browser in (ann, bob):
        browser.sees("Cid is not", ".line")
    details(ann)
    press_in_row(ann, "bob", "Unmute")
    ann.until(lambda: "muted" not in rows(ann), "no muted member")
    ann.press("Close")
    bob.press("Send again")
    ann.sees("while Bob is muted", ".line")
    assert "while all are muted" not in ann.text(".line")
    step("all members are muted, then one of them, who is unmuted")

    details(ann)
    press_in_row(ann, "bob", "Make owner")
    ann.sees("Really?", "dialog:last-of-type")
    ann.check_access()
    escape(ann)
    ann.until(lambda: "Really?" not in ann.text("dialog"), "the end of the question")
    assert "ann (owner)" in rows(ann), rows(ann)
    press_in_row(ann, "bob", "Make owner")
    ann.sees("Make owner: bob", "dialog:last-of-type h2")
    press_last(ann, "Make owner: ")
    ann.until(lambda: "bob (owner)" in rows(ann) and "ann (administrator)" in rows(ann), "another owner")
    assert "Leave group" in ann.text("dialog button") and "Dissolve group" not in ann.text("dialog button")
    assert not ann.driver.find_elements(By.CSS_SELECTOR, "dialog [aria-label^='Make owner']"), "an administrator may not"
    ann.press("Close")
    details(bob)
    press_in_row(bob, "ann", "Make owner")
    press_last(bob, "Make owner: ")
    bob.until(lambda: "ann (owner)" in rows(bob), "the first owner again")
    bob.press("Close")
    step("the group is handed over to another member, and back")

    details(ann)
    press_in_row(ann, "cid", "Remove")
    ann.sees("cid will leave the group", "dialog:last-of-type")
    ann.check_access()
    assert "cid" in rows(ann), "removed without an answer"
    press_last(ann, "Remove: cid")
    ann.until(lambda: "cid" not in rows(ann), "two members")
    cid.sees("You are no longer in this group", ".typing")
    bob.sees("Removed from the group: cid", ".line.note")
    assert not cid.driver.find_element(By.CSS_SELECTOR, ".composer").is_displayed()
    ann.fill("dialog input[name=members]", "nobody of this name")
    ann.press("Add")
    ann.until(lambda: ann.text("dialog .error"), "an error")
    ann.fill("dialog input[name=members]", "cid")
    ann.press("Add")
    ann.sees("cid", "dialog li")
    ann.press("Close")
    cid.until(lambda: "no longer" not in cid.text(".typing"), "a member again")
    cid.press("Group details")
    cid.press("Leave group")
    cid.sees("Really?", "dialog:last-of-type")
    cid.check_access()
    escape(cid)
    cid.until(lambda: "Really?" not in cid.text("dialog"), "the end of the question")
    cid.sees("cid", "dialog li")
    cid.press("Leave group")
    cid.sees("Really?", "dialog:last-of-type")
    press_last(cid, "Leave group")
    cid.sees("You are no longer in this group", ".typing")
    bob.sees("cid left", ".line.note")
    ann.press("Group details")
    ann.sees("bob", "dialog li")
    ann.press("Dissolve group")
    ann.sees("Really?", "dialog:last-of-type")
    press_last(ann, "Dissolve group")
    for browser in (ann, bob):
        browser.sees("The group was dissolved", ".line")
        browser.sees("You are no longer in this group", ".typing")
    step("a member is removed, added, leaves; the group is dissolved")


def row_of(browser: Browser, name: str) -> list[str]:
    """Returns the texts of a conversation's row in the list: the name, the time, the last message, and the number of
    unread messages. The result is empty if the list does not have the conversation."""
    found = [row.split("\n") for row in browser.text("nav .list button.row").split("|")]
    return next((row for row in found if row[0] == name), [])


def second_device(ann: Browser, bob: Browser, other: Browser) -> None:
    """The new device shows the 1:1 conversation with its last message and the number of unread messages. The number
    changes when the first device reads messages."""

    def badge(browser: Browser) -> str:
        row = row_of(browser, "bob")
        return row[3] if len(row) > 3 else ""

    last_text = f"number {EARLIER - 1}"
    ann.until(lambda: last_text in row_of(ann, "bob"), "the last text on the first device")
    unread = badge(ann)
    other.until(lambda: last_text in row_of(other, "bob"), f"the conversation with its last text: {row_of(other, 'bob')}")
    other.until(lambda: badge(other) == unread, f"{unread!r} unread, not {badge(other)!r}")
    bob.say("one more")
    for browser in (ann, other):
        browser.until(lambda: "one more" in row_of(browser, "bob"), "the next text")
    assert (badge(other), badge(ann)) == (str(int(unread or 0) + 1),) * 2, (unread, badge(other), badge(ann))
    # After a reload, the login tells the server the position that this device has reached. No message is counted twice.
    other.driver.get(other.url)
    other.sees("connected", ".connection")
    other.until(lambda: badge(other) == badge(ann), f"{badge(ann)!r} unread, not {badge(other)!r}")
    other.check_access()
    ann.chat_with("bob")
    ann.until(lambda: badge(ann) == "", "all read")
    other.until(lambda: badge(other) == "", f"nothing unread, not {badge(other)!r}")
    assert "one more" in row_of(other, "bob")
    step(f"a second device lists the conversation with {unread!r} unread and its last text, and follows the first one's marks")


def devices(ann: Browser, bob: Browser, other: Browser) -> None:
    """Ann logs in on another browser, which reads the earlier messages. Then she removes that device."""
    bob.find("nav input[name=name]").send_keys("ann" + Keys.ENTER)
    bob.sees("ann", ".pane h2")
    for number in range(EARLIER):
        bob.say(f"number {number}")
    bob.until(lambda: last(bob) == f"number {EARLIER - 1}", "the last text")
    bob.until(lambda: {"sent", "read"} & set(last(bob, ".meta").split()), "all sent")
    other.press("Menu")
    other.press("Add an account")
    other.sees("Log in")
    other.fill("input[name=name]", "ann")
    other.fill("input[name=password]", "correct horse")
    other.press("Log in")
    other.sees("connected", ".connection")
    second_device(ann, bob, other)
    other.chat_with("bob")

    def numbers() -> list[str]:
        return [text for text in other.text(".line:not(.note) .text").split("|") if text.startswith("number")]

    def to_begin() -> None:
        other.driver.execute_script("document.querySelector('.lines').scrollTop = 0")

    def first() -> str:
        """Scrolls up until only the button precedes the messages, and returns the text of the first message."""
        other.until(lambda: (to_begin(), other.text(".earlier"))[1], "the button for earlier messages")
        return other.text(".line:not(.note) .text").split("|")[0]

    first()
    other.driver.execute_script(REFUSE_HISTORY)
    other.press("Earlier messages")
    other.sees("too many requests [3001]", ".earlier .error")
    other.check_access()
    assert "keeps no earlier" not in other.text("#status")
    fetched = 0
    while "number 0" not in numbers():
        before = first()
        other.press("Earlier messages")
        fetched += 1
        assert fetched < 5, numbers()
        other.until(lambda: first() != before, "earlier messages")
        assert "too many requests" not in other.text(".earlier .error")
    assert numbers() == sorted(set(numbers()), key=lambda text: int(text.split()[1])), numbers()
    step(f"“Earlier messages” on a new device: {EARLIER} and more in {fetched} steps, each once, in order, after one refusal")

    other.press("Menu")
    ann.press("Menu")
    ann.press("Devices")
    ann.until(lambda: rows(ann).count("Hermes Chat") == 2, "two devices")
    ann.check_access()
    ann.press("Remove")
    ann.sees("Really?", "dialog:last-of-type")
    ann.check_access()
    press_last(ann, "Remove: ")
    ann.until(lambda: rows(ann).count("Hermes Chat") == 1, "one device")
    assert "this device" in rows(ann)
    ann.press("Close")
    other.find("input[name=password]")
    other.until(lambda: other.text("[role=alert]"), "why it was logged out")
    assert not other.driver.find_elements(By.CSS_SELECTOR, "dialog"), "its menu is still open"
    step("a device is removed, and its page says so")


def keyboard(dan: Browser) -> None:
    """All actions by the keyboard alone, from a new profile to the log-out."""

    def type_keys(*keys: str) -> None:
        ActionChains(dan.driver).send_keys(*keys).perform()

    def focused() -> str:
        active = dan.driver.switch_to.active_element
        return (active.accessible_name or active.text).strip()

    def tab_to(name: str, back: bool = False) -> None:
        seen = []
        for _ in range(60):
            # The text of a button in a list has more than one line.
            if focused().split("\n")[0] == name or focused().startswith(f"{name} "):
                return
            seen.append(focused())
            if back:
                ActionChains(dan.driver).key_down(Keys.SHIFT).send_keys(Keys.TAB).key_up(Keys.SHIFT).perform()
            else:
                type_keys(Keys.TAB)
        raise AssertionError(f"no way to {name!r}: {seen}")

    def enter(name: str) -> None:
        tab_to(name)
        ring = dan.driver.execute_script("return getComputedStyle(document.activeElement).outlineStyle")
        assert ring != "none", f"no focus ring: {name}"
        type_keys(Keys.ENTER)

    def control_k() -> None:
        ActionChains(dan.driver).key_down(Keys.CONTROL).send_keys("k").key_up(Keys.CONTROL).perform()
        dan.until(lambda: focused() == "Name of an account", "the field for a name")

    dan.find("input[name=name]")
    assert focused() == "Name"
    type_keys("dan", Keys.TAB, "correct horse")
    enter("Create account")
    dan.sees("connected", ".connection")
    control_k()
    type_keys("bob", Keys.ENTER)
    dan.sees("bob", ".pane h2")
    dan.until(lambda: focused() == "Message", "the field for a text")
    type_keys("first line")
    ActionChains(dan.driver).key_down(Keys.SHIFT).send_keys(Keys.ENTER).key_up(Keys.SHIFT).perform()
    type_keys("second line", Keys.ENTER)
    dan.until(lambda: last(dan) == "first line\nsecond line", "two lines")
    tab_to("Other contents", back=True)
    type_keys(Keys.ENTER)
    dan.find("dialog")
    tab_to("Kind")
    type_keys("V")  # the letter chooses “Video”
    dan.find("dialog [name=thumbnailUrl]")
    type_keys(Keys.TAB, "https://example.org/a.webm", Keys.ENTER)
    dan.until(lambda: last(dan).startswith("Video: https://example.org"), "the video")
    dan.until(lambda: focused() == "Other contents", "the focus where it was")
    step("keyboard: registered, a conversation by Ctrl+K, a text of two lines, a video")

    type_keys(Keys.ESCAPE)
    dan.sees("Choose a conversation", ".empty")
    dan.until(lambda: focused().startswith("bob"), "the list")
    type_keys(Keys.ENTER)
    dan.until(lambda: focused() == "Message", "the field for a text")
    tab_to("Block", back=True)
    type_keys(Keys.ENTER)
    dan.until(lambda: focused() == "Unblock", "blocked, and the focus where it was")
    type_keys(Keys.ENTER)
    dan.until(lambda: focused() == "Block", "no longer blocked")

    tab_to("Menu", back=True)
    type_keys(Keys.ENTER)
    enter("New group")
    dan.find("dialog input[name=group]")
    tab_to("Name of the group")
    type_keys("walkers", Keys.TAB, "bob", Keys.ENTER)
    dan.sees("walkers", ".pane h2")
    dan.until(lambda: focused() == "Message", "the field for a text")
    tab_to("Group details", back=True)
    type_keys(Keys.ENTER)
    dan.sees("bob", "dialog li")
    enter("Mute: bob")
    enter("For a week")
    dan.until(lambda: "muted until" in rows(dan), "muted")
    dan.until(lambda: focused() == "Unmute: bob", "the focus in the same place")
    type_keys(Keys.ENTER)
    dan.until(lambda: "muted until" not in rows(dan), "unmuted")
    tab_to("New members read what was said before")
    type_keys(Keys.SPACE)
    enter("Save")
    dan.until(lambda: dan.driver.execute_script("return document.querySelector('[name=historyOpen]').checked"), "open")
    dan.until(lambda: focused() == "Save", "the focus in the same place")
    enter("Remove: bob")
    dan.sees("bob will leave the group", "dialog:last-of-type")
    enter("Remove: bob")
    dan.until(lambda: "bob" not in rows(dan), "removed")
    dan.until(lambda: dan.driver.execute_script("return document.activeElement.closest('dialog') !== null"), "the dialog")
    type_keys(Keys.ESCAPE)
    dan.until(lambda: focused() == "Group details", "the focus where it was")
    dan.sees("walkers", ".pane h2")
    step("keyboard: a person blocked, a group made, a member muted and removed, Escape closes the dialog only")

    control_k()
    tab_to("Contacts", back=True)
    type_keys(Keys.SPACE)
    tab_to("Name of an account")
    type_keys("bob", Keys.ENTER)
    dan.sees("asked", ".person")
    enter("Block")
    dan.until(lambda: focused() == "Unblock", "the focus in the same place")
    type_keys(Keys.ENTER)
    dan.sees("No contact yet", ".list")
    dan.until(lambda: focused() == "Menu", "the focus stays in the page")
    tab_to("Chats")
    type_keys(Keys.SPACE)
    dan.driver.set_window_size(400, 700)
    type_keys(Keys.ESCAPE)
    enter("bob")
    dan.until(lambda: focused() == "Message", "the conversation")
    assert not dan.driver.find_element(By.CSS_SELECTOR, "nav").is_displayed()
    control_k()
    dan.driver.set_window_size(1100, 800)
    tab_to("Menu", back=True)
    type_keys(Keys.ENTER)
    enter("中文")
    dan.sees("已连接", ".connection")
    dan.until(lambda: focused() == "菜单", "the focus where it was")
    type_keys(Keys.ENTER)
    enter("English")
    dan.until(lambda: focused() == "Menu", "the focus where it was")
    type_keys(Keys.ENTER)
    enter("Log out")
    dan.sees("its copy of the conversations of dan", "dialog")
    enter("Log out")
    dan.find("input[name=password]")
    dan.until(lambda: focused() == "Name", "the field for a name")
    step("keyboard: contacts, a narrow window, the language, the log-out")


def drafts(bob: Browser) -> None:
    """The draft is still there after a change of the conversation and of the account, and “Log out” counts it."""
    bob.chat_with("ann")
    bob.find(".composer textarea").send_keys("a draft")
    bob.chat_with("cid")
    bob.press("Menu")
    bob.press("Log out")
    bob.sees("Texts that were not sent are lost: 1.", "dialog")
    bob.press("Close")
    bob.press("Menu")
    bob.press("Add an account")
    bob.join("fay")
    bob.press("Menu")
    bob.press("bob")
    bob.sees("bob", "nav h2")
    bob.sees("connected", ".connection")
    bob.chat_with("ann")
    text = bob.find(".composer textarea")
    assert text.get_property("value") == "a draft", text.get_property("value")
    text.clear()
    step("a text that was begun is kept in another conversation and another account, and counted at the log-out")


def chinese(bob: Browser) -> None:
    """The composer's texts are in Chinese and fit into a narrow window."""
    bob.press("Menu")
    bob.press("中文")
    bob.find("nav button.row").click()
    bob.find(".composer [aria-haspopup=dialog]").click()
    for kind in KINDS:
        Select(bob.find("dialog select")).select_by_value(kind)
        words = bob.text("dialog label > span, dialog button, dialog h2")
        assert all(ord(max(part)) > 0x2E80 for part in words.split("|")), words
    bob.driver.set_window_size(400, 700)
    overflow = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert bob.driver.execute_script(overflow) <= 0
    bob.check_access()
    bob.shot("compose-chinese-narrow")
    bob.press("关闭")
    bob.driver.set_window_size(1100, 800)
    step("the composer in Chinese, in a narrow window")


def without_history(ann: Browser, bob: Browser, server: Server) -> None:
    """By default, the server keeps no history. Messages that reached a browser stay there."""
    url = f"http://127.0.0.1:{server.port}/chat/"
    for browser, name in ((ann, "ann"), (bob, "bob")):
        browser.driver.get(url)
        browser.join(name)
    bob.chat_with("ann")
    for text in ("first", "second", "to be recalled"):
        bob.say(text)
    ann.find("nav button.row").click()
    ann.sees("to be recalled", ".line")
    bob.sees("read", ".line.own .meta")
    bob.driver.find_elements(By.XPATH, "//button[.='Recall']")[-1].click()
    ann.sees("Message recalled", ".line")
    ann.driver.get(url)
    ann.sees("connected", ".connection")
    ann.find("nav button.row").click()
    ann.sees("second", ".line")
    assert not any(one.is_displayed() for one in ann.driver.find_elements(By.CSS_SELECTOR, ".earlier")), "before the first message"
    assert ann.text(".line:not(.note) .text").split("|") == ["first", "second", "Message recalled"]
    step("without history: read, recalled, kept over a reload; nothing earlier is offered")

    bob.press("Menu")
    bob.press("Add an account")
    bob.sees("Log in")
    bob.fill("input[name=name]", "ann")
    bob.fill("input[name=password]", "correct horse")
    bob.press("Log in")
    bob.sees("connected", ".connection")
    bob.chat_with("bob")
    assert bob.text(".line") == "", "a new device got what was said before"
    bob.say("from Ann's new device")
    ann.sees("from Ann's new device", ".line.own")
    bob.press("Earlier messages")
    bob.until(lambda: "keeps no earlier" in bob.text("#status"), "no earlier messages")
    bob.sees("keeps no earlier messages", ".earlier")
    assert not bob.driver.find_element(By.CSS_SELECTOR, ".earlier button").is_displayed()
    bob.press("Menu")
    bob.press("bob")
    bob.sees("bob", "nav h2")
    bob.find("nav button.row").click()
    bob.sees("from Ann's new device", ".line")
    step("without history: a new device begins with what is sent from now on")

    key = control(server.folder, "createAPIKey", name="shop", scopes="push")["apiKeyCreated"]["secret"]

    def push(**content) -> None:
        address = f"http://127.0.0.1:{server.port}/v1/push"
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        body = json.dumps({"to": {"user": "ann"}, **content}).encode()
        with urllib.request.urlopen(urllib.request.Request(address, body, headers)) as answer:
            assert answer.status == 202, answer.status

    push(message={"type": "shop.OrderShipped", "bytes": "CAcSBWNoYWly"})
    push(data={"order": 7})
    ann.sees("Notices", "nav .name")
    ann.sees("Content of the application", "nav .last")
    next(row for row in ann.driver.find_elements(By.CSS_SELECTOR, "nav button.row") if "Notices" in row.text).click()
    ann.sees("Content of kind shop.OrderShipped", ".line .text")
    ann.sees("9 bytes", ".line .extra")
    ann.sees('{"order":7}', ".line .extra")
    ann.check_access()
    step("a push without words shows the kind and the size of its message, or its data")


def main() -> None:
    began = time.monotonic()
    with contextlib.ExitStack() as stack:
        server = Server(stack.enter_context(tempfile.TemporaryDirectory()))
        stack.callback(server.kill)

        def pages(*arguments: str) -> str:
            process = subprocess.Popen([ROOT / "scripts/web-serve", *arguments], stdout=subprocess.PIPE, text=True)
            stack.callback(lambda: (process.kill(), process.wait()))
            return f"{process.stdout.readline().strip()}chat/?server=ws://127.0.0.1:{server.port}"

        def person(name: str, url: str, is_dark: bool = False) -> Browser:
            browser = Browser(url, is_dark=is_dark)
            stack.callback(browser.driver.quit)
            if name:
                browser.join(name)
            return browser

        # Ann uses the chat as the server serves it. The others use its source modules.
        served = stack.enter_context(tempfile.TemporaryDirectory())
        subprocess.run([ROOT / "scripts/embed-web", "--to", served], check=True)
        modules = pages()
        ann, bob = person("ann", pages("0", served), is_dark=True), person("bob", modules)
        strangers(ann, bob)
        contacts(ann, bob)
        ann.find("button.row").click()
        all_kinds(ann, bob)
        limits(ann)
        cid = person("cid", modules)
        groups(ann, bob, cid)
        devices(ann, bob, cid)
        drafts(bob)
        chinese(bob)
        for browser in (ann, bob, cid):
            assert browser.log() == [], browser.log()
        ann.driver.quit()
        cid.driver.quit()
        dan = person("", modules)
        keyboard(dan)
        assert dan.log() == [], dan.log()
        plain = Server(stack.enter_context(tempfile.TemporaryDirectory()), history_days=0)
        stack.callback(plain.kill)
        dan.driver.set_window_size(1100, 800)
        without_history(dan, bob, plain)
        for browser in (dan, bob):
            assert browser.log() == [], browser.log()
    print(f"chat: good; {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
