// Hermes
// SPDX-License-Identifier: Apache-2.0

// The texts of the chat for times, errors and notices.
import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { test } from "node:test";

Object.defineProperty(globalThis, "localStorage", { value: { getItem: () => "en", setItem() {} }, configurable: true });
Object.defineProperty(globalThis, "document", { value: { documentElement: { lang: "en-GB" } }, configurable: true });
const { attempt, dayText, timeText } = await import("../chat/dom.js");
const { wordsOfError } = await import("../chat/errors.js");
const { noteText, recallLeft } = await import("../chat/lines.js");
const { ErrorCode, HermesError } = await import("../errors.js");

test("a time has its day unless it is today, and its year unless it is this one", () => {
    const now = new Date(2026, 2, 5, 12).getTime();
    const at = (...parts) => new Date(...parts).getTime();
    assert.equal(timeText(at(2026, 2, 5, 9, 7), now), "09:07");
    assert.equal(timeText(at(2026, 2, 4, 9, 7), now), "4 Mar, 09:07");
    assert.equal(timeText(at(2025, 2, 5, 9, 7), now), "5 Mar 2025, 09:07");
    assert.equal(dayText(at(2026, 2, 5, 9, 7), now), "09:07");
    assert.equal(dayText(at(2026, 2, 4, 9, 7), now), "4 Mar");
    assert.equal(dayText(at(2025, 2, 5, 9, 7), now), "5 Mar 2025");
});

test("errors have words in the page's language, by their numbers, and else the server's", () => {
    const muted = { code: 2003, message: "you may not send to this group yet" };
    assert.equal(wordsOfError(muted, false), "you may not send to this group yet [2003]");
    assert.equal(wordsOfError(muted, true), "你在此群组中已被禁言，暂时不能发言。 [2003]");
    assert.equal(wordsOfError({ code: 2003, message: "another reason" }, true), "你没有权限进行此操作。 [2003]");
    assert.equal(wordsOfError({ code: 1003, message: "wrong" }, false), "The name or the password is wrong. [1003]");
    assert.equal(wordsOfError({ code: 2001, message: "the name $& is long" }, true), "填写的内容无效（the name $& is long）。 [2001]");
    assert.equal(wordsOfError({ code: 7777, message: "of a newer server" }, true), "of a newer server [7777]");
    assert.equal(wordsOfError(new Error("a fault of the page"), true), "a fault of the page");
    // Every named error of the SDK.
    const inChinese = (code) => /^[\u3000-\u9fff\uff00-\uffef]/.test(wordsOfError({ code, message: "" }, true));
    assert.deepEqual(Object.values(ErrorCode).filter((code) => !inChinese(code)), []);
});

test("an action that fails shows why", async () => {
    const place = { textContent: "before" };
    assert.equal(await attempt(place, async () => {}), true);
    assert.equal(place.textContent, "");
    const failure = async () => Promise.reject(new HermesError(1003, "no"));
    assert.equal(await attempt(place, failure), false);
    assert.equal(place.textContent, "The name or the password is wrong. [1003]");
    await attempt(place, failure, ({ code }) => `${code} in other words`);
    assert.equal(place.textContent, "1003 in other words");
});

test("each sentence that the chat translates is one that the server says", async () => {
    const page = await readFile(new URL("../chat/errors.js", import.meta.url), "utf8");
    const sentences = [...page.matchAll(/^ {4}"([^"]+)": /gm)].map((match) => match[1]);
    assert.ok(sentences.length > 5);
    const sources = new URL("../../Sources/", import.meta.url);
    const files = (await readdir(sources, { recursive: true })).filter((file) => /^Hermes(Core|Gateways).*swift$/.test(file));
    const said = await Promise.all(files.map((file) => readFile(new URL(file, sources), "utf8")));
    for (const sentence of sentences) {
        assert.ok(said.some((text) => text.includes(`"${sentence}"`)), sentence);
    }
});

test("a group's notice names who came or went", () => {
    const account = { nameOf: (uid) => ["", "ann", "bob", "cid"][uid] };
    const text = (note, people) => noteText({ note, people }, account);
    assert.equal(text("group_members_added", { uids: [2, 3], more: 0, by: 1 }), "bob, cid joined");
    assert.equal(text("group_members_added", { uids: [2, 3], more: 4, by: 1 }), "bob, cid and 4 more joined");
    assert.equal(text("group_members_removed", { uids: [3], more: 0, by: 3 }), "cid left");
    assert.equal(text("group_members_removed", { uids: [3], more: 0, by: 1 }), "Removed from the group: cid");
    assert.equal(text("group_created", { uids: [2], more: 0, by: 1 }), "The group was created");
    // A notice from an earlier version of the page.
    assert.equal(text("group_members_removed", undefined), "Members left");
});

test("a message can be recalled for two minutes", () => {
    const line = { own: true, seq: 3, recalled: false, time: 1000 };
    assert.deepEqual([1000, 120_999, 121_000, 500_000].map((now) => recallLeft(line, now)), [120_000, 1, 0, 0]);
    for (const other of [{ own: false }, { seq: 0 }, { recalled: true }]) assert.equal(recallLeft({ ...line, ...other }, 1000), 0);
});

test("the fields for names of accounts and groups take every name that the server allows", async () => {
    const text = (path) => readFile(new URL(`../../${path}`, import.meta.url), "utf8");
    const rules = ["Accounts/NickName.swift", "Groups/Group.swift"].map((path) => text(`Sources/HermesCore/${path}`));
    const bytes = /static let max(?:Name)?Bytes = (\d+)/;
    // A field counts UTF-16 units, and a text has at most as many UTF-16 units as bytes.
    const longest = Math.max(...(await Promise.all(rules)).map((source) => Number(source.match(bytes)[1])));
    const fields = [
        ["web/chat/login.js", "name", 1],
        ["web/chat/groups.js", "group", 2],
        ["web/room/room.js", "name", 1],
        ["web/console/groups.js", "text", 1],
        ["web/console/rooms.js", "name", 1],
    ];
    for (const [path, name, count] of fields) {
        const limits = [...(await text(path)).matchAll(/\bname: "(\w+)",.*?\bmaxlength: (\d+)/g)];
        const found = limits.filter((match) => match[1] === name).map((match) => Number(match[2]));
        assert.deepEqual(found, Array(count).fill(longest), path);
    }
});
