// Hermes
// SPDX-License-Identifier: Apache-2.0

// Messages that the user sends again or discards while the browser cannot store the change.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ErrorCode, HermesError } from "../errors.js";
import { Outbox } from "../outbox.js";
import { standardOutboxLimits } from "../outbox-queue.js";
import { MemoryStore } from "../stores.js";

const refused = new HermesError(ErrorCode.forbidden, "no");
const settled = () => new Promise((resolve) => setTimeout(resolve));

/** @param {() => Promise<any>} submit */
function open(submit) {
    const store = new MemoryStore();
    /** @type {any[]} */
    const changes = [];
    const limits = standardOutboxLimits;
    const changed = (/** @type {any} */ entry) => changes.push(entry.status);
    const place = () => ({ epoch: "9", seq: 0 });
    const outbox = new Outbox({ store, records: new Map(), uid: 1, limits, submit, changed, place });
    return { outbox, store, changes };
}
const full = async () => Promise.reject(new DOMException("no room", "QuotaExceededError"));

test("a message that cannot be discarded stays as it was, until it can", async () => {
    const { outbox, store, changes } = open(async () => Promise.reject(refused));
    outbox.started(1);
    const { clientId } = await outbox.send("hello", { uid: 7 });
    await settled();
    const { write } = store;
    store.write = full;
    await assert.rejects(outbox.discard(clientId), { code: ErrorCode.storeFailed });
    const [{ uid, clientId: id, status }] = outbox.entries;
    assert.deepEqual([uid, id, status], [1, clientId, "failed"]);
    assert.equal(changes.at(-1), "failed");
    store.write = write;
    assert.equal(await outbox.discard(clientId), true);
    assert.deepEqual([outbox.entries, store.records.size, changes.at(-1)], [[], 0, "discarded"]);
    assert.equal(await outbox.discard(clientId), false);
});

test("a queued message is not sent while it is discarded, and is if that fails", async () => {
    /** @type {string[]} */
    const sent = [];
    const submit = async (/** @type {any} */ send) => {
        sent.push(send.content.text);
        return { inboxSeq: 0 };
    };
    const { outbox, store } = open(submit);
    for (const text of ["first", "second"]) await outbox.send(text, { uid: 7 });
    const [{ clientId }] = outbox.entries;
    /** @type {(error: any) => void} */
    let fail = () => {};
    const { write } = store;
    store.write = () => new Promise((_resolve, reject) => (fail = reject));
    const discarded = outbox.discard(clientId);
    outbox.started(1);
    assert.equal(await outbox.discard(clientId), false);
    await settled();
    assert.deepEqual(sent, []);
    store.write = write;
    fail(new Error("no room"));
    await assert.rejects(discarded, { code: ErrorCode.storeFailed });
    await settled();
    assert.deepEqual(sent, ["first", "second"]);
});
