// Hermes
// SPDX-License-Identifier: Apache-2.0

/** The number of messages that are kept of each conversation. */
const maxMessages = 300;

/**
 * A message as the page shows it.
 *
 * @typedef {object} Line
 * @property {string} id The message's id; empty until the server has it.
 * @property {string} clientId
 * @property {number} seq The seq within the conversation; 0 until the server has it.
 * @property {number} from The author's uid; 0 for a notice of the page's own.
 * @property {string} name The author's name.
 * @property {boolean} own
 * @property {any} content
 * @property {number} time In milliseconds since 1970.
 * @property {boolean} recalled
 * @property {"" | "queued" | "sending" | "sent" | "failed"} status Of the user's own messages.
 * @property {string} note The key of a notice's text, see i18n.js; empty for messages.
 */

/**
 * @typedef {object} Chat
 * @property {string} key "uid 7" or "group 9".
 * @property {{ uid: number } | { groupId: number }} to
 * @property {string} title
 * @property {Line[]} lines
 * @property {number} markedUpTo The user has read up to this seq.
 * @property {number} readUpTo The other user has read up to this seq.
 * @property {number} lastSeq
 * @property {boolean} isOver The group was dissolved, or the user is no longer in it.
 */

/** @param {any} conversation */
export const keyOf = (conversation) =>
    conversation?.groupId ? `group ${conversation.groupId}` : `uid ${conversation?.uid ?? 0}`;

/**
 * The conversations of one account, from the events of the SDK. Does no I/O: its owner stores the chats that a change
 * returns.
 */
export class Chats {
    /** @type {Map<string, Chat>} */
    #chats = new Map();
    /** The user's uid. */
    me = 0;

    /** @param {Iterable<Chat>} chats Those of an earlier run. */
    constructor(chats = []) {
        for (const chat of chats) this.#chats.set(chat.key, chat);
    }

    /** All conversations, the one with the newest message first. */
    get all() {
        const time = (/** @type {Chat} */ chat) => chat.lines.at(-1)?.time ?? 0;
        return [...this.#chats.values()].sort((a, b) => time(b) - time(a));
    }

    /** @param {string} key */
    get(key) {
        return this.#chats.get(key);
    }

    /**
     * The conversation with an account or a group, which begins if there is none.
     *
     * @param {any} conversation
     * @param {string} title
     * @returns {Chat}
     */
    open(conversation, title = "") {
        const key = keyOf(conversation);
        const known = this.#chats.get(key);
        if (known) {
            known.title ||= title;
            return known;
        }
        const to = conversation.groupId ? { groupId: conversation.groupId } : { uid: conversation.uid };
        /** @type {Chat} */
        const chat = { key, to, title, lines: [], markedUpTo: 0, readUpTo: 0, lastSeq: 0, isOver: false };
        this.#chats.set(key, chat);
        return chat;
    }

    /**
     * The messages that the user has not read.
     *
     * @param {Chat} chat
     */
    unread(chat) {
        return chat.lines.filter((line) => line.seq > chat.markedUpTo && !line.own && !line.recalled).length;
    }

    /**
     * An entry of the inbox arrived.
     *
     * @param {any} event
     * @returns {Chat[]} The conversations that changed.
     */
    entry(event) {
        const { type } = event;
        if (type === "message") return [this.message(event.message)];
        if (type === "readMark") {
            const { conversation, uid, upToSeq } = event.readMark;
            const chat = this.#chats.get(keyOf(conversation));
            if (!chat) return [];
            if (uid === this.me) this.marked(chat, upToSeq);
            else chat.readUpTo = Math.max(chat.readUpTo, upToSeq);
            return [chat];
        }
        if (type === "recalled") {
            const chat = this.#chats.get(keyOf(event.recalled.conversation));
            const line = chat?.lines.find((one) => one.id === event.recalled.messageId);
            if (!chat || !line) return [];
            line.recalled = true;
            line.content = {};
            return [chat];
        }
        if (type === "push") return [this.#push(event)];
        return type === "group" ? [this.#group(event)] : [];
    }

    /**
     * A message of the inbox or of the history.
     *
     * @param {any} message
     * @returns {Chat}
     */
    message(message) {
        const own = message.own || message.fromUid === this.me;
        const title = message.conversation.uid && !own ? message.fromNickName : "";
        const chat = this.open(message.conversation, title);
        this.#put(chat, {
            id: message.id,
            clientId: message.clientId,
            seq: message.conversationSeq,
            from: message.fromUid,
            name: message.fromNickName,
            own,
            content: message.content ?? {},
            time: message.serverTimeMs,
            recalled: message.recalled,
            status: own ? "sent" : "",
            note: "",
        });
        return chat;
    }

    /**
     * The outbox tells the progress of one of the user's messages.
     *
     * @param {any} entry
     * @returns {Chat}
     */
    outbox({ clientId, conversation, content, queuedAt, status, receipt }) {
        const chat = this.open(conversation);
        if (status === "discarded") {
            chat.lines = chat.lines.filter((line) => line.clientId !== clientId || line.seq > 0);
            return chat;
        }
        this.#put(chat, {
            id: receipt?.messageId ?? "",
            clientId,
            seq: receipt?.conversationSeq ?? 0,
            from: this.me,
            name: "",
            own: true,
            content,
            time: receipt?.serverTimeMs || queuedAt,
            recalled: false,
            status,
            note: "",
        });
        return chat;
    }

    /**
     * The page was opened: what was unsent and is no longer in the outbox was sent while no page noted it.
     *
     * @param {any[]} entries The outbox's.
     */
    reopened(entries) {
        const unsent = new Set(entries.map((entry) => entry.clientId));
        for (const chat of this.#chats.values()) {
            for (const line of chat.lines) {
                if (line.own && !line.seq && !unsent.has(line.clientId)) line.status = "sent";
            }
        }
        for (const entry of entries) this.outbox(entry);
    }

    /**
     * The user has read up to this seq.
     *
     * @param {Chat} chat
     * @param {number} upToSeq
     */
    marked(chat, upToSeq) {
        chat.markedUpTo = Math.max(chat.markedUpTo, upToSeq);
    }

    /**
     * A back end's push: a line of the notices, a conversation with nobody.
     *
     * @param {any} event
     */
    #push({ push, seq, time }) {
        const chat = this.open({ uid: 0 });
        chat.isOver = true;
        const content = { text: [push.title, push.body].filter(Boolean).join("\n") };
        const line = { id: push.id, clientId: "", seq, from: 0, name: push.title, own: false, content, time };
        if (push.collapseKey) chat.lines = chat.lines.filter((old) => old.clientId !== push.collapseKey);
        this.#put(chat, { ...line, clientId: push.collapseKey, recalled: false, status: "", note: "" });
        return chat;
    }

    /** @param {any} event */
    #group({ group: { kind, group, uids }, seq, time }) {
        const chat = this.open({ groupId: group.id }, group.name);
        chat.title = group.name || chat.title;
        if (kind === "dissolved" || (kind === "members_removed" && uids.includes(this.me))) chat.isOver = true;
        if (kind === "created" || (kind === "members_added" && uids.includes(this.me))) chat.isOver = false;
        const id = `group ${seq}`;
        const note = `group_${kind}`;
        const line = { id, clientId: "", seq: 0, from: 0, name: group.name, own: false, content: {}, time };
        this.#put(chat, { ...line, recalled: false, status: "", note });
        return chat;
    }

    /**
     * @param {Chat} chat
     * @param {Line} line
     */
    #put(chat, line) {
        const known = chat.lines.find(
            (one) =>
                (line.id && one.id === line.id && one.own === line.own) ||
                (line.clientId && one.clientId === line.clientId && one.own === line.own),
        );
        if (known) {
            // What the server has does not become unsent again.
            if (known.seq && !line.seq) return;
            Object.assign(known, line, { recalled: known.recalled || line.recalled });
            if (known.recalled) known.content = {};
        } else {
            chat.lines.push(line);
        }
        chat.lastSeq = Math.max(chat.lastSeq, line.seq);
        // Unsent messages come last; those with a seq in its order; notices by their time.
        chat.lines.sort((a, b) => (a.seq && b.seq ? a.seq - b.seq : orderOf(a) - orderOf(b) || a.time - b.time));
        if (chat.lines.length > maxMessages) chat.lines.splice(0, chat.lines.length - maxMessages);
    }
}

/** @param {Line} line */
const orderOf = (line) => (line.own && !line.seq && line.status !== "sent" ? 1 : 0);
