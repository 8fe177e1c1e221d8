// Hermes
// SPDX-License-Identifier: Apache-2.0

// Watches a room without an account. The page subscribes to the room's topic over MQTT 5.0, if the server accepts
// anonymous clients.

const word = new TextEncoder();
const text = new TextDecoder();

/** The time between two pings, and the time after which a silent server counts as lost, in milliseconds. */
const pingInterval = 25_000;
const patience = 60_000;
const longestPause = 30_000;
const closing = 1000;
/** The longest packet that is read, in bytes. */
const maxPacket = 1_048_576;

/** @param {string} value */
function string(value) {
    const bytes = word.encode(value);
    return [bytes.length >> 8, bytes.length & 255, ...bytes];
}

/**
 * A packet. Its body must be shorter than 128 bytes.
 *
 * @param {number} type
 * @param {number[]} body
 */
const packet = (type, ...body) => new Uint8Array([type, body.length, ...body]);

/** A CONNECT with a clean start, a keep alive of 30 s and an empty client identifier. */
export const connectPacket = packet(0x10, ...string("MQTT"), 5, 2, 0, 30, 0, ...string(""));
/** A SUBSCRIBE to a room, without its retained message. The name of the room has at most 64 bytes. */
export const subscribePacket = (/** @type {string} */ room) => packet(0x82, 0, 1, 0, ...string(`room/${room}`), 0x20);
const pingPacket = packet(0xc0);
const disconnectPacket = packet(0xe0);

/** Cuts a stream of bytes into MQTT packets. */
export class PacketReader {
    #bytes = new Uint8Array(0);
    #at = 0;

    /** @param {Uint8Array} bytes */
    push(bytes) {
        const rest = this.#bytes.subarray(this.#at);
        this.#bytes = new Uint8Array(rest.length + bytes.length);
        this.#bytes.set(rest);
        this.#bytes.set(bytes, rest.length);
        this.#at = 0;
    }

    /**
     * Returns the next complete packet.
     *
     * @returns {{ type: number, body: Uint8Array } | null}
     */
    next() {
        let length = 0;
        for (let at = this.#at + 1, shift = 0; at < this.#bytes.length; at += 1, shift += 7) {
            length += (this.#bytes[at] & 127) << shift;
            if (this.#bytes[at] > 127 && shift < 21) continue;
            if (this.#bytes[at] > 127 || length > maxPacket) throw new RangeError("the server sent no MQTT");
            if (at + 1 + length > this.#bytes.length) return null;
            const type = this.#bytes[this.#at];
            const body = this.#bytes.subarray(at + 1, at + 1 + length);
            this.#at = at + 1 + length;
            return { type, body };
        }
        return null;
    }
}

/**
 * The sizes in bytes of the properties that a server may send with a publication, by identifier. 0 stands for a text,
 * and -1 for two texts.
 */
const properties = new Map([[1, 1], [2, 4], [3, 0], [8, 0], [9, 0], [11, NaN], [35, 2], [38, -1]]);

/**
 * Reads the payload of a PUBLISH packet of QoS 0, and its user properties.
 *
 * @param {Uint8Array} body
 * @returns {{ payload: Uint8Array, user: Map<string, string> }}
 */
export function publication(body) {
    let at = 0;
    const number = () => {
        let value = 0;
        for (let shift = 0; ; shift += 7) {
            const byte = body[at];
            at += 1;
            value += (byte & 127) << shift;
            if (!(byte > 127) || shift > 20) return value;
        }
    };
    const words = () => {
        const length = (body[at] << 8) | body[at + 1];
        at += 2 + length;
        return text.decode(body.subarray(at - length, at));
    };
    words();
    const length = number();
    const end = at + length;
    /** @type {Map<string, string>} */
    const user = new Map();
    while (at < end) {
        const kind = properties.get(number());
        if (kind === undefined) break;
        if (kind > 0) at += kind;
        else if (kind === 0) words();
        else if (kind < 0) user.set(words(), words());
        else number();
    }
    return { payload: body.subarray(end), user };
}

/**
 * Reads the fields of a protobuf message that has only numbers and bytes.
 *
 * @param {Uint8Array} bytes
 * @returns {Map<number, number | Uint8Array>}
 */
function fields(bytes) {
    const found = new Map();
    let at = 0;
    const number = () => {
        let value = 0;
        for (let scale = 1; at < bytes.length; scale *= 128) {
            const byte = bytes[at];
            at += 1;
            value += (byte & 127) * scale;
            if (byte < 128) break;
        }
        return value;
    };
    while (at < bytes.length) {
        const key = number();
        if (key % 8 === 0) found.set(Math.floor(key / 8), number());
        else if (key % 8 === 2) {
            const length = number();
            found.set(Math.floor(key / 8), bytes.subarray(at, at + length));
            at += length;
        } else break;
    }
    return found;
}

/** @param {Map<number, number | Uint8Array>} message @param {number} field */
function textOf(message, field) {
    const value = message.get(field);
    return value instanceof Uint8Array ? text.decode(value) : "";
}

/**
 * Turns a publication to a room's topic into a `hermes.v1.RoomEvent`; null if the page does not show it.
 *
 * @param {Uint8Array} body The body of the PUBLISH packet.
 * @param {string} room
 * @returns {any}
 */
export function roomEvent(body, room) {
    const { payload, user } = publication(body);
    const type = user.get("liveroom-type");
    if (type === undefined) {
        if (user.has("liveroom-application-type")) return null;
        return { room, uid: 0, user: { name: user.get("name") ?? "MQTT" }, text: { text: text.decode(payload) } };
    }
    const message = fields(payload);
    const from = message.get(1);
    const name = from instanceof Uint8Array ? textOf(fields(from), 2) : "";
    if (type === "2") return { room, uid: 0, user: { name }, text: { text: textOf(message, 2) } };
    if (type === "3") {
        const count = message.get(4);
        return {
            room,
            uid: 0,
            user: { name },
            gift: { name: textOf(message, 2), count: typeof count === "number" ? count : 1 },
        };
    }
    return type === "4" ? { room, uid: 0, notice: { text: textOf(message, 1) } } : null;
}

/** Watches a room without an account. Calls `happened` with each event, and `changed` with the connection's state. */
export class Watcher {
    #url;
    #room;
    #events;
    #make;
    /** @type {any} */
    #socket = null;
    /** @type {any} */
    #timer;
    #heardAt = 0;
    #failures = 0;

    /**
     * @param {string} url The server's URL for MQTT over WebSocket.
     * @param {string} room
     * @param {object} events
     * @param {() => boolean} events.takes Whether to read one more event; called before each event is read. Notices are
     *   always read.
     * @param {(event: any) => void} events.happened A `hermes.v1.RoomEvent`.
     * @param {(state: "connecting" | "live" | "refused") => void} events.changed `refused` means that an account is
     *   necessary.
     * @param {any} WebSocketClass
     */
    constructor(url, room, events, WebSocketClass = WebSocket) {
        this.#url = url;
        this.#room = room;
        this.#events = events;
        this.#make = WebSocketClass;
    }

    start() {
        this.stop();
        this.#events.changed("connecting");
        const reader = new PacketReader();
        const socket = new this.#make(this.#url, ["mqtt"]);
        this.#socket = socket;
        socket.binaryType = "arraybuffer";
        this.#heardAt = Date.now();
        this.#timer = setInterval(() => {
            if (Date.now() - this.#heardAt > patience) this.#again();
            else if (socket.readyState === 1) socket.send(pingPacket);
        }, pingInterval);
        socket.onopen = () => socket.send(connectPacket);
        socket.onclose = () => this.#again();
        socket.onmessage = (/** @type {{ data: ArrayBuffer }} */ { data }) => {
            this.#heardAt = Date.now();
            try {
                reader.push(new Uint8Array(data));
                for (let next; this.#socket === socket && (next = reader.next()); ) this.#read(next);
            } catch {
                this.#again();
            }
        };
    }

    /** Stops watching. The promise is fulfilled when the connection is closed. */
    stop() {
        clearInterval(this.#timer);
        clearTimeout(this.#timer);
        const socket = this.#socket;
        this.#socket = null;
        if (!socket) return Promise.resolve();
        socket.onopen = socket.onmessage = null;
        return new Promise((resolve) => {
            socket.onclose = resolve;
            setTimeout(resolve, closing);
            if (socket.readyState === 1) socket.send(disconnectPacket);
            socket.close();
        });
    }

    /** @param {{ type: number, body: Uint8Array }} packet */
    #read({ type, body }) {
        const { takes, happened, changed } = this.#events;
        if (type >> 4 === 3) {
            // Notices come from the server, and are never left out.
            if (!takes() && publication(body).user.get("liveroom-type") !== "4") return;
            const event = roomEvent(body, this.#room);
            if (event) happened(event);
        } else if (type >> 4 === 2 && body[1] === 0) {
            this.#socket.send(subscribePacket(this.#room));
        } else if (type >> 4 === 9 && body[3 + body[2]] < 128) {
            this.#failures = 0;
            changed("live");
        } else if (type >> 4 === 2 || type >> 4 === 9) {
            // These codes mean that the client is not authorized, on this server or in this room. After other codes, a
            // new try may succeed.
            const reason = type >> 4 === 2 ? body[1] : body[3 + body[2]];
            if (reason !== 0x86 && reason !== 0x87 && reason !== 0x8c) return this.#again();
            this.stop();
            changed("refused");
        } else if (type >> 4 === 14) {
            this.#again();
        }
    }

    #again() {
        this.stop();
        this.#events.changed("connecting");
        this.#failures += 1;
        const pause = Math.min(longestPause, 1000 * 2 ** Math.min(this.#failures, 8));
        this.#timer = setTimeout(() => this.start(), pause * (0.5 + Math.random() / 2));
    }
}
