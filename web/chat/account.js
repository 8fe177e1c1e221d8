// Hermes
// SPDX-License-Identifier: Apache-2.0

import { ErrorCode, IndexedDBStore, SharedClient } from "../hermes.js";
import { clearStores, tellServer } from "../leaving.js";
import { t } from "./i18n.js";
import { Chats, keyOf } from "./model.js";

/** The server: the page's own server, or the server in `?server=ws://…` for development. */
export const server = new URLSearchParams(location.search).get("server") ?? location.origin;

const accountsKey = `hermes-chat/accounts ${server}`;
/** The numbers of the accounts. Notifications identify accounts by number. */
const uidsKey = `hermes-chat/uids ${server}`;
/** The account of this window. It is kept across a reload. */
const hereKey = `hermes-chat/account ${server}`;
/** The time after which a typing user is no longer shown as typing, in milliseconds. */
const typingTimeout = 6000;
/** The largest number of contact requests whose texts are kept. */
const maxRequests = 500;
/** The largest number of conversations that are fetched, and the number for each request. */
const maxConversations = 10_000;
const conversationsAtOnce = 1000;
/** The largest number of people in a group's notice whose names are fetched. */
const maxLookedUp = 5;
/**
 * The largest number of conversations whose last message is fetched because the page has no message of the
 * conversation.
 */
const maxPreviews = 30;
/** The highest number of an account. */
const maxUid = 2 ** 31 - 1;
/**
 * The prefix of the records of read marks that the server does not have. Each mark has its own record, so that no other
 * tab overwrites it.
 */
const markPrefix = "mark/";
/**
 * The time after which such a mark is sent again, in milliseconds. It applies if the server does not set another time.
 */
const markPause = 5000;
/**
 * The time after which an error of the client's store no longer counts, in milliseconds. If the error persists, the
 * client reports it again before that.
 */
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

/** The accounts that have logged in on this browser. The first account is in use. */
export const accounts = {
    /** @returns {string[]} */
    get all() {
        return listIn(accountsKey).filter((name) => typeof name === "string");
    },
    /**
     * The account that this window shows. Another window may show another account.
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

/**
 * One account: its client, its conversations, and the known names and presences of people. Calls `changed` after each
 * change.
 */
export class Account {
    /** @type {SharedClient} */
    client;
    chats = new Chats();
    /** @type {any[]} */
    contacts = [];
    /** @type {Map<number, any>} The presence of the watched accounts. */
    presences = new Map();
    /** @type {Map<string, Map<number, any>>} The users who are typing, by conversation. */
    typing = new Map();
    /** @type {Map<number, string>} The names of accounts. */
    names = new Map();
    /** @type {Map<number, string>} The texts of contact requests, by the uid of the sender. */
    requests = new Map();
    /**
     * The name that the page shows, as the server has it. It may be written differently from the entered name, and it
     * may change.
     */
    nickName = "";
    /** The name under which the stores were opened. The browser finds the stores by this name. */
    storedAs = "";
    /** @type {any} The error that keeps the browser from storing inbox entries; null if there is none. While there
     *   is an error, no more entries arrive. */
    storeError = null;
    changed = () => {};
    /** Called when another tab has logged this account out. */
    left = () => {};
    #store;
    #clientStore;
    #channel;
    /** @type {Map<string, { to: any, upToSeq: number }>} The read marks that the server does not have, by
     *   conversation. */
    #marks = new Map();
    /** @type {Set<string>} The conversations whose marks were dropped but may still be in the store. */
    #dropped = new Set();
    #isMarking = false;
    #isLeft = false;
    /** @type {Set<string> | null} The conversations that entries have changed since the list was requested; null if
     *   no request is in progress. */
    #listing = null;
    /** @type {Set<string>} The conversations whose unread messages the server has to count again. */
    #uncounted = new Set();
    #isCounting = false;
    /** @type {Promise<boolean>} Whether the page's store is free of data from an earlier account with the same name. */
    #emptied = Promise.resolve(true);
    /** @type {any} */
    #markTimer;
    /** @type {any} */
    #storeErrorTimer;

    /**
     * Opens the account's stores. The account logs in later.
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
            // The loaded records may lack entries that another tab handles from now on.
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
     * @param {import("../stores.js").Store} clientStore The client's store.
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
        // A conversation that one tab has marked as read is read in the other tabs, too.
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
     * Whether a message of the outbox belongs to this account, and not to an earlier account with the same name.
     *
     * @param {{ uid: number }} entry An entry from a tab with an earlier version of the SDK has no uid.
     */
    #isOwn({ uid = this.chats.me }) {
        return !this.chats.me || uid === this.chats.me;
    }

    get #outbox() {
        return this.client.outbox.entries().filter((entry) => this.#isOwn(entry));
    }

    /**
     * Handles the message that another tab has logged out. The message may be old: this tab may have been suspended
     * until after the next login.
     */
    async #leftElsewhere() {
        // The message may arrive before the other tab's earlier change to localStorage.
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
     * Logs out, here and in the other tabs, and removes the account's data from this browser. Call `close` afterwards.
     *
     * @param {() => Promise<any>} prepare Sends other requests to the server before the log-out.
     * @returns {Promise<boolean>} Whether the server received the log-out.
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

    /** Removes the account's data from this browser. */
    async forget() {
        await this.client.close();
        await clearStores([this.#store, this.#clientStore]);
    }

    /** The number of messages that were not sent. */
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
     * Marks everything in the conversation as read.
     *
     * @param {import("./model.js").Chat} chat
     */
    markRead(chat) {
        // The server may have lost messages. Its next list shows which messages it still has.
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

    /** Sends the read marks that the server does not have, until it has all of them. */
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
                    // After a close, the client sends the marks after its next login.
                    const wait = retryAfter ?? markPause;
                    if (code !== ErrorCode.closed) this.#markTimer = setTimeout(() => this.#tellMarks(), wait);
                    break;
                }
            }
            // The user may have read more messages in the meantime.
            if (this.#marks.get(key) !== mark) continue;
            this.#marks.delete(key);
            this.#store.write([[markPrefix + key, undefined]]).catch(() => {});
        }
        this.#isMarking = false;
    }

    /**
     * Fetches messages of the newest hole. If there is no hole, fetches the messages before the oldest known message.
     *
     * @param {import("./model.js").Chat} chat
     * @returns {Promise<boolean>} Whether there may be more messages.
     */
    async earlier(chat) {
        const place = this.chats.placeOf(chat);
        const isHole = Boolean(this.chats.hole(chat));
        const { messages, more } = await this.client.history(chat.to, { beforeSeq: place, limit: 50 });
        // If messages were dropped or the hole was filled in the meantime, there would be a gap next to this answer.
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
            // The account may have looked offline before, because it blocked the user or was not a contact.
            const known = this.presences.get(uid);
            if (known && state === "accepted") this.presences.set(uid, { ...known, isOnline });
        }
        this.watch(contacts.filter((contact) => contact.state === "accepted").map((contact) => contact.uid));
        this.changed();
    }

    /**
     * @param {number[]} uids
     * @param {boolean} isAgain Whether to request the presence of watched accounts again, because a block may have
     *   hidden it.
     */
    async watch(uids, isAgain = false) {
        const isAsked = (/** @type {number} */ uid) => uid !== this.chats.me && (isAgain || !this.presences.has(uid));
        const unknown = uids.filter(isAsked).slice(0, 500);
        if (!unknown.length) return;
        try {
            for (const presence of await this.client.watchPresence(unknown)) this.presences.set(presence.uid, presence);
            this.changed();
        } catch {
            // The accounts are shown without presence until the next login.
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
        // If the records of the earlier account could not be removed, the record "me" still names that account. A
        // failed write does not keep the page from showing the account.
        if (await this.#emptied) await this.#write([["me", me]]).catch(() => {});
        this.loadContacts().catch(() => {});
        this.#loadConversations().catch(() => {});
        this.#tellMarks();
        this.watch(this.chats.all.flatMap((chat) => ("uid" in chat.to && chat.to.uid ? [chat.to.uid] : [])));
        this.changed();
    }

    /**
     * Removes the data of the earlier account, because the name now belongs to another account.
     *
     * @param {number} uid The uid of the new account.
     * @returns {Promise<boolean>} Whether the store is empty.
     */
    async #empty(uid) {
        const foreign = this.client.outbox.entries().filter((entry) => (entry.uid ?? uid) !== uid);
        // A message that cannot be removed stays unsent, and is not shown.
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
            // The remaining records show at the next start, and are then removed.
            return false;
        }
    }

    /**
     * Loads the list of conversations. A new device receives only later entries, so the list has to show the earlier
     * conversations.
     */
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
            // The server may have counted a conversation before a mark or a recall changed it.
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
            // The server keeps no history, so it has no messages of the other conversations either.
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
     * Requests the numbers of unread messages again for the conversations in which only the server can count them.
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
            // The request begins at the place directly before this conversation, so this conversation is the first
            // result.
            const { uid = 0, groupId = 0 } = /** @type {any} */ (this.chats.get(key)?.to);
            const before = groupId === 1 ? { uid: maxUid } : groupId ? { groupId: groupId - 1 } : { uid: uid - 1 };
            try {
                const after = uid === 1 ? null : before;
                const { conversations } = await this.client.conversations({ after, limit: 1 });
                await this.#listed(conversations.filter(({ conversation }) => keyOf(conversation) === key));
            } catch {
                // The whole list is fetched after the next login.
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
        // An entry is acknowledged only after it is stored.
        await this.#keep(this.chats.entry(event));
        const key = this.chats.recounted(event);
        if (key && this.#listing) this.#listing.add(key);
        else if (key) this.#count([key]);
        // The list may have arrived before the reset.
        if (event.type === "inboxReset") this.#loadConversations().catch(() => {});
    }

    /**
     * Drops the read marks. The server may have lost messages that were read, and other messages may get their seqs.
     */
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
     * Fetches the unknown names of people.
     *
     * @param {number[]} uids
     */
    async #lookUp(uids) {
        for (const uid of uids) {
            if (uid === this.chats.me || this.names.has(uid)) continue;
            try {
                this.#name(uid, (await this.client.account({ uid })).nickName);
            } catch {
                // The page shows the number of the account.
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
     * Writes to the store, and records whether the write succeeds.
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

    /** @param {any} error Null if the store works again. */
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
