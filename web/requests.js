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
 * @property {number} strikes The number of connections that the server ended for a breach while this was the longest
 *   unanswered request.
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

/** The number of strikes after which a request fails: sent again, it would end every connection. */
const maxStrikes = 2;

/** Unanswered requests by id. Ids grow, so their order is the order of sending. Does no I/O. */
export class RequestTable {
    /** @type {Map<number, PendingRequest>} */
    #entries = new Map();
    #lastID = 15;
    #earliest = Infinity;

    get size() {
        return this.#entries.size;
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
        const unsent = { isWritten: false, isRepeated: false, bytes: 0, strikes: 0 };
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
        this.#entries.delete(id);
        return entry;
    }

    /** The requests to write once the connection is live, in order. */
    unwritten() {
        return [...this.#entries.values()].filter((entry) => !entry.isWritten);
    }

    /**
     * The server ends the connection for a breach and does not name the request: the longest one is the likeliest.
     *
     * @param {boolean} isSure The server says that a frame was too long.
     * @returns {PendingRequest | undefined} The request, removed, if it fails.
     */
    blameLongest(isSure) {
        /** @type {PendingRequest | undefined} */
        let longest;
        for (const entry of this.#entries.values()) {
            if (entry.isWritten && entry.bytes > (longest?.bytes ?? -1)) longest = entry;
        }
        if (!longest) return undefined;
        longest.strikes += 1;
        return isSure || longest.strikes >= maxStrikes ? this.remove(longest.id) : undefined;
    }

    /**
     * The connection is gone.
     *
     * @returns {PendingRequest[]} The requests that fail, in order; the others wait for the next connection.
     */
    connectionLost() {
        const failed = this.#take((entry) => entry.isWritten && !entry.isRepeatable);
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
        for (const entry of taken) this.#entries.delete(entry.id);
        return taken;
    }
}
