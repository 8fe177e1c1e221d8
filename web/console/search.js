// Hermes
// SPDX-License-Identifier: Apache-2.0

import { button, field, h } from "../dom.js";
import { encoded } from "./api.js";
import { muted, table } from "./dom.js";
import { t } from "./i18n.js";
import { visible } from "./payload.js";

/** The kinds of results. Each has a title and the view that shows such a result. */
const kinds = /** @type {Record<string, readonly [title: string, view: string]>} */ ({
    account: ["Account", "accounts"],
    device: ["Device", "accounts"],
    group: ["Group", "groups"],
    room: ["Room", "rooms"],
    invitation: ["Invitation", "access"],
    retained: ["Retained", "topics"],
    client: ["MQTT client", "mqtt"],
    session: ["MQTT session", "sessions"],
    key: ["API key", "access"],
    message: ["Message", "trace"],
    webhook: ["Webhook", "webhooks"],
    setting: ["Setting", "configuration"],
    audit: ["Audit entry", "audit"],
    log: ["Log line", "log"],
    administrator: ["Administrator", "administrators"],
});

/** The address of a search. */
const addressOf = (/** @type {string} */ text) => `#search/${encoded(text)}`;

/** The search box of the frame. The slash key focuses it. */
export function searchBox() {
    const element = h("form", { class: "search", role: "search", onsubmit: (/** @type {any} */ event) => {
        event.preventDefault();
        const text = input.value.trim();
        if (text) location.hash = addressOf(text);
    } }, field(t("Search everything"), {
        type: "search", id: "search", autocomplete: "off", maxlength: 256, required: true, placeholder: "/", "aria-keyshortcuts": "/",
    }), h("button", {}, t("Find")));
    const input = element.querySelector("input");
    return element;
}

/**
 * Focuses the search box, unless the key is meant for something else.
 *
 * @param {KeyboardEvent} event
 */
export function focusSearch(event) {
    const target = /** @type {any} */ (event.target);
    const isTyping = target instanceof HTMLElement && (target.isContentEditable || target.matches("input, textarea, select"));
    if (event.key !== "/" || event.ctrlKey || event.altKey || event.metaKey || isTyping || document.querySelector("dialog")) return;
    const input = /** @type {HTMLInputElement | null} */ (document.getElementById("search"));
    if (!input) return;
    event.preventDefault();
    input.focus();
    input.select();
}

/**
 * The results for a text.
 *
 * @param {import("./views.js").Page} page
 */
export async function search(page) {
    const text = page.argument.trim();
    if (!text) return [muted(t("Type a text into the search box; the key / leads there."))];
    const list = h("div");
    async function load() {
        const { results, more } = await page.api.get(`search?text=${encoded(text)}`);
        const known = results.filter((/** @type {any} */ one) => Object.hasOwn(kinds, one.kind));
        page.say(t("{0} found.", known.length));
        list.replaceChildren(h("h2", {}, t("Results for “{0}”", visible(text))),
            known.length === 0 ? muted(t("Nothing has this text in its name, or as its id."))
                : table(t("Results"), [t("Kind"), t("Name"), t("More")], known.map((/** @type {any} */ one) => {
                    const [title, view] = kinds[one.kind];
                    return [t(title), h("a", { href: `#${view}/${encoded(one.id)}` }, visible(one.title)), visible(one.detail)];
                })),
            more.length > 0 ? muted(t("There are more of: {0}. A longer text narrows them down.",
                more.filter((/** @type {string} */ kind) => Object.hasOwn(kinds, kind))
                    .map((/** @type {string} */ kind) => t(kinds[kind][0])).join(", "))) : "");
    }
    await page.attempt(load);
    return [list, h("p", {}, button(t("Read again"), () => page.attempt(load)))];
}
