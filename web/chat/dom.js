// Hermes
// SPDX-License-Identifier: Apache-2.0

import { button, h } from "../dom.js";
import { wordsOfError } from "./errors.js";
import { language, t } from "./i18n.js";

const clock = /** @type {const} */ ({ hour: "2-digit", minute: "2-digit" });
const day = /** @type {const} */ ({ month: "short", day: "numeric" });

/**
 * The time. If the day is not today, it has the day, too. If the year is not the present year, it has the year, too.
 *
 * @param {number} time In milliseconds since 1970.
 * @param {number} now
 */
export function timeText(time, now = Date.now()) {
    const isToday = new Date(time).toDateString() === new Date(now).toDateString();
    return isToday ? textOf(time, clock) : textOf(time, { ...dayOf(time, now), ...clock });
}

/**
 * A short text for narrow places: the time if the day is today, otherwise the day.
 *
 * @param {number} time
 * @param {number} now
 */
export function dayText(time, now = Date.now()) {
    const isToday = new Date(time).toDateString() === new Date(now).toDateString();
    return textOf(time, isToday ? clock : dayOf(time, now));
}

/**
 * @param {number} time
 * @param {number} now
 * @returns {Intl.DateTimeFormatOptions}
 */
function dayOf(time, now) {
    return new Date(time).getFullYear() === new Date(now).getFullYear() ? day : { ...day, year: "numeric" };
}

/**
 * @param {number} time
 * @param {Intl.DateTimeFormatOptions} parts
 */
const textOf = (time, parts) => new Date(time).toLocaleString(document.documentElement.lang, parts);

/** @param {any} error */
export const errorText = (error) => wordsOfError(error, language.current === "zh");

let dialogs = 0;

/**
 * Shows a dialog until it is closed.
 *
 * @param {string} title
 * @param {(Node | null)[]} children
 * @returns {any} The dialog.
 */
export function dialog(title, ...children) {
    const close = button(t("close"), () => element.close());
    const id = `dialog-title-${(dialogs += 1)}`;
    const element = h(
        "dialog",
        { "aria-labelledby": id },
        h("h2", { id, dir: "auto" }, title),
        ...children,
        h("p", { class: "error", role: "alert" }),
        h("p", { class: "actions" }, close),
    );
    element.addEventListener("close", () => element.remove());
    document.body.append(element);
    element.showModal();
    return element;
}

/**
 * Replaces the children of a part of the page. The focus stays on the element with the same `data-key`. If there is no
 * such element, the focus stays in the part.
 *
 * @param {HTMLElement} part
 * @param {(Node | string)[]} children
 */
export function redraw(part, ...children) {
    const focused = part.contains(document.activeElement) && document.activeElement;
    part.replaceChildren(...children);
    if (!focused) return;
    const key = focused.getAttribute("data-key");
    const same = key && part.querySelector(`[data-key="${CSS.escape(key)}"]`);
    /** @type {any} */ (same || (part.querySelector("button, input") ?? part.parentElement?.querySelector("button")))?.focus();
}

/**
 * Runs an action of a form or a button. Shows its error in `place`.
 *
 * @param {HTMLElement | null} place
 * @param {() => Promise<any>} action
 * @param {(error: any) => string} words The text for an error.
 * @returns {Promise<boolean>} Whether the action succeeded.
 */
export async function attempt(place, action, words = errorText) {
    if (place) place.textContent = "";
    try {
        await action();
        return true;
    } catch (error) {
        if (place) place.textContent = words(error);
        else console.error(error);
        return false;
    }
}

/**
 * A link if the address begins with http or https; otherwise plain text.
 *
 * @param {string} address
 * @param {string} text
 */
export function link(address, text) {
    const isWeb = /^https?:\/\//i.test(address);
    return isWeb ? h("a", { href: address, target: "_blank", rel: "noopener noreferrer" }, text) : h("span", {}, text);
}

/** @type {WeakMap<Element, () => void>} The drawing that a part waits for until no button in the part is held down. */
const waiting = new WeakMap();

/**
 * Draws a part of the page. While a button in the part is held down, the drawing waits, because a click is lost if its
 * element is replaced before the release. Only the last `draw` of a part is called.
 *
 * @param {Element} part
 * @param {() => void} draw
 */
export function whenReleased(part, draw) {
    if (!part.querySelector("button:active")) {
        waiting.delete(part);
        draw();
        return;
    }
    const isFirst = !waiting.has(part);
    waiting.set(part, draw);
    if (!isFirst) return;
    const released = () => {
        for (const name of releases) removeEventListener(name, released, true);
        // The click follows the release in the same task.
        setTimeout(() => {
            const last = waiting.get(part);
            waiting.delete(part);
            if (last) whenReleased(part, last);
        });
    };
    for (const name of releases) addEventListener(name, released, true);
}

const releases = ["pointerup", "pointercancel", "keyup", "blur"];

/** @type {WeakMap<Element, Map<string, { signature: string, element: Element }>>} */
const shown = new WeakMap();

/**
 * Shows rows in a list. A row with an unchanged signature keeps its element. So focus and clicks are not lost, and
 * screen readers read only new rows.
 *
 * @param {Element} list
 * @param {{ key: string, signature: any, make: (old?: Element) => Element }[]} rows `make` may change and return the
 *   row's old element.
 */
export function showRows(list, rows) {
    const known = shown.get(list) ?? new Map();
    const next = new Map();
    for (const { key, signature: parts, make } of rows) {
        const signature = JSON.stringify([parts, document.documentElement.lang]);
        const old = known.get(key);
        next.set(key, old?.signature === signature ? old : { signature, element: make(old?.element) });
    }
    shown.set(list, next);
    const elements = new Set([...next.values()].map((row) => row.element));
    for (const child of [...list.children]) if (!elements.has(child)) child.remove();
    let place = list.firstElementChild;
    for (const element of elements) {
        if (place && element === place) place = place.nextElementSibling;
        else list.insertBefore(element, place);
    }
}
