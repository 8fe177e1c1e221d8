#!/usr/bin/env python3
"""Tests the chat page in headless Chromium against a real server. HERMES_BIN names the server's program.

Needs Chromium with its driver and Selenium (Debian: chromium-driver, python3-selenium). If WEB_SCREENSHOTS names a
folder, the screenshots are written to it.
"""

import base64
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile

import axe
from selenium import webdriver
from selenium.common.exceptions import ElementNotInteractableException, StaleElementReferenceException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = os.environ["HERMES_BIN"]
SHOTS = os.environ.get("WEB_SCREENSHOTS")
PROTOCOLS = ("impb", "liveroom", "qsiop", "delimited", "mqtt")


ACCESS = """
const problems = [];
const parts = (color) => (color.match(/[\\d.]+/g) ?? []).map(Number);
const isClear = (color) => parts(color)[3] === 0;
const light = (color) => {
    const [red, green, blue] = parts(color).map((part) => {
        const value = part / 255;
        return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
};
for (const element of document.querySelectorAll("body *")) {
    const words = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!element.checkVisibility() || element.closest(".hidden-text")) continue;
    if (words) {
        let behind = element;
        while (behind && isClear(getComputedStyle(behind).backgroundColor)) behind = behind.parentElement;
        const one = light(getComputedStyle(element).color);
        const other = light(behind ? getComputedStyle(behind).backgroundColor : "rgb(255, 255, 255)");
        const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
        if (ratio < 4.5) problems.push(`contrast ${ratio.toFixed(2)}: ${element.outerHTML}`);
    }
    if (element.matches("button, input, select, textarea, a")) {
        const { width, height } = element.getBoundingClientRect();
        if (element.type !== "checkbox" && Math.min(width, height) < 24) problems.push(`small: ${element.outerHTML}`);
    }
}
const ids = [...document.querySelectorAll("[id]")].map((element) => element.id);
if (new Set(ids).size !== ids.length) problems.push(`ids: ${ids}`);
if (document.querySelectorAll("main").length !== 1) problems.push("one main");
if (!document.documentElement.lang || !document.title) problems.push("language and title");
return problems;
"""

AXE = """
const done = arguments[0];
// Otherwise, axe would judge animations in an intermediate state.
document.getAnimations().forEach((animation) => animation.finish());
axe.run(document, { resultTypes: ["violations"] }).then(
    ({ violations }) => done(violations.flatMap(({ id, help, nodes }) => nodes.map(
        ({ html, failureSummary }) => `${id} (${help}): ${html}\\n${failureSummary}`
    ))),
    (error) => done([String(error)]),
);
"""


class Server:
    """A real server that has the same port after a restart. It keeps the history for `history_days`; 0 is its default,
    no history."""

    def __init__(self, folder: str, protocols: tuple[str, ...] = (), settings: tuple[str, ...] = (), history_days: int = 7):
        self.folder = folder
        self.history_days = history_days
        self.settings = settings
        self.protocols = protocols
        self.port = 0
        self.impb = self.liveroom = self.qsiop = self.delimited = self.mqtt = 0
        self.start()

    def start(self) -> None:
        arguments = [PROGRAM, "serve", "--data.directory", self.folder, "--listeners.http.port", str(self.port)]
        arguments += self.settings
        if self.history_days:
            arguments += ["--store.historyDays", str(self.history_days)]
        for name in PROTOCOLS:
            if name in self.protocols:
                arguments += [f"--listeners.{name}.port", str(getattr(self, name))]
            else:
                arguments += [f"--listeners.{name}.enabled", "false"]
        self.process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for line in self.process.stdout:
            if found := re.search(r"ready:.* http \S*:(\d+)", line):
                self.port = int(found.group(1))
                for name in self.protocols:
                    setattr(self, name, int(re.search(rf" {name} \S*:(\d+)", line).group(1)))
                return
        raise SystemExit("the server did not start")

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


class Browser:
    """One person's browser, with its own profile."""

    def __init__(self, url: str, width: int = 1100, is_dark: bool = False, arguments: tuple[str, ...] = ()):
        options = webdriver.ChromeOptions()
        for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", f"--window-size={width},800", *arguments):
            options.add_argument(argument)
        if is_dark:
            options.add_argument("--force-dark-mode")
            options.add_argument("--blink-settings=preferredColorScheme=0")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        service = Service(executable_path=os.environ.get("CHROMEDRIVER", "/usr/bin/chromedriver"))
        self.driver = webdriver.Chrome(options=options, service=service)
        self.url = url
        self.driver.set_script_timeout(60)
        self.driver.get(url)

    def until(self, condition, what: str, seconds: float = 20):
        try:
            wait = WebDriverWait(self.driver, seconds, 0.05, [StaleElementReferenceException])
            return wait.until(lambda _: condition())
        except Exception as error:
            text = self.driver.execute_script("return document.body.innerText")
            raise AssertionError(f"not seen: {what}\n{text}\n{self.log()}") from error

    def find(self, selector: str):
        return self.until(
            lambda: next((e for e in self.driver.find_elements(By.CSS_SELECTOR, selector) if e.is_displayed()), None),
            selector,
        )

    def click(self, selector: str) -> None:
        def clicked():
            # The page may replace the element at this moment.
            self.find(selector).click()
            return True

        self.until(clicked, f"{selector} to click on")

    def text(self, selector: str) -> str:
        return self.driver.execute_script(
            "return [...document.querySelectorAll(arguments[0])].map(e => e.innerText).join('|')", selector
        )

    def sees(self, text: str, selector: str = "body", seconds: float = 20) -> None:
        self.until(lambda: text in self.text(selector), f"{text!r} in {selector}", seconds)

    def press(self, name: str) -> None:
        """Presses the button with this text."""

        def pressed():
            for element in self.driver.find_elements(By.CSS_SELECTOR, "button"):
                if element.is_displayed() and element.text.strip() == name:
                    element.click()
                    return True
            return False

        self.until(pressed, f"button {name!r}")

    def press_main(self) -> None:
        """Presses the main button of the dialog. The page under the dialog may have a main button, too."""
        self.find("dialog button.main").click()

    def hold(self, selector: str) -> None:
        """Holds the mouse button down on the element until the call of `release`."""

        def held():
            # The page may replace the element at this moment.
            ActionChains(self.driver).click_and_hold(self.find(selector)).perform()
            return True

        self.until(held, f"{selector} to hold")

    def release(self) -> None:
        ActionChains(self.driver).release().perform()

    def fill(self, selector: str, text: str) -> None:
        def filled():
            # The page may show another view at this moment.
            try:
                element = self.find(selector)
                element.clear()
                element.send_keys(text)
                return True
            except ElementNotInteractableException:
                return False

        self.until(filled, f"{text!r} in {selector}")

    def join(self, name: str) -> None:
        self.fill("input[name=name]", name)
        self.fill("input[name=password]", "correct horse")
        self.press("Create account")
        self.sees("connected", ".connection")

    def chat_with(self, name: str) -> None:
        self.fill("nav input[name=name]", name)
        self.press("Open")
        self.sees(name, ".pane h2")

    def say(self, text: str) -> None:
        self.find("textarea").send_keys(text + Keys.ENTER)

    def shot(self, name: str) -> None:
        if SHOTS:
            pathlib.Path(SHOTS).mkdir(parents=True, exist_ok=True)
            self.driver.save_screenshot(str(pathlib.Path(SHOTS) / f"{name}.png"))

    def check_access(self) -> None:
        """Checks the rules of WCAG 2.2 AA that a program can check: contrast, names of landmarks, ids, sizes of
        targets."""
        problems = self.driver.execute_script(ACCESS)
        assert problems == [], problems
        if source := axe.source():
            # Runs as the debugger, to which the page's Content-Security-Policy does not apply.
            self.driver.execute_cdp_cmd("Runtime.evaluate", {"expression": source})
            violations = self.driver.execute_async_script(AXE)
            assert violations == [], "\n".join(violations)

    def processor(self) -> tuple[float, float]:
        """Returns how long the pages' main threads ran, and how long they waited for a processor, in seconds. Except on
        Linux, it returns 1 and 0."""
        parents: dict[int, int] = {}
        ran = waited = 0.0
        try:
            for folder in pathlib.Path("/proc").glob("[0-9]*"):
                with contextlib.suppress(OSError):
                    parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            for process in parents:
                ancestor = process
                while ancestor in parents and ancestor != self.driver.service.process.pid:
                    ancestor = parents[ancestor]
                folder = pathlib.Path("/proc", str(process))
                with contextlib.suppress(OSError):
                    if ancestor in parents and b"--type=renderer" in (folder / "cmdline").read_bytes():
                        times = (folder / "task" / str(process) / "schedstat").read_text().split()
                        ran += int(times[0]) / 1e9
                        waited += int(times[1]) / 1e9
        except OSError:
            pass
        return (ran, waited) if ran else (1, 0)

    def log(self) -> list[str]:
        """Returns the browser's warnings and errors, without failed WebSocket connections. Those are expected while the
        server is down."""
        lines = [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] != "INFO"]
        return [line for line in lines if "WebSocket connection to" not in line]


def check(ann: Browser, bob: Browser, server: Server) -> None:
    for browser in (ann, bob):
        browser.find("input[name=name]")
        browser.check_access()
    ann.join("ann")
    bob.join("bob")
    step("two people registered")

    ann.chat_with("bob")
    ann.say("hello Bob <b>&amp; 你好</b>")
    ann.sees("sent", ".line.own .meta")
    bob.sees("hello Bob <b>&amp; 你好</b>", ".row .last")
    bob.sees("1", ".badge")
    bob.shot("chats-unread")
    bob.hold(".row .last")
    ann.say("while Bob presses")
    bob.until(lambda: bob.driver.title.startswith("(2)"), "two unread messages")
    bob.release()
    bob.sees("hello Bob <b>&amp; 你好</b>", ".line")
    bob.until(lambda: bob.text(".badge") == "", "no unread message")
    ann.sees("read", ".line.own .meta")
    step("a message with markup arrives as text, is counted, and is shown as read")

    bob.find("textarea").send_keys("I am")
    ann.sees("bob is typing", ".typing")
    bob.say(" here")
    ann.sees("I am here", ".line")
    ann.until(lambda: "typing" not in ann.text(".typing"), "the end of typing")
    ann.sees("online", ".pane .bar")
    ann.shot("chat-dark")
    bob.shot("chat")
    step("typing and presence")

    bob.hold(".line.own .plain")
    ann.say("while Bob recalls")
    bob.sees("while Bob recalls", ".row .last")
    assert "while Bob recalls" not in bob.text(".line"), "drawn below the mouse"
    bob.release()
    bob.sees("while Bob recalls", ".line")
    ann.sees("Message recalled", ".line")
    step("a recalled message is gone")

    bob.driver.get(bob.url)
    bob.sees("connected", ".connection")
    bob.find("button.row").click()
    bob.sees("hello Bob", ".line")
    step("a reload keeps the login and the conversation")

    bob.driver.switch_to.new_window("tab")
    bob.driver.get(bob.url)
    bob.sees("connected", ".connection")
    bob.press("Menu")
    bob.press("Devices")
    bob.sees("this device", "dialog")
    assert bob.text("dialog li").count("Chrome") == 1, bob.text("dialog li")
    bob.press("Close")
    first, second = bob.driver.window_handles
    bob.find("button.row").click()
    ann.say("for both tabs")
    bob.sees("for both tabs", ".line")
    bob.driver.switch_to.window(first)
    bob.sees("for both tabs", ".line")
    bob.driver.close()
    bob.driver.switch_to.window(second)
    ann.say("after the first tab")
    bob.sees("after the first tab", ".line")
    bob.say("from the second tab")
    ann.sees("from the second tab", ".line")
    step("two tabs are one device; when the leading one is closed, the other goes on")

    server.kill()
    ann.say("while the server is away 1")
    ann.say("while the server is away 2")
    ann.sees("waiting", ".line.own .meta")
    ann.driver.get(ann.url)
    ann.find("button.row").click()
    ann.sees("while the server is away 2", ".line")
    ann.shot("offline")
    server.start()
    bob.sees("while the server is away 2", ".line", 60)
    texts = bob.text(".line .text")
    assert texts.count("away 1") == 1 and texts.index("away 1") < texts.index("away 2"), texts
    step("messages from before a reload without a server arrive once, in order")

    ann.sees("connected", ".connection", 60)
    ann.press("Menu")
    ann.press("New group")
    ann.fill("dialog input[name=group]", "climbers")
    ann.fill("dialog input[name=members]", "bob")
    ann.press("Create")
    ann.sees("climbers", ".pane h2")
    ann.say("hi all")
    bob.sees("climbers", ".row .name")
    bob.until(lambda: bob.text(".badge") == "1", "one unread message")
    ann.press("Group details")
    ann.sees("bob", "dialog li")
    ann.sees("ann (owner)", "dialog li")
    ann.press("Make administrator")
    ann.sees("bob (administrator)", "dialog li")
    ann.shot("group")
    ann.press("Close")
    step("a group: created, written to, roles changed")

    ann.press("Contacts")
    ann.fill("nav input[name=name]", "bob")
    ann.press("Ask")
    ann.sees("asked", ".person")
    bob.press("Contacts")
    bob.sees("wants to be your contact", ".person")
    bob.shot("contacts")
    bob.press("Accept")
    ann.sees("online", ".person")
    step("contacts: asked and accepted")

    ann.press("Chats")
    ann.press("Menu")
    ann.press("中文")
    ann.sees("已连接", ".connection")
    assert ann.driver.execute_script("return document.documentElement.lang") == "zh-Hans"
    ann.find("button.row").click()
    ann.shot("chinese")
    ann.driver.set_window_size(400, 700)
    ann.shot("narrow-chat")
    ann.check_access()
    overflow = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert ann.driver.execute_script(overflow) <= 0
    ann.press("返回")
    ann.find("nav button.row").send_keys(Keys.ARROW_DOWN)
    assert ann.driver.execute_script("return document.activeElement.className") == "row"
    ann.shot("narrow-list")
    ann.check_access()
    step("Chinese, a narrow window, the arrow keys")

    bob.press("Chats")
    bob.find("button.row").click()
    bob.say("שלום, hello!")
    bob.sees("שלום", ".line .text")
    words = "return [...document.querySelectorAll('.line .text')].find((e) => e.textContent.includes(arguments[0]))"
    direction = f"return getComputedStyle((() => {{ {words} }})()).direction"
    assert bob.driver.execute_script(direction, "שלום") == "rtl"
    assert bob.driver.execute_script(direction, "hi all") == "ltr"
    bob.driver.execute_script("document.documentElement.dir = 'rtl'")
    for width in (400, 1100):
        bob.driver.set_window_size(width, 800)
        assert bob.driver.execute_script(overflow) <= 0, width
    side, pane = (bob.find(part).rect["x"] for part in (".side", ".pane"))
    assert side > pane, "the list is not at the start"
    bob.shot("right-to-left")
    bob.driver.execute_script("document.documentElement.dir = ''")
    step("a text from right to left has its own direction, and a page from right to left is mirrored")

    odd = "<img src=x onerror=alert(1)>"
    bob.press("Menu")
    bob.press("New group")
    bob.fill("dialog input[name=group]", odd)
    bob.fill("dialog input[name=members]", "ann")
    bob.press("Create")
    bob.sees(odd, ".pane h2")
    bob.say(odd)
    ann.sees(odd, ".row .name")
    address = """const [address, done] = arguments;
        import("./dom.js").then(({ link }) => done(link(address, "x").outerHTML), done)"""
    for url in ("javascript:alert(1)", "data:text/html,x", " javascript:alert(1)"):
        assert bob.driver.execute_async_script(address, url) == "<span>x</span>", url
    for browser in (ann, bob):
        assert not browser.driver.find_elements(By.CSS_SELECTOR, "img"), "markup became an element"
    step("markup in names and texts stays text; links lead to the web only")

    bob.press("Menu")
    bob.press("Add an account")
    bob.join("zoe")
    bob.press("Menu")
    bob.press("bob")
    bob.sees("bob", "nav h2")
    bob.sees("connected", ".connection")
    bob.press("Menu")
    bob.press("zoe")
    bob.sees("zoe", "nav h2")
    bob.press("Menu")
    bob.press("Log out")
    bob.sees("its copy of the conversations of zoe", "dialog")
    bob.press("Log out")
    bob.sees("bob", "nav h2")
    bob.press("Chats")
    bob.sees(odd, ".row .name")
    step("two accounts in one browser; one logs out")

    for browser in (ann, bob):
        browser.check_access()
        for element in browser.driver.find_elements(By.CSS_SELECTOR, "button, input, textarea"):
            if element.is_displayed():
                assert element.accessible_name, element.get_attribute("outerHTML")
        assert browser.log() == [], browser.log()
    step("every control has a name; the browsers have nothing to complain about")


OPEN = """
const [url, name, done] = arguments;
(async () => {
    const { HermesClient, IndexedDBStore } = await import("../hermes.js");
    const client = await HermesClient.open({ server: url, store: new IndexedDBStore(`test ${name}`) });
    window.client = client;
    window.got = [];
    client.on("entry", ({ type, message }) => { if (type === "message") window.got.push(message.content.text); });
    const login = client.canResume ? client.resume() : client.register({ nickName: name, password: "correct horse" });
    return login.then((session) => session.uid);
})().then(done, (error) => done(`failed: ${error.message}`));
"""
SEND = """
const [uid, count] = arguments;
window.stored = 0;
(async () => {
    for (let number = 0; number < count; number++) {
        await window.client.outbox.send(`message ${number}`, { uid });
        window.stored += 1;
    }
})();
"""


def check_outbox(gus: Browser, ida: Browser, server: Server) -> None:
    """The SDK's stores in a browser: while 1,000 messages are sent, the sender's tab is closed and the server is
    killed."""
    count = 1000
    address = f"ws://127.0.0.1:{server.port}"
    for browser in (gus, ida):
        browser.driver.switch_to.new_window("tab")
        browser.driver.get(browser.url)
    gus.driver.execute_async_script(OPEN, address, "gus")
    uid = ida.driver.execute_async_script(OPEN, address, "ida")
    gus.driver.execute_script(SEND, uid, count)
    received = "return window.got.length"
    ida.until(lambda: ida.driver.execute_script(received) >= 100, "100 messages")
    server.kill()
    gus.until(lambda: gus.driver.execute_script("return window.stored") == count, "all messages stored", 60)
    gus.driver.close()
    gus.driver.switch_to.window(gus.driver.window_handles[0])
    server.start()
    gus.driver.switch_to.new_window("tab")
    gus.driver.get(gus.url)
    assert isinstance(gus.driver.execute_async_script(OPEN, address, "gus"), int)
    ida.until(lambda: ida.driver.execute_script(received) >= count, "1,000 messages", 120)
    assert ida.driver.execute_script("return window.got") == [f"message {number}" for number in range(count)]
    assert ida.driver.execute_script("return window.client.state.is") == "live"
    step("1,000 messages arrive once, in order, although the server is killed and the sender's tab closed")


def check_own_pages(eve: Browser) -> None:
    """The pages as the server itself sends them, with its headers."""
    eve.sees("This is Hermes", "h1")
    eve.check_access()
    eve.shot("home")
    eve.find("a[href='/api']").click()
    eve.sees("HTTP API", "h1")
    eve.find("details:nth-of-type(2) summary").click()
    eve.sees("Answer", "details[open] h2")
    eve.check_access()
    eve.shot("api")
    eve.driver.get(eve.url + "chat")
    eve.join("eve")
    eve.chat_with("ann")
    eve.say("from the server's own page")
    eve.sees("sent", ".line.own .meta")
    complaints = eve.log()
    assert complaints == [], complaints
    step("the server's own pages: first steps, the API, the chat without further settings")


def check_network(eve: Browser, stack: contextlib.ExitStack) -> None:
    """The browser loses its network and gets it back. The server has another name than this machine's, because the
    browser reaches this machine's name without a network. Chromium's debugger does not close open WebSockets, so the
    test reloads the page without a network."""
    # This server accepts pages from every host name.
    server = Server(stack.enter_context(tempfile.TemporaryDirectory()), settings=("--access.anonymous", "false"))
    stack.callback(server.kill)
    eve.driver.get(f"http://127.0.0.1:{server.port}/chat/")
    eve.join("eve")
    origin = f"http://chat.example:{server.port}"
    fay = Browser(f"{origin}/chat/", arguments=("--host-resolver-rules=MAP chat.example 127.0.0.1",
                                                f"--unsafely-treat-insecure-origin-as-secure={origin}"))
    stack.callback(fay.driver.quit)
    fay.join("fay")
    ready = "const [done] = arguments; navigator.serviceWorker.ready.then(() => done(Boolean(navigator.serviceWorker.controller)))"
    fay.until(lambda: fay.driver.execute_async_script(ready), "the service worker")
    # The service worker caches the page's files when the page loads them.
    fay.driver.refresh()
    fay.sees("connected", ".connection")
    fay.chat_with("eve")
    fay.say("with a network")
    fay.sees("sent", ".line.own .meta")

    def network(is_there: bool) -> None:
        fay.driver.execute_cdp_cmd("Network.enable", {})
        rate = -1 if is_there else 0
        fay.driver.execute_cdp_cmd("Network.emulateNetworkConditions", {
            "offline": not is_there, "latency": 0, "downloadThroughput": rate, "uploadThroughput": rate})

    network(False)
    fay.driver.refresh()
    fay.sees("no network", ".connection")
    fay.find("nav button.row").click()
    fay.sees("with a network", ".line")
    fay.say("without a network")
    fay.sees("waiting", ".line.own .meta")
    fay.shot("no-network")
    network(True)
    # The page connects at once. The wait after a failed connection to a server would be longer.
    fay.sees("connected", ".connection", 5)
    fay.until(lambda: "waiting" not in fay.text(".line.own .meta"), "the message is sent")
    eve.sees("fay", "nav .name")
    next(row for row in eve.driver.find_elements(By.CSS_SELECTOR, "nav button.row") if "fay" in row.text).click()
    eve.sees("without a network", ".line")
    assert eve.text(".line .text").split("|") == ["with a network", "without a network"], eve.text(".line .text")
    complaints = [line for line in fay.log() if "ERR_INTERNET_DISCONNECTED" not in line]
    assert complaints == [], complaints
    step("without the browser's network the page opens, says so and keeps what is written; with it, it goes on at once")


def check_installable(eve: Browser) -> None:
    """The chat has everything that the browser requires of an app."""
    def errors() -> list[str]:
        return [one["errorId"] for one in eve.driver.execute_cdp_cmd("Page.getInstallabilityErrors", {})["installabilityErrors"]]

    eve.until(lambda: errors() == [], f"an app that can be installed: {errors()}")
    manifest = eve.driver.execute_cdp_cmd("Page.getAppManifest", {})
    assert manifest["errors"] == [] and manifest["url"].endswith("/chat/manifest.webmanifest"), manifest
    there = eve.url
    eve.driver.get(eve.driver.execute_script("return location.origin + '/'"))
    # For comparison: the first page is not an app, and the browser reports its missing manifest.
    eve.until(lambda: "no-manifest" in errors(), "a page that is no app")
    eve.driver.get(there + "chat/")
    eve.sees("connected", ".connection")
    step("the chat can be installed")


# Replaces the browser's push service, which accepts no subscription without a network.
PUSHES = """
(() => {
    const base64 = (bytes) => btoa(String.fromCharCode(...new Uint8Array(bytes))).replace(/[+]/g, "-").replace(/[/]/g, "_")
        .replace(/=/g, "");
    let current = null;
    const subscription = async (options) => {
        const pair = await crypto.subtle.generateKey({ name: "ECDH", namedCurve: "P-256" }, true, ["deriveBits"]);
        const keys = {
            p256dh: base64(await crypto.subtle.exportKey("raw", pair.publicKey)),
            auth: base64(crypto.getRandomValues(new Uint8Array(16))),
        };
        const endpoint = "https://fcm.googleapis.com/fcm/send/test";
        return {
            endpoint,
            options: { applicationServerKey: options.applicationServerKey.buffer },
            toJSON: () => ({ endpoint, keys }),
            unsubscribe: async () => { current = null; return true; },
        };
    };
    PushManager.prototype.subscribe = async function (options) { return (current = await subscription(options)); };
    PushManager.prototype.getSubscription = async function () { return current; };
})();
"""


def check_pushes(kim: Browser, server: Server) -> None:
    """The switch for notifications, with each possible answer of a browser."""
    origin = f"http://127.0.0.1:{server.port}"

    def permit(setting: str) -> None:
        permission = {"permission": {"name": "notifications"}, "setting": setting, "origin": origin}
        kim.driver.execute_cdp_cmd("Browser.setPermission", permission)

    def state(expected: str) -> None:
        kim.press("Menu")
        kim.press("Notifications")
        kim.find(f".push-state[data-state={expected}]")

    kim.driver.get(f"{origin}/chat/")
    kim.join("kim")
    permit("denied")
    state("blocked")
    kim.sees("Allow them in the browser’s settings", "dialog")
    assert "Turn on" not in kim.text("dialog")
    kim.check_access()
    kim.press("Close")
    permit("granted")
    state("off")
    kim.press("Turn on")
    kim.find(".push-state[data-state=on]")
    kim.check_access()
    kim.shot("notifications")
    kim.press("Turn off")
    kim.find(".push-state[data-state=off]")
    kim.press("Turn on")
    kim.find(".push-state[data-state=on]")
    kim.press("Close")
    kim.press("Menu")
    kim.press("中文")
    kim.press("菜单")
    kim.press("消息提醒")
    kim.sees("此浏览器会提醒你新消息", "dialog")
    kim.press("关闭")
    kim.find(".push-state[data-state=off]")
    removed = "delete window.PushManager"
    kim.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": removed})
    kim.driver.get(f"{origin}/chat/")
    kim.sees("已连接", ".connection")
    kim.press("菜单")
    kim.press("消息提醒")
    kim.find(".push-state[data-state=unsupported]")
    assert kim.log() == [], kim.log()
    step("notifications: blocked, off, on, and not supported are said, and switched where they can be")


def push_settings(folder: str) -> tuple[str, ...]:
    """Returns settings for Web Push with a new key, or no settings if openssl is missing."""
    if not shutil.which("openssl"):
        return ()
    key = f"{folder}/vapid.pem"
    subprocess.run(["openssl", "ecparam", "-genkey", "-noout", "-name", "prime256v1", "-out", key], check=True)
    public = subprocess.run(
        ["openssl", "ec", "-in", key, "-pubout", "-outform", "DER"], check=True, capture_output=True
    ).stdout[-65:]
    text = base64.urlsafe_b64encode(public).decode().rstrip("=")
    settings = ("--push.webPush.privateKeyFile", key, "--push.webPush.publicKey", text)
    return (*settings, "--push.webPush.subject", "mailto:test@example.org")


def step(text: str) -> None:
    print(f"chat: {text}", flush=True)


def main() -> None:
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        server = Server(folder)
        stack.callback(lambda: server.kill())

        def pages(*arguments) -> tuple[subprocess.Popen, str]:
            process = subprocess.Popen([ROOT / "scripts/web-serve", *arguments], stdout=subprocess.PIPE, text=True)
            stack.callback(lambda: (process.kill(), process.wait()))
            return process, f"{process.stdout.readline().strip()}chat/?server=ws://127.0.0.1:{server.port}"

        # Ann uses the chat as the server serves it. Bob uses its source modules.
        served = stack.enter_context(tempfile.TemporaryDirectory())
        subprocess.run([ROOT / "scripts/embed-web", "--to", served], check=True)
        process, url = pages("0", served)
        ann = Browser(url, is_dark=True)
        stack.callback(ann.driver.quit)
        bob = Browser(pages()[1])
        stack.callback(bob.driver.quit)
        check(ann, bob, server)
        check_outbox(ann, bob, server)
        ann.driver.switch_to.window(ann.driver.window_handles[0])
        process.kill()
        ann.driver.refresh()
        ann.sees("已连接", ".connection")
        step("the page opens without its web server")
        eve = Browser(f"http://127.0.0.1:{server.port}/")
        stack.callback(eve.driver.quit)
        check_own_pages(eve)
        check_installable(eve)
        check_network(eve, stack)
        eve.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": PUSHES})
        keys = stack.enter_context(tempfile.TemporaryDirectory())
        data = stack.enter_context(tempfile.TemporaryDirectory())
        if settings := push_settings(keys):
            pushing = Server(data, settings=settings)
            stack.callback(pushing.kill)
            check_pushes(eve, pushing)
        else:
            print("chat: notifications SKIPPED: needs openssl", flush=True)


if __name__ == "__main__":
    main()
