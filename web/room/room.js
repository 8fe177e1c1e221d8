// Hermes
// SPDX-License-Identifier: Apache-2.0

import { attempt, button, field, h } from "../chat/dom.js";
import { SharedClient } from "../hermes.js";
import { Stage } from "./stage.js";
import { roomOf, Thinner } from "./thinning.js";

/** What people can read: lines of the log a second, and how many at once. */
const readable = { perSecond: 5, burst: 12 };
/** The most lines that the log keeps. */
const maxLines = 100;
const gifts = { rose: "🌹", star: "⭐", rocket: "🚀" };

/** The server: `?server=ws://…` for development, else the page's own. */
const server = new URLSearchParams(location.search).get("server") ?? location.origin;
const room = roomOf(location);
const root = /** @type {HTMLElement} */ (document.getElementById("app"));

const stage = new Stage();
const thinner = new Thinner(readable.perSecond, readable.burst);
const log = h("div", { class: "log", role: "log", "aria-label": "What is said in the room", tabindex: 0 });
const viewersText = h("span", { class: "viewers" });
const stateText = h("span", { class: "state", role: "status" });
const foot = h("div", { class: "foot" });
const error = h("p", { class: "error", role: "alert" });
const pause = button("Pause", togglePause, { "aria-pressed": "false" });
const leaveButton = button("Log out", logOut);
/** @type {SharedClient} */
let client;
let viewers = 0;
let isPaused = false;
/** Whether what was left out was so, at least in part, because of a pause. */
let wasPaused = false;
let isIn = false;
let isEntering = false;

/* --- What happens in the room --- */

/**
 * @param {string} className
 * @param {(Node | string)[]} content
 */
function addLine(className = "", ...content) {
    const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
    log.append(h("p", { class: className }, ...content));
    while (log.children.length > maxLines) log.firstElementChild.remove();
    if (atEnd) log.scrollTop = log.scrollHeight;
}

/** Whether people can read one more line; if not, it is counted. */
function takesLine() {
    if (!isPaused) return thinner.offer(performance.now());
    thinner.leaveOut();
    return false;
}

/** @param {any} event A `hermes.v1.RoomEvent`. */
function happened(event) {
    if (event.room !== room) return;
    const name = event.user?.name || (event.uid ? `#${event.uid}` : "someone");
    const isOwn = event.uid > 0 && event.uid === client.session?.uid;
    // Made only for what is shown: there may be thousands.
    const who = () => h("b", { dir: "auto" }, name);
    if (event.text) {
        const { text } = event.text;
        if (!isPaused) stage.fly(name, text, isOwn);
        if (takesLine()) addLine(isOwn ? "own" : "", who(), " ", h("span", { dir: "auto" }, text));
    } else if (event.gift) {
        const gift = `${giftText(event.gift.name)} × ${Math.max(1, event.gift.count)}`;
        if (!isPaused) stage.give(name, gift);
        if (takesLine()) addLine("note", who(), " gives ", h("bdi", {}, gift));
    } else if (event.notice) {
        // The server's own words are never left out.
        addLine("notice", h("b", {}, "Notice"), " ", h("span", { dir: "auto" }, event.notice.text));
    } else if (event.joined || event.left) {
        if (!isOwn) showViewers(viewers + (event.joined ? 1 : -1));
    } else if (event.entered) {
        showViewers(event.entered.memberCount);
    } else if (event.kicked) {
        isIn = false;
        showFoot();
        const reason = event.kicked.reason ? `: ${event.kicked.reason}` : ".";
        error.textContent = `You were removed from the room${reason}`;
    }
}

/** @param {string} name */
function giftText(name) {
    const picture = Object.hasOwn(gifts, name) ? /** @type {any} */ (gifts)[name] : "🎁";
    return `${picture} ${name}`;
}

/** @param {number} count */
function showViewers(count) {
    viewers = Math.max(1, count);
    viewersText.textContent = isIn ? `${viewers} ${viewers === 1 ? "viewer" : "viewers"}` : "";
}

function showState() {
    const texts = { live: "connected", stopped: "not connected", idle: "not connected", paused: "paused" };
    stateText.textContent = /** @type {any} */ (texts)[client.state.is] ?? "connecting…";
    stateText.dataset.state = client.state.is;
}

function togglePause() {
    isPaused = !isPaused;
    wasPaused ||= isPaused;
    pause.setAttribute("aria-pressed", String(isPaused));
    if (isPaused) stage.clear();
}

/** Says once a second how much was left out. */
setInterval(() => {
    if (isPaused) return;
    const count = thinner.takeLeftOut();
    if (count) addLine("note left-out", `… ${count} more, ${wasPaused ? "during the pause" : "too many to show"}`);
    wasPaused = false;
}, 1000);

/* --- Entering and talking --- */

async function enter() {
    if (isIn || isEntering) return;
    isEntering = true;
    await attempt(error, async () => {
        const count = await client.enterRoom(room, { name: client.session?.nickName ?? "" });
        isIn = true;
        showViewers(count);
        showFoot();
    });
    isEntering = false;
}

async function logOut() {
    await client.logOut({ removeDevice: true }).catch(() => {});
    location.reload();
}

function showFoot() {
    leaveButton.hidden = !client.canResume;
    showViewers(viewers);
    if (!client.canResume) foot.replaceChildren(loginForm());
    else if (isIn) foot.replaceChildren(composer(), giftButtons());
    else foot.replaceChildren(h("p", { class: "actions" }, button("Enter the room", enter, { class: "main" })));
    foot.querySelector("input")?.focus();
}

function loginForm() {
    const submit = h("button", { class: "main", name: "login" }, "Log in");
    const form = h(
        "form",
        { class: "login" },
        h("p", {}, "Log in to watch and talk, or create an account."),
        field("Name", { name: "name", required: true, maxlength: 64, autocomplete: "username", dir: "auto" }),
        field("Password", { name: "password", type: "password", required: true, autocomplete: "current-password" }),
        h("p", { class: "actions" }, submit, h("button", { name: "register" }, "Create account")),
    );
    form.onsubmit = async (/** @type {SubmitEvent} */ event) => {
        event.preventDefault();
        const isNew = /** @type {any} */ (event.submitter)?.name === "register";
        const credential = { nickName: form.elements.name.value.trim(), password: form.elements.password.value };
        await attempt(error, () => (isNew ? client.register(credential) : client.logIn(credential)));
    };
    return form;
}

function composer() {
    const text = h("input", {
        name: "text",
        "aria-label": "Say something",
        placeholder: "Say something",
        maxlength: 500,
        dir: "auto",
        autocomplete: "off",
        enterkeyhint: "send",
    });
    const form = h("form", { class: "composer" }, text, h("button", { class: "main" }, "Say"));
    form.onsubmit = async (/** @type {Event} */ event) => {
        event.preventDefault();
        const said = text.value.trim();
        if (!said) return;
        text.value = "";
        const isSaid = await attempt(error, () => client.sayInRoom(room, said));
        // What could not be said can be sent again.
        if (!isSaid && !text.value) text.value = said;
    };
    return form;
}

function giftButtons() {
    const give = (/** @type {string} */ name) => attempt(error, () => client.giveInRoom(room, { name, count: 1 }));
    const buttons = Object.entries(gifts).map(([name, picture]) =>
        button(`${picture} ${name}`, () => give(name), { "data-gift": name }),
    );
    return h("p", { class: "actions", role: "group", "aria-label": "Give" }, ...buttons);
}

/* --- The page --- */

function build() {
    document.title = `${room} – live room`;
    const title = h("h1", {}, h("bdi", {}, room), " ", h("span", { class: "faint" }, "live room"));
    const header = h("header", {}, title, viewersText, stateText, pause, leaveButton);
    root.replaceChildren(header, h("main", {}, stage.element, log, error, foot));
}

async function start() {
    build();
    client = await SharedClient.open({
        server,
        name: `room ${server}`,
        device: { name: "Live room", appVersion: "0.1" },
    });
    client.on("room", happened);
    client.on("state", ({ is }) => {
        showState();
        // Logged out, in this tab or another, or refused: begin anew.
        if (is === "stopped" && isIn) location.reload();
    });
    // A login in this tab or another.
    client.on("session", enter);
    // Messages are for the chat: this device takes them and shows none.
    client.on("entry", () => {});
    showState();
    if (!client.canResume) {
        showFoot();
        return;
    }
    const isBack = await attempt(error, () => client.resume());
    if (isBack) await enter();
    if (!isIn) showFoot();
}

start().catch((failure) => (error.textContent = String(failure.message ?? failure)));
