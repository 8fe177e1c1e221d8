// Hermes
// SPDX-License-Identifier: Apache-2.0

// The client with a store that fails for a while.
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test } from "node:test";
import { HermesClient, MemoryStore, standardPolicy } from "./sdk.js";
import { WebSocket } from "../node-websocket.js";
import { FakeServer } from "./fake-server.js";

const soon = { ...standardPolicy, windows: Array(50).fill(5) };
const ann = { nickName: "ann", password: "secret" };
let server;
let clients = [];
beforeEach(async () => (server = await FakeServer.start()));
afterEach(async () => {
    for (const client of clients) await client.close();
    clients = [];
    server.stop();
});

async function open(store = new MemoryStore()) {
    const client = await HermesClient.open({ server: server.url, store, WebSocket, reconnect: soon });
    clients.push(client);
    return client;
}

/** Waits until the message with this text has this status. */
const reached = (client, text, status) =>
    new Promise((resolve) => {
        const remove = client.on("outbox", (entry) => {
            if (entry.content.text !== text || entry.status !== status) return;
            remove();
            resolve(entry);
        });
    });

const refusal = (packet, code, retryAfterMs = 0) => ({
    id: packet.id,
    result: { error: { code, message: "no", retryAfterMs } },
});

describe("messages behind one that cannot be stored are sent", () => {
    /** Delays the next write of the outbox. Returns a function that makes it fail. */
    function holdNextWrite(store) {
        let fail;
        const failure = new Promise((_resolve, reject) => (fail = () => reject(new Error("full"))));
        const write = store.write.bind(store);
        store.write = (changes) => {
            if (!changes.some(([key]) => key.startsWith("outbox/"))) return write(changes);
            store.write = write;
            return failure;
        };
        return fail;
    }

    const receipt = (packet) => ({ id: packet.id, result: { receipt: { clientId: packet.send.clientId } } });

    test("if it was refused and is tried again", async () => {
        const store = new MemoryStore();
        const client = await open(store);
        await client.logIn(ann);
        let release;
        server.handler = (packet, connection) => {
            const { text } = packet.send.content;
            if (text === "refused") connection.send(refusal(packet, 2003));
            else if (text === "held") release = () => connection.send(receipt(packet));
            else connection.send(receipt(packet));
        };
        const failed = reached(client, "refused", "failed");
        await client.outbox.send("refused", { uid: 8 });
        const { clientId } = await failed;
        const sent = reached(client, "held", "sent");
        await client.outbox.send("held", { uid: 8 });
        await server.until(() => release);
        await client.outbox.send("behind it", { uid: 8 });
        const fail = holdNextWrite(store);
        const retry = client.outbox.retry(clientId);
        release();
        await sent;
        const behind = reached(client, "behind it", "sent");
        fail();
        await assert.rejects(retry, { code: 113 });
        await behind;
    });

    test("if it is new, and the store answers out of order", async () => {
        const store = new MemoryStore();
        const client = await open(store);
        await client.logIn(ann);
        server.handler = (packet, connection) => connection.send(receipt(packet));
        const fail = holdNextWrite(store);
        const first = client.outbox.send("first", { uid: 8 });
        await client.outbox.send("behind it", { uid: 8 });
        const behind = reached(client, "behind it", "sent");
        fail();
        await assert.rejects(first, { code: 113 });
        await behind;
    });
});
