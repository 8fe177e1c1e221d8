// Hermes
// SPDX-License-Identifier: Apache-2.0

import { button, field, h } from "../dom.js";
import { locale, t } from "./i18n.js";

/**
 * A table with its own scroll bar for narrow windows.
 *
 * @param {string} caption For screen readers.
 * @param {string[]} titles
 * @param {(Node | string)[][]} rows
 */
export function table(caption, titles, rows) {
    return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
        h("table", {},
            h("thead", {}, h("tr", {}, ...titles.map((title) =>
                title ? h("th", { scope: "col" }, title) : h("td", {})))),
            h("tbody", {}, ...rows.map((row) => h("tr", {}, ...row.map((cell) => h("td", {}, cell)))))));
}

/**
 * A form in one row.
 *
 * @param {any[]} fields
 * @param {string} title The title of the form's button.
 * @param {(values: Record<string, string>, form: any) => Promise<any>} submit
 */
export function form(fields, title, submit) {
    const made = h("form", {
        class: "row",
        onsubmit: async (/** @type {any} */ event) => {
            event.preventDefault();
            /** @type {Record<string, string>} */
            const values = {};
            for (const element of made.elements) {
                if (element.name) values[element.name] = element.type === "checkbox" ? (element.checked ? "1" : "") : element.value;
            }
            await submit(values, made);
        },
    }, ...fields, h("button", { class: "main" }, title));
    return made;
}

/**
 * Asks the user before something is deleted.
 *
 * @param {string} title The question, with the name of the thing to delete.
 * @param {string} text The consequences.
 * @param {string} action The title of the button.
 * @param {string} typed The text that the user has to type first; empty if none.
 * @returns {Promise<boolean>}
 */
export function confirmed(title, text, action, typed = "") {
    return new Promise((resolve) => {
        const confirm = h("button", { class: "danger", value: "yes", disabled: typed !== "" }, action);
        const dialog = h("dialog", { "aria-label": title, onclose: () => {
            dialog.remove();
            resolve(dialog.returnValue === "yes");
        } },
        h("form", { method: "dialog" },
            h("h2", {}, title),
            h("p", {}, text),
            typed ? field(t("Type {0} to continue", typed), {
                autocomplete: "off",
                oninput: (/** @type {any} */ event) => (confirm.disabled = event.target.value !== typed),
            }) : null,
            h("div", { class: "row" }, h("button", { value: "no", autofocus: typed === "" }, t("Cancel")), confirm)));
        // The Enter key in the field presses the first button, which does no harm.
        document.body.append(dialog);
        dialog.showModal();
    });
}

/**
 * Shows a secret that is shown only once.
 *
 * @param {string} title
 * @param {string} text
 * @param {string} secret
 */
export function reveal(title, text, secret) {
    const dialog = h("dialog", { "aria-label": title, onclose: () => dialog.remove() },
        h("form", { method: "dialog" }, h("h2", {}, title), h("p", {}, text), h("pre", { tabindex: "0" }, secret),
            h("button", { class: "main" }, t("Done"))));
    document.body.append(dialog);
    dialog.showModal();
}

/** @param {number | null | undefined} time In milliseconds since 1970. */
export const timeText = (time) => (time ? new Date(time).toLocaleString(locale()) : t("never"));

/** @param {string} text */
export const muted = (text) => h("p", { class: "muted" }, text);

/**
 * A list of values to choose from.
 *
 * @param {string} name
 * @param {string[]} values
 * @param {string} chosen
 */
export const choice = (name, values, chosen) =>
    h("select", { name }, ...values.map((value) => h("option", { value, selected: value === chosen }, value)));

/**
 * A table with pages.
 *
 * @param {{ attempt: (work: () => Promise<any>) => Promise<boolean> }} page
 * @param {(after: number) => Promise<{ rows: (Node | string)[][], next: number | null }>} read
 * @param {string} caption
 * @param {string[]} titles
 */
export function pages(page, read, caption, titles) {
    const element = h("div");
    /** @param {number} after */
    async function show(after) {
        const { rows, next } = await read(after);
        element.replaceChildren(
            rows.length > 0 ? table(caption, titles, rows)
                : next !== null ? muted(t("There is none in this part.")) : after === 0 ? muted(t("There are none.")) : "",
            next === null ? muted(t("These are the last ones.")) : button(t("Next page"), () => page.attempt(() => show(next))));
    }
    return { element, first: () => show(0) };
}
