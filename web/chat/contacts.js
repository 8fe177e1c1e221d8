// Hermes
// SPDX-License-Identifier: Apache-2.0

import { confirmed } from "./dialogs.js";
import { button, h } from "../dom.js";
import { t } from "./i18n.js";

/** @typedef {import("./account.js").Account} Account */
/** @typedef {(account: Account, uid: number) => Promise<any>} Change */

/** The changes of the relation to another account, by the name of the button's text. */
export const changes = {
    /** @type {Change} */
    accept: ({ client }, uid) => client.answerContact(uid, true),
    /** @type {Change} */
    decline: ({ client }, uid) => client.answerContact(uid, false),
    /** @type {Change} */
    remove: ({ client }, uid) => client.removeContact(uid),
    /** @type {Change} */
    block: ({ client }, uid) => client.block(uid),
    /** @type {Change} */
    unblock: ({ client }, uid) => client.unblock(uid),
};

/**
 * The rows of the contacts: accepted contacts, incoming requests, sent requests, and blocked accounts.
 *
 * @param {Account} account
 * @param {(change: Change, uid: number) => any} change
 * @param {(contact: any) => any} open Opens the conversation.
 */
export function contactRows({ contacts, presences, requests }, change, open) {
    return contacts.map((contact) => {
        const { uid, nickName, state } = contact;
        const isOnline = presences.get(uid)?.isOnline;
        const states = { incoming: "asksYou", requested: "asked", blocked: "blocked" };
        const words = t(/** @type {any} */ (states)[state] ?? (isOnline ? "online" : "offline"));
        const request = state === "incoming" ? (requests.get(uid) ?? "") : "";
        // Buttons in the same place have the same key, so that the focus stays there when a row changes.
        const does = (/** @type {keyof typeof changes} */ name, /** @type {string} */ place, more = {}) =>
            button(t(name), () => change(changes[name], uid), { "data-key": `${place} ${uid}`, ...more });
        const remove = async () => {
            if (await confirmed(`${t("remove")}: ${nickName}`, [t("removeContact", nickName)])) change(changes.remove, uid);
        };
        const first = { "data-key": `first ${uid}` };
        const second = { "data-key": `second ${uid}` };
        const actions = {
            incoming: () => [does("accept", "first", { class: "main" }), does("decline", "second"), does("block", "last")],
            accepted: () => [button(t("open"), () => open(contact), first), button(t("remove"), remove, second), does("block", "last")],
            blocked: () => [does("unblock", "last")],
        };
        const made = /** @type {any} */ (actions)[state] ?? (() => [does("block", "last")]);
        const make = () => h(
            "li",
            { class: "person" },
            h("strong", { dir: "auto" }, nickName),
            " ",
            h("span", { class: "faint" }, words),
            request && h("p", { class: "request", dir: "auto" }, request),
            h("div", { class: "actions" }, ...made()),
        );
        return { key: `contact ${uid}`, signature: [nickName, state, isOnline, request], make };
    });
}
