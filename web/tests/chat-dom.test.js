// Hermes
// SPDX-License-Identifier: Apache-2.0

// Drawing a part of the chat while the user presses a button in it.
import assert from "node:assert/strict";
import { test } from "node:test";
import "./page-globals.js";

const page = new EventTarget();
for (const name of /** @type {const} */ (["addEventListener", "removeEventListener"])) {
    Object.defineProperty(globalThis, name, { value: page[name].bind(page), configurable: true });
}
const { whenReleased } = await import("../chat/dom.js");

/** A part with a button, and the names of its drawings. */
function part() {
    /** @type {string[]} */
    const drawn = [];
    const element = { isHeld: false, querySelector: () => element.isHeld || null };
    const draw = (/** @type {string} */ name) => whenReleased(/** @type {any} */ (element), () => drawn.push(name));
    const release = async () => {
        element.isHeld = false;
        page.dispatchEvent(new Event("pointerup"));
        await new Promise((resolve) => setTimeout(resolve, 2));
    };
    return { element, drawn, draw, release };
}

test("while a button is held down, only the last drawing waits for its release", async () => {
    const { element, drawn, draw, release } = part();
    element.isHeld = true;
    draw("first");
    draw("second");
    assert.deepEqual(drawn, []);
    await release();
    assert.deepEqual(drawn, ["second"]);
});

test("a drawing that waits does not come after a newer one", async () => {
    const { element, drawn, draw, release } = part();
    element.isHeld = true;
    draw("old");
    // The button was removed from the page, so the page gets no event for its release.
    element.isHeld = false;
    draw("new");
    await release();
    assert.deepEqual(drawn, ["new"]);
    element.isHeld = true;
    draw("next");
    await release();
    assert.deepEqual(drawn, ["new", "next"]);
});
