// Hermes
// SPDX-License-Identifier: Apache-2.0

import { ErrorCode, HermesError } from "./errors.js";
import { OutboxQueue, SentMessages } from "./outbox-queue.js";

/**
 * A message in the outbox, for the app.
 *
 * @typedef {object} OutboxEntry
 * @property {number} uid The account that sends the message.
 * @property {string} clientId The id that the client gives the message. The server recognizes a repetition by it.
 * @property {any} conversation `{ uid }` or `{ groupId }`.
 * @property {any} content
 * @property {number} queuedAt In milliseconds since 1970.
 * @property {"queued" | "sending" | "sent" | "failed" | "discarded"} status
 * @property {any} receipt The server's receipt, after the message was sent.
 * @property {{ code: number, message: string } | null} error The refusal, after the message has failed.
 */

const prefix = "outbox/";
const sentPrefix = "sent/";

/** @param {number} number The number of the message. The keys sort by number. */
const keyOf = (number) => prefix + number.toString(16).padStart(16, "0");

/**
 * Messages that are sent as soon as there is a connection, even if the page was closed and opened again before.
 *
 * After `send` has resolved, the message is stored, so it is not lost when the page is closed. Within a conversation,
 * messages arrive in the order of the calls. Each message arrives once, because the server recognizes repetitions by
 * the client id.
 */
export class Outbox {
    #queue;
    #sent;
    #store;
    #submit;
    #isLive;
    #changed;
    #place;
    /**
     * @type {number | null} The account that sends the app's messages; null before the first login, and while another
     *   account may be logging in.
     */
    uid;
    /** @type {Set<string>} The keys of sent messages that must be removed from the store. */
    #owed = new Set();
    /** @type {WeakMap<import("./outbox-queue.js").Entry, Promise<void>>} The first writes of messages. */
    #writes = new WeakMap();
    /** @type {any} */
    #timer;

    /**
     * @param {object} options
     * @param {import("./stores.js").Store} options.store
     * @param {Map<string, any>} options.records The store's records.
     * @param {number | null} options.uid The account of the last login.
     * @param {import("./outbox-queue.js").OutboxLimits} options.limits
     * @param {(send: any) => Promise<any>} options.submit Sends a message and returns its receipt.
     * @param {() => boolean} options.isLive Whether there is a connection.
     * @param {(entry: OutboxEntry) => void} options.changed Called after each change.
     * @param {(uid: number) => { epoch: string, seq: number }} options.place Returns the epoch of this account's inbox
     *   ("0" if it is unknown), and the seq of the last entry that the store records as taken there (0 if there is
     *   none).
     */
    constructor({ store, records, uid, limits, submit, isLive, changed, place }) {
        const items = [];
        /** @type {[string, any][]} */
        const sent = [];
        for (const [key, value] of records) {
            if (key.startsWith(prefix)) items.push(value);
            if (key.startsWith(sentPrefix)) sent.push([key.slice(sentPrefix.length), value]);
        }
        this.#queue = new OutboxQueue(limits, items);
        this.#sent = new SentMessages(sent);
        this.#store = store;
        this.uid = uid;
        this.#submit = submit;
        this.#isLive = isLive;
        this.#changed = changed;
        this.#place = place;
    }

    /** The unsent messages and the failed messages, in the order of sending. */
    get entries() {
        return this.#queue.all.map((entry) => this.#entry(entry));
    }

    /**
     * Adds a message. A repeated call for the same message waits for the result of the first call.
     *
     * @param {string | any} content A text, or a `hermes.v1.Content` as JSON.
     * @param {any} to `{ uid }` or `{ groupId }`.
     * @param {{ clientId?: string, expiresInSeconds?: number }} options
     * @returns {Promise<OutboxEntry>} The entry, after it is stored.
     * @throws {HermesError} `outboxFull`, `storeFailed`; `clientIDConflict` if another message has the same client id;
     *   `closed` if there has never been a login, or if another account may be logging in.
     */
    async send(content, to, options = {}) {
        if (this.uid === null) {
            const reason = "log in first: it is not known which account sends the message";
            throw new HermesError(ErrorCode.closed, reason);
        }
        const { entry, isNew } = this.#queue.added(makeSend(content, to, options), this.uid, Date.now());
        if (isNew) this.#writes.set(entry, this.#storeNew(entry));
        await this.#writes.get(entry);
        return this.#entry(entry);
    }

    /** @param {import("./outbox-queue.js").Entry} entry */
    async #storeNew(entry) {
        const { number } = entry.item;
        try {
            await this.#store.write([[keyOf(number), entry.item]], true);
        } catch (error) {
            this.#queue.removed(number);
            this.pump();
            throw new HermesError(ErrorCode.storeFailed, `the message could not be stored: ${error}`);
        }
        this.#queue.stored(number);
        this.#changed(this.#entry(entry));
        this.pump();
    }

    /**
     * Sends a failed message again.
     *
     * @param {string} clientId
     * @returns {Promise<boolean>} Whether there is such a message.
     */
    async retry(clientId) {
        const failure = this.#queue.entry(clientId)?.item.failure ?? null;
        const entry = this.#queue.retried(clientId);
        if (!entry) return false;
        try {
            await this.#store.write([[keyOf(entry.item.number), entry.item]], true);
        } catch (error) {
            this.#queue.failedAgain(entry.item.number, failure);
            this.pump();
            throw new HermesError(ErrorCode.storeFailed, `the retry could not be stored: ${error}`);
        }
        this.#queue.stored(entry.item.number);
        this.#changed(this.#entry(entry));
        this.pump();
        return true;
    }

    /**
     * Discards a message unless it is being sent.
     *
     * @param {string} clientId
     * @returns {Promise<boolean>} Whether there was such a message. If the connection was lost before the receipt, a
     *   queued message may have reached the server.
     * @throws {HermesError} `storeFailed`. In this case, the message stays.
     */
    async discard(clientId) {
        const discarded = this.#queue.discarded(clientId);
        if (!discarded) return false;
        const { entry, phase } = discarded;
        const { number } = entry.item;
        try {
            await this.#store.write([[keyOf(number), undefined]], true);
        } catch (error) {
            this.#queue.kept(number, phase);
            this.pump();
            throw new HermesError(ErrorCode.storeFailed, `the removal could not be stored: ${error}`);
        }
        this.#queue.removed(number);
        this.#changed({ ...this.#entry(entry), status: "discarded" });
        this.pump();
        return true;
    }

    /**
     * Whether an inbox entry with this client id is this device's own message.
     *
     * @param {string} clientId
     */
    isOwn(clientId) {
        return this.#queue.has(clientId) || this.#sent.has(clientId);
    }

    /**
     * Records that this account has logged in. Its messages may be sent.
     *
     * @param {number} uid
     */
    started(uid) {
        this.uid = uid;
        this.#queue.started(uid);
        this.pump();
    }

    /**
     * Stops sending, because another account may log in. Nothing is sent until the login shows which account it is.
     *
     * @param {number | null} uid The account that sends the app's messages until then; null if it is unknown.
     */
    halt(uid) {
        this.uid = uid;
        this.#queue.halted();
        clearTimeout(this.#timer);
    }

    /** Passes the next messages to the client, where they wait for a connection. */
    pump() {
        for (const entry of this.#queue.next(performance.now())) {
            this.#changed(this.#entry(entry));
            this.#submit(entry.item.send).then(
                (receipt) => this.#committed(entry, receipt),
                (error) => this.#refused(entry, error),
            );
        }
        clearTimeout(this.#timer);
        const deadline = this.#queue.nextDeadline;
        if (deadline === null) return;
        this.#timer = setTimeout(() => this.pump(), Math.max(0, deadline - performance.now()) + 1);
    }

    /**
     * @param {import("./outbox-queue.js").Entry} entry
     * @param {any} receipt
     */
    #committed(entry, receipt) {
        const { number, send, uid } = entry.item;
        this.#queue.removed(number);
        /** @type {[string, any][]} */
        const changes = [[keyOf(number), undefined]];
        if (receipt.inboxSeq > 0) {
            const { epoch, seq } = this.#place(uid);
            const own = { seq: receipt.inboxSeq, uid, epoch };
            const { kept, dropped } = this.#sent.sent(send.clientId, own, seq);
            if (kept) changes.push([sentPrefix + send.clientId, own]);
            for (const id of dropped) changes.push([sentPrefix + id, undefined]);
        }
        // If this write is lost, the message is sent again. The server recognizes a repeated message for a day.
        this.#writeLater(changes);
        this.#changed({ ...this.#entry(entry), status: "sent", receipt });
        this.pump();
    }

    /**
     * Writes changes, and the removals that an earlier write failed to store.
     *
     * @param {[string, any][]} changes
     */
    #writeLater(changes) {
        for (const [key] of changes) if (key.startsWith(prefix)) this.#owed.add(key);
        const owed = [...this.#owed];
        const all = new Map([...owed.map((key) => /** @type {[string, any]} */ ([key, undefined])), ...changes]);
        this.#store.write([...all]).then(
            () => owed.forEach((key) => this.#owed.delete(key)),
            () => {},
        );
    }

    /**
     * @param {import("./outbox-queue.js").Entry} entry
     * @param {any} error
     */
    #refused(entry, error) {
        const { number } = entry.item;
        const reason = error instanceof HermesError ? error : new HermesError(ErrorCode.connectionLost, String(error));
        if (reason.code === ErrorCode.closed || (reason.code === ErrorCode.timedOut && !this.#isLive())) {
            // The client was closed or kicked, or it has no connection. So the message was not refused. It is sent
            // after the next login.
            this.#queue.interrupted(number);
            this.#changed(this.#entry(entry));
            return;
        }
        this.#queue.refused(number, reason, performance.now());
        // If this write is lost, the message is sent again, and the server refuses it again.
        if (entry.phase === "failed") this.#store.write([[keyOf(number), entry.item]]).catch(() => {});
        this.#changed(this.#entry(entry));
        this.pump();
    }

    /**
     * @param {import("./outbox-queue.js").Entry} entry
     * @returns {OutboxEntry}
     */
    #entry({ item, phase }) {
        const { uid, send, queuedAt, failure } = item;
        const status = phase === "sending" || phase === "failed" ? phase : "queued";
        const { clientId, to: conversation, content } = send;
        return { uid, clientId, conversation, content, queuedAt, status, receipt: null, error: failure };
    }
}

/** Makes a random id of 26 characters. */
export function makeID() {
    return Array.from(crypto.getRandomValues(new Uint8Array(26)), (byte) => (byte % 32).toString(32)).join("");
}

/**
 * @param {string | any} content
 * @param {any} to
 * @param {{ clientId?: string, expiresInSeconds?: number }} options
 */
export function makeSend(content, to, { clientId = makeID(), expiresInSeconds = 0 } = {}) {
    return { to, clientId, content: typeof content === "string" ? { text: content } : content, expiresInSeconds };
}
