// Hermes
// SPDX-License-Identifier: Apache-2.0

import { chinese } from "./zh.js";

const key = "hermes-console/language";

export const language = {
    current: localStorage.getItem(key) ?? (navigator.language.startsWith("zh") ? "zh" : "en"),
    toggle() {
        this.current = this.current === "zh" ? "en" : "zh";
        localStorage.setItem(key, this.current);
    },
};

/**
 * A text of the page in its language.
 *
 * @param {string} text In English.
 * @param {(string | number)[]} values Stand for {0}, {1} and so on.
 */
export function t(text, ...values) {
    const found = (language.current === "zh" ? chinese[text] : undefined) ?? text;
    return found.replace(/\{(\d)\}/g, (_, index) => String(values[Number(index)] ?? ""));
}

/** For dates. */
export const locale = () => (language.current === "zh" ? "zh-CN" : undefined);
