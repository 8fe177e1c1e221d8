// Hermes
// SPDX-License-Identifier: Apache-2.0

import { ErrorCode, HermesError } from "./errors.js";

/**
 * An unanswered request.
 *
 * @typedef {object} PendingRequest
 * @property {number} id
 * @property {any} body The packet's body, as JSON.
 * @property {boolean} isRepeatable Whether the request is sent again if the connection ends before the answer. It may
 *   be sent again if the server recognizes the repetition, if a second execution does no harm, or if `isCarriedOut`
 *   recognizes its refusal. Otherwise the request fails.
 * @property {number} deadline
 * @property {(result: any) => void} resolve
 * @property {(error: Error) => void} reject
 * @property {boolean} isWritten Whether the request was written to the present connection.
 * @property {boolean} isRepeated Whether the request was written to an earlier connection.
 * @property {number} bytes The length of the request on the present connection.
 */

/**
 * Whether the server refuses a repeated request only because it has carried out the first try. A lost connection has
 * left its rooms, and a device can be removed only once.
 *
 * @param {PendingRequest} request
 * @param {HermesError} error
 */
export function isCarriedOut({ body, isRepeated }, { code }) {
    if (!isRepeated) return false;
    return (body.room?.leave && code === ErrorCode.forbidden) || (body.device?.remove && code === ErrorCode.notFound);
}

/** The time during a search that the other requests wait for the answer to one request, in milliseconds. */
const searchDelay = 10_000;

/** The unanswered requests by id. Ids grow, so their order is the order of sending. The class does no I/O. */
export class RequestTable {
    /** @type {Map<number, PendingRequest>} */
    #entries = new Map();
    #lastID = 15;
    /** The number of requests that are written to the present connection. */
    #inFlight = 0;
    /**
     * The last request that was in flight when the server ended a connection because of a breach; 0 if there is no
     * search for the request that caused a breach.
     */
    #lastSuspect = 0;
    /** The request that was written last. */
    #lastWritten = 0;
    /** The suspect that is sent first. */
    #first = 0;
    /**
     * During a search, the moment after which the next request no longer waits for the answer to the previous request.
     */
    #nextTry = Infinity;
    /** The length of the longest expired request that had been written to the present connection. */
    #lostBytes = 0;
    #earliest = Infinity;

    get size() {
        return this.#entries.size;
    }

    /**
     * Whether requests are sent one at a time, because one of them may be the reason why the server ended the
     * connection.
     */
    get isSearching() {
        return this.#lastSuspect > 0;
    }

    /** On a live connection, the moment at which `unwritten` may return more requests. */
    get nextTry() {
        return this.#nextTry;
    }

    /** The earliest deadline, or a moment before it; null if there is no request. */
    get nextDeadline() {
        return this.#entries.size ? this.#earliest : null;
    }

    /**
     * Adds a request.
     *
     * @param {any} body
     * @param {boolean} isRepeatable
     * @param {number} deadline
     * @param {(result: any) => void} resolve
     * @param {(error: Error) => void} reject
     * @returns {PendingRequest} Its id is at least 16.
     */
    insert(body, isRepeatable, deadline, resolve, reject) {
        this.#lastID += 1;
        const id = this.#lastID;
        const unsent = { isWritten: false, isRepeated: false, bytes: 0 };
        const entry = { id, body, isRepeatable, deadline, resolve, reject, ...unsent };
        this.#earliest = this.#entries.size ? Math.min(this.#earliest, deadline) : deadline;
        this.#entries.set(id, entry);
        return entry;
    }

    /**
     * Removes an answered request.
     *
     * @param {number} id
     */
    remove(id) {
        const entry = this.#entries.get(id);
        if (entry?.isWritten) this.#inFlight -= 1;
        this.#entries.delete(id);
        return entry;
    }

    /**
     * Records that a request was written to the present connection.
     *
     * @param {PendingRequest} entry
     */
    wrote(entry) {
        entry.isWritten = true;
        this.#inFlight += 1;
        this.#lastWritten = entry.id;
    }

    /**
     * Returns the requests to write to a live connection, in order. During a search, the next request is written after
     * the answer to the previous request, or 10 seconds after it. The search ends when each suspect was answered or has
     * waited for 10 seconds. A logout does not wait.
     *
     * @param {number} now
     */
    unwritten(now) {
        const isWaiting = this.#inFlight > 0 && now < this.#nextTry && this.#nextTry < Infinity;
        if (this.#lastSuspect && isWaiting) return [];
        const waiting = [...this.#entries.values()].filter((entry) => !entry.isWritten);
        if (!this.#lastSuspect) return waiting;
        const urgent = waiting.filter((entry) => entry.body?.logOut);
        if (urgent.length) return urgent;
        const suspects = waiting.filter((entry) => entry.id <= this.#lastSuspect);
        const next = suspects.find((entry) => entry.id === this.#first) ?? suspects[0];
        this.#nextTry = next ? now + searchDelay : Infinity;
        if (next) return [next];
        this.#lastSuspect = this.#first = 0;
        return waiting;
    }

    /**
     * Handles the end of a connection because of a breach. The server does not name the request that caused it. If a
     * frame was too long, the longest request fails. Otherwise each request in flight may be the cause. So the next
     * connections send the requests one at a time, and a request fails if it is alone in flight at a breach. At the
     * first breach, a request that is alone in flight fails only if it is not repeatable. If several requests are in
     * flight at a later breach, the last of them is sent first, alone. No request fails if an expired request may be
     * the cause.
     *
     * @param {boolean} isTooLong
     * @returns {PendingRequest | undefined} The failed request, which is removed.
     */
    blame(isTooLong) {
        const written = [...this.#entries.values()].filter((entry) => entry.isWritten);
        const [only] = isTooLong ? written.sort((a, b) => b.bytes - a.bytes) : written;
        const isAlone = written.length === 1 && !this.#lostBytes;
        if (isTooLong ? only?.bytes > this.#lostBytes : isAlone && (this.#lastSuspect || !only.isRepeatable)) {
            if (!isTooLong) this.#lastSuspect = 0;
            return this.remove(only.id);
        }
        if (isTooLong) return undefined;
        if (this.#lastSuspect) this.#first = this.#lastWritten;
        else this.#lastSuspect = written.at(-1)?.id ?? 0;
        return undefined;
    }

    /**
     * Handles the loss of the connection.
     *
     * @returns {PendingRequest[]} The failed requests, in order. The other requests wait for the next connection.
     */
    connectionLost() {
        const failed = this.#take((entry) => entry.isWritten && !entry.isRepeatable);
        this.#nextTry = Infinity;
        this.#lostBytes = this.#inFlight = 0;
        for (const entry of this.#entries.values()) {
            entry.isRepeated ||= entry.isWritten;
            entry.isWritten = false;
        }
        return failed;
    }

    /**
     * Removes the requests whose deadline has passed.
     *
     * @param {number} now
     */
    expired(now) {
        if (this.#earliest > now) return [];
        const expired = this.#take((entry) => entry.deadline <= now);
        for (const { isWritten, bytes } of expired) if (isWritten) this.#lostBytes = Math.max(this.#lostBytes, bytes);
        this.#earliest = Infinity;
        for (const entry of this.#entries.values()) this.#earliest = Math.min(this.#earliest, entry.deadline);
        return expired;
    }

    /** Removes all requests, in order. */
    removeAll() {
        return this.#take(() => true);
    }

    /** @param {(entry: PendingRequest) => boolean} fits */
    #take(fits) {
        const taken = [...this.#entries.values()].filter(fits);
        for (const entry of taken) this.remove(entry.id);
        return taken;
    }
}
