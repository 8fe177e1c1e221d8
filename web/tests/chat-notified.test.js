// Hermes
// SPDX-License-Identifier: Apache-2.0

// The messages about notifications between the chat's page and its service worker.
import assert from "node:assert/strict";
import { test } from "node:test";
import { addressed, addressOf, asks, follow, referenceOf } from "../chat/notified.js";

test("an entry's conversation is one of the chat's", () => {
    assert.deepEqual(referenceOf({ conversation: "direct/7", seq: 42, uid: 2 }), { key: "uid 7", uid: 2 });
    assert.deepEqual(referenceOf({ conversation: "group/19" }), { key: "group 19", uid: 0 });
    // A back end's push belongs to no conversation.
    assert.deepEqual(referenceOf({ seq: 42, uid: 2 }), { key: "uid 0", uid: 2 });
    for (const odd of [undefined, null, 7, { conversation: 7 }, { conversation: "direct/x", uid: "2" }, { conversation: "direct/7/8" }]) {
        assert.deepEqual(referenceOf(odd), { key: "uid 0", uid: 0 });
    }
});

test("the address of an opened page names the entry's account and conversation", () => {
    for (const conversation of ["direct/7", "group/19", undefined]) {
        const hermes = { conversation, uid: 2 };
        assert.deepEqual(addressed(new URL(addressOf(hermes), "https://chat.example/chat/").hash), referenceOf(hermes));
    }
    for (const odd of ["", "#", "#notification/", "#notification/2/uid/x", "#notification/2/uid/7/8", "#notification/2/__proto__/7"]) {
        assert.equal(addressed(odd), null, odd);
    }
});

/** A page and the worker's client for it. */
function page(shows, opened = []) {
    const container = new EventTarget();
    follow(container, shows, (reference) => opened.push(reference));
    return {
        postMessage(data, ports = []) {
            container.dispatchEvent(Object.assign(new Event("message"), { data, ports }));
        },
    };
}

test("a page says whether it shows an entry's account; one that does not answer shows nothing", async () => {
    const hermes = { conversation: "direct/7", uid: 2 };
    assert.equal(await asks(page((uid) => uid === 2), hermes), true);
    assert.equal(await asks(page((uid) => uid === 3), hermes), false);
    assert.equal(await asks({ postMessage() {} }, hermes), false);
});

test("a click opens the entry's conversation, other messages nothing", () => {
    const opened = [];
    const one = page(() => true, opened);
    one.postMessage({ type: "hermes.notification", hermes: { conversation: "group/9", uid: 2 }, data: {} });
    one.postMessage({ type: "another" });
    one.postMessage(null);
    assert.deepEqual(opened, [{ key: "group 9", uid: 2 }]);
});
