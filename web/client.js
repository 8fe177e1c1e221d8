// Hermes
// SPDX-License-Identifier: Apache-2.0

import { Requests } from "./api.js";
import { ConnectionMachine } from "./connection.js";
import { Deliveries } from "./deliveries.js";
import { ErrorCode, HermesError } from "./errors.js";
import { flawOf } from "./flaws.js";
import { pushHeartbeat } from "./heartbeat.js";
import { InboxTracker, SeenEntries } from "./inbox.js";
import { makeID, Outbox } from "./outbox.js";
import { standardOutboxLimits } from "./outbox-queue.js";
import { readPacket } from "./packet.js";
import { followPage, platform, serverURL } from "./page.js";
import { standardPolicy } from "./reconnect.js";
import { isCarriedOut, RequestTable } from "./requests.js";
import { Session } from "./session.js";
import { IndexedDBStore, MemoryStore } from "./stores.js";
import { Transport } from "./transport.js";

/**
 * @typedef {object} ClientOptions
 * @property {string} server For example "wss://chat.example.com". If the URL has no path, the client uses the path /ws.
 * @property {import("./stores.js").Store} [store] By default IndexedDB, or memory if there is no IndexedDB. A store
 *   serves one client at a time.
 * @property {{ name?: string, platform?: string, appVersion?: string }} [device] The description of this device in the
 *   user's list of devices. The client makes the device's id once and keeps it in the store.
 * @property {any} [WebSocket] The class to connect with; by default the global class. Node 20 has no global class, so
 *   pass the class of node-websocket.js.
 * @property {import("./reconnect.js").ReconnectPolicy} [reconnect]
 * @property {import("./heartbeat.js").HeartbeatPolicy} [heartbeat]
 * @property {import("./outbox-queue.js").OutboxLimits} [outboxLimits]
 * @property {number | null} [statisticsInterval] The time between two uploads of delivery statistics, in milliseconds;
 *   null turns uploads off.
 * @property {string} [network] The kind of network, for example "wifi"; by default the kind that the browser reports.
 * @property {boolean} [followsPage] Whether the client follows the page's visibility and the browser's network state.
 */

/** The longest frame that is read, in characters. */
const maxFrameLength = 4 * 1_048_576;
/** The number of entry names that are stored (see `SeenEntries`). */
const keptNames = 128;
/** The time after which a failed write to the store is repeated, in milliseconds. */
const storeRetryDelay = 2000;
/** The number of combining marks in a row for which the server refuses a text. */
const marksInARow = /\p{M}{129}/u;
/**
 * Half of a surrogate pair without the other half, in JSON. `JSON.stringify` writes an escape that begins with \ud only
 * for such a half. Pairs of backslashes before the escape are escaped backslashes.
 */
const loneHalf = /[^\\](\\\\)*\\ud/;

/**
 * A client of one account.
 *
 * ```js
 * const client = await HermesClient.open({ server: "wss://chat.example.com" });
 * client.on("entry", (event) => event.type === "message" && show(event.message));
 * await client.logIn({ nickName: "ann", password: "…" });
 * await client.outbox.send("hello", { uid: 7 });
 * ```
 *
 * Events:
 *
 * - `entry`: an entry of the inbox (`InboxEvent`). Each entry arrives once and in order. The app has taken an entry
 *   when all handlers have returned and their promises are fulfilled. The server may delete an entry only after that. A
 *   handler that fails gets the same entry again later. Entries wait until there is a handler.
 * - `typing`, `presence`, `room`, `signal`, `notice`, `topicGap`: live events. They are never stored.
 * - `outbox`: the progress of a message (`OutboxEntry`).
 * - `state`: the state of the connection has changed (see the property `state`).
 * - `session`: a login succeeded.
 * - `storeError`: the store cannot record which entries the app has taken. Until it can, the client acknowledges
 *   nothing to the server.
 */
export class HermesClient extends Requests {
    #store;
    #machine;
    /** @type {Session} */
    #session;
    #requests = new RequestTable();
    #transport;
    /** @type {any} */
    #timer;
    #timerAt = Infinity;
    #deliveries;
    #ordinal;
    #heartbeats;
    #learned;
    #lastState = "";
    /** @type {Map<string, any>} Changes that record which entries the app has taken, and that are not stored yet. */
    #owed = new Map();
    /** @type {{ epoch: string, seq: number, uid?: number | null, owesReset?: true,
     *   newest?: import("./packet.js").KnownEntry } | null} The last taken entry that the store certainly
     *   records, the account of its inbox, and the newest entry that had arrived; null if the store records none. */
    #cursor = null;
    /** The seq of the last cursor that had to be stored. Only a reset lowers it. */
    #passed = 0;
    /** The seq of the last entry that the app has taken. */
    #lastTaken = 0;
    /** Whether the app has not taken the last `inboxReset` yet. It is stored in the cursor. */
    #owesReset = false;
    /** @type {any} */
    #keepTimer;
    /** @type {{ uid: number, nickName: string, token: string } | null} The account of the last login. */
    #account;
    /** @type {{ resolve: (session: any) => void, reject: (error: Error) => void }[]} */
    #logins = [];
    /** The credential that the app last passed. */
    #requested = "";
    /** @type {any} The server's answer to the last login. */
    session = null;
    /** @type {Outbox} The messages that are sent as soon as there is a connection. */
    outbox;
    #url;
    #followsPage;
    /** @type {(() => void) | null} Stops following the page; null if the page is not followed. */
    #unfollow = null;

    /**
     * Opens the store and creates a client. The client does not connect yet.
     *
     * @param {ClientOptions} options
     */
    static async open(options) {
        const store = options.store ?? (globalThis.indexedDB ? new IndexedDBStore() : new MemoryStore());
        const records = await store.load();
        const deviceId = records.get("device") ?? `web-${makeID()}`;
        if (!records.has("device")) await store.write([["device", deviceId]], true);
        return new HermesClient(options, store, records, deviceId);
    }

    /**
     * @param {ClientOptions} options
     * @param {import("./stores.js").Store} store
     * @param {Map<string, any>} records
     * @param {string} deviceId
     */
    constructor(options, store, records, deviceId) {
        super();
        this.#url = serverURL(options.server);
        this.#followsPage = options.followsPage !== false;
        this.#transport = new Transport(this.#url, options.WebSocket ?? globalThis.WebSocket, {
            opened: () => this.#turn((now) => this.#perform(this.#machine.connected(now))),
            received: (data) => this.#received(data),
            ended: (reason, code) => this.#ended(reason, code),
        });
        this.#store = store;
        this.#account = records.get("account") ?? null;
        const network = options.network ?? /** @type {any} */ (globalThis.navigator)?.connection?.type ?? "";
        this.#heartbeats = records.get("heartbeats") ?? {};
        this.#machine = new ConnectionMachine(
            options.heartbeat ?? pushHeartbeat,
            options.reconnect ?? standardPolicy,
            this.#heartbeats[network] ?? null,
        );
        this.#learned = this.#machine.learned;
        const seen = [...records].filter(([key]) => key.startsWith("seen/")).map(([, value]) => value);
        seen.sort((a, b) => a[0] - b[0]);
        this.#ordinal = seen.at(-1)?.[0] ?? 0;
        const cursor = records.get("cursor");
        this.#session = new Session({
            device: { platform: platform(), ...options.device, id: deviceId },
            isOwn: (clientId) => this.outbox.isOwn(clientId),
            statisticsInterval: options.statisticsInterval === undefined ? 900_000 : options.statisticsInterval,
        });
        this.#session.owner = this.#account?.uid ?? null;
        this.#session.seen = new SeenEntries(seen.map((pair) => pair[1]));
        this.#session.strays = records.get("logins") ?? [];
        this.#session.statistics.kind = network;
        this.#session.statistics.restore(records.get("statistics") ?? []);
        // The cursor is used only if it belongs to the inbox of the stored account. It belongs to another account if
        // that account logged in and the write of its record failed. A cursor from an earlier version has no uid.
        if (cursor && this.#account && (cursor.uid ?? this.#account.uid) === this.#account.uid) {
            this.#session.inbox = new InboxTracker(cursor.epoch, cursor.seq);
            this.#session.newest = cursor.newest ?? null;
            this.#cursor = cursor;
            this.#passed = this.#lastTaken = cursor.seq;
            this.#owesReset = this.#session.owesReset = Boolean(cursor.owesReset);
        }
        this.#deliveries = new Deliveries({
            handlers: () => this.handlers("entry"),
            taken: (delivery) => this.#taken(delivery),
            fullnessChanged: (isFull) => void (this.#session.inbox.isFull = isFull),
        });
        this.outbox = new Outbox({
            store,
            records,
            uid: this.#account?.uid ?? null,
            limits: options.outboxLimits ?? standardOutboxLimits,
            submit: async (send) => (await this.request({ send }, true, 60_000)).receipt,
            isLive: () => this.#machine.state.is === "live",
            changed: (entry) => this.emit("outbox", entry),
            place: (uid) => this.#place(uid),
        });
        this.#follow();
    }

    /**
     * The state of the connection. `is` is "idle", "connecting", "authenticating", "live", "waiting", "paused" or
     * "stopped". The state "waiting" has an `error` and a `delay` in milliseconds. In the state "paused", the page is
     * suspended or there is no network; the state has an `error`. In the state "stopped", the client does not try
     * again. Its `error` is the reason, or null if the app closed the client.
     *
     * @returns {{ is: string, error: HermesError | null, delay?: number }}
     */
    get state() {
        const { state } = this.#machine;
        if (state.is === "waiting" && this.#machine.isHeld) return { is: "paused", error: state.error };
        const { is, error = null, delay = 0 } = /** @type {any} */ (state);
        return { is, error, delay };
    }

    /** Whether an earlier login left a token, so that `resume` can log in. */
    get canResume() {
        return Boolean(this.#account?.token);
    }

    /**
     * Logs in and stays logged in: after a lost connection, the client reconnects. If the client was logged in before
     * and the server refuses this login, the client logs in again with the earlier credential.
     *
     * @param {{ nickName: string, password: string } | { token: string }} credential
     * @returns {Promise<any>} The session, after the login has succeeded: `uid`, `nickName`, `token`, `epoch`,
     *   `serverVersion`.
     * @throws {HermesError} If the server refuses the login permanently.
     */
    logIn(credential) {
        return this.#logIn(credential);
    }

    /**
     * Creates an account and logs in to it.
     *
     * @param {{ nickName: string, password: string, invitation?: string }} account
     */
    register(account) {
        return this.#logIn({ ...account, register: true });
    }

    /** Logs in with the token of an earlier login. */
    async resume() {
        if (!this.#account?.token) throw new HermesError(ErrorCode.invalidToken, "no earlier login left a token");
        return this.#logIn({ token: this.#account.token });
    }

    /**
     * Logs out. Revokes the token and closes the client.
     *
     * @param {{ removeDevice?: boolean }} options With `removeDevice`, the server deletes everything that it keeps for
     *   this device.
     */
    async logOut({ removeDevice = false } = {}) {
        await this.request({ logOut: { removeDevice } }, false);
        await this.#forgetToken();
        await this.close();
    }

    /** Ends the connection. Waiting requests fail with `closed`. Messages in the outbox wait for the next login. */
    async close() {
        this.#deliveries.isHeld = true;
        this.#unfollow?.();
        this.#unfollow = null;
        this.#stop();
        const statistics = this.#session.statistics.unsent;
        await this.#write([["statistics", statistics.length ? statistics : undefined]]);
        this.#store.close();
    }

    /**
     * Reports a change of the page's state or of the network. The client calls this method itself, unless `followsPage`
     * is false.
     *
     * @param {{ app?: "foreground" | "background" | "suspended", isOnline?: boolean }} conditions
     */
    setConditions(conditions) {
        this.#turn((now, effects) => {
            const next = { ...this.#machine.conditions, ...conditions };
            const isLive = this.#machine.state.is === "live";
            this.#session.appStateChanged(next.app, isLive, effects);
            this.#apply(effects.splice(0));
            this.#perform(this.#machine.conditionsChanged(next, now));
        });
    }

    /** See `Requests`. @override */
    request(/** @type {any} */ body, isRepeatable = true, timeout = 30_000) {
        return new Promise((resolve, reject) => {
            if (!this.#isStarted) {
                reject(new HermesError(ErrorCode.closed, "log in first"));
                return;
            }
            this.#turn((now) => {
                const entry = this.#requests.insert(body, isRepeatable, now + timeout, resolve, reject);
                // During a search for the request that caused a breach, the end of the turn writes the next request.
                const isNext = body?.logOut || !this.#requests.isSearching;
                if (this.#machine.state.is === "live" && isNext) this.#writeRequest(entry);
            });
        });
    }

    /**
     * See `Requests`.
     *
     * @override
     * @param {any} body
     * @throws {HermesError} `notEncodable`.
     */
    notify(body) {
        const { error } = this.#encoded(body, 0);
        if (error) throw error;
        if (this.#machine.state.is === "live") this.#turn((_now, effects) => effects.push({ do: "send", body, id: 0 }));
    }

    /** @override */
    handlersChanged(/** @type {string} */ name) {
        if (name === "entry") this.#deliveries.run();
    }

    get #isStarted() {
        const { state } = this.#machine;
        return state.is !== "idle" && state.is !== "stopped";
    }

    /** @param {import("./session.js").Credential} credential */
    #logIn(credential) {
        const text = JSON.stringify(credential);
        const register = { ...credential, device: this.#session.description };
        const flaw = flawOf({ register }) || flawIn(encode(register, 0));
        if (flaw) return Promise.reject(new HermesError(ErrorCode.notEncodable, flaw));
        // After a login by password, the session's credential is the token from that login.
        const isKnown = text === this.#requested || text === JSON.stringify(this.#session.credential);
        const isSame = this.#isStarted && isKnown;
        this.#requested = text;
        if (isSame && this.#machine.state.is === "live") return Promise.resolve(this.session);
        const earlier = !isSame && this.#machine.state.is === "live" ? this.#session.credential : null;
        if (!isSame && this.#isStarted) this.#stop();
        this.#follow();
        const login = new Promise((resolve, reject) => {
            this.#logins.push({ resolve, reject });
            if (isSame) return;
            this.outbox.halt(this.#mayBeOwners(credential) ? (this.#account?.uid ?? null) : null);
            this.#session.logIn(credential, this.#isOwners(credential));
            this.#turn(() => this.#perform(this.#machine.startRequested()));
        });
        return earlier ? login.catch((error) => this.#returnTo(earlier, text, error)) : login;
    }

    /**
     * Handles the refusal of another login, for example because of a mistyped password. Logs in again with the earlier
     * credential.
     *
     * @param {any} earlier The credential of the connection that the refused login has ended.
     * @param {string} refused The refused credential.
     * @param {any} error
     * @returns {never}
     */
    #returnTo(earlier, refused, error) {
        const isLast = this.#requested === refused && this.#machine.state.is === "stopped";
        // If the deliveries are held, the app has called `close`.
        if (isLast && !this.#deliveries.isHeld) this.#logIn(earlier).catch(() => {});
        throw error;
    }

    /**
     * Whether the credential certainly belongs to the store's account. A name does not prove this, because it may
     * belong to another account now.
     *
     * @param {any} credential
     */
    #isOwners({ token }) {
        return Boolean(token) && token === this.#account?.token;
    }

    /**
     * Whether the credential may belong to the store's account. A name does if no other account has received the name
     * since then.
     *
     * @param {any} credential
     */
    #mayBeOwners(credential) {
        const { token, nickName, register } = credential;
        if (token || register) return this.#isOwners(credential);
        return nickName.toLowerCase() === this.#account?.nickName.toLowerCase();
    }

    /** Follows the page until `close`. */
    #follow() {
        if (!this.#followsPage) return;
        this.#unfollow ??= followPage(this.#url, (conditions) => this.setConditions(conditions));
    }

    #stop() {
        this.#turn((_now, effects) => {
            if (this.#machine.state.is === "live") this.#session.closing(Date.now(), effects);
            this.#apply(effects.splice(0));
            this.#perform(this.#machine.stopRequested());
        });
    }

    /**
     * Runs a step, carries out its effects, and sets the timer again.
     *
     * @param {(now: number, effects: import("./session.js").Effect[]) => void} step
     */
    #turn(step) {
        /** @type {import("./session.js").Effect[]} */
        const effects = [];
        step(performance.now(), effects);
        this.#apply(effects);
        if (this.#requests.isSearching) this.#writeNext();
        this.#keepPassed();
        const { state, learned } = this.#machine;
        if (learned !== this.#learned) this.#keepLearned(learned);
        const isNew = state.is !== this.#lastState;
        this.#lastState = state.is;
        if (isNew && state.is === "stopped") this.#stopped(state.error);
        this.#schedule();
        if (isNew) this.emit("state", this.state);
    }

    /** @param {import("./connection.js").Action[]} actions */
    #perform(actions) {
        for (const action of actions) {
            /** @type {import("./session.js").Effect[]} */
            const effects = [];
            const now = performance.now();
            if (action === "connect") this.#transport.open();
            else if (action === "authenticate") {
                this.#session.connected(Date.now(), effects);
                // If the page ends now, the login may still reach the server.
                this.#write([["logins", [...this.#session.strays, Date.now()]]]);
            } else if (action === "becameLive") {
                this.#session.becameLive(now, effects);
                for (const entry of this.#requests.unwritten(now)) this.#writeRequest(entry);
            } else if (action === "sendHeartbeat") {
                const { body, id } = this.#session.heartbeat(Date.now());
                this.#send(body, id);
            } else this.#disconnect();
            this.#apply(effects);
        }
    }

    /**
     * @param {import("./requests.js").PendingRequest | undefined} request
     * @param {HermesError} error
     */
    #refused(request, error) {
        if (request && isCarriedOut(request, error)) request.resolve({});
        else request?.reject(error);
    }

    /** @param {import("./session.js").Effect[]} effects */
    #apply(effects) {
        for (const effect of effects) {
            const now = performance.now();
            switch (effect.do) {
                case "send":
                    this.#session.wrote(effect.body, effect.id);
                    this.#send(effect.body, effect.id);
                    this.#machine.wrote(now);
                    break;
                case "answer":
                    this.#requests.remove(effect.id)?.resolve(effect.result);
                    break;
                case "answerFailed":
                    this.#refused(this.#requests.remove(effect.id), effect.error);
                    break;
                case "deliver":
                    this.#deliveries.push(effect.delivery);
                    break;
                case "live":
                    this.emit(effect.type, effect.event);
                    break;
                case "forgetEntries":
                    this.#deliveries.clear();
                    this.#owed.clear();
                    this.#owed.set("cursor", undefined);
                    this.#cursor = null;
                    this.#passed = this.#lastTaken = 0;
                    this.#owesReset = false;
                    break;
                case "resetCursor":
                    this.#cursor = null;
                    this.#passed = Math.min(this.#passed, effect.received);
                    this.#owesReset = true;
                    this.#owe(effect.taken);
                    break;
                case "loggedIn":
                    this.#loggedIn(effect, now);
                    break;
                case "refused":
                    this.#perform(this.#machine.authenticationRefused(effect.error, now));
                    break;
                case "kicked":
                    if (effect.isBreach) this.#blame(effect.error);
                    this.#perform(this.#machine.kicked(effect.error, effect.mayReturn, effect.advice, now));
                    break;
                case "shutdownAnnounced":
                    this.#machine.shutdownAnnounced(effect.advice, now);
                    break;
                case "reconnectAdvised":
                    this.#machine.reconnectAdvised(effect.advice, now);
                    break;
            }
        }
    }

    /**
     * Handles the end of the connection, or a failure to open it.
     *
     * @param {string} reason
     * @param {number} code See `Transport`.
     */
    #ended(reason, code) {
        // 1009: a frame was too long.
        if (code === 1009) this.#blame(new HermesError(ErrorCode.frameTooLong, "the request is too long"));
        if (code) this.#session.statistics.happened(code === 1006 ? "resets" : "closed", Date.now());
        const error = new HermesError(code ? ErrorCode.connectionLost : ErrorCode.cannotConnect, reason);
        this.#turn(() => this.#disconnect(error));
    }

    /**
     * Closes the connection and reports the end to the state machine. If the machine has not decided to close it, the
     * end counts as an error.
     */
    #disconnect(error = new HermesError(ErrorCode.connectionLost, "the connection was closed")) {
        const { state } = this.#machine;
        if (state.is === "lost" && state.error.code === ErrorCode.timedOut) {
            this.#session.statistics.happened("heartbeatTimeouts", Date.now());
        }
        this.#transport.close();
        this.#session.lost(Date.now());
        for (const entry of this.#requests.connectionLost()) {
            entry.reject(new HermesError(ErrorCode.connectionLost, "the connection ended before the answer"));
        }
        this.#machine.connectionClosed(error, performance.now());
    }

    /** @param {unknown} data */
    #received(data) {
        this.#turn((now, effects) => {
            this.#machine.received(now);
            try {
                const packet = readPacket(data, maxFrameLength);
                this.#session.received(packet, /** @type {string} */ (data).length, now, Date.now(), effects);
            } catch (error) {
                if (!(error instanceof HermesError)) throw error;
                this.#perform(this.#machine.failed(error, now));
            }
        });
    }

    /**
     * Encodes a packet of the app. `error` is the reason why the server would end the connection because of the packet;
     * null if it would not.
     *
     * @param {any} body
     * @param {number} id
     */
    #encoded(body, id) {
        let flaw = flawOf(body);
        const text = flaw ? "" : encode(body, id);
        const bytes = utf8Length(text);
        const limit = this.#session.maxFrameBytes ?? Infinity;
        if (bytes > limit) flaw = `the request has ${bytes} bytes; the server accepts at most ${limit}`;
        flaw ||= flawIn(text);
        return { text, bytes, error: flaw ? new HermesError(ErrorCode.notEncodable, flaw) : null };
    }

    /** Writes the requests that have waited for the answer to another request. */
    #writeNext() {
        while (this.#machine.state.is === "live") {
            const entries = this.#requests.unwritten(performance.now());
            if (!entries.length) return;
            for (const entry of entries) this.#writeRequest(entry);
        }
    }

    /** @param {import("./requests.js").PendingRequest} entry */
    #writeRequest(entry) {
        const { text, bytes, error } = this.#encoded(entry.body, entry.id);
        entry.bytes = bytes;
        if (error) {
            this.#requests.remove(entry.id);
            entry.reject(error);
            return;
        }
        this.#requests.wrote(entry);
        this.#session.wrote(entry.body, entry.id);
        this.#sendText(text);
        this.#machine.wrote(performance.now());
    }

    /**
     * @param {any} body
     * @param {number} id
     */
    #send(body, id) {
        this.#sendText(encode(body, id));
    }

    /** @param {string} text */
    #sendText(text) {
        if (this.#transport.send(text)) return;
        const error = new HermesError(ErrorCode.connectionLost, "the server does not read what is sent to it");
        this.#perform(this.#machine.failed(error, performance.now()));
    }

    /**
     * Handles the end of the connection because of a breach. Rejects the request that caused it, if it is known.
     *
     * @param {HermesError} error
     */
    #blame(error) {
        const guilty = this.#requests.blame(error.code === ErrorCode.frameTooLong);
        guilty?.reject(new HermesError(ErrorCode.notEncodable, `the server refuses the request: ${error.message}`));
    }

    /**
     * @param {any} effect
     * @param {number} now
     */
    #loggedIn({ session, heartbeatAtMost, heartbeatPrior }, now) {
        const { uid, nickName, token } = session;
        if (this.#owed.size) this.#keep();
        this.session = session;
        this.#account = { uid, nickName, token };
        const logins = this.#session.strays;
        this.#write([
            ["account", this.#account],
            ["logins", logins.length ? logins : undefined],
        ]);
        if (heartbeatPrior) this.#machine.heartbeatSuggested(heartbeatPrior);
        this.#perform(this.#machine.authenticated(heartbeatAtMost, Date.now() / 1000, now));
        this.outbox.started(uid);
        for (const { resolve } of this.#logins.splice(0)) resolve(session);
        // Deliveries must not begin earlier, because entries that have waited since `close` may belong to another
        // account.
        this.#deliveries.isHeld = false;
        this.emit("session", session);
        this.#deliveries.run();
    }

    /**
     * Stores a learned interval.
     *
     * @param {import("./heartbeat.js").LearnedHeartbeat} learned
     */
    #keepLearned(learned) {
        this.#learned = learned;
        this.#session.statistics.learned(learned, Date.now());
        this.#heartbeats = { ...this.#heartbeats, [this.#session.statistics.kind]: learned };
        this.#write([["heartbeats", this.#heartbeats]]);
    }

    /** @param {HermesError | null} error */
    #stopped(error) {
        this.outbox.halt(this.outbox.uid);
        clearTimeout(this.#keepTimer);
        const reason = error ?? new HermesError(ErrorCode.closed, "the client was closed");
        for (const { reject } of this.#logins.splice(0)) reject(reason);
        const closed = new HermesError(ErrorCode.closed, `the client stopped: ${reason.message}`);
        for (const entry of this.#requests.removeAll()) entry.reject(closed);
        const isTokenGone = /** @type {number[]} */ ([ErrorCode.invalidToken, ErrorCode.revoked]).includes(reason.code);
        // The refused token may be another token than the stored one.
        if (isTokenGone && this.#isOwners(this.#session.credential ?? {})) this.#forgetToken();
    }

    async #forgetToken() {
        if (this.#account) this.#account = { ...this.#account, token: "" };
        await this.#write([["account", this.#account ?? undefined]]);
    }

    /**
     * Records that the app has taken an entry, first in the store and then on the server.
     *
     * @param {any} delivery
     */
    async #taken(delivery) {
        const { event, name } = delivery;
        if (this.#session.isCurrent(delivery)) {
            if (event.type === "inboxReset") this.#owesReset = false;
            else this.#lastTaken = event.seq;
            this.#owe(event.seq);
        }
        if (name !== null) {
            this.#ordinal += 1;
            this.#owed.set(`seen/${this.#ordinal % keptNames}`, [this.#ordinal, name]);
        }
        // After `close`, another client may use the store. The next login stores the changes.
        if (!this.#deliveries.isHeld) await this.#keep();
    }

    /**
     * Stores that the app has passed this device's own messages, for which it gets receipts instead of entries. The
     * server deletes these entries without an acknowledgement. If they were after the stored cursor, they would count
     * as lost.
     */
    #keepPassed() {
        const { taken } = this.#session.inbox;
        if (this.#machine.state.is !== "live" || taken <= this.#passed) return;
        this.#owe(taken);
        this.#keep();
    }

    /**
     * Adds the cursor to the changes that must be stored.
     *
     * @param {number} seq The seq in the present inbox up to which the app has taken everything.
     */
    #owe(seq) {
        const { owner: uid, inbox, newest } = this.#session;
        this.#passed = Math.max(this.#passed, seq);
        const cursor = { epoch: inbox.epoch, seq: this.#passed, uid, ...(newest && { newest }) };
        this.#owed.set("cursor", this.#owesReset ? { ...cursor, owesReset: true } : cursor);
    }

    /**
     * Stores the changes. A failed write is repeated by a timer. Entries that are not stored count as not taken. With
     * too many of them the inbox pauses, and then no later entry would cause another write.
     */
    async #keep() {
        clearTimeout(this.#keepTimer);
        const changes = [...this.#owed];
        try {
            if (changes.length) await this.#store.write(changes);
        } catch (error) {
            clearTimeout(this.#keepTimer);
            if (this.#isStarted) this.#keepTimer = setTimeout(() => this.#keep(), storeRetryDelay);
            this.emit("storeError", error);
            return;
        }
        for (const [key, value] of changes) {
            // A newer value is in another write. After a reset, the newer value may be lower.
            if (this.#owed.get(key) !== value) continue;
            this.#owed.delete(key);
            if (key === "cursor") this.#cursor = value ?? null;
        }
        const seq = this.#owed.has("cursor") ? 0 : (this.#cursor?.seq ?? 0);
        this.#turn((now, effects) => {
            this.#session.taken(seq, now, Date.now(), effects);
            // Browsers delay the timers of a hidden page by a minute or more.
            if (globalThis.document?.hidden) this.#session.closing(Date.now(), effects);
            // Before the answer to the login, an acknowledgement would apply to another account if that account logs
            // in.
            if (this.#machine.state.is === "live") return;
            this.#apply(effects.splice(0).filter(({ do: what }) => what !== "send"));
        });
    }

    /**
     * Returns the last seq that the store records as taken in an account's inbox, or 0 if there is none. This device's
     * own messages after the last entry do not count. If another account is logged in, the epoch is unknown and the
     * result has the epoch "0".
     *
     * @param {number} uid
     */
    #place(uid) {
        const epoch = uid === this.#session.owner ? this.#session.inbox.epoch : "0";
        return { epoch, seq: this.#cursor?.epoch === epoch ? Math.min(this.#cursor.seq, this.#lastTaken) : 0 };
    }

    /**
     * Writes changes whose loss does no harm.
     *
     * @param {[string, any][]} changes
     */
    #write(changes) {
        return this.#store.write(changes).catch(() => {});
    }

    #schedule() {
        const live = this.#machine.state.is === "live" ? [this.#session.nextDeadline, this.#requests.nextTry] : [];
        const deadlines = [this.#machine.nextDeadline, this.#requests.nextDeadline, ...live];
        const at = Math.min(...deadlines.map((deadline) => deadline ?? Infinity));
        // A timer that fires too early does no harm.
        if (at >= this.#timerAt && at !== Infinity) return;
        clearTimeout(this.#timer);
        this.#timerAt = at;
        if (at === Infinity) return;
        // 2 ** 31 - 1 ms is the longest time that setTimeout accepts.
        const wait = Math.min(Math.max(0, at - performance.now()) + 1, 2 ** 31 - 1);
        this.#timer = setTimeout(() => {
            this.#timerAt = Infinity;
            this.#turn((now, effects) => {
                const expired = this.#requests.expired(now);
                for (const entry of expired) entry.reject(new HermesError(ErrorCode.timedOut, "no answer in time"));
                if (expired.length) this.#perform(this.#machine.requestExpired(now));
                this.#perform(this.#machine.deadlineReached(now));
                if (this.#machine.state.is === "live") this.#session.deadlineReached(now, Date.now(), effects);
            });
        }, wait);
    }
}

/** @param {any} body @param {number} id */
const encode = (body, id) => JSON.stringify(id ? { id: String(id), ...body } : body);

/** @param {string} text */
const utf8Length = (text) => new TextEncoder().encode(text).length;

/**
 * Returns the reason why the server would refuse to read a packet; "" if it would accept the packet.
 *
 * @param {string} json The packet.
 */
function flawIn(json) {
    if (marksInARow.test(json)) return "a text in the request holds more than 128 combining marks in a row";
    if (loneHalf.test(json)) return "a text in the request holds half of a surrogate pair: cut it between characters";
    return "";
}
