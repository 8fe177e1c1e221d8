// Hermes
// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { test } from "node:test";
import { Chats } from "../chat/model.js";

const load = (store) => new Chats(store);
/** Stores the records of a change. */
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

const summary = (lastSeq, unread, extra = {}) => ({
    conversation: { uid: 7, groupId: null },
    name: "bob",
    lastSeq,
    lastMessageAtMs: lastSeq,
    readSeq: lastSeq - unread,
    unread,
    ...extra,
});

test("a new device shows what the server has counted, and counts on as entries come, each once", () => {
    const chats = new Chats();
    chats.me = 1;
    const [chat] = chats.listed([summary(10, 3)]);
    assert.deepEqual([chat.title, chat.lastSeq, chat.markedUpTo, chats.unread(chat)], ["bob", 10, 7, 3]);
    assert.deepEqual(chats.listed([summary(10, 3)]), [], "nothing changed");
    chats.entry(message(11));
    assert.equal(chats.unread(chat), 4);
    chats.entry(message(11));
    assert.equal(chats.unread(chat), 4);
    // The message is from the history or late, and was already counted.
    chats.history(chat, [message(10).message]);
    assert.equal(chats.unread(chat), 4);
    // The list of the next login counts the messages that have arrived since then.
    chats.listed([summary(11, 4, { readSeq: 7 })]);
    assert.equal(chats.unread(chat), 4);
    chats.entry(message(12, { own: true, fromUid: 1 }));
    assert.equal(chats.unread(chat), 4);
});

test("an entry that comes after the list that counted it is not counted twice", () => {
    const chats = new Chats();
    chats.me = 1;
    for (const seq of [1, 2]) chats.entry(message(seq));
    const chat = chats.get("uid 7");
    chats.marked(chat, 2);
    // While the page was closed, four more messages arrived, including one of the user's own.
    chats.listed([summary(6, 3, { readSeq: 2 })]);
    assert.equal(chats.unread(chat), 3);
    for (const seq of [3, 4, 5]) chats.entry(message(seq));
    assert.equal(chats.unread(chat), 3);
    chats.entry(message(6, { own: true, fromUid: 1 }));
    assert.equal(chats.unread(chat), 3);
    // When all messages are here, they are counted one by one.
    chats.entry({ type: "recalled", recalled: { conversation: { uid: 7 }, messageId: "m4" } });
    assert.deepEqual([chats.unread(chat), chats.isCounted(chat.key)], [2, false]);
});

test("a read mark of another device lowers what the server has counted, and what it leaves open is asked for", () => {
    const chats = new Chats();
    chats.me = 1;
    const [chat] = chats.listed([summary(10, 6)]);
    const mark = (uid, upToSeq) => ({ type: "readMark", readMark: { conversation: { uid: 7 }, uid, upToSeq } });
    assert.equal(chats.recounted(mark(7, 9)), "", "the other user's mark");
    chats.entry(mark(1, 8));
    assert.equal(chats.recounted(mark(1, 8)), "uid 7");
    assert.deepEqual([chats.unread(chat), chats.isCounted("uid 7")], [2, true], "two at most");
    chats.listed([summary(10, 1, { readSeq: 8 })]);
    assert.equal(chats.unread(chat), 1);
    chats.entry(message(11));
    chats.entry(mark(1, 10));
    assert.deepEqual([chats.unread(chat), chats.isCounted("uid 7")], [1, false]);
    chats.entry(mark(1, 11));
    assert.equal(chats.unread(chat), 0);
    // This list was made before the mark.
    chats.listed([summary(11, 4)]);
    assert.equal(chats.unread(chat), 0);
    assert.equal(chats.recounted(message(12)), "");
});

test("after the server lost messages its list decides, and those that it lost stay without their places", () => {
    const store = new Map();
    const chats = new Chats();
    chats.me = 1;
    for (let seq = 1; seq <= 10; seq += 1) chats.entry(message(seq));
    const known = chats.get("uid 7");
    chats.marked(known, 10);
    chats.entry({ type: "readMark", readMark: { conversation: { uid: 7 }, uid: 7, upToSeq: 10 } });
    keep(store, chats, chats.entry({ type: "inboxReset", seq: 0 }));
    // The page is loaded again before the list arrives. A message also arrives before the list.
    const next = load(store);
    next.me = 1;
    const chat = next.get("uid 7");
    next.entry(message(8, { id: "new 8", serverTimeMs: 11 }));
    assert.deepEqual(next.listed([summary(7, 0)]), [chat]);
    assert.deepEqual(next.unlisted([summary(7, 0)]), []);
    assert.deepEqual([next.unread(chat), chat.lastSeq, chat.markedUpTo, chat.readUpTo], [1, 8, 7, 8]);
    assert.deepEqual(chat.lines.map((line) => line.seq), [1, 2, 3, 4, 5, 6, 7, 0, 0, 0, 8]);
    next.entry(message(9, { id: "new 9", serverTimeMs: 12 }));
    assert.deepEqual([next.unread(chat), next.holes(chat)], [2, []]);
    assert.deepEqual(next.listed([summary(9, 2)]), [chat], "later lists count as always");
    next.marked(chat, 9);
    next.listed([summary(8, 1)]);
    assert.deepEqual([next.unread(chat), chat.lastSeq], [0, 9]);
});

test("a message that came with the seq of one that the server lost takes its place, before and after a reload", () => {
    for (const isMoved of [false, true]) {
        const [chats, store] = [new Chats(), new Map()];
        chats.me = 1;
        for (let seq = 1; seq <= 10; seq += 1) keep(store, chats, chats.entry(message(seq)));
        const chat = chats.get("uid 7");
        chats.marked(chat, 10);
        chats.entry({ type: "inboxReset", seq: 0 });
        // Other users have sent as many messages as the server has lost.
        chats.listed([summary(10, 3, { readSeq: 7 })]);
        const later = [8, 9, 10].map((seq) => message(seq, { id: `new ${seq}`, serverTimeMs: seq + 10 }));
        if (isMoved) chats.history(chat, later.map((event) => event.message));
        for (const event of later) keep(store, chats, chats.entry(event));
        for (const one of [chats, load(store)]) {
            const { lines } = one.get("uid 7");
            assert.deepEqual(lines.map((line) => line.seq), [1, 2, 3, 4, 5, 6, 7, 0, 0, 0, 8, 9, 10]);
            assert.deepEqual(lines.slice(-6).map((line) => line.id), ["m8", "m9", "m10", "new 8", "new 9", "new 10"]);
            assert.equal(one.unread(one.get("uid 7")), 3);
        }
    }
});

test("the history beyond what is kept has each seq once, too", () => {
    const chats = new Chats();
    for (let seq = 101; seq <= 400; seq += 1) chats.entry(message(seq));
    const chat = chats.get("uid 7");
    chats.history(chat, [message(99).message, message(100).message], 101);
    chats.history(chat, [message(100, { id: "new 100", serverTimeMs: 401 }).message], 101);
    assert.deepEqual(chat.earlier.map((line) => [line.id, line.seq]), [["m99", 99], ["m100", 0], ["new 100", 100]]);
});

test("a conversation that a server has lost begins anew, and so do the notices", () => {
    const chats = new Chats();
    chats.me = 1;
    const push = (seq) => ({ type: "push", push: { id: `p${seq}`, title: "t", body: "", collapseKey: "" }, seq, time: seq });
    for (const event of [message(1), message(2), push(20)]) for (const chat of chats.entry(event)) chats.marked(chat, 20);
    chats.entry({ type: "inboxReset", seq: 0 });
    assert.equal(chats.unlisted([]).length, 2);
    assert.deepEqual(chats.all.map((chat) => chats.unread(chat)), [0, 0]);
    chats.entry(message(1, { id: "new", serverTimeMs: 3 }));
    chats.entry({ ...push(18), time: 21 });
    assert.deepEqual(chats.all.map((chat) => [chats.unread(chat), chat.lines.length]), [[1, 2], [1, 3]]);
    assert.deepEqual(chats.unlisted([]), []);
});

test("conversations of the list are in the order of their last messages, and are kept with what is unread", () => {
    const [chats, store] = [new Chats(), new Map()];
    const group = { conversation: { uid: null, groupId: 9 }, name: "climbers" };
    const silent = { conversation: { uid: null, groupId: 4 }, name: "silent" };
    keep(store, chats, chats.listed([summary(10, 3), summary(20, 2, group), summary(0, 0, silent)]));
    chats.entry(message(15, { conversation: { uid: 8, groupId: null }, fromUid: 8 }));
    assert.deepEqual(chats.all.map((chat) => chat.key), ["group 9", "uid 8", "uid 7", "group 4"]);
    const again = load(store);
    assert.deepEqual(again.all.map((chat) => [chat.title, again.unread(chat)]), [["climbers", 2], ["bob", 3], ["silent", 0]]);
    chats.listed([summary(10, 3, { name: "robert" }), summary(10, 3, { name: "" })]);
    assert.equal(chats.get("uid 7").title, "robert");
});

test("a conversation is bare until there is more than its last message, and all that is unread", () => {
    const chats = new Chats();
    const [chat] = chats.listed([summary(3, 3)]);
    assert.equal(chats.isBare(chat), true);
    for (const seq of [3, 2]) chats.history(chat, [message(seq).message]);
    assert.equal(chats.isBare(chat), true);
    chats.history(chat, [message(1).message]);
    assert.equal(chats.isBare(chat), false);
    chats.entry({ type: "push", seq: 9, time: 9, push: { id: "p", title: "t", body: "b", collapseKey: "" } });
    assert.equal(chats.isBare(chats.get("uid 0")), false, "no history has the notices");
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
        // The records of the conversation, of the message, and of the messages that were removed to make room.
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
    // A message that leaves the newest messages in the meantime leaves no hole.
    keep(store, chats, chats.entry(message(1300)));
    assert.deepEqual([chat.earlier.at(-1).seq, chat.lines[0].seq], [1000, 1001]);
    for (let first = 850; !chats.isFull(chat); first -= 50) chats.history(chat, older(first));
    assert.ok(chat.earlier.length <= 1000);
});

test("a message that failed keeps the reason, over a reload, until it is sent again", () => {
    const store = new Map();
    const chats = load(store);
    chats.me = 1;
    const entry = { clientId: "c1", conversation: { uid: 7 }, content: { text: "hi" }, queuedAt: 5, receipt: null };
    const error = { code: 2003, message: "this account does not accept anything from you" };
    const chat = chats.outbox({ ...entry, status: "failed", error });
    assert.deepEqual(chat.lines[0].error, error);
    const { revision } = chat.lines[0];
    keep(store, chats, [chat]);
    assert.deepEqual(load(store).get("uid 7").lines[0].error, error);
    chats.outbox({ ...entry, status: "queued", error: null });
    assert.equal(chat.lines[0].error, null);
    assert.ok(chat.lines[0].revision > revision);
});

test("nothing comes before the first message, nor before the notices", () => {
    const chats = new Chats();
    chats.me = 1;
    const chat = chats.open({ uid: 7 });
    assert.equal(chats.isWhole(chat), true, "there is none");
    chats.entry(message(3));
    assert.equal(chats.isWhole(chat), false);
    chats.history(chat, [message(1).message, message(2).message]);
    assert.equal(chats.isWhole(chat), true);
    chats.listed([summary(9, 1, { conversation: { uid: 8, groupId: null } })]);
    assert.equal(chats.isWhole(chats.get("uid 8")), false);
    const push = { id: "p", title: "news", body: "", collapseKey: "", messageType: "", messageBytes: "", dataJson: "" };
    chats.entry({ type: "push", push, seq: 40, time: 1 });
    assert.equal(chats.isWhole(chats.get("uid 0")), true);
});

test("a group's notice keeps whom it is about, five at most", () => {
    const chats = new Chats();
    chats.me = 1;
    const group = { kind: "members_added", group: { id: 9, name: "climbers" }, byUid: 2, uids: [3, 4, 5, 6, 7, 8] };
    chats.entry({ type: "group", group, seq: 4, time: 1 });
    assert.deepEqual(chats.get("group 9").lines[0].people, { uids: [3, 4, 5, 6, 7], more: 1, by: 2 });
});

test("messages that are missing between others are a hole, which the history fills", () => {
    const [chats, store] = [new Chats(), new Map()];
    for (let seq = 1; seq <= 100; seq++) chats.entry(message(seq));
    const chat = chats.get("uid 7");
    assert.deepEqual([chats.holes(chat), chats.placeOf(chat), chats.isWhole(chat), chats.isBare(chat)], [[], 1, true, false]);
    // Messages after the last known message may still arrive.
    chats.listed([summary(500, 0)]);
    assert.deepEqual([chats.holes(chat), chats.placeOf(chat)], [[], 1]);
    chats.entry({ type: "gap", seq: 9, gap: { fromSeq: 1, toSeq: 9 } });
    chats.entry(message(501));
    assert.deepEqual([chats.placeOf(chat), chats.isWhole(chat), chats.isBare(chat)], [501, false, true]);
    const page = (before) => Array.from({ length: 50 }, (_, index) => message(before - 50 + index).message);
    for (let before = 501; before > 101; before -= 50) {
        assert.equal(chats.placeOf(chat), before);
        chats.history(chat, page(before), before, true);
    }
    assert.deepEqual(chats.holes(chat), []);
    const seqs = [...chat.earlier, ...chat.lines].map((line) => line.seq);
    assert.deepEqual(seqs, [...seqs].sort((a, b) => a - b));
    assert.ok(chat.lines.length <= 300);
    keep(store, chats, [chat]);
    assert.equal(store.get("chat/uid 7").asked, undefined);
});

test("a hole that the server cannot fill is asked for once while the conversation is open", () => {
    const chats = new Chats();
    for (const seq of [1, 2, 10, 20]) chats.entry(message(seq));
    const chat = chats.get("uid 7");
    assert.deepEqual(chats.holes(chat), [{ after: 10, before: 20 }, { after: 2, before: 10 }]);
    // The answer also shows that there is nothing between its messages.
    chats.history(chat, [message(15), message(18)].map((entry) => entry.message), 20, true);
    assert.deepEqual(chats.placeOf(chat), 15);
    chats.history(chat, [message(2), message(10)].map((entry) => entry.message), 15, true);
    assert.deepEqual([chats.placeOf(chat), chats.isWhole(chat)], [1, true]);
    assert.deepEqual(chats.holes(chat).map(({ before }) => before), [20, 18, 15, 10]);
    // After the conversation is opened again, the messages are requested again.
    chats.left(chat);
    assert.deepEqual([chats.placeOf(chat), chats.isBare(chat)], [20, true]);
    chats.history(chat, [], 20, false);
    assert.equal(chats.placeOf(chat), 18);
});

test("notices have no holes", () => {
    const chats = new Chats();
    const push = (seq) => ({ type: "push", seq, time: seq, push: { id: `p${seq}`, title: "t", body: "b", collapseKey: "" } });
    for (const seq of [1, 7]) chats.entry(push(seq));
    assert.deepEqual(chats.holes(chats.get("uid 0")), []);
});
