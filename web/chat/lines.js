// Hermes
// SPDX-License-Identifier: Apache-2.0

import { beginning, body, extra } from "./contents.js";
import { errorText, showRows, timeText, whenReleased } from "./dom.js";
import { button, h } from "../dom.js";
import { t } from "./i18n.js";

/** The time after sending during which a message can be recalled, in milliseconds. */
const recallTime = 120_000;
/** The largest number of messages that are rendered at once, and the largest number of characters in their texts. */
const maxRows = 60;
const maxRendered = 20_000;
/**
 * The number of characters that are rendered at the end of the conversation, where new messages often arrive. It is
 * more than a screen shows.
 */
const renderedAtEnd = 6000;
/** The share of the rendered messages that one step of scrolling adds. */
const scrolled = 0.4;
/**
 * The part of a long text that is shown at first, and the part that each click adds, in characters, and the number of
 * lines that are shown at first.
 */
const shortened = 1000;
const further = 10_000;
const maxTextLines = 40;
/** The part of the attributes and the application's data that is shown at first, in characters. */
const shortenedExtra = 300;
/**
 * The next messages are rendered when the user scrolls to within this distance of the last rendered message, in pixels.
 */
const nearness = 400;

/**
 * The shown part of a long text.
 *
 * @param {string} text
 * @param {number} more The number of further characters that the user has asked for.
 */
export function shownOf(text, more) {
    const shown = beginning(text, shortened + more);
    let end = -1;
    for (let count = 0; count < maxTextLines * (1 + more / shortened); count += 1) {
        end = shown.indexOf("\n", end + 1);
        if (end < 0) return shown;
    }
    return shown.slice(0, end);
}

/**
 * The text of a notice. If the notice names people, the text says who joined or left.
 *
 * @param {import("./model.js").Line} line
 * @param {{ nameOf: (uid: number) => string }} account
 */
export function noteText({ note, people }, account) {
    if (!people?.uids.length) return t(note);
    const { uids, more, by } = people;
    const names = uids.map((uid) => account.nameOf(uid)).join(", ") + (more ? t("andMore", more) : "");
    const isOwnWill = uids.length === 1 && uids[0] === by;
    if (note === "group_members_added") return t("group_joined", names);
    return note === "group_members_removed" ? t(isOwnWill ? "group_left" : "group_removed", names) : t(note);
}

/**
 * The time for which a message can still be recalled, in milliseconds.
 *
 * @param {import("./model.js").Line} line
 * @param {number} now
 */
export function recallLeft({ own, seq, recalled, time }, now) {
    return own && seq > 0 && !recalled ? Math.max(0, time + recallTime - now) : 0;
}

/**
 * Whether the other user has read a message. It is false for messages in groups and for messages from the other user.
 *
 * @param {import("./model.js").Line} line
 * @param {import("./model.js").Chat} chat
 */
const isReadIn = (line, { to, readUpTo }) => line.own && "uid" in to && line.seq > 0 && line.seq <= readUpTo;

/**
 * The row of one message.
 *
 * @param {import("./model.js").Line} line
 * @param {import("./account.js").Account} account
 * @param {import("./model.js").Chat} chat
 * @param {object} asked The state of the row that results from clicks.
 * @param {number} asked.more The number of further characters of a long text that are shown.
 * @param {string} asked.error The error of the last action on the message.
 * @param {() => void} ask Shows more of a long text.
 * @param {(action: () => Promise<any>) => any} act Carries out the action of a button.
 */
function row(line, account, chat, { more, error }, ask, act) {
    if (line.note) return h("div", { class: "line note" }, `${noteText(line, account)} · ${timeText(line.time)}`);
    const status = isReadIn(line, chat) ? "read" : line.status;
    const isYoung = recallLeft(line, Date.now()) > 0;
    const isFailed = line.status === "failed";
    const { client } = account;
    const { text } = line.content;
    const isText = typeof text === "string" && !line.recalled;
    const shown = isText ? shownOf(text, more) : "";
    const words = line.recalled ? [t("recalled")] : isText ? [shown] : body(line.content);
    const besides = line.recalled ? "" : extra(line.content);
    const shownBesides = beginning(shownOf(besides, more), more ? shortened + more : shortenedExtra);
    const isCut = isText && shown.length < text.length;
    const isBesidesCut = shownBesides.length < besides.length;
    // When the row is drawn again, the focus stays on the button with the same key.
    const does = (/** @type {string} */ name, /** @type {() => any} */ click, more = {}) =>
        button(t(name), click, { "data-key": `${name} ${line.key}`, ...more });
    const author = line.own ? account.nickName : line.name || account.nameOf(line.from);
    return h(
        "div",
        { class: `line${line.own ? " own" : ""}${line.recalled ? " recalled" : ""}` },
        h("div", { class: "groupId" in chat.to && !line.own ? "author" : "hidden-text", dir: "auto" }, author),
        h("p", { class: "text", dir: "auto" }, ...words, isCut && "…"),
        besides && h("p", { class: "extra", dir: "auto" }, shownBesides, isBesidesCut && "…"),
        h(
            "div",
            { class: "meta" },
            (isCut || isBesidesCut) && does("more", ask),
            h("time", { datetime: new Date(line.time).toISOString() }, timeText(line.time)),
            line.own && status && !line.recalled && h("span", { "data-status": status }, t(status)),
            isYoung && does("recall", () => act(() => client.recall(chat.to, line.id)), { class: "plain" }),
            isFailed && does("retry", () => act(() => client.outbox.retry(line.clientId))),
            isFailed && does("discard", () => act(() => client.outbox.discard(line.clientId))),
        ),
        isFailed && line.error && h("p", { class: "error" }, errorText(line.error)),
        error && h("p", { class: "error" }, error),
    );
}

/**
 * The messages of a conversation. Only the messages around the place that the user looks at are rendered, so that the
 * page stays fast even with many or long messages. Other messages are rendered when the user scrolls to them.
 */
export class Lines {
    element = h("div", { class: "lines", role: "log", tabindex: "0", onscroll: () => this.#scrolled() });
    /** Whether there are messages that are newer than the rendered messages. */
    isBehind = false;
    /** @type {() => void} Called when `isBehind` changes. */
    changed = () => {};
    #key = "";
    /** The key of the first rendered message; empty if the newest messages are rendered. */
    #first = "";
    /** @type {import("./model.js").Line[]} */
    #all = [];
    /** The rendered messages have the indices from `#start` to `#end` - 1. */
    #start = 0;
    #end = 0;
    /** @type {Map<string, number>} The number of further characters that the user has asked for, by the message's
     *   key. */
    #more = new Map();
    /** @type {Map<string, string>} The errors of failed recalls, retries and discards, by the message's key. */
    #errors = new Map();
    /** The seq of a message before which messages have arrived, which the next rendering shows; 0 if there are none. */
    #came = 0;
    /** @type {any} The timer that draws again when a message can no longer be recalled. */
    #timer;
    #isClosed = false;
    /** @type {() => void} */
    #show = () => {};

    /**
     * @param {import("./account.js").Account} account
     * @param {import("./model.js").Chat} chat
     * @param {HTMLElement} first The element for the place before the first message, or for the place of a hole that
     *   the server may fill.
     */
    show(account, chat, first) {
        const isOther = chat.key !== this.#key;
        const { scrollTop, scrollHeight, clientHeight } = this.element;
        const wasAtEnd = scrollHeight - scrollTop - clientHeight < 80;
        if (isOther) {
            this.#more.clear();
            this.#errors.clear();
            this.#first = "";
            this.#came = 0;
        } else if (!this.isBehind && wasAtEnd) {
            this.#first = "";
        } else if (!this.#first) {
            // The user looks at earlier messages, so the rendered messages stay.
            this.#first = this.#all[this.#start]?.key ?? "";
        }
        this.#key = chat.key;
        this.#show = () => whenReleased(this.element, () => this.#render(account, chat, first));
        this.#show();
    }

    /** Stops all rendering of these lines. */
    close() {
        this.#isClosed = true;
        clearTimeout(this.#timer);
    }

    /**
     * Carries out the action of a message's button.
     *
     * @param {import("./model.js").Chat} chat
     * @param {import("./model.js").Line} line
     * @param {() => Promise<any>} action
     */
    async #act(chat, line, action) {
        this.#errors.delete(line.key);
        try {
            await action();
        } catch (error) {
            if (chat.key === this.#key) this.#errors.set(line.key, errorText(error));
        }
        this.#show();
    }

    /** Shows the newest messages. */
    toEnd() {
        this.#first = "";
        this.#show();
    }

    /**
     * Messages have arrived before this message. The next rendering shows some of them, and this message.
     *
     * @param {number} seq
     */
    cameBefore(seq) {
        this.#came = seq;
    }

    /** Renders the messages before the rendered messages. */
    #toEarlier() {
        const start = this.#reach(this.#start, -1, maxRendered * scrolled, maxRows * scrolled);
        if (start === this.#start) return;
        this.#first = this.#all[start].key;
        this.#show();
    }

    #toLater() {
        const end = this.#reach(this.#end, 1, maxRendered * scrolled, maxRows * scrolled);
        const start = this.#reach(end, -1, maxRendered);
        this.#first = this.#all[start].key;
        this.#show();
    }

    #scrolled() {
        const { scrollTop, scrollHeight, clientHeight } = this.element;
        if (scrollTop < nearness && this.#start > 0) this.#toEarlier();
        else if (this.isBehind && scrollHeight - scrollTop - clientHeight < nearness) this.#toLater();
    }

    /**
     * Returns the index at the end of a rendering that begins at `from`.
     *
     * @param {number} from
     * @param {1 | -1} step
     * @param {number} limit In characters.
     * @param {number} rows The largest number of messages.
     */
    #reach(from, step, limit, rows = maxRows) {
        let cost = 0;
        let at = from;
        for (let count = 0; count < rows; count += 1) {
            const line = this.#all[step > 0 ? at : at - 1];
            if (!line) break;
            cost += Math.min(line.size, shortened);
            if (cost > limit && count > 0) break;
            at += step;
        }
        return at;
    }

    /**
     * @param {import("./account.js").Account} account
     * @param {import("./model.js").Chat} chat
     * @param {HTMLElement} first
     */
    #render(account, chat, first) {
        if (this.#isClosed) return;
        const all = chat.earlier.length ? [...chat.earlier, ...chat.lines] : chat.lines.slice();
        this.#all = all;
        const behind = this.#came ? all.findIndex((line) => line.seq === this.#came) : -1;
        if (behind > 0) this.#first = all[this.#reach(behind, -1, maxRendered * scrolled, maxRows * scrolled)].key;
        this.#came = 0;
        const start = this.#first ? Math.max(0, all.findIndex((line) => line.key === this.#first)) : -1;
        this.#end = start < 0 ? all.length : this.#reach(start, 1, maxRendered);
        this.#start = start < 0 ? this.#reach(all.length, -1, renderedAtEnd) : start;
        const now = Date.now();
        const today = new Date(now).toDateString();
        let nextEnd = Infinity;
        const holes = account.chats.holes(chat);
        const open = holes.filter((hole) => account.chats.mayFill(chat, hole));
        const place = first.hidden ? null : open[0];
        const firstRow = { key: "first", signature: /** @type {any[]} */ ([]), make: () => first };
        const rows = all.slice(this.#start, this.#end).flatMap((line) => {
            const isRead = isReadIn(line, chat);
            const left = recallLeft(line, now);
            if (left) nextEnd = Math.min(nextEnd, left);
            const error = this.#errors.get(line.key) ?? "";
            const words = line.note && noteText(line, account);
            const more = this.#more.get(line.key) ?? 0;
            const ask = () => {
                this.#more.set(line.key, more + further);
                this.#show();
            };
            const key = `${chat.key} ${line.key}`;
            const act = (/** @type {() => Promise<any>} */ action) => this.#act(chat, line, action);
            const make = () => row(line, account, chat, { more, error }, ask, act);
            const shown = { key, signature: [line.revision, isRead, left > 0, more, error, words, today], make };
            const hole = holes.find(({ after }) => after === line.seq);
            if (!hole) return [shown];
            return [shown, hole === place ? firstRow : missingRow(key)];
        });
        clearTimeout(this.#timer);
        if (nextEnd < Infinity) this.#timer = setTimeout(() => this.#show(), nextEnd + 1);
        if (!this.#start && !rows.includes(firstRow)) rows.unshift(firstRow);
        const { element } = this;
        const anchor = start < 0 ? null : anchorOf(element, first);
        // Screen readers must not read messages that appear again because the user scrolls.
        const isBehind = this.#end < all.length;
        const live = anchor ? "off" : "polite";
        if (element.getAttribute("aria-live") !== live) element.setAttribute("aria-live", live);
        this.#keepFocus(() => showRows(element, rows));
        if (!anchor) element.scrollTop = element.scrollHeight;
        else if (anchor.row.isConnected) element.scrollTop += anchor.row.getBoundingClientRect().top - anchor.top;
        if (isBehind === this.isBehind) return;
        this.isBehind = isBehind;
        this.changed();
    }

    /**
     * Draws, and keeps the focus. A changed row is a new element, so the focus moves to the same button of the new
     * element. If there is none, it moves to the list of messages.
     *
     * @param {() => void} draw
     */
    #keepFocus(draw) {
        const { element } = this;
        const focused = element.contains(document.activeElement) ? document.activeElement : null;
        draw();
        if (!focused || focused === document.activeElement) return;
        const key = focused.getAttribute("data-key");
        const same = key && element.querySelector(`[data-key="${CSS.escape(key)}"]`);
        (same || element).focus({ preventScroll: true });
        // A hidden element cannot take the focus.
        if (document.activeElement === document.body) element.focus({ preventScroll: true });
    }
}

/**
 * The row at a place where messages are missing.
 *
 * @param {string} key The key of the message before the place.
 */
const missingRow = (key) => {
    const make = () => h("div", { class: "line note" }, t("missing"));
    return { key: `missing behind ${key}`, signature: /** @type {any[]} */ ([]), make };
};

/**
 * The first visible row and its position. The row stays at this position when rows before it are added or removed. If
 * the place `first` is visible, the result is the row after this place.
 *
 * @param {Element} list
 * @param {Element} first The place where messages may be added.
 */
function anchorOf(list, first) {
    const { top, bottom } = list.getBoundingClientRect();
    let found = null;
    let isNext = true;
    for (const row of list.children) {
        const rect = row.getBoundingClientRect();
        if (rect.bottom <= top) continue;
        if (rect.top >= bottom) break;
        if (row === first) isNext = true;
        if (!isNext || !row.classList.contains("line")) continue;
        found = { row, top: rect.top };
        isNext = false;
    }
    return found;
}
