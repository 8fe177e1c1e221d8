// Hermes
// SPDX-License-Identifier: Apache-2.0

import { Requests } from "./api.js";
import { HermesClient } from "./client.js";
import { ErrorCode, HermesError } from "./errors.js";
import { makeID } from "./outbox.js";
import { followPage, serverURL } from "./page.js";
import { databaseLocks, IndexedDBStore } from "./stores.js";

/**
 * @typedef {import("./client.js").ClientOptions & { name?: string, locks?: LockManager }} SharedOptions `name` is the
 *   name of the shared client and its database. Use one name for each account that the page keeps separate. `locks`
 *   replaces the browser's Web Locks.
 */

/** The live events that the leader passes on to the other tabs. */
const liveEvents = ["typing", "presence", "signal", "notice", "topicGap", "session", "storeError"];
/** The time after which a tab that has failed to lead takes part again, in milliseconds. */
const rejoinDelay = 2000;
/** The methods that other tabs may call on the leader. */
const methods = ["request", "notify", "logIn", "register", "resume", "logOut", "send", "retry", "discard"];
/** The codes of errors that do not show whether a request was carried out. */
const unanswered = /** @type {number[]} */ ([ErrorCode.connectionLost, ErrorCode.timedOut, ErrorCode.closed]);

/**
 * One client for all tabs of an origin, with one connection, one device and one outbox.
 *
 * The tabs choose a leader with a Web Lock, or with a database on pages without Web Locks. The leader has the
 * connection. The other tabs send their calls to it over a BroadcastChannel. When the leader's tab is closed, another
 * tab becomes the leader and continues from the store. Every tab gets every event. An entry of the inbox counts as
 * taken after the leader's handlers have handled it.
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
    /** @type {(() => void)[]} The functions that release this tab's locks. */
    #releases = [];
    /** @typedef {{ method: string, args: any[], resolve: (value: any) => void, reject: (error: any) => void }} Call */
    /** @type {Map<string, Call>} The calls without an answer. */
    #calls = new Map();
    /** @type {Map<string, any>} The last known messages of the outbox, by client id. */
    #entries = new Map();
    /** The account of the last session; 0 before the first session. */
    #uid = 0;
    /** @type {Map<string, any>} The rooms that this tab is in. */
    #rooms = new Map();
    /** @type {Map<string, any>} The rooms that this tab has asked to enter and has not left since. */
    #wanted = new Map();
    /** @type {Set<number>} The accounts that this tab watches. */
    #watched = new Set();
    /** Whether this tab has asked the present leader for its rooms and watched accounts. */
    #isBack = true;
    /** @type {any} This page's state (see `followPage`). */
    #page = null;
    /** @type {Map<string, any>} The states of the tabs' pages, in the leader. */
    #pages = new Map();
    /** @typedef {{ tabs: Set<string>, count: number, entering: Promise<any> | null }} Members */
    /** @type {Map<string, Members>} The tabs in each room and the number of members, in the leader. */
    #members = new Map();
    /**
     * @typedef {{ isGranted: boolean, unanswered: number }} Watch Whether the server has granted a request in this
     *   session, and the number of requests without an answer.
     */
    /** @type {Map<number, Map<string, Watch>>} The tabs that watch each account, in the leader. */
    #watchers = new Map();
    /** @type {(() => void)[]} Called when this tab gets a handler for entries. */
    #handlerWaiters = [];
    /**
     * The last entry that this tab has received, and the account of its inbox. The seqs of each account's inbox begin
     * with 1.
     */
    #last = { uid: 0, epoch: "", seq: 0 };
    /** @type {Promise<void>} The chain that handles the entries from the leader, one after the other. */
    #handled = Promise.resolve();
    /** @type {() => void} */
    #unfollow = () => {};
    /** Whether the tab takes part or is about to take part. */
    #isWanted = false;
    #joins = 0;
    /** Whether `open` has succeeded. */
    #wasOpened = false;
    #isClosed = false;
    /** @type {Promise<void>} The end of the last leave, which may still be in progress. */
    #left = Promise.resolve();
    /** Whether the client was logged in or logging in when this tab left. */
    #wasOn = false;
    /** @type {any} */
    state = { is: "idle" };
    /** @type {any} */
    session = null;
    canResume = false;

    /**
     * Opens the shared client. The promise resolves when there is a leader.
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
            /** The unsent messages and the failed messages, in the order of sending. */
            entries: () => [...this.#entries.values()],
            /** See `Outbox.send`. */
            send: (/** @type {any} */ content, /** @type {any} */ to, /** @type {any} */ sendOptions = {}) =>
                // The id is made here. If the call is repeated to another leader, it is therefore the same message.
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

    /** Closes the client in this tab. The other tabs continue. */
    async close() {
        this.#isClosed = true;
        this.#unfollow();
        await this.#leave();
        this.#channel.close();
    }

    /** Whether the client is logged in or logging in. */
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
        // The tab may have left the room, or may have been kicked, before this answer.
        if (room?.enter && this.#wanted.get(room.room) === room.enter) this.#rooms.set(room.room, room.enter);
        // An earlier request to watch may have been answered in the meantime.
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

    /** Takes part in the election. The promise resolves when there is a leader. */
    async #join() {
        if (this.#isClosed) return;
        const number = (this.#joins += 1);
        this.#isWanted = true;
        await this.#left;
        if (!this.#isWanted || number !== this.#joins) return;
        this.#isOpen = true;
        // The leader waits for this lock, to find out when the tab is closed.
        if (this.#locks) await this.#hold(`${this.#name}/${this.#id}`, this.#locks);
        const led = this.#hold(this.#name, this.#locks ?? databaseLocks).then(() => this.#lead(number));
        led.catch(async (error) => {
            this.emit("storeError", error);
            if (number !== this.#joins) return;
            // A tab that cannot lead must not keep the lock.
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
        // If the tab was suspended or closed in the meantime, the followed page does not change.
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
                // The errors of a browser's database may have the same name as a cancelled wait, so the signal is
                // checked.
                .catch((/** @type {any} */ error) => controller.signal.aborted || reject(error));
        });
    }

    #leave() {
        this.#isWanted = false;
        if (!this.#isOpen) return this.#left;
        if (!this.#locks) this.#post({ type: "gone" });
        this.#isOpen = false;
        this.#wasOn ||= this.#isOn;
        // The tab asks any later leader for its rooms and watched accounts again.
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
     * Makes this tab the leader.
     *
     * @param {number} number The number of the join.
     */
    async #lead(number) {
        const { name = "default", store = new IndexedDBStore(`hermes/${name}`) } = this.#options;
        const client = await HermesClient.open({ ...this.#options, store, followsPage: false });
        // This tab may have been closed in the meantime.
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
            // There may be thousands of these events, so only tabs in the room get them.
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

    /** Informs the other tabs that this tab leads, with the state, the session and the outbox. */
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
        // The previous leader may have carried out these requests, which must not be carried out twice.
        const lost = new HermesError(ErrorCode.connectionLost, "the tab with the connection was closed");
        this.#refuse(({ method, args }) => method === "request" && args[1] === false, lost);
        for (const [call, { method, args }] of this.#calls) this.#dispatch(call, method, args);
        this.#isBack = false;
        if (this.session) this.#belongsTo(this.session);
        // Before the login, it is unknown whether the rooms belong to the same account.
        if (this.state.is === "live") this.#comeBack();
    }

    /**
     * Handles a new session.
     *
     * @param {any} session
     */
    #began(session) {
        const { uid, headSeq } = session;
        // This step must follow the handling of earlier entries.
        this.#handled = this.#handled.then(() => {
            // The server may have lost the entries after its head. Then it gives their seqs to other entries.
            if (uid === this.#last.uid) this.#last.seq = Math.min(this.#last.seq, headSeq);
        });
        this.#belongsTo(session);
    }

    /**
     * If the session belongs to another account, drops the rooms and the watched accounts.
     *
     * @param {any} session
     */
    #belongsTo(session) {
        if (session.uid === this.#uid) return;
        this.#uid = session.uid;
        this.#rooms.clear();
        this.#watched.clear();
        // Requests without an answer were made after the connection of the previous account, so they stay.
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
     * Enters a room again under a new leader. As after a reconnect, the app gets the answer as an event.
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
        // The tab may have left the room in the meantime.
        if (this.#rooms.get(room) === enter) this.#changed("room", { room, user: null, uid: 0, ...news });
    }

    /**
     * Whether a leader did not answer. In that case, the tab asks again when a session begins.
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
     * Carries out a tab's call in the leader.
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
     * Enters a room for a tab. Only the first tab in a room causes a request to the server.
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
        // The server also handles `unwatchUids` first.
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
     * Records that a tab has asked to watch an account.
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
     * Removes a tab from the watchers of an account, unless a request to watch was granted or has no answer yet.
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
     * Removes a tab from a room.
     *
     * @param {string} tab
     * @param {string} room
     * @returns {boolean} Whether other tabs stay in the room.
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
            // An event from a leader of an earlier version has no uid.
            const { uid = this.#uid } = data;
            const entry = () => this.#entry(data.event, uid).catch(() => {});
            // Entries are handled one after the other, as in the leader.
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
     * Passes an event of the leader's client to this tab and the other tabs.
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
     * Passes an entry to this tab's handlers. An entry is dropped if the tab received it from an earlier leader, or if
     * another account has logged in since.
     *
     * @param {any} event
     * @param {number} uid The account that the entry belongs to.
     */
    async #entry(event, uid) {
        const { seq, epoch, type } = event;
        if (type === "inboxReset") this.#last.seq = 0;
        const isKnown = uid === this.#last.uid && epoch === this.#last.epoch && seq <= this.#last.seq;
        if (seq > 0 && isKnown) return;
        if (this.#client && !this.handlers("entry").length) {
            await new Promise((resolve) => this.#handlerWaiters.push(() => resolve(undefined)));
        }
        // A reset has no seq. It may arrive before the session.
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
     * Sends this page's state to the leader. A tab that the browser suspends leaves, and joins again when it is shown.
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

    /** Sets the conditions of the leader's client. The app is in the foreground while at least one of its tabs is. */
    #conditions() {
        const pages = [...this.#pages.values()];
        if (!this.#client || !pages.length) return;
        const app = pages.some((page) => page.app === "foreground") ? "foreground" : "background";
        this.#client.setConditions({ app, isOnline: pages.some((page) => page.isOnline) });
    }

    /**
     * Removes a tab when it is closed. Without Web Locks, the tab itself reports that it closes.
     *
     * @param {string} tab
     */
    #watchTab(tab) {
        if (this.#pages.has(tab) || !this.#locks) return;
        this.#locks.request(`${this.#name}/${tab}`, () => this.#forget(tab));
    }

    /** @param {string} tab A closed tab. */
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
 * A copy that a BroadcastChannel can transfer. Errors become plain objects.
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
