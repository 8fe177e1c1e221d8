// Hermes
// SPDX-License-Identifier: Apache-2.0

// The delivery of entries to the app.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Deliveries } from "../deliveries.js";

const mebibyte = 1_048_576;
const delivery = (name, more = {}) => ({ event: { name }, bytes: 10, isRepeat: false, ...more });
const settled = () => new Promise((resolve) => setImmediate(resolve));

/** Makes deliveries to these handlers, and a log of the events. */
function make(handlers) {
    const log = [];
    const deliveries = new Deliveries({
        handlers: () => handlers,
        taken: async ({ event }) => void log.push(`taken ${event.name}`),
        fullnessChanged: (isFull) => void log.push(isFull ? "full" : "roomy"),
    });
    /** The log without the reports that there is room. */
    return { deliveries, log, notes: () => log.filter((note) => note !== "roomy") };
}

test("an entry is taken once all handlers are done, and the next waits for it", async () => {
    const handlers = [];
    const { deliveries, log, notes } = make(handlers);
    /** @type {() => void} */
    let finish = () => {};
    handlers.push(({ name }) => void log.push(`first ${name}`));
    handlers.push(async ({ name }) => {
        await new Promise((resolve) => (finish = resolve));
        log.push(`second ${name}`);
    });
    deliveries.push(delivery("a"));
    deliveries.push(delivery("b"));
    await settled();
    assert.deepEqual(notes(), ["first a"]);
    finish();
    await settled();
    assert.deepEqual(notes(), ["first a", "second a", "taken a", "first b"]);
    finish();
    await settled();
    assert.deepEqual(notes().slice(4), ["second b", "taken b"]);
});

test("entries wait for a handler, and while they are held", async () => {
    const handlers = [];
    const { deliveries, log, notes } = make(handlers);
    deliveries.push(delivery("a"));
    await settled();
    assert.deepEqual(notes(), []);
    handlers.push(({ name }) => void log.push(name));
    deliveries.isHeld = true;
    await deliveries.run();
    assert.deepEqual(notes(), []);
    deliveries.isHeld = false;
    await deliveries.run();
    assert.deepEqual(notes(), ["a", "taken a"]);
});

test("an entry that the app has had is taken without a handler", async () => {
    const handlers = [() => assert.fail("handed out again")];
    const { deliveries, notes } = make(handlers);
    deliveries.push(delivery("a", { isRepeat: true }));
    await settled();
    assert.deepEqual(notes(), ["taken a"]);
});

test("a handler that fails gets the same entry again, after waits that double up to a minute", async (context) => {
    const waits = [];
    const said = context.mock.method(console, "error", () => {});
    context.mock.method(globalThis, "setTimeout", (/** @type {() => void} */ next, /** @type {number} */ wait) => {
        waits.push(wait);
        queueMicrotask(next);
    });
    let failures = 8;
    const calls = [];
    const { deliveries, notes } = make([
        async ({ name }) => {
            calls.push(name);
            if (failures-- > 0) throw new Error("not now");
        },
    ]);
    deliveries.push(delivery("a"));
    deliveries.push(delivery("b"));
    await settled();
    assert.deepEqual(calls, [...Array(9).fill("a"), "b"]);
    assert.deepEqual(waits, [1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]);
    assert.deepEqual(notes(), ["taken a", "taken b"]);
    assert.equal(said.mock.callCount(), 8);
    // After the next failure, the wait is a second again.
    failures = 1;
    deliveries.push(delivery("c"));
    await settled();
    assert.equal(waits.at(-1), 1000);
    assert.equal(notes().at(-1), "taken c");
});

test("what was waiting for another account is not handed out, nor taken", async () => {
    /** @type {() => void} */
    let finish = () => {};
    const calls = [];
    const { deliveries, notes } = make([
        ({ name }) => {
            calls.push(name);
            return new Promise((resolve) => (finish = resolve));
        },
    ]);
    deliveries.push(delivery("old 1"));
    deliveries.push(delivery("old 2"));
    deliveries.clear();
    deliveries.push(delivery("new"));
    finish();
    await settled();
    assert.deepEqual(calls, ["old 1", "new"]);
    finish();
    await settled();
    assert.deepEqual(notes(), ["taken new"]);
});

test("above 64 MiB no more are to be kept; there is room again at a quarter", async () => {
    const handlers = [];
    const { deliveries, log } = make(handlers);
    for (let count = 0; count < 4; count += 1) deliveries.push(delivery(`${count}`, { bytes: 16 * mebibyte }));
    assert.ok(!log.includes("full"), "64 MiB are allowed");
    deliveries.push(delivery("one too many", { bytes: 1 }));
    assert.equal(log.at(-1), "full");
    log.length = 0;
    handlers.push(({ name }) => void log.push(name));
    await deliveries.run();
    const roomy = log.indexOf("roomy");
    assert.ok(roomy > log.indexOf("taken 2") && roomy < log.indexOf("one too many"), log.join(", "));
    assert.equal(log.at(-1), "taken one too many");
});

test("above 16,384 entries no more are to be kept, however short they are", async () => {
    const handlers = [];
    const { deliveries, log } = make(handlers);
    for (let count = 1; count <= 16_384; count += 1) deliveries.push(delivery(`${count}`, { bytes: 0 }));
    assert.ok(!log.includes("full"), "so many are allowed");
    deliveries.push(delivery("one too many", { bytes: 0 }));
    assert.equal(log.at(-1), "full");
    log.length = 0;
    handlers.push(() => {});
    await deliveries.run();
    // The 4,095 entries after this one are less than a quarter of the limit.
    assert.equal(log.indexOf("roomy"), log.indexOf("taken 12290") - 1);
});
