// Hermes
// SPDX-License-Identifier: Apache-2.0

/** What is kept of each conversation: messages, and characters in them. */
const maxMessages = 300;
const maxSize = 1_000_000;
/** The most characters of all conversations together; above it those that were quiet longest keep one message. */
const maxTotalSize = 4_000_000;
/** The messages of the server's history that are held while a conversation is looked at, besides those above. */
const maxEarlier = 1000;
/** The people whom a notice names. */
const maxNamed = 5;
/** What a message takes besides its content, in characters. */
const overhead = 200;

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
 * @property {{ code: number, message: string } | null} [error] Why it failed.
 * @property {string} note The key of a notice's text, see i18n.js; empty for messages.
 * @property {{ uids: number[], more: number, by: number }} [people] Whom a notice is about: some of them, how many more
 *   there are, and who made the change.
 * @property {string} key Its name within the conversation, which never changes.
 * @property {number} revision Another number after each change.
 * @property {number} size In characters.
 *
 * @typedef {Omit<Line, "key" | "revision" | "size">} NewLine
 */

/**
 * @typedef {object} Chat
 * @property {string} key "uid 7" or "group 9".
 * @property {{ uid: number } | { groupId: number }} to
 * @property {string} title
 * @property {Line[]} lines The last messages, which are stored.
 * @property {Line[]} earlier Those before, from the server's history; not stored.
 * @property {Set<number>} asked The seqs directly before which the server has nothing that is missing here, as it said
 *   since the conversation was opened; not stored.
 * @property {number} size The characters of `lines`.
 * @property {number} markedUpTo The user has read up to this seq.
 * @property {number} readUpTo The other user has read up to this seq.
 * @property {number} lastSeq
 * @property {number} lastAt When the last message was sent, as the server's list says.
 * @property {{ upTo: number, unread: number }} counted What the server counted as unread, and up to which message.
 * @property {number} [resetAt] The server may have lost messages: when the last one that was here then was sent. The
 *   server's next list decides which messages it has.
 * @property {boolean} isOver The group was dissolved, or the user is no longer in it.
 */

/**
 * Where messages are missing: behind the seq `after` and before the seq `before`.
 *
 * @typedef {{ after: number, before: number }} Hole
 */

/** @param {any} conversation */
export const keyOf = (conversation) =>
    conversation?.groupId ? `group ${conversation.groupId}` : `uid ${conversation?.uid ?? 0}`;

const empty = () => ({ lines: [], earlier: [], asked: new Set(), size: 0 });
const unseen = { markedUpTo: 0, readUpTo: 0, lastAt: 0, counted: { upTo: 0, unread: 0 } };
const chatPrefix = "chat/";
const linePrefix = "line/";

/**
 * The conversations of one account, from the events of the SDK. Does no I/O: its owner stores what `takeRecords` gives
 * for the chats that a change returns. A message is a record of its own, so that a new one costs the same however many
 * there are.
 */
export class Chats {
    /** @type {Map<string, Chat>} */
    #chats = new Map();
    /** @type {Map<string, Line | undefined>} The records of messages that changed; undefined: no longer kept. */
    #changes = new Map();
    #size = 0;
    #revision = 0;
    /** The user's uid. */
    me = 0;

    /** @param {Iterable<[string, any]>} records Those of an earlier run. */
    constructor(records = []) {
        const all = [...records];
        for (const [key, chat] of all) {
            if (!key.startsWith(chatPrefix)) continue;
            this.#chats.set(chat.key, { ...unseen, ...chat, ...empty() });
            // The messages once were parts of the conversation's record.
            for (const line of chat.lines ?? []) this.#add(this.#chats.get(chat.key), line);
        }
        for (const [key, line] of all) {
            if (!key.startsWith(linePrefix)) continue;
            const chat = this.#chats.get(key.split("/")[1]);
            const known = chat && this.#find(chat, line);
            if (chat && !known) this.#add(chat, line, false);
            // Two tabs may have named one message differently.
            else if (!known || recordKey(chat, known) !== key) this.#changes.set(key, undefined);
        }
        for (const chat of this.#chats.values()) chat.lines.sort(inOrder);
        this.#shed();
    }

    /**
     * The records to store: these conversations, and all messages that changed since the last call.
     *
     * @param {Chat[]} chats
     * @returns {[string, any][]}
     */
    takeRecords(chats) {
        /** @type {[string, any][]} */
        const records = chats.map(({ lines, earlier, asked, size, ...chat }) => [chatPrefix + chat.key, chat]);
        records.push(...this.#changes);
        this.#changes.clear();
        return records;
    }

    /**
     * These records could not be stored: the next call gives them again.
     *
     * @param {[string, any][]} records
     */
    giveBack(records) {
        for (const [key, line] of records) {
            if (key.startsWith(linePrefix) && !this.#changes.has(key)) this.#changes.set(key, line);
        }
    }

    /** All conversations, the one with the newest message first. */
    get all() {
        const time = (/** @type {Chat} */ chat) => Math.max(chat.lines.at(-1)?.time ?? 0, chat.lastAt);
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
        const chat = { key, to, title, ...empty(), ...unseen, lastSeq: 0, isOver: false };
        this.#chats.set(key, chat);
        return chat;
    }

    /**
     * How many messages the user has not read.
     *
     * @param {Chat} chat
     */
    unread(chat) {
        const { upTo, unread } = chat.counted;
        const from = this.#isHere(chat) ? chat.markedUpTo : upTo;
        const here = chat.lines.filter((line) => line.seq > from && !line.own && !line.recalled).length;
        return from === upTo ? here + Math.min(unread, upTo - chat.markedUpTo) : here;
    }

    /**
     * Whether nothing that the server counted is unread, or all of it is here: then the messages tell best what is.
     *
     * @param {Chat} chat
     */
    #isHere({ lines, markedUpTo, counted: { upTo } }) {
        if (upTo <= markedUpTo) return true;
        const counted = lines.filter((line) => line.seq > markedUpTo && line.seq <= upTo);
        return new Set(counted.map((line) => line.seq)).size === upTo - markedUpTo;
    }

    /**
     * A part of the server's list of conversations. Messages that it has counted may arrive later.
     *
     * @param {any[]} summaries
     * @returns {Chat[]} The conversations that changed.
     */
    listed(summaries) {
        return summaries.flatMap(({ conversation, name, lastSeq, lastMessageAtMs, readSeq, unread }) => {
            const isNew = !this.#chats.has(keyOf(conversation));
            const chat = this.open(conversation, name);
            const places = () => [chat.lastSeq, chat.lastAt, chat.markedUpTo, chat.resetAt];
            const state = () => [chat.title, ...places(), ...Object.values(chat.counted)];
            const before = state();
            if (chat.resetAt !== undefined) this.#restored(chat, lastSeq, readSeq);
            chat.title = name || chat.title;
            chat.lastSeq = Math.max(chat.lastSeq, lastSeq);
            chat.lastAt = lastMessageAtMs;
            chat.counted = { upTo: lastSeq, unread };
            this.marked(chat, readSeq);
            return isNew || state().some((value, index) => value !== before[index]) ? [chat] : [];
        });
    }

    /**
     * The server's list is complete: a server that may have lost messages has none of a conversation that is not in it.
     *
     * @param {any[]} summaries All of the list.
     * @returns {Chat[]} The conversations that changed.
     */
    unlisted(summaries) {
        const keys = new Set(summaries.map(({ conversation }) => keyOf(conversation)));
        const lost = [...this.#chats.values()].filter((chat) => chat.resetAt !== undefined && !keys.has(chat.key));
        for (const chat of lost) this.#restored(chat, 0, 0);
        return lost;
    }

    /**
     * The server may have lost messages: until its next list, nobody knows which.
     *
     * @returns {Chat[]} The conversations that changed.
     */
    #reset() {
        const all = [...this.#chats.values()];
        for (const chat of all) {
            const times = [...chat.earlier, ...chat.lines].filter((line) => line.seq > 0).map((line) => line.time);
            chat.resetAt = Math.max(0, ...times);
        }
        return all;
    }

    /**
     * Goes on where a server does that may have lost messages. Those that it lost stay here without a seq, because others
     * get theirs.
     *
     * @param {Chat} chat
     * @param {number} lastSeq
     * @param {number} readSeq
     */
    #restored(chat, lastSeq, readSeq) {
        const { resetAt = 0 } = chat;
        delete chat.resetAt;
        for (const line of [...chat.earlier, ...chat.lines]) {
            if (line.seq > lastSeq && line.time <= resetAt) this.#change(chat, line, { seq: 0 });
        }
        for (const lines of [chat.earlier, chat.lines]) lines.sort(inOrder);
        chat.asked.clear();
        chat.lastSeq = Math.max(lastSeq, ...seqsOf(chat));
        chat.markedUpTo = readSeq;
        chat.readUpTo = Math.min(chat.readUpTo, chat.lastSeq);
        chat.counted = { upTo: lastSeq, unread: 0 };
    }

    /**
     * The key of the conversation in which an entry changes what the server has counted; empty if it changes nothing.
     *
     * @param {any} event
     */
    recounted({ type, readMark, recalled }) {
        const isIt = type === "recalled" || (type === "readMark" && readMark.uid === this.me);
        return isIt ? keyOf((readMark ?? recalled).conversation) : "";
    }

    /**
     * Whether only the server can tell what is unread, because messages that it counted are not here.
     *
     * @param {string} key
     */
    isCounted(key) {
        const chat = this.#chats.get(key);
        return Boolean(chat && !this.#isHere(chat));
    }

    /**
     * Whether messages are missing here that the user opens the conversation for.
     *
     * @param {Chat} chat
     */
    isBare(chat) {
        if (isNotices(chat)) return false;
        const count = chat.lines.filter((line) => line.seq > 0).length;
        return count < Math.min(chat.lastSeq, 2) || !this.#isHere(chat) || Boolean(this.hole(chat));
    }

    /**
     * Where messages are missing between those that are here; the newest hole first. What a device misses for longer than
     * the server keeps it never arrives. Those behind the last one that is here may be on their way.
     *
     * @param {Chat} chat
     * @returns {Hole[]}
     */
    holes(chat) {
        const seqs = isNotices(chat) ? [] : seqsOf(chat).sort((a, b) => b - a);
        return seqs.slice(1).flatMap((after, index) => {
            const before = seqs[index];
            return before - after > 1 ? [{ after, before }] : [];
        });
    }

    /**
     * The newest hole that the server may fill.
     *
     * @param {Chat} chat
     */
    hole(chat) {
        return this.holes(chat).find((hole) => this.mayFill(chat, hole));
    }

    /**
     * Whether the server may have the messages of a hole.
     *
     * @param {Chat} chat
     * @param {{ before: number }} hole
     */
    mayFill(chat, { before }) {
        return !chat.asked.has(before);
    }

    /**
     * The seq before which the next messages of the history are: that behind the newest hole, or else the oldest. 0: none
     * is here, so the newest are next.
     *
     * @param {Chat} chat
     */
    placeOf(chat) {
        const seqs = seqsOf(chat);
        return this.hole(chat)?.before ?? (seqs.length ? Math.min(...seqs) : 0);
    }

    /**
     * The conversation is looked at no more: what was fetched of the history is fetched again.
     *
     * @param {Chat} chat
     */
    left(chat) {
        chat.earlier = [];
        chat.asked.clear();
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
            const isIt = (/** @type {Line} */ line) => line.id === event.recalled.messageId;
            const line = chat && (chat.lines.find(isIt) ?? chat.earlier.find(isIt));
            if (!chat || !line) return [];
            this.#change(chat, line, { recalled: true });
            return [chat];
        }
        if (type === "inboxReset") return this.#reset();
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
        const chat = this.#chatOf(message);
        this.#put(chat, this.#lineOf(message));
        return chat;
    }

    /**
     * Messages of the history: older than all that are known, or those of a hole.
     *
     * @param {Chat} chat
     * @param {any[]} messages
     * @param {number} before The seq before which they were asked for; 0: the newest.
     * @param {boolean} isMore Whether the server has older ones.
     */
    history(chat, messages, before = 0, isMore = true) {
        const isFull = () => chat.earlier.length || chat.lines.length >= maxMessages || chat.size >= maxSize / 2;
        // The newest first: they are kept if there is room.
        for (const message of [...messages].reverse()) {
            const line = this.#lineOf(message);
            const isBetween = chat.lines.some((other) => other.seq > 0 && other.seq < line.seq);
            if (isBetween || !isFull()) {
                this.#put(chat, line);
            } else if (!this.#find(chat, line)) {
                this.#displace(chat, line.seq);
                chat.earlier.unshift(this.#made(line));
            }
        }
        chat.earlier.sort(inOrder);
        // Between two messages of an answer the server has none.
        const seqs = [...messages.map((message) => message.conversationSeq), before];
        const here = new Set(seqsOf(chat));
        seqs.forEach((seq, index) => {
            // A message that found no room is asked for again.
            const isNext = index > 0 ? here.has(seqs[index - 1]) : !isMore || !messages.length;
            if (isNext) chat.asked.add(seq);
        });
    }

    /**
     * Whether the server has nothing to add to the messages that are here: the first one is among them and none behind
     * it is missing, or there are none.
     *
     * @param {Chat} chat
     */
    isWhole(chat) {
        // Notices are kept here alone.
        if (isNotices(chat) || !chat.lastSeq) return true;
        return seqsOf(chat).includes(1) && !this.hole(chat);
    }

    /**
     * Whether no more messages of the history are taken.
     *
     * @param {Chat} chat
     */
    isFull(chat) {
        return chat.earlier.length > maxEarlier - 100;
    }

    /** @param {any} message */
    #chatOf(message) {
        const own = message.own || message.fromUid === this.me;
        const title = message.conversation.uid && !own ? message.fromNickName : "";
        return this.open(message.conversation, title);
    }

    /**
     * @param {any} message
     * @returns {NewLine}
     */
    #lineOf(message) {
        const own = message.own || message.fromUid === this.me;
        return {
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
        };
    }

    /**
     * The outbox tells the progress of one of the user's messages.
     *
     * @param {any} entry
     * @returns {Chat}
     */
    outbox({ clientId, conversation, content, queuedAt, status, receipt, error = null }) {
        const chat = this.open(conversation);
        if (status === "discarded") {
            this.#remove(chat, (line) => line.own && line.clientId === clientId && !line.seq);
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
            error,
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
                if (line.own && !line.seq && line.status !== "sent" && !unsent.has(line.clientId)) {
                    this.#change(chat, line, { status: "sent" });
                }
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
        const content = contentOf(push);
        const line = { id: push.id, clientId: "", seq, from: 0, name: push.title, own: false, content, time };
        if (push.collapseKey) this.#remove(chat, (old) => old.clientId === push.collapseKey);
        this.#put(chat, { ...line, clientId: push.collapseKey, recalled: false, status: "", note: "" });
        return chat;
    }

    /** @param {any} event */
    #group({ group: { kind, group, uids, byUid }, seq, time }) {
        const chat = this.open({ groupId: group.id }, group.name);
        chat.title = group.name || chat.title;
        if (kind === "dissolved" || (kind === "members_removed" && uids.includes(this.me))) chat.isOver = true;
        if (kind === "created" || (kind === "members_added" && uids.includes(this.me))) chat.isOver = false;
        const id = `group ${seq}`;
        const note = `group_${kind}`;
        const line = { id, clientId: "", seq: 0, from: 0, name: group.name, own: false, content: {}, time };
        const people = { uids: uids.slice(0, maxNamed), more: Math.max(0, uids.length - maxNamed), by: byUid ?? 0 };
        this.#put(chat, { ...line, recalled: false, status: "", note, people });
        return chat;
    }

    /**
     * @param {Chat} chat
     * @param {NewLine} line
     */
    #put(chat, line) {
        const known = this.#find(chat, line);
        if (known) {
            // What the server has does not become unsent again.
            if (known.seq && !line.seq) return;
            this.#displace(chat, line.seq, known);
            this.#change(chat, known, { ...line, recalled: known.recalled || line.recalled });
        } else {
            this.#displace(chat, line.seq);
            this.#add(chat, line);
        }
        chat.lastSeq = Math.max(chat.lastSeq, line.seq);
        chat.lines.sort(inOrder);
        this.#shed(chat);
    }

    /**
     * A message comes with a seq that another one has here: the server has lost the other one.
     *
     * @param {Chat} chat
     * @param {number} seq
     * @param {Line} [known] The message, if it is here.
     */
    #displace(chat, seq, known) {
        const isLost = (/** @type {Line} */ one) => seq > 0 && one.seq === seq && one !== known;
        for (const lines of [chat.earlier, chat.lines]) {
            for (const line of lines.filter(isLost)) this.#change(chat, line, { seq: 0 });
        }
    }

    /**
     * @param {Chat} chat
     * @param {NewLine} line
     */
    #find(chat, line) {
        const isSame = (/** @type {Line} */ one) =>
            one.own === line.own &&
            ((line.id && one.id === line.id) || (line.clientId && one.clientId === line.clientId));
        return chat.lines.find(isSame) ?? chat.earlier.find(isSame);
    }

    /**
     * @param {NewLine} line
     * @returns {Line}
     */
    #made(line) {
        const key = line.own && line.clientId ? `own ${line.clientId}` : line.id;
        return { key, ...line, revision: ++this.#revision, size: sizeOf(line) };
    }

    /**
     * @param {any} chat
     * @param {NewLine} line
     * @param {boolean} isNew Whether it is to be stored.
     */
    #add(chat, line, isNew = true) {
        const made = this.#made(line);
        chat.lines.push(made);
        chat.size += made.size;
        this.#size += made.size;
        if (isNew) this.#changes.set(recordKey(chat, made), made);
    }

    /**
     * @param {Chat} chat
     * @param {Line} line
     * @param {Partial<NewLine>} change
     */
    #change(chat, line, change) {
        Object.assign(line, change);
        if (line.recalled) line.content = {};
        line.revision = ++this.#revision;
        // Those of the history are not stored.
        if (!chat.lines.includes(line)) return;
        const growth = sizeOf(line) - line.size;
        line.size += growth;
        chat.size += growth;
        this.#size += growth;
        this.#changes.set(recordKey(chat, line), line);
    }

    /**
     * @param {Chat} chat
     * @param {(line: Line) => unknown} fits
     */
    #remove(chat, fits) {
        for (const line of chat.lines.filter(fits)) this.#forget(chat, line);
        chat.lines = chat.lines.filter((line) => !fits(line));
    }

    /**
     * @param {Chat} chat
     * @param {Line} line
     */
    #forget(chat, line) {
        chat.size -= line.size;
        this.#size -= line.size;
        this.#changes.set(recordKey(chat, line), undefined);
    }

    /**
     * Drops what is too much: the oldest messages of a conversation, and of those that were quiet longest.
     *
     * @param {Iterable<Chat> | Chat} chats
     */
    #shed(chats = this.#chats.values()) {
        for (const chat of "lines" in chats ? [chats] : chats) {
            let count = Math.max(0, chat.lines.length - maxMessages);
            for (let size = chat.size - sum(chat.lines.slice(0, count)); size > maxSize; count += 1) {
                if (count === chat.lines.length - 1) break;
                size -= chat.lines[count].size;
            }
            this.#cut(chat, count);
        }
        while (this.#size > maxTotalSize) {
            const long = this.all.filter((chat) => chat.lines.length > 1);
            const quiet = long.at(-1);
            if (!quiet) return;
            this.#cut(quiet, quiet.lines.length - 1);
        }
    }

    /**
     * @param {Chat} chat
     * @param {number} count
     */
    #cut(chat, count) {
        if (!count) return;
        const gone = chat.lines.splice(0, count);
        for (const line of gone) this.#forget(chat, line);
        // While somebody looks at what came before, nothing is missing in between.
        if (chat.earlier.length) chat.earlier.push(...gone);
        if (chat.earlier.length > maxEarlier) chat.earlier = [];
    }
}

/**
 * What a push shows: its words, and the kind and the size of its typed message. Without either it shows its data.
 *
 * @param {any} push
 */
function contentOf({ title, body, messageType, messageBytes, dataJson }) {
    const text = [title, body].filter(Boolean).join("\n");
    const padding = /=*$/.exec(messageBytes ?? "")?.[0].length ?? 0;
    const bytes = Math.floor(((messageBytes?.length ?? 0) * 3) / 4) - padding;
    const typed = messageType || bytes ? { typed: { type: messageType, bytes } } : {};
    if (text) return { text, ...typed };
    return typed.typed ? typed : { data: dataJson ?? "" };
}

/** @param {Chat} chat */
const isNotices = ({ to }) => "uid" in to && !to.uid;

/**
 * The seqs of the messages that are here.
 *
 * @param {Chat} chat
 */
const seqsOf = ({ earlier, lines }) => [...earlier, ...lines].map((line) => line.seq).filter((seq) => seq > 0);

/** @param {Chat} chat @param {Line} line */
const recordKey = (chat, line) => `${linePrefix}${chat.key}/${line.key}`;

/** @param {NewLine} line */
function sizeOf({ content, name }) {
    const { text, attributes } = content;
    if (typeof text !== "string") return overhead + name.length + JSON.stringify(content).length;
    const besides = Object.keys(attributes ?? {}).length ? JSON.stringify(attributes).length : 0;
    return overhead + name.length + text.length + besides;
}

/** @param {Line[]} lines */
const sum = (lines) => lines.reduce((total, line) => total + line.size, 0);

/** @param {Line} line */
const orderOf = (line) => (line.own && !line.seq && line.status !== "sent" ? 1 : 0);

/**
 * Unsent messages come last; those with a seq in its order; notices by their time.
 *
 * @param {Line} a
 * @param {Line} b
 */
const inOrder = (a, b) => (a.seq && b.seq ? a.seq - b.seq : orderOf(a) - orderOf(b) || a.time - b.time);
