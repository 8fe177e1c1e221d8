// Hermes
// SPDX-License-Identifier: Apache-2.0

import { ErrorCode, HermesError } from "./errors.js";

/**
 * An unanswered request.
 *
 * @typedef {object} PendingRequest
 * @property {number} id
 * @property {any} body The packet's body, as JSON.
 * @property {boolean} isRepeatable Whether it is sent again after its connection ended before the answer: the server
 *   recognizes a repetition, carrying it out twice does no harm, or `isCarriedOut` recognizes its refusal. Otherwise
 *   it fails.
 * @property {number} deadline
 * @property {(result: any) => void} resolve
 * @property {(error: Error) => void} reject
 * @property {boolean} isWritten Whether it was written to the present connection.
 * @property {boolean} isRepeated Whether it was written to an earlier connection.
 * @property {number} bytes Its length on the present connection.
 */

/**
 * Whether the server refuses a request that was sent again only because it has carried out the first try: the loss of a
 * connection leaves its rooms, and a device is removed only once.
 *
 * @param {PendingRequest} request
 * @param {HermesError} error
 */
export function isCarriedOut({ body, isRepeated }, { code }) {
    if (!isRepeated) return false;
    return (body.room?.leave && code === ErrorCode.forbidden) || (body.device?.remove && code === ErrorCode.notFound);
}

/** During a search for a request, how long the others wait for the answer to one, in milliseconds. */
const searchDelay = 10_000;

/** Unanswered requests by id. Ids grow, so their order is the order of sending. Does no I/O. */
export class RequestTable {
    /** @type {Map<number, PendingRequest>} */
    #entries = new Map();
    #lastID = 15;
    /** The number of requests that are written to the present connection. */
    #inFlight = 0;
    /** The last request that was in flight when the server ended a connection for a breach; 0: none is searched for. */
    #lastSuspect = 0;
    /** The request that was written last. */
    #lastWritten = 0;
    /** The suspect that is sent first. */
    #first = 0;
    /** During a search, the moment at which the next request no longer waits for the answer to the one before. */
    #nextTry = Infinity;
    /** The length of the longest request that was given up after it was written to the present connection. */
    #lostBytes = 0;
    #earliest = Infinity;

    get size() {
        return this.#entries.size;
    }

    /** Whether requests are sent one at a time, because one of them may be why the server ended the connection. */
    get isSearching() {
        return this.#lastSuspect > 0;
    }

    /** On a live connection, the moment at which `unwritten` may return more. */
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
     * Removes a request that is answered.
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
     * Notes that a request was written to the present connection.
     *
     * @param {PendingRequest} entry
     */
    wrote(entry) {
        entry.isWritten = true;
        this.#inFlight += 1;
        this.#lastWritten = entry.id;
    }

    /**
     * The requests to write to a live connection, in order. While a request is searched for, the next one is written
     * after the answer to the one before, or 10 seconds later. The search ends when each suspect is answered or had its
     * 10 seconds. A logout does not wait.
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
     * The server ends the connection for a breach and does not name the request. If a frame was too long, the longest
     * request fails. Otherwise each request that is in flight may be the cause, so they are sent one at a time over the
     * next connections: one that is then alone in flight at a breach fails. At the first breach, too, a request that is
     * alone in flight fails if it is not repeatable. If others were in flight, the last one is sent first, alone. None
     * fails if a request that was given up may be the cause.
     *
     * @param {boolean} isTooLong
     * @returns {PendingRequest | undefined} The request, removed, if it fails.
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
     * The connection is gone.
     *
     * @returns {PendingRequest[]} The requests that fail, in order; the others wait for the next connection.
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
