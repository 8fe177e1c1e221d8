// Hermes
// SPDX-License-Identifier: Apache-2.0

import { Requests } from "./api.js";
import { HermesClient } from "./client.js";
import { ErrorCode, HermesError } from "./errors.js";
import { makeID } from "./outbox.js";
import { followPage, serverURL } from "./page.js";
import { databaseLocks, IndexedDBStore } from "./stores.js";

/**
 * @typedef {import("./client.js").ClientOptions & { name?: string, locks?: LockManager }} SharedOptions
 *   `name` names the shared client and its database; one for each account that the page keeps apart. `locks` stands in
 *   for the browser's.
 */

/** The live events that are passed on to the other tabs. */
const liveEvents = ["typing", "presence", "signal", "notice", "topicGap", "session", "storeError"];
/** The time after which a tab that could not lead takes part again, in milliseconds. */
const rejoinDelay = 2000;
/** What other tabs may ask of the leader. */
const methods = ["request", "notify", "logIn", "register", "resume", "logOut", "send", "retry", "discard"];
/** The codes of errors that say nothing about what became of a request. */
const unanswered = /** @type {number[]} */ ([ErrorCode.connectionLost, ErrorCode.timedOut, ErrorCode.closed]);

/**
 * One client for all tabs of an origin: one connection, one device, one outbox.
 *
 * The tabs agree on a leader by a Web Lock, or by a database on pages without Web Locks. The leader has the connection;
 * the others ask it over a BroadcastChannel. When the leader's tab is closed, another one takes its place and continues
 * from the store. Every tab gets every event. An entry of the inbox counts as taken once the leader's handlers are done
 * with it.
 *
 * It has the requests, events, `state`, `session` and `outbox` of a HermesClient.
 */
export class SharedClient extends Requests {
    #id = makeID();
    #options;
    #name;
    #locks;
    #channel;
    /** @type {HermesClient | null} This tab's client while it leads. */
    #client = null;
    #leader = "";
    #isOpen = true;
    /** @type {(() => void)[]} Ends the holding of this tab's locks. */
    #releases = [];
    /** @typedef {{ method: string, args: any[], resolve: (value: any) => void, reject: (error: any) => void }} Call */
    /** @type {Map<string, Call>} Calls without an answer. */
    #calls = new Map();
    /** @type {Map<string, any>} The last known messages of the outbox, by client id. */
    #entries = new Map();
    /** The account of the last session; 0 before the first. */
    #uid = 0;
    /** @type {Map<string, any>} The rooms that this tab is in. */
    #rooms = new Map();
    /** @type {Map<string, any>} The rooms that this tab last asked to enter, and not to leave. */
    #wanted = new Map();
    /** @type {Set<number>} The accounts that this tab watches. */
    #watched = new Set();
    /** Whether the present leader was asked for the rooms and the watched accounts. */
    #isBack = true;
    /** @type {any} This page's state, see `followPage`. */
    #page = null;
    /** @type {Map<string, any>} The tabs' pages, as the leader knows them. */
    #pages = new Map();
    /** @typedef {{ tabs: Set<string>, count: number, entering: Promise<any> | null }} Members */
    /** @type {Map<string, Members>} The tabs in each room, as the leader knows them, and the number of members. */
    #members = new Map();
    /**
     * @typedef {{ isGranted: boolean, unanswered: number }} Watch Whether the server granted a request of this session,
     *   and the number of requests without an answer.
     */
    /** @type {Map<number, Map<string, Watch>>} The tabs that watch each account, as the leader knows them. */
    #watchers = new Map();
    /** @type {(() => void)[]} Called when this tab has a handler of entries. */
    #handlerWaiters = [];
    /** The last entry that this tab got, and whose inbox it is of. Each account's inbox counts from 1. */
    #last = { uid: 0, epoch: "", seq: 0 };
    /** @type {Promise<void>} The handling of the entries that the leader passed on. */
    #handled = Promise.resolve();
    /** @type {() => void} */
    #unfollow = () => {};
    /** Whether the tab takes part, or is about to. */
    #isWanted = false;
    #joins = 0;
    /** Whether `open` has succeeded. */
    #wasOpened = false;
    #isClosed = false;
    /** @type {Promise<void>} A leave that is under way. */
    #left = Promise.resolve();
    /** Whether the client was logged in, or logging in, when this tab left. */
    #wasOn = false;
    /** @type {any} */
    state = { is: "idle" };
    /** @type {any} */
    session = null;
    canResume = false;

    /**
     * Opens the shared client; resolves once there is a leader.
     *
     * @param {SharedOptions} options
     * @returns {Promise<SharedClient>}
     */
    static async open(options) {
        const shared = new SharedClient(options);
        try {
            await shared.#join();
        } catch (error) {
            await shared.close();
            throw error;
        }
        return shared;
    }

    /** @param {SharedOptions} options */
    constructor(options) {
        super();
        this.#options = options;
        this.#name = `hermes/${options.name ?? "default"}`;
        this.#locks = options.locks ?? globalThis.navigator?.locks;
        this.#channel = new BroadcastChannel(this.#name);
        this.#channel.onmessage = ({ data }) => this.#received(data);
        this.outbox = {
            /** The unsent and the failed messages, in the order of sending. */
            entries: () => [...this.#entries.values()],
            /** See `Outbox.send`. */
            send: (/** @type {any} */ content, /** @type {any} */ to, /** @type {any} */ sendOptions = {}) =>
                // The id is made here, so that a call that is repeated to another leader is the same message.
                this.#call("send", [content, to, { clientId: makeID(), ...sendOptions }]),
            retry: (/** @type {string} */ clientId) => this.#call("retry", [clientId]),
            discard: (/** @type {string} */ clientId) => this.#call("discard", [clientId]),
        };
    }

    /** Whether this tab has the connection. */
    get isLeader() {
        return this.#client !== null;
    }

    /**
     * See `HermesClient.logIn`.
     *
     * @param {{ nickName: string, password: string } | { token: string }} credential
     */
    logIn(credential) {
        return this.#call("logIn", [credential]);
    }

    /**
     * See `HermesClient.register`.
     *
     * @param {{ nickName: string, password: string, invitation?: string }} account
     */
    register(account) {
        return this.#call("register", [account]);
    }

    /** See `HermesClient.resume`. */
    resume() {
        return this.#call("resume", []);
    }

    /**
     * Logs out in all tabs.
     *
     * @param {{ removeDevice?: boolean }} options
     */
    logOut(options = {}) {
        return this.#call("logOut", [options]);
    }

    /** Takes this tab out; the others go on. */
    async close() {
        this.#isClosed = true;
        this.#unfollow();
        await this.#leave();
        this.#channel.close();
    }

    /** Whether the client is logged in, or logging in. */
    get #isOn() {
        return !["idle", "stopped"].includes(this.state.is);
    }

    /** @override */
    async request(/** @type {any} */ body, isRepeatable = true, timeout = 30_000) {
        const { room, presence } = body;
        if (room?.enter) this.#wanted.set(room.room, room.enter);
        if (room?.leave) this.#isOut(room.room);
        const unwatch = () => presence?.unwatchUids?.forEach((/** @type {number} */ uid) => this.#watched.delete(uid));
        unwatch();
        const result = await this.#call("request", [body, isRepeatable, timeout]);
        // Unless the tab has left it, or was kicked out, before this answer.
        if (room?.enter && this.#wanted.get(room.room) === room.enter) this.#rooms.set(room.room, room.enter);
        // An earlier request to watch may have been answered meanwhile.
        unwatch();
        for (const uid of presence?.watchUids ?? []) this.#watched.add(uid);
        return result;
    }

    /** @param {string} room */
    #isOut(room) {
        this.#rooms.delete(room);
        this.#wanted.delete(room);
    }

    /** @override */
    notify(/** @type {any} */ body) {
        this.#call("notify", [body]).catch(() => {});
    }

    /** @override */
    handlersChanged(/** @type {string} */ name) {
        if (name === "entry") for (const resolve of this.#handlerWaiters.splice(0)) resolve();
    }

    /** Takes part in the election, and resolves once there is a leader. */
    async #join() {
        if (this.#isClosed) return;
        const number = (this.#joins += 1);
        this.#isWanted = true;
        await this.#left;
        if (!this.#isWanted || number !== this.#joins) return;
        this.#isOpen = true;
        // The leader waits for this lock to learn that the tab is gone.
        if (this.#locks) await this.#hold(`${this.#name}/${this.#id}`, this.#locks);
        const led = this.#hold(this.#name, this.#locks ?? databaseLocks).then(() => this.#lead(number));
        led.catch(async (error) => {
            this.emit("storeError", error);
            if (number !== this.#joins) return;
            // The lock must not stay with a tab that cannot lead.
            await this.#leave();
            if (this.#wasOpened) setTimeout(() => this.#isWanted || this.#join().catch(() => {}), rejoinDelay);
        });
        const known = new Promise((resolve) => {
            const remove = this.on("leader", () => {
                remove();
                resolve(undefined);
            });
        });
        this.#post({ type: "hello" });
        await Promise.race([led, known]);
        // Put away or closed meanwhile: what is followed stays as it is.
        if (number !== this.#joins || (!this.#isOpen && this.#wasOpened)) return;
        this.#wasOpened = true;
        this.#unfollow();
        this.#unfollow = followPage(serverURL(this.#options.server), (now) => this.#conditionsChanged(now));
    }

    /**
     * Waits for a lock and holds it until `#leave`.
     *
     * @param {string} name
     * @param {any} locks
     * @returns {Promise<void>}
     */
    #hold(name, locks) {
        return new Promise((resolve, reject) => {
            const controller = new AbortController();
            this.#releases.push(() => controller.abort());
            locks
                .request(name, { signal: controller.signal }, () => {
                    resolve();
                    return new Promise((release) => this.#releases.push(() => release(undefined)));
                })
                // A browser's databases give their errors the name of a cancelled wait, too.
                .catch((/** @type {any} */ error) => controller.signal.aborted || reject(error));
        });
    }

    #leave() {
        this.#isWanted = false;
        if (!this.#isOpen) return this.#left;
        if (!this.#locks) this.#post({ type: "gone" });
        this.#isOpen = false;
        this.#wasOn ||= this.#isOn;
        // Whoever leads next, rooms and watched accounts are asked for again.
        this.#leader = "";
        const client = this.#client;
        this.#client = null;
        this.#left = (async () => {
            await client?.close();
            for (const release of this.#releases.splice(0)) release();
            this.#refuse(() => true, new HermesError(ErrorCode.closed, "the client was closed"));
        })();
        return this.#left;
    }

    /**
     * This tab leads from now on.
     *
     * @param {number} number That of the join.
     */
    async #lead(number) {
        const { name = "default", store = new IndexedDBStore(`hermes/${name}`) } = this.#options;
        const client = await HermesClient.open({ ...this.#options, store, followsPage: false });
        // This tab may have been closed meanwhile.
        if (!this.#isOpen || number !== this.#joins) return client.close();
        const wasOn = this.#wasOn || this.#isOn;
        this.#wasOn = false;
        this.#client = client;
        this.#members.clear();
        this.#watchers.clear();
        client.on("entry", async (event) => {
            const uid = this.#uid;
            this.#post({ type: "event", name: "entry", event, uid });
            await this.#handled;
            await this.#entry(event, uid);
        });
        client.on("room", (event) => {
            // There may be thousands: only for tabs that are in the room.
            const tabs = [...(this.#members.get(event.room)?.tabs ?? [])];
            this.#countMembers(event);
            if (tabs.some((tab) => tab !== this.#id)) this.#share("room", event);
            else this.#changed("room", event);
        });
        for (const event of liveEvents) client.on(event, (value) => this.#share(event, plain(value)));
        client.on("outbox", (entry) => this.#share("outbox", entry));
        client.on("state", () => this.#share("state", plain(client.state)));
        this.#entries = new Map(client.outbox.entries.map((entry) => [entry.clientId, entry]));
        if (wasOn && client.canResume) client.resume().catch(() => {});
        this.#announce();
        this.#newLeader(this.#id);
    }

    /** Tells the other tabs who leads, and how things stand. */
    #announce() {
        const client = this.#client;
        if (!client) return;
        this.state = plain(client.state);
        this.session = client.session;
        this.canResume = client.canResume;
        const { state, session, canResume } = this;
        this.#post({ type: "leads", state, session, canResume, entries: client.outbox.entries });
    }

    /** @param {string} id */
    #newLeader(id) {
        const isOther = this.#leader !== id;
        this.#leader = id;
        this.emit("leader", id === this.#id);
        if (!isOther) return;
        this.#tellPage();
        // Whether the leader before carried out what must not happen twice is not known.
        const lost = new HermesError(ErrorCode.connectionLost, "the tab with the connection was closed");
        this.#refuse(({ method, args }) => method === "request" && args[1] === false, lost);
        for (const [call, { method, args }] of this.#calls) this.#dispatch(call, method, args);
        this.#isBack = false;
        if (this.session) this.#belongsTo(this.session);
        // Before the login it is not known whose rooms they are.
        if (this.state.is === "live") this.#comeBack();
    }

    /**
     * A session began.
     *
     * @param {any} session
     */
    #began(session) {
        const { uid, headSeq } = session;
        // Behind the entries that came before it.
        this.#handled = this.#handled.then(() => {
            // The server may have lost the entries behind its head, and gives their seqs to others.
            if (uid === this.#last.uid) this.#last.seq = Math.min(this.#last.seq, headSeq);
        });
        this.#belongsTo(session);
    }

    /**
     * In the session of another account the client is in no room, and watches nobody.
     *
     * @param {any} session
     */
    #belongsTo(session) {
        if (session.uid === this.#uid) return;
        this.#uid = session.uid;
        this.#rooms.clear();
        this.#watched.clear();
        // What has no answer yet was asked for after the connection of the other account.
        for (const [room, { entering }] of this.#members) if (!entering) this.#members.delete(room);
        for (const [uid, tabs] of this.#watchers) {
            for (const [tab, watch] of tabs) {
                watch.isGranted = false;
                this.#endUnlessWatched(tab, uid);
            }
        }
    }

    /** Asks a new leader for the rooms and the watched accounts of this tab. */
    #comeBack() {
        if (this.#isBack) return;
        this.#isBack = true;
        for (const [room, enter] of this.#rooms) this.#enterAgain(room, enter);
        if (!this.#watched.size) return;
        this.#call("request", [{ presence: { watchUids: [...this.#watched] } }]).catch((error) => this.#missed(error));
    }

    /**
     * Enters a room under a new leader. The app gets the answer as an event, as it does after a reconnection.
     *
     * @param {string} room
     * @param {any} enter
     */
    async #enterAgain(room, enter) {
        /** @type {any} */
        let news;
        try {
            const result = await this.#call("request", [{ room: { room, enter } }]);
            news = { entered: { memberCount: result.room?.memberCount ?? 0 } };
        } catch (error) {
            if (this.#missed(error)) return;
            news = { kicked: { reason: /** @type {HermesError} */ (error).message } };
        }
        // Unless the tab has left it meanwhile.
        if (this.#rooms.get(room) === enter) this.#changed("room", { room, user: null, uid: 0, ...news });
    }

    /**
     * Whether a leader did not answer; then it is asked once more when a session begins.
     *
     * @param {any} error
     */
    #missed({ code }) {
        const isMissed = unanswered.includes(code);
        if (isMissed) this.#isBack = false;
        return isMissed;
    }

    /**
     * @param {string} method
     * @param {any[]} args
     * @returns {Promise<any>}
     */
    #call(method, args) {
        return new Promise((resolve, reject) => {
            if (!this.#isOpen) {
                reject(new HermesError(ErrorCode.closed, "the client was closed"));
                return;
            }
            const call = makeID();
            this.#calls.set(call, { method, args, resolve, reject });
            this.#dispatch(call, method, args);
        });
    }

    /**
     * @param {string} call
     * @param {string} method
     * @param {any[]} args
     */
    async #dispatch(call, method, args) {
        if (this.#client) this.#answered(call, await this.#perform(this.#id, method, args));
        else this.#post({ type: "call", call, method, args });
    }

    /**
     * Carries out what a tab asked of the leader.
     *
     * @param {string} tab
     * @param {string} method
     * @param {any[]} args
     * @returns {Promise<{ value?: any, error?: any }>}
     */
    async #perform(tab, method, args) {
        const client = /** @type {any} */ (this.#client);
        try {
            if (!methods.includes(method)) throw new HermesError(ErrorCode.unsupported, `no method ${method}`);
            const { room, presence } = /** @type {any} */ (method === "request" ? args[0] : {});
            const { enter, leave } = room ?? {};
            if (presence) return { value: plain(await this.#watch(tab, args)) };
            if (enter) return { value: plain(await this.#enterRoom(tab, args)) };
            if (leave && this.#staysInRoom(tab, room.room)) return { value: {} };
            const target = ["send", "retry", "discard"].includes(method) ? client.outbox : client;
            const value = await target[method](...args);
            if (["logIn", "register", "resume", "logOut"].includes(method)) this.#announce();
            return { value: plain(value) };
        } catch (error) {
            return { error: plain(error) };
        }
    }

    /**
     * Enters a room for a tab; asks the server for the first one only.
     *
     * @param {string} tab
     * @param {any[]} args
     */
    async #enterRoom(tab, args) {
        const { room } = args[0].room;
        const known = this.#members.get(room);
        if (known) {
            known.tabs.add(tab);
            await known.entering;
            return { room: { room, memberCount: known.count } };
        }
        const entering = /** @type {HermesClient} */ (this.#client).request(args[0], args[1], args[2]);
        /** @type {Members} */
        const members = { tabs: new Set([tab]), count: 0, entering };
        this.#members.set(room, members);
        try {
            const result = await entering;
            members.count += result.room?.memberCount ?? 0;
            members.entering = null;
            return result;
        } catch (error) {
            if (this.#members.get(room) === members) this.#members.delete(room);
            throw error;
        }
    }

    /**
     * Changes which accounts a tab watches. An account that other tabs watch stays watched.
     *
     * @param {string} tab
     * @param {any[]} args
     */
    async #watch(tab, [{ presence, ...rest }, ...options]) {
        const { watchUids = [], unwatchUids = [] } = presence;
        // The server, too, ends the watching first.
        const unwatched = unwatchUids.filter((/** @type {number} */ uid) => this.#removeWatcher(tab, uid));
        const watches = watchUids.map((/** @type {number} */ uid) => this.#addWatcher(tab, uid));
        const body = { ...rest, presence: { ...presence, unwatchUids: unwatched } };
        if (!unwatched.length) delete body.presence.unwatchUids;
        if (!Object.keys(body.presence).length) return {};
        try {
            const result = await /** @type {HermesClient} */ (this.#client).request(body, ...options);
            for (const watch of watches) watch.isGranted = true;
            return result;
        } finally {
            for (const watch of watches) watch.unanswered -= 1;
            for (const uid of watchUids) this.#endUnlessWatched(tab, uid);
        }
    }

    /**
     * A tab asks to watch an account.
     *
     * @param {string} tab
     * @param {number} uid
     */
    #addWatcher(tab, uid) {
        const tabs = this.#watchers.get(uid) ?? new Map();
        this.#watchers.set(uid, tabs);
        /** @type {Watch} */
        const watch = tabs.get(tab) ?? { isGranted: false, unanswered: 0 };
        tabs.set(tab, watch);
        watch.unanswered += 1;
        return watch;
    }

    /**
     * Forgets that a tab watches an account, if no request for this was granted or waits for its answer.
     *
     * @param {string} tab
     * @param {number} uid
     */
    #endUnlessWatched(tab, uid) {
        const watch = this.#watchers.get(uid)?.get(tab);
        if (watch && !watch.isGranted && !watch.unanswered) this.#removeWatcher(tab, uid);
    }

    /**
     * @param {string} tab
     * @param {number} uid
     * @returns {boolean} Whether no tab watches the account any longer.
     */
    #removeWatcher(tab, uid) {
        const tabs = this.#watchers.get(uid);
        tabs?.delete(tab);
        if (tabs?.size) return false;
        this.#watchers.delete(uid);
        return true;
    }

    /** @param {any} event A `hermes.v1.RoomEvent`. */
    #countMembers({ room, uid, joined, left, entered, kicked }) {
        const members = this.#members.get(room);
        if (!members) return;
        if (kicked) this.#members.delete(room);
        else if (entered) members.count = entered.memberCount;
        else if (uid !== this.session?.uid) members.count += (joined ? 1 : 0) - (left ? 1 : 0);
    }

    /**
     * A tab leaves a room.
     *
     * @param {string} tab
     * @param {string} room
     * @returns {boolean} Whether others stay in it.
     */
    #staysInRoom(tab, room) {
        const members = this.#members.get(room);
        if (members?.tabs.delete(tab) && members.tabs.size) return true;
        this.#members.delete(room);
        return false;
    }

    /** @param {any} data */
    #received(data) {
        const { type, from } = data;
        if (type === "hello" && this.#client) {
            this.#announce();
        } else if (type === "page" && this.#client) {
            this.#watchTab(from);
            this.#pages.set(from, data.page);
            this.#conditions();
        } else if (type === "call" && this.#client) {
            this.#perform(from, data.method, data.args).then((answer) =>
                this.#post({ type: "answer", call: data.call, answer }),
            );
        } else if (type === "gone") {
            this.#forget(from);
        } else if (type === "answer") {
            this.#answered(data.call, data.answer);
        } else if (type === "event" && !this.#client) {
            // A leader of an earlier version does not say whose entry it is.
            const { uid = this.#uid } = data;
            const entry = () => this.#entry(data.event, uid).catch(() => {});
            // One after the other, as the leader's handlers get them.
            if (data.name === "entry") this.#handled = this.#handled.then(entry);
            else this.#changed(data.name, data.event);
        } else if (type === "leads" && !this.#client && this.#isOpen) {
            this.#wasOn = false;
            this.state = data.state;
            this.session = data.session;
            this.canResume = data.canResume;
            this.#entries = new Map(data.entries.map((/** @type {any} */ entry) => [entry.clientId, entry]));
            this.#newLeader(from);
        }
    }

    /**
     * An event of the leader's client: for this tab and the others.
     *
     * @param {string} name
     * @param {any} event
     */
    #share(name, event) {
        this.#post({ type: "event", name, event });
        this.#changed(name, event);
    }

    /**
     * @param {string} name
     * @param {any} event
     */
    #changed(name, event) {
        if (name === "state") this.state = event;
        if (name === "session") {
            this.session = event;
            this.#began(event);
            this.#comeBack();
        }
        if (name === "room" && event.kicked) this.#isOut(event.room);
        if (name === "outbox") {
            if (event.status === "sent" || event.status === "discarded") this.#entries.delete(event.clientId);
            else this.#entries.set(event.clientId, event);
        }
        this.emit(name, event);
    }

    /**
     * Hands an entry to this tab's handlers, unless it had it before its leader changed, or another account has logged
     * in since.
     *
     * @param {any} event
     * @param {number} uid The account whose entry it is.
     */
    async #entry(event, uid) {
        const { seq, epoch, type } = event;
        if (type === "inboxReset") this.#last.seq = 0;
        const isKnown = uid === this.#last.uid && epoch === this.#last.epoch && seq <= this.#last.seq;
        if (seq > 0 && isKnown) return;
        if (this.#client && !this.handlers("entry").length) {
            await new Promise((resolve) => this.#handlerWaiters.push(() => resolve(undefined)));
        }
        // A reset, which has no seq, may come before the session.
        if (seq > 0 && uid !== this.#uid) return;
        for (const handler of this.handlers("entry")) await handler(event);
        if (seq > 0) this.#last = { uid, epoch, seq };
    }

    /**
     * @param {string} call
     * @param {{ value?: any, error?: any }} answer
     */
    #answered(call, { value, error }) {
        const waiting = this.#calls.get(call);
        this.#calls.delete(call);
        if (error) waiting?.reject(new HermesError(error.code, error.message, error.retryAfter));
        else waiting?.resolve(value);
    }

    /**
     * @param {(call: { method: string, args: any[] }) => boolean} fits
     * @param {HermesError} error
     */
    #refuse(fits, error) {
        for (const [call, entry] of this.#calls) {
            if (!fits(entry)) continue;
            this.#calls.delete(call);
            entry.reject(error);
        }
    }

    /** @param {any} message */
    #post(message) {
        if (this.#isOpen) this.#channel.postMessage({ ...message, from: this.#id });
    }

    /**
     * Tells the leader this page's state. A page that the browser puts away leaves, and joins again when it is shown.
     *
     * @param {any} conditions
     */
    #conditionsChanged({ app, isOnline }) {
        if (app === "suspended") {
            this.#leave();
        } else if (this.#isOpen) {
            this.#page = { app, isOnline };
            this.#tellPage();
        } else if (!this.#isWanted) {
            this.#join().catch(() => {});
        }
    }

    #tellPage() {
        if (!this.#page) return;
        this.#pages.set(this.#id, this.#page);
        this.#post({ type: "page", page: this.#page });
        this.#conditions();
    }

    /** The app is in the foreground while any of its tabs is. */
    #conditions() {
        const pages = [...this.#pages.values()];
        if (!this.#client || !pages.length) return;
        const app = pages.some((page) => page.app === "foreground") ? "foreground" : "background";
        this.#client.setConditions({ app, isOnline: pages.some((page) => page.isOnline) });
    }

    /**
     * Forgets a tab once it is gone. Without Web Locks, the tab itself says so.
     *
     * @param {string} tab
     */
    #watchTab(tab) {
        if (this.#pages.has(tab) || !this.#locks) return;
        this.#locks.request(`${this.#name}/${tab}`, () => this.#forget(tab));
    }

    /** @param {string} tab A tab that is gone. */
    #forget(tab) {
        this.#pages.delete(tab);
        for (const [room, { tabs }] of this.#members) {
            if (tabs.has(tab)) this.#perform(tab, "request", [{ room: { room, leave: {} } }]);
        }
        const unwatchUids = [...this.#watchers].filter(([, tabs]) => tabs.has(tab)).map(([uid]) => uid);
        if (unwatchUids.length) this.#perform(tab, "request", [{ presence: { unwatchUids } }]);
        this.#conditions();
    }
}

/**
 * A copy that a channel takes: errors become plain objects.
 *
 * @param {any} value
 * @returns {any}
 */
function plain(value) {
    if (value instanceof Error) {
        const { code = 0, message, retryAfter = null } = /** @type {any} */ (value);
        return { name: value.name, code, message, retryAfter };
    }
    return value?.error instanceof Error ? { ...value, error: plain(value.error) } : value;
}
