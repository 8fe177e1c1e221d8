// Hermes
// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { test } from "node:test";
import { InboxTracker } from "../inbox.js";
import { splitMix64 } from "./support.js";

/** The number of random wires, and the number of entries on each wire. */
const wires = 200;
const count = 400;

/**
 * Runs a server, a wire that loses, repeats and delays entries, connections that break, and an app that takes entries
 * at random times. Each entry must reach the app once and in order, or must be reported as missed. Only taken entries
 * may be acknowledged.
 */
function run(seed) {
    const random = splitMix64(seed);
    const chance = (probability) => random() < probability;
    const [loss, repeat, delay, own, expiry, cut] = [0.1, 0.1, 0.2, 0.1, 0.05, 0.01].map((most) => most * random());
    let inbox = new InboxTracker();
    let now = 0;
    let [head, oldest, acknowledged] = [0, 1, 0];
    let wire = [];
    const owns = new Set();
    const waiting = [];
    let last = 0;
    const arrived = new Set();

    const send = (packet) => {
        if (chance(loss)) return;
        wire.splice(chance(delay) ? Math.floor(random() * (wire.length + 1)) : wire.length, 0, packet);
        if (chance(repeat)) wire.push(packet);
    };
    const page = (after, most) => {
        for (let seq = Math.max(after + 1, oldest); seq <= Math.min(head, after + most); seq++) send({ seq });
    };
    const handle = (output) => {
        for (const one of output) {
            if (one.do === "deliver") {
                assert.equal(one.entry, one.seq);
                assert.ok(one.seq > last, `${one.seq} after ${last}`);
                for (let seq = last + 1; seq < one.seq; seq++) assert.ok(owns.has(seq), `${seq} is missing`);
                last = one.seq;
                waiting.push(one.seq);
            } else if (one.do === "missed") {
                assert.ok(one.to < oldest, "told as missed, but the server has it");
                for (let seq = one.from; seq <= one.to; seq++) assert.ok(!arrived.has(seq), `${seq} arrived`);
                assert.ok(one.from > last);
                last = one.to;
                waiting.push(one.to);
            } else if (one.do === "synchronize") {
                send({ synchronized: { head, oldest } });
                page(one.afterSeq, 200);
            } else {
                assert.ok(one.upToSeq < (waiting[0] ?? Infinity), `${one.upToSeq} is not taken`);
                acknowledged = Math.max(acknowledged, one.upToSeq);
            }
        }
    };
    const turn = (step) => {
        const output = [];
        step(output);
        handle(output);
    };
    const connect = () => {
        wire = [];
        inbox.resumed("9", acknowledged, head, now);
        page(inbox.taken, 1000);
    };

    connect();
    for (let steps = 0; last < count || waiting.length; steps++) {
        assert.ok(steps < 200_000, "it does not come to an end");
        now += Math.floor(random() * 40);
        if (head < count && chance(0.5)) {
            head += 1;
            if (chance(own)) owns.add(head);
            // The device's own message arrives as a receipt, which is not lost but may be late.
            if (owns.has(head)) wire.splice(Math.floor(random() * (wire.length + 1)), 0, { seq: head });
            else send({ seq: head });
        }
        if (chance(expiry)) oldest = Math.min(head + 1, oldest + Math.floor(random() * 20));
        const packet = chance(0.8) ? wire.shift() : undefined;
        if (packet?.seq) {
            arrived.add(packet.seq);
            const entry = owns.has(packet.seq) ? null : packet.seq;
            turn((output) => inbox.arrived(entry, packet.seq, packet.seq, 10, now, output));
        } else if (packet) {
            const range = packet.synchronized;
            turn((output) => inbox.synchronized("9", range.head, range.oldest, now, output));
        }
        if (waiting.length && chance(0.6)) {
            const seq = waiting.shift();
            turn((output) => inbox.tookUpTo(seq, now, output));
        }
        if (inbox.nextDeadline !== null && inbox.nextDeadline <= now) {
            turn((output) => inbox.deadlineReached(now, output));
        }
        // At the end, no connection is cut. When the last entry shows that entries are missing, they must be requested.
        if (head === count && chance(0.02)) send({ seq: head });
        if (head < count && chance(cut)) connect();
        if (head < count && chance(cut / 4)) {
            // The page is closed and opened again. Entries that were not taken arrive again.
            assert.ok(inbox.taken < (waiting[0] ?? Infinity));
            arrived.clear();
            inbox = new InboxTracker("9", inbox.taken);
            last = inbox.taken;
            waiting.length = 0;
            connect();
        }
        // Own messages at the end are not delivered.
        if (head === count && !waiting.length && inbox.received === count) break;
    }
}

test("entries come once and in order, whatever the wire does", () => {
    for (let seed = 1; seed <= wires; seed++) {
        try {
            run(seed);
        } catch (error) {
            error.message = `seed ${seed}: ${error.message}`;
            throw error;
        }
    }
});
