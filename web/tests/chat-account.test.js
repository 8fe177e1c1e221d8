// Hermes
// SPDX-License-Identifier: Apache-2.0

// One account of the chat, with a client and a store of the test's own.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { ErrorCode, HermesError } from "../errors.js";

const storage = { getItem: () => "en", setItem() {} };
for (const [name, value] of Object.entries({
    location: { search: "", origin: "http://test" },
    localStorage: storage,
    sessionStorage: storage,
})) {
    Object.defineProperty(globalThis, name, { value, configurable: true });
}
const { Account } = await import("../chat/account.js");

/** @type {any[]} */
const opened = [];
after(() => Promise.all(opened.map((account) => account.close())));

const session = { uid: 1, nickName: "ann" };
/** Until all that can go on has gone on. */
const settled = async () => {
    for (let count = 0; count < 20; count += 1) await Promise.resolve();
};

/**
 * An account whose client answers as `answers` says.
 *
 * @param {Record<string, (...parameters: any[]) => any>} answers
 * @param {Map<string, any>} records What its store holds.
 */
function open(answers, records = new Map()) {
    /** @type {Record<string, (value: any) => void>} */
    const handlers = {};
    const client = {
        session: null,
        outbox: { entries: () => [] },
        on: (/** @type {string} */ name, /** @type {any} */ handler) => (handlers[name] = handler),
        contacts: async () => ({ contacts: [], more: false }),
        groups: async () => ({ groups: [], more: false }),
        markRead: async () => {},
        watchPresence: async () => [],
        close: async () => {},
        ...answers,
    };
    const store = {
        async write(/** @type {[string, any][]} */ changes) {
            for (const [key, value] of changes) {
                if (value === undefined) records.delete(key);
                else records.set(key, value);
            }
        },
        close() {},
    };
    const name = `test ${opened.length}`;
    const account = new Account(/** @type {any} */ (client), /** @type {any} */ (store), new Map(records), name, "ann");
    opened.push(account);
    return { account, handlers, records };
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
    // The page was closed before the server came back.
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

test("all groups are asked for, however many there are", async () => {
    const all = Array.from({ length: 1203 }, (_, index) => ({ id: 10 + index, name: `group ${index}` }));
    const groups = async (/** @type {any} */ { afterGroupId, limit }) => {
        const rest = all.filter((group) => group.id > afterGroupId);
        return { groups: rest.slice(0, limit), more: rest.length > limit };
    };
    const { account, handlers } = open({ groups });
    handlers.session(session);
    await settled();
    await settled();
    assert.equal(account.chats.all.filter((chat) => "groupId" in chat.to).length, 1203);
});
