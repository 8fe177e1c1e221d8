// Hermes
// SPDX-License-Identifier: Apache-2.0

import { attempt, dialog, redraw, timeText } from "./dom.js";
import { button, h } from "../dom.js";
import { t } from "./i18n.js";

/**
 * Asks the user before something is deleted.
 *
 * @param {string} what
 * @param {string[]} words The consequences.
 * @returns {Promise<boolean>}
 */
export function confirmed(what, words = [t("sure")]) {
    return new Promise((resolve) => {
        const yes = button(what, () => {
            resolve(true);
            element.close();
        });
        const element = dialog(what, ...words.map((text) => h("p", { dir: "auto" }, text)), yes);
        element.addEventListener("close", () => resolve(false));
    });
}

/** @param {HTMLElement} element */
export const errorOf = (element) => /** @type {HTMLElement} */ (element.querySelector(".error"));

/**
 * Shows a dialog until an action has ended. If the action fails, the dialog shows the error and can be closed.
 *
 * @param {string} title
 * @param {string} words
 * @param {() => Promise<any>} action
 * @returns {Promise<boolean>} Whether the action succeeded.
 */
export async function waitFor(title, words, action) {
    const element = dialog(title, h("p", { role: "status" }, words));
    const close = element.querySelector(".actions button");
    const stay = (/** @type {Event} */ event) => event.preventDefault();
    close.hidden = true;
    // Browsers without support for the attribute send the event `cancel`.
    element.setAttribute("closedby", "none");
    element.addEventListener("cancel", stay);
    const isDone = await attempt(errorOf(element), action);
    if (isDone) {
        element.close();
        return true;
    }
    element.removeEventListener("cancel", stay);
    element.removeAttribute("closedby");
    close.hidden = false;
    close.focus();
    return false;
}

/**
 * Shows the account's devices.
 *
 * @param {import("./account.js").Account} account
 */
export function showDevices(account) {
    const list = h("ul");
    const element = dialog(t("devices"), list);
    const load = async () => {
        const devices = await account.client.devices();
        redraw(
            list,
            ...devices.map((device) => {
                const { isCurrent, isOnline, lastSeenMs, platform, appVersion } = device;
                const name = device.name || device.id;
                const words = [name, platform, appVersion].filter(Boolean).join(" · ");
                const seen = isCurrent ? t("thisDevice") : isOnline ? t("online") : timeText(lastSeenMs);
                const remove = async () => {
                    if (!(await confirmed(`${t("remove")}: ${name}`))) return;
                    await attempt(errorOf(element), async () => {
                        await account.client.removeDevice(device.id);
                        await load();
                    });
                };
                const title = h("span", { class: "grow", dir: "auto" }, `${words} (${seen})`);
                return h("li", {}, title, !isCurrent && button(t("remove"), remove));
            }),
        );
    };
    attempt(errorOf(element), load);
}
