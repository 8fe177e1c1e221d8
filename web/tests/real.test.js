// Hermes
// SPDX-License-Identifier: Apache-2.0

// Tests clients with a real server. HERMES_BIN is the path of the server's program.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { HermesClient, MemoryStore, standardPolicy } from "./sdk.js";
import { WebSocket } from "../node-websocket.js";
import { program, RealServer } from "./real-server.js";

const soon = { ...standardPolicy, windows: Array(500).fill(100), maxAdvisedWindow: 200 };

const next = (client, name, fits) =>
    new Promise((resolve) => {
        const remove = client.on(name, (event) => {
            if (!fits(event)) return;
            remove();
            resolve(event);
        });
    });
/** Waits for an entry. Other entries are taken, too. */
const entry = (client, type, fits = () => true) => next(client, "entry", (event) => event.type === type && fits(event));

describe("a real server", { skip: program ? false : "HERMES_BIN is not set", timeout: 180_000 }, () => {
    let server;
    let clients = [];
    before(async () => {
        server = await RealServer.start({
            "store.historyDays": 7,
            "limits.registrationsPerHour": 1000,
        });
    });
    after(async () => {
        for (const client of clients) await client.close();
        await server?.stop();
    });

    async function join(nickName, options = {}) {
        const store = new MemoryStore();
        const client = await HermesClient.open({ server: server.url, store, WebSocket, reconnect: soon, ...options });
        clients.push(client);
        // An entry is taken even if a test does not wait for it.
        client.on("entry", () => {});
        const session = await client.register({ nickName, password: "a secret" });
        assert.equal(session.nickName, nickName);
        return client;
    }

    test("two people chat: contacts, messages, read marks, recalls, typing, presence, history", async () => {
        const [ann, bob] = [await join("ann"), await join("bob")];
        const [annUid, bobUid] = [ann.session.uid, bob.session.uid];
        assert.equal((await ann.account({ nickName: "BOB" })).uid, bobUid);

        const asked = entry(bob, "contact");
        await ann.requestContact(bobUid, "it's me");
        const request = { kind: "requested", uid: annUid, nickName: "ann", message: "it's me" };
        assert.deepEqual((await asked).contact, request);
        const accepted = entry(ann, "contact");
        await bob.answerContact(annUid, true);
        assert.equal((await accepted).contact.kind, "accepted");
        assert.equal((await ann.contacts()).contacts[0].state, "accepted");

        const arrived = entry(bob, "message");
        const receipt = await ann.send("hello, Bob — 你好", { uid: bobUid });
        const { message } = await arrived;
        assert.equal(message.content.text, "hello, Bob — 你好");
        assert.deepEqual(message.conversation, { uid: annUid, groupId: null });
        assert.equal(message.id, receipt.messageId);

        const kinds = [
            { image: { url: "https://example.org/a.png", width: 3, height: 4 } },
            { location: { latitude: 48.2, longitude: 16.37, label: "Wien" } },
            { custom: { type: "app/poll", data: btoa("yes or no") } },
            { text: "bold", attributes: { style: "bold" } },
        ];
        for (const content of kinds) {
            const next = entry(bob, "message");
            await ann.send(content, { uid: bobUid });
            const got = (await next).message.content;
            for (const key of Object.keys(content)) assert.deepEqual(got[key], content[key]);
        }

        const read = entry(ann, "readMark");
        await bob.markRead({ uid: annUid }, message.conversationSeq);
        assert.deepEqual((await read).readMark, {
            conversation: { uid: bobUid, groupId: null },
            uid: bobUid,
            upToSeq: message.conversationSeq,
        });

        const recalled = entry(bob, "recalled");
        await ann.recall({ uid: bobUid }, message.id);
        assert.equal((await recalled).recalled.messageId, message.id);

        const typing = next(bob, "typing", () => true);
        ann.setTyping({ uid: bobUid });
        assert.equal((await typing).uid, annUid);

        assert.deepEqual((await ann.watchPresence([bobUid]))[0].isOnline, true);
        const gone = next(ann, "presence", (presence) => !presence.isOnline);
        await bob.close();
        assert.equal((await gone).uid, bobUid);

        const history = await ann.history({ uid: bobUid });
        assert.equal(history.messages.at(-1).content.text, "bold");
        assert.ok(await ann.ping() >= 0);
    });

    test("a new device sees the conversations and what is unread in them, and what another device reads", async () => {
        const [joe, kim, lee] = [await join("joe"), await join("kim"), await join("lee")];
        for (const text of ["1", "2", "3"]) await kim.send(text, { uid: joe.session.uid });
        await joe.send("hello", { uid: lee.session.uid });
        const group = await kim.createGroup("walkers", [joe.session.uid]);
        await kim.send("hi all", { groupId: group.id });
        const second = await HermesClient.open({ server: server.url, store: new MemoryStore(), WebSocket });
        clients.push(second);
        second.on("entry", () => {});
        await second.logIn({ nickName: "joe", password: "a secret" });
        const list = async (options) => {
            const { conversations, more } = await second.conversations(options);
            return { all: conversations.map((one) => `${one.name} ${one.unread} of ${one.lastSeq}`), more, last: conversations.at(-1) };
        };
        const { all, more } = await list();
        assert.deepEqual([all, more], [["kim 3 of 3", "lee 0 of 1", "walkers 1 of 1"], false]);
        const found = [];
        for (let page = await list({ limit: 1 }); page.last; page = await list({ after: page.last.conversation, limit: 1 })) {
            found.push(...page.all);
        }
        assert.deepEqual(found, all);
        const marked = entry(second, "readMark");
        await joe.markRead({ uid: kim.session.uid }, 2);
        assert.equal((await marked).readMark.uid, joe.session.uid);
        assert.equal((await list({ limit: 1 })).all[0], "kim 1 of 3");
        await assert.rejects(second.conversations({ after: { uid: 2 ** 31 } }), { code: 2001 });
    });

    test("a group and a room", async () => {
        const [cat, dan, eve] = [await join("cat"), await join("dan"), await join("eve")];
        const created = entry(dan, "group");
        const group = await cat.createGroup("climbers", [dan.session.uid]);
        assert.equal((await created).group.group.name, "climbers");
        const arrived = entry(dan, "message");
        await cat.send("hi all", { groupId: group.id });
        assert.deepEqual((await arrived).message.conversation, { uid: null, groupId: group.id });
        await cat.changeMembers(group.id, { addUids: [eve.session.uid] });
        const { members } = await cat.group(group.id);
        assert.deepEqual(members.map((member) => member.nickName).sort(), ["cat", "dan", "eve"]);
        await assert.rejects(dan.dissolveGroup(group.id), { code: 2003 });

        assert.equal(await cat.enterRoom("lobby", { name: "Cat" }), 1);
        await dan.enterRoom("lobby", { name: "Dan" });
        const said = next(dan, "room", (event) => event.text);
        await cat.sayInRoom("lobby", "hi room");
        const event = await said;
        assert.deepEqual([event.text.text, event.user.name, event.uid], ["hi room", "Cat", cat.session.uid]);
    });

    test("errors are those of the catalogue, and a device can be removed by another", async () => {
        const fay = await join("fay");
        await assert.rejects(join("fay"), { code: 1006 });
        const second = await HermesClient.open({ server: server.url, store: new MemoryStore(), WebSocket });
        clients.push(second);
        await assert.rejects(second.logIn({ nickName: "fay", password: "wrong one" }), { code: 1003 });
        await second.logIn({ nickName: "fay", password: "a secret" });
        const other = (await fay.devices()).find((device) => !device.isCurrent);
        const stopped = next(second, "state", (state) => state.is === "stopped");
        await fay.removeDevice(other.id);
        assert.equal((await stopped).error.code, 107);
        assert.equal(second.canResume, false);
    });

    test("the server is killed and started again under 1,000 messages: each once, in order", async () => {
        const outboxLimits = { maxEntries: 2000, maxBytes: 4_000_000, maxSending: 16 };
        const [gus, ida] = [await join("gus", { outboxLimits }), await join("ida")];
        const got = [];
        const resets = [];
        ida.on("entry", (event) => {
            if (event.type === "message") got.push(event.message.content.text);
            if (event.type === "inboxReset" || event.type === "gap") resets.push(event);
        });
        const failed = [];
        gus.on("outbox", (sent) => sent.status === "failed" && failed.push(sent.error));
        const all = next(ida, "entry", () => got.length >= 1000);
        const wanted = Array.from({ length: 1000 }, (_, index) => `message ${index}`);
        const kills = [150, 400, 700];
        const sending = (async () => {
            for (const text of wanted) await gus.outbox.send(text, { uid: ida.session.uid });
        })();
        for (const count of kills) {
            await next(ida, "entry", () => got.length >= count);
            await server.kill();
            await server.restart();
        }
        await sending;
        await all;
        assert.deepEqual(failed, []);
        assert.deepEqual(got, wanted);
        assert.deepEqual(resets, []);
    });
});
