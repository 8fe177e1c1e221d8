#!/usr/bin/env python3
# Hermes
# SPDX-License-Identifier: Apache-2.0
"""Tests the chat and the live room in exceptional states, in headless Chromium against a real server. HERMES_BIN names
the server's program. Needs what chat_browser.py needs; the test in chat_browser.py runs before this one.

The states: no server, long names on a narrow screen, a recall that comes too late, errors in Chinese, clicks on
notifications, missing messages, and accounts that cannot be opened or that log out slowly.
"""

import contextlib
import json
import subprocess
import tempfile
import time

from chat_browser import ROOT, Browser, Server
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

NARROW = 360
# Pairs of the page's user and the other user. One name of each pair has 30 characters; the other is as wide as a name
# can be.
NAMES = (("Bartholomew-Featherstonehaugh1", "W" * 64), ("W" * 63 + "M", "Bartholomew-Featherstonehaugh2"))
# Returns the width of the window, and the parts whose contents are wider than the part: the page, and the areas that
# scroll separately.
TOO_WIDE = """
const parts = [...document.querySelectorAll("main, dialog, .list, .lines, .side, .pane, .bar, .log, .foot, header")];
const wide = parts.filter((part) => part.checkVisibility() && part.scrollWidth > part.clientWidth + 1);
const words = wide.map((part) => `${part.tagName}.${part.className}: ${part.scrollWidth} in ${part.clientWidth}`);
const page = document.documentElement.scrollWidth;
return [innerWidth, page > innerWidth ? [`the page: ${page}`, ...words] : words];
"""
# Refuses the next recall with the error of a server for a recall that comes too late.
REFUSE_RECALL = """
const send = WebSocket.prototype.send;
WebSocket.prototype.send = function (text) {
    const { id, recall } = JSON.parse(text);
    if (!recall) return send.call(this, text);
    WebSocket.prototype.send = send;
    const error = { code: 2003, message: "It is too late to recall this message." };
    setTimeout(() => this.dispatchEvent(new MessageEvent("message", { data: JSON.stringify({ id, result: { error } }) })));
};
"""
# The page's clock is ahead by this many seconds, so messages look older than they are.
AGE = 116
OLDER = f"const now = Date.now; Date.now = () => now() + {AGE * 1000};"
BADGE = """
navigator.setAppBadge = async (count) => void (window.badge = count);
navigator.clearAppBadge = async () => void (window.badge = 0);
"""
KEPT = """
const done = arguments[0];
const count = (name) => new Promise((resolve, reject) => {
    const request = indexedDB.open(name);
    request.onerror = () => reject(request.error);
    request.onsuccess = () => {
        const all = request.result.transaction("records").objectStore("records").getAllKeys();
        all.onsuccess = () => { request.result.close(); resolve(all.result.map((key) => `${name}: ${key}`)); };
    };
});
indexedDB.databases().then((all) => Promise.all(all.map(({ name }) => count(name)))).then((all) => done(all.flat()), (error) => done([String(error)]));
"""
# Changes the records of databases. `change` returns the new value of a record, or undefined to remove the record.
CHANGE = """
const [end, source, done] = arguments;
const change = new Function("key", "value", source);
const changed = (name) => new Promise((resolve, reject) => {
    const request = indexedDB.open(name);
    request.onerror = () => reject(request.error);
    request.onsuccess = () => {
        const transaction = request.result.transaction("records", "readwrite");
        let count = 0;
        transaction.objectStore("records").openCursor().onsuccess = ({ target: { result: cursor } }) => {
            if (!cursor) return;
            const next = change(cursor.key, cursor.value);
            if (next === undefined) cursor.delete();
            else if (next !== cursor.value) cursor.update(next);
            if (next !== cursor.value) count += 1;
            cursor.continue();
        };
        transaction.oncomplete = () => { request.result.close(); resolve(count); };
    };
});
indexedDB.databases().then((all) => Promise.all(all.map(({ name }) => name).filter((name) => name.endsWith(end)).map(changed)))
    .then((counts) => done(counts.reduce((sum, count) => sum + count, 0)), (error) => done(String(error)));
"""
# The next log-out gets no answer.
SILENCE_LOG_OUT = """
const send = WebSocket.prototype.send;
WebSocket.prototype.send = function (text) {
    if (JSON.parse(text).logOut) WebSocket.prototype.send = send;
    else send.call(this, text);
};
"""
CLICK = """
const data = { type: "hermes.notification", hermes: arguments[0], data: null };
navigator.serviceWorker.dispatchEvent(new MessageEvent("message", { data }));
"""


def step(text: str) -> None:
    print(f"chat: {text}", flush=True)


def narrow(browser: Browser) -> None:
    size = {"width": NARROW, "height": 740, "deviceScaleFactor": 1, "mobile": False}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def fits(browser: Browser, view: str) -> None:
    width, wide = browser.driver.execute_script(TOO_WIDE)
    assert width == NARROW, width
    assert wide == [], f"{view}: {wide}"
    browser.shot(f"narrow-{view.replace(' ', '-')}")


def quiet(browser: Browser) -> None:
    """The browser's only complaint is the missing key for notifications, which the file server does not have."""
    complaints = [line for line in browser.log() if "push.json" not in line]
    assert complaints == [], complaints


def press_last(browser: Browser, words: str) -> None:
    """In the top dialog, presses the button whose text begins with these words."""
    browser.driver.find_elements(By.XPATH, f"//dialog//button[starts-with(., '{words}')]")[-1].click()


def long_names(one: Browser, other: Browser, names: tuple[str, str]) -> None:
    """Opens each view of the chat as a person with a long name who talks to another such person."""
    own, peer = names
    other.join(peer)
    narrow(one)
    fits(one, "login")
    one.join(own)
    fits(one, "empty list")
    one.press("Contacts")
    one.fill("nav input[name=name]", peer)
    one.press("Ask")
    one.sees("asked", ".person")
    fits(one, "asked contact")
    other.press("Contacts")
    other.sees("wants to be your contact", ".person")
    narrow(other)
    fits(other, "asking contact")
    other.press("Accept")
    one.sees("online", ".person")
    fits(one, "contact")
    one.press("Remove")
    one.sees("contacts no more", "dialog")
    fits(one, "question")
    one.press("Close")
    one.press("Chats")
    one.fill("nav input[name=name]", peer)
    one.press("Open")
    one.say("W" * 300)
    one.sees("sent", ".line.own .meta")
    fits(one, "conversation")
    one.find(".composer [aria-haspopup=dialog]").click()
    fits(one, "composer")
    one.press("Close")
    one.press("Back")
    fits(one, "list")
    one.press("Menu")
    fits(one, "menu")
    one.press("New group")
    fits(one, "new group")
    one.fill("dialog input[name=group]", "W" * 64)
    one.fill("dialog input[name=members]", peer)
    one.press("Create")
    one.sees("W" * 64, ".pane h2")
    fits(one, "group")
    one.press("Group details")
    one.sees(peer, "dialog li")
    fits(one, "group details")
    one.find(f'dialog [aria-label="Mute: {peer}"]').click()
    fits(one, "muting")
    press_last(one, "Close")
    one.press("Close")
    one.press("Back")
    for view in ("Devices", "Notifications"):
        one.press("Menu")
        one.press(view)
        one.until(lambda: one.text("dialog li, dialog .push-state"), view)
        fits(one, view)
        one.press("Close")
    one.press("Menu")
    one.press("Add an account")
    one.sees(own, ".login .list")
    fits(one, "accounts")
    one.press(own)
    one.sees("connected", ".connection")
    one.press("Menu")
    one.press("Log out")
    one.sees("copy of the conversations", "dialog")
    fits(one, "log-out")
    one.press("Close")
    step(f"every view fits {NARROW} pixels with the name {own[:12]}…")


def long_names_in_a_room(one: Browser, url: str, name: str) -> None:
    one.driver.get(f"{url}&lang=en&room={'W' * 64}")
    narrow(one)
    one.find("input[name=name]")
    fits(one, "room login")
    one.fill("input[name=name]", name)
    one.fill("input[name=password]", "correct horse")
    one.press("Log in")
    one.sees("1 viewer", ".viewers")
    fits(one, "room")
    one.fill("input[name=text]", "W" * 300)
    one.press("Say")
    one.find("button[data-gift=rocket]").click()
    one.sees("rocket", ".log p")
    fits(one, "room with texts and gifts")
    step(f"the live room fits {NARROW} pixels with the name {name[:12]}…")


def recalls(ann: Browser, bob: Browser) -> None:
    """A refused recall shows the reason. The recall button disappears at the end of the time limit, without any other
    event."""
    ann.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": OLDER})
    ann.driver.get(ann.url)
    ann.sees("connected", ".connection")
    bob.driver.get("about:blank")
    ann.chat_with("bob")
    ann.driver.execute_script(REFUSE_RECALL)
    ann.say("too late")
    ann.press("Recall")
    ann.sees("It is too late to recall this message. [2003]", ".line.own .error")
    ann.check_access()
    ann.until(lambda: "Recall" not in ann.text(".line.own button"), "no button for the recall", 12)
    ann.press("Menu")
    ann.press("中文")
    ann.sees("已连接", ".connection")
    ann.driver.execute_script(REFUSE_RECALL)
    ann.say("again too late")
    ann.press("撤回")
    ann.sees("已超过可撤回的时间。 [2003]", ".line.own .error")
    ann.press("菜单")
    ann.press("English")
    ann.sees("connected", ".connection")
    bob.driver.get(bob.url)
    bob.sees("connected", ".connection")
    step("a recall that the server refuses says why, in both languages; its button goes when the time is over")


def notified(ann: Browser, bob: Browser) -> None:
    """A click on a notification opens the notification's conversation in the account that received it."""
    ann.press("Menu")
    ann.press("Add an account")
    ann.join("zoe")
    bob.driver.get(bob.url)
    bob.sees("connected", ".connection")
    for name in ("ann", "zoe"):
        bob.chat_with(name)
        bob.say(f"hello {name}")
        bob.sees("sent", ".line.own .meta")
    uids = uids_of(ann)
    bobs = uids_of(bob)["bob"]
    ann.sees("hello zoe", "nav .last")
    ann.until(lambda: ann.driver.execute_script("return window.badge") == 1, "the number of unread messages on the icon")

    def click(name: str, conversation: str) -> None:
        ann.driver.execute_script(CLICK, {"conversation": conversation, "seq": 1, "uid": uids[name]})

    click("zoe", f"direct/{bobs}")
    ann.sees("hello zoe", ".line")
    ann.until(lambda: ann.driver.execute_script("return window.badge") == 0, "nothing unread on the icon")
    ann.press("Menu")
    click("ann", f"direct/{bobs}")
    ann.sees("hello ann", ".line")
    ann.sees("ann", "nav h2")
    assert not ann.driver.find_elements(By.CSS_SELECTOR, "dialog"), "the menu is still open"
    step("a click on a notification opens its conversation, in its account; what is read leaves the icon")
    click("ann", "direct/99")
    click("ann", "nonsense")
    ann.driver.execute_script(CLICK, {"conversation": f"direct/{bobs}", "uid": 4711})
    ann.sees("hello ann", ".line")

    ann.driver.get("about:blank")
    ann.driver.get(f"{ann.url}#notification/{uids['zoe']}/uid/{bobs}")
    ann.sees("hello zoe", ".line")
    ann.sees("zoe", "nav h2")
    assert ann.driver.execute_script("return location.hash") == ""
    ann.driver.get("about:blank")
    ann.driver.get(f"{ann.url}#notification/{uids['ann']}/uid/77")
    ann.sees("ann", "nav h2")
    ann.sees("Choose a conversation", ".empty")
    step("a page that a notification opens shows the conversation, once it is there")


def uids_of(browser: Browser) -> dict[str, int]:
    key = "return Object.entries(localStorage).find(([key]) => key.startsWith('hermes-chat/uids '))[1]"
    return dict(json.loads(browser.driver.execute_script(key)))


def texts_missing(ann: Browser, bob: Browser) -> None:
    """The page loads messages that the browser lacks from the history. If the history lacks them, too, the page shows a
    note in their place."""
    bob.chat_with("ann")
    for number in range(4):
        bob.say(f"part {number}")
    ann.chat_with("bob")
    ann.sees("part 3", ".line")
    remove = "return /^part [12]$/.test(value?.content?.text) ? undefined : value"
    assert ann.driver.execute_async_script(CHANGE, " ann", remove) == 2
    ann.driver.get(ann.url)
    ann.sees("connected", ".connection")
    ann.chat_with("bob")
    ann.sees("part 2", ".line")
    parts = [text for text in ann.text(".line .text").split("|") if text.startswith("part")]
    assert parts == [f"part {number}" for number in range(4)], parts
    assert "missing" not in ann.text(".lines")
    step("messages that are missing between others come from the history")


def begun(ann: Browser) -> None:
    """Typed text stays after a change of the language."""
    ann.press("Contacts")
    fields = {"textarea": "begun", "nav [name=name]": "somebody", "nav [name=words]": "hello"}
    for field, text in fields.items():
        ann.fill(field, text)
    ann.press("Menu")
    ann.press("中文")
    ann.sees("已连接", ".connection")
    values = {field: ann.find(field).get_property("value") for field in fields}
    assert values == fields, values
    ann.press("菜单")
    ann.press("English")
    ann.sees("connected", ".connection")
    for field in fields:
        ann.find(field).clear()
    ann.press("Chats")
    step("what is typed stays when the language is another")


def accounts_in_the_way(ann: Browser, bob: Browser) -> None:
    """An account that does not open, an account whose token is missing, and an account that logs out slowly."""
    bobs = uids_of(bob)["bob"]
    ann.driver.execute_script("IDBFactory.prototype.open = () => { throw new Error('no store'); }")
    ann.press("Menu")
    ann.press("zoe")
    ann.sees("no store", "nav .error")
    ann.sees("ann", "nav h2")
    ann.driver.get(ann.url)
    ann.sees("connected", ".connection")
    step("an account that does not open says why, and the other one stays")

    ann.chat_with("bob")
    ann.sees("part 3", ".line")
    forget = "return key === 'account' ? { ...value, token: '' } : value"
    assert ann.driver.execute_async_script(CHANGE, " zoe", forget) == 1
    ann.press("Menu")
    ann.press("zoe")
    ann.find("input[name=password]")
    bob.chat_with("ann")
    bob.say("behind the form")
    bob.sees("sent", ".line.own .meta")
    ann.press("中文")
    ann.sees("密码")
    assert not ann.driver.find_elements(By.CSS_SELECTOR, "nav"), "the account before is back"
    ann.press("English")
    time.sleep(1)
    assert ann.driver.title == "Hermes Chat", ann.driver.title
    assert "read" not in bob.text(".line.own:last-of-type .meta"), "read behind the form"
    ann.fill("input[name=name]", "zoe")
    ann.fill("input[name=password]", "correct horse")
    ann.press("Log in")
    ann.sees("zoe", "nav h2")
    ann.sees("connected", ".connection")
    step("nothing of an account goes on behind the login to another one")

    ann.driver.execute_script(SILENCE_LOG_OUT)
    ann.press("Menu")
    ann.press("Log out")
    ann.sees("Really?", "dialog")
    ann.press("Log out")
    ann.sees("Logging out", "dialog")
    ActionChains(ann.driver).send_keys(Keys.ESCAPE).perform()
    assert "Logging out" in ann.text("dialog"), "closed"
    assert not [one for one in ann.driver.find_elements(By.CSS_SELECTOR, "dialog button") if one.is_displayed()], "a button"
    ann.driver.execute_script(CLICK, {"conversation": f"direct/{bobs}", "seq": 1, "uid": uids_of(ann)["ann"]})
    ann.sees("behind the form", ".line")
    ann.sees("lists this device until you remove it", "dialog")
    ann.press("Close")
    ann.sees("ann", "nav h2")
    assert "behind the form" in ann.text(".line"), "another account took its place"

    def of_zoe() -> list[str]:
        return [one for one in ann.driver.execute_async_script(KEPT) if one.split(": ")[0].endswith(" zoe")]

    ann.until(lambda: of_zoe() == [], "nothing of zoe")
    ann.press("Menu")
    ann.press("Add an account")
    ann.fill("input[name=name]", "zoe")
    ann.fill("input[name=password]", "correct horse")
    ann.press("Log in")
    ann.sees("connected", ".connection")
    ann.press("Menu")
    ann.press("ann")
    ann.sees("ann", "nav h2")
    step("an account that logs out goes, although a notification leads to another one meanwhile, which stays")


def without_server(ann: Browser, bob: Browser, new: Browser, server: Server, room: str) -> None:
    new.find("input[name=name]")
    server.kill()
    began = time.monotonic()
    new.fill("input[name=name]", "dora")
    new.fill("input[name=password]", "correct horse")
    new.press("Create account")
    new.until(lambda: not new.driver.find_element(By.CSS_SELECTOR, "button[name=login]").is_enabled(), "a disabled button", 5)
    new.until(lambda: new.text(".login [role=status]"), "the state of the connection", 5)
    new.sees("The server cannot be reached. Check the network. [101]", ".login [role=alert]")
    new.until(lambda: new.driver.find_element(By.CSS_SELECTOR, "button[name=login]").is_enabled(), "a button to try again")
    assert time.monotonic() - began < 20, time.monotonic() - began
    new.check_access()
    new.press("中文")
    new.fill("input[name=name]", "dora")
    new.fill("input[name=password]", "correct horse")
    new.press("登录")
    new.sees("无法连接到服务器", ".login [role=alert]")
    new.press("English")
    step("without a server a login and a registration say so, and end")

    new.driver.get(f"{room}&lang=zh&room=lobby")
    new.fill("input[name=name]", "dora")
    new.fill("input[name=password]", "correct horse")
    new.press("登录")
    new.sees("服务器没有响应", ".error")
    assert not new.find("button[name=login]").is_enabled()
    step("without a server the live room says so")

    ann.driver.get(ann.url)
    ann.driver.switch_to.new_window("tab")
    ann.driver.get(ann.url)
    ann.find("nav button.row").click()
    ann.say("never sent")
    ann.sees("waiting", ".line.own .meta")
    ann.find("textarea").send_keys("begun")
    ann.press("Menu")
    ann.press("Log out")
    ann.sees("removes its copy of the conversations of ann", "dialog")
    ann.sees("Texts that were not sent are lost: 2.", "dialog")
    ann.sees("The server cannot be told", "dialog")
    ann.check_access()
    ann.press("Close")
    ann.until(lambda: not ann.text("dialog"), "the end of the question")
    assert "never sent" in ann.text(".line"), "logged out without an answer"
    ann.press("Menu")
    ann.press("Log out")
    ann.sees("Really?", "dialog")
    ann.press("Log out")
    # The page opens the other account of this browser.
    ann.sees("zoe", "nav h2", 5)
    first, second = ann.driver.window_handles
    ann.driver.switch_to.window(first)
    ann.find("input[name=password]")
    ann.driver.close()
    ann.driver.switch_to.window(second)

    def kept() -> list[str]:
        return ann.driver.execute_async_script(KEPT)

    ann.until(lambda: kept() and not [one for one in kept() if one.split(": ")[0].endswith(" ann")], "nothing of ann")
    step("without a server a log-out names what is lost, and leaves nothing in the browser, in no tab")

    server.start()
    ann.sees("connected", ".connection", 60)
    ann.press("Menu")
    ann.press("Log out")
    ann.sees("Really?", "dialog")
    assert "cannot be told" not in ann.text("dialog")
    ann.press("Log out")
    ann.find("input[name=password]")
    assert kept() == []
    assert "zoe" not in ann.text("body")
    ann.fill("input[name=name]", "zoe")
    ann.fill("input[name=password]", "wrong horse")
    ann.press("Log in")
    ann.sees("The name or the password is wrong. [1003]", ".login [role=alert]")
    new.driver.get(f"{room}&lang=zh&room=lobby")
    new.fill("input[name=name]", "zoe")
    new.fill("input[name=password]", "wrong horse")
    new.press("登录")
    new.sees("用户名或密码错误。 [1003]", ".error")
    step("with one it tells the server; errors are in the page's language, in the live room, too")


def main() -> None:
    began = time.monotonic()
    with contextlib.ExitStack() as stack:
        server = Server(stack.enter_context(tempfile.TemporaryDirectory()))
        stack.callback(lambda: server.kill())
        process = subprocess.Popen([ROOT / "scripts/web-serve", "0"], stdout=subprocess.PIPE, text=True)
        stack.callback(lambda: (process.kill(), process.wait()))
        origin = process.stdout.readline().strip()
        url, room = (f"{origin}{page}/?server=ws://127.0.0.1:{server.port}" for page in ("chat", "room"))

        def browser() -> Browser:
            one = Browser(url)
            stack.callback(one.driver.quit)
            return one

        for names in NAMES:
            one, other = browser(), browser()
            long_names(one, other, names)
            long_names_in_a_room(other, room, names[1])
            for each in (one, other):
                quiet(each)
                each.driver.quit()
        ann, bob = browser(), browser()
        for each, name in ((ann, "ann"), (bob, "bob")):
            each.join(name)
        ann.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": BADGE})
        recalls(ann, bob)
        notified(ann, bob)
        texts_missing(ann, bob)
        begun(ann)
        accounts_in_the_way(ann, bob)
        new = browser()
        without_server(ann, bob, new, server, room)
        for each in (ann, bob):
            quiet(each)
    print(f"chat: good; {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
