// Hermes
// SPDX-License-Identifier: Apache-2.0

import { ErrorCode, HermesError } from "./errors.js";

/**
 * A message to send, in the form in which it is stored.
 *
 * @typedef {object} OutboxItem
 * @property {number} number A number that grows in the order of the app's calls.
 * @property {number} uid The account that sends it.
 * @property {any} send The `hermes.v1.Send` as JSON.
 * @property {number} queuedAt The time of the app's call by the device's clock, in milliseconds since 1970.
 * @property {{ code: number, message: string } | null} failure The server's refusal; null if the server has not refused
 *   the message.
 */

/**
 * @typedef {object} OutboxLimits
 * @property {number} maxEntries The largest number of messages, including failed messages.
 * @property {number} maxBytes The largest size of all messages as JSON, in bytes.
 * @property {number} maxSending The largest number of conversations that send a message at the same time.
 */

/**
 * The progress of a message:
 *
 *     storing -> queued -> sending -> (gone: sent)
 *        ^                    |-> resting -> queued      (not now)
 *        '------ retry ------ '-> failed                 (never)
 *
 * A discarded message also has the phase "storing", until its removal is stored.
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

/** The waits after temporary refusals that set no time, in milliseconds. */
const waits = [1000, 2000, 5000, 10_000, 30_000, 60_000];
const longestWait = 3_600_000;

/**
 * A text that identifies a conversation: "uid 7" or "group 9".
 *
 * @param {any} conversation
 */
export function conversationKey(conversation) {
    return conversation?.groupId ? `group ${conversation.groupId}` : `uid ${conversation?.uid ?? 0}`;
}

/**
 * The waiting messages. The queue decides which of them may be sent next. Each conversation sends one message at a
 * time, so that no message is sent before an earlier message. The class does no I/O. Times are parameters.
 */
export class OutboxQueue {
    /** @type {Map<number, Entry>} The entries by number, in the order of sending. */
    #entries = new Map();
    /** @type {Map<string, number>} */
    #numbers = new Map();
    #lastNumber = 0;
    #bytes = 0;
    /** @type {number | null} The account whose messages may be sent; null if none is logged in. */
    #sender = null;
    #limits;

    /**
     * Creates a queue that continues the queue of an earlier run.
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
     * Whether a message with this client id waits or is being sent.
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
     * Adds a message that the app sends. The caller stores it.
     *
     * @param {any} send
     * @param {number} uid
     * @param {number} date
     * @returns {{ entry: Entry, isNew: boolean }} The entry. It is the existing entry if the message was added before.
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
     * Records that a message is in the store.
     *
     * @param {number} number
     */
    stored(number) {
        const entry = this.#entries.get(number);
        if (entry?.phase === "storing") entry.phase = "queued";
    }

    /**
     * Records that this account is logged in. Its messages may be sent.
     *
     * @param {number} uid
     */
    started(uid) {
        this.#sender = uid;
    }

    /** Records that there is no connection until the next login. */
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
     * Records that a message was not sent because of the connection. The message waits for the next connection.
     *
     * @param {number} number
     */
    interrupted(number) {
        const entry = this.#entries.get(number);
        if (entry) entry.phase = "queued";
    }

    /**
     * Records that the server has refused a message.
     *
     * @param {number} number
     * @param {HermesError} error
     * @param {number} now
     * @returns {Entry | undefined} The entry. Its phase shows whether it will be sent again.
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
     * Prepares the retry of a failed message. The caller stores the message.
     *
     * @param {string} clientId
     * @returns {Entry | undefined} The entry; undefined if there is no failed message with this id.
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
     * Records that the retry of a failed message could not be stored.
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
     * Prepares the removal of a message that the app discards. The caller stores the removal, then calls `removed`.
     *
     * @param {string} clientId
     * @returns {{ entry: Entry, phase: Phase } | undefined} The message and its previous phase; undefined if there is
     *   no such message, or if it is being stored or sent.
     */
    discarded(clientId) {
        const entry = this.entry(clientId);
        if (!entry || entry.phase === "storing" || entry.phase === "sending") return undefined;
        const { phase } = entry;
        entry.phase = "storing";
        return { entry, phase };
    }

    /**
     * Records that the removal of a message could not be stored. The message stays.
     *
     * @param {number} number
     * @param {Phase} phase The previous phase.
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

/** The largest number of remembered messages. If the app never reads its inbox, older messages arrive as if another
 * device had sent them. */
const maxSent = 1000;

/**
 * The entry of a sent message in its account's own inbox.
 *
 * @typedef {{ seq: number, uid: number, epoch: string }} SentEntry
 */

/**
 * Sent messages whose entries in the sender's inbox the app has not reached. After a later login of the account, the
 * server delivers these entries. The client must then recognize them as this device's own messages. The class does no
 * I/O.
 */
export class SentMessages {
    /** @type {Map<string, SentEntry>} The entries by client id, in the order of sending. */
    #entries;

    /**
     * @param {Iterable<[string, any]>} entries The entries from an earlier run. An earlier version stored only seqs,
     *   without the inbox. Such entries are dropped only if there are too many.
     */
    constructor(entries = []) {
        this.#entries = new Map(entries);
    }

    /** @param {string} clientId */
    has(clientId) {
        return this.#entries.has(clientId);
    }

    /**
     * Records that the server has committed a message.
     *
     * @param {string} clientId
     * @param {SentEntry} entry
     * @param {number} place The last seq that the app has taken in the entry's inbox; 0 if it is unknown.
     * @returns {{ kept: boolean, dropped: string[] }} Whether the message is remembered, and the client ids of the
     *   messages that are no longer remembered.
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
