// Hermes
// SPDX-License-Identifier: Apache-2.0

/** The subprotocol that asks for JSON. */
const subprotocol = "hermes.v1.json";
/** The longest output that a server may leave unread, in bytes. */
const maxUnsent = 16 * 1_048_576;
const connectTimeout = 10_000;

/** One WebSocket at a time, of which nothing is heard any more once it is closed. */
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
     * @param {(reason: string, code: number) => void} events.ended The connection ended, or could not be opened; `code`
     *   is that of the close frame, or 0 if it never was open.
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
            // Later, so that the caller has finished its step.
            clearTimeout(this.#timer);
            this.#timer = setTimeout(() => fail(String(error)), 0);
        }
    }

    /**
     * @param {string} text
     * @returns {boolean} False if the server leaves too much unread.
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
