// Hermes
// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Lanes, roomOf, Thinner } from "../room/thinning.js";

describe("the live room", () => {
    test("shows what people can read, and counts the rest", () => {
        const thinner = new Thinner(5, 12);
        let shown = 0;
        for (let now = 0; now < 10_000; now += 1) shown += thinner.offer(now) ? 1 : 0;
        assert.ok(shown >= 12 + 49 && shown <= 12 + 50, `${shown}`);
        assert.equal(thinner.takeLeftOut(), 10_000 - shown);
        assert.equal(thinner.takeLeftOut(), 0);
        assert.equal(thinner.offer(100_000), true);
        thinner.leaveOut();
        assert.equal(thinner.takeLeftOut(), 1);
    });

    test("shows everything while little is said", () => {
        const thinner = new Thinner(5, 12);
        for (let now = 0; now < 60_000; now += 250) assert.ok(thinner.offer(now));
        assert.equal(thinner.takeLeftOut(), 0);
    });

    test("gives a text the lane that is free for the longest time", () => {
        const lanes = new Lanes();
        assert.equal(lanes.find(0), -1);
        lanes.resize(2);
        assert.equal(lanes.find(0), 0);
        lanes.take(0, 100);
        assert.equal(lanes.find(0), 1);
        lanes.take(1, 50);
        assert.equal(lanes.find(49), -1);
        assert.equal(lanes.find(50), 1);
        assert.equal(lanes.find(100), 1);
        lanes.resize(1);
        assert.equal(lanes.find(99), -1);
        assert.equal(lanes.find(100), 0);
    });

    test("takes the room's name from the address", () => {
        for (const [pathname, search, room] of [
            ["/room/", "", "lobby"],
            ["/room/index.html", "", "lobby"],
            ["/room/stage-2", "", "stage-2"],
            ["/room/", "?room=main.hall", "main.hall"],
            ["/room/a%20b", "", "a b"],
            ["/room/%", "", "lobby"],
        ]) {
            assert.equal(roomOf({ pathname, search }), room);
        }
    });
});
