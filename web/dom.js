// Hermes
// SPDX-License-Identifier: Apache-2.0

/**
 * Makes an element. Texts become text nodes, so that text from other people is never read as markup.
 *
 * @param {string} name
 * @param {Record<string, any>} attributes Attributes that begin with "on" are handlers. An attribute with the value
 *   false or null is left out.
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
 * A button with a text.
 *
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
