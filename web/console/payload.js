// Hermes
// SPDX-License-Identifier: Apache-2.0

import { t } from "./i18n.js";

/** The number of characters of a payload that a line shows. */
const LINE = 500;
/**
 * Control characters, and characters that change the direction of the text next to them. Their numbers are shown
 * instead.
 */
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;

/** The forms in which a payload can be shown. */
export const forms = /** @type {const} */ (["text", "JSON", "hex"]);

/** @param {string} text */
export const visible = (text) =>
    text.replace(HIDDEN, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}`);

/**
 * @param {string} text
 * @param {number} most
 */
export function cut(text, most) {
    const characters = text.length <= most ? [] : [...text];
    if (characters.length <= most) return text;
    return `${characters.slice(0, most).join("")}… ${t("({0} more)", characters.length - most)}`;
}

/**
 * The bytes of a payload.
 *
 * @param {{ text?: string, base64?: string }} payload
 */
const bytes = ({ text, base64 }) =>
    (text === undefined ? Uint8Array.from(atob(base64 ?? ""), (one) => one.charCodeAt(0)) : new TextEncoder().encode(text));

/**
 * A payload as a text.
 *
 * @param {{ text?: string, base64?: string, too_large?: boolean, bytes?: number }} payload
 * @param {string} form One of the forms. A payload that is not a text is shown in hexadecimal digits. A text that is
 *   not JSON is shown unchanged.
 * @param {number} most The longest text, in characters.
 */
export function payloadText(payload, form, most = LINE) {
    if (payload.too_large) return t("a message of {0} bytes", payload.bytes ?? 0);
    if (form === "hex" || payload.text === undefined) {
        const all = bytes(payload);
        const digits = [...all.slice(0, Math.ceil(most / 3))].map((one) => one.toString(16).padStart(2, "0")).join(" ");
        const rest = all.length - Math.ceil(most / 3);
        return rest > 0 ? `${digits}… ${t("({0} more)", rest)}` : digits;
    }
    if (form !== "JSON") return visible(cut(payload.text, most));
    try {
        return visible(cut(JSON.stringify(JSON.parse(payload.text), null, 2), most));
    } catch {
        return visible(cut(payload.text, most));
    }
}
