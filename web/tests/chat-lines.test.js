// Hermes
// SPDX-License-Identifier: Apache-2.0

// The rows of a conversation in a fake page: elements and focus that must stay, and texts.
import assert from "node:assert/strict";
import { test } from "node:test";
import "./page-globals.js";

/** A fake element with the features that the rows need. It has no layout. */
class FakeElement {
    /** @type {any} */
    parent = null;
    /** @type {any[]} */
    all = [];
    /** @type {Record<string, string>} */
    attributes = {};
    /** @type {Record<string, any>} */
    handlers = {};
    hidden = false;
    scrollTop = 0;
    scrollHeight = 0;
    clientHeight = 0;
    classList = { contains: (/** @type {string} */ name) => (this.attributes.class ?? "").split(" ").includes(name) };
    get children() {
        return this.all.filter((child) => child instanceof FakeElement);
    }
    get firstElementChild() {
        return this.children[0] ?? null;
    }
    get nextElementSibling() {
        const { children } = this.parent;
        return children[children.indexOf(this) + 1] ?? null;
    }
    /** @returns {string} */
    get textContent() {
        return this.all.map((child) => (typeof child === "string" ? child : child.textContent)).join("");
    }
    /** @returns {any[]} */
    get within() {
        return this.children.flatMap((child) => [child, ...child.within]);
    }
    get isConnected() {
        return document.body.contains(/** @type {any} */ (this));
    }
    setAttribute(/** @type {string} */ name, /** @type {string} */ value) {
        this.attributes[name] = value;
    }
    getAttribute(/** @type {string} */ name) {
        return this.attributes[name] ?? null;
    }
    addEventListener(/** @type {string} */ name, /** @type {any} */ handler) {
        this.handlers[name] = handler;
    }
    append(/** @type {any[]} */ ...children) {
        for (const child of children) this.insertBefore(child, null);
    }
    insertBefore(/** @type {any} */ child, /** @type {any} */ place) {
        if (child instanceof FakeElement) {
            child.remove();
            child.parent = this;
        }
        this.all.splice(place ? this.all.indexOf(place) : this.all.length, 0, child);
    }
    remove() {
        if (this.contains(document.activeElement)) page.activeElement = page.body;
        this.parent?.all.splice(this.parent.all.indexOf(this), 1);
        this.parent = null;
    }
    contains(/** @type {any} */ other) {
        return other === this || this.within.includes(other);
    }
    querySelector(/** @type {string} */ selector) {
        const key = /^\[data-key="(.*)"\]$/.exec(selector)?.[1];
        return this.within.find((element) => key && element.attributes["data-key"] === key) ?? null;
    }
    focus() {
        page.activeElement = this;
    }
    getBoundingClientRect() {
        return { top: 0, bottom: 0 };
    }
}
/** @type {any} */
const page = { documentElement: { lang: "en-GB" }, createElement: () => new FakeElement(), body: new FakeElement() };
page.activeElement = page.body;
for (const [name, value] of Object.entries({ document: page, CSS: { escape: (/** @type {string} */ text) => text } })) {
    Object.defineProperty(globalThis, name, { value, configurable: true });
}
const { Chats } = await import("../chat/model.js");
const { Lines } = await import("../chat/lines.js");

/** @param {Record<string, any>} outbox */
function shown(outbox = {}) {
    const chats = new Chats();
    chats.me = 1;
    const lines = new Lines();
    const first = new FakeElement();
    page.body.append(lines.element);
    const account = { chats, client: { outbox }, nickName: "ann", nameOf: () => "bob" };
    const show = () => lines.show(/** @type {any} */ (account), chats.get("uid 7"), /** @type {any} */ (first));
    const { element } = /** @type {any} */ (lines);
    const rows = () => element.children.filter((/** @type {any} */ row) => row !== first);
    const press = (/** @type {string} */ key) => element.querySelector(`[data-key="${key}"]`).handlers.click();
    return { chats, first, show, element, rows, press };
}

const message = (/** @type {number} */ seq, own = false, text = `${seq}`) => ({
    type: "message",
    message: {
        id: `m${seq}`, conversation: { uid: 7 }, conversationSeq: seq, fromUid: own ? 1 : 7, fromNickName: "bob", clientId: "",
        content: { text }, serverTimeMs: seq, own, recalled: false,
    },
});

test("a read mark draws only the user's own messages that it is about anew", () => {
    const { chats, show, rows } = shown();
    for (const [seq, own] of /** @type {[number, boolean][]} */ ([[1, false], [2, true], [3, true]])) chats.entry(message(seq, own));
    show();
    const before = rows();
    chats.entry({ type: "readMark", readMark: { conversation: { uid: 7 }, uid: 7, upToSeq: 2 } });
    show();
    assert.deepEqual(rows().map((/** @type {any} */ row, /** @type {number} */ index) => row === before[index]), [true, false, true]);
});

test("a row that changes keeps the focus on its button, or else in the messages", () => {
    const { chats, show, element, press } = shown();
    chats.entry(message(1, true, "x".repeat(30_000)));
    show();
    element.querySelector('[data-key="more m1"]').focus();
    press("more m1");
    assert.equal(page.activeElement.attributes["data-key"], "more m1");
    assert.ok(page.activeElement.isConnected);
    chats.entry({ type: "recalled", recalled: { conversation: { uid: 7 }, messageId: "m1" } });
    show();
    assert.equal(page.activeElement, element);
});

test("a message that cannot be sent again or discarded says why", async () => {
    const full = (/** @type {string} */ name) => async () => Promise.reject(new Error(`no room: ${name}`));
    const { chats, show, rows, press } = shown({ retry: full("retry"), discard: full("discard") });
    const entry = { clientId: "c", conversation: { uid: 7 }, content: { text: "hi" }, queuedAt: 5, receipt: null };
    chats.outbox({ ...entry, status: "failed", error: { code: 2003, message: "no" } });
    show();
    for (const button of ["retry", "discard"]) {
        await press(`${button} own c`);
        await new Promise((resolve) => setTimeout(resolve));
        assert.ok(rows()[0].textContent.includes(`no room: ${button}`), button);
    }
});

test("where messages are missing stands the button for them, and a note once the server has none", () => {
    const { chats, first, show, element } = shown();
    for (const seq of [1, 2, 6, 9]) chats.entry(message(seq));
    const chat = chats.get("uid 7");
    const places = () => element.children.map((/** @type {any} */ row) => {
        if (row === first) return "button";
        return /missing/.test(row.textContent) ? "note" : /\d/.exec(row.textContent.replace("bob", ""))?.[0];
    });
    show();
    assert.deepEqual(places(), ["1", "2", "note", "6", "button", "9"]);
    chats.history(chat, [], 9, false);
    show();
    assert.deepEqual(places(), ["1", "2", "button", "6", "note", "9"]);
    chats.history(chat, [], 6, false);
    first.hidden = chats.isWhole(chat);
    show();
    assert.deepEqual(places(), ["button", "1", "2", "note", "6", "note", "9"]);
    assert.ok(first.hidden);
    // Messages after the last known message may still arrive.
    chats.listed([{ conversation: { uid: 7 }, name: "bob", lastSeq: 12, lastMessageAtMs: 12, readSeq: 12, unread: 0 }]);
    show();
    assert.equal(places().at(-1), "9");
    chats.history(chat, [7, 8].map((seq) => message(seq).message), 9, true);
    show();
    assert.deepEqual(places(), ["button", "1", "2", "note", "6", "7", "8", "9"]);
});
