#!/usr/bin/env python3
# Hermes
# SPDX-License-Identifier: Apache-2.0
"""Follows a push from the server to a notification in Chromium, with the test's own push service. HERMES_BIN names the
server's program.

A browser accepts only subscriptions of its vendor's push service, so the page gets a subscription that the test made.
Everything else is real. The server encrypts the push for the subscription's key (RFC 8291) and posts it to the service
over TLS. WebCrypto decrypts the posted body. The browser's debugger delivers the result to the service worker as a
push. Needs what chat_browser.py needs, and openssl.
"""

import base64
import contextlib
import http.server
import json
import re
import shutil
import ssl
import subprocess
import tempfile
import threading

from chat_browser import Browser, Server, push_settings

HOST = "push.example.org"
# Replaces the browser's push service when the page subscribes. The keys are the test's.
SUBSCRIPTION = """
(() => {
    const keys = %s;
    let current = null;
    PushManager.prototype.subscribe = async function (options) {
        return (current = {
            endpoint: keys.endpoint, options: { applicationServerKey: options.applicationServerKey.buffer },
            toJSON: () => ({ endpoint: keys.endpoint, keys: { p256dh: keys.p256dh, auth: keys.auth } }),
            unsubscribe: async () => { current = null; return true; },
        });
    };
    PushManager.prototype.getSubscription = async function () { return current; };
})();
"""
KEYS = """
const done = arguments[0];
const text = (bytes) => btoa(String.fromCharCode(...new Uint8Array(bytes))).replace(/[+]/g, "-").replace(/[/]/g, "_").replace(/=/g, "");
(async () => {
    const pair = await crypto.subtle.generateKey({ name: "ECDH", namedCurve: "P-256" }, true, ["deriveBits"]);
    return { endpoint: "https://push.example.org/send/kim", p256dh: text(await crypto.subtle.exportKey("raw", pair.publicKey)),
        auth: text(crypto.getRandomValues(new Uint8Array(16))), jwk: await crypto.subtle.exportKey("jwk", pair.privateKey) };
})().then(done, (error) => done(String(error)));
"""
# Decryption according to RFC 8291 and RFC 8188, written from the text of the standards.
DECRYPT = """
const [keys, body, done] = arguments;
const bytes = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (one) => one.charCodeAt(0));
const join = (...parts) => new Uint8Array(parts.flatMap((part) => [...(typeof part === "string" ? new TextEncoder().encode(part) : part)]));
const derive = async (secret, salt, info, length) => {
    const key = await crypto.subtle.importKey("raw", secret, "HKDF", false, ["deriveBits"]);
    return new Uint8Array(await crypto.subtle.deriveBits({ name: "HKDF", hash: "SHA-256", salt, info }, key, length * 8));
};
(async () => {
    const all = bytes(body);
    const [salt, length] = [all.slice(0, 16), all[20]];
    const [sender, sealed] = [all.slice(21, 21 + length), all.slice(21 + length)];
    const curve = { name: "ECDH", namedCurve: "P-256" };
    const own = await crypto.subtle.importKey("jwk", keys.jwk, curve, false, ["deriveBits"]);
    const other = await crypto.subtle.importKey("raw", sender, curve, false, []);
    const shared = new Uint8Array(await crypto.subtle.deriveBits({ name: "ECDH", public: other }, own, 256));
    const secret = await derive(shared, bytes(keys.auth), join("WebPush: info\\0", bytes(keys.p256dh), sender), 32);
    const key = await crypto.subtle.importKey("raw", await derive(secret, salt, join("Content-Encoding: aes128gcm\\0"), 16), "AES-GCM",
        false, ["decrypt"]);
    const iv = await derive(secret, salt, join("Content-Encoding: nonce\\0"), 12);
    const plain = new Uint8Array(await crypto.subtle.decrypt({ name: "AES-GCM", iv }, key, sealed));
    // After the text, there is a 2, which marks the last record, and then zeros.
    return new TextDecoder().decode(plain.slice(0, plain.lastIndexOf(2)));
})().then(done, (error) => done(`failed: ${error}`));
"""
SHOWN = """
const done = arguments[0];
navigator.serviceWorker.getRegistration("/chat/").then((registration) => registration.getNotifications())
    .then((all) => done(all.map(({ title, body, tag, data }) => ({ title, body, tag, data }))), (error) => done(String(error)));
"""


CLOSE = """
const done = arguments[0];
navigator.serviceWorker.getRegistration("/chat/").then((registration) => registration.getNotifications())
    .then((all) => { all.forEach((one) => one.close()); done(all.length); }, (error) => done(String(error)));
"""


def step(text: str) -> None:
    print(f"push: {text}", flush=True)


class Service:
    """A push service that keeps every posted push."""

    def __init__(self, folder: str):
        def openssl(*arguments: str) -> None:
            subprocess.run(["openssl", *arguments], check=True, cwd=folder, capture_output=True)

        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "service.key", "-out", "service.pem", "-days", "2",
                "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1")
        self.certificate = f"{folder}/service.pem"
        self.posted: list[tuple[str, dict[str, str], bytes]] = []
        self.came = threading.Condition()
        service = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with service.came:
                    service.posted.append((self.path, {key.lower(): value for key, value in self.headers.items()}, body))
                    service.came.notify_all()
                self.send_response(201)
                self.send_header("Location", "/message/1")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, f"{folder}/service.key")
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"https://127.0.0.1:{self.server.server_port}"

    def wait(self, count: int) -> tuple[str, dict[str, str], bytes]:
        with self.came:
            assert self.came.wait_for(lambda: len(self.posted) >= count, 30), "the server posted nothing"
            return self.posted[count - 1]


def check(kim: Browser, lea: Browser, service: Service, origin: str) -> None:
    kim.driver.get(f"{origin}/chat/")
    keys = kim.driver.execute_async_script(KEYS)
    assert isinstance(keys, dict), keys
    kim.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": SUBSCRIPTION % json.dumps(keys)})
    kim.driver.get(f"{origin}/chat/")
    permission = {"permission": {"name": "notifications"}, "setting": "granted", "origin": origin}
    kim.driver.execute_cdp_cmd("Browser.setPermission", permission)
    kim.join("kim")
    kim.press("Menu")
    kim.press("Notifications")
    kim.press("Turn on")
    kim.find(".push-state[data-state=on]")
    kim.driver.get("about:blank")
    step("a subscription is registered, and its page is left")

    text = "are you there? <b>&amp; 你好"
    lea.driver.get(f"{origin}/chat/")
    lea.join("lea")
    lea.chat_with("kim")
    lea.say(text)
    path, fields, body = service.wait(1)
    assert path == "/send/kim", path
    assert fields["content-encoding"] == "aes128gcm" and int(fields["ttl"]) > 0, fields
    assert re.fullmatch(r"vapid t=[\w.-]+,\s?k=[\w-]+", fields["authorization"]), fields["authorization"]
    assert text.encode() not in body and b"lea" not in body
    plain = lea.driver.execute_async_script(DECRYPT, keys, base64.urlsafe_b64encode(body).decode())
    assert not plain.startswith("failed"), plain
    push = json.loads(plain)
    assert push["body"] == text and push["title"] == "lea", push
    uid = push["hermes"]["uid"]
    both = {f"direct/{part}" for part in push["tag"].removeprefix("direct/").split("-")}
    assert {f"direct/{uid}", push["hermes"]["conversation"]} == both, push
    step("the server posts it encrypted; only the subscription's key opens it")

    kim.driver.execute_cdp_cmd("ServiceWorker.enable", {})
    # The browser's profile is new, so the chat's registration is the first one and has the id 0.
    delivery = {"origin": origin, "registrationId": "0", "data": plain}
    kim.driver.execute_cdp_cmd("ServiceWorker.deliverPushMessage", delivery)
    kim.driver.get(f"{origin}/chat/icon.svg")

    def shown() -> list:
        found = kim.driver.execute_async_script(SHOWN)
        assert isinstance(found, list), found
        return found

    def deliver(push: str) -> None:
        kim.driver.execute_cdp_cmd("ServiceWorker.deliverPushMessage", {**delivery, "data": push})

    repeated = []

    def shows_alone(push: str, is_delivered: bool = False) -> None:
        """Delivers a push, and waits until its notification is the only one. In a few runs on a busy machine, Chromium
        showed none. So one push of a run may be delivered again."""
        tag, body = (json.loads(push)[key] for key in ("tag", "body"))
        found = []

        def is_there() -> bool:
            found[:] = [(one["tag"], one["body"]) for one in shown()]
            return found == [(tag, body)]

        if not is_delivered:
            deliver(push)
        try:
            kim.until(is_there, f"the notification {tag}: {body}")
        except AssertionError as error:
            if found or repeated:
                raise AssertionError(f"{error}\nnotifications at the end: {found}") from error
            print(f"push: no notification was shown; delivered again: {tag}", flush=True)
            repeated.append(tag)
            shows_alone(push)

    kim.until(shown, "a notification")
    (one,) = shown()
    assert (one["title"], one["body"], one["tag"]) == ("lea", text, push["tag"]), one
    assert one["data"]["hermes"] == push["hermes"], one
    kim.driver.get("about:blank")
    lea.say("a second one")
    _, _, body = service.wait(2)
    plain = lea.driver.execute_async_script(DECRYPT, keys, base64.urlsafe_b64encode(body).decode())
    deliver(plain)
    kim.driver.get(f"{origin}/chat/icon.svg")
    shows_alone(plain, is_delivered=True)
    step("the service worker shows it, and a later one of the conversation in its place")

    def tagged(tag: str, for_uid: int) -> str:
        return json.dumps({**push, "tag": tag, "hermes": {**push["hermes"], "uid": for_uid}})

    def open_page(path: str) -> None:
        kim.driver.get(f"{origin}{path}")
        kim.driver.execute_cdp_cmd("Page.bringToFront", {})
        kim.until(lambda: kim.driver.execute_script("return document.hasFocus()"), "the focus")
        kim.driver.execute_async_script(CLOSE)

    open_page("/chat/")
    kim.sees("connected", ".connection")
    deliver(tagged("for the page's account", uid))
    shows_alone(tagged("for another account", uid + 4711))
    step("a page with the focus shows what its own account gets, and no more")
    open_page("/")
    shows_alone(tagged("while another app has the focus", uid))
    step("a page of another app of the origin swallows none")

    open_page("/chat/")
    kim.press("Menu")
    kim.press("Add an account")
    kim.join("mia")
    kim.press("Menu")
    kim.press("Notifications")
    kim.sees("kim", ".push-state[data-state=off]")
    kim.press("Turn on")
    kim.find(".push-state[data-state=on]")
    step("the browser notifies of one account, and another one shows which")


def main() -> None:
    if not shutil.which("openssl"):
        print("push: SKIPPED: needs openssl", flush=True)
        return
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        service = Service(folder)
        settings = (*push_settings(folder), "--push.handOff", "1 s", "--push.webPush.hosts", HOST, "--push.webPush.endpoint",
                    service.url, "--push.certificateAuthority", service.certificate)
        server = Server(f"{folder}/data", settings=settings)
        stack.callback(server.kill)
        kim, lea = Browser("about:blank"), Browser("about:blank")
        stack.callback(kim.driver.quit)
        stack.callback(lea.driver.quit)
        check(kim, lea, service, f"http://127.0.0.1:{server.port}")
    print("push: good", flush=True)


if __name__ == "__main__":
    main()
