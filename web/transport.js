// Hermes
// SPDX-License-Identifier: Apache-2.0

/** The WebSocket subprotocol that selects JSON. */
const subprotocol = "hermes.v1.json";
/** The largest output that a server may leave unread, in bytes. */
const maxUnsent = 16 * 1_048_576;
const connectTimeout = 10_000;

/** At most one WebSocket at a time. After `close`, the WebSocket causes no more events. */
export class Transport {
    #url;
    #make;
    #events;
    /** @type {any} */
    #socket = null;
    /** @type {any} */
    #timer;

    /**
     * @param {string} url
     * @param {any} WebSocketClass The class to connect with.
     * @param {object} events
     * @param {() => void} events.opened
     * @param {(data: unknown) => void} events.received
     * @param {(reason: string, code: number) => void} events.ended The connection has ended, or could not be opened.
     *   `code` is the code of the close frame, or 0 if the connection was never open.
     */
    constructor(url, WebSocketClass, events) {
        if (!WebSocketClass) throw new TypeError("there is no WebSocket class: pass one as the option WebSocket");
        this.#url = url;
        this.#make = WebSocketClass;
        this.#events = events;
    }

    open() {
        const { opened, received, ended } = this.#events;
        let isOpen = false;
        const fail = (reason = `cannot connect to ${this.#url}`) => ended(reason, 0);
        this.#timer = setTimeout(fail, connectTimeout);
        try {
            const socket = new this.#make(this.#url, [subprotocol]);
            this.#socket = socket;
            socket.onopen = () => {
                isOpen = true;
                clearTimeout(this.#timer);
                opened();
            };
            socket.onmessage = (/** @type {{ data: any }} */ { data }) => received(data);
            socket.onclose = (/** @type {{ code: number, reason: string }} */ { code, reason }) =>
                isOpen ? ended(`the connection ended (${code} ${reason})`, code) : fail();
        } catch (error) {
            // The failure is reported later, after the caller has finished its step.
            clearTimeout(this.#timer);
            this.#timer = setTimeout(() => fail(String(error)), 0);
        }
    }

    /**
     * @param {string} text
     * @returns {boolean} False if the server leaves too much output unread.
     */
    send(text) {
        const socket = this.#socket;
        if (socket?.readyState !== 1) return true;
        if (socket.bufferedAmount > maxUnsent) return false;
        socket.send(text);
        return true;
    }

    close() {
        clearTimeout(this.#timer);
        const socket = this.#socket;
        this.#socket = null;
        if (!socket) return;
        socket.onopen = socket.onmessage = socket.onclose = null;
        socket.onerror = () => {};
        socket.close();
    }
}
