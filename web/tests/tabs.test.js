// Hermes
// SPDX-License-Identifier: Apache-2.0

// Tabs that share a client. The test has its own Web Locks, and uses Node's BroadcastChannel.
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test } from "node:test";
import { MemoryStore, SharedClient, standardPolicy } from "./sdk.js";
import { WebSocket } from "../node-websocket.js";
import { FakeServer } from "./fake-server.js";

/** Exclusive locks by name, in the order of the requests. */
class Locks {
    #queues = new Map();

    request(name, options, body = options) {
        return new Promise((resolve, reject) => {
            const queue = this.#queues.get(name) ?? [];
            this.#queues.set(name, queue);
            const entry = async () => {
                resolve(await body());
                queue.shift();
                queue[0]?.();
            };
            options.signal?.addEventListener("abort", () => {
                const index = queue.indexOf(entry);
                if (index <= 0) return;
                queue.splice(index, 1);
                reject(Object.assign(new Error("aborted"), { name: "AbortError" }));
            });
            queue.push(entry);
            if (queue.length === 1) entry();
        });
    }
}

/** The databases of a browser. A later version waits until all connections are closed. */
class Databases {
    #all = new Map();

    get names() {
        return [...this.#all.keys()];
    }

    open(name, version) {
        const database = this.#all.get(name) ?? { version: 0, connections: new Set(), last: Promise.resolve() };
        this.#all.set(name, database);
        const request = {};
        const run = async () => {
            const wanted = version ?? Math.max(database.version, 1);
            if (wanted < database.version) {
                request.error = Object.assign(new Error("there is a later version"), { name: "VersionError" });
                return request.onerror();
            }
            const isNew = wanted > database.version;
            while (isNew && database.connections.size) await new Promise((resolve) => (database.closed = resolve));
            database.version = wanted;
            request.result = {
                version: wanted,
                close: () => {
                    database.connections.delete(request);
                    database.closed?.();
                },
            };
            database.connections.add(request);
            if (isNew) request.onupgradeneeded();
            request.onsuccess();
        };
        database.last = database.last.then(run);
        return request;
    }
}

let server;
let tabs = [];
let count = 0;
beforeEach(async () => {
    server = await FakeServer.start();
    count += 1;
});
afterEach(async () => {
    for (const tab of tabs) await tab.close();
    tabs = [];
    server.stop();
});

/** A browser with tabs. */
function browser(locks = new Locks()) {
    const shared = { store: new MemoryStore(), locks, name: `test${count}` };
    const reconnect = { ...standardPolicy, windows: Array(50).fill(5) };
    const open = async () => {
        const tab = await SharedClient.open({ server: server.url, WebSocket, reconnect, ...shared });
        tabs.push(tab);
        return tab;
    };
    return Object.assign(open, { store: shared.store });
}

const message = (seq, id = `m${seq}`) => ({
    event: { seq: String(seq), message: { id, conversation: { uid: 7 }, content: { text: `${seq}` } } },
});
const reached = async (list, length) => {
    while (list.length < length) await new Promise((resolve) => setImmediate(resolve));
    return list;
};

/** Makes the server accept the logins of Ann and Bob. Their inboxes have the epoch of the server's store. */
function twoAccounts() {
    server.session = ({ authenticate: { password, token } }) => {
        const nickName = password?.nickName ?? token;
        const uid = { ann: 1, bob: 2 }[nickName];
        return { uid, nickName, token: nickName, epoch: "9", headSeq: "0", acknowledgedSeq: "0" };
    };
}

/** Makes the server answer all requests. Requests about rooms get the result of `answer`. */
function answerRooms(answer) {
    server.handler = (packet, connection) => {
        if (packet.id) connection.send({ id: packet.id, result: packet.room ? answer(packet) : {} });
    };
}

const unwatched = () => server.packets.flatMap((packet) => packet.presence?.unwatchUids ?? []);

const enters = () => server.packets.filter((packet) => packet.room?.enter).map((packet) => packet.room.enter);

/** A page for the tabs. The test sends its events. */
class Page extends EventTarget {
    visibilityState = "visible";
    hidden = false;
    names = ["document", "addEventListener", "removeEventListener"];

    constructor() {
        super();
        globalThis.document = this;
        globalThis.addEventListener = () => {};
        globalThis.removeEventListener = () => {};
    }

    send(name) {
        this.dispatchEvent(new Event(name));
    }

    end() {
        for (const name of this.names) delete globalThis[name];
    }
}

describe("a page that the browser puts away", () => {
    let page;
    beforeEach(() => (page = new Page()));
    afterEach(() => page.end());

    for (const isAtOnce of [false, true]) {
        test(`is logged in again and in its rooms when it is shown, ${isAtOnce ? "at once" : "later"}`, async () => {
            const tab = await browser()();
            await tab.logIn({ nickName: "ann", password: "secret" });
            server.handler = (packet, connection) =>
                connection.send({ id: packet.id, result: packet.room ? { room: { memberCount: 1 } } : {} });
            await tab.request({ room: { room: "lobby", enter: { user: { name: "Ann" } } } });
            await tab.request({ presence: { watchUids: [7] } });
            page.send("freeze");
            if (!isAtOnce) await new Promise((resolve) => setTimeout(resolve, 50));
            page.send("resume");
            await server.packet("authenticate", 1);
            assert.equal((await server.packet("room", 1)).room.room, "lobby");
            await server.until(() => server.packets.filter((packet) => packet.presence?.watchUids?.[0] === 7).length > 1);
            await tab.request({ ping: {} });
            assert.equal(tab.state.is, "live");
            assert.ok(tab.isLeader);
        });
    }

    test("is logged in again, however often it is put away before it is back", async () => {
        const tab = await browser()();
        await tab.logIn({ nickName: "ann", password: "secret" });
        server.handler = (packet, connection) => connection.send({ id: packet.id, result: {} });
        for (const pause of [20, 0, 1, 0]) {
            page.send("freeze");
            await new Promise((resolve) => setTimeout(resolve, pause));
            page.send("resume");
        }
        await server.packet("authenticate", 1);
        await new Promise((resolve) => setTimeout(resolve, 50));
        await tab.request({ ping: {} });
        assert.equal(tab.state.is, "live");
    });

    test("stays logged out if it was", async () => {
        const tab = await browser()();
        page.send("freeze");
        page.send("resume");
        await assert.rejects(tab.request({ ping: {} }), { code: 104 });
        assert.equal(server.connections.length, 0);
    });
});

describe("a page without Web Locks", () => {
    const before = Object.getOwnPropertyDescriptor(globalThis, "navigator");
    beforeEach(() => Object.defineProperty(globalThis, "navigator", { value: {}, configurable: true }));
    afterEach(() => {
        delete globalThis.indexedDB;
        delete globalThis.navigator;
        if (before) Object.defineProperty(globalThis, "navigator", before);
    });

    test("has one leader, and no message of a tab replaces another's", async () => {
        globalThis.indexedDB = new Databases();
        const open = browser(null);
        await Promise.all([open(), open(), open()]);
        const [[leader], followers] = [true, false].map((leads) => tabs.filter((tab) => tab.isLeader === leads));
        assert.equal(followers.length, 2);
        // The store's database has another name.
        assert.deepEqual(indexedDB.names, [`lock/hermes/test${count}`]);
        await leader.logIn({ nickName: "ann", password: "secret" });
        await Promise.all(tabs.map((tab, index) => tab.outbox.send(`${index}`, { uid: 7 })));
        const texts = async () => {
            const records = await open.store.load();
            const items = [...records].filter(([key]) => key.startsWith("outbox/")).map(([, item]) => item);
            return items.map((item) => item.send.content.text).sort();
        };
        assert.deepEqual(await texts(), ["0", "1", "2"]);
        // A tab that no longer waits does not become the leader.
        await followers[0].close();
        const next = new Promise((resolve) => followers[1].on("leader", resolve));
        await leader.close();
        assert.equal(await next, true);
        await followers[1].outbox.send("3", { uid: 7 });
        assert.deepEqual(await texts(), ["0", "1", "2", "3"]);
        assert.equal((await open()).isLeader, false);
    });

    test("leaves a room when its last tab in it is closed", async () => {
        globalThis.indexedDB = new Databases();
        const open = browser(null);
        const [first, second] = [await open(), await open()];
        answerRooms(() => ({ room: { room: "lobby", memberCount: 1 } }));
        await first.logIn({ nickName: "ann", password: "secret" });
        await second.enterRoom("lobby", { name: "Ann" });
        await second.close();
        await server.until(() => server.packets.some((packet) => packet.room?.leave));
    });

    test("watches an account until the last tab that watches it ends this or is closed", async () => {
        globalThis.indexedDB = new Databases();
        const open = browser(null);
        const [first, second, third] = [await open(), await open(), await open()];
        answerRooms(() => ({}));
        await first.logIn({ nickName: "ann", password: "secret" });
        for (const tab of [first, second, third]) await tab.watchPresence([7, 8]);
        await first.unwatchPresence([7]);
        await first.unwatchPresence([7, 8, 9]);
        assert.deepEqual(unwatched(), [9]);
        await third.close();
        await second.unwatchPresence([8]);
        await server.until(() => unwatched().includes(8));
        await second.close();
        await server.until(() => unwatched().includes(7));
        assert.deepEqual(unwatched(), [9, 8, 7]);
    });

    test("tells that its databases fail, and takes part again when they work", async () => {
        // The disk is full. The browser aborts the transaction that makes the new version.
        const full = {
            open() {
                const request = /** @type {any} */ ({});
                queueMicrotask(() => {
                    request.onupgradeneeded();
                    request.error = Object.assign(new Error("the disk is full"), { name: "AbortError" });
                    request.onerror();
                });
                return request;
            },
        };
        const page = new Page();
        try {
            const open = browser(null);
            globalThis.indexedDB = full;
            await assert.rejects(open(), { message: "the disk is full" });
            const databases = new Databases();
            globalThis.indexedDB = databases;
            const tab = await open();
            page.send("freeze");
            await new Promise((resolve) => setTimeout(resolve, 20));
            globalThis.indexedDB = full;
            const failure = new Promise((resolve) => tab.on("storeError", resolve));
            page.send("resume");
            assert.equal((await failure).message, "the disk is full");
            const leads = new Promise((resolve) => tab.on("leader", resolve));
            globalThis.indexedDB = databases;
            assert.equal(await leads, true);
        } finally {
            page.end();
        }
    });

    test("is refused if it has no databases either", async () => {
        await assert.rejects(browser(null)(), { code: 2005, message: /https, localhost/ });
    });
});

describe("tabs", () => {
    test("one whose store fails leaves the lead to the next", async () => {
        const open = browser();
        const load = MemoryStore.prototype.load;
        MemoryStore.prototype.load = () => Promise.reject(new Error("no store"));
        await assert.rejects(open(), { message: "no store" });
        MemoryStore.prototype.load = load;
        const tab = await open();
        assert.ok(tab.isLeader);
        await tab.logIn({ nickName: "ann", password: "secret" });
    });

    test("have one connection; each gets each entry, and each may ask", async () => {
        const open = browser();
        const [first, second] = [await open(), await open()];
        assert.deepEqual([first.isLeader, second.isLeader], [true, false]);
        const got = { first: [], second: [] };
        first.on("entry", (event) => void got.first.push(event.seq));
        second.on("entry", (event) => void got.second.push(event.seq));
        await second.logIn({ nickName: "ann", password: "secret" });
        assert.equal(second.session.uid, 1);
        assert.equal(server.connections.length, 1);
        server.connections[0].send(message(1));
        server.connections[0].send(message(2));
        assert.deepEqual(await reached(got.first, 2), [1, 2]);
        assert.deepEqual(await reached(got.second, 2), [1, 2]);
        server.handler = (packet, connection) => {
            if (packet.account) connection.send({ id: packet.id, result: { account: { uid: 7, nickName: "bob" } } });
        };
        assert.equal((await second.account({ uid: 7 })).nickName, "bob");
        server.handler = (packet, connection) => {
            const error = { code: 2002, message: "no such account" };
            if (packet.account) connection.send({ id: packet.id, result: { error } });
        };
        await assert.rejects(second.account({ uid: 8 }), { code: 2002, message: "no such account" });
    });

    test("when the leader is closed, another one continues; nothing is lost or shown twice", async () => {
        const open = browser();
        const [first, second] = [await open(), await open()];
        const got = [];
        first.on("entry", () => {});
        second.on("entry", (event) => void got.push(event.seq));
        await first.logIn({ nickName: "ann", password: "secret" });
        await second.outbox.send("hello", { uid: 7 });
        await server.packet("send");
        server.connections[0].send(message(1));
        await reached(got, 1);
        const pending = second.contacts();
        const unsafe = [second.createGroup("friends"), second.removeContact(7)];
        await server.packet("contact", 1);
        server.session = { ...server.session, headSeq: "1" };
        server.handler = (packet, connection) => {
            if (packet.send) connection.send({ id: packet.id, result: { receipt: { messageId: "m" } } });
            if (packet.contact) connection.send({ id: packet.id, result: { contacts: { contacts: [] } } });
        };
        const sent = new Promise((resolve) => {
            second.on("outbox", (entry) => entry.status === "sent" && resolve(entry));
        });
        await first.close();
        for (const request of unsafe) await assert.rejects(request, { code: 102 });
        assert.deepEqual((await pending).contacts, []);
        assert.equal(second.isLeader, true);
        await sent;
        assert.equal(server.packets.filter((packet) => packet.contact?.remove).length, 1);
        const sends = server.packets.filter((packet) => packet.send).map((packet) => packet.send.clientId);
        assert.equal(new Set(sends).size, 1);
        const logins = server.packets.filter((packet) => packet.authenticate);
        assert.equal(logins[1].authenticate.token, "t");
        assert.equal(logins[1].authenticate.device.id, logins[0].authenticate.device.id);
        server.connections.at(-1).send(message(1));
        server.connections.at(-1).send(message(2));
        assert.deepEqual(await reached(got, 2), [1, 2]);
        assert.deepEqual(second.outbox.entries(), []);
    });

    test("a room is left when the last tab leaves it, and entered again under a new leader", async () => {
        const open = browser();
        const [first, second] = [await open(), await open()];
        server.handler = (packet, connection) => {
            if (packet.room) connection.send({ id: packet.id, result: { room: { room: "lobby", memberCount: 1 } } });
        };
        await first.logIn({ nickName: "ann", password: "secret" });
        await first.enterRoom("lobby", { name: "Ann" });
        // A connection that is in a room may not enter the room again.
        assert.equal(await second.enterRoom("lobby", { name: "Ann" }), 1);
        await first.leaveRoom("lobby");
        assert.equal(server.packets.filter((packet) => packet.room?.leave).length, 0);
        await first.close();
        await server.until(() => server.packets.filter((packet) => packet.room?.enter).length === 2);
        await second.leaveRoom("lobby");
        assert.equal(server.packets.filter((packet) => packet.room?.leave).length, 1);
    });

    test("a refused request to watch does not keep an account watched", async () => {
        const open = browser();
        const [first, second] = [await open(), await open()];
        answerRooms(() => ({}));
        await first.logIn({ nickName: "ann", password: "secret" });
        const answer = server.handler;
        await first.watchPresence([7]);
        server.handler = (packet, connection) =>
            packet.presence?.watchUids
                ? connection.send({ id: packet.id, result: { error: { code: 2003, message: "no" } } })
                : answer(packet, connection);
        await assert.rejects(second.watchPresence([7]));
        await first.unwatchPresence([7]);
        assert.deepEqual(server.packets.at(-1).presence, { unwatchUids: [7] });
    });

    test("an account that a tab asked to watch during the login stays watched when another tab ends this", async () => {
        const open = browser();
        const [first, second] = [await open(), await open()];
        answerRooms(() => ({}));
        const login = first.logIn({ nickName: "ann", password: "secret" });
        await Promise.all([login, first.watchPresence([7])]);
        await second.watchPresence([7]);
        await second.unwatchPresence([7]);
        assert.deepEqual(unwatched(), []);
        await first.unwatchPresence([7]);
        assert.deepEqual(unwatched(), [7]);
    });

    test("a request that ends the watching of an account and begins it again leaves it watched", async () => {
        const open = browser();
        const [first, second] = [await open(), await open()];
        answerRooms(() => ({}));
        await first.logIn({ nickName: "ann", password: "secret" });
        await first.request({ presence: { watchUids: [7], unwatchUids: [7] } });
        await second.watchPresence([7]);
        await second.unwatchPresence([7]);
        assert.deepEqual(unwatched(), [7]);
    });

    test("no tab watches an account after the login to another account", async () => {
        const open = browser();
        const [first, second] = [await open(), await open()];
        twoAccounts();
        answerRooms(() => ({}));
        await first.logIn({ nickName: "ann", password: "secret" });
        await second.watchPresence([7]);
        await first.logIn({ nickName: "bob", password: "secret" });
        await first.watchPresence([7]);
        await first.unwatchPresence([7]);
        assert.deepEqual(unwatched(), [7]);
    });

    test("the inbox of another account arrives, although its seqs are those of the account before", async () => {
        const open = browser();
        const [first, second] = [await open(), await open()];
        const got = { first: [], second: [] };
        first.on("entry", ({ message: { id } }) => void got.first.push(id));
        second.on("entry", ({ message: { id } }) => void got.second.push(id));
        twoAccounts();
        await first.logIn({ nickName: "ann", password: "secret" });
        for (const seq of [1, 2, 3]) server.connections[0].send(message(seq, `ann ${seq}`));
        await server.until(() => server.packets.some((packet) => packet.acknowledge?.upToSeq === "3"));
        await first.logIn({ nickName: "bob", password: "secret" });
        for (const seq of [1, 2]) server.connections[1].send(message(seq, `bob ${seq}`));
        await server.until(() => server.packets.at(-1).acknowledge?.upToSeq === "2");
        const all = ["ann 1", "ann 2", "ann 3", "bob 1", "bob 2"];
        assert.deepEqual(got.first, all);
        assert.deepEqual(await reached(got.second, 5), all);
    });

    test("after a login to another account, a tab gets no more entries of the account before", async () => {
        const open = browser();
        const [first, second] = [await open(), await open()];
        const got = [];
        let release;
        first.on("entry", () => {});
        second.on("entry", ({ message: { id } }) => {
            got.push(id);
            if (id === "ann 1") return new Promise((resolve) => (release = resolve));
        });
        twoAccounts();
        await first.logIn({ nickName: "ann", password: "secret" });
        for (const seq of [1, 2]) server.connections[0].send(message(seq, `ann ${seq}`));
        await server.until(() => server.packets.some((packet) => packet.acknowledge?.upToSeq === "2"));
        await reached(got, 1);
        const switched = new Promise((resolve) => second.on("session", resolve));
        await first.logIn({ nickName: "bob", password: "secret" });
        await switched;
        server.connections[1].send(message(1, "bob 1"));
        release();
        assert.deepEqual(await reached(got, 2), ["ann 1", "bob 1"]);
    });

    test("an entry that the server lost does not hide the one that has got its seq", async () => {
        const open = browser();
        const [first, second] = [await open(), await open()];
        const got = [];
        first.on("entry", ({ seq }) => (seq === 2 ? new Promise(() => {}) : undefined));
        second.on("entry", ({ message: { id } }) => void got.push(id));
        await first.logIn({ nickName: "ann", password: "secret" });
        for (const seq of [1, 2]) server.connections[0].send(message(seq));
        await reached(got, 2);
        await server.packet("acknowledge");
        server.session = { ...server.session, headSeq: "1", acknowledgedSeq: "1" };
        const back = new Promise((resolve) => second.on("session", resolve));
        await first.close();
        await back;
        server.connections[1].send(message(2, "another"));
        await server.until(() => server.packets.at(-1).acknowledge?.upToSeq === "2");
        assert.deepEqual(got, ["m1", "m2", "another"]);
    });

    test("another account is in no room, and watches nobody, also under a new leader", async () => {
        const open = browser();
        const [first, second] = [await open(), await open()];
        twoAccounts();
        answerRooms(() => ({ room: { room: "lobby", memberCount: server.connections.length } }));
        await first.logIn({ nickName: "ann", password: "secret" });
        for (const tab of [first, second]) {
            await tab.enterRoom("lobby", { name: "Ann" });
            await tab.watchPresence([7]);
        }
        await first.logIn({ nickName: "bob", password: "secret" });
        assert.equal(await first.enterRoom("lobby", { name: "Bob" }), 2);
        assert.deepEqual(enters().map((enter) => enter.user.name), ["Ann", "Bob"]);
        const back = new Promise((resolve) => second.on("session", resolve));
        server.packets = [];
        await first.close();
        await back;
        await second.request({ account: {} });
        assert.deepEqual(server.packets.map((packet) => Object.keys(packet)[1]), ["authenticate", "account"]);
    });

    test("a new leader asks for nothing before it is known whose rooms they are", async () => {
        const open = browser();
        const [first, second] = [await open(), await open()];
        answerRooms(() => ({ room: { room: "lobby", memberCount: 1 } }));
        await first.logIn({ nickName: "ann", password: "secret" });
        await second.enterRoom("lobby", { name: "Ann" });
        await second.watchPresence([7]);
        server.session = { ...server.session, uid: 2, nickName: "bob" };
        server.packets = [];
        await first.close();
        await server.packet("authenticate");
        await second.request({ account: {} });
        assert.deepEqual(server.packets.map((packet) => Object.keys(packet)[1]), ["authenticate", "account"]);
    });

    test("a room that a tab was kicked out of, or that refused it, is not entered under a new leader", async () => {
        const open = browser();
        const [first, second] = [await open(), await open()];
        answerRooms(({ room: { room } }) =>
            room === "full" ? { error: { code: 2003, message: "no" } } : { room: { room, memberCount: 1 } },
        );
        await first.logIn({ nickName: "ann", password: "secret" });
        await assert.rejects(second.enterRoom("full", { name: "Ann" }), { code: 2003 });
        await second.enterRoom("lobby", { name: "Ann" });
        await second.enterRoom("bar", { name: "Ann" });
        const kicked = new Promise((resolve) => second.on("room", (event) => event.kicked && resolve(event)));
        server.connections[0].send({ ephemeral: { room: { room: "lobby", kicked: { reason: "spam" } } } });
        assert.equal((await kicked).room, "lobby");
        server.packets = [];
        const entered = new Promise((resolve) => second.on("room", (event) => event.entered && resolve(event)));
        await first.close();
        assert.equal((await entered).room, "bar");
        await second.request({ account: {} });
        assert.deepEqual(server.packets.filter((packet) => packet.room).map((packet) => packet.room.room), ["bar"]);
    });

    test("a room that refuses a tab under a new leader is reported as a kick, and not entered again", async () => {
        const open = browser();
        const [first, second, third] = [await open(), await open(), await open()];
        answerRooms(() => ({ room: { room: "lobby", memberCount: 1 } }));
        await first.logIn({ nickName: "ann", password: "secret" });
        await third.enterRoom("lobby", { name: "Ann" });
        answerRooms(() => ({ error: { code: 2003, message: "banned" } }));
        const told = new Promise((resolve) => third.on("room", resolve));
        await first.close();
        const { room, uid, kicked } = await told;
        assert.deepEqual({ room, uid, kicked }, { room: "lobby", uid: 0, kicked: { reason: "banned" } });
        server.packets = [];
        await second.close();
        await server.packet("authenticate");
        await third.request({ account: {} });
        assert.deepEqual(server.packets.filter((packet) => packet.room), []);
    });

    test("a room that is entered during a login is entered once for all tabs", async () => {
        const open = browser();
        const [first, second] = [await open(), await open()];
        answerRooms(() => ({ room: { room: "lobby", memberCount: 1 } }));
        await first.logIn({ nickName: "ann", password: "secret" });
        const session = { ...server.session, uid: 2, nickName: "bob" };
        server.session = () => null;
        const login = first.logIn({ nickName: "bob", password: "secret" });
        const { id } = await server.packet("authenticate", 1);
        const entered = first.enterRoom("lobby", { name: "Bob" });
        server.connections[1].send({ id, result: { session } });
        await Promise.all([login, entered]);
        assert.equal(await second.enterRoom("lobby", { name: "Bob" }), 1);
        assert.equal(enters().length, 1);
    });

    test("a room whose return was not answered before the log-out is entered after the next login", async () => {
        const open = browser();
        const [first, second] = [await open(), await open()];
        answerRooms(() => ({ room: { room: "lobby", memberCount: 1 } }));
        await first.logIn({ nickName: "ann", password: "secret" });
        await second.enterRoom("lobby", { name: "Ann" });
        server.handler = (packet, connection) => packet.logOut && connection.send({ id: packet.id, result: {} });
        await first.close();
        await server.packet("room", 1);
        await second.logOut();
        answerRooms(() => ({ room: { room: "lobby", memberCount: 4 } }));
        const entered = new Promise((resolve) => second.on("room", resolve));
        await second.logIn({ nickName: "ann", password: "secret" });
        assert.deepEqual((await entered).entered, { memberCount: 4 });
    });

    test("a room that is left before it was entered is not entered under a new leader", async () => {
        const open = browser();
        const [first, second] = [await open(), await open()];
        answerRooms(() => ({ room: { room: "lobby", memberCount: 1 } }));
        await first.logIn({ nickName: "ann", password: "secret" });
        await Promise.all([second.enterRoom("lobby", { name: "Ann" }), second.leaveRoom("lobby")]);
        server.packets = [];
        await first.close();
        await server.packet("authenticate");
        await second.request({ account: {} });
        assert.deepEqual(server.packets.filter((packet) => packet.room), []);
    });

    test("a tab that could not lead is in its rooms again under the one that does", async () => {
        const open = browser();
        const [first, second] = [await open(), await open()];
        const third = await open();
        server.handler = (packet, connection) => {
            if (packet.room) connection.send({ id: packet.id, result: { room: { room: "lobby", memberCount: 1 } } });
        };
        await first.logIn({ nickName: "ann", password: "secret" });
        await second.enterRoom("lobby", { name: "Ann" });
        const load = MemoryStore.prototype.load;
        MemoryStore.prototype.load = () => {
            MemoryStore.prototype.load = load;
            return Promise.reject(new Error("no store"));
        };
        await first.close();
        await server.until(() => server.packets.filter((packet) => packet.room?.enter).length === 2);
        assert.ok(third.isLeader);
        const said = new Promise((resolve) => second.on("room", resolve));
        server.connections.at(-1).send({ ephemeral: { room: { room: "lobby", uid: 7, text: { text: "hi" } } } });
        assert.equal((await said).text.text, "hi");
    });
});
