// Hermes
// SPDX-License-Identifier: Apache-2.0

import { ErrorCode, IndexedDBStore, SharedClient } from "../hermes.js";
import { clearStores, tellServer } from "../leaving.js";
import { t } from "./i18n.js";
import { Chats, keyOf } from "./model.js";

/** The server: `?server=ws://…` for development, else the page's own. */
export const server = new URLSearchParams(location.search).get("server") ?? location.origin;

const accountsKey = `hermes-chat/accounts ${server}`;
/** The numbers of the accounts, which notifications name. */
const uidsKey = `hermes-chat/uids ${server}`;
/** The account of this window; it outlives a reload. */
const hereKey = `hermes-chat/account ${server}`;
/** The time after which a typing user is no longer shown as typing. */
const typingTimeout = 6000;
/** The requests for contacts whose texts are kept. */
const maxRequests = 500;
/** The most conversations that are asked for, and how many at once. */
const maxConversations = 10_000;
const conversationsAtOnce = 1000;
/** Of how many people in a notice of a group the names are asked for. */
const maxLookedUp = 5;
/** Of how many conversations without a message the last one is fetched. */
const maxPreviews = 30;
/** The highest number of an account. */
const maxUid = 2 ** 31 - 1;
/** Read marks that the server has not got are records of their own, which no other tab writes over. */
const markPrefix = "mark/";
/** The time after which such a mark is sent again, unless the server names another, in milliseconds. */
const markPause = 5000;
/** For how long an error of the client's store counts, in milliseconds; while it lasts the client repeats it earlier. */
const storeErrorTime = 5000;

/**
 * @param {string} key
 * @returns {any[]}
 */
function listIn(key) {
    try {
        const list = JSON.parse(localStorage.getItem(key) ?? "[]");
        return Array.isArray(list) ? list : [];
    } catch {
        return [];
    }
}

/** The accounts that logged in on this browser; the first is the one in use. */
export const accounts = {
    /** @returns {string[]} */
    get all() {
        return listIn(accountsKey).filter((name) => typeof name === "string");
    },
    /**
     * The one that this window shows: another window may have taken another.
     *
     * @returns {string | undefined}
     */
    get here() {
        const name = sessionStorage.getItem(hereKey);
        return this.all.find((other) => other === name) ?? this.all[0];
    },
    /** @param {string} name */
    has(name) {
        return this.all.some((other) => other.toLowerCase() === name.toLowerCase());
    },
    /**
     * The name of the account with this number.
     *
     * @param {number} uid
     */
    named(uid) {
        const [known] = listIn(uidsKey).find((pair) => pair?.[1] === uid) ?? [];
        return this.all.find((name) => name.toLowerCase() === known);
    },
    /**
     * @param {string} name
     * @param {number} uid
     */
    number(name, uid) {
        const others = listIn(uidsKey).filter((pair) => pair?.[0] !== name.toLowerCase() && pair?.[1] !== uid);
        localStorage.setItem(uidsKey, JSON.stringify([[name.toLowerCase(), uid], ...others]));
    },
    /** @param {string} name */
    use(name) {
        sessionStorage.setItem(hereKey, name);
        const others = this.all.filter((other) => other.toLowerCase() !== name.toLowerCase());
        localStorage.setItem(accountsKey, JSON.stringify([name, ...others]));
    },
    /** @param {string} name */
    forget(name) {
        const others = this.all.filter((other) => other.toLowerCase() !== name.toLowerCase());
        localStorage.setItem(accountsKey, JSON.stringify(others));
        const uids = listIn(uidsKey).filter((pair) => pair?.[0] !== name.toLowerCase());
        localStorage.setItem(uidsKey, JSON.stringify(uids));
    },
};

/** One account: its client, its conversations, and what is known of people. Calls `changed` after each change. */
export class Account {
    /** @type {SharedClient} */
    client;
    chats = new Chats();
    /** @type {any[]} */
    contacts = [];
    /** @type {Map<number, any>} The presence of the watched accounts. */
    presences = new Map();
    /** @type {Map<string, Map<number, any>>} Who is typing, by conversation. */
    typing = new Map();
    /** @type {Map<number, string>} Names of accounts. */
    names = new Map();
    /** @type {Map<number, string>} The texts of those who ask to be a contact. */
    requests = new Map();
    /** The name as the server has it, to show; the server may write it in another way, and change it. */
    nickName = "";
    /** The name that the stores were opened under. By it the browser finds them again. */
    storedAs = "";
    /** @type {any} Why the browser does not store what arrives; null: it does. Until then nothing more arrives. */
    storeError = null;
    changed = () => {};
    /** Called when another tab logged this account out. */
    left = () => {};
    #store;
    #clientStore;
    #channel;
    /** @type {Map<string, { to: any, upToSeq: number }>} The read marks that the server has not got, by conversation. */
    #marks = new Map();
    /** @type {Set<string>} The conversations whose marks are dropped, but may still be in the store. */
    #dropped = new Set();
    #isMarking = false;
    #isLeft = false;
    /** @type {Set<string> | null} The conversations that entries changed since the list was asked for; null: it is here. */
    #listing = null;
    /** @type {Set<string>} Those in which the server is to count again what is unread. */
    #uncounted = new Set();
    #isCounting = false;
    /** @type {Promise<boolean>} Whether the stores hold nothing of an account that had the name before. */
    #emptied = Promise.resolve(true);
    /** @type {any} */
    #markTimer;
    /** @type {any} */
    #storeErrorTimer;

    /**
     * Opens the account's stores; it logs in later.
     *
     * @param {string} nickName
     */
    static async open(nickName) {
        const name = `${server} ${nickName.toLowerCase()}`;
        const store = new IndexedDBStore(`hermes-chat/${name}`);
        const clientStore = new IndexedDBStore(`hermes/${name}`);
        const device = { name: "Hermes Chat", appVersion: "0.1" };
        const client = await SharedClient.open({ server, name, store: clientStore, device });
        try {
            /** @type {(account: Account) => void} */
            let opened = () => {};
            const isOpen = /** @type {Promise<Account>} */ (new Promise((resolve) => (opened = resolve)));
            // Entries that another tab handles from now on may be missing in what is loaded.
            const early = client.on("entry", async (event) => (await isOpen).#entry(event));
            const account = new Account(client, store, await store.load(), name, nickName, clientStore);
            early();
            opened(account);
            return account;
        } catch (error) {
            await client.close();
            throw error;
        }
    }

    /**
     * @param {SharedClient} client
     * @param {IndexedDBStore} store
     * @param {Map<string, any>} records
     * @param {string} name
     * @param {string} storedAs
     * @param {import("../stores.js").Store} clientStore That of the client.
     */
    constructor(client, store, records, name, storedAs, clientStore) {
        this.client = client;
        this.#store = store;
        this.#clientStore = clientStore;
        this.storedAs = storedAs;
        this.nickName = records.get("me")?.nickName ?? storedAs;
        this.chats = new Chats(records);
        this.chats.me = records.get("me")?.uid ?? 0;
        for (const [uid, known] of records.get("names") ?? []) this.names.set(uid, known);
        this.requests = new Map(records.get("requests"));
        for (const [key, mark] of records) {
            if (key.startsWith(markPrefix)) this.#marks.set(key.slice(markPrefix.length), mark);
        }
        // What one tab has marked as read is read in the others.
        this.#channel = new BroadcastChannel(`hermes-chat/${name}`);
        this.#channel.onmessage = ({ data }) => {
            if (data.hasLeft) {
                this.#leftElsewhere();
                return;
            }
            const chat = this.chats.get(data.key);
            if (chat) this.chats.marked(chat, data.upToSeq);
            this.changed();
        };
        if (client.session) this.#began(client.session);
        client.on("session", (session) => this.#began(session));
        client.on("entry", (event) => this.#entry(event));
        client.on("outbox", (entry) => {
            if (this.#isOwn(entry)) this.#keep([this.chats.outbox(entry)]).catch(() => {});
        });
        client.on("state", () => this.changed());
        client.on("storeError", (error) => this.#clientStoreFailed(error));
        client.on("typing", (event) => this.#typing(event));
        client.on("presence", (presence) => {
            this.presences.set(presence.uid, presence);
            this.changed();
        });
        this.chats.reopened(this.#outbox);
    }

    /**
     * Whether a message of the outbox is this account's, and not of one that had the name before.
     *
     * @param {{ uid: number }} entry A tab with the SDK of an earlier version does not say whose it is.
     */
    #isOwn({ uid = this.chats.me }) {
        return !this.chats.me || uid === this.chats.me;
    }

    get #outbox() {
        return this.client.outbox.entries().filter((entry) => this.#isOwn(entry));
    }

    /** Another tab has logged out; or did some time ago, and this one slept until after the next login. */
    async #leftElsewhere() {
        // The message may be faster than what the other tab wrote before it into localStorage.
        for (let tries = 0; tries < 50 && accounts.has(this.storedAs); tries += 1) {
            await new Promise((resolve) => setTimeout(resolve, 100));
        }
        if (accounts.has(this.storedAs) || this.#isLeft) return;
        this.#isLeft = true;
        this.left();
    }

    async close() {
        this.changed = () => {};
        clearTimeout(this.#markTimer);
        clearTimeout(this.#storeErrorTimer);
        await this.client.close();
        this.#channel.close();
        this.#store.close();
    }

    /**
     * Logs out, here and in the other tabs, and removes what this browser keeps of the account. Call `close` after it.
     *
     * @param {() => Promise<any>} prepare What else the server is to be told before.
     * @returns {Promise<boolean>} Whether the server was told.
     */
    async leave(prepare) {
        this.changed = () => {};
        const farewell = async () => {
            await prepare().catch(() => {});
            await this.client.logOut({ removeDevice: true });
        };
        const isTold = await tellServer(this.client, farewell);
        accounts.forget(this.storedAs);
        this.#channel.postMessage({ hasLeft: true });
        await this.forget();
        return isTold;
    }

    /** Removes what this browser keeps of the account. */
    async forget() {
        await this.client.close();
        await clearStores([this.#store, this.#clientStore]);
    }

    /** How many messages were not sent. */
    get unsent() {
        return this.#outbox.length;
    }

    /**
     * The title of a conversation.
     *
     * @param {import("./model.js").Chat} chat
     */
    titleOf(chat) {
        if ("uid" in chat.to && !chat.to.uid) return t("notifications");
        return ("uid" in chat.to ? this.names.get(chat.to.uid) : "") || chat.title || chat.key;
    }

    /** @param {number} uid */
    isBlocked(uid) {
        return this.contacts.some((contact) => contact.uid === uid && contact.state === "blocked");
    }

    /** @param {number} uid */
    nameOf(uid) {
        return uid === this.chats.me ? this.nickName : (this.names.get(uid) ?? `#${uid}`);
    }

    /**
     * Begins a conversation with the account of this name.
     *
     * @param {string} nickName
     */
    async chatWith(nickName) {
        const { uid, nickName: known } = await this.client.account({ nickName });
        this.#name(uid, known);
        this.watch([uid]);
        const chat = this.chats.open({ uid }, known);
        await this.#keep([chat]);
        return chat;
    }

    /**
     * @param {any} conversation
     * @param {string} title
     */
    async open(conversation, title) {
        const chat = this.chats.open(conversation, title);
        await this.#keep([chat]);
        return chat;
    }

    /**
     * Everything in the conversation was seen.
     *
     * @param {import("./model.js").Chat} chat
     */
    markRead(chat) {
        // Whether the server still has what is here, its next list says.
        if (chat.resetAt !== undefined || chat.lastSeq <= chat.markedUpTo) return;
        this.chats.marked(chat, chat.lastSeq);
        this.#channel.postMessage({ key: chat.key, upToSeq: chat.lastSeq });
        this.#keep([chat]).catch(() => {});
        if ("uid" in chat.to && !chat.to.uid) return;
        const mark = { to: chat.to, upToSeq: chat.lastSeq };
        this.#marks.set(chat.key, mark);
        this.#store.write([[markPrefix + chat.key, mark]]).catch(() => {});
        this.#tellMarks();
    }

    /** Sends the read marks that the server has not got, until it has them all. */
    async #tellMarks() {
        if (this.#isMarking) return;
        this.#isMarking = true;
        clearTimeout(this.#markTimer);
        for (let next; (next = this.#marks.entries().next().value); ) {
            const [key, mark] = next;
            try {
                await this.client.markRead(mark.to, mark.upToSeq);
            } catch (error) {
                const { code, isTemporary, retryAfter } = /** @type {any} */ (error);
                if (isTemporary !== false) {
                    // A client that was closed tells them after its next login.
                    const wait = retryAfter ?? markPause;
                    if (code !== ErrorCode.closed) this.#markTimer = setTimeout(() => this.#tellMarks(), wait);
                    break;
                }
            }
            // More may have been read meanwhile.
            if (this.#marks.get(key) !== mark) continue;
            this.#marks.delete(key);
            this.#store.write([[markPrefix + key, undefined]]).catch(() => {});
        }
        this.#isMarking = false;
    }

    /**
     * Fetches messages of the newest hole or, if there is none, before the oldest that is known.
     *
     * @param {import("./model.js").Chat} chat
     * @returns {Promise<boolean>} Whether there may be more.
     */
    async earlier(chat) {
        const place = this.chats.placeOf(chat);
        const isHole = Boolean(this.chats.hole(chat));
        const { messages, more } = await this.client.history(chat.to, { beforeSeq: place, limit: 50 });
        // What was here was dropped or filled meanwhile: between this answer and the rest, messages would be missing.
        if (this.chats.get(chat.key) !== chat || this.chats.placeOf(chat) !== place) return true;
        this.chats.history(chat, messages, place, more);
        await this.#keep([chat]);
        return messages.length > 0 || isHole;
    }

    async loadContacts() {
        const contacts = [];
        for (let page = { contacts: /** @type {any[]} */ ([]), more: true }; page.more && contacts.length < 2000; ) {
            page = await this.client.contacts({ afterUid: contacts.at(-1)?.uid ?? 0, limit: 500 });
            contacts.push(...page.contacts);
            if (!page.contacts.length) break;
        }
        this.contacts = contacts;
        for (const { uid, nickName, state, isOnline } of contacts) {
            this.#name(uid, nickName);
            // Who blocked the user, or was a stranger, may have looked offline before.
            const known = this.presences.get(uid);
            if (known && state === "accepted") this.presences.set(uid, { ...known, isOnline });
        }
        this.watch(contacts.filter((contact) => contact.state === "accepted").map((contact) => contact.uid));
        this.changed();
    }

    /**
     * @param {number[]} uids
     * @param {boolean} isAgain Whether those that are watched are asked for again: a block may have hidden them.
     */
    async watch(uids, isAgain = false) {
        const isAsked = (/** @type {number} */ uid) => uid !== this.chats.me && (isAgain || !this.presences.has(uid));
        const unknown = uids.filter(isAsked).slice(0, 500);
        if (!unknown.length) return;
        try {
            for (const presence of await this.client.watchPresence(unknown)) this.presences.set(presence.uid, presence);
            this.changed();
        } catch {
            // Shown without presence until the next login.
        }
    }

    /** @param {any} session */
    async #began(session) {
        const isOther = this.chats.me !== session.uid;
        if (this.chats.me && isOther) this.#emptied = this.#empty(session.uid);
        this.chats.me = session.uid;
        if (isOther) this.chats.reopened(this.#outbox);
        this.nickName = session.nickName;
        this.#name(session.uid, session.nickName);
        accounts.use(this.storedAs);
        accounts.number(this.storedAs, session.uid);
        const me = { uid: session.uid, nickName: session.nickName };
        // What could not be removed stays that of the account before. What is not stored shows nevertheless.
        if (await this.#emptied) await this.#write([["me", me]]).catch(() => {});
        this.loadContacts().catch(() => {});
        this.#loadConversations().catch(() => {});
        this.#tellMarks();
        this.watch(this.chats.all.flatMap((chat) => ("uid" in chat.to && chat.to.uid ? [chat.to.uid] : [])));
        this.changed();
    }

    /**
     * The name belongs to another account now: nothing of the account before is for it.
     *
     * @param {number} uid The other account.
     * @returns {Promise<boolean>} Whether the store is empty.
     */
    async #empty(uid) {
        const foreign = this.client.outbox.entries().filter((entry) => (entry.uid ?? uid) !== uid);
        // What cannot be removed stays unsent, and is not shown.
        for (const { clientId } of foreign) this.client.outbox.discard(clientId).catch(() => {});
        this.chats = new Chats();
        this.contacts = [];
        for (const known of [this.presences, this.typing, this.names, this.requests, this.#marks]) known.clear();
        this.#uncounted.clear();
        try {
            const records = await this.#store.load();
            await this.#store.write([...records.keys()].map((key) => [key, undefined]), true);
            return true;
        } catch {
            // What is left shows at the next start, and goes then.
            return false;
        }
    }

    /** A new device gets only later entries: the list says what there was before. */
    async #loadConversations() {
        /** @type {any[]} */
        const all = [];
        /** @type {Set<string>} */
        const meanwhile = new Set();
        this.#listing = meanwhile;
        let isAll = false;
        try {
            while (!isAll && all.length < maxConversations) {
                const after = all.at(-1)?.conversation ?? null;
                const { conversations, more } = await this.client.conversations({ after, limit: conversationsAtOnce });
                all.push(...conversations);
                await this.#listed(conversations);
                isAll = !more || !conversations.length;
            }
        } finally {
            // What was marked or recalled meanwhile may have been counted before.
            if (this.#listing === meanwhile) this.#listing = null;
            this.#count(meanwhile);
        }
        if (isAll) await this.#keep(this.chats.unlisted(all));
        const chats = all.flatMap(({ conversation }) => this.chats.get(keyOf(conversation)) ?? []);
        const bare = chats.filter((chat) => chat.lastSeq && !chat.lines.some((line) => line.seq));
        const newest = bare.sort((a, b) => b.lastAt - a.lastAt).slice(0, maxPreviews);
        this.watch(newest.flatMap(({ to }) => ("uid" in to ? [to.uid] : [])));
        for (const chat of newest) {
            const { messages } = await this.client.history(chat.to, { limit: 1 });
            // A server that keeps no history has none of the others, either.
            if (!messages.length) break;
            this.chats.history(chat, messages);
            await this.#keep([chat]);
        }
    }

    /** @param {any[]} conversations */
    async #listed(conversations) {
        const others = conversations.filter(({ conversation: { uid }, name }) => uid && name && name !== this.names.get(uid));
        for (const { conversation, name } of others) this.names.set(conversation.uid, name);
        if (others.length) await this.#write([["names", [...this.names].slice(-2000)]]);
        await this.#keep(this.chats.listed(conversations));
    }

    /**
     * Has the server count again what is unread, where only the server can tell.
     *
     * @param {Iterable<string>} keys
     */
    async #count(keys) {
        for (const key of keys) this.#uncounted.add(key);
        if (this.#isCounting) return;
        this.#isCounting = true;
        for (const key of this.#uncounted) {
            this.#uncounted.delete(key);
            if (!this.chats.isCounted(key)) continue;
            // The first one behind the place before it.
            const { uid = 0, groupId = 0 } = /** @type {any} */ (this.chats.get(key)?.to);
            const before = groupId === 1 ? { uid: maxUid } : groupId ? { groupId: groupId - 1 } : { uid: uid - 1 };
            try {
                const after = uid === 1 ? null : before;
                const { conversations } = await this.client.conversations({ after, limit: 1 });
                await this.#listed(conversations.filter(({ conversation }) => keyOf(conversation) === key));
            } catch {
                // After the next login the whole list comes.
            }
        }
        this.#isCounting = false;
    }

    /** @param {any} event */
    async #entry(event) {
        await this.#emptied;
        if (event.type === "inboxReset") await this.#dropMarks();
        if (event.type === "contact") await this.#contact(event.contact);
        if (event.type === "group") this.#lookUp(event.group.uids.slice(0, maxLookedUp));
        if (event.type === "message") {
            const { fromUid, fromNickName, conversation } = event.message;
            this.#name(fromUid, fromNickName);
            this.#stopTyping(keyOf(conversation), fromUid);
        }
        // Only what is stored counts as taken.
        await this.#keep(this.chats.entry(event));
        const key = this.chats.recounted(event);
        if (key && this.#listing) this.#listing.add(key);
        else if (key) this.#count([key]);
        // The list may have come before.
        if (event.type === "inboxReset") this.#loadConversations().catch(() => {});
    }

    /** Messages that were read may be lost, and others may get their places. */
    async #dropMarks() {
        for (const key of this.#marks.keys()) this.#dropped.add(key);
        this.#marks.clear();
        const keys = [...this.#dropped].filter((key) => !this.#marks.has(key));
        await this.#write(keys.map((key) => [markPrefix + key, undefined]));
        this.#dropped.clear();
    }

    /** @param {any} event */
    async #contact({ kind, uid, nickName, message }) {
        this.#name(uid, nickName);
        this.requests.delete(uid);
        if (kind === "requested" && message) this.requests.set(uid, message);
        await this.#write([["requests", [...this.requests].slice(-maxRequests)]]);
        this.loadContacts().catch(() => {});
    }

    /** @param {any} event */
    #typing({ conversation, uid, stopped }) {
        const key = keyOf(conversation);
        this.#stopTyping(key, uid);
        if (!stopped) {
            const people = this.typing.get(key) ?? new Map();
            this.typing.set(key, people);
            people.set(uid, setTimeout(() => this.#stopTyping(key, uid), typingTimeout));
        }
        this.changed();
    }

    /**
     * @param {string} key
     * @param {number} uid
     */
    #stopTyping(key, uid) {
        const people = this.typing.get(key);
        clearTimeout(people?.get(uid));
        if (people?.delete(uid)) this.changed();
    }

    /**
     * @param {number} uid
     * @param {string} name
     */
    #name(uid, name) {
        if (!name || this.names.get(uid) === name) return;
        this.names.set(uid, name);
        this.#store.write([["names", [...this.names].slice(-2000)]]).catch(() => {});
    }

    /**
     * Asks for the names of people of whom nothing is known.
     *
     * @param {number[]} uids
     */
    async #lookUp(uids) {
        for (const uid of uids) {
            if (uid === this.chats.me || this.names.has(uid)) continue;
            try {
                this.#name(uid, (await this.client.account({ uid })).nickName);
            } catch {
                // Shown by number.
            }
        }
        this.changed();
    }

    /** @param {import("./model.js").Chat[]} chats */
    async #keep(chats) {
        const records = this.chats.takeRecords(chats);
        try {
            await this.#write(records);
        } catch (error) {
            this.chats.giveBack(records);
            throw error;
        }
        this.changed();
    }

    /**
     * Writes to the store, and notes whether that succeeds.
     *
     * @param {[string, any][]} records
     */
    async #write(records) {
        try {
            await this.#store.write(records);
        } catch (error) {
            this.#storeFailed(error);
            throw error;
        }
        if (this.storeError && records.length) this.#storeFailed(null);
    }

    /** @param {any} error Null: the store works again. */
    #storeFailed(error) {
        clearTimeout(this.#storeErrorTimer);
        this.storeError = error;
        this.changed();
    }

    /** @param {any} error */
    #clientStoreFailed(error) {
        this.#storeFailed(error);
        this.#storeErrorTimer = setTimeout(() => this.#storeFailed(null), storeErrorTime);
    }
}
