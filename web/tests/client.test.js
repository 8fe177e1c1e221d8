// Hermes
// SPDX-License-Identifier: Apache-2.0

// The client against a server whose answers the test writes.
import assert from "node:assert/strict";
import { mkdir, mkdtemp, open as openFile, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import { HermesClient, MemoryStore, standardPolicy } from "./sdk.js";
import { FileStore } from "../node-store.js";
import { encodeFrame, WebSocket } from "../node-websocket.js";
import { RequestTable } from "../requests.js";
import { FakeServer } from "./fake-server.js";

const soon = { ...standardPolicy, windows: Array(50).fill(5) };
let server;
let clients = [];
beforeEach(async () => (server = await FakeServer.start()));
afterEach(async () => {
    for (const client of clients) await client.close();
    clients = [];
    server.stop();
});

async function open(options = {}) {
    const store = options.store ?? new MemoryStore();
    const client = await HermesClient.open({ server: server.url, store, WebSocket, reconnect: soon, ...options });
    clients.push(client);
    return client;
}

/** Waits for the first matching event. */
const next = (client, name, fits = () => true) =>
    new Promise((resolve) => {
        const remove = client.on(name, (event) => {
            if (!fits(event)) return;
            remove();
            resolve(event);
        });
    });

const message = (seq, text, extra = {}) => ({
    event: {
        seq: String(seq),
        serverTimeMs: String(Date.now()),
        message: { id: `m${seq}`.padEnd(26, "0"), conversation: { uid: 7 }, fromUid: 7, content: { text }, ...extra },
    },
});
const receipt = (packet, seq) => {
    const { id: messageId } = message(seq).event.message;
    return { id: packet.id, result: { receipt: { messageId, clientId: packet.send.clientId, inboxSeq: String(seq) } } };
};
/** Returns the cursor in a store, without the newest entry. */
const storedCursor = (store) => {
    const { newest, ...cursor } = store.records.get("cursor");
    return cursor;
};
/** Sends a message through the outbox, and waits for its receipt. */
const send = async (client, text) => {
    const sent = next(client, "outbox", (entry) => entry.status === "sent" && entry.content.text === text);
    await client.outbox.send(text, { uid: 7 });
    return (await sent).clientId;
};

describe("login", () => {
    test("asks for JSON, and keeps the token and the device's id for the next run", async () => {
        const store = new MemoryStore();
        const client = await open({ store, device: { name: "Ann's browser", appVersion: "1.2" } });
        const session = await client.logIn({ nickName: "ann", password: "secret" });
        assert.equal(session.uid, 1);
        assert.equal(client.state.is, "live");
        const { authenticate } = await server.packet("authenticate");
        assert.deepEqual(authenticate.password, { nickName: "ann", password: "secret" });
        assert.equal(authenticate.device.name, "Ann's browser");
        await client.close();
        const later = await open({ store });
        assert.ok(later.canResume);
        await later.resume();
        const again = (await server.packet("authenticate", 1)).authenticate;
        assert.equal(again.token, "t");
        assert.equal(again.device.id, authenticate.device.id);
    });

    test("with the same credential twice is one login; with another one it is another connection", async () => {
        const client = await open();
        const ann = { nickName: "ann", password: "secret" };
        const [first, second] = await Promise.all([client.logIn(ann), client.logIn(ann)]);
        assert.equal(first, second);
        assert.equal(await client.logIn(ann), first);
        assert.equal(server.connections.length, 1);
        server.session = { uid: 2, nickName: "bob", token: "u", epoch: "9" };
        assert.equal((await client.logIn({ nickName: "bob", password: "secret" })).uid, 2);
        assert.equal(server.connections.length, 2);
        // The place is that of Ann's inbox, so the server ignores it.
        const { uid, epoch, acknowledgedSeq } = (await server.packet("authenticate", 1)).authenticate;
        assert.deepEqual([uid, epoch, acknowledgedSeq], [1, "9", "0"]);
    });

    test("a refusal is final, and an unknown token is forgotten", async () => {
        const store = new MemoryStore();
        await store.write([["account", { uid: 1, nickName: "ann", token: "old" }]]);
        server.session = { error: { code: 1004, message: "the token is unknown" } };
        const client = await open({ store });
        await assert.rejects(client.resume(), { code: 1004 });
        assert.equal(client.state.is, "stopped");
        assert.equal(client.canResume, false);
        await assert.rejects(client.request({ ping: {} }), { code: 104 });
    });

    test("a refused login ends no earlier one: the client logs in again as before", async () => {
        const client = await open();
        await client.logIn({ nickName: "ann", password: "secret" });
        const ann = server.session;
        server.session = ({ authenticate }) =>
            authenticate.password ? { error: { code: 1001, message: "the password is wrong" } } : ann;
        await assert.rejects(client.logIn({ nickName: "ann", password: "secrte" }), { code: 1001 });
        await server.until(() => server.connections.length === 3);
        assert.equal((await server.packet("authenticate", 2)).authenticate.token, "t");
        await next(client, "state", ({ is }) => is === "live");
        assert.equal(client.session.uid, 1);
        await assert.rejects(client.logIn({ nickName: "bob", password: "wrong" }), { code: 1001 });
        await client.close();
        assert.equal(server.connections.length, 4);
        assert.equal(client.state.is, "stopped");
    });

    test("another token that is unknown leaves the account's own", async () => {
        const store = new MemoryStore();
        await store.write([["account", { uid: 1, nickName: "ann", token: "old" }]]);
        server.session = { error: { code: 1004, message: "the token is unknown" } };
        const client = await open({ store });
        await assert.rejects(client.logIn({ token: "other" }), { code: 1004 });
        assert.ok(client.canResume);
    });

    test("a name may belong to another account by now: the login tells whose place it names", async () => {
        const store = new MemoryStore();
        const first = await open({ store });
        first.on("entry", () => {});
        await first.logIn({ nickName: "ann", password: "secret" });
        server.connections[0].send(message(1, "one"));
        await server.packet("acknowledge");
        await first.close();
        const second = await open({ store });
        const seen = [];
        second.on("entry", (event) => void seen.push(event));
        server.session = { ...server.session, uid: 2, headSeq: "1" };
        await second.logIn({ nickName: "ann", password: "secret" });
        const { authenticate } = await server.packet("authenticate", 1);
        assert.deepEqual([authenticate.uid, authenticate.epoch, authenticate.acknowledgedSeq], [1, "9", "1"]);
        assert.equal(authenticate.newest.seq, "1");
        // The name belongs to another account now, whose entries have the same seqs.
        server.connections[1].send(message(1, "another's", { id: "another" }));
        await server.until(() => server.packets.filter((packet) => packet.acknowledge).length === 2);
        assert.deepEqual(seen.map((event) => event.message?.content.text), ["another's"]);
    });

    test("before the login is answered, nothing is acknowledged: the entries are another account's", async () => {
        const client = await open();
        let open1;
        const gate = new Promise((resolve) => (open1 = resolve));
        let taken = 0;
        client.on("entry", async () => {
            await gate;
            taken += 1;
        });
        await client.logIn({ nickName: "ann", password: "secret" });
        for (let seq = 1; seq <= 100; seq++) {
            server.connections[0].send(message(seq, "for Ann", { id: `${seq}`.padStart(26, "m") }));
        }
        server.connections[0].send({ ephemeral: { typing: { conversation: { uid: 7 }, fromUid: 7 } } });
        await next(client, "typing");
        server.session = () => null;
        const login = client.logIn({ nickName: "bob", password: "secret" });
        const { id } = await server.packet("authenticate", 1);
        open1();
        while (taken < 100) await new Promise((resolve) => setTimeout(resolve, 5));
        server.connections[1].send({
            id,
            result: { session: { uid: 2, nickName: "bob", token: "u", epoch: "9", headSeq: "100", acknowledgedSeq: "0" } },
        });
        assert.equal((await login).uid, 2);
        server.handler = (packet, connection) => connection.send({ id: packet.id, pong: {} });
        await client.request({ ping: {} });
        assert.deepEqual(server.packets.filter((packet) => packet.acknowledge), []);
    });

    test("a switch of accounts that could not be stored leaves no cursor of the other account", async () => {
        const store = new MemoryStore();
        const client = await open({ store });
        client.on("entry", () => {});
        server.session = ({ authenticate: { password, token } }) => {
            const nickName = password?.nickName ?? token;
            return { uid: nickName === "ann" ? 1 : 2, nickName, token: nickName, epoch: "9", headSeq: "0" };
        };
        await client.logIn({ nickName: "ann", password: "secret" });
        server.connections[0].send(message(1, "for Ann"));
        await server.packet("acknowledge");
        const write = store.write.bind(store);
        store.write = (changes, isDurable) => {
            const isSwitch = changes.some(([key, value]) => key === "account" || (key === "cursor" && !value));
            return isSwitch ? Promise.reject(new Error("no space")) : write(changes, isDurable);
        };
        await client.logIn({ nickName: "bob", password: "secret" });
        for (const seq of [1, 2, 3]) server.connections[1].send(message(seq, "for Bob"));
        await server.until(() => server.packets.at(-1).acknowledge?.upToSeq === "3");
        await client.close();
        const later = await open({ store });
        await later.resume();
        const { authenticate } = await server.packet("authenticate", 2);
        const { token, uid, epoch, acknowledgedSeq } = authenticate;
        assert.deepEqual([token, uid, epoch, acknowledgedSeq], ["ann", undefined, undefined, undefined]);
    });

    test("a cursor of an earlier version, which has no uid, is the account's", async () => {
        const store = new MemoryStore();
        await store.write([["account", { uid: 1, nickName: "ann", token: "t" }], ["cursor", { epoch: "9", seq: 5 }]]);
        await (await open({ store })).resume();
        const { authenticate } = await server.packet("authenticate");
        assert.deepEqual([authenticate.epoch, authenticate.acknowledgedSeq], ["9", "5"]);
    });

    test("a registration whose answer was lost ends in a login by password", async () => {
        let answers = 0;
        server.session = (packet) => {
            answers += 1;
            if (packet.register && answers === 1) {
                server.connections[0].socket.destroy();
                return {};
            }
            if (packet.register) return { error: { code: 1006, message: "taken" } };
            return { uid: 1, nickName: "ann", token: "t", epoch: "9" };
        };
        const client = await open();
        const session = await client.register({ nickName: "ann", password: "secret" });
        assert.equal(session.uid, 1);
        assert.equal(server.packets.filter((packet) => packet.register).length, 2);
    });
});

describe("inbox", () => {
    test("entries come in order, one at a time, and are acknowledged after the handler", async () => {
        const client = await open();
        const seen = [];
        let release;
        client.on("entry", async (event) => {
            seen.push(event.message.content.text);
            if (event.seq === 2) await new Promise((resolve) => (release = resolve));
        });
        await client.logIn({ nickName: "ann", password: "secret" });
        const [connection] = server.connections;
        for (const seq of [1, 3, 2, 2]) connection.send(message(seq, `text ${seq}`));
        const first = await server.packet("acknowledge");
        assert.equal(first.acknowledge.upToSeq, "1");
        assert.deepEqual(seen, ["text 1", "text 2"]);
        release();
        const second = await server.packet("acknowledge", 1);
        assert.equal(second.acknowledge.upToSeq, "3");
        assert.deepEqual(seen, ["text 1", "text 2", "text 3"]);
    });

    test("a handler that fails gets the same entry again", async (context) => {
        context.mock.method(console, "error", () => {});
        const client = await open();
        const seen = [];
        client.on("entry", ({ seq }) => {
            seen.push(seq);
            if (seen.length === 1) throw new Error("not now");
        });
        await client.logIn({ nickName: "ann", password: "secret" });
        server.connections[0].send(message(1, "one"));
        server.connections[0].send(message(2, "two"));
        await server.until(() => server.packets.some((packet) => packet.acknowledge?.upToSeq === "2"));
        assert.deepEqual(seen, [1, 1, 2]);
    });

    test("the next run continues behind what was taken, and what was not taken comes again", async () => {
        const store = new MemoryStore();
        const first = await open({ store });
        first.on("entry", ({ seq }) => (seq === 2 ? new Promise(() => {}) : undefined));
        await first.logIn({ nickName: "ann", password: "secret" });
        server.connections[0].send(message(1, "one"));
        server.connections[0].send(message(2, "two"));
        await server.packet("acknowledge");
        await first.close();
        server.session = { ...server.session, headSeq: "2", acknowledgedSeq: "1" };
        const second = await open({ store });
        await second.resume();
        const { authenticate } = await server.packet("authenticate", 1);
        assert.deepEqual([authenticate.epoch, authenticate.acknowledgedSeq], ["9", "1"]);
        server.connections[1].send(message(2, "two"));
        assert.equal((await next(second, "entry")).seq, 2);
    });

    test("an inbox that begins anew is reported, and known messages are not shown twice", async () => {
        const client = await open();
        const seen = [];
        client.on("entry", (event) => void seen.push(event.type === "message" ? event.message.id[1] : event.type));
        await client.logIn({ nickName: "ann", password: "secret" });
        server.connections[0].send(message(1, "one"));
        await server.packet("acknowledge");
        server.session = { ...server.session, epoch: "10" };
        server.connections[0].socket.destroy();
        await server.packet("authenticate", 1);
        server.connections[1].send(message(1, "one"));
        server.connections[1].send({ event: { ...message(2, "two").event } });
        await server.until(() => server.packets.some((packet) => packet.acknowledge?.upToSeq === "2"));
        assert.deepEqual(seen, ["1", "inboxReset", "2"]);
    });

    const resets = {
        "a new inbox": { epoch: "10", headSeq: "2", acknowledgedSeq: "1" },
        "a loss of the newest entries": { headSeq: "1", acknowledgedSeq: "1" },
    };
    for (const [name, reset] of Object.entries(resets)) {
        test(`${name} is reported until the app has taken the report, and then never again`, async () => {
            const store = new MemoryStore();
            let seq = 1;
            /** Opens a client, and closes it after its app has received `count` entries. */
            const run = async (count, handler = () => {}) => {
                const client = await open({ store });
                const seen = [];
                const done = new Promise((resolve) =>
                    client.on("entry", ({ type, seq: number }) => {
                        if (seen.push(number || type) === count) resolve();
                        return handler();
                    }),
                );
                await (client.canResume ? client.resume() : client.logIn({ nickName: "ann", password: "secret" }));
                server.connections.at(-1).send(message(seq, "text", { id: `${server.session.headSeq}${seq}` }));
                if (seq === 1 && !reset.epoch) server.connections.at(-1).send(message(2, "lost"));
                await done;
                await new Promise((resolve) => setImmediate(resolve));
                await client.close();
                return seen;
            };
            assert.deepEqual(await run(reset.epoch ? 1 : 2), reset.epoch ? [1] : [1, 2]);
            server.session = { ...server.session, ...reset };
            seq = 2;
            assert.deepEqual(await run(1, () => new Promise(() => {})), ["inboxReset"]);
            server.session = { ...server.session, headSeq: "2" };
            let count = 0;
            assert.deepEqual(await run(2, () => (count++ ? new Promise(() => {}) : undefined)), ["inboxReset", 2]);
            assert.deepEqual(store.records.get("cursor"), { epoch: server.session.epoch, seq: 1, uid: 1 });
            assert.deepEqual(await run(1), [2]);
        });
    }

    test("the login names the newest entry, so that the server can tell a loss of entries below its head", async () => {
        const store = new MemoryStore();
        const first = await open({ store });
        first.on("entry", () => {});
        const { uid } = await first.logIn({ nickName: "ann", password: "secret" });
        assert.equal(server.packets[0].authenticate.newest, undefined);
        const times = [1, 2, 3].map((seq) => {
            const packet = message(seq, `text ${seq}`);
            server.connections[0].send(packet);
            return packet.event.serverTimeMs;
        });
        await server.until(() => server.packets.some((packet) => packet.acknowledge?.upToSeq === "3"));
        await first.close();
        const second = await open({ store });
        const seen = [];
        second.on("entry", ({ type, seq, message: one }) => void seen.push(one ? `${seq} ${one.content.text}` : type));
        // The server lost entries 2 and 3, and has given their seqs to other entries since then.
        server.session = { ...server.session, headSeq: "4", acknowledgedSeq: "0", inboxReset: true };
        assert.equal((await second.resume()).uid, uid);
        const [, , third] = times;
        const { newest } = (await server.packet("authenticate", 1)).authenticate;
        assert.deepEqual(newest, { seq: "3", id: "m3".padEnd(26, "0"), serverTimeMs: third });
        server.connections[1].send(message(1, "text 1"));
        for (const seq of [2, 3, 4]) server.connections[1].send(message(seq, `new ${seq}`, { id: `n${seq}` }));
        await server.until(() => server.packets.some((packet) => packet.acknowledge?.upToSeq === "4"));
        assert.deepEqual(seen, ["inboxReset", "2 new 2", "3 new 3", "4 new 4"]);
        assert.equal(store.records.get("cursor").newest.id, "n4");
        await second.close();
    });

    test("a loss of entries does not hide the report of a new inbox, nor one loss another", async () => {
        const store = new MemoryStore();
        const first = await open({ store });
        first.on("entry", () => {});
        await first.logIn({ nickName: "ann", password: "secret" });
        server.connections[0].send(message(1, "one"));
        await server.packet("acknowledge");
        await first.close();
        const second = await open({ store });
        const releases = [];
        second.on("entry", () => new Promise((resolve) => releases.push(resolve)));
        server.session = { ...server.session, epoch: "10", headSeq: "9", acknowledgedSeq: "8" };
        await second.resume();
        for (const head of [7, 6]) {
            server.session = { ...server.session, headSeq: `${head}`, acknowledgedSeq: `${head}` };
            server.connections.at(-1).socket.destroy();
            await next(second, "session");
        }
        const settled = () => new Promise((resolve) => setImmediate(resolve));
        const stored = { epoch: "10", seq: 6, uid: 1 };
        for (const count of [1, 2, 3]) {
            await settled();
            assert.equal(releases.length, count);
            assert.deepEqual(store.records.get("cursor"), { ...stored, owesReset: true });
            releases.at(-1)();
        }
        await settled();
        assert.deepEqual(store.records.get("cursor"), stored);
    });

    test("the report that one account did not take is none for another account", async () => {
        const store = new MemoryStore();
        await store.write([
            ["account", { uid: 1, nickName: "ann", token: "t" }],
            ["cursor", { epoch: "9", seq: 4, uid: 1, owesReset: true }],
        ]);
        const client = await open({ store });
        const seen = [];
        client.on("entry", ({ type }) => void seen.push(type));
        server.session = { ...server.session, uid: 2, nickName: "bob", token: "u" };
        await client.logIn({ nickName: "bob", password: "secret" });
        server.connections[0].send(message(1, "one"));
        await server.packet("acknowledge");
        assert.deepEqual(seen, ["message"]);
        assert.deepEqual(storedCursor(store), { epoch: "9", seq: 1, uid: 2 });
    });

    /** A store whose writes end late, or fail. `cursors` contains the seqs of all attempted writes. */
    class TestStore extends MemoryStore {
        cursors = [];
        isFull = false;
        /** @type {Promise<any>} */
        last = Promise.resolve();
        isLate = false;

        write(changes) {
            for (const [key, value] of changes) if (key === "cursor") this.cursors.push(value?.seq);
            if (this.isFull) return Promise.reject(new Error("full"));
            const late = () => this.isLate && new Promise((resolve) => setTimeout(resolve, 20));
            return (this.last = this.last.then(late).then(() => super.write(changes)));
        }
    }

    test("a store that answers late gets no older cursor after a newer one", async () => {
        const store = new TestStore();
        const client = await open({ store });
        let release;
        client.on("entry", ({ seq }) => (seq === 2 ? new Promise((resolve) => (release = resolve)) : undefined));
        await client.logIn({ nickName: "ann", password: "secret" });
        for (const seq of [1, 2, 3]) server.connections[0].send(message(seq, `text ${seq}`));
        await server.packet("acknowledge");
        await client.close();
        release();
        await new Promise((resolve) => setImmediate(resolve));
        store.isLate = true;
        server.session = { ...server.session, headSeq: "3", acknowledgedSeq: "1" };
        await client.resume();
        await server.until(() => server.packets.some((packet) => packet.acknowledge?.upToSeq === "3"));
        await store.last;
        assert.deepEqual(store.cursors, [1, 2, 3]);
    });

    test("the cursor that a loss of entries lowers is written until the store has it", async (context) => {
        context.mock.timers.enable({ apis: ["setTimeout"] });
        /** Lets time pass until `condition` returns true. */
        const until = async (condition) => {
            while (!condition()) {
                context.mock.timers.tick(5);
                await new Promise((resolve) => setImmediate(resolve));
            }
        };
        const store = new TestStore();
        const client = await open({ store });
        client.on("entry", ({ type }) => (type === "inboxReset" ? new Promise(() => {}) : undefined));
        await client.logIn({ nickName: "ann", password: "secret" });
        for (const seq of [1, 2, 3, 4, 5]) server.connections[0].send(message(seq, `text ${seq}`));
        await until(() => store.records.get("cursor")?.seq === 5);
        store.isFull = true;
        let failures = 0;
        client.on("storeError", () => (failures += 1));
        server.session = { ...server.session, headSeq: "3", acknowledgedSeq: "3" };
        server.connections[0].socket.destroy();
        await until(() => failures);
        store.isFull = false;
        await until(() => store.cursors.length === 7);
        await store.last;
        assert.deepEqual(store.records.get("cursor"), { epoch: "9", seq: 3, uid: 1, owesReset: true });
    });

    test("what was taken after `close` stays taken, although the server then loses later entries", async () => {
        const store = new MemoryStore();
        const client = await open({ store });
        let release;
        client.on("entry", ({ seq }) => (seq === 1 ? new Promise((resolve) => (release = resolve)) : undefined));
        await client.logIn({ nickName: "ann", password: "secret" });
        server.connections[0].send(message(1, "one", { id: "" }));
        server.connections[0].send(message(2, "two"));
        while (!release) await new Promise((resolve) => setImmediate(resolve));
        await client.close();
        release();
        await new Promise((resolve) => setImmediate(resolve));
        server.session = { ...server.session, headSeq: "1" };
        await client.resume();
        assert.equal((await server.packet("acknowledge")).acknowledge.upToSeq, "1");
        assert.deepEqual(storedCursor(store), { epoch: "9", seq: 1, uid: 1 });
    });

    test("what the server did not lose stays untaken in the store until the app takes it", async () => {
        const store = new MemoryStore();
        const client = await open({ store });
        client.on("entry", ({ seq }) => (seq === 2 ? new Promise(() => {}) : undefined));
        await client.logIn({ nickName: "ann", password: "secret" });
        for (const seq of [1, 2, 3, 4]) server.connections[0].send(message(seq, `text ${seq}`));
        await server.packet("acknowledge");
        server.session = { ...server.session, headSeq: "3", acknowledgedSeq: "1" };
        server.connections[0].socket.destroy();
        await next(client, "session");
        await client.close();
        assert.deepEqual(store.records.get("cursor"), { epoch: "9", seq: 1, uid: 1, owesReset: true });
    });

    test("a handler that ends after `close` does not put back the cursor of the next client", async () => {
        const store = new MemoryStore();
        const first = await open({ store });
        const taken = new Promise((resolve) => first.on("entry", () => new Promise((end) => resolve(end))));
        await first.logIn({ nickName: "ann", password: "secret" });
        server.connections[0].send(message(1, "one"));
        const release = await taken;
        await first.close();
        const second = await open({ store });
        second.on("entry", () => {});
        await second.resume();
        for (const seq of [1, 2, 3]) server.connections[1].send(message(seq, `text ${seq}`));
        await server.until(() => server.packets.some((packet) => packet.acknowledge?.upToSeq === "3"));
        release();
        await new Promise((resolve) => setImmediate(resolve));
        assert.deepEqual(storedCursor(store), { epoch: "9", seq: 3, uid: 1 });
    });

    test("entries that waited at `close` arrive after the next login, although nothing else comes", async () => {
        const client = await open();
        const seen = [];
        let release;
        client.on("entry", async ({ seq }) => {
            seen.push(seq);
            if (seq === 1) await new Promise((resolve) => (release = resolve));
        });
        await client.logIn({ nickName: "ann", password: "secret" });
        for (const seq of [1, 2, 3]) server.connections[0].send(message(seq, `text ${seq}`));
        server.connections[0].send({ ephemeral: { typing: { conversation: { uid: 7 }, uid: 7 } } });
        await next(client, "typing");
        await client.close();
        release();
        await new Promise((resolve) => setImmediate(resolve));
        assert.deepEqual(seen, [1]);
        server.session = { ...server.session, headSeq: "3", acknowledgedSeq: "0" };
        await client.resume();
        await server.until(() => server.packets.some((packet) => packet.acknowledge?.upToSeq === "3"));
        assert.deepEqual(seen, [1, 2, 3]);
    });

    test("entries that waited at `close` do not reach another account", async () => {
        const client = await open();
        await client.logIn({ nickName: "ann", password: "secret" });
        server.connections[0].send(message(1, "for Ann"));
        server.connections[0].send({ ephemeral: { typing: { conversation: { uid: 7 }, uid: 7 } } });
        await next(client, "typing");
        await client.close();
        server.session = () => null;
        const login = client.logIn({ nickName: "bob", password: "secret" });
        const { id } = await server.packet("authenticate", 1);
        const seen = [];
        client.on("entry", ({ message: { content } }) => void seen.push(content.text));
        await new Promise((resolve) => setImmediate(resolve));
        assert.deepEqual(seen, []);
        const session = { uid: 2, nickName: "bob", token: "u", epoch: "9", headSeq: "0", acknowledgedSeq: "0" };
        server.connections[1].send({ id, result: { session } });
        await login;
        server.connections[1].send(message(1, "for Bob"));
        await server.packet("acknowledge");
        assert.deepEqual(seen, ["for Bob"]);
    });

    test("when the store works again, what was taken is stored and acknowledged, although nothing else comes", async () => {
        const store = new MemoryStore();
        const client = await open({ store });
        client.on("entry", () => {});
        await client.logIn({ nickName: "ann", password: "secret" });
        const write = store.write.bind(store);
        let isFull = true;
        store.write = (changes) => (isFull ? Promise.reject(new Error("full")) : write(changes));
        const failed = next(client, "storeError");
        server.connections[0].send(message(1, "one"));
        assert.equal((await failed).message, "full");
        isFull = false;
        assert.equal((await server.packet("acknowledge")).acknowledge.upToSeq, "1");
        assert.deepEqual(storedCursor(store), { epoch: "9", seq: 1, uid: 1 });
    });

    test("expired entries are a gap", async () => {
        const client = await open();
        const entry = next(client, "entry");
        await client.logIn({ nickName: "ann", password: "secret" });
        server.connections[0].send({ event: { seq: "1", expired: { toSeq: "5" } } });
        assert.deepEqual((await entry).gap, { from: 1, to: 5 });
        assert.equal((await server.packet("acknowledge")).acknowledge.upToSeq, "5");
    });
});

describe("outbox", () => {
    test("a repeated call ends with the first one: once the message is stored, or could not be", async () => {
        const store = new MemoryStore();
        const client = await open({ store });
        await client.logIn({ nickName: "ann", password: "secret" });
        const write = store.write.bind(store);
        let end;
        const gate = () => new Promise((resolve, reject) => (end = { resolve, reject }));
        store.write = (changes, isDurable) => (isDurable ? gate().then(() => write(changes)) : write(changes));
        const sendTwice = () => {
            const ended = [];
            const calls = ["first", "second"].map((name) =>
                client.outbox.send("hello", { uid: 7 }, { clientId: "one" }).finally(() => ended.push(name)),
            );
            return { ended, results: Promise.allSettled(calls) };
        };
        for (const isStored of [false, true]) {
            const { ended, results } = sendTwice();
            await new Promise((resolve) => setImmediate(resolve));
            assert.deepEqual(ended, []);
            if (isStored) end.resolve();
            else end.reject(new Error("no space"));
            for (const { value, reason } of await results) {
                if (isStored) assert.equal(value.clientId, "one");
                else assert.equal(reason.code, 113);
            }
            assert.equal(client.outbox.entries.length, isStored ? 1 : 0);
        }
        await client.outbox.send("hello", { uid: 7 }, { clientId: "one" });
    });

    test("a message without a receipt goes again under its id, also after the client ended", async () => {
        const store = new MemoryStore();
        const first = await open({ store });
        await first.logIn({ nickName: "ann", password: "secret" });
        const { clientId } = await first.outbox.send("hello", { uid: 7 });
        await server.packet("send");
        await first.close();
        const second = await open({ store });
        assert.deepEqual(second.outbox.entries.map((entry) => [entry.clientId, entry.status]), [[clientId, "queued"]]);
        server.handler = (packet, connection) => packet.send && connection.send(receipt(packet, 1));
        const sent = next(second, "outbox", (entry) => entry.status === "sent");
        await second.resume();
        assert.equal((await sent).clientId, clientId);
        assert.equal(server.packets.filter((packet) => packet.send).length, 2);
        assert.deepEqual(second.outbox.entries, []);
        assert.equal([...store.records.keys()].filter((key) => key.startsWith("outbox/")).length, 0);
    });

    test("the app does not see its own message in its inbox", async () => {
        const store = new MemoryStore();
        const first = await open({ store });
        await first.logIn({ nickName: "ann", password: "secret" });
        const { clientId } = await first.outbox.send("hello", { uid: 7 });
        await server.packet("send");
        await first.close();
        const second = await open({ store });
        const entry = next(second, "entry");
        await second.resume();
        await server.until(() => server.connections.length === 2);
        server.connections[1].send(message(1, "hello", { own: true, clientId }));
        server.connections[1].send(message(2, "from Bob"));
        assert.equal((await entry).seq, 2);
    });

    test("a sent message stays its own when the server begins another inbox", async () => {
        const client = await open();
        const seen = [];
        client.on("entry", (event) => void seen.push(event.message?.id[1] ?? event.type));
        await client.logIn({ nickName: "ann", password: "secret" });
        let seq = 1;
        server.handler = (packet, connection) => packet.send && connection.send(receipt(packet, seq));
        const clientIds = [await send(client, "one")];
        server.connections[0].send(message(2, "from Bob"));
        await server.until(() => server.packets.some((packet) => packet.acknowledge?.upToSeq === "2"));
        // The app has passed the first message, so the outbox drops it now.
        seq = 3;
        clientIds.push(await send(client, "three"));
        seq = 4;
        clientIds.push((await client.send("four", { uid: 7 })).clientId);
        server.session = { ...server.session, epoch: "10", headSeq: "8", acknowledgedSeq: "4" };
        server.connections[0].socket.destroy();
        await server.packet("authenticate", 1);
        for (const [index, old] of [1, 3, 4].entries()) {
            const { event } = message(old, "", { own: true, clientId: clientIds[index] });
            server.connections[1].send({ event: { ...event, seq: String(5 + index) } });
        }
        server.connections[1].send(message(8, "of another device", { own: true, clientId: "other" }));
        await server.until(() => server.packets.some((packet) => packet.acknowledge?.upToSeq === "8"));
        assert.deepEqual(seen, ["2", "inboxReset", "8"]);
    });

    test("a sent message stays its own while another account is logged in, until the app has passed it", async () => {
        const store = new MemoryStore();
        // The format of an earlier version.
        await store.write([["sent/old", 1]]);
        const client = await open({ store });
        const seen = [];
        client.on("entry", ({ message: { content } }) => void seen.push(content.text));
        const kept = () => [...store.records.keys()].filter((key) => key.startsWith("sent/")).sort();
        const taken = (seq) => server.until(() => server.packets.some((packet) => packet.acknowledge?.upToSeq === seq));
        let seq = 1;
        server.handler = (packet, connection) => packet.send && connection.send(receipt(packet, seq));
        const { session } = server;
        await client.logIn({ nickName: "ann", password: "secret" });
        const anns = await send(client, "Ann's");
        // The connection ends before the acknowledgement. Bob's inbox is longer than Ann's.
        server.connections[0].socket.destroy();
        server.session = { ...session, uid: 2, nickName: "bob", token: "u", headSeq: "100", acknowledgedSeq: "100" };
        await client.logIn({ nickName: "bob", password: "secret" });
        server.connections.at(-1).send(message(101, "for Bob"));
        await taken("101");
        seq = 102;
        const bobs = await send(client, "Bob's");
        assert.deepEqual(kept(), ["sent/old", `sent/${anns}`, `sent/${bobs}`].sort());
        assert.deepEqual(store.records.get(`sent/${anns}`), { seq: 1, uid: 1, epoch: "9" });
        server.session = { ...session, headSeq: "2" };
        await client.logIn({ nickName: "ann", password: "secret" });
        server.connections.at(-1).send(message(1, "Ann's", { own: true, clientId: anns }));
        server.connections.at(-1).send(message(2, "for Ann"));
        await taken("2");
        assert.deepEqual(seen, ["for Bob", "for Ann"]);
        seq = 3;
        const last = await send(client, "Ann's last");
        assert.deepEqual(kept(), ["sent/old", `sent/${bobs}`, `sent/${last}`].sort());
    });

    test("a sent message stays its own if the page is killed before its entry is acknowledged", async () => {
        const store = new MemoryStore();
        const first = await open({ store });
        await first.logIn({ nickName: "ann", password: "secret" });
        server.handler = (packet, connection) => packet.send && connection.send(receipt(packet, 1));
        const clientId = await send(first, "hello");
        const left = new MemoryStore();
        left.records = await store.load();
        // A loss of power may undo the last writes.
        left.records.delete("cursor");
        await first.close();
        server.session = { ...server.session, headSeq: "2" };
        const second = await open({ store: left });
        const entry = next(second, "entry");
        await second.resume();
        server.connections[1].send(message(1, "hello", { own: true, clientId }));
        server.connections[1].send(message(2, "from Bob"));
        assert.equal((await entry).seq, 2);
    });

    describe("the entry of a sent message, which the server deletes at once, is no loss in the next run", () => {
        /** Answers logins like a server that has lost or deleted all entries up to `head`. */
        const forget = (head) => {
            const { session } = server;
            server.session = ({ authenticate: { epoch, acknowledgedSeq } }) => {
                const after = epoch === session.epoch ? Number(acknowledgedSeq) : head;
                setImmediate(() => {
                    const expired = { seq: String(after + 1), expired: { toSeq: String(head) } };
                    if (after < head) server.connections.at(-1).send({ event: expired });
                    server.connections.at(-1).send(message(head + 1, "from Bob"));
                });
                return { ...session, headSeq: String(head), acknowledgedSeq: String(head) };
            };
        };
        const first = async (store) => {
            const client = await open({ store });
            await client.logIn({ nickName: "ann", password: "secret" });
            return client;
        };
        const firstEntry = async (store) => {
            const client = await open({ store });
            const entry = next(client, "entry");
            await client.resume();
            return (await entry).message?.content.text;
        };

        test("if the app had taken everything before it", async () => {
            const store = new MemoryStore();
            const client = await first(store);
            client.on("entry", () => {});
            server.connections[0].send(message(1, "one"));
            await server.packet("acknowledge");
            server.handler = (packet, connection) => packet.send && connection.send(receipt(packet, 2));
            await send(client, "two");
            await client.close();
            forget(2);
            assert.equal(await firstEntry(store), "from Bob");
        });

        test("if the app takes what is before it later", async () => {
            const store = new MemoryStore();
            const client = await first(store);
            let release;
            client.on("entry", () => new Promise((resolve) => (release = resolve)));
            server.connections[0].send(message(1, "one"));
            server.handler = (packet, connection) => packet.send && connection.send(receipt(packet, 2));
            await client.send("two", { uid: 7 });
            assert.equal(store.records.get("cursor"), undefined);
            release();
            await server.packet("acknowledge");
            await client.close();
            forget(2);
            assert.equal(await firstEntry(store), "from Bob");
        });

        test("if the app has never taken an entry", async () => {
            const store = new MemoryStore();
            const client = await first(store);
            server.handler = (packet, connection) => packet.send && connection.send(receipt(packet, 1));
            await send(client, "one");
            await client.close();
            assert.deepEqual(storedCursor(store), { epoch: "9", seq: 1, uid: 1 });
            forget(1);
            assert.equal(await firstEntry(store), "from Bob");
        });

        test("if the store failed at first", async (context) => {
            context.mock.timers.enable({ apis: ["setTimeout"] });
            const store = new MemoryStore();
            const client = await first(store);
            server.handler = (packet, connection) => packet.send && connection.send(receipt(packet, 1));
            const failing = context.mock.method(store, "write", () => Promise.reject(new Error("full")));
            const failed = next(client, "storeError");
            await client.send("one", { uid: 7 });
            await failed;
            failing.mock.restore();
            context.mock.timers.tick(2000);
            await new Promise((resolve) => setImmediate(resolve));
            assert.deepEqual(storedCursor(store), { epoch: "9", seq: 1, uid: 1 });
        });

        test("but an entry that the store does not know as taken is one", async () => {
            const store = new MemoryStore();
            const client = await first(store);
            client.on("entry", () => {});
            server.connections[0].send(message(1, "one"));
            await server.packet("acknowledge");
            const copy = new MemoryStore();
            copy.records = await store.load();
            server.connections[0].send(message(2, "two"));
            await server.packet("acknowledge", 1);
            await client.close();
            forget(2);
            assert.equal(await firstEntry(copy), undefined);
        });
    });

    test("messages wait without a connection and go in order", async () => {
        const client = await open();
        await client.logIn({ nickName: "ann", password: "secret" });
        server.connections[0].socket.destroy();
        server.handler = (packet, connection) => packet.send && connection.send(receipt(packet, 0));
        for (const text of ["a", "b", "c"]) await client.outbox.send(text, { uid: 7 });
        await next(client, "outbox", (entry) => entry.status === "sent" && entry.content.text === "c");
        const texts = server.packets.filter((packet) => packet.send).map((packet) => packet.send.content.text);
        assert.deepEqual([...new Set(texts)], ["a", "b", "c"]);
    });

    test("a message that waited long for a connection goes as soon as there is one", async (context) => {
        const client = await open();
        await client.logIn({ nickName: "ann", password: "secret" });
        context.mock.timers.enable({ apis: ["setTimeout"] });
        let now = performance.now();
        context.mock.method(performance, "now", () => now);
        const pass = (time) => {
            now += time;
            context.mock.timers.tick(time);
        };
        const { session } = server;
        server.session = () => null;
        const waiting = next(client, "state", ({ is }) => is === "waiting");
        server.connections[0].socket.destroy();
        await waiting;
        const queued = next(client, "outbox", ({ status }) => status === "queued");
        await client.outbox.send("hello", { uid: 7 });
        await queued;
        const again = next(client, "outbox", ({ status }) => status === "queued");
        pass(61_000);
        await again;
        server.session = session;
        server.connections.at(-1)?.socket.destroy();
        const live = next(client, "state", ({ is }) => is === "live");
        while (client.state.is !== "live") {
            pass(10);
            await new Promise((resolve) => setImmediate(resolve));
        }
        await live;
        assert.deepEqual(client.outbox.entries.map(({ status }) => status), ["sending"]);
        await server.packet("send");
    });

    test("while another account may be logging in, nothing is accepted", async () => {
        const client = await open();
        await client.logIn({ nickName: "ann", password: "secret" });
        await client.close();
        server.session = () => null;
        client.logIn({ nickName: "bob", password: "secret" }).catch(() => {});
        await server.packet("authenticate", 1);
        await assert.rejects(client.outbox.send("whose?", { uid: 7 }), { code: 104 });
        client.logIn({ nickName: "ann", password: "secret" }).catch(() => {});
        await server.packet("authenticate", 2);
        assert.equal((await client.outbox.send("Ann's", { uid: 7 })).status, "queued");
    });

    test("a removal that could not be stored is stored with the next one, and a retry that could not is none", async () => {
        const store = new MemoryStore();
        const client = await open({ store });
        await client.logIn({ nickName: "ann", password: "secret" });
        const write = store.write.bind(store);
        let isFull = false;
        store.write = (changes) => (isFull ? Promise.reject(new Error("full")) : write(changes));
        const kept = () => [...store.records.keys()].filter((key) => key.startsWith("outbox/")).length;
        server.handler = (packet, connection) => {
            isFull = packet.send.content.text === "a";
            connection.send(
                packet.send.content.text === "c"
                    ? { id: packet.id, result: { error: { code: 2003, message: "blocked" } } }
                    : receipt(packet, 0),
            );
        };
        for (const [text, status, count] of [["a", "sent", 1], ["b", "sent", 0], ["c", "failed", 1]]) {
            const done = next(client, "outbox", (entry) => entry.status === status && entry.content.text === text);
            isFull = false;
            await client.outbox.send(text, { uid: 7 });
            await done;
            await new Promise((resolve) => setTimeout(resolve, 5));
            assert.equal(kept(), count, text);
        }
        isFull = true;
        const [{ clientId }] = client.outbox.entries;
        await assert.rejects(client.outbox.retry(clientId), { code: 113 });
        assert.deepEqual(client.outbox.entries.map((entry) => [entry.status, entry.error.code]), [["failed", 2003]]);
    });

    test("a refusal for good stays until it is discarded", async () => {
        const client = await open();
        await client.logIn({ nickName: "ann", password: "secret" });
        server.handler = (packet, connection) =>
            packet.send && connection.send({ id: packet.id, result: { error: { code: 2003, message: "blocked" } } });
        const failed = next(client, "outbox", (entry) => entry.status === "failed");
        const { clientId } = await client.outbox.send("hello", { uid: 7 });
        assert.deepEqual((await failed).error, { code: 2003, message: "blocked" });
        assert.ok(await client.outbox.discard(clientId));
        assert.deepEqual(client.outbox.entries, []);
    });
});

describe("requests", () => {
    test("repeatable ones survive a lost connection, the others fail", async () => {
        const client = await open();
        await client.logIn({ nickName: "ann", password: "secret" });
        const list = client.contacts();
        const create = client.createGroup("friends");
        await server.packet("group");
        server.handler = (packet, connection) => {
            const contacts = { contacts: [{ uid: 7, nickName: "bob", state: "STATE_ACCEPTED" }] };
            if (packet.contact) connection.send({ id: packet.id, result: { contacts } });
        };
        server.connections[0].socket.destroy();
        await assert.rejects(create, { code: 102 });
        assert.equal((await list).contacts[0].state, "accepted");
    });

    const once = {
        "a decline": (client) => client.answerContact(7, false),
        "the end of a contact": (client) => client.removeContact(7),
        "a change of members": (client) => client.changeMembers(9, { removeUids: [7] }),
        "leaving a group": (client) => client.leaveGroup(9),
        "the end of a group": (client) => client.dissolveGroup(9),
    };
    for (const [name, request] of Object.entries(once)) {
        test(`${name} fails with the connection: the server may have carried it out`, async () => {
            const client = await open();
            await client.logIn({ nickName: "ann", password: "secret" });
            server.handler = (packet, connection) => {
                if (packet.ping) connection.send({ id: packet.id, pong: {} });
                else if (server.connections.length === 1) connection.socket.destroy();
                else connection.send({ id: packet.id, result: { error: { code: 2002, message: "no" } } });
            };
            const isLive = next(client, "state", ({ is }) => is === "live");
            await assert.rejects(request(client), { code: 102 });
            await isLive;
            await client.ping();
            assert.equal(server.packets.filter(({ contact, group }) => contact || group).length, 1);
        });
    }

    test("an acceptance is repeated after a lost connection", async () => {
        const client = await open();
        await client.logIn({ nickName: "ann", password: "secret" });
        server.handler = (packet, connection) => {
            if (server.connections.length === 1) connection.socket.destroy();
            else connection.send({ id: packet.id, result: {} });
        };
        await client.answerContact(7, true);
        assert.equal(server.packets.filter(({ contact }) => contact).length, 2);
    });

    test("a repetition is not refused because the first try was carried out", async () => {
        const client = await open();
        await client.logIn({ nickName: "ann", password: "secret" });
        server.handler = (packet, connection) => {
            if (packet.room?.enter) connection.send({ id: packet.id, result: { room: { memberCount: 1 } } });
        };
        await client.enterRoom("lobby", { name: "Ann" });
        const refused = (id, code) => ({ id, result: { error: { code, message: "no" } } });
        const refuse = (packet, connection) => {
            if (packet.room?.leave) connection.send(refused(packet.id, 2003));
            if (packet.device?.remove) connection.send(refused(packet.id, 2002));
        };
        const requests = [client.leaveRoom("lobby"), client.removeDevice("phone")];
        await server.packet("device");
        server.handler = refuse;
        server.connections[0].socket.destroy();
        await Promise.all(requests);
        assert.equal(server.packets.filter((packet) => packet.room?.enter).length, 1);
        await assert.rejects(client.leaveRoom("lobby"), { code: 2003 });
        await assert.rejects(client.removeDevice("phone"), { code: 2002 });
    });

    test("conversations come in pages, with every field, whatever the server sends", async () => {
        const client = await open();
        await client.logIn({ nickName: "ann", password: "secret" });
        const whole = { conversation: { groupId: 9 }, name: "climbers", lastSeq: "12", lastMessageAtMs: "1800", readSeq: "9", unread: "2" };
        const strange = { conversation: { uid: "x" }, name: 7, unread: "many", more: {} };
        server.handler = ({ id, conversations: { after, limit } }, connection) => {
            const conversations = after ? { conversations: [strange, null] } : { conversations: [whole], more: true };
            assert.deepEqual(after ?? null, after ? { uid: null, groupId: 9 } : null);
            assert.equal(limit, after ? 5 : 100);
            connection.send({ id, result: { conversations } });
        };
        const first = await client.conversations();
        const conversation = { uid: null, groupId: 9 };
        assert.deepEqual(first, {
            conversations: [{ conversation, name: "climbers", lastSeq: 12, lastMessageAtMs: 1800, readSeq: 9, unread: 2 }],
            more: true,
        });
        const nothing = { name: "", lastSeq: 0, lastMessageAtMs: 0, readSeq: 0, unread: 0 };
        assert.deepEqual(await client.conversations({ after: first.conversations[0].conversation, limit: 5 }), {
            conversations: [
                { conversation: { uid: 0, groupId: null }, ...nothing },
                { conversation: { uid: null, groupId: null }, ...nothing },
            ],
            more: false,
        });
    });

    test("rooms are entered again, and watched accounts are watched again", async () => {
        const client = await open();
        server.handler = (packet, connection) => {
            const result = packet.room ? { room: { room: packet.room.room, memberCount: 3 } } : {};
            if (packet.room || packet.presence) connection.send({ id: packet.id, result });
        };
        await client.logIn({ nickName: "ann", password: "secret" });
        assert.equal(await client.enterRoom("lobby", { name: "Ann" }), 3);
        await client.watchPresence([7]);
        const again = new Promise((resolve) => client.on("room", resolve));
        server.connections[0].socket.destroy();
        assert.deepEqual((await again).entered, { memberCount: 3 });
        assert.equal((await server.packet("room", 1)).room.enter.user.name, "Ann");
        assert.deepEqual((await server.packet("presence", 1)).presence.watchUids, [7]);
    });

    test("a room that is left before it was entered is not entered again", async () => {
        const client = await open();
        server.handler = (packet, connection) => packet.id && connection.send({ id: packet.id, result: {} });
        await client.logIn({ nickName: "ann", password: "secret" });
        await Promise.all([client.enterRoom("lobby", { name: "Ann" }), client.leaveRoom("lobby")]);
        server.connections[0].socket.destroy();
        await server.packet("authenticate", 1);
        await client.contacts();
        assert.equal(server.packets.filter((packet) => packet.room?.enter).length, 1);
    });

    test("no more accounts are watched again than the server watches", async () => {
        const client = await open();
        server.handler = (packet, connection) => packet.presence && connection.send({ id: packet.id, result: {} });
        await client.logIn({ nickName: "ann", password: "secret" });
        const uids = (first, count) => Array.from({ length: count }, (_, index) => first + index);
        await client.watchPresence(uids(1, 1001));
        await client.watchPresence(uids(1, 998));
        await client.watchPresence(uids(2001, 5));
        server.connections[0].socket.destroy();
        const again = (await server.packet("presence", 3)).presence.watchUids;
        assert.deepEqual(again, [...uids(1, 998), 2001, 2002]);
    });

    test("30,000 at once do not break the client", async () => {
        const client = await open();
        await client.logIn({ nickName: "ann", password: "secret" });
        server.connections[0].socket.pause();
        const ends = Array.from({ length: 30_000 }, () => client.request({ ping: {} }, false).catch(() => "lost"));
        await client.close();
        assert.equal((await Promise.all(ends)).filter((end) => end === "lost").length, ends.length);
    });

    test("a request that the server's limit does not allow is not sent", async () => {
        server.session = { ...server.session, maxFrameBytes: 200 };
        const client = await open();
        await client.logIn({ nickName: "ann", password: "secret" });
        await assert.rejects(client.send("x".repeat(300), { uid: 7 }), { code: 109 });
        assert.equal(server.packets.filter((packet) => packet.send).length, 0);
    });

    test("a text that the server would refuse is not sent", async () => {
        const client = await open();
        await client.logIn({ nickName: "ann", password: "secret" });
        await assert.rejects(client.send("a" + "\u0301".repeat(129), { uid: 7 }), { code: 109 });
        assert.equal(server.packets.filter((packet) => packet.send).length, 0);
        const text = "a" + "\u0301".repeat(128);
        client.send(text, { uid: 7 }).catch(() => {});
        assert.equal((await server.packet("send")).send.content.text, text);
    });

    describe("what the server cannot read", () => {
        test("is not sent, and the error names the field", async () => {
            const client = await open();
            await client.logIn({ nickName: "ann", password: "secret" });
            server.handler = (packet, connection) => packet.send && connection.send(receipt(packet, 1));
            const named = (field) => ({ code: 109, message: new RegExp(field) });
            await assert.rejects(client.send("x", { uid: 7 }, { expiresInSeconds: 1.5 }), named("send.expiresInSeconds"));
            const attributes = { "\u00e9": "1", "e\u0301": "2" };
            await assert.rejects(client.send({ text: "x", attributes }, { uid: 7 }), named("send.content.attributes"));
            await assert.rejects(client.watchPresence([7, -1]), named("presence.watchUids.1"));
            await assert.rejects(client.markRead({ uid: 7 }, 1n << 64n), named("markRead.upToSeq"));
            await assert.rejects(client.account({ uid: 7n }), named("account.get.uid"));
            assert.throws(() => client.setTyping({ uid: "bob" }), named("typing.conversation.uid"));
            await client.send("x", { uid: 7 });
            assert.equal(server.packets.filter(({ authenticate }) => !authenticate).length, 1);
            assert.equal(server.connections.length, 1);
        });

        test("is not sent as a login", async () => {
            const client = await open({ device: { name: 7 } });
            await assert.rejects(client.logIn({ token: "t" }), { code: 109, message: /device\.name/ });
            assert.equal(server.connections.length, 0);
        });
    });

    describe("after a breach of the protocol", () => {
        const bad = "bad";
        /**
         * A server that ends the connection when a certain text arrives. On the first connection, it does so after
         * `count` messages.
         */
        const picky = (count) => (packet, connection) => {
            if (!packet.send) return;
            const first = server.connections.indexOf(connection) === 0;
            const texts = server.packets.flatMap((each) => (each.send ? [each.send.content.text] : []));
            if (first ? texts.length === count : packet.send.content.text === bad) {
                connection.send({ kicked: { reason: "REASON_PROTOCOL", message: "no packet", code: 4006 } });
                connection.close(1002);
            } else if (!first) connection.send(receipt(packet, texts.length));
        };
        const texts = () => server.packets.filter((packet) => packet.send).map((packet) => packet.send.content.text);

        test("the requests go one at a time, and only the cause fails", async () => {
            const client = await open();
            await client.logIn({ nickName: "ann", password: "secret" });
            server.handler = picky(4);
            const long = (number) => `${number}`.repeat(100);
            const ends = [long(1), bad, long(2), long(3)].map((text) => client.send(text, { uid: 7 }));
            await assert.rejects(ends[1], { code: 109, message: /no packet/ });
            await Promise.all([ends[0], ends[2], ends[3]]);
            assert.deepEqual(texts().slice(4), [long(1), bad, long(2), long(3)]);
            assert.equal(server.connections.length, 3);
        });

        test("new requests wait until the suspects are answered", async () => {
            const client = await open();
            await client.logIn({ nickName: "ann", password: "secret" });
            server.handler = picky(2);
            const ends = ["a", "b"].map((text) => client.send(text, { uid: 7 }));
            await server.until(() => texts().length === 2);
            let held;
            server.handler = (packet, connection) => {
                if (packet.send && held) return connection.send(receipt(packet, 9));
                if (packet.send) held = () => connection.send(receipt(packet, 8));
            };
            await server.until(() => held);
            ends.push(client.send("c", { uid: 8 }), client.send("d", { uid: 8 }));
            const live = server.connections.length;
            // A packet without an answer does not wait. It arrives after all packets that were written before it.
            client.setTyping({ uid: 7 });
            await server.packet("typing");
            assert.deepEqual(texts().slice(2), ["a"]);
            held();
            await Promise.all(ends);
            assert.deepEqual(texts().slice(2), ["a", "b", "c", "d"]);
            assert.equal(server.connections.length, live);
        });

        const breach = (connection) => {
            connection.send({ kicked: { reason: "REASON_PROTOCOL", message: "no packet", code: 4006 } });
            connection.close(1002);
        };

        test("a request that is not repeatable fails with the breach if it was alone in flight", async () => {
            const client = await open();
            await client.logIn({ nickName: "ann", password: "secret" });
            server.handler = (packet, connection) => packet.signal && breach(connection);
            await assert.rejects(client.signal(7, "s", { data: "AA" }), { code: 109, message: /no packet/ });
        });

        test("a request that is not repeatable fails with the connection if others were in flight", async () => {
            const client = await open();
            await client.logIn({ nickName: "ann", password: "secret" });
            server.handler = (packet, connection) => {
                const isFirst = server.connections.length === 1;
                if (packet.signal) breach(connection);
                else if (packet.send && !isFirst) connection.send(receipt(packet, 1));
            };
            const sent = client.send("a", { uid: 7 });
            await assert.rejects(client.signal(7, "s", { data: "AA" }), { code: 102 });
            await sent;
            assert.equal(server.connections.length, 2);
        });

        test("no request fails for one that got no answer in time", async () => {
            const client = await open();
            await client.logIn({ nickName: "ann", password: "secret" });
            server.handler = (packet, connection) => {
                if (!packet.send) return;
                const number = server.connections.length;
                if (number > 2) connection.send(receipt(packet, 1));
                // The breach because of the first message comes after the second message was written.
                else if (packet.send.clientId === (number > 1 ? "b" : "c")) breach(connection);
            };
            const body = (text) => ({ send: { to: { uid: 7 }, clientId: text, content: { text } } });
            const slow = client.request(body("a"), true, 500);
            await Promise.all([assert.rejects(slow, { code: 103 }), ...["b", "c"].map((text) => client.request(body(text)))]);
            assert.deepEqual(texts(), ["a", "b", "c", "a", "b", "b", "c"]);
            assert.equal(server.connections.length, 3);
        });

        test("a logout does not wait until the suspects are answered", async () => {
            const client = await open();
            await client.logIn({ nickName: "ann", password: "secret" });
            server.handler = (packet, connection) => {
                if (packet.logOut) connection.send({ id: packet.id, result: {} });
                else if (packet.send && server.connections.length === 1 && texts().length === 2) breach(connection);
            };
            const ends = ["a", "b"].map((text) => assert.rejects(client.send(text, { uid: 7 }), { code: 104 }));
            await server.until(() => texts().length === 3);
            await client.logOut();
            assert.equal(client.state.is, "stopped");
            assert.equal(client.canResume, false);
            await Promise.all(ends);
        });

        describe("a suspect without an answer", () => {
            /** A table whose requests were all in flight when a breach ended the connection. */
            function searching(count) {
                const table = new RequestTable();
                const ignore = () => {};
                const entries = Array.from({ length: count }, () => table.insert({}, true, 60_000, ignore, ignore));
                for (const entry of entries) write(table, entry);
                assert.equal(table.blame(false), undefined);
                table.connectionLost();
                return { table, entries, ids: (now) => table.unwritten(now).map((entry) => entries.indexOf(entry)) };
            }

            function write(table, entry) {
                entry.bytes = 10;
                table.wrote(entry);
            }

            test("delays the next one by 10 s, and the last one in flight at a breach is tried first", () => {
                const { table, entries, ids } = searching(3);
                assert.deepEqual(ids(0), [0]);
                write(table, entries[0]);
                assert.deepEqual(ids(9_999), []);
                assert.equal(table.nextTry, 10_000);
                assert.deepEqual(ids(10_000), [1]);
                write(table, entries[1]);
                assert.equal(table.blame(false), undefined);
                table.connectionLost();
                assert.equal(table.nextTry, Infinity);
                assert.deepEqual(ids(20_000), [1]);
                write(table, entries[1]);
                assert.equal(table.blame(false), entries[1]);
                assert.equal(table.isSearching, false);
                table.connectionLost();
                assert.deepEqual(ids(30_000), [0, 2]);
            });

            test("ends the search 10 s after the last one was sent", () => {
                const { table, entries, ids } = searching(1);
                const later = table.insert({}, true, 60_000, () => {}, () => {});
                assert.deepEqual(ids(0), [0]);
                write(table, entries[0]);
                assert.deepEqual(table.unwritten(9_999), []);
                assert.deepEqual(table.unwritten(10_000), [later]);
                assert.equal(table.isSearching, false);
                assert.equal(table.nextTry, Infinity);
            });

            test("is the longest frame, too, after it was given up", () => {
                const table = new RequestTable();
                const [slow, other] = [1, 2].map((end) => table.insert({}, true, end, () => {}, () => {}));
                write(table, slow);
                write(table, other);
                other.bytes = 5;
                table.expired(1);
                assert.equal(table.blame(true), undefined);
                table.connectionLost();
                write(table, other);
                assert.equal(table.blame(true), other);
            });
        });

        test("without a request in flight, none is searched for", async () => {
            const client = await open();
            await client.logIn({ nickName: "ann", password: "secret" });
            const lives = [];
            client.on("state", ({ is }) => is === "live" && lives.push(is));
            for (const count of [1, 2]) {
                const again = next(client, "state", ({ is }) => is === "live");
                server.connections.at(-1).send({ kicked: { reason: "REASON_PROTOCOL", code: 4006 } });
                server.connections.at(-1).close(1002);
                await again;
                assert.equal(lives.length, count);
            }
            // The server answers only after both packets have arrived.
            server.handler = (_packet, connection) => {
                if (texts().length < 2) return;
                for (const packet of server.packets.slice(-2)) connection.send(receipt(packet, 1));
            };
            await Promise.all(["a", "b"].map((text) => client.send(text, { uid: 7 })));
        });
    });

    describe("half of a surrogate pair", () => {
        const half = "ok 😀".slice(0, -1);
        const isHalf = { code: 109, message: /surrogate/ };

        test("is not sent in a request, and the other requests are answered", async () => {
            server.handler = (packet, connection) => {
                // The server's JSON reader does not accept half of a surrogate pair.
                if (/\p{Surrogate}/u.test(packet.send.content.text)) {
                    connection.send({ kicked: { reason: "REASON_PROTOCOL", message: "not JSON", code: 4001 } });
                    return connection.close(1002);
                }
                if (packet.send.clientId === "late") connection.send(receipt(packet, 2));
            };
            const client = await open();
            await client.logIn({ nickName: "ann", password: "secret" });
            const other = client.send("x".repeat(500), { uid: 7 }, { clientId: "first" });
            await server.packet("send");
            for (const text of [half, "\ude00", `a\\${half.at(-1)}`, `${half} 😀`]) {
                await assert.rejects(client.send(text, { uid: 7 }), isHalf, text);
            }
            await assert.rejects(client.request({ send: { content: { attributes: { [half]: "" } } } }), isHalf);
            for (const text of ["\\ud83d", "a\\\\ud83d", "\\", "😀"]) {
                await client.send(text, { uid: 7 }, { clientId: "late" });
            }
            server.connections[0].send(receipt(server.packets[1], 1));
            assert.equal((await other).clientId, "first");
            assert.equal(server.connections.length, 1);
            assert.equal(server.packets.filter((packet) => packet.send).length, 5);
        });

        test("makes a message in the outbox fail", async () => {
            const client = await open();
            await client.logIn({ nickName: "ann", password: "secret" });
            server.handler = (packet, connection) => connection.send(receipt(packet, 1));
            const end = next(client, "outbox", ({ status }) => status === "failed" || status === "sent");
            await client.outbox.send(half, { uid: 7 });
            assert.equal((await end).error?.code, 109);
            assert.equal(server.packets.filter((packet) => packet.send).length, 0);
        });

        test("is not sent in what has no answer", async () => {
            const client = await open();
            await client.logIn({ nickName: "ann", password: "secret" });
            const enter = (name) => ({ room: { room: "lobby", enter: { user: { name } } } });
            assert.throws(() => client.notify(enter(half)), isHalf);
            assert.throws(() => client.notify(enter("a" + "\u0301".repeat(129))), { code: 109 });
            client.notify(enter("ann"));
            assert.equal((await server.packet("room")).room.enter.user.name, "ann");
        });

        test("makes a login fail at once, which ends no earlier one", async () => {
            const client = await open();
            await client.logIn({ nickName: "ann", password: "secret" });
            await assert.rejects(client.logIn({ nickName: "ann", password: half }), isHalf);
            await assert.rejects(client.register({ nickName: half, password: "secret" }), isHalf);
            assert.equal(client.state.is, "live");
            const other = await open({ device: { name: half } });
            await assert.rejects(other.logIn({ nickName: "ann", password: "secret" }), isHalf);
            assert.equal(other.state.is, "idle");
            assert.equal(server.packets.length, 1);
        });
    });
});

describe("ends of connections", () => {
    test("a newer login of the device is final", async () => {
        const client = await open();
        await client.logIn({ nickName: "ann", password: "secret" });
        const stopped = next(client, "state", (state) => state.is === "stopped");
        server.connections[0].send({ kicked: { reason: "REASON_REPLACED", message: "newer login" } });
        assert.equal((await stopped).error.code, 106);
        assert.equal(server.connections.length, 1);
    });

    test("advice is obeyed, and its ticket shown", async () => {
        const client = await open();
        await client.logIn({ nickName: "ann", password: "secret" });
        const reconnect = { notBeforeMs: 1000, windowMs: 0, ticket: "dGlja2V0" };
        const waiting = next(client, "state", (state) => state.is === "waiting");
        server.connections[0].send({ kicked: { reason: "REASON_SHUTDOWN", reconnect } });
        const { delay } = await waiting;
        // The delay counts from the end of the connection, which is slightly later than the advice. Without the advice,
        // the policy would wait 5 ms.
        assert.ok(delay > 500 && delay <= 1000, `${delay}`);
        assert.equal((await server.packet("authenticate", 1)).authenticate.ticket, "dGlja2V0");
    });

    for (const [name, breach] of [
        ["binary data", encodeFrame(2, Buffer.from([1, 2, 3]), false)],
        ["text that is not JSON", encodeFrame(1, Buffer.from("{"), false)],
        ["a masked frame", encodeFrame(1, Buffer.from("{}"), true)],
        ["an endless frame", Buffer.from([0x81, 127, 0x7f, 255, 255, 255, 255, 255, 255, 255])],
        ["a JSON text above the limit", encodeFrame(1, Buffer.alloc(5 * 1_048_576, 32), false)],
    ]) {
        test(`${name} from the server ends the connection, and the client comes back`, async () => {
            const client = await open();
            await client.logIn({ nickName: "ann", password: "secret" });
            server.connections[0].sendBytes(breach);
            await server.packet("authenticate", 1);
        });
    }

    test("strange values do not reach the app as they are", async () => {
        const client = await open();
        const entry = next(client, "entry");
        await client.logIn({ nickName: "ann", password: "secret" });
        const odd = { id: {}, fromUid: "x", content: { text: ["<b>"], attributes: { a: 1, b: "c" } }, own: "yes" };
        server.connections[0].send({ event: { seq: 1, message: odd } });
        const { message: read } = await entry;
        assert.deepEqual([read.id, read.fromUid, read.own, read.content.text], ["", 0, false, ""]);
        assert.deepEqual(read.content.attributes, { b: "c" });
    });
});

describe("FileStore", () => {
    let folder;
    beforeEach(async () => (folder = await mkdtemp(join(tmpdir(), "hermes-web-"))));
    afterEach(() => rm(folder, { recursive: true }));

    test("keeps records, and skips what is damaged", async () => {
        const path = join(folder, "store");
        const store = new FileStore(path);
        await store.load();
        await store.write([["a", 1], ["b", { c: "d" }]], true);
        await store.write([["a", undefined]]);
        await store.write([["e", 2]]);
        store.close();
        assert.equal((await stat(path)).mode & 0o077, 0);
        const lines = (await readFile(path, "utf8")).split("\n");
        // The line of the removal is damaged, and a killed process has left half a line.
        await writeFile(path, `${lines[0]}\n${lines[1].replace("a", "x")}\n${lines[2]}\n${lines[0].slice(0, 20)}`);
        const again = new FileStore(path);
        assert.deepEqual([...(await again.load())], [["a", 1], ["b", { c: "d" }], ["e", 2]]);
        assert.equal(again.damaged, 2);
        await again.write([["f", 3]]);
        again.close();
        assert.equal((await new FileStore(path).load()).size, 4);
    });

    test("what could not be written does not come with what can", async () => {
        const store = new FileStore(join(folder, "later", "store"));
        await store.load();
        await assert.rejects(store.write([["a", 1]], true));
        await mkdir(join(folder, "later"));
        await store.write([["b", 2]], true);
        store.close();
        assert.deepEqual([...(await new FileStore(join(folder, "later", "store")).load())], [["b", 2]]);
    });

    test("a rewrite that fails leaves no file open", async (context) => {
        const path = join(folder, "store");
        await writeFile(path, "half a line");
        const other = await openFile(path);
        const prototype = Object.getPrototypeOf(other);
        await other.close();
        const closed = [];
        context.mock.method(prototype, "writeFile", function () {
            this.on("close", () => closed.push(this));
            return Promise.reject(new Error("no space"));
        });
        await assert.rejects(new FileStore(path).load(), { message: "no space" });
        assert.equal(closed.length, 1);
    });

    test("rewrites a file that is mostly out of date", async () => {
        const path = join(folder, "store");
        const store = new FileStore(path);
        await store.load();
        for (let number = 0; number < 2500; number++) await store.write([["cursor", number]]);
        assert.ok((await readFile(path, "utf8")).split("\n").length < 1100);
        assert.equal((await new FileStore(path).load()).get("cursor"), 2499);
        store.close();
    });
});

