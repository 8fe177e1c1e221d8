// Hermes
// SPDX-License-Identifier: Apache-2.0

import { Account, accounts, server } from "./account.js";
import { showCompose } from "./compose.js";
import { changes, contactRows } from "./contacts.js";
import { summary } from "./contents.js";
import { confirmed, showDevices, waitFor } from "./dialogs.js";
import { attempt, dayText, dialog, errorText, showRows, whenReleased } from "./dom.js";
import { button, h } from "../dom.js";
import { ErrorCode } from "../hermes.js";
import { showGroup, showNewGroup } from "./groups.js";
import { language, t } from "./i18n.js";
import { Lines, noteText } from "./lines.js";
import { accountList, loginForm } from "./login.js";
import { keyOf } from "./model.js";
import { addressed, follow } from "./notified.js";
import { endPushes, renewPushes, showPushes } from "./pushes.js";

/** The time between two notices that the user is typing, in milliseconds. */
const typingPause = 4000;
/** The time between two drawings, in milliseconds. */
const drawingPause = 100;
/** The number of conversations that are listed at first, and the number that each click adds. */
const listed = 100;

const root = /** @type {HTMLElement} */ (document.getElementById("app"));
const status = /** @type {HTMLElement} */ (document.getElementById("status"));

/** @type {Account | null} */
let account = null;
/** @type {Account | null} The account that is being logged out. It needs its stores and its client until the log-out
 *   is complete. */
let leaving = null;
let chosen = "";
/** The conversation of a clicked notification, until the page has the conversation. */
let wanted = "";
/** The number on the app's icon; -1 if it is unknown, because a notification may have set it. */
let shownBadge = -1;
/** @type {"chats" | "contacts"} */
let tab = "chats";
/** Whether the server has answered that it keeps no earlier messages of the chosen conversation. */
let isComplete = false;
let typedAt = 0;
/**
 * @type {Map<number, Map<string, string>>} The unsent drafts, by account and conversation. For the open conversation,
 *   the text in the field is newer. Drafts are kept when the user changes the account, but not after a log-out.
 */
const drafts = new Map();
/** @type {any} The elements of the main view that change. */
let view = {};
let isDrawing = false;
let nextDrawing = -Infinity;
let listedCount = listed;

/** Draws the page soon. Several changes are drawn together. */
function changed() {
    if (isDrawing) return;
    isDrawing = true;
    const next = () => {
        isDrawing = false;
        const began = performance.now();
        draw();
        const now = performance.now();
        // Drawing takes at most a third of the time, even if texts are expensive to lay out.
        nextDrawing = now + Math.max(drawingPause, 2 * (now - began));
    };
    setTimeout(next, Math.max(0, nextDrawing - performance.now()));
}

/* --- Logging in --- */

function showLogin(error = "") {
    document.title = t("title");
    view.lines?.close();
    for (const open of document.querySelectorAll("dialog")) open.close();
    const form = loginForm(error, (next) => {
        accounts.use(next.storedAs);
        showAccount(next);
    });
    const languages = button(t("language"), switchLanguage, { class: "plain" });
    const title = h("h1", {}, t("title"));
    root.replaceChildren(h("main", { class: "login" }, title, form, accountList(accounts.all, start), languages));
    form.elements.name.focus();
    showBadge(0);
}

function switchLanguage() {
    language.toggle();
    document.documentElement.lang = language.current === "zh" ? "zh-Hans" : "en";
    if (account) {
        showAccount(account);
        // The button was in a dialog that is closed now, so the focus moves to the menu.
        view.menu.focus();
        return;
    }
    const typed = [...root.querySelectorAll("input")].map((input) => input.value);
    showLogin();
    for (const [index, input] of [...root.querySelectorAll("input")].entries()) input.value = typed[index] ?? "";
}

/** @param {Account} next */
function showAccount(next) {
    const isNew = account !== next;
    if (isNew) {
        forgetShown();
        renewPushes(next, server);
        // Another tab has logged the account out. Closing the account here may write to the stores again, so this tab
        // clears them afterwards.
        next.left = async () => {
            await drop(next, t("stopped"));
            drafts.delete(next.chats.me);
            await next.forget();
        };
    }
    account = next;
    account.changed = changed;
    const begun = isNew ? [] : fields().map((field) => field.value);
    build();
    // If the account is the same, only the language has changed. So the typed texts stay.
    for (const [index, text] of begun.entries()) fields()[index].value = text;
    draw();
}

/** The fields of the main view. */
const fields = () => [view.text, view.name, view.words];

/** Stops showing the account and closes it, except while it logs out. */
async function forgetShown() {
    const left = account;
    if (left) draftsOf(left).set(chosen, view.text.value);
    account = null;
    chosen = "";
    if (left !== leaving) await left?.close();
}

/**
 * Closes an account. If it was shown, shows the login form.
 *
 * @param {Account} left
 * @param {string} reason
 */
async function drop(left, reason) {
    if (account !== left) {
        if (left !== leaving) await left.close();
        return;
    }
    const closed = forgetShown();
    showLogin(reason);
    await closed;
}

/**
 * Opens an account of this browser, or shows the error if it cannot be opened.
 *
 * @param {string | undefined} name
 */
async function start(name = accounts.here) {
    try {
        await enter(name);
    } catch (error) {
        if (account) view.error.textContent = errorText(error);
        else showLogin(errorText(error));
    }
}

/** @param {string | undefined} name */
async function enter(name) {
    const next = name ? await Account.open(name) : null;
    if (!name || !next?.client.canResume) {
        await next?.close();
        await forgetShown();
        showLogin();
        return;
    }
    accounts.use(name);
    // Without a network, the page shows its stored data.
    next.client.resume().catch((error) => {
        // When the browser suspends the page, the client closes. The page logs in again when it is shown again.
        if (error.code !== ErrorCode.closed) drop(next, errorText(error));
    });
    showAccount(next);
}

/** Logs out, if the user agrees to lose the data that only this browser has. */
async function leave() {
    const left = account;
    if (!left) return;
    const isLive = left.client.state.is === "live";
    draftsOf(left).set(chosen, view.text.value);
    const begun = [...draftsOf(left).values()].filter((text) => text.trim());
    const unsent = left.unsent + begun.length;
    const lost = [t("logOutCopy", left.nickName), unsent ? t("logOutUnsent", unsent) : "", isLive ? "" : t("logOutAlone")];
    if (!(await confirmed(t("logOut"), [...lost.filter(Boolean), t("sure")])) || account !== left) return;
    let isTold = false;
    leaving = left;
    const isGone = await waitFor(t("logOut"), t("loggingOut"), async () => {
        isTold = await left.leave(() => endPushes(left, server));
    });
    leaving = null;
    // In the meantime, a clicked notification may have opened another account.
    const isShown = account === left;
    // The account's data could not be removed, so the account stays shown.
    if (!isGone && isShown) return;
    if (isShown) await forgetShown();
    else await left.close();
    drafts.delete(left.chats.me);
    if (isShown) await start();
    if (!isGone) return;
    if (isLive && !isTold) dialog(t("logOut"), h("p", {}, t("logOutAlone")));
}

/**
 * Opens the account and the conversation of a notification.
 *
 * @param {import("./notified.js").Reference} reference
 */
async function goTo({ key, uid }) {
    if (uid && uid !== account?.chats.me) {
        const name = accounts.named(uid);
        if (!name) return;
        await start(name);
    }
    if (!account || (uid && uid !== account.chats.me)) return;
    for (const open of document.querySelectorAll("dialog")) open.close();
    wanted = key;
    draw();
}

/**
 * Shows the number of unread messages on the app's icon.
 *
 * @param {number} unread
 */
function showBadge(unread) {
    if (unread === shownBadge) return;
    shownBadge = unread;
    const { navigator } = /** @type {any} */ (globalThis);
    const isSet = unread ? navigator.setAppBadge?.(unread) : navigator.clearAppBadge?.();
    isSet?.catch(() => {});
}

/* --- The main view --- */

function build() {
    view.lines?.close();
    const lines = new Lines();
    const label = { "aria-label": t("message"), placeholder: t("message") };
    const text = h("textarea", { rows: 1, ...label, maxlength: 16_000, dir: "auto" });
    const others = button("+", compose, { "aria-haspopup": "dialog", "aria-label": t("otherContent") });
    const composer = h("form", { class: "composer" }, others, text, h("button", { class: "main" }, t("send")));
    composer.onsubmit = (/** @type {Event} */ event) => {
        event.preventDefault();
        sendText(text);
    };
    text.onkeydown = (/** @type {KeyboardEvent} */ event) => {
        if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
        event.preventDefault();
        sendText(text);
    };
    text.oninput = () => {
        // A user who types here must not be moved to another conversation.
        wanted = "";
        const chat = account?.chats.get(chosen);
        if (!chat || Date.now() - typedAt < typingPause) return;
        typedAt = Date.now();
        account?.client.setTyping(chat.to);
    };
    const hint = { "aria-label": t("newChatHint"), placeholder: t("newChatHint") };
    const name = h("input", { name: "name", ...hint, required: true, autocomplete: "off", dir: "auto" });
    const error = h("p", { class: "error bar-error", role: "alert" });
    const ask = h("button", {}, t("open"));
    const wordsHint = { "aria-label": t("askWords"), placeholder: t("askWords") };
    const words = h("input", { name: "words", ...wordsHint, maxlength: 256, autocomplete: "off", dir: "auto" });
    const search = h("form", { class: "inline" }, name, ask, words);
    search.onsubmit = (/** @type {Event} */ event) => {
        event.preventDefault();
        attempt(error, async () => {
            const chat = await account?.chatWith(name.value.trim());
            if (!chat) return;
            if (tab === "contacts" && "uid" in chat.to) {
                await account?.client.requestContact(chat.to.uid, words.value.trim());
                await account?.loadContacts();
                view.words.value = "";
            } else choose(chat.key);
            view.name.value = "";
        });
    };
    const pick = (/** @type {"chats" | "contacts"} */ next) => () => {
        tab = next;
        draw();
    };
    view = {
        lines,
        text,
        composer,
        ask,
        name,
        words,
        error,
        connection: h("span", { class: "connection" }),
        me: h("h2", { dir: "auto" }),
        chatsTab: button(t("chats"), pick("chats")),
        contactsTab: button(t("contacts"), pick("contacts")),
        list: h("ul", { class: "list", onkeydown: moveInList }),
        title: h("h2", { class: "grow", dir: "auto" }),
        presence: h("span", { class: "faint" }),
        details: button(t("details"), () => {
            const chat = account?.chats.get(chosen);
            if (account && chat && "groupId" in chat.to) showGroup(account, chat.to.groupId);
        }),
        block: button("", () => {
            const chat = account?.chats.get(chosen);
            if (!account || !chat || !("uid" in chat.to)) return;
            changeContact(account.isBlocked(chat.to.uid) ? changes.unblock : changes.block, chat.to.uid);
        }),
        typing: h("div", { class: "typing faint", role: "status" }),
        newest: h("div", { class: "newest" }, button(t("newest"), () => lines.toEnd())),
        earlierButton: button(t("earlier"), loadEarlier, { "data-key": "earlier" }),
        noEarlier: h("p", { class: "faint" }, t("noEarlier")),
        earlierError: h("p", { class: "error", role: "alert" }),
        empty: h("p", { class: "empty" }, t("choose")),
    };
    const back = button(t("back"), () => choose(""), { class: "back" });
    view.earlier = h("div", { class: "earlier" }, view.earlierButton, view.noEarlier, view.earlierError);
    view.bar = h("header", { class: "bar" }, back, view.title, view.presence, view.details, view.block);
    view.menu = button(t("menu"), showMenu, { "aria-haspopup": "dialog" });
    view.main = h(
        "main",
        { class: "main-view" },
        // This heading is in neither of the two parts below, because a narrow window shows only one of them.
        h("h1", { class: "hidden-text" }, t("title")),
        h(
            "nav",
            { class: "side", "aria-label": t("chats") },
            h("header", { class: "bar" }, h("div", { class: "grow" }, view.me, view.connection), view.menu),
            h("div", { class: "tabs" }, view.chatsTab, view.contactsTab),
            search,
            error,
            view.list,
        ),
        h("div", { class: "pane" }, view.bar, view.empty, lines.element, view.newest, view.typing, composer),
    );
    root.replaceChildren(view.main);
    lines.changed = () => {
        view.newest.hidden = !lines.isBehind;
    };
    lines.changed();
}

function draw() {
    if (!account || !view.main) return;
    const { is, error, delay } = account.client.state;
    if (is === "stopped" && error) {
        // Another device has removed this device, or the password has changed.
        drop(account, errorText(error));
        return;
    }
    if (wanted && account.chats.get(wanted)) {
        choose(wanted);
        return;
    }
    const { storeError } = account;
    view.connection.textContent = storeError ? t("notStored") : t(is, Math.ceil((delay ?? 0) / 1000));
    view.connection.dataset.state = storeError ? "failing" : is;
    view.connection.title = storeError || error ? errorText(storeError ?? error) : "";
    view.me.textContent = account.nickName;
    view.chatsTab.setAttribute("aria-pressed", String(tab === "chats"));
    view.contactsTab.setAttribute("aria-pressed", String(tab === "contacts"));
    view.ask.textContent = t(tab === "chats" ? "open" : "ask");
    view.words.hidden = tab === "chats";
    whenReleased(view.list, drawList);
    drawPane();
    const unread = account.chats.all.reduce((sum, chat) => sum + (account?.chats.unread(chat) ?? 0), 0);
    document.title = unread ? `(${unread}) ${t("title")}` : t("title");
    showBadge(unread);
}

function drawList() {
    if (!account) return;
    const focused = document.activeElement?.getAttribute("data-key");
    if (tab === "chats") drawChats();
    else drawContacts();
    // A changed row is a new element, so it needs the focus again.
    const place = focused && view.list.querySelector(`[data-key="${CSS.escape(focused)}"]`);
    if (place && place !== document.activeElement) place.focus();
    else if (focused && document.activeElement === document.body) (view.list.querySelector("button") ?? view.menu).focus();
}

/** @param {import("./model.js").Line} line */
function wordsOf(line) {
    if (line.note) return account ? noteText(line, account) : "";
    return line.recalled ? t("recalled") : summary(line.content);
}

function drawChats() {
    const all = account?.chats.all ?? [];
    const rows = all.slice(0, listedCount).map((chat) => {
        const last = chat.lines.at(-1);
        const unread = account?.chats.unread(chat) ?? 0;
        const words = last ? wordsOf(last) : "";
        const title = account?.titleOf(chat) ?? "";
        const at = last?.time ?? chat.lastAt;
        const time = at ? dayText(at) : "";
        const isChosen = chat.key === chosen;
        const make = (/** @type {Element | undefined} */ old) => {
            const attributes = { class: "row", "data-key": chat.key };
            const place = old ?? h("li", {}, button("", () => choose(chat.key), attributes));
            const row = /** @type {Element} */ (place.firstElementChild);
            if (isChosen) row.setAttribute("aria-current", "true");
            else row.removeAttribute("aria-current");
            row.replaceChildren(
                h("span", { class: "name", dir: "auto" }, title),
                h("span", { class: "time" }, time),
                h("span", { class: "last", dir: "auto" }, words),
                unread ? h("span", { class: "badge", "aria-label": t("unread", unread) }, String(unread)) : "",
            );
            return place;
        };
        return { key: chat.key, signature: [title, time, words, unread, isChosen], make };
    });
    const more = () => {
        listedCount += listed;
        draw();
    };
    const next = button(t("moreChats"), more, { class: "row" });
    const rest = { key: "rest", signature: [], make: () => h("li", {}, next) };
    showRows(view.list, rows.length ? rows.concat(all.length > listedCount ? rest : []) : [emptyRow("noChats")]);
}

/** @param {string} text */
const emptyRow = (text) => ({ key: text, signature: 0, make: () => h("li", { class: "empty" }, t(text)) });

/**
 * @param {import("./contacts.js").Change} change
 * @param {number} uid
 */
function changeContact(change, uid) {
    const of = account;
    if (!of) return;
    attempt(view.error, async () => {
        await change(of, uid);
        await of.loadContacts();
    });
}

function drawContacts() {
    const of = account;
    if (!of) return;
    const begin = (/** @type {any} */ { uid, nickName }) =>
        attempt(view.error, async () => choose((await of.open({ uid }, nickName)).key));
    const rows = contactRows(of, changeContact, begin);
    showRows(view.list, rows.length ? rows : [emptyRow("noContacts")]);
}

function drawPane() {
    const chat = account?.chats.get(chosen);
    view.main.classList.toggle("chosen", Boolean(chat));
    for (const part of [view.bar, view.lines.element, view.newest, view.typing, view.composer]) part.hidden = !chat;
    view.empty.hidden = Boolean(chat);
    if (!account || !chat) return;
    const isGroup = "groupId" in chat.to;
    const presence = "uid" in chat.to ? account.presences.get(chat.to.uid) : null;
    view.title.textContent = account.titleOf(chat);
    const isBlocked = "uid" in chat.to && account.isBlocked(chat.to.uid);
    const presenceText = presence ? t(presence.isOnline ? "online" : "offline") : "";
    view.presence.textContent = isBlocked ? t("blocked") : presenceText;
    view.details.hidden = !isGroup || chat.isOver;
    view.block.hidden = isGroup || chat.isOver || chat.key === keyOf({ uid: account.chats.me });
    view.block.textContent = t(isBlocked ? "unblock" : "block");
    view.lines.element.setAttribute("aria-label", account.titleOf(chat));
    view.newest.hidden = !view.lines.isBehind;
    view.earlier.hidden = account.chats.isWhole(chat) || account.chats.isFull(chat);
    const isEnd = isComplete && !account.chats.hole(chat);
    view.earlierButton.hidden = isEnd;
    view.noEarlier.hidden = !isEnd;
    view.lines.show(account, chat, view.earlier);
    const people = [...(account.typing.get(chat.key)?.keys() ?? [])].map((uid) => account?.nameOf(uid));
    const over = chat.isOver && isGroup ? t("over") : "";
    // In a narrow window, the state of the connection is not visible.
    const state = account.storeError ? t("notStored") : over;
    const words = people.length && !account.storeError ? `${people.join(", ")} ${t("typing")}` : state;
    if (view.typing.textContent !== words) view.typing.textContent = words;
    view.composer.hidden = chat.isOver;
    if (!document.hidden) account.markRead(chat);
}

/** @param {string} key */
function choose(key) {
    wanted = "";
    const left = key === chosen ? null : account?.chats.get(chosen);
    if (left) account?.chats.left(left);
    if (view.text && key !== chosen) {
        const begun = account ? draftsOf(account) : new Map();
        begun.set(chosen, view.text.value);
        view.text.value = begun.get(key) ?? "";
    }
    chosen = key;
    isComplete = false;
    const opened = account?.chats.get(key);
    // Check this before the drawing marks everything in the conversation as read.
    const isBare = opened && account?.chats.isBare(opened);
    view.earlierError.textContent = "";
    typedAt = 0;
    draw();
    const chat = account?.chats.get(key);
    if (chat && "uid" in chat.to && chat.to.uid) account?.watch([chat.to.uid], true);
    // A new device has at most the last message. If the request fails, the button for earlier messages shows the error
    // when it is used.
    if (chat && isBare) account?.earlier(chat).then(changed, () => {});
    if (key) view.text.focus();
    else view.list.querySelector("button")?.focus();
}

/**
 * The drafts of an account, by conversation.
 *
 * @param {Account} of
 */
function draftsOf({ chats: { me } }) {
    const known = drafts.get(me) ?? new Map();
    drafts.set(me, known);
    return known;
}

/** @param {any} text */
async function sendText(text) {
    const chat = account?.chats.get(chosen);
    const content = text.value.trim();
    if (!account || !chat || !content) return;
    const of = account;
    text.value = "";
    typedAt = 0;
    view.lines.toEnd();
    const { outbox } = of.client;
    const isStored = await attempt(view.error, () => outbox.send(content, chat.to));
    if (isStored) return;
    // In the meantime, the user may have opened another conversation or account, or begun another text. The view may
    // also have been rebuilt.
    const key = keyOf(chat.to);
    const isShown = account === of && key === chosen;
    const begun = isShown ? view.text.value : draftsOf(of).get(key);
    const both = [content, begun].filter(Boolean).join("\n");
    if (isShown) view.text.value = both;
    else draftsOf(of).set(key, both);
}

/** Composes a content of any kind. */
function compose() {
    const chat = account?.chats.get(chosen);
    const from = account;
    if (!from || !chat) return;
    showCompose(view.text.value, async (content) => {
        await from.client.outbox.send(content, chat.to);
        if (account !== from || keyOf(chat.to) !== chosen) return;
        // If the content is not a text, the draft stays.
        if (typeof content.text === "string") view.text.value = "";
        typedAt = 0;
        view.lines.toEnd();
    });
}

async function loadEarlier() {
    const chat = account?.chats.get(chosen);
    if (!account || !chat) return;
    const of = account;
    const place = of.chats.placeOf(chat);
    let isMore = false;
    status.textContent = "";
    const isAnswered = await attempt(view.earlierError, async () => (isMore = await of.earlier(chat)));
    // Without an answer, the button stays.
    if (!isAnswered || account !== of || chat.key !== chosen) return;
    if (isMore) {
        view.lines.cameBefore(place);
        if (of.chats.holes(chat).some(({ before }) => before === place)) status.textContent = t("missing");
        draw();
        return;
    }
    isComplete = true;
    status.textContent = t("noEarlier");
    draw();
}

/**
 * Moves the focus between the conversations with the arrow keys.
 *
 * @param {KeyboardEvent} event
 */
function moveInList(event) {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (!step) return;
    const buttons = [...view.list.querySelectorAll("button.row")];
    const index = buttons.indexOf(/** @type {any} */ (document.activeElement));
    buttons[index + step]?.focus();
    event.preventDefault();
}

function showMenu() {
    if (!account) return;
    const current = account;
    const run = (/** @type {() => any} */ action) => () => {
        element.close();
        action();
    };
    const others = accounts.all.filter((name) => name.toLowerCase() !== current.storedAs.toLowerCase());
    const element = dialog(
        current.nickName,
        h(
            "p",
            { class: "actions" },
            button(t("newGroup"), run(() => showNewGroup(current, (chat) => choose(chat.key)))),
            button(t("devices"), run(() => showDevices(current))),
            button(t("pushes"), run(() => showPushes(current, server))),
            button(t("language"), run(switchLanguage)),
            button(t("logOut"), run(leave)),
        ),
        h("h3", {}, t("accounts")),
        h(
            "p",
            { class: "actions" },
            ...others.map((name) => button(name, run(() => start(name)), { dir: "auto" })),
            button(
                t("addAccount"),
                run(async () => {
                    await forgetShown();
                    showLogin();
                }),
            ),
        ),
    );
}

document.addEventListener("visibilitychange", () => {
    shownBadge = -1;
    changed();
});
document.addEventListener("keydown", (event) => {
    if (event.isComposing || document.querySelector("dialog")) return;
    if (event.key === "Escape" && chosen) choose("");
    if (event.key === "k" && event.ctrlKey && view.main?.isConnected) {
        event.preventDefault();
        const name = view.main.querySelector("input[name=name]");
        // A narrow window shows either the list or the conversation.
        if (!name.offsetParent) choose("");
        name.focus();
    }
});
document.documentElement.lang = language.current === "zh" ? "zh-Hans" : "en";
// With the service worker, the page opens without a network. Browsers without module workers ignore it.
navigator.serviceWorker?.register("worker.js", { type: "module" }).catch(() => {});
follow(navigator.serviceWorker, (uid) => Boolean(account && (!uid || uid === account.chats.me)), goTo);
const asked = addressed(location.hash);
if (asked) history.replaceState(null, "", location.pathname + location.search);
start((asked?.uid && accounts.named(asked.uid)) || undefined).then(() => asked && goTo(asked));
