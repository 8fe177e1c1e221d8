// Hermes
// SPDX-License-Identifier: Apache-2.0

// The session and the entries that wait for the app, with a server that may send anything.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Deliveries } from "../deliveries.js";
import { readPacket } from "../packet.js";
import { Session } from "../session.js";

const mebibyte = 1_048_576;
const settled = () => new Promise((resolve) => setImmediate(resolve));

/** A client without a connection. Its app takes entries when the test requests it. */
class Bench {
    session = new Session({ device: { id: "d" }, isOwn: () => false, statisticsInterval: null });
    /** The bodies of the packets that the session has sent. */
    sent = [];
    /** The seqs that the app has received. */
    handed = [];
    /** The number of entries that wait for the app, and their size in bytes. */
    waiting = 0;
    bytes = 0;
    #handlers = [];
    #deliveries = new Deliveries({
        handlers: () => this.#handlers,
        taken: async (delivery) => {
            this.waiting -= 1;
            this.bytes -= delivery.bytes;
            const seq = this.session.isCurrent(delivery) ? delivery.event.seq : 0;
            this.#turn((effects) => this.session.taken(seq, 0, 0, effects));
        },
        fullnessChanged: (isFull) => void (this.session.inbox.isFull = isFull),
    });

    constructor() {
        this.session.logIn({ token: "t" }, true);
    }

    /** Makes a new connection, and logs in. */
    connect(epoch, head = 0) {
        this.session.lost(0);
        this.#turn((effects) => this.session.connected(0, effects));
        this.receive({ id: "1", result: { session: { uid: 7, epoch, headSeq: String(head), acknowledgedSeq: "0" } } });
    }

    receive(json, bytes = 100) {
        const packet = readPacket(JSON.stringify(json), mebibyte);
        this.#turn((effects) => this.session.received(packet, bytes, 0, 0, effects));
    }

    entry(seq, bytes = mebibyte) {
        this.receive({ event: { seq: String(seq), message: { content: { text: "x" } } } }, bytes);
    }

    /** Makes the app take all waiting entries. */
    async takeAll() {
        this.#handlers.push(({ seq }) => void this.handed.push(seq));
        this.#deliveries.run();
        while (this.waiting) await settled();
        this.#handlers.pop();
    }

    #turn(step) {
        const effects = [];
        step(effects);
        for (const effect of effects) {
            if (effect.do === "send") this.sent.push(effect.body);
            if (effect.do !== "deliver") continue;
            this.waiting += 1;
            this.bytes += effect.delivery.bytes;
            this.#deliveries.push(effect.delivery);
        }
    }
}

test("receipts, real and invented ones, do not make more entries wait than the bound allows", async () => {
    const bench = new Bench();
    bench.connect("1");
    for (let seq = 1; seq <= 80; seq++) bench.entry(seq);
    const full = bench.bytes;
    assert.ok(full <= 65 * mebibyte);
    // A receipt fills the hole at which the inbox pauses, but a receipt without a request does not. The entries that
    // wait after the hole stay.
    for (let round = 0; round < 6; round++) {
        const hole = bench.session.inbox.received + 1;
        for (let seq = hole + 1; seq <= hole + 15; seq++) bench.entry(seq);
        const id = 100 + round;
        const isSent = round % 2 === 0;
        if (isSent) bench.session.wrote({ send: { clientId: `c${round}` } }, id);
        bench.receive({ id: String(id), result: { receipt: { inboxSeq: String(hole) } } });
        assert.equal(bench.session.inbox.received, isSent ? hole : hole - 1);
        assert.equal(bench.bytes, full);
    }
    // Entries that were not kept are requested when there is room.
    await bench.takeAll();
    const { received } = bench.session.inbox;
    const { synchronize } = bench.sent.findLast((body) => body.synchronize);
    assert.deepEqual(synchronize, { afterSeq: String(received) });
    bench.entry(received + 1);
    await bench.takeAll();
    assert.ok(bench.handed.includes(received + 1));
});

test("a receipt counts once", () => {
    const bench = new Bench();
    bench.connect("1");
    bench.session.wrote({ send: { clientId: "c" } }, 100);
    bench.receive({ id: "100", result: { receipt: { inboxSeq: "1" } } });
    assert.equal(bench.session.inbox.received, 1);
    bench.receive({ id: "100", result: { receipt: { inboxSeq: "2" } } });
    assert.equal(bench.session.inbox.received, 1);
});

describe("an inbox that was full goes on once there is room", () => {
    const logins = { "the server began a new inbox": ["2", 1], "the server lost all entries": ["1", 0] };
    for (const [name, [epoch, head]] of Object.entries(logins)) {
        test(name, async () => {
            const bench = new Bench();
            bench.connect("1");
            for (let seq = 1; seq <= 66; seq++) bench.entry(seq);
            bench.connect(epoch, head);
            const { waiting } = bench;
            bench.entry(1, 100);
            assert.equal(bench.waiting, waiting);
            await bench.takeAll();
            assert.deepEqual(bench.sent.at(-1), { synchronize: { afterSeq: "0" } });
            bench.entry(1, 100);
            await bench.takeAll();
            assert.equal(bench.handed.at(-1), 1);
        });
    }
});

test("a server that begins one inbox after the other makes only so many gaps wait", () => {
    const bench = new Bench();
    const begin = (epoch) => {
        bench.connect(epoch, 1);
        bench.receive({ id: "4", result: { synchronized: { epoch, headSeq: "1", oldestSeq: "2" } } });
    };
    begin("1");
    assert.equal(bench.waiting, 1, "the gap");
    for (let epoch = 2; bench.waiting <= 16_384; epoch++) begin(`${epoch}`);
    const { waiting } = bench;
    begin("10000");
    assert.equal(bench.waiting, waiting + 1, "only the note that the inbox is new");
});
