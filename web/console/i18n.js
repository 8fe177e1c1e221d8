// Hermes
// SPDX-License-Identifier: Apache-2.0

import { chinese, problems } from "./zh.js";

const key = "hermes-console/language";

/** The choice of an earlier visit; null if there is none, or if the browser stores nothing for this page. */
function chosen() {
    try {
        return localStorage.getItem(key);
    } catch {
        return null;
    }
}

export const language = {
    current: chosen() ?? (navigator.language.startsWith("zh") ? "zh" : "en"),
    toggle() {
        this.current = this.current === "zh" ? "en" : "zh";
        try {
            localStorage.setItem(key, this.current);
        } catch {
            // The choice applies to this visit only.
        }
    },
};

/**
 * A text in the page's language.
 *
 * @param {string} text In English.
 * @param {(string | number)[]} values The values that replace {0}, {1} and so on.
 */
export const t = (text, ...values) => filled((language.current === "zh" ? chinese[text] : undefined) ?? text, values);

/**
 * @param {string} text
 * @param {(string | number)[]} values
 */
const filled = (text, values) => text.replace(/\{(\d)\}/g, (_, index) => String(values[Number(index)] ?? ""));

/**
 * A text with a number of things.
 *
 * @param {number} count The number that replaces {0}.
 * @param {string} one In English, for one thing.
 * @param {string} many In English, for all other numbers.
 * @param {(string | number)[]} values The values that replace {1} and so on.
 */
export const counted = (count, one, many, ...values) => t(count === 1 ? one : many, count, ...values);

/**
 * A value of the server in the page's language. A value that is not one of the fixed values stays unchanged.
 *
 * @param {string} value
 */
export const word = (value) => (language.current === "zh" && Object.hasOwn(chinese, value) ? chinese[value] : value);

/**
 * The text of an error by its code; the server's own text if the page has none.
 *
 * @param {{ code: number, message: string, status: number }} refusal
 */
export function refusalText({ code, message, status }) {
    const known = language.current === "zh" ? problems[code] : undefined;
    return known ? filled(known, [message, status]) : message;
}

/** For dates. */
export const locale = () => (language.current === "zh" ? "zh-CN" : undefined);
