// Hermes
// SPDX-License-Identifier: Apache-2.0

/**
 * Makes an element. Children that are texts become text nodes, so that nothing that comes from elsewhere is ever markup.
 *
 * @param {string} name
 * @param {Record<string, any>} attributes Those that begin with "on" are handlers; false and null leave one out.
 * @param {(Node | string | null | false)[]} children
 * @returns {any}
 */
export function h(name, attributes = {}, ...children) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
        if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
        else if (value === true) element.setAttribute(key, "");
        else if (value !== false && value !== null && value !== undefined) element.setAttribute(key, String(value));
    }
    for (const child of children) if (child !== null && child !== false) element.append(child);
    return element;
}

/**
 * @param {string} text
 * @param {() => any} click
 * @param {Record<string, any>} attributes
 */
export const button = (text, click, attributes = {}) =>
    h("button", { type: "button", onclick: click, ...attributes }, text);

/**
 * A field with its label.
 *
 * @param {string} label
 * @param {Record<string, any>} attributes
 */
export const field = (label, attributes) =>
    h("label", { class: "field" }, h("span", {}, label), h("input", attributes));

/**
 * A table that scrolls by itself where the window is narrow.
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
 * @param {string} title Of its button.
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
 * Asks before something is destroyed.
 *
 * @param {string} title The question, which names what it is about.
 * @param {string} text What happens then.
 * @param {string} action The title of the button.
 * @param {string} typed What has to be typed first; empty: nothing.
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
            typed ? field(`Type ${typed} to continue`, {
                autocomplete: "off",
                oninput: (/** @type {any} */ event) => (confirm.disabled = event.target.value !== typed),
            }) : null,
            h("div", { class: "row" }, h("button", { value: "no", autofocus: typed === "" }, "Cancel"), confirm)));
        // Enter in the field takes the first button, which is the harmless one.
        document.body.append(dialog);
        dialog.showModal();
    });
}

/**
 * Shows something that is shown only once.
 *
 * @param {string} title
 * @param {string} text
 * @param {string} secret
 */
export function reveal(title, text, secret) {
    const dialog = h("dialog", { "aria-label": title, onclose: () => dialog.remove() },
        h("form", { method: "dialog" }, h("h2", {}, title), h("p", {}, text), h("pre", { tabindex: "0" }, secret),
            h("button", { class: "main" }, "Done")));
    document.body.append(dialog);
    dialog.showModal();
}

/** @param {number | null | undefined} time In milliseconds since 1970. */
export const timeText = (time) => (time ? new Date(time).toLocaleString() : "never");
