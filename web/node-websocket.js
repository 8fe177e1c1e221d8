// Hermes
// SPDX-License-Identifier: Apache-2.0

import { Buffer } from "node:buffer";
import { createHash, randomBytes } from "node:crypto";
import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { setImmediate, setTimeout } from "node:timers";

/** The longest message that is read, in bytes. If the server sends a longer message, the connection is closed. */
const maxMessageBytes = 16 * 1_048_576;
/** The time within which a server must answer a close frame, in milliseconds. */
const closeTimeout = 2000;
/** RFC 6455, section 1.3. */
const guid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

const Opcode = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 };

/**
 * Encodes one frame. A client must mask its frames.
 *
 * @param {number} opcode
 * @param {Buffer} payload
 * @param {boolean} isMasked
 */
export function encodeFrame(opcode, payload, isMasked = true) {
    const { length } = payload;
    const extended = length < 126 ? 0 : length < 65_536 ? 2 : 8;
    const header = Buffer.alloc(2 + extended + (isMasked ? 4 : 0));
    header[0] = 0x80 | opcode;
    header[1] = (isMasked ? 0x80 : 0) | (extended === 0 ? length : extended === 2 ? 126 : 127);
    if (extended === 2) header.writeUInt16BE(length, 2);
    if (extended === 8) header.writeBigUInt64BE(BigInt(length), 2);
    if (!isMasked) return Buffer.concat([header, payload]);
    const mask = randomBytes(4);
    mask.copy(header, 2 + extended);
    const masked = Buffer.from(payload);
    for (let index = 0; index < length; index++) masked[index] ^= mask[index & 3];
    return Buffer.concat([header, masked]);
}

/** Reads frames from bytes that arrive in pieces of any size. */
export class FrameDecoder {
    /** @type {Buffer[]} */
    #chunks = [];
    #bytes = 0;
    #isMasked;
    #maxBytes;

    /**
     * @param {boolean} isMasked Whether the other side must mask its frames. Clients must mask them; servers must not.
     * @param {number} maxBytes The longest payload, in bytes.
     */
    constructor(isMasked = false, maxBytes = maxMessageBytes) {
        this.#isMasked = isMasked;
        this.#maxBytes = maxBytes;
    }

    /** @param {Buffer} chunk */
    push(chunk) {
        this.#chunks.push(chunk);
        this.#bytes += chunk.length;
    }

    /**
     * @returns {{ isFinal: boolean, opcode: number, payload: Buffer } | null} Null if the next frame is not complete.
     * @throws {Error & { code: number }} If the other side breaks the rules; `code` is the code for the close frame.
     */
    next() {
        const head = this.#peek(14);
        if (head.length < 2) return null;
        const short = head[1] & 0x7f;
        const extended = short < 126 ? 0 : short === 126 ? 2 : 8;
        if (head[0] & 0x70) throw breach(1002, "reserved bits are set");
        if (Boolean(head[1] & 0x80) !== this.#isMasked) throw breach(1002, "a frame is masked, or should be");
        const opcode = head[0] & 0x0f;
        const isFinal = Boolean(head[0] & 0x80);
        if (opcode >= 8 && (!isFinal || short > 125)) throw breach(1002, "a control frame is too long or in parts");
        if (head.length < 2 + extended) return null;
        const length = extended === 0 ? short : extended === 2 ? head.readUInt16BE(2) : Number(head.readBigUInt64BE(2));
        if (length > this.#maxBytes) throw breach(1009, `a frame of ${length} bytes is too long`);
        const headerLength = 2 + extended + (this.#isMasked ? 4 : 0);
        if (this.#bytes < headerLength + length) return null;
        const frame = this.#take(headerLength + length);
        const payload = Buffer.from(frame.subarray(headerLength));
        if (this.#isMasked) {
            const mask = frame.subarray(headerLength - 4, headerLength);
            for (let index = 0; index < length; index++) payload[index] ^= mask[index & 3];
        }
        return { isFinal, opcode, payload };
    }

    /** @param {number} count */
    #peek(count) {
        while (this.#chunks.length > 1 && this.#chunks[0].length < count) {
            const [first, second, ...rest] = this.#chunks;
            this.#chunks = [Buffer.concat([first, second]), ...rest];
        }
        return (this.#chunks[0] ?? Buffer.alloc(0)).subarray(0, count);
    }

    /** @param {number} count */
    #take(count) {
        const all = this.#chunks.length === 1 ? this.#chunks[0] : Buffer.concat(this.#chunks);
        const rest = all.subarray(count);
        this.#chunks = rest.length ? [rest] : [];
        this.#bytes = rest.length;
        return all.subarray(0, count);
    }
}

/** @param {number} code @param {string} message */
const breach = (code, message) => Object.assign(new Error(message), { code });

/**
 * A WebSocket client (RFC 6455) for Node, with the part of the browser's interface that the SDK uses. It supports only
 * text messages. A binary message arrives as a Buffer, and the SDK treats it as a breach of the protocol.
 */
export class WebSocket {
    readyState = 0;
    /** @type {((event: any) => void) | null} */
    onopen = null;
    /** @type {((event: { data: string | Buffer }) => void) | null} */
    onmessage = null;
    /** @type {((event: { code: number, reason: string }) => void) | null} */
    onclose = null;
    /** @type {((event: any) => void) | null} */
    onerror = null;
    protocol = "";
    /** @type {import("node:net").Socket | null} */
    #socket = null;
    #request;
    #decoder = new FrameDecoder();
    /** @type {Buffer[]} The parts of an unfinished message. */
    #parts = [];
    #partBytes = 0;
    #partOpcode = 0;
    #closeCode = 1006;
    #closeReason = "";
    #hasSentClose = false;

    /**
     * @param {string} address The URL, which begins with ws: or wss:.
     * @param {string[]} protocols The subprotocols to offer.
     * @param {import("node:tls").ConnectionOptions} tls The options for TLS, for example `ca`.
     */
    constructor(address, protocols = [], tls = {}) {
        const url = new URL(address);
        const isSecure = url.protocol === "wss:";
        if (!isSecure && url.protocol !== "ws:") throw new SyntaxError(`${url.protocol} is not ws: or wss:`);
        const key = randomBytes(16).toString("base64");
        const options = {
            ...tls,
            host: url.hostname.replace(/^\[|\]$/g, ""),
            port: url.port || (isSecure ? 443 : 80),
            path: url.pathname + url.search,
            headers: {
                Host: url.host,
                Upgrade: "websocket",
                Connection: "Upgrade",
                "Sec-WebSocket-Key": key,
                "Sec-WebSocket-Version": "13",
                ...(protocols.length ? { "Sec-WebSocket-Protocol": protocols.join(", ") } : {}),
            },
        };
        const request = (isSecure ? httpsRequest : httpRequest)(options);
        this.#request = request;
        request.on("upgrade", (response, socket, head) => {
            const accept = createHash("sha1").update(key + guid).digest("base64");
            const { "sec-websocket-accept": answer, "sec-websocket-protocol": protocol = "" } = response.headers;
            if (answer !== accept || (protocol && !protocols.includes(protocol)) || this.readyState !== 0) {
                socket.destroy();
                this.#ended(`the server's answer opens no WebSocket`);
                return;
            }
            this.protocol = protocol;
            this.#opened(/** @type {import("node:net").Socket} */ (socket), head);
        });
        request.on("response", (response) => {
            response.destroy();
            this.#ended(`the server answered ${response.statusCode}`);
        });
        request.on("error", (error) => this.#ended(error.message));
        request.end();
    }

    /** The bytes that the server has not read yet. */
    get bufferedAmount() {
        return this.#socket?.writableLength ?? 0;
    }

    /** @param {string} text */
    send(text) {
        if (this.readyState === 1) this.#socket?.write(encodeFrame(Opcode.text, Buffer.from(text)));
    }

    close(code = 1000, reason = "") {
        if (this.readyState === 0) {
            this.#request.destroy();
            this.#ended("closed");
        }
        if (this.readyState !== 1) return;
        this.readyState = 2;
        this.#sendClose(code, reason);
        setTimeout(() => this.#socket?.destroy(), closeTimeout).unref();
    }

    /** @param {import("node:net").Socket} socket @param {Buffer} head */
    #opened(socket, head) {
        this.#socket = socket;
        this.readyState = 1;
        socket.setNoDelay(true);
        socket.setTimeout(0);
        socket.on("data", (chunk) => this.#received(chunk));
        socket.on("error", (error) => (this.#closeReason ||= error.message));
        socket.on("close", () => this.#ended(this.#closeReason));
        this.onopen?.({});
        if (head.length) this.#received(head);
    }

    /** @param {Buffer} chunk */
    #received(chunk) {
        this.#decoder.push(chunk);
        try {
            for (let frame; this.readyState < 3 && (frame = this.#decoder.next()); ) this.#frame(frame);
        } catch (error) {
            const { code = 1002, message } = /** @type {any} */ (error);
            this.#sendClose(code, message);
            this.#closeReason = message;
            this.#socket?.destroy();
        }
    }

    /** @param {{ isFinal: boolean, opcode: number, payload: Buffer }} frame */
    #frame({ isFinal, opcode, payload }) {
        if (opcode === Opcode.ping) {
            // A server that sends pings but reads nothing must not fill the memory.
            const mayAnswer = this.readyState === 1 && this.bufferedAmount < 65_536;
            if (mayAnswer) this.#socket?.write(encodeFrame(Opcode.pong, payload));
        } else if (opcode === Opcode.close) {
            this.#closeCode = payload.length >= 2 ? payload.readUInt16BE(0) : 1005;
            this.#closeReason = payload.subarray(2).toString();
            this.#sendClose(this.#closeCode === 1005 ? 1000 : this.#closeCode, "");
            this.#socket?.end();
        } else if (opcode === Opcode.text || opcode === Opcode.binary || opcode === Opcode.continuation) {
            const isNext = opcode === Opcode.continuation;
            if (isNext !== this.#parts.length > 0) throw breach(1002, "parts are out of order");
            if (!isNext) this.#partOpcode = opcode;
            this.#parts.push(payload);
            this.#partBytes += payload.length;
            const isTooLong = this.#partBytes > maxMessageBytes || this.#parts.length > 65_536;
            if (isTooLong) throw breach(1009, "a message is too long");
            if (!isFinal) return;
            const message = this.#parts.length === 1 ? payload : Buffer.concat(this.#parts);
            this.#parts = [];
            this.#partBytes = 0;
            this.onmessage?.({ data: this.#partOpcode === Opcode.text ? message.toString() : message });
        } else if (opcode !== Opcode.pong) {
            throw breach(1002, `opcode ${opcode} is undefined`);
        }
    }

    /** @param {number} code @param {string} reason */
    #sendClose(code, reason) {
        if (this.#hasSentClose) return;
        this.#hasSentClose = true;
        const payload = Buffer.alloc(2);
        payload.writeUInt16BE(code, 0);
        const text = Buffer.from(reason).subarray(0, 123);
        this.#socket?.write(encodeFrame(Opcode.close, Buffer.concat([payload, text])));
    }

    /** @param {string} reason */
    #ended(reason) {
        if (this.readyState === 3) return;
        this.readyState = 3;
        this.#socket = null;
        // The call comes later, as in browsers.
        setImmediate(() => this.onclose?.({ code: this.#closeCode, reason }));
    }
}
