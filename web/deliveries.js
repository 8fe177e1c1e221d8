// Hermes
// SPDX-License-Identifier: Apache-2.0

/** @typedef {import("./session.js").Delivery} Delivery */

/** The largest size of the entries that wait for the app, in bytes, and their largest number. */
const maxWaitingBytes = 64 * 1_048_576;
const maxWaiting = 16_384;
/**
 * The longest wait before failed handlers get the entry again, in milliseconds. The first wait is 1 s, and each further
 * failure doubles it.
 */
const longestWait = 60_000;

/** Passes entries to the app's handlers, one after the other. */
export class Deliveries {
    /** @type {Delivery[]} */
    #waiting = [];
    #bytes = 0;
    #isRunning = false;
    /** Whether the client was closed and has not logged in again. While it is true, no entries are delivered. */
    isHeld = false;
    #handlers;
    #taken;
    #fullnessChanged;

    /**
     * @param {object} options
     * @param {() => ((event: any) => any)[]} options.handlers Returns the app's handlers.
     * @param {(delivery: Delivery) => Promise<void>} options.taken Called when all handlers are done with an entry.
     * @param {(isFull: boolean) => void} options.fullnessChanged Called with true if no more entries should be kept,
     *   and with false if there is room again.
     */
    constructor({ handlers, taken, fullnessChanged }) {
        this.#handlers = handlers;
        this.#taken = taken;
        this.#fullnessChanged = fullnessChanged;
    }

    /** @param {Delivery} delivery */
    push(delivery) {
        this.#waiting.push(delivery);
        this.#changed(delivery.bytes);
        this.run();
    }

    /** Drops all entries, because another account has logged in. */
    clear() {
        this.#waiting = [];
        this.#changed(-this.#bytes);
    }

    async run() {
        if (this.#isRunning) return;
        this.#isRunning = true;
        for (let failures = 0; this.#waiting.length && !this.isHeld; ) {
            const handlers = this.#handlers();
            if (!handlers.length) break;
            const delivery = this.#waiting[0];
            try {
                if (!delivery.isRepeat) for (const handler of handlers) await handler(delivery.event);
                failures = 0;
            } catch (error) {
                console.error("Hermes: a handler of entries failed; it gets the entry again", error);
                const wait = Math.min(longestWait, 1000 * 2 ** failures);
                failures += 1;
                await new Promise((resolve) => setTimeout(resolve, wait));
                continue;
            }
            // Another account may have logged in in the meantime.
            if (this.#waiting[0] !== delivery) continue;
            this.#waiting.shift();
            this.#changed(-delivery.bytes);
            await this.#taken(delivery);
        }
        this.#isRunning = false;
    }

    /** @param {number} bytes */
    #changed(bytes) {
        this.#bytes += bytes;
        const share = Math.max(this.#bytes / maxWaitingBytes, this.#waiting.length / maxWaiting);
        if (share > 1) this.#fullnessChanged(true);
        if (share < 1 / 4) this.#fullnessChanged(false);
    }
}
