// Hermes
// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { test } from "node:test";
import { Chats } from "../chat/model.js";

const load = (store) => new Chats(store);
/** Stores what a change left to store. */
function keep(store, chats, changed) {
    const records = chats.takeRecords(changed);
    for (const [key, value] of records) {
        if (value === undefined) store.delete(key);
        else store.set(key, structuredClone(value));
    }
    return records;
}

const message = (seq, extra = {}) => ({
    type: "message",
    message: {
        id: `m${seq}`,
        conversation: { uid: 7, groupId: null },
        conversationSeq: seq,
        fromUid: 7,
        fromNickName: "bob",
        clientId: "",
        content: { text: `${seq}` },
        serverTimeMs: seq,
        own: false,
        recalled: false,
        ...extra,
    },
});
const texts = (chat) => chat.lines.map((line) => line.content.text ?? "");

test("unread messages are counted until they are marked, here or on another device", () => {
    const chats = new Chats();
    chats.me = 1;
    for (const seq of [1, 2, 3]) chats.entry(message(seq));
    const chat = chats.get("uid 7");
    assert.equal(chats.unread(chat), 3);
    chats.marked(chat, 2);
    assert.equal(chats.unread(chat), 1);
    chats.entry({ type: "readMark", readMark: { conversation: { uid: 7 }, uid: 1, upToSeq: 3 } });
    assert.equal(chats.unread(chat), 0);
    chats.entry({ type: "readMark", readMark: { conversation: { uid: 7 }, uid: 7, upToSeq: 2 } });
    assert.equal(chat.readUpTo, 2);
});

test("an own message is one line from the outbox to its receipt, in the server's order", () => {
    const chats = new Chats();
    chats.me = 1;
    const entry = { clientId: "c", conversation: { uid: 7 }, content: { text: "own" }, queuedAt: 5, receipt: null };
    chats.outbox({ ...entry, status: "queued" });
    chats.entry(message(1));
    const chat = chats.get("uid 7");
    assert.deepEqual(texts(chat), ["1", "own"]);
    const receipt = { messageId: "x", conversationSeq: 2, serverTimeMs: 6 };
    chats.outbox({ ...entry, status: "sent", receipt });
    chats.entry(message(3));
    chats.outbox({ ...entry, status: "queued" });
    chats.entry(message(2, { id: "x", own: true, clientId: "c", content: { text: "own" } }));
    assert.deepEqual(texts(chat), ["1", "own", "3"]);
    assert.equal(chat.lines[1].status, "sent");
});

test("what left the outbox while no page looked was sent", () => {
    const chats = new Chats();
    const entry = { conversation: { uid: 7 }, content: { text: "own" }, queuedAt: 5, receipt: null, status: "sending" };
    chats.outbox({ ...entry, clientId: "a" });
    chats.outbox({ ...entry, clientId: "b" });
    chats.reopened([{ ...entry, clientId: "b", status: "queued" }]);
    assert.deepEqual(chats.get("uid 7").lines.map((line) => line.status), ["sent", "queued"]);
});

test("a recalled message stays empty, also when it comes again", () => {
    const chats = new Chats();
    chats.entry(message(1));
    chats.entry({ type: "recalled", recalled: { conversation: { uid: 7 }, messageId: "m1" } });
    chats.entry(message(1));
    const [line] = chats.get("uid 7").lines;
    assert.deepEqual([line.recalled, line.content], [true, {}]);
    assert.equal(chats.unread(chats.get("uid 7")), 0);
});

test("the history comes before what is known, and a conversation keeps 300 messages", () => {
    const chats = new Chats();
    for (let seq = 200; seq <= 299; seq++) chats.entry(message(seq));
    for (let seq = 150; seq <= 199; seq++) chats.message(message(seq).message);
    const chat = chats.get("uid 7");
    assert.equal(chat.lines[0].seq, 150);
    for (let seq = 300; seq <= 600; seq++) chats.entry(message(seq));
    assert.deepEqual([chat.lines.length, chat.lines.at(-1).seq], [300, 600]);
});

test("pushes are notices; a later one with the same key replaces the one before", () => {
    const chats = new Chats();
    const push = (seq, body, collapseKey = "") => ({
        type: "push",
        seq,
        time: seq,
        push: { id: `p${seq}`, title: "Shop", body, collapseKey },
    });
    for (const event of [push(1, "one", "order"), push(2, "two"), push(3, "three", "order")]) chats.entry(event);
    const chat = chats.get("uid 0");
    assert.deepEqual(texts(chat), ["Shop\ntwo", "Shop\nthree"]);
    assert.equal(chats.unread(chat), 2);
});

test("a push without words shows the kind and the size of its message, or its data", () => {
    const chats = new Chats();
    const push = (seq, fields) => ({ type: "push", seq, time: seq, push: { id: `p${seq}`, title: "", body: "", collapseKey: "", ...fields } });
    const shown = (fields) => chats.entry(push(chats.get("uid 0")?.lines.length ?? 0, fields))[0].lines.at(-1).content;
    const message = { messageType: "shop.Shipped", messageBytes: "AAECAw==" };
    assert.deepEqual(shown(message), { typed: { type: "shop.Shipped", bytes: 4 } });
    assert.deepEqual(shown({ messageType: "shop.Ping", messageBytes: "" }), { typed: { type: "shop.Ping", bytes: 0 } });
    assert.deepEqual(shown({ ...message, body: "on its way" }), { text: "on its way", typed: { type: "shop.Shipped", bytes: 4 } });
    assert.deepEqual(shown({ dataJson: '{"order":7}' }), { data: '{"order":7}' });
});

test("a group that ends, or that the user leaves, is over", () => {
    const chats = new Chats();
    chats.me = 1;
    const group = { id: 9, name: "g" };
    const change = (kind, uids = []) => ({ type: "group", seq: 1, time: 1, group: { kind, uids, group } });
    chats.entry(change("created"));
    assert.equal(chats.get("group 9").isOver, false);
    chats.entry(change("members_removed", [2]));
    assert.equal(chats.get("group 9").isOver, false);
    chats.entry(change("members_removed", [1]));
    assert.equal(chats.get("group 9").isOver, true);
});

test("a message costs the same to store, however many there are", () => {
    const [chats, store] = [new Chats(), new Map()];
    const text = "x".repeat(10_000);
    for (let seq = 1; seq <= 1000; seq++) {
        const records = keep(store, chats, chats.entry(message(seq, { content: { text } })));
        // The conversation, the message, and the ones that had to go for it.
        assert.ok(records.length <= 3, `${records.length} records`);
        assert.ok(JSON.stringify(records).length < 12_000);
    }
    const sizes = [...store].map(([, value]) => JSON.stringify(value).length);
    assert.ok(sizes.reduce((sum, size) => sum + size, 0) < 1_100_000);
    const again = load(store).get("uid 7");
    assert.deepEqual(texts(again), texts(chats.get("uid 7")));
    assert.deepEqual([again.lines.at(-1).seq, again.lines.length], [1000, 98]);
});

test("what many strangers write is bounded, too; the newest message of each conversation stays", () => {
    const [chats, store] = [new Chats(), new Map()];
    const text = "x".repeat(10_000);
    for (let seq = 1; seq <= 1000; seq++) {
        const uid = 100 + (seq % 20);
        const extra = { conversation: { uid, groupId: null }, fromUid: uid, content: { text } };
        keep(store, chats, chats.entry(message(seq, extra)));
    }
    const all = chats.all;
    assert.equal(all.length, 20);
    assert.ok(all.every((chat) => chat.lines.length >= 1));
    assert.ok(all.reduce((sum, chat) => sum + chat.size, 0) <= 4_000_000);
    assert.equal(all[0].lines.at(-1).seq, 1000);
    assert.equal([...store.keys()].filter((key) => key.startsWith("line/")).length, all.flatMap((chat) => chat.lines).length);
});

test("what could not be stored is stored with the next change", () => {
    const [chats, store] = [new Chats(), new Map()];
    const records = chats.takeRecords(chats.entry(message(1)));
    chats.giveBack(records);
    keep(store, chats, chats.entry(message(2)));
    assert.deepEqual(texts(load(store).get("uid 7")), ["1", "2"]);
    assert.deepEqual(keep(store, chats, []), []);
});

test("records in which a conversation held its messages are taken over", () => {
    const { key, revision, size, ...line } = { ...load([]).message(message(5).message).lines[0] };
    const old = { key: "uid 7", to: { uid: 7 }, title: "bob", lines: [line], markedUpTo: 4, readUpTo: 0, lastSeq: 5, isOver: false };
    const store = new Map([["chat/uid 7", old]]);
    const chats = load(store);
    assert.equal(chats.unread(chats.get("uid 7")), 1);
    keep(store, chats, [chats.get("uid 7")]);
    assert.equal(store.get("chat/uid 7").lines, undefined);
    assert.deepEqual(texts(load(store).get("uid 7")), ["5"]);
});

test("the history beyond what is kept is held, and not stored", () => {
    const [chats, store] = [new Chats(), new Map()];
    for (let seq = 1000; seq <= 1299; seq++) keep(store, chats, chats.entry(message(seq)));
    const chat = chats.get("uid 7");
    const older = (first) => Array.from({ length: 50 }, (_, index) => message(first + index).message);
    chats.history(chat, older(950));
    chats.history(chat, older(900));
    assert.deepEqual([chat.lines.length, chat.earlier.length, chat.earlier[0].seq], [300, 100, 900]);
    assert.deepEqual(keep(store, chats, []), []);
    chats.entry({ type: "recalled", recalled: { conversation: { uid: 7 }, messageId: "m910" } });
    assert.equal(chat.earlier[10].recalled, true);
    // What leaves the newest ones meanwhile leaves no hole.
    keep(store, chats, chats.entry(message(1300)));
    assert.deepEqual([chat.earlier.at(-1).seq, chat.lines[0].seq], [1000, 1001]);
    for (let first = 850; !chats.isFull(chat); first -= 50) chats.history(chat, older(first));
    assert.ok(chat.earlier.length <= 1000);
});
