// Hermes
// SPDX-License-Identifier: Apache-2.0

import { attempt } from "../chat/dom.js";
import { wordsOfError } from "../chat/errors.js";
import { button, field, h } from "../dom.js";
import { IndexedDBStore, SharedClient } from "../hermes.js";
import { clearStores, tellServer } from "../leaving.js";
import { Stage } from "./stage.js";
import { roomOf, thinned, Thinner } from "./thinning.js";
import { Watcher } from "./watch.js";
import { wordsOf } from "./words.js";

/** The number of lines of the log that people can read, per second and at once. */
const readable = { perSecond: 5, burst: 12 };
/**
 * The number of texts that are parsed for the stage and the log, per second and at once. Further texts are not parsed.
 */
const parsed = { perSecond: 30, burst: 40 };
/** The largest number of lines in the log. */
const maxLines = 100;
/** The time between two requests for the number of viewers by a page without an account, in milliseconds. */
const countInterval = 10_000;
/** The time after which the page shows that a login has no answer yet, in milliseconds. */
const patience = 5000;
const gifts = { rose: "🌹", star: "⭐", rocket: "🚀" };

const query = new URLSearchParams(location.search);
/** The server: the page's own server, or the server in `?server=ws://…` for development. */
const server = query.get("server") ?? location.origin;
/**
 * Whether another page shows this page in a frame. The other page could cover this page with other content. So nobody
 * can log in or give gifts in a frame.
 */
const isFramed = window.parent !== window;
const { lang, say } = wordsOf(query.get("lang"));
/** The name of the client's database. */
const name = `room ${server}`;
const store = new IndexedDBStore(`hermes/${name}`);
const room = roomOf(location);
const root = /** @type {HTMLElement} */ (document.getElementById("app"));

const stage = new Stage();
const thinner = new Thinner(readable.perSecond, readable.burst);
const sieve = new Thinner(parsed.perSecond, parsed.burst);
const log = h("div", { class: "log", role: "log", "aria-label": say("log"), tabindex: 0 });
const viewersText = h("span", { class: "viewers" });
const stateText = h("span", { class: "state", role: "status" });
const foot = h("div", { class: "foot" });
const error = h("p", { class: "error", role: "alert" });
const pause = button(say("pause"), togglePause, { "aria-pressed": "false" });
const leaveButton = button(say("logOut"), logOut, { hidden: true });
/** Informs the other tabs of a log-out. */
const tabs = new BroadcastChannel(`hermes-room ${server}`);
tabs.onmessage = () => location.reload();
/** @type {SharedClient | null} */
let client = null;
/** @type {Watcher | null} Watches the room while nobody is logged in. */
let watcher = null;
/** @type {"connecting" | "live" | "refused"} */
let watching = "connecting";
/** @type {RegExp} Matches only the frames with the user's own texts. */
let own = /(?!)/;
let viewers = 0;
/** Whether the server reports the number of viewers without an account. */
let isCounted = false;
/** @type {any} */
let counting;
let isPaused = false;
/** Whether a pause is at least a part of the reason why lines were left out. */
let wasPaused = false;
let isIn = false;
let isEntering = false;

/** The text for an error, in the page's language. */
const wordsFor = (/** @type {any} */ failure) => wordsOfError(failure, lang !== "en");
const attempted = (/** @type {() => Promise<any>} */ action) => attempt(error, action, wordsFor);

/* --- What happens in the room --- */

/** @type {Element[]} The lines that the next animation frame adds to the log. */
let newLines = [];

/**
 * @param {string} className
 * @param {(Node | string)[]} content
 */
function addLine(className = "", ...content) {
    newLines.push(h("p", { class: className }, ...content));
    if (newLines.length > maxLines) newLines.shift();
    // Hidden pages have no animation frames.
    if (newLines.length === 1) (document.hidden ? setTimeout : requestAnimationFrame)(showLines);
}

function showLines() {
    const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
    log.append(...newLines);
    newLines = [];
    while (log.children.length > maxLines) log.firstElementChild.remove();
    if (atEnd) log.scrollTop = log.scrollHeight;
}

/**
 * Whether to parse a text. A text that people could not see costs almost nothing.
 *
 * @param {string} frame
 */
function takesText(frame = "") {
    if (own.test(frame) || (!isPaused && sieve.offer(performance.now()))) return true;
    thinner.leaveOut();
    return false;
}

/** Whether people can read one more line. If not, the line is counted as left out. */
function takesLine() {
    if (!isPaused) return thinner.offer(performance.now());
    thinner.leaveOut();
    return false;
}

/** @param {any} event A `hermes.v1.RoomEvent`. */
function happened(event) {
    if (event.room !== room) return;
    const name = event.user?.name || (event.uid ? `#${event.uid}` : say("someone"));
    const isOwn = event.uid > 0 && event.uid === client?.session?.uid;
    // The element is made only for shown events, because there may be thousands of events.
    const who = () => h("b", { dir: "auto" }, name);
    if (event.text) {
        const { text } = event.text;
        if (!isPaused) stage.fly(name, text, isOwn);
        if (takesLine()) addLine(isOwn ? "own" : "", who(), " ", h("span", { dir: "auto" }, text));
    } else if (event.gift) {
        const gift = `${giftText(event.gift.name)} × ${Math.max(1, event.gift.count)}`;
        if (!isPaused) stage.give(name, gift);
        if (takesLine()) addLine("note", who(), ` ${say("gives")} `, h("bdi", {}, gift));
    } else if (event.notice) {
        // A notice from the server is never left out.
        addLine("notice", h("b", {}, say("notice")), " ", h("span", { dir: "auto" }, event.notice.text));
    } else if (event.joined || event.left) {
        if (!isOwn) showViewers(viewers + (event.joined ? 1 : -1));
    } else if (event.entered) {
        showViewers(event.entered.memberCount);
    } else if (event.kicked) {
        isIn = false;
        showFoot();
        error.textContent = say("removed", event.kicked.reason);
    }
}

/** @param {string} name */
function giftText(name) {
    const picture = Object.hasOwn(gifts, name) ? /** @type {any} */ (gifts)[name] : "🎁";
    return `${picture} ${Object.hasOwn(gifts, name) ? say(name) : name}`;
}

/** @param {number} count */
function showViewers(count) {
    viewers = Math.max(1, count);
    viewersText.textContent = isIn || isCounted ? say(viewers === 1 ? "viewer" : "viewers", viewers) : "";
}

/** Asks for the number of viewers periodically, while the page watches without an account. */
async function countViewers() {
    clearTimeout(counting);
    // Another server is only for development. The page's policy does not allow requests to it.
    if (!watcher || watching !== "live" || server !== location.origin) return;
    counting = setTimeout(countViewers, countInterval * (0.8 + 0.4 * Math.random()));
    if (document.hidden && isCounted) return;
    const asking = watcher;
    const answer = await fetch(`/room/${encodeURIComponent(room)}/viewers`).catch(() => null);
    const told = answer?.ok ? await answer.json().catch(() => null) : null;
    if (asking !== watcher || !Number.isSafeInteger(told?.viewers)) return;
    isCounted = true;
    showViewers(told.viewers);
}

function showState() {
    const known = ["live", "stopped", "idle", "paused"];
    const watched = { live: "watching", connecting: "connecting", refused: "stopped" };
    const is = watcher ? watched[watching] : (client?.state.is ?? "connecting");
    stateText.textContent = say(watcher || known.includes(is) ? is : "connecting");
    stateText.dataset.state = is === "watching" ? "live" : is;
}

function togglePause() {
    isPaused = !isPaused;
    wasPaused ||= isPaused;
    pause.setAttribute("aria-pressed", String(isPaused));
    if (isPaused) stage.clear();
}

/** Shows once a second how many lines were left out. */
setInterval(() => {
    if (isPaused) return;
    const count = thinner.takeLeftOut();
    if (count) addLine("note left-out", say(wasPaused ? "moreInPause" : "more", count));
    wasPaused = false;
}, 1000);

/* --- Entering and talking --- */

async function enter() {
    if (!client || isIn || isEntering) return;
    const entering = client;
    isEntering = true;
    // The page must not be counted as two viewers.
    await watcher?.stop();
    watcher = null;
    showState();
    await attempted(async () => {
        const { uid, nickName } = entering.session ?? {};
        own = uid ? new RegExp(`"uid":"?${uid}\\b`) : own;
        const count = await entering.enterRoom(room, { name: nickName ?? "" });
        isIn = true;
        isCounted = false;
        showViewers(count);
        showFoot();
    });
    isEntering = false;
    if (!isIn) watch();
}

async function logOut() {
    const left = client;
    if (!left) return;
    leaveButton.disabled = true;
    await tellServer(left, () => left.logOut({ removeDevice: true }));
    await left.close();
    await attempted(() => clearStores([store]));
    tabs.postMessage("left");
    location.reload();
}

function showFoot() {
    leaveButton.hidden = !client?.canResume;
    showViewers(viewers);
    if (isFramed) foot.replaceChildren(way());
    else if (!client?.canResume) foot.replaceChildren(loginForm());
    else if (isIn) foot.replaceChildren(composer(), giftButtons());
    else foot.replaceChildren(h("p", { class: "actions" }, button(say("enter"), enter, { class: "main" })));
    foot.querySelector("input")?.focus();
}

/** The link from a frame to a separate page, where people can log in. */
function way() {
    const address = new URL(location.href);
    for (const name of ["theme", "lang"]) address.searchParams.delete(name);
    const words = [watching === "refused" && `${say("needsAccount")} `];
    return h("p", {}, ...words, h("a", { href: address.href, target: "_blank", rel: "noopener" }, say("open")));
}

function loginForm() {
    const submit = h("button", { class: "main", name: "login" }, say("logIn"));
    const form = h(
        "form",
        { class: "login" },
        h("p", { class: "invitation" }, say(watching === "live" ? "toTalk" : "toWatch")),
        field(say("name"), { name: "name", required: true, maxlength: 256, autocomplete: "username", dir: "auto" }),
        field(say("password"), {
            name: "password",
            type: "password",
            required: true,
            autocomplete: "current-password",
        }),
        h("p", { class: "actions" }, submit, h("button", { name: "register" }, say("register"))),
    );
    form.onsubmit = async (/** @type {SubmitEvent} */ event) => {
        event.preventDefault();
        const isNew = /** @type {any} */ (event.submitter)?.name === "register";
        const credential = { nickName: form.elements.name.value.trim(), password: form.elements.password.value };
        const buttons = [...form.querySelectorAll("button")];
        if (buttons[0].disabled) return;
        for (const one of buttons) one.disabled = true;
        const late = setTimeout(() => (error.textContent = say("noAnswer")), patience);
        await attempted(async () => {
            await (isNew ? client?.register(credential) : client?.logIn(credential));
            error.textContent = "";
        });
        clearTimeout(late);
        for (const one of buttons) one.disabled = false;
    };
    return form;
}

function composer() {
    const text = h("input", {
        name: "text",
        "aria-label": say("saySomething"),
        placeholder: say("saySomething"),
        maxlength: 500,
        dir: "auto",
        autocomplete: "off",
        enterkeyhint: "send",
    });
    const form = h("form", { class: "composer" }, text, h("button", { class: "main" }, say("say")));
    form.onsubmit = async (/** @type {Event} */ event) => {
        event.preventDefault();
        const said = text.value.trim();
        if (!said) return;
        text.value = "";
        const isSaid = await attempted(async () => client?.sayInRoom(room, said));
        // After a failure, the text is in the field again, so that it can be sent again.
        if (!isSaid && !text.value) text.value = said;
    };
    return form;
}

function giftButtons() {
    const give = (/** @type {string} */ name) =>
        attempted(async () => client?.giveInRoom(room, { name, count: 1 }));
    const buttons = Object.entries(gifts).map(([name, picture]) =>
        button(`${picture} ${say(name)}`, () => give(name), { "data-gift": name }),
    );
    return h("p", { class: "actions", role: "group", "aria-label": say("give") }, ...buttons);
}

/* --- The page --- */

function build() {
    const theme = query.get("theme") ?? "";
    if (["dark", "light"].includes(theme)) document.documentElement.dataset.theme = theme;
    document.documentElement.lang = lang;
    document.title = `${room} – ${say("liveRoom")}`;
    const title = h("h1", {}, h("bdi", {}, room), " ", h("span", { class: "faint" }, say("liveRoom")));
    const header = h("header", {}, title, viewersText, stateText, pause, leaveButton);
    root.replaceChildren(header, h("main", {}, stage.element, log, error, foot));
}

/** Watches the room without an account, if the server allows it. */
function watch() {
    const url = new URL("/mqtt", server);
    url.protocol = url.protocol.replace("http", "ws");
    const changed = (/** @type {"connecting" | "live" | "refused"} */ state) => {
        watching = state;
        if (state !== "live") isCounted = false;
        showViewers(viewers);
        showState();
        countViewers();
        const invitation = foot.querySelector(".invitation");
        if (invitation) invitation.textContent = say(state === "live" ? "toTalk" : "toWatch");
        else showFoot();
    };
    watcher = new Watcher(url.href, room, { takes: takesText, happened, changed });
    watcher.start();
}

async function start() {
    build();
    if (isFramed) {
        watch();
        return;
    }
    const opened = await SharedClient.open({
        server,
        name,
        store,
        device: { name: "Live room", appVersion: "0.1" },
        WebSocket: thinned(WebSocket, takesText),
    });
    client = opened;
    opened.on("room", happened);
    opened.on("state", ({ is }) => {
        showState();
        // The user has logged out in this tab or another tab, or the server has refused the login. Start again.
        if (is === "stopped" && isIn) location.reload();
    });
    // The user has logged in, in this tab or another tab.
    opened.on("session", enter);
    // Only the chat shows messages. This device takes them without showing them.
    opened.on("entry", () => {});
    showState();
    if (!opened.canResume) {
        showFoot();
        watch();
        return;
    }
    const isBack = await attempted(() => opened.resume());
    if (isBack) await enter();
    if (!isIn) showFoot();
}

// While the browser keeps the page in its back-forward cache, the page is not a viewer.
addEventListener("pagehide", () => void watcher?.stop());
addEventListener("pageshow", ({ persisted }) => void (persisted && watcher?.start()));
start().catch((failure) => (error.textContent = wordsFor(failure)));
