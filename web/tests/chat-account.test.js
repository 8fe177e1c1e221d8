// Hermes
// SPDX-License-Identifier: Apache-2.0

// One account of the chat, with a fake client and a fake store.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { ErrorCode, HermesError } from "../errors.js";
import { keepStorage, storage } from "./page-globals.js";

const { Account, accounts } = await import("../chat/account.js");

/** @type {any[]} */
const opened = [];
after(() => Promise.all(opened.map((account) => account.close())));

const session = { uid: 1, nickName: "ann" };
/** Waits until everything that can run has run. */
const settled = async () => {
    for (let count = 0; count < 20; count += 1) await Promise.resolve();
};

/**
 * Opens an account whose client answers with `answers`.
 *
 * @param {Record<string, (...parameters: any[]) => any>} answers
 * @param {Map<string, any>} records The content of the account's store.
 * @param {any} state The state of the connection.
 * @param {string} storedAs The name under which the stores are opened.
 */
function open(answers, records = new Map(), state = { is: "live" }, storedAs = "ann") {
    /** @type {Record<string, (value: any) => void>} */
    const handlers = {};
    const client = {
        session: null,
        state,
        outbox: { entries: () => [] },
        on: (/** @type {string} */ name, /** @type {any} */ handler) => (handlers[name] = handler),
        contacts: async () => ({ contacts: [], more: false }),
        conversations: async () => ({ conversations: [], more: false }),
        history: async () => ({ messages: [], more: false }),
        markRead: async () => {},
        watchPresence: async () => [],
        close: async () => {},
        ...answers,
    };
    const storeOf = (/** @type {Map<string, any>} */ kept) => ({
        load: async () => new Map(kept),
        async write(/** @type {[string, any][]} */ changes) {
            for (const [key, value] of changes) {
                if (value === undefined) kept.delete(key);
                else kept.set(key, value);
            }
        },
        close() {},
    });
    const name = `test ${opened.length}`;
    const clientRecords = new Map();
    const [store, clientStore] = [storeOf(records), storeOf(clientRecords)];
    const [one, its] = /** @type {any[]} */ ([client, store]);
    const account = new Account(one, its, new Map(records), name, storedAs, clientStore);
    opened.push(account);
    return { account, handlers, records, clientRecords, name };
}

const entry = (/** @type {number} */ seq) => ({
    type: "message",
    message: {
        id: `m${seq}`, conversation: { uid: 7 }, conversationSeq: seq, fromUid: 7, fromNickName: "bob", clientId: "",
        content: { text: `${seq}` }, serverTimeMs: seq, own: false, recalled: false,
    },
});

test("a read mark that the server did not get is sent again after the next login, and after a reload", async () => {
    /** @type {number[]} */
    const told = [];
    let isAway = true;
    const markRead = async (/** @type {any} */ to, /** @type {number} */ upToSeq) => {
        assert.deepEqual(to, { uid: 7 });
        if (isAway) throw new HermesError(ErrorCode.connectionLost, "away");
        told.push(upToSeq);
    };
    const { account, handlers, records } = open({ markRead });
    await handlers.entry(entry(3));
    const chat = account.chats.get("uid 7");
    account.markRead(chat);
    await settled();
    assert.deepEqual([account.chats.unread(chat), told], [0, []]);
    const kept = new Map(records);
    isAway = false;
    handlers.session(session);
    await settled();
    assert.deepEqual(told, [3]);
    handlers.session(session);
    await settled();
    assert.deepEqual(told, [3], "what the server got is not sent again");
    assert.ok(![...records.keys()].some((key) => key.startsWith("mark/")));
    // The page was closed before the server was available again.
    open({ markRead }, kept).handlers.session(session);
    await settled();
    assert.deepEqual(told, [3, 3]);
});

test("a read mark that the server delays is sent again when it says, and one that it refuses is not", async () => {
    /** @type {[() => void, number][]} */
    const timers = [];
    const real = globalThis.setTimeout;
    globalThis.setTimeout = /** @type {any} */ ((/** @type {any} */ action, /** @type {number} */ wait) => timers.push([action, wait]));
    after(() => (globalThis.setTimeout = real));
    const answers = [new HermesError(ErrorCode.rateLimited, "slower", 900), null, new HermesError(ErrorCode.forbidden, "no")];
    let calls = 0;
    const markRead = async () => {
        const error = answers[calls];
        calls += 1;
        if (error) throw error;
    };
    const { account, handlers, records } = open({ markRead });
    await handlers.entry(entry(1));
    const chat = account.chats.get("uid 7");
    account.markRead(chat);
    await settled();
    const [[again, wait]] = timers.splice(0);
    assert.deepEqual([calls, wait], [1, 900]);
    again();
    await settled();
    assert.equal(calls, 2);
    await handlers.entry(entry(2));
    account.markRead(chat);
    await settled();
    assert.deepEqual([calls, timers], [3, []]);
    globalThis.setTimeout = real;
    assert.ok(![...records.keys()].some((key) => key.startsWith("mark/")));
});

test("what is read while a mark is on its way is marked after it", async () => {
    /** @type {[number, () => void][]} */
    const calls = [];
    const markRead = (/** @type {any} */ _to, /** @type {number} */ upToSeq) =>
        new Promise((resolve) => calls.push([upToSeq, () => resolve(undefined)]));
    const { account, handlers } = open({ markRead });
    const chat = () => account.chats.get("uid 7");
    for (const seq of [1, 2, 3]) {
        await handlers.entry(entry(seq));
        account.markRead(chat());
    }
    assert.deepEqual(calls.map(([seq]) => seq), [1]);
    calls[0][1]();
    await settled();
    assert.deepEqual(calls.map(([seq]) => seq), [1, 3]);
    calls[1][1]();
    await settled();
    assert.equal(calls.length, 2);
});

/**
 * A server's list of conversations with accounts and groups, in the server's order.
 *
 * @param {any[]} all
 */
const pages = (all) => async (/** @type {any} */ { after, limit }) => {
    const place = (/** @type {any} */ { uid, groupId }) => (groupId ? 2 ** 31 + groupId : uid);
    const rest = all.filter(({ conversation }) => !after || place(conversation) > place(after));
    return { conversations: structuredClone(rest.slice(0, limit)), more: rest.length >= limit };
};
const listed = (/** @type {any} */ conversation, /** @type {number} */ unread, name = "bob") => ({
    conversation: { uid: null, groupId: null, ...conversation },
    name,
    lastSeq: 10,
    lastMessageAtMs: 1000,
    readSeq: 10 - unread,
    unread,
});

test("all conversations are asked for, however many there are", async () => {
    const people = Array.from({ length: 1000 }, (_, index) => listed({ uid: 10 + index }, 1, `person ${index}`));
    const groups = Array.from({ length: 1203 }, (_, index) => listed({ groupId: 10 + index }, 0, `group ${index}`));
    const { account, handlers } = open({ conversations: pages([...people, ...groups]) });
    handlers.session(session);
    await settled();
    await settled();
    const { chats } = account;
    assert.equal(chats.all.filter((chat) => "groupId" in chat.to).length, 1203);
    assert.equal(chats.all.reduce((sum, chat) => sum + chats.unread(chat), 0), 1000);
    assert.deepEqual([account.nameOf(1009), account.titleOf(chats.get("group 1212"))], ["person 999", "group 1202"]);
});

test("a new device fetches the last message of the newest conversations, until the server has none", async () => {
    const all = Array.from({ length: 50 }, (_, index) => ({ ...listed({ uid: 10 + index }, 2), lastMessageAtMs: index + 1 }));
    /** @type {number[]} */
    const asked = [];
    const history = async (/** @type {any} */ { uid }, /** @type {any} */ { limit }) => {
        asked.push(uid);
        assert.equal(limit, 1);
        const messages = uid > 50 ? [{ ...entry(10).message, id: `m${uid}`, conversation: { uid }, fromUid: uid }] : [];
        return { messages, more: true };
    };
    const { account, handlers } = open({ conversations: pages(all), history });
    handlers.session(session);
    await settled();
    await settled();
    await settled();
    assert.deepEqual(asked, [59, 58, 57, 56, 55, 54, 53, 52, 51, 50]);
    const chat = account.chats.get("uid 59");
    assert.deepEqual([chat.lines[0].content.text, account.chats.unread(chat)], ["10", 2]);
    // At the next login, only conversations without messages are requested, the newest first.
    handlers.session(session);
    await settled();
    assert.equal(asked.at(-1), 50);
});

test("what another device reads or recalls is counted again where the messages are not here, also during the list", async () => {
    const all = [listed({ uid: 1 }, 5), listed({ uid: 7 }, 5), listed({ groupId: 1 }, 5), listed({ groupId: 2 }, 5)];
    /** @type {any[]} */
    const asked = [];
    /** @type {() => any} */
    let release = () => {};
    const conversations = async (/** @type {any} */ options) => {
        asked.push(options);
        const page = await pages(all)(options);
        if (options.limit > 1) await new Promise((resolve) => (release = () => resolve(undefined)));
        return page;
    };
    const { account, handlers } = open({ conversations });
    const unread = () => account.chats.all.map((chat) => `${chat.key}: ${account.chats.unread(chat)}`).sort();
    handlers.session(session);
    await settled();
    // The list was made before this change.
    all[1].unread = 4;
    await handlers.entry({ type: "recalled", recalled: { conversation: { uid: 7 }, messageId: "m9", conversationSeq: 9, byUid: 7 } });
    release();
    await settled();
    assert.deepEqual(unread(), ["group 1: 5", "group 2: 5", "uid 1: 5", "uid 7: 4"]);
    assert.deepEqual(asked.slice(1), [{ after: { uid: 6 }, limit: 1 }]);
    for (const one of all) Object.assign(one, { unread: 1, readSeq: 8 });
    const mark = (/** @type {any} */ conversation, uid = 1) => ({ type: "readMark", readMark: { conversation, uid, upToSeq: 8 } });
    for (const { conversation } of all) await handlers.entry(mark(conversation));
    await handlers.entry(mark({ uid: 7 }, 7));
    await handlers.entry(mark({ uid: 99 }));
    await settled();
    assert.deepEqual(unread(), ["group 1: 1", "group 2: 1", "uid 1: 1", "uid 7: 1"]);
    assert.deepEqual(
        asked.slice(2).map(({ after }) => after),
        [null, { uid: 6 }, { uid: 2 ** 31 - 1 }, { groupId: 1 }],
    );
});

test("who logs out leaves nothing behind, without a server, too, and the other tabs learn of it", async () => {
    const { account, handlers, records, clientRecords, name } = open({ logOut: () => new Promise(() => {}) }, new Map(), { is: "waiting" });
    handlers.session(session);
    await handlers.entry(entry(1));
    clientRecords.set("account", { token: "secret" });
    assert.ok(records.size > 0);
    const other = new BroadcastChannel(`hermes-chat/${name}`);
    const told = new Promise((resolve) => (other.onmessage = ({ data }) => resolve(data)));
    let isPrepared = false;
    assert.equal(await account.leave(async () => void (isPrepared = true)), false);
    assert.deepEqual([isPrepared, records.size, clientRecords.size], [true, 0, 0]);
    assert.deepEqual(await told, { hasLeft: true });
    other.close();
    const { account: open1 } = open({ logOut: async () => {} }, new Map(), { is: "live" });
    assert.equal(await open1.leave(async () => {}), true);
});

test("the names of people who came to a group are asked for", async () => {
    const asked = [];
    const { account, handlers } = open({
        account: async ({ uid }) => {
            asked.push(uid);
            if (uid === 8) throw new HermesError(ErrorCode.notFound, "gone");
            return { uid, nickName: `person ${uid}` };
        },
    });
    handlers.session(session);
    const group = { kind: "members_added", group: { id: 9, name: "climbers" }, byUid: 1, uids: [1, 7, 8] };
    await handlers.entry({ type: "group", group, seq: 4, time: 1 });
    await settled();
    assert.deepEqual(asked, [7, 8]);
    assert.deepEqual([1, 7, 8].map((uid) => account.nameOf(uid)), ["ann", "person 7", "#8"]);
});

test("a tab that learns of a log-out after the next login stays", async () => {
    const real = storage.getItem;
    after(() => (storage.getItem = real));
    const { account, name } = open({});
    let count = 0;
    account.left = () => (count += 1);
    const other = new BroadcastChannel(`hermes-chat/${name}`);
    const tell = async () => {
        other.postMessage({ hasLeft: true });
        await new Promise((resolve) => setTimeout(resolve, 50));
    };
    storage.getItem = () => '["Ann"]';
    await tell();
    assert.equal(count, 0);
    // The other tab's change to localStorage arrives after its message.
    storage.getItem = () => "[]";
    await new Promise((resolve) => setTimeout(resolve, 200));
    assert.equal(count, 1);
    await tell();
    assert.equal(count, 1);
    other.close();
});

test("a name that another account has got by now brings nothing of the account before", async () => {
    const before = open({ markRead: async () => Promise.reject(new HermesError(ErrorCode.connectionLost, "away")) });
    before.handlers.session(session);
    await settled();
    await before.handlers.entry(entry(3));
    before.account.markRead(before.account.chats.get("uid 7"));
    await settled();
    assert.ok(before.records.size > 2);
    /** @type {number[]} */
    const told = [];
    const markRead = async (/** @type {any} */ _to, /** @type {number} */ upToSeq) => void told.push(upToSeq);
    const { account, handlers, records } = open({ markRead }, new Map(before.records));
    assert.equal(account.chats.all.length, 1);
    handlers.session({ uid: 2, nickName: "ann" });
    assert.equal(account.chats.all.length, 0);
    await settled();
    await handlers.entry(entry(1));
    await settled();
    assert.deepEqual(told, []);
    assert.deepEqual(account.chats.all.map((chat) => chat.lastSeq), [1]);
    assert.deepEqual(records.get("me"), { uid: 2, nickName: "ann" });
    assert.ok(![...records.keys()].some((key) => key.startsWith("mark/")));
    assert.ok(![...records.values()].some((value) => JSON.stringify(value)?.includes("m3")));
});

test("what could not be removed of the account before goes at the next start", async () => {
    const before = open({});
    before.handlers.session(session);
    await settled();
    await before.handlers.entry(entry(3));
    const broken = open({}, new Map(before.records));
    // The store cannot be loaded.
    broken.records[Symbol.iterator] = () => {
        throw new Error("no store");
    };
    broken.handlers.session({ uid: 2, nickName: "ann" });
    await settled();
    delete (/** @type {any} */ (broken.records)[Symbol.iterator]);
    assert.ok(broken.records.has("line/uid 7/m3"));
    const { account, handlers, records } = open({}, new Map(broken.records));
    handlers.session({ uid: 2, nickName: "ann" });
    await settled();
    assert.deepEqual(account.chats.all, []);
    assert.ok(!records.has("line/uid 7/m3"));
    assert.deepEqual(records.get("me"), { uid: 2, nickName: "ann" });
});

test("a name that another account has got by now does not show what the account before had not sent", async () => {
    const unsent = (/** @type {number} */ uid) => ({
        uid, clientId: `c${uid}`, conversation: { uid: 7 }, content: { text: `${uid}` }, queuedAt: 5, status: "queued",
    });
    let entries = [unsent(1), unsent(2)];
    const discard = async (/** @type {string} */ clientId) => {
        const gone = entries.find((one) => one.clientId === clientId);
        entries = entries.filter((one) => one !== gone);
        handlers.outbox({ ...gone, status: "discarded" });
    };
    const me = new Map([["me", { uid: 1, nickName: "ann" }]]);
    const { account, handlers } = open({ outbox: /** @type {any} */ ({ entries: () => entries, discard }) }, me);
    const texts = () => account.chats.all.flatMap((chat) => chat.lines.map((line) => line.content.text));
    assert.deepEqual([texts(), account.unsent], [["1"], 1]);
    handlers.session({ uid: 2, nickName: "ann" });
    await settled();
    assert.deepEqual([texts(), account.unsent, entries], [["2"], 1, [unsent(2)]]);
    handlers.outbox(unsent(1));
    assert.deepEqual(texts(), ["2"]);
});

test("an account is found again by the name of its stores, however the server writes it", async (context) => {
    keepStorage(context);
    const wide = open({ logOut: async () => {} }, new Map(), { is: "live" }, "ａｎｎ");
    wide.handlers.session(session);
    await settled();
    assert.deepEqual([wide.account.nickName, accounts.here, accounts.named(1)], ["ann", "ａｎｎ", "ａｎｎ"]);
    await wide.account.leave(async () => {});
    assert.deepEqual(accounts.all, []);
    const renamed = open({ logOut: async () => {} });
    renamed.handlers.session(session);
    renamed.handlers.session({ uid: 1, nickName: "anna" });
    await settled();
    assert.deepEqual([renamed.account.nickName, accounts.all, accounts.named(1)], ["anna", ["ann"], "ann"]);
    await renamed.account.leave(async () => {});
    assert.deepEqual(accounts.all, []);
});

test("a renamed account that another tab logs out leaves", async (context) => {
    keepStorage(context);
    const { account, handlers, name } = open({});
    handlers.session({ uid: 1, nickName: "anna" });
    const left = new Promise((resolve) => (account.left = () => resolve("left")));
    accounts.use("anna");
    accounts.forget("ann");
    const other = new BroadcastChannel(`hermes-chat/${name}`);
    other.postMessage({ hasLeft: true });
    assert.equal(await left, "left");
    other.close();
});

test("after the server lost messages its list decides what is read, and no older mark is sent", async () => {
    /** @type {number[]} */
    const told = [];
    let isAway = true;
    const markRead = async (/** @type {any} */ _to, /** @type {number} */ upToSeq) => {
        if (isAway) throw new HermesError(ErrorCode.connectionLost, "away");
        told.push(upToSeq);
    };
    let all = [{ ...listed({ uid: 7 }, 0), lastSeq: 3, readSeq: 3 }];
    const { account, handlers, records } = open({ markRead, conversations: (/** @type {any} */ options) => pages(all)(options) });
    handlers.session(session);
    for (const seq of [1, 2, 3]) await handlers.entry(entry(seq));
    await handlers.entry({ ...entry(1), message: { ...entry(1).message, id: "x", conversation: { uid: 8 }, fromUid: 8 } });
    await settled();
    for (const chat of account.chats.all) account.markRead(chat);
    await settled();
    isAway = false;
    // The list arrived before the event about the new inbox.
    all = [{ ...listed({ uid: 7 }, 0), lastSeq: 2, readSeq: 2 }];
    handlers.session(session);
    await handlers.entry({ type: "inboxReset", seq: 0, epoch: "2", time: 0 });
    await settled();
    assert.ok(![...records].some(([key, value]) => key.startsWith("mark/") || value.resetAt !== undefined));
    await handlers.entry({ ...entry(3), message: { ...entry(3).message, id: "y", serverTimeMs: 9 } });
    await handlers.entry({ ...entry(1), message: { ...entry(1).message, id: "z", conversation: { uid: 8 }, fromUid: 8, serverTimeMs: 9 } });
    const chats = [account.chats.get("uid 7"), account.chats.get("uid 8")];
    assert.deepEqual(chats.map((chat) => [chat.lastSeq, account.chats.unread(chat)]), [[3, 1], [1, 1]]);
    for (const chat of chats) account.markRead(chat);
    await settled();
    assert.deepEqual(told.slice(-2), [3, 1]);
});

test("marks from before the server lost messages are removed, although the store fails first", async () => {
    /** @type {number[]} */
    const told = [];
    const markRead = async (/** @type {any} */ _to, /** @type {number} */ upToSeq) => void told.push(upToSeq);
    const away = async () => Promise.reject(new HermesError(ErrorCode.connectionLost, "away"));
    const { account, handlers, records } = open({ markRead: away });
    handlers.session(session);
    await handlers.entry(entry(3));
    account.markRead(account.chats.get("uid 7"));
    await settled();
    assert.ok(records.has("mark/uid 7"));
    const remove = records.delete.bind(records);
    let failures = 1;
    records.delete = (key) => {
        if (key.startsWith("mark/") && failures-- > 0) throw new Error("no room");
        return remove(key);
    };
    const reset = { type: "inboxReset", seq: 0, epoch: "2", time: 0 };
    await assert.rejects(handlers.entry(reset), /no room/);
    await handlers.entry(reset);
    assert.ok(![...records.keys()].some((key) => key.startsWith("mark/")));
    open({ markRead }, new Map(records)).handlers.session(session);
    await settled();
    assert.deepEqual(told, []);
});

/**
 * A server's history that contains only these seqs.
 *
 * @param {number[]} seqs
 * @param {number[]} asked Gets the requested places.
 */
const historyOf = (seqs, asked) => async (/** @type {any} */ _to, /** @type {any} */ { beforeSeq, limit }) => {
    asked.push(beforeSeq);
    const older = seqs.filter((seq) => !beforeSeq || seq < beforeSeq);
    return { messages: older.slice(-limit).map((seq) => entry(seq).message), more: older.length > limit };
};
const range = (/** @type {number} */ from, /** @type {number} */ to) => Array.from({ length: to - from + 1 }, (_, index) => from + index);

test("what a browser missed for too long is fetched from the history, the newest first", async () => {
    /** @type {number[]} */
    const asked = [];
    const { account, handlers } = open({ history: historyOf(range(90, 501), asked) });
    for (const seq of range(1, 100)) await handlers.entry(entry(seq));
    await handlers.entry({ type: "gap", seq: 102, gap: {} });
    await handlers.entry(entry(501));
    const chat = account.chats.get("uid 7");
    while (account.chats.hole(chat)) assert.equal(await account.earlier(chat), true);
    // Then the 300 stored messages have no hole.
    assert.deepEqual(asked, [501, 451, 401, 351, 301, 251]);
    assert.ok([...chat.earlier, ...chat.lines].every((line, index, all) => !index || line.seq === all[index - 1].seq + 1));
});

test("a hole that the server cannot fill is asked for once, then what was before the oldest message", async () => {
    /** @type {number[]} */
    const asked = [];
    const { account, handlers } = open({ history: historyOf([], asked) });
    for (const seq of [5, 6, 9]) await handlers.entry(entry(seq));
    const chat = account.chats.get("uid 7");
    assert.equal(await account.earlier(chat), true, "there may be more before");
    assert.equal(await account.earlier(chat), false);
    assert.equal(await account.earlier(chat), false);
    assert.deepEqual(asked, [9, 5, 5]);
    assert.deepEqual(account.chats.holes(chat), [{ after: 6, before: 9 }]);
});

test("an answer that comes when the conversation was left makes no hole", async () => {
    /** @type {() => void} */
    let answer = () => {};
    const history = async (/** @type {any} */ to, /** @type {any} */ options) => {
        await new Promise((resolve) => (answer = () => resolve(undefined)));
        return historyOf(range(1, 1000), [])(to, options);
    };
    const { account, handlers } = open({ history });
    for (const seq of range(701, 1000)) await handlers.entry(entry(seq));
    const chat = account.chats.get("uid 7");
    const fetched = async () => {
        const earlier = account.earlier(chat);
        await settled();
        return { earlier, answered: answer };
    };
    const first = await fetched();
    first.answered();
    await first.earlier;
    assert.deepEqual([chat.earlier[0].seq, chat.earlier.length], [651, 50]);
    const second = await fetched();
    account.chats.left(chat);
    second.answered();
    assert.equal(await second.earlier, true);
    assert.deepEqual([chat.earlier, chat.lines[0].seq], [[], 701]);
});

test("the page says that the browser stores nothing, shows what came, and goes on when it does", async () => {
    const rejections = [];
    const note = (/** @type {any} */ error) => rejections.push(error);
    process.on("unhandledRejection", note);
    after(() => process.off("unhandledRejection", note));
    const full = new Error("no room");
    let isFull = true;
    const records = new Map();
    const set = records.set.bind(records);
    records.set = (key, value) => {
        if (isFull) throw full;
        return set(key, value);
    };
    const { account, handlers } = open({}, records);
    let count = 0;
    account.changed = () => (count += 1);
    handlers.session(session);
    await settled();
    assert.equal(account.storeError, full);
    await assert.rejects(handlers.entry(entry(1)), /no room/);
    assert.ok(count > 0);
    const chat = account.chats.get("uid 7");
    assert.equal(chat.lines.length, 1);
    account.markRead(chat);
    handlers.outbox({ clientId: "c", conversation: { uid: 7 }, content: { text: "own" }, queuedAt: 5, status: "queued" });
    await new Promise((resolve) => setTimeout(resolve));
    assert.deepEqual(rejections, []);
    isFull = false;
    await handlers.entry(entry(1));
    assert.equal(account.storeError, null);
    assert.ok(records.has("line/uid 7/m1"));
    handlers.storeError(full);
    assert.equal(account.storeError, full);
    await handlers.entry(entry(2));
    assert.equal(account.storeError, null);
});
