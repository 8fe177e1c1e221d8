// Hermes
// SPDX-License-Identifier: Apache-2.0

/**
 * The waiting times before a client reconnects, in milliseconds.
 *
 * @typedef {object} ReconnectPolicy
 * @property {number[]} windows The lengths of the windows of the first tries. Each try happens at a random time in its
 *   window. The windows follow one another.
 * @property {number[]} delays The delays of later tries. The last delay repeats. If the list is empty, there are no
 *   further tries.
 * @property {number} jitter The largest deviation of a delay, as a fraction of the delay, 0 to 1.
 * @property {number} maxAdvisedWindow The longest window that the client accepts from the server's advice.
 */

/**
 * A policy for apps, because a server has many of them. There are six tries in windows of 15 s each, then tries after
 * 1, 2, 5 and 10 minutes. If the network becomes available again or the page is shown again, the policy restarts with a
 * try at once.
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
 * @property {number} notBefore The shortest wait. The client waits for at most an hour.
 * @property {number} window The window that follows the wait. The client picks a random moment of the window.
 */

/**
 * A moment for reconnecting, by the server's advice.
 *
 * @typedef {object} Slot
 * @property {number} earliest The earliest moment. A network that becomes available does not make it earlier.
 * @property {number} moment The random moment.
 * @property {number} end The end of the window from which the moment was drawn.
 */

/** The longest wait that the client accepts, in milliseconds. */
const longestAdvice = 3_600_000;
/** The part of an advised window that must remain for a second try in the window. Its inverse limits the peak rate. */
const leastRest = 0.75;
/** The least time that must remain for a second try in any window, in milliseconds. */
const shortestRest = 1000;

/**
 * Decides the time of the next try, from the policy and the tries so far. The class does no I/O. All times are
 * parameters, in milliseconds of the same clock.
 *
 * The windows of the first tries follow one another, regardless of when a try fails. So clients that have lost their
 * server at the same moment each make one try in every window, and a restarted server gets the tries at an even rate. A
 * try may fail early in an advised window, because the server has not restarted yet. Then the time of a second try is
 * drawn evenly from the rest of the window.
 */
export class ReconnectSchedule {
    /** The number of failed tries since the last stable connection. */
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

    /** Resets the count of failures, because the connection was stable or the conditions have changed. */
    startAnew() {
        this.failures = 0;
        this.#windowEnd = null;
        this.#slot = null;
    }

    /** Records that a try has succeeded. It is not known yet whether the connection is stable. */
    arrived() {
        this.#slot = null;
    }

    /**
     * Handles a failed try or a lost connection.
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
     * Handles a failed try or a lost connection after the server has advised a slot. Even with repeated advice, the
     * client does not try more often than its policy allows.
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
