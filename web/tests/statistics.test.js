// Hermes
// SPDX-License-Identifier: Apache-2.0

// Counts across runs of the app. machines.test.js runs the cases of statistics.json.
import assert from "node:assert/strict";
import { test } from "node:test";
import { DeliveryCounter } from "../statistics.js";

test("what the server may not have is kept as JSON for the next run, once", () => {
    const counter = new DeliveryCounter();
    counter.received(1, 100);
    counter.upload();
    counter.received(1, 200);
    const { unsent } = counter;
    assert.deepEqual(unsent.map(({ received, fromMs, toMs }) => [received, fromMs, toMs]), [[2, 100, 200]]);
    const next = new DeliveryCounter();
    next.restore(JSON.parse(JSON.stringify(unsent)));
    assert.deepEqual(next.upload(), unsent);
    next.uploadEnded();
    assert.deepEqual(next.unsent, []);
});

test("of an earlier run's counts at most 16 networks are taken", () => {
    const counter = new DeliveryCounter();
    counter.received(null, 1);
    const [zeros] = counter.upload();
    counter.uploadEnded();
    counter.restore(Array.from({ length: 1000 }, (_, number) => ({ ...zeros, label: `${number}` })));
    const networks = counter.upload();
    assert.equal(networks.length, 16);
    assert.equal(networks.reduce((sum, network) => sum + network.received, 0), 16);
});
