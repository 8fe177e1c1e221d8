// Hermes
// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { isRoomText, Lanes, roomOf, thinned, Thinner } from "../room/thinning.js";
import { connectPacket, PacketReader, publication, roomEvent, subscribePacket, Watcher } from "../room/watch.js";

describe("the live room", () => {
    test("shows what people can read, and counts the rest", () => {
        const thinner = new Thinner(5, 12);
        let shown = 0;
        for (let now = 0; now < 10_000; now += 1) shown += thinner.offer(now) ? 1 : 0;
        assert.ok(shown >= 12 + 49 && shown <= 12 + 50, `${shown}`);
        assert.equal(thinner.takeLeftOut(), 10_000 - shown);
        assert.equal(thinner.takeLeftOut(), 0);
        assert.equal(thinner.offer(100_000), true);
        thinner.leaveOut();
        assert.equal(thinner.takeLeftOut(), 1);
    });

    test("shows everything while little is said", () => {
        const thinner = new Thinner(5, 12);
        for (let now = 0; now < 60_000; now += 250) assert.ok(thinner.offer(now));
        assert.equal(thinner.takeLeftOut(), 0);
    });

    test("gives a text the lane that is free for the longest time", () => {
        const lanes = new Lanes();
        assert.equal(lanes.find(0), -1);
        lanes.resize(2);
        assert.equal(lanes.find(0), 0);
        lanes.take(0, 100);
        assert.equal(lanes.find(0), 1);
        lanes.take(1, 50);
        assert.equal(lanes.find(49), -1);
        assert.equal(lanes.find(50), 1);
        assert.equal(lanes.find(100), 1);
        lanes.resize(1);
        assert.equal(lanes.find(99), -1);
        assert.equal(lanes.find(100), 0);
    });

    test("takes the room's name from the address", () => {
        for (const [pathname, search, room] of [
            ["/room/", "", "lobby"],
            ["/room/index.html", "", "lobby"],
            ["/room/stage-2", "", "stage-2"],
            ["/room/", "?room=main.hall", "main.hall"],
            ["/room/a%20b", "", "a b"],
            ["/room/%", "", "lobby"],
        ]) {
            assert.equal(roomOf({ pathname, search }), room);
        }
    });
});

const text = (value) => {
    const bytes = Buffer.from(value);
    return Buffer.concat([Buffer.from([bytes.length >> 8, bytes.length & 255]), bytes]);
};
/** A field of a protobuf message. */
const field = (number, value) =>
    typeof value === "number"
        ? Buffer.from([number * 8, value])
        : Buffer.concat([Buffer.from([number * 8 + 2, Buffer.byteLength(value)]), Buffer.from(value)]);
const pair = (name, value) => Buffer.concat([Buffer.from([38]), text(name), text(value)]);
function publish(properties, payload) {
    const all = Buffer.concat(properties);
    const body = Buffer.concat([text("room/lobby"), Buffer.from([all.length]), all, Buffer.from(payload)]);
    assert.ok(body.length < 16_384);
    return Buffer.concat([Buffer.from([0x30, (body.length & 127) | 128, body.length >> 7]), body]);
}
const bodyOf = (bytes) => bytes.subarray(3);
const user = Buffer.concat([field(1, 3), field(2, "cat"), field(3, "")]);

describe("texts that nobody could read", () => {
    const frame = (room) => JSON.stringify({ ephemeral: { room: { room: "lobby", uid: "7", ...room } } });

    test("are told by their frames; all else is read", () => {
        assert.ok(isRoomText(frame({ text: { text: "hello" } })));
        // Quotes inside texts are escaped.
        const odd = '","text":{"text":"';
        for (const room of [{ notice: { text: odd } }, { gift: { name: odd } }, { kicked: { reason: odd } }]) {
            assert.ok(!isRoomText(frame(room)), frame(room));
        }
        assert.ok(!isRoomText(frame({ text: { text: "counted" }, topicSeq: "4", topicEpoch: "1" })));
        assert.ok(!isRoomText(JSON.stringify({ event: { seq: "1", message: { content: { text: odd } } } })));
        for (const other of [undefined, new ArrayBuffer(1), "", "{"]) assert.ok(!isRoomText(other));
    });

    test("do not reach the SDK", () => {
        class Socket {
            set onmessage(handler) {
                this.handler = handler;
            }
        }
        const got = [];
        let isTaken = true;
        const socket = new (thinned(Socket, () => isTaken))();
        socket.onmessage = ({ data }) => got.push(data);
        const said = frame({ text: { text: "hello" } });
        socket.handler({ data: said });
        isTaken = false;
        socket.handler({ data: said });
        socket.handler({ data: "{}" });
        assert.deepEqual(got, [said, "{}"]);
        socket.onmessage = null;
        assert.equal(socket.handler, null);
    });
});

describe("watching without an account", () => {
    test("asks for the room by MQTT 5.0", () => {
        assert.equal(Buffer.from(connectPacket).toString("hex"), "100d00044d51545405" + "02001e00" + "0000");
        assert.equal(Buffer.from(subscribePacket("a")).toString("hex"), "820c000100" + "0006" + "726f6f6d2f61" + "20");
    });

    test("reads packets however they are cut", () => {
        const one = publish([], "hello");
        const bytes = Buffer.concat([one, Buffer.from([0xd0, 0]), publish([], "x".repeat(300))]);
        for (const size of [1, 2, 3, 7, bytes.length]) {
            const reader = new PacketReader();
            const found = [];
            for (let at = 0; at < bytes.length; at += size) {
                reader.push(bytes.subarray(at, at + size));
                for (let next; (next = reader.next()); ) found.push([next.type, next.body.length]);
            }
            assert.deepEqual(found, [[0x30, one.length - 3], [0xd0, 0], [0x30, 313]], `${size}`);
        }
        for (const bad of ["30ffffffff01", "30ffffff7f00"]) {
            const reader = new PacketReader();
            reader.push(Buffer.from(bad, "hex"));
            assert.throws(() => reader.next(), RangeError);
        }
    });

    test("shows texts and gifts of viewers, texts of MQTT clients, and notices", () => {
        const typed = (type, body, ...more) => roomEvent(bodyOf(publish([pair("liveroom-type", type), ...more], body)), "lobby");
        const chat = Buffer.concat([field(1, user), field(2, "hello 你好")]);
        const said = { room: "lobby", uid: 0, user: { name: "cat" }, text: { text: "hello 你好" } };
        assert.deepEqual(typed("2", chat), said);
        // The type comes after all properties that a server may send before it.
        const others = [Buffer.from([1, 1]), Buffer.from([2, 0, 0, 0, 9]), Buffer.from([35, 0, 1]), Buffer.from([11, 128, 1])];
        assert.deepEqual(typed("2", chat, ...others, Buffer.concat([Buffer.from([3]), text("text/plain")])), said);
        const gift = Buffer.concat([field(1, user), field(2, "rose"), field(3, ""), field(4, 5)]);
        assert.deepEqual(typed("3", gift), { room: "lobby", uid: 0, user: { name: "cat" }, gift: { name: "rose", count: 5 } });
        assert.deepEqual(typed("4", field(1, "news")), { room: "lobby", uid: 0, notice: { text: "news" } });
        for (const type of ["0", "1", "5", "77"]) assert.equal(typed(type, user), null, type);
        const plain = (properties) => roomEvent(bodyOf(publish(properties, "hi")), "lobby");
        assert.deepEqual(plain([pair("name", "bot")]), { room: "lobby", uid: 0, user: { name: "bot" }, text: { text: "hi" } });
        assert.equal(plain([]).user.name, "MQTT");
        // The property looks like the server's, but a viewer sent it.
        assert.equal(plain([pair("liveroom-application-type", "4")]), null);
    });

    test("bytes of any kind are no reason to fail", () => {
        // A 32-bit xorshift generator.
        let state = 1;
        const random = (limit) => {
            for (const shift of [13, -17, 5]) state ^= shift > 0 ? state << shift : state >>> -shift;
            return (state >>> 0) % limit;
        };
        // Most bytes continue a number, so that there are long ones.
        const byte = () => [0xff, 128 + random(128), random(256)][random(3)];
        for (let round = 0; round < 3000; round++) {
            const bytes = Uint8Array.from({ length: round % 40 }, byte);
            publication(bytes);
            roomEvent(bodyOf(publish([pair("liveroom-type", String(round % 5))], bytes)), "lobby");
        }
    });

    class Socket {
        static all = [];
        readyState = 1;
        sent = [];
        constructor(url, protocols) {
            Object.assign(this, { url, protocols });
            Socket.all.push(this);
        }
        send(bytes) {
            this.sent.push(Buffer.from(bytes).toString("hex"));
        }
        close() {
            this.isClosed = true;
        }
        get(hex) {
            this.onmessage?.({ data: Uint8Array.from(Buffer.from(hex, "hex")).buffer });
        }
    }
    function watching(takes = () => true) {
        Socket.all = [];
        const [states, events] = [[], []];
        const watcher = new Watcher("ws://x/mqtt", "lobby", {
            takes,
            happened: (event) => events.push((event.text ?? event.notice).text),
            changed: (state) => states.push(state),
        }, Socket);
        watcher.start();
        const [socket] = Socket.all;
        socket.onopen();
        return { watcher, socket, states, events };
    }

    test("connects, subscribes, and reads no more than is asked for", () => {
        let isTaken = true;
        const { watcher, socket, states, events } = watching(() => isTaken);
        assert.deepEqual([socket.url, socket.protocols, socket.binaryType], ["ws://x/mqtt", ["mqtt"], "arraybuffer"]);
        socket.get("2003000000");
        assert.equal(socket.sent[1], Buffer.from(subscribePacket("lobby")).toString("hex"));
        socket.get("900400010000");
        assert.deepEqual(states, ["connecting", "live"]);
        socket.get(publish([], "one").toString("hex"));
        isTaken = false;
        socket.get(publish([], "two").toString("hex"));
        assert.deepEqual(events, ["one"]);
        // A viewer's text that looks like the server's notice is not a notice.
        socket.get(publish([pair("liveroom-application-type", "4")], field(1, "three")).toString("hex"));
        socket.get(publish([pair("liveroom-type", "2")], Buffer.concat([field(1, user), field(2, "four")])).toString("hex"));
        socket.get(publish([pair("liveroom-type", "4")], field(1, "the server's own words")).toString("hex"));
        assert.deepEqual(events, ["one", "the server's own words"]);
        watcher.stop();
        assert.ok(socket.isClosed);
    });

    for (const [name, answers] of [
        ["the server takes no anonymous clients", ["2003008700"]],
        ["the rules keep them from the room", ["2003000000", "900400010087"]],
    ]) {
        test(`gives up if ${name}`, () => {
            const { socket, states } = watching();
            for (const answer of answers) socket.get(answer);
            assert.deepEqual([states.at(-1), socket.isClosed], ["refused", true]);
        });
    }

    test("tries again if the connection ends, or the server is busy", (context) => {
        context.mock.timers.enable({ apis: ["setTimeout", "setInterval", "Date"] });
        for (const end of [(socket) => socket.onclose(), (socket) => socket.get("2003008900"), (socket) => socket.get("e000")]) {
            const { watcher, socket, states } = watching();
            end(socket);
            assert.deepEqual([states.at(-1), Socket.all.length], ["connecting", 1]);
            context.mock.timers.tick(2000);
            assert.equal(Socket.all.length, 2);
            watcher.stop();
            context.mock.timers.tick(100_000);
            assert.equal(Socket.all.length, 2);
        }
        // When the server is silent, the watcher sends pings and then makes a new connection.
        const { watcher, socket } = watching();
        for (let count = 0; count < 2; count += 1) context.mock.timers.tick(25_000);
        assert.deepEqual(socket.sent.slice(1), ["c000", "c000"]);
        context.mock.timers.tick(25_000);
        context.mock.timers.tick(2000);
        assert.equal(Socket.all.length, 2);
        watcher.stop();
    });
});
