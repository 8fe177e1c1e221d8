// Hermes
// SPDX-License-Identifier: Apache-2.0

import { button, field, h } from "../dom.js";
import { encoded } from "./api.js";
import { confirmed, form, muted, table } from "./dom.js";
import { counted, t } from "./i18n.js";
import { stage, watch } from "./stream.js";

/** @typedef {import("./views.js").Page} Page */

/**
 * A text that describes an event in a room.
 *
 * @param {any} event
 */
export function eventText(event) {
    switch (event.what) {
        case "text": return `${event.name}: ${event.text}`;
        case "notice": return t("Notice: {0}", event.text);
        case "gift": return t("{0} gives {1} × {2}", event.name, event.count, event.text);
        case "join": return t("{0} comes in", event.name);
        case "leave": return t("{0} leaves", event.name);
        default: return event.too_large ? t("a message of {0} bytes", event.bytes) : event.text ?? `base64: ${event.base64}`;
    }
}

/**
 * @param {Page} page
 */
export async function rooms(page) {
    const list = h("div");
    const watched = stage(page);
    const mayAct = page.api.may("operator");
    let wanted = page.argument;

    /** @param {string} name */
    function begin(name) {
        watched.stop();
        watched.begin(watch(page.api, `rooms/${encoded(name)}/watch`, t("What is said in {0}", name), t("You are watching {0}.", name),
            eventText), h("h2", { tabindex: "-1" }, t("Room {0}", name)), [button(t("Stop watching"), watched.stop)]);
    }

    /** @param {any} room */
    const actions = (room) => h("div", { class: "row" },
        button(t("Watch"), () => begin(room.name), { "aria-label": t("Watch {0}", room.name) }),
        button(t("Close"), () => page.attempt(async () => {
            if (!await confirmed(t("Close the room {0}?", room.name),
                counted(room.members, "Everybody is removed from it: {0} connection. It may come back.",
                    "Everybody is removed from it: {0} connections. They may come back."), t("Close"), room.name)) return;
            const { removed } = await page.api.request("DELETE", `rooms/${encoded(room.name)}/members`);
            page.say(counted(removed, "{0} connection is removed from {1}.", "{0} connections are removed from {1}.", room.name));
            await load();
        }), { class: "danger", "aria-label": t("Close {0}", room.name) }));

    async function load() {
        const text = wanted === "" ? "" : `&text=${encoded(wanted)}`;
        const { rooms: shown, total } = await page.api.get(`rooms?limit=500${text}`);
        list.replaceChildren(total === 0 ? muted(wanted === "" ? t("Nobody is in a room.") : t("There are none."))
            : table(t("Rooms"), [t("Room"), t("Members"), ...(mayAct ? [""] : [])], shown.map((/** @type {any} */ room) =>
                [room.name, String(room.members), ...(mayAct ? [actions(room)] : [])])),
        total > shown.length ? muted(t("These are {0} of {1} rooms.", shown.length, total)) : "");
    }
    await page.attempt(load);
    const room = () => field(t("Room"), { name: "room", required: true, autocomplete: "off", maxlength: 64 });
    return [
        mayAct ? h("div", { class: "panel" }, form([room()], t("Watch"), async (values) => begin(values.room.trim()))) : null,
        watched.element,
        h("div", { class: "panel" }, field(t("Only those with"), {
            type: "search", autocomplete: "off", maxlength: 64, value: wanted, onchange: (/** @type {any} */ event) => {
                wanted = event.target.value.trim();
                page.attempt(load);
            },
        }), list, h("p", {}, button(t("Read again"), () => page.attempt(load)))),
        mayAct ? h("div", { class: "panel" }, h("h2", {}, t("Say something in a room")), form([
            room(), field(t("Text"), { name: "text", required: true, autocomplete: "off", maxlength: 1024 }),
            field(t("As; empty: a notice of the server"), { name: "name", autocomplete: "off", maxlength: 256 }),
        ], t("Say"), ({ room: name, text, name: as }, made) => page.attempt(async () => {
            const { members } = await page.api.request("POST", `rooms/${encoded(name)}/messages`, as ? { text, name: as } : { text });
            made.elements.text.value = "";
            page.say(t("Said to {0} in {1}.", members, name));
        }))) : null,
        mayAct ? h("div", { class: "panel" }, h("h2", {}, t("Remove somebody from a room")), form([
            room(), field(t("Account"), { name: "user", required: true, autocomplete: "off", maxlength: 256 }),
        ], t("Remove"), ({ room: name, user }) => page.attempt(async () => {
            if (!await confirmed(t("Remove {0} from {1}?", user, name), t("The account may come back."), t("Remove"))) return;
            await page.api.request("DELETE", `rooms/${encoded(name)}/members/${encoded(user)}`);
            page.say(t("{0} is removed from {1}.", user, name));
            await load();
        }))) : null,
    ];
}
