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
 * @property {number} successesBeforeStep Successes in a row before the interval grows.
 * @property {number} failuresBeforeRetreat Failures in a row before the interval shrinks.
 */

/**
 * When heartbeats are sent, and when the connection counts as lost; times in milliseconds.
 *
 * @typedef {object} HeartbeatPolicy
 * @property {number} interval The time between two heartbeats. With an adaptation: the first guess, and the longest
 *   interval in the foreground.
 * @property {HeartbeatAdaptation | null} adaptation The bounds of the interval; null: it is fixed.
 * @property {number} answerTimeout The time to wait for an answer; any packet from the server counts as one.
 * @property {number} tries The number of unanswered heartbeats in a row after which the connection is given up.
 */

/**
 * From 25 s to 580 s: 60 s longer after 5 answers in a row, 80 s shorter after 2 failures.
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
 * Every 120 s, below most networks' idle timeouts; the answer within 8 s.
 *
 * @type {Readonly<HeartbeatPolicy>}
 */
export const pushHeartbeat = Object.freeze({ interval: 120_000, adaptation: null, answerTimeout: 8000, tries: 3 });

/**
 * As `pushHeartbeat`, with an interval that adapts to the network.
 *
 * @type {Readonly<HeartbeatPolicy>}
 */
export const adaptiveHeartbeat = Object.freeze({ ...pushHeartbeat, adaptation: standardAdaptation });

/** After this time without a failure, a longer interval is tried: the network may have become more patient. */
const quietSeconds = 7 * 86_400;
/** The increase in that case. */
const nudge = 20_000;

/**
 * What was learned about a network. Plain data, so that it can be stored.
 *
 * @typedef {object} LearnedHeartbeat
 * @property {number} interval The interval that is used next, in milliseconds.
 * @property {boolean} isStable The interval has settled.
 * @property {number} successes Successes in a row.
 * @property {number} failures Failures in a row.
 * @property {number} changedAt When the interval last changed, in seconds since 1970.
 */

/**
 * @param {number} interval
 * @returns {LearnedHeartbeat}
 */
export function learnedHeartbeat(interval, isStable = false, changedAt = 0) {
    return { interval, isStable, successes: 0, failures: 0, changedAt };
}

/**
 * Returns what is known, within the bounds. What a store returned may be damaged.
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
 * A heartbeat was answered after silence in both directions for the whole interval.
 *
 * @param {LearnedHeartbeat} learned
 * @param {HeartbeatAdaptation} bounds
 * @param {number} date In seconds since 1970.
 * @returns {LearnedHeartbeat}
 */
export function heartbeatSucceeded(learned, bounds, date) {
    const next = { ...learned, failures: 0 };
    if (next.isStable) {
        // A clock that was put back must not delay the search.
        next.changedAt = Math.min(next.changedAt, date);
        if (date - next.changedAt < quietSeconds || next.interval >= bounds.longest) return next;
        return changed(next.interval + nudge, false, bounds, date);
    }
    next.successes += 1;
    if (next.successes < bounds.successesBeforeStep) return next;
    return changed(next.interval + bounds.step, next.interval >= bounds.longest, bounds, date);
}

/**
 * The connection died while a heartbeat was unanswered.
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
 * The connection ended for a reason unrelated to heartbeats.
 *
 * @param {LearnedHeartbeat} learned
 * @returns {LearnedHeartbeat}
 */
export function heartbeatInterrupted(learned) {
    return { ...learned, successes: 0 };
}

/**
 * The longest heartbeat interval that stays below the server's idle timeout: time for three heartbeats of which two are
 * lost, or half of it where there is less.
 *
 * @param {number} idleTimeout In milliseconds; 0: none.
 * @returns {number | null} Null if there is no timeout.
 */
export function longestInterval(idleTimeout) {
    return idleTimeout > 0 ? Math.max(1000, idleTimeout / 2, idleTimeout - 30_000) : null;
}
