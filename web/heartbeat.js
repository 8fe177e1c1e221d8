// Hermes
// SPDX-License-Identifier: Apache-2.0

/**
 * The bounds within which a client searches for the longest heartbeat interval that a network allows, in milliseconds.
 *
 * @typedef {object} HeartbeatAdaptation
 * @property {number} shortest The shortest interval.
 * @property {number} longest The longest interval.
 * @property {number} step The increase of the interval at each step.
 * @property {number} retreat The decrease of the interval after failures.
 * @property {number} successesBeforeStep The number of successes in a row before the interval grows.
 * @property {number} failuresBeforeRetreat The number of failures in a row before the interval shrinks.
 */

/**
 * The rules for sending heartbeats, and for when the connection counts as lost. Times are in milliseconds.
 *
 * @typedef {object} HeartbeatPolicy
 * @property {number} interval The time between two heartbeats. With an adaptation, it is the initial interval, and the
 *   longest interval in the foreground.
 * @property {HeartbeatAdaptation | null} adaptation The bounds of the interval; null if the interval is fixed.
 * @property {number} answerTimeout The time to wait for an answer. Any packet from the server counts as an answer.
 * @property {number} tries The number of unanswered heartbeats in a row after which the connection counts as lost.
 */

/**
 * Intervals from 25 s to 580 s. The interval grows by 60 s after 5 answers in a row, and shrinks by 80 s after 2
 * failures in a row.
 *
 * @type {Readonly<HeartbeatAdaptation>}
 */
export const standardAdaptation = Object.freeze({
    shortest: 25_000,
    longest: 580_000,
    step: 60_000,
    retreat: 80_000,
    successesBeforeStep: 5,
    failuresBeforeRetreat: 2,
});

/**
 * A heartbeat every 120 s, which is below the idle timeouts of most networks. The answer must arrive within 8 s.
 *
 * @type {Readonly<HeartbeatPolicy>}
 */
export const pushHeartbeat = Object.freeze({ interval: 120_000, adaptation: null, answerTimeout: 8000, tries: 3 });

/**
 * The same as `pushHeartbeat`, but with an interval that adapts to the network.
 *
 * @type {Readonly<HeartbeatPolicy>}
 */
export const adaptiveHeartbeat = Object.freeze({ ...pushHeartbeat, adaptation: standardAdaptation });

/**
 * The time in seconds without a failure after which a longer interval is tried. The network may now allow longer
 * silence.
 */
const quietSeconds = 7 * 86_400;
/** The increase of the interval in that case, in milliseconds. */
const nudge = 20_000;

/**
 * The learned heartbeat of a network. It is plain data, so that it can be stored.
 *
 * @typedef {object} LearnedHeartbeat
 * @property {number} interval The interval that is used next, in milliseconds.
 * @property {boolean} isStable Whether the interval has settled.
 * @property {number} successes The number of successes in a row.
 * @property {number} failures The number of failures in a row.
 * @property {number} changedAt The time of the interval's last change, in seconds since 1970.
 */

/**
 * @param {number} interval
 * @returns {LearnedHeartbeat}
 */
export function learnedHeartbeat(interval, isStable = false, changedAt = 0) {
    return { interval, isStable, successes: 0, failures: 0, changedAt };
}

/**
 * Returns a learned heartbeat, limited to the bounds. Data from a store may be damaged.
 *
 * @param {LearnedHeartbeat} learned
 * @param {HeartbeatAdaptation} bounds
 * @returns {LearnedHeartbeat}
 */
export function clamped(learned, bounds) {
    return { ...learned, interval: Math.min(Math.max(learned.interval, bounds.shortest), bounds.longest) };
}

/**
 * @param {number} interval
 * @param {boolean} isStable
 * @param {HeartbeatAdaptation} bounds
 * @param {number} date
 */
const changed = (interval, isStable, bounds, date) => clamped(learnedHeartbeat(interval, isStable, date), bounds);

/**
 * Handles a heartbeat that was answered after silence in both directions for the whole interval.
 *
 * @param {LearnedHeartbeat} learned
 * @param {HeartbeatAdaptation} bounds
 * @param {number} date In seconds since 1970.
 * @returns {LearnedHeartbeat}
 */
export function heartbeatSucceeded(learned, bounds, date) {
    const next = { ...learned, failures: 0 };
    if (next.isStable) {
        // A clock that was set back must not delay the search.
        next.changedAt = Math.min(next.changedAt, date);
        if (date - next.changedAt < quietSeconds || next.interval >= bounds.longest) return next;
        return changed(next.interval + nudge, false, bounds, date);
    }
    next.successes += 1;
    if (next.successes < bounds.successesBeforeStep) return next;
    return changed(next.interval + bounds.step, next.interval >= bounds.longest, bounds, date);
}

/**
 * Handles a connection that was lost while a heartbeat was unanswered.
 *
 * @param {LearnedHeartbeat} learned
 * @param {HeartbeatAdaptation} bounds
 * @param {number} date In seconds since 1970.
 * @returns {LearnedHeartbeat}
 */
export function heartbeatFailed(learned, bounds, date) {
    const next = { ...learned, successes: 0, failures: learned.failures + 1 };
    if (next.failures < bounds.failuresBeforeRetreat) return next;
    // A settled interval that fails is no longer valid.
    if (next.isStable) return changed(bounds.shortest, false, bounds, date);
    return changed(next.interval - bounds.retreat, true, bounds, date);
}

/**
 * Handles a connection that ended for a reason unrelated to heartbeats.
 *
 * @param {LearnedHeartbeat} learned
 * @returns {LearnedHeartbeat}
 */
export function heartbeatInterrupted(learned) {
    return { ...learned, successes: 0 };
}

/**
 * The longest heartbeat interval that stays below the server's idle timeout. It leaves time for three heartbeats of
 * which two are lost. If the timeout is too short for them, the interval is half of the timeout.
 *
 * @param {number} idleTimeout The timeout in milliseconds; 0 if there is none.
 * @returns {number | null} Null if there is no timeout.
 */
export function longestInterval(idleTimeout) {
    return idleTimeout > 0 ? Math.max(1000, idleTimeout / 2, idleTimeout - 30_000) : null;
}
