// Hermes
// SPDX-License-Identifier: Apache-2.0

// The files that the chat's service worker stores for use without a network.
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import "./page-globals.js";

/** @type {Record<string, (event: any) => any>} */
const handlers = {};
const worker = {
    addEventListener: (/** @type {string} */ name, /** @type {any} */ handler) => (handlers[name] = handler),
    skipWaiting() {},
    clients: { claim: async () => {} },
};
Object.defineProperty(globalThis, "self", { value: worker, configurable: true });
await import("../chat/worker.js");

const full = async () => Promise.reject(new DOMException("no room", "QuotaExceededError"));
/** @type {Map<string, any>} */
const kept = new Map();
const cache = {
    put: async (/** @type {string} */ url, /** @type {any} */ response) => void kept.set(url, await response.text()),
    match: async (/** @type {any} */ { url }) => kept.has(url.split("?")[0]) ? new Response(kept.get(url.split("?")[0])) : undefined,
};
/** @type {any} */
let stored;
beforeEach(() => {
    kept.clear();
    stored = { open: async () => cache };
    Object.defineProperty(globalThis, "caches", { get: () => stored, configurable: true });
    globalThis.fetch = async () => new Response("new");
});

/** @returns {Promise<string>} The text of the answer to a request. */
async function asked() {
    /** @type {any} */
    let answer;
    const request = { method: "GET", url: "http://test/chat/chat.js?1" };
    handlers.fetch({ request, respondWith: (/** @type {any} */ promise) => (answer = promise) });
    return (await answer).text();
}

test("a file comes from the network, is kept, and comes from there without a network", async () => {
    assert.equal(await asked(), "new");
    assert.deepEqual([...kept], [["http://test/chat/chat.js", "new"]]);
    globalThis.fetch = async () => Promise.reject(new TypeError("no network"));
    assert.equal(await asked(), "new");
    kept.clear();
    await assert.rejects(asked(), /no network/);
});

test("without room for it the network's answer counts, not the older copy", async () => {
    kept.set("http://test/chat/chat.js", "old");
    stored = { open: async () => ({ ...cache, put: full }) };
    assert.equal(await asked(), "new");
    stored = { open: full };
    assert.equal(await asked(), "new");
    globalThis.fetch = async () => Promise.reject(new TypeError("no network"));
    await assert.rejects(asked(), /no network/);
});
