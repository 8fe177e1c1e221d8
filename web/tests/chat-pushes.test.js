// Hermes
// SPDX-License-Identifier: Apache-2.0

// The account for which the browser shows notifications, with a fake service worker and a fake client.
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { tellServer } from "../leaving.js";
import { keepStorage } from "./page-globals.js";

const { endPushes, renewPushes } = await import("../chat/pushes.js");
const server = "http://test";
const key = `hermes-chat/pushes ${server}`;

/** @type {string[]} The steps that were carried out. */
const log = [];
const subscription = {
    options: {},
    unsubscribe: async () => void log.push("unsubscribed"),
};
const registration = { pushManager: { getSubscription: async () => subscription } };
const serviceWorker = { register: async () => registration, getRegistration: async () => registration };
for (const [name, value] of Object.entries({
    Notification: { permission: "granted", requestPermission: async () => "granted" },
    navigator: { serviceWorker },
    fetch: async () => ({ ok: true, json: async () => ({ publicKey: "AA" }) }),
})) {
    Object.defineProperty(globalThis, name, { value, configurable: true });
}
beforeEach(() => void log.splice(0));

/**
 * @param {number} uid
 * @param {string} nickName
 * @param {string} storedAs
 * @param {any} session The session of an earlier login.
 */
function makeAccount(uid, nickName, storedAs, session = null) {
    /** @type {() => any} */
    let begin = () => {};
    const client = {
        session,
        state: { is: "waiting" },
        on: (/** @type {string} */ _name, /** @type {any} */ handler) => (begin = handler),
        registerPush: async () => void log.push("registered"),
        clearPush: async () => Promise.reject(new Error("no connection")),
    };
    return { account: /** @type {any} */ ({ client, chats: { me: uid }, nickName, storedAs }), begin: () => begin() };
}

/** Waits until everything that can run has run. */
const settled = () => new Promise((resolve) => setTimeout(resolve));

test("an account that was renamed is notified until it logs out, without a server, too", async (context) => {
    const kept = keepStorage(context);
    // The value of an earlier version of the page, which stored only the name.
    kept.set(key, "ann");
    const { account, begin } = makeAccount(1, "ann", "ａｎｎ");
    renewPushes(account, server);
    begin();
    await settled();
    account.nickName = "anna";
    begin();
    await settled();
    assert.deepEqual([log, kept.get(key)], [["registered", "registered"], JSON.stringify({ uid: 1, name: "anna" })]);
    await tellServer(account.client, () => endPushes(account, server), 0);
    await settled();
    assert.deepEqual([log.slice(2), kept.has(key)], [["unsubscribed"], false]);
});

test("a name that was kept alone is also that of the stores; another account is not notified", async (context) => {
    const kept = keepStorage(context);
    kept.set(key, "ann");
    await endPushes(makeAccount(1, "anna", "bob").account, server);
    assert.deepEqual([log, kept.get(key)], [[], "ann"]);
    await assert.rejects(endPushes(makeAccount(1, "anna", "Ann").account, server), /no connection/);
    assert.deepEqual([log, kept.has(key)], [["unsubscribed"], false]);
    // Another account now has the name.
    kept.set(key, JSON.stringify({ uid: 1, name: "ann" }));
    await endPushes(makeAccount(2, "ann", "ann").account, server);
    assert.deepEqual([log, kept.has(key)], [["unsubscribed"], true]);
});

test("an account that is logged in already is registered, too", async (context) => {
    keepStorage(context).set(key, JSON.stringify({ uid: 1, name: "ann" }));
    renewPushes(makeAccount(1, "ann", "ann", { uid: 1 }).account, server);
    await settled();
    assert.deepEqual(log, ["registered"]);
    renewPushes(makeAccount(2, "bob", "bob", { uid: 2 }).account, server);
    renewPushes(makeAccount(1, "ann", "ann").account, server);
    await settled();
    assert.deepEqual(log, ["registered"]);
});
