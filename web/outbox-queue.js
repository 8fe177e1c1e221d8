// Hermes
// SPDX-License-Identifier: Apache-2.0

import { ErrorCode, HermesError } from "./errors.js";

/**
 * A message to send, as it is stored.
 *
 * @typedef {object} OutboxItem
 * @property {number} number The number in the order of the app's calls.
 * @property {number} uid The account that sends it.
 * @property {any} send The `hermes.v1.Send` as JSON.
 * @property {number} queuedAt When the app sent it, by the device's clock, in milliseconds since 1970.
 * @property {{ code: number, message: string } | null} failure The server's refusal; null if it has not refused.
 */

/**
 * @typedef {object} OutboxLimits
 * @property {number} maxEntries The number of messages, failed ones included.
 * @property {number} maxBytes The bytes of messages, as JSON.
 * @property {number} maxSending The number of conversations with a message under way.
 */

/**
 * The progress of a message:
 *
 *     storing -> queued -> sending -> (gone: sent)
 *        ^                    |-> resting -> queued      (not now)
 *        '------ retry ------ '-> failed                 (never)
 *
 * A message that is discarded is "storing", too, until its removal is stored.
 *
 * @typedef {"storing" | "queued" | "sending" | "resting" | "failed"} Phase
 */

/**
 * @typedef {object} Entry
 * @property {OutboxItem} item
 * @property {Phase} phase
 * @property {number} until The end of the rest.
 * @property {number} refusals Temporary refusals in a row.
 * @property {number} bytes
 */

/** @type {Readonly<OutboxLimits>} */
export const standardOutboxLimits = Object.freeze({ maxEntries: 1000, maxBytes: 4 * 1_048_576, maxSending: 16 });

/** The waits after temporary refusals without a time of their own. */
const waits = [1000, 2000, 5000, 10_000, 30_000, 60_000];
const longestWait = 3_600_000;

/**
 * Names a conversation for comparisons: "uid 7" or "group 9".
 *
 * @param {any} conversation
 */
export function conversationKey(conversation) {
    return conversation?.groupId ? `group ${conversation.groupId}` : `uid ${conversation?.uid ?? 0}`;
}

/**
 * The waiting messages, and which of them may be sent next. A conversation sends one message at a time, so that a later
 * message never overtakes a waiting one. Does no I/O; times are passed in.
 */
export class OutboxQueue {
    /** @type {Map<number, Entry>} By number, in the order of sending. */
    #entries = new Map();
    /** @type {Map<string, number>} */
    #numbers = new Map();
    #lastNumber = 0;
    #bytes = 0;
    /** @type {number | null} The account whose messages may be sent; null if none is logged in. */
    #sender = null;
    #limits;

    /**
     * Creates a queue that continues an earlier run's.
     *
     * @param {OutboxLimits} limits
     * @param {OutboxItem[]} items
     */
    constructor(limits, items = []) {
        this.#limits = limits;
        for (const item of [...items].sort((a, b) => a.number - b.number)) {
            if (!this.#numbers.has(item.send.clientId)) this.#insert(item, item.failure ? "failed" : "queued");
        }
    }

    /** All entries, in the order of sending. */
    get all() {
        return [...this.#entries.values()];
    }

    /**
     * Whether a message with this client id waits or is under way.
     *
     * @param {string} clientId
     */
    has(clientId) {
        return this.#numbers.has(clientId);
    }

    /** @param {string} clientId */
    entry(clientId) {
        return this.#entries.get(this.#numbers.get(clientId) ?? -1);
    }

    /** The time at which a resting message may be sent; null if none rests. */
    get nextDeadline() {
        if (this.#sender === null) return null;
        const next = Math.min(...this.all.map((entry) => (entry.phase === "resting" ? entry.until : Infinity)));
        return next === Infinity ? null : next;
    }

    /**
     * The app sends a message, which is to be stored.
     *
     * @param {any} send
     * @param {number} uid
     * @param {number} date
     * @returns {{ entry: Entry, isNew: boolean }} The existing entry if it is the same message.
     * @throws {HermesError} `outboxFull`; `clientIDConflict` if the same id is used with other content.
     */
    added(send, uid, date) {
        const old = this.entry(send.clientId);
        if (old) {
            if (old.item.uid !== uid || JSON.stringify(old.item.send) !== JSON.stringify(send)) {
                throw new HermesError(ErrorCode.clientIDConflict, `${send.clientId} is another message's client id`);
            }
            return { entry: old, isNew: false };
        }
        const item = { number: this.#lastNumber + 1, uid, send, queuedAt: date, failure: null };
        const { maxEntries, maxBytes } = this.#limits;
        if (this.#entries.size >= maxEntries || this.#bytes + bytesOf(item) > maxBytes) {
            const text = `${this.#entries.size} messages of ${this.#bytes} bytes fill the outbox`;
            throw new HermesError(ErrorCode.outboxFull, text);
        }
        return { entry: this.#insert(item, "storing"), isNew: true };
    }

    /**
     * The message is in the store.
     *
     * @param {number} number
     */
    stored(number) {
        const entry = this.#entries.get(number);
        if (entry?.phase === "storing") entry.phase = "queued";
    }

    /**
     * This account is logged in: its messages may be sent.
     *
     * @param {number} uid
     */
    started(uid) {
        this.#sender = uid;
    }

    /** There will be no connection before the next login. */
    halted() {
        this.#sender = null;
    }

    /**
     * Returns the messages that may be sent now, in order, and marks them as being sent.
     *
     * @param {number} now
     * @returns {Entry[]}
     */
    next(now) {
        if (this.#sender === null) return [];
        const busy = new Set();
        const next = [];
        let sending = 0;
        for (const entry of this.#entries.values()) if (entry.phase === "sending") sending += 1;
        for (const entry of this.#entries.values()) {
            if (sending >= this.#limits.maxSending) break;
            if (entry.item.uid !== this.#sender || entry.phase === "failed") continue;
            const conversation = conversationKey(entry.item.send.to);
            const isDue = entry.phase === "queued" || (entry.phase === "resting" && entry.until <= now);
            if (isDue && !busy.has(conversation)) {
                entry.phase = "sending";
                next.push(entry);
                sending += 1;
            }
            busy.add(conversation);
        }
        return next;
    }

    /**
     * Removes a message that was sent, discarded, or could not be stored.
     *
     * @param {number} number
     */
    removed(number) {
        const entry = this.#entries.get(number);
        if (!entry) return undefined;
        this.#entries.delete(number);
        this.#numbers.delete(entry.item.send.clientId);
        this.#bytes -= entry.bytes;
        return entry;
    }

    /**
     * The message was not sent because of the connection: it waits for the next one.
     *
     * @param {number} number
     */
    interrupted(number) {
        const entry = this.#entries.get(number);
        if (entry) entry.phase = "queued";
    }

    /**
     * The server refused the message.
     *
     * @param {number} number
     * @param {HermesError} error
     * @param {number} now
     * @returns {Entry | undefined} Its phase tells whether it is tried again.
     */
    refused(number, error, now) {
        const entry = this.#entries.get(number);
        if (!entry) return undefined;
        if (error.isTemporary) {
            const own = waits[Math.min(entry.refusals, waits.length - 1)];
            entry.refusals += 1;
            entry.phase = "resting";
            entry.until = now + Math.min(error.retryAfter ?? own, longestWait);
        } else {
            entry.item.failure = { code: error.code, message: error.message };
            entry.phase = "failed";
        }
        return entry;
    }

    /**
     * The app retries a failed message, which is to be stored.
     *
     * @param {string} clientId
     * @returns {Entry | undefined} Undefined if no such message has failed.
     */
    retried(clientId) {
        const entry = this.entry(clientId);
        if (entry?.phase !== "failed") return undefined;
        entry.item.failure = null;
        entry.phase = "storing";
        entry.refusals = 0;
        return entry;
    }

    /**
     * The retry of a failed message could not be stored.
     *
     * @param {number} number
     * @param {{ code: number, message: string } | null} failure
     */
    failedAgain(number, failure) {
        const entry = this.#entries.get(number);
        if (entry?.phase !== "storing") return;
        entry.item.failure = failure;
        entry.phase = "failed";
    }

    /**
     * The app discards a message, whose removal is to be stored. Then call `removed`.
     *
     * @param {string} clientId
     * @returns {{ entry: Entry, phase: Phase } | undefined} The message and its phase before; undefined if there is
     *   none, or if it is being stored or sent.
     */
    discarded(clientId) {
        const entry = this.entry(clientId);
        if (!entry || entry.phase === "storing" || entry.phase === "sending") return undefined;
        const { phase } = entry;
        entry.phase = "storing";
        return { entry, phase };
    }

    /**
     * The removal of a message could not be stored: it stays.
     *
     * @param {number} number
     * @param {Phase} phase The one before.
     */
    kept(number, phase) {
        const entry = this.#entries.get(number);
        if (entry?.phase === "storing") entry.phase = phase;
    }

    /**
     * @param {OutboxItem} item
     * @param {Phase} phase
     */
    #insert(item, phase) {
        const entry = { item, phase, until: 0, refusals: 0, bytes: bytesOf(item) };
        this.#entries.set(item.number, entry);
        this.#numbers.set(item.send.clientId, item.number);
        this.#lastNumber = Math.max(this.#lastNumber, item.number);
        this.#bytes += entry.bytes;
        return entry;
    }
}

/** The number of remembered messages. If the app never reads its inbox, older ones arrive as if another device had
 * sent them. */
const maxSent = 1000;

/**
 * The entry of a sent message in its account's own inbox.
 *
 * @typedef {{ seq: number, uid: number, epoch: string }} SentEntry
 */

/**
 * Sent messages whose entries in their account's own inbox the app has not reached. After a later login of the account
 * the server delivers these entries, and they must be known as this device's own. Does no I/O.
 */
export class SentMessages {
    /** @type {Map<string, SentEntry>} By client id, in the order of sending. */
    #entries;

    /**
     * @param {Iterable<[string, any]>} entries Those of an earlier run. An earlier version stored bare seqs, whose
     *   inbox is unknown; these are dropped only if there are too many.
     */
    constructor(entries = []) {
        this.#entries = new Map(entries);
    }

    /** @param {string} clientId */
    has(clientId) {
        return this.#entries.has(clientId);
    }

    /**
     * The server committed a message.
     *
     * @param {string} clientId
     * @param {SentEntry} entry
     * @param {number} place The last seq that the app has taken in the entry's inbox; 0 if unknown.
     * @returns {{ kept: boolean, dropped: string[] }} Whether the message is remembered, and which no longer are.
     */
    sent(clientId, entry, place) {
        /** @type {string[]} */
        const dropped = [];
        for (const [id, { seq, uid, epoch }] of this.#entries) {
            if (uid === entry.uid && epoch === entry.epoch && seq <= place) dropped.push(id);
        }
        const kept = entry.seq > place && !this.#entries.has(clientId);
        if (kept) this.#entries.set(clientId, entry);
        if (this.#entries.size - dropped.length > maxSent) {
            const [oldest] = [...this.#entries.keys()].filter((id) => !dropped.includes(id));
            dropped.push(oldest);
        }
        for (const id of dropped) this.#entries.delete(id);
        return { kept, dropped };
    }
}

const encoder = new TextEncoder();

/** @param {OutboxItem} item */
function bytesOf(item) {
    return encoder.encode(JSON.stringify(item)).length;
}
