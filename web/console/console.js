// Hermes
// SPDX-License-Identifier: Apache-2.0

import { ConsoleAPI, decoded } from "./api.js";
import { apps } from "./apps.js";
import { button, field, h } from "../dom.js";
import { groups } from "./groups.js";
import { language, refusalText, t } from "./i18n.js";
import { mqttClients, mqttSessions } from "./mqtt.js";
import { overview } from "./overview.js";
import { rooms } from "./rooms.js";
import { focusSearch, search, searchBox } from "./search.js";
import { topics } from "./topics.js";
import { log, trace } from "./traffic.js";
import { access, accounts, administrators, audit, configuration, isRefusal } from "./views.js";
import { webhooks } from "./webhooks.js";

/** The views, each with its address, its title, the necessary role, and the function that shows it. */
const views = /** @type {const} */ ([
    ["overview", "Overview", "viewer", overview],
    ["accounts", "Accounts", "viewer", accounts],
    ["groups", "Groups", "viewer", groups],
    ["rooms", "Rooms", "viewer", rooms],
    ["topics", "Topics", "operator", topics],
    ["mqtt", "MQTT clients", "operator", mqttClients],
    ["sessions", "MQTT sessions", "operator", mqttSessions],
    ["trace", "Trace", "operator", trace],
    ["webhooks", "Webhooks", "operator", webhooks],
    ["apps", "Apps", "viewer", apps],
    ["access", "Keys and invitations", "viewer", access],
    ["configuration", "Configuration", "operator", configuration],
    ["log", "Log", "operator", log],
    ["audit", "Audit log", "operator", audit],
    ["administrators", "Administrators", "administrator", administrators],
    // The search box opens this view.
    ["search", "Search", "viewer", search],
]);

const api = new ConsoleAPI();
const app = /** @type {HTMLElement} */ (document.getElementById("app"));
const status = /** @type {HTMLElement} */ (document.getElementById("status"));
/** @type {(() => void)[]} */
let leaving = [];
/**
 * The number of views that were opened. A slow view compares it to find out whether another view was opened in the
 * meantime.
 */
let opened = 0;
const notice = h("p", { class: "error", hidden: true });

/** @param {string} text */
function say(text) {
    status.textContent = text;
    notice.hidden = true;
}

/** @param {string} text */
function complain(text) {
    notice.textContent = text;
    notice.hidden = false;
    status.textContent = text;
}

/**
 * Runs work that the server may refuse, and shows the refusal.
 *
 * @param {() => Promise<any>} work
 */
async function attempt(work) {
    notice.hidden = true;
    try {
        await work();
        return true;
    } catch (error) {
        if (!isRefusal(error)) throw error;
        complain(refusalText(/** @type {any} */ (error)));
        return false;
    }
}

function leave() {
    for (const work of leaving) work();
    leaving = [];
    for (const dialog of document.querySelectorAll("dialog")) dialog.close();
}

/** @param {string} reason */
function logInPage(reason = "") {
    leave();
    opened += 1;
    document.documentElement.lang = language.current;
    document.title = t("Log in · Hermes Console");
    const error = h("p", { class: "error", role: "alert" }, reason);
    const code = field(t("Code of your authenticator app, or a recovery code"), {
        name: "code", autocomplete: "one-time-code", maxlength: 64,
    });
    code.hidden = true;
    const name = field(t("Name"), { name: "name", required: true, autocomplete: "username", maxlength: 64 });
    const submit = h("button", { class: "main" }, t("Log in"));
    const form = h("form", { onsubmit: async (/** @type {any} */ event) => {
        event.preventDefault();
        submit.disabled = true;
        error.textContent = "";
        const values = form.elements;
        try {
            if (await api.logIn(values.name.value, values.password.value, values.code.value)) return frame();
            code.hidden = false;
            values.code.required = true;
            values.code.focus();
            error.textContent = t("A code is needed.");
        } catch (failure) {
            if (!isRefusal(failure)) throw failure;
            error.textContent = refusalText(/** @type {any} */ (failure));
        } finally {
            submit.disabled = false;
        }
    } }, h("h1", {}, t("Hermes Console")), error, name,
    field(t("Password"), { name: "password", type: "password", required: true, autocomplete: "current-password", maxlength: 256 }),
    code, submit);
    app.replaceChildren(h("main", { class: "login" }, form));
    name.querySelector("input").focus();
}

/** The frame around all views. */
function frame() {
    const session = api.session;
    if (!session) return logInPage();
    document.documentElement.lang = language.current;
    const main = h("main", { id: "main", tabindex: "-1" });
    const list = h("ul", {}, ...views.filter(([path, , role]) => path !== "search" && api.may(role)).map(([path, title]) =>
        h("li", {}, h("a", { href: `#${path}`, id: `to-${path}` }, t(title)))));
    app.replaceChildren(
        h("a", { href: "#main", class: "skip", onclick: (/** @type {any} */ event) => {
            event.preventDefault();
            main.focus();
        } }, t("Skip to the content")),
        h("header", {}, h("strong", {}, t("Hermes Console")), searchBox(), h("span", {}, `${session.name}, ${t(session.role)}`),
            button(language.current === "zh" ? "English" : "中文", () => {
                language.toggle();
                frame();
            }),
            button(t("Log out"), () => attempt(async () => {
                await api.logOut();
                logInPage(t("You are logged out."));
            }))),
        h("div", { class: "layout" }, h("nav", { "aria-label": t("Views") }, list), main));
    window.onhashchange = () => { show(main); };
    window.onkeydown = focusSearch;
    return show(main);
}

/** @param {any} main */
async function show(main) {
    if (!api.session) return;
    leave();
    opened += 1;
    const own = opened;
    // The part after the view's name is the view's argument.
    const [asked, ...rest] = location.hash.slice(1).split("/");
    const [path, title, , view] = views.find(([name, , role]) => name === asked && api.may(role)) ?? views[0];
    for (const link of document.querySelectorAll("nav a")) {
        if (link.id === `to-${path}`) link.setAttribute("aria-current", "page");
        else link.removeAttribute("aria-current");
    }
    document.title = `${t(title)} · ${t("Hermes Console")}`;
    notice.hidden = true;
    main.replaceChildren(h("h1", {}, t(title)), notice, h("p", { class: "muted" }, "…"));
    await attempt(async () => {
        const page = { api, argument: decoded(rest.join("/")), say, attempt, onLeave: (/** @type {() => void} */ work) => {
            if (own === opened) leaving.push(work);
            else work();
        } };
        const parts = await view(page);
        if (own !== opened) return;
        main.replaceChildren(h("h1", {}, t(title)), notice, ...parts.filter((part) => part !== null));
    });
    if (own !== opened || !asked) return;
    // Without the option, the focus would scroll the header out of view.
    main.focus({ preventScroll: true });
    scrollTo(0, 0);
}

api.onEnd = () => logInPage(t("The session has ended. Log in again."));
api.resume().then((isLoggedIn) => (isLoggedIn ? frame() : logInPage()))
    .catch((error) => logInPage(isRefusal(error) ? refusalText(error) : error.message));
