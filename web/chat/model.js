// Hermes
// SPDX-License-Identifier: Apache-2.0

/** The largest number of messages that are kept for each conversation, and the largest number of characters in them. */
const maxMessages = 300;
const maxSize = 1_000_000;
/**
 * The largest number of characters of all conversations together. Above it, the conversations without activity for the
 * longest time keep only one message.
 */
const maxTotalSize = 4_000_000;
/** The largest number of further messages from the server's history that are kept while a conversation is open. */
const maxEarlier = 1000;
/** The largest number of people that a notice names. */
const maxNamed = 5;
/** The size of a message without its content, in characters. */
const overhead = 200;

/**
 * A message or notice as the page shows it.
 *
 * @typedef {object} Line
 * @property {string} id The message's id; empty until the server has the message.
 * @property {string} clientId
 * @property {number} seq The seq within the conversation; 0 until the server has the message.
 * @property {number} from The author's uid; 0 for a notice.
 * @property {string} name The author's name.
 * @property {boolean} own
 * @property {any} content
 * @property {number} time In milliseconds since 1970.
 * @property {boolean} recalled
 * @property {"" | "queued" | "sending" | "sent" | "failed"} status The progress of a message that the user sends; empty
 *   for other messages.
 * @property {{ code: number, message: string } | null} [error] The reason why sending failed.
 * @property {string} note The key of a notice's text in i18n.js; empty for messages.
 * @property {{ uids: number[], more: number, by: number }} [people] The people in a notice: some of them, the number of
 *   further people, and the person who made the change.
 * @property {string} key The key within the conversation. It never changes.
 * @property {number} revision A number that changes with each change of the line.
 * @property {number} size The size in characters.
 *
 * @typedef {Omit<Line, "key" | "revision" | "size">} NewLine
 */

/**
 * @typedef {object} Chat
 * @property {string} key "uid 7" or "group 9".
 * @property {{ uid: number } | { groupId: number }} to
 * @property {string} title
 * @property {Line[]} lines The last messages. They are stored.
 * @property {Line[]} earlier Earlier messages from the server's history. They are not stored.
 * @property {Set<number>} asked Seqs of messages. Since the conversation was opened, the server's answers have shown
 *   that the server has no messages directly before them. They are not stored.
 * @property {number} size The size of `lines` in characters.
 * @property {number} markedUpTo The user has read up to this seq.
 * @property {number} readUpTo The other user has read up to this seq.
 * @property {number} lastSeq
 * @property {number} lastAt The time of the last message, from the server's list.
 * @property {{ upTo: number, unread: number }} counted The number of unread messages by the server's count, and the seq
 *   up to which the server counted.
 * @property {number} [resetAt] Set if the server may have lost messages: the time of the last message that the page had
 *   at that moment. The server's next list shows which messages it still has.
 * @property {boolean} isOver The group was dissolved, or the user is no longer in it.
 */

/**
 * A place where messages are missing: after the seq `after` and before the seq `before`.
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
 * The conversations of one account, from the events of the SDK. The class does no I/O. Each change returns the changed
 * chats, and the owner stores the records that `takeRecords` returns for them. Each message has its own record, so that
 * the cost of a new message does not depend on the number of messages.
 */
export class Chats {
    /** @type {Map<string, Chat>} */
    #chats = new Map();
    /** @type {Map<string, Line | undefined>} The records of messages that have changed; undefined for a removed
     *   record. */
    #changes = new Map();
    #size = 0;
    #revision = 0;
    /** The user's uid. */
    me = 0;

    /** @param {Iterable<[string, any]>} records The records of an earlier run. */
    constructor(records = []) {
        const all = [...records];
        for (const [key, chat] of all) {
            if (!key.startsWith(chatPrefix)) continue;
            this.#chats.set(chat.key, { ...unseen, ...chat, ...empty() });
            // In earlier versions, the messages were parts of the conversation's record.
            for (const line of chat.lines ?? []) this.#add(this.#chats.get(chat.key), line);
        }
        for (const [key, line] of all) {
            if (!key.startsWith(linePrefix)) continue;
            const chat = this.#chats.get(key.split("/")[1]);
            const known = chat && this.#find(chat, line);
            if (chat && !known) this.#add(chat, line, false);
            // Two tabs may have stored the same message with different keys.
            else if (!known || recordKey(chat, known) !== key) this.#changes.set(key, undefined);
        }
        for (const chat of this.#chats.values()) chat.lines.sort(inOrder);
        this.#shed();
    }

    /**
     * Returns the records to store: these conversations, and all messages that have changed since the last call.
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
     * Takes records back that could not be stored. The next call of `takeRecords` returns them again.
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
     * Returns the conversation with an account or a group. Creates it if there is none.
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
     * The number of messages that the user has not read.
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
     * Whether the page can count the unread messages without the server. It can if the user has read all messages that
     * the server counted, or if the page has all unread messages among them.
     *
     * @param {Chat} chat
     */
    #isHere({ lines, markedUpTo, counted: { upTo } }) {
        if (upTo <= markedUpTo) return true;
        const counted = lines.filter((line) => line.seq > markedUpTo && line.seq <= upTo);
        return new Set(counted.map((line) => line.seq)).size === upTo - markedUpTo;
    }

    /**
     * Applies a part of the server's list of conversations. Messages that the server has counted may arrive later.
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
     * Applies the complete list of the server. After a possible loss of messages, a conversation that is not in the
     * list has no messages on the server.
     *
     * @param {any[]} summaries The complete list.
     * @returns {Chat[]} The conversations that changed.
     */
    unlisted(summaries) {
        const keys = new Set(summaries.map(({ conversation }) => keyOf(conversation)));
        const lost = [...this.#chats.values()].filter((chat) => chat.resetAt !== undefined && !keys.has(chat.key));
        for (const chat of lost) this.#restored(chat, 0, 0);
        return lost;
    }

    /**
     * Prepares for a possible loss of messages on the server. Its next list shows which messages it still has.
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
     * Adopts the state of a conversation on a server that may have lost messages. Lost messages stay on the page
     * without a seq, because other messages get their seqs.
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
     * The key of the conversation whose unread count on the server an entry changes; empty if the entry changes no
     * count.
     *
     * @param {any} event
     */
    recounted({ type, readMark, recalled }) {
        const isIt = type === "recalled" || (type === "readMark" && readMark.uid === this.me);
        return isIt ? keyOf((readMark ?? recalled).conversation) : "";
    }

    /**
     * Whether only the server can count the unread messages, because the page does not have all of them.
     *
     * @param {string} key
     */
    isCounted(key) {
        const chat = this.#chats.get(key);
        return Boolean(chat && !this.#isHere(chat));
    }

    /**
     * Whether messages are missing that the user wants to see when opening the conversation.
     *
     * @param {Chat} chat
     */
    isBare(chat) {
        if (isNotices(chat)) return false;
        const count = chat.lines.filter((line) => line.seq > 0).length;
        return count < Math.min(chat.lastSeq, 2) || !this.#isHere(chat) || Boolean(this.hole(chat));
    }

    /**
     * The holes between the messages that the page has, the newest hole first. Some holes stay: the server deletes old
     * messages even if a device has not received them. Messages after the last known message do not count as missing,
     * because they may still arrive.
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
     * The seq before which the next messages of the history belong. It is the seq after the newest hole or, if there is
     * no hole, the oldest seq. It is 0 if there are no messages, so that the newest messages come next.
     *
     * @param {Chat} chat
     */
    placeOf(chat) {
        const seqs = seqsOf(chat);
        return this.hole(chat)?.before ?? (seqs.length ? Math.min(...seqs) : 0);
    }

    /**
     * Drops the fetched history of a conversation that is no longer open. It is fetched again if necessary.
     *
     * @param {Chat} chat
     */
    left(chat) {
        chat.earlier = [];
        chat.asked.clear();
    }

    /**
     * Applies an entry of the inbox.
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
     * Adds a message from the inbox or from the history.
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
     * Adds messages from the history. They are older than all known messages, or they are in a hole.
     *
     * @param {Chat} chat
     * @param {any[]} messages
     * @param {number} before The seq before which they were requested; 0 for the newest messages.
     * @param {boolean} isMore Whether the server has older messages.
     */
    history(chat, messages, before = 0, isMore = true) {
        const isFull = () => chat.earlier.length || chat.lines.length >= maxMessages || chat.size >= maxSize / 2;
        // The newest messages come first, so that they are kept if there is not enough room for all.
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
        // The server has no messages between two adjacent messages of an answer.
        const seqs = [...messages.map((message) => message.conversationSeq), before];
        const here = new Set(seqsOf(chat));
        seqs.forEach((seq, index) => {
            // A message that was not kept for lack of room must be requested again.
            const isNext = index > 0 ? here.has(seqs[index - 1]) : !isMore || !messages.length;
            if (isNext) chat.asked.add(seq);
        });
    }

    /**
     * Whether the server has no further messages for the conversation. This is true if the conversation has no
     * messages, or if the page has the first message and no later message is missing.
     *
     * @param {Chat} chat
     */
    isWhole(chat) {
        // Only this page keeps the notices.
        if (isNotices(chat) || !chat.lastSeq) return true;
        return seqsOf(chat).includes(1) && !this.hole(chat);
    }

    /**
     * Whether there is no room for more messages of the history.
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
     * Applies the outbox's progress of one of the user's messages.
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
     * Applies the outbox after the page was opened. An unsent message that is no longer in the outbox was sent while no
     * page was open.
     *
     * @param {any[]} entries The entries of the outbox.
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
     * Records that the user has read up to this seq.
     *
     * @param {Chat} chat
     * @param {number} upToSeq
     */
    marked(chat, upToSeq) {
        chat.markedUpTo = Math.max(chat.markedUpTo, upToSeq);
    }

    /**
     * Adds a back end's push to the notices, which are a conversation with uid 0.
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
            // A message that the server has does not become unsent again.
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
     * Handles a message whose seq another message has on the page. The server has lost that other message, so the other
     * message loses its seq.
     *
     * @param {Chat} chat
     * @param {number} seq
     * @param {Line} [known] The message with the seq, if the page already has it.
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
     * @param {boolean} isNew Whether to store the line.
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
        // Messages of the history are not stored.
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
     * Drops messages above the limits: the oldest messages of a conversation, and messages of the conversations without
     * activity for the longest time.
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
        // While the user looks at earlier messages, the removed messages move there, so that there is no gap.
        if (chat.earlier.length) chat.earlier.push(...gone);
        if (chat.earlier.length > maxEarlier) chat.earlier = [];
    }
}

/**
 * The content that shows a push: its text, and the kind and size of its typed message. A push with neither of them
 * shows its data.
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
 * The seqs of the messages that the page has.
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
 * The order of the lines. Unsent messages come last. Messages with a seq are in the order of the seqs. Notices are in
 * the order of their times.
 *
 * @param {Line} a
 * @param {Line} b
 */
const inOrder = (a, b) => (a.seq && b.seq ? a.seq - b.seq : orderOf(a) - orderOf(b) || a.time - b.time);
