// Hermes
// SPDX-License-Identifier: Apache-2.0

/**
 * The waiting times before a client reconnects, in milliseconds.
 *
 * @typedef {object} ReconnectPolicy
 * @property {number[]} windows The windows of the first tries. Each try comes at a random moment of its window, and the
 *   windows follow one another.
 * @property {number[]} delays The delays of later tries; the last one repeats. Empty: no further tries.
 * @property {number} jitter The largest deviation of a delay, as a fraction of it: 0 to 1.
 * @property {number} maxAdvisedWindow The longest window of the server's advice that is obeyed.
 */

/**
 * Six tries within 15 s each, then after 1, 2, 5 and 10 minutes: for apps, of which a server has many. A network that
 * comes back, or a page that is shown again, restarts the policy with a try at once.
 *
 * @type {Readonly<ReconnectPolicy>}
 */
export const standardPolicy = Object.freeze({
    windows: [15_000, 15_000, 15_000, 15_000, 15_000, 15_000],
    delays: [60_000, 120_000, 300_000, 600_000],
    jitter: 0.2,
    maxAdvisedWindow: 3_600_000,
});

/**
 * The server's advice for reconnecting, in milliseconds.
 *
 * @typedef {object} Advice
 * @property {number} notBefore The shortest wait; at most an hour is obeyed.
 * @property {number} window The window that follows the wait: the client picks a random moment of it.
 */

/**
 * A moment for reconnecting, as the server advised.
 *
 * @typedef {object} Slot
 * @property {number} earliest The earliest moment. A network that comes back does not make it earlier.
 * @property {number} moment The random moment.
 * @property {number} end The end of the window that the moment was drawn from.
 */

/** The longest wait that is obeyed. */
const longestAdvice = 3_600_000;
/** The part of an advised window that must be left for a second try in it. Its inverse bounds the peak rate. */
const leastRest = 0.75;
/** The least time that must be left for a second try, whatever the window. */
const shortestRest = 1000;

/**
 * Decides when the next try is due, from the policy and the tries so far. Does no I/O; times are passed in, in
 * milliseconds of any one clock.
 *
 * The windows of the first tries follow one another, whether a try fails soon or late. So clients that lost their
 * server at the same moment make one try each in every window, and the returning server sees them at an even rate. If a
 * try fails early in an advised window because the server is not back yet, a second one is drawn evenly from the rest.
 */
export class ReconnectSchedule {
    /** Failed tries since the connection last was well. */
    failures = 0;
    /** @type {number | null} The end of the last try's window. */
    #windowEnd = null;
    /** @type {Slot | null} The slot of the present try. */
    #slot = null;
    #policy;
    #random;

    /**
     * @param {ReconnectPolicy} policy
     * @param {() => number} random Returns a random number, at least 0 and below 1.
     */
    constructor(policy, random = Math.random) {
        this.#policy = policy;
        this.#random = random;
    }

    /** Whether the policy allows no further try. */
    get isOver() {
        return this.#delay(0) === null;
    }

    /** The connection was well, or the conditions changed: the count of failures starts anew. */
    startAnew() {
        this.failures = 0;
        this.#windowEnd = null;
        this.#slot = null;
    }

    /** A try succeeded; whether the connection stays well is not known yet. */
    arrived() {
        this.#slot = null;
    }

    /**
     * A try failed or the connection was lost.
     *
     * @param {number} now
     * @returns {number | null} The time of the next try; null if there is none.
     */
    next(now) {
        const fraction = this.#random();
        const delay = this.#delay(fraction);
        if (delay === null) return null;
        const rest = this.#restOfSlot(now);
        if (rest !== null) {
            this.failures += 1;
            return now + rest * fraction;
        }
        let begin = now;
        if (this.failures < this.#policy.windows.length) {
            begin = Math.max(now, this.#windowEnd ?? now);
            this.#windowEnd = begin + this.#policy.windows[this.failures];
        }
        this.failures += 1;
        return begin + delay;
    }

    /**
     * A try failed or the connection was lost, and the server advised a slot. Repeated advice does not make the client
     * try more often than its policy.
     *
     * @param {Slot} slot
     * @param {number} now
     * @returns {number | null}
     */
    nextAt(slot, now) {
        this.#slot = null;
        const own = this.next(now);
        if (own === null) return null;
        this.#slot = slot;
        this.#windowEnd = Math.max(this.#windowEnd ?? slot.end, slot.end);
        return Math.max(now, this.failures > 1 ? Math.max(own, slot.moment) : slot.moment);
    }

    /**
     * Draws this client's slot from the advice.
     *
     * @param {Advice} advice
     * @param {number} now
     * @returns {Slot}
     */
    slot(advice, now) {
        const earliest = now + Math.min(advice.notBefore, longestAdvice);
        const window = Math.min(advice.window, this.#policy.maxAdvisedWindow);
        return { earliest, moment: earliest + window * this.#random(), end: earliest + window };
    }

    /** @param {number} fraction */
    #delay(fraction) {
        const { windows, delays, jitter } = this.#policy;
        if (this.failures < windows.length) return windows[this.failures] * fraction;
        if (!delays.length) return null;
        const delay = delays[Math.min(this.failures - windows.length, delays.length - 1)];
        return delay * (1 + jitter * (2 * fraction - 1));
    }

    /** @param {number} now */
    #restOfSlot(now) {
        const slot = this.#slot;
        if (!slot || now < slot.earliest) return null;
        const rest = slot.end - now;
        return rest >= shortestRest && rest >= (slot.end - slot.earliest) * leastRest ? rest : null;
    }
}
