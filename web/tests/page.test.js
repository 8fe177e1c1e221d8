// Hermes
// SPDX-License-Identifier: Apache-2.0

// The states of the page and the network that a client follows.
import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { WebSocket } from "../node-websocket.js";
import { followPage } from "../page.js";
import { FakeServer } from "./fake-server.js";
import { HermesClient, MemoryStore } from "./sdk.js";

const names = ["document", "navigator", "addEventListener", "removeEventListener"];
const real = new Map(names.map((name) => [name, Object.getOwnPropertyDescriptor(globalThis, name)]));
const set = (/** @type {string} */ name, /** @type {any} */ value) =>
    Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });

afterEach(() => {
    for (const [name, descriptor] of real) {
        if (descriptor) Object.defineProperty(globalThis, name, descriptor);
        else delete (/** @type {any} */ (globalThis)[name]);
    }
});

/** A fake page with its handlers. */
function page() {
    /** @type {Map<string, Set<() => void>>} */
    const handlers = new Map();
    const target = (/** @type {string} */ of) => ({
        addEventListener(/** @type {string} */ name, /** @type {() => void} */ handler) {
            const key = `${of} ${name}`;
            handlers.set(key, (handlers.get(key) ?? new Set()).add(handler));
        },
        removeEventListener: (/** @type {string} */ name, /** @type {() => void} */ handler) =>
            handlers.get(`${of} ${name}`)?.delete(handler),
    });
    const document = { visibilityState: "visible", ...target("document") };
    const navigator = { onLine: true };
    set("document", document);
    set("navigator", navigator);
    for (const [name, value] of Object.entries(target("window"))) set(name, value);
    const happen = (/** @type {string} */ key) => [...(handlers.get(key) ?? [])].forEach((handler) => handler());
    return { document, navigator, happen, count: () => [...handlers.values()].reduce((sum, all) => sum + all.size, 0) };
}

test("the network that the browser says is gone, and is back, is told at once", () => {
    const { navigator, happen } = page();
    /** @type {any[]} */
    const told = [];
    followPage("wss://chat.example/ws", (conditions) => told.push(conditions));
    navigator.onLine = false;
    happen("window offline");
    navigator.onLine = true;
    happen("window online");
    assert.deepEqual(told, [true, false, true].map((isOnline) => ({ app: "foreground", isOnline })));
});

test("a page that opens without a network knows it", () => {
    const { navigator } = page();
    navigator.onLine = false;
    /** @type {any[]} */
    const told = [];
    followPage("wss://chat.example/ws", (conditions) => told.push(conditions.isOnline));
    assert.deepEqual(told, [false]);
});

test("a server on this machine needs no network; one whose name only looks so does", () => {
    const { navigator, happen } = page();
    navigator.onLine = false;
    const servers = {
        "ws://localhost:8080/ws": true, "ws://127.0.0.1:8080/ws": true, "ws://127.1.2.3/ws": true, "ws://[::1]:8080/ws": true,
        "wss://localhost.example/ws": false, "wss://127.example/ws": false, "wss://10.0.0.1/ws": false,
    };
    for (const [url, isOnline] of Object.entries(servers)) {
        /** @type {any[]} */
        const told = [];
        const stop = followPage(url, (conditions) => told.push(conditions.isOnline));
        happen("window offline");
        assert.deepEqual(told, [isOnline, isOnline], url);
        stop();
    }
});

test("a hidden page is in the background, one that is frozen or left is suspended, one that comes back is neither", () => {
    const { document, happen } = page();
    /** @type {any[]} */
    const told = [];
    followPage("wss://chat.example/ws", ({ app }) => told.push(app));
    document.visibilityState = "hidden";
    happen("document visibilitychange");
    happen("document freeze");
    document.visibilityState = "visible";
    happen("document resume");
    happen("window pagehide");
    document.visibilityState = "hidden";
    happen("document visibilitychange");
    document.visibilityState = "visible";
    happen("window pageshow");
    assert.deepEqual(told, ["foreground", "background", "suspended", "foreground", "suspended", "foreground"]);
});

test("what is followed no more is told no more; outside a page there is nothing to follow", () => {
    const { happen, count } = page();
    let told = 0;
    const stop = followPage("wss://chat.example/ws", () => (told += 1));
    assert.equal(count(), 7);
    stop();
    happen("window online");
    assert.deepEqual([count(), told], [0, 1]);
    set("document", undefined);
    followPage("wss://chat.example/ws", () => assert.fail("there is no page"))();
});

test("a client that was closed follows the page again from the next login on", async () => {
    const { navigator, happen, count } = page();
    const server = await FakeServer.start();
    /** Connects to the test's server, regardless of the name. */
    class Rerouted extends WebSocket {
        constructor(/** @type {string} */ _url, /** @type {any[]} */ ...more) {
            super(`${server.url}/ws`, ...more);
        }
    }
    const store = new MemoryStore();
    const client = await HermesClient.open({ server: "wss://chat.example", store, WebSocket: Rerouted });
    /** @type {any[]} */
    const states = [];
    await client.logIn({ nickName: "ann", password: "secret" });
    navigator.onLine = false;
    happen("window offline");
    await client.close();
    assert.equal(count(), 0);
    navigator.onLine = true;
    await client.resume();
    await client.resume();
    assert.equal(count(), 7);
    client.on("state", ({ is }) => states.push(is));
    server.connections[1].socket.destroy();
    while (!states.length) await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(states, ["waiting"]);
    await client.close();
    assert.equal(count(), 0);
    server.stop();
});
