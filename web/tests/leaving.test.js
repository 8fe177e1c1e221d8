// Hermes
// SPDX-License-Identifier: Apache-2.0

// Logging in and out, with and without a server.
import assert from "node:assert/strict";
import { test } from "node:test";
import "./page-globals.js";

const { loggedIn } = await import("../chat/login.js");
const { Emitter } = await import("../emitter.js");
const { clearStores, tellServer } = await import("../leaving.js");
const { MemoryStore } = await import("../stores.js");

const never = () => new Promise(() => {});

test("a log-out waits for the server only if it is there, and not for ever", async () => {
    const live = { state: { is: "live" } };
    assert.equal(await tellServer(live, async () => {}, 1000), true);
    assert.equal(await tellServer(live, async () => Promise.reject(new Error("no")), 1000), false);
    assert.equal(await tellServer(live, never, 20), false);
    const began = performance.now();
    let isBegun = false;
    assert.equal(await tellServer({ state: { is: "waiting" } }, () => ((isBegun = true), never()), 1000), false);
    assert.ok(isBegun && performance.now() - began < 500);
});

test("nothing that was kept stays", async () => {
    const stores = [new MemoryStore(), new MemoryStore()];
    await stores[0].write([["account", { token: "secret" }], ["device", "web-1"]]);
    await stores[1].write([["chat/uid 7", {}]]);
    await clearStores(stores);
    assert.deepEqual(stores.map((store) => store.records.size), [0, 0]);
});

/** A client whose connection is in this state. */
function client(state) {
    const emitter = new Emitter();
    return Object.assign(emitter, {
        state,
        becomes(next) {
            this.state = next;
            this.emit("state", next);
        },
    });
}

test("a login tells the state of the connection, and gives up a server that is not there", async () => {
    const told = [];
    const one = client({ is: "connecting" });
    const login = loggedIn(one, never, ({ is }) => told.push(is), 30);
    one.becomes({ is: "waiting", error: { code: 101, message: "refused" } });
    await assert.rejects(login, { code: 101 });
    assert.deepEqual(told.slice(0, 2), ["connecting", "waiting"]);
    // There is no answer at all.
    await assert.rejects(loggedIn(client({ is: "connecting" }), never, () => {}, 10), { code: 103 });
});

test("a login that the server is about to answer is waited for", async () => {
    const one = client({ is: "authenticating" });
    let answer;
    const login = loggedIn(one, () => new Promise((resolve) => (answer = resolve)), () => {}, 10);
    await new Promise((resolve) => setTimeout(resolve, 40));
    answer("session");
    assert.equal(await login, "session");
    const lost = loggedIn(client({ is: "authenticating" }), never, () => {}, 10);
    const other = client({ is: "authenticating" });
    const gone = loggedIn(other, never, () => {}, 10);
    await new Promise((resolve) => setTimeout(resolve, 30));
    other.becomes({ is: "lost", error: { code: 102, message: "lost" } });
    await assert.rejects(gone, { code: 102 });
    await Promise.race([lost, Promise.resolve()]);
});

test("a login that the server refuses fails at once", async () => {
    await assert.rejects(loggedIn(client({ is: "authenticating" }), async () => Promise.reject(new Error("no")), () => {}), /no/);
});
