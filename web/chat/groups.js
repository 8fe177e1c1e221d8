// Hermes
// SPDX-License-Identifier: Apache-2.0

import { confirmed, errorOf } from "./dialogs.js";
import { attempt, dialog, redraw } from "./dom.js";
import { button, field, h } from "../dom.js";
import { t } from "./i18n.js";

/**
 * Finds the accounts with these names.
 *
 * @param {import("./account.js").Account} account
 * @param {string} names Separated by commas.
 */
async function uidsOf(account, names) {
    const found = names.split(/[,,、]/).map((name) => name.trim()).filter(Boolean);
    return Promise.all(found.map(async (nickName) => (await account.client.account({ nickName })).uid));
}

/**
 * Creates a group.
 *
 * @param {import("./account.js").Account} account
 * @param {(chat: import("./model.js").Chat) => void} open
 */
export function showNewGroup(account, open) {
    const form = h(
        "form",
        {},
        field(t("groupName"), { name: "group", required: true, maxlength: 256, autocomplete: "off" }),
        field(t("members"), { name: "members", placeholder: t("membersHint"), autocomplete: "off" }),
        h("button", { class: "main" }, t("create")),
    );
    const element = dialog(t("newGroup"), form);
    form.onsubmit = async (/** @type {Event} */ event) => {
        event.preventDefault();
        await attempt(errorOf(element), async () => {
            const name = form.elements.group.value.trim();
            const group = await account.client.createGroup(name, await uidsOf(account, form.elements.members.value));
            const chat = await account.open({ groupId: group.id }, group.name);
            // The closed dialog returns the focus to its old place. Then the opened conversation takes the focus.
            element.close();
            open(chat);
        });
    };
}

/** The times for which a member can be muted, in milliseconds, by the name of the button's text. */
const mutings = { hour: 3_600_000, day: 86_400_000, week: 7 * 86_400_000, year: 365 * 86_400_000 };

/**
 * Asks how long a member is to be muted.
 *
 * @param {string} name
 * @param {(until: number) => any} mute Is called with the end of the muting, in milliseconds since 1970.
 */
function showMuting(name, mute) {
    const choices = Object.entries(mutings).map(([text, time]) =>
        button(t(`for_${text}`), () => {
            element.close();
            mute(Date.now() + time);
        }),
    );
    const element = dialog(t("muteMember", name), h("p", { class: "actions" }, ...choices));
}

/** @param {number} time In milliseconds since 1970. */
const dateText = (time) =>
    new Date(time).toLocaleString(document.documentElement.lang, { dateStyle: "medium", timeStyle: "short" });

/**
 * Shows a group: its name, its members, their roles, and who may write.
 *
 * @param {import("./account.js").Account} account
 * @param {number} groupId
 */
export function showGroup(account, groupId) {
    const { client } = account;
    const body = h("div");
    const element = dialog(t("details"), body);
    const act = (/** @type {() => Promise<any>} */ action, isLast = false) =>
        attempt(errorOf(element), async () => {
            await action();
            if (isLast) element.close();
            else await load();
        });
    const memberRow = (/** @type {any} */ member, /** @type {string} */ myRole) => {
        const { uid, nickName, mutedUntilMs } = member;
        const isOwner = myRole === "owner";
        const isOther = uid !== account.chats.me;
        const isBelow = isOther && (isOwner || (myRole === "administrator" && member.role === "member"));
        const isAdministrator = member.role === "administrator";
        const isMuted = mutedUntilMs > Date.now();
        const change = (/** @type {any} */ changes) =>
            act(() => client.changeMembers(groupId, { changeRoles: [{ uid, mutedUntilMs, ...changes }] }));
        const promote = () => change({ role: isAdministrator ? "ROLE_MEMBER" : "ROLE_ADMINISTRATOR" });
        const handOver = async () =>
            (await confirmed(`${t("makeOwner")}: ${nickName}`)) && change({ role: "ROLE_OWNER", mutedUntilMs: 0 });
        const remove = async () =>
            (await confirmed(`${t("remove")}: ${nickName}`, [t("removeMember", nickName)])) &&
            act(() => client.changeMembers(groupId, { removeUids: [uid] }));
        const mute = () => showMuting(nickName, (until) => change({ mutedUntilMs: until }));
        const role = member.role === "member" ? "" : ` (${t(member.role)})`;
        const muted = isMuted ? ` · ${t("mutedUntil", dateText(mutedUntilMs))}` : "";
        const does = (/** @type {string} */ key, /** @type {() => any} */ action, /** @type {string} */ name) => {
            const label = `${t(key)}: ${nickName}`;
            return button(t(key), action, { "data-key": `${name} ${uid}`, "aria-label": label });
        };
        return h(
            "li",
            {},
            h("span", { class: "grow", dir: "auto" }, `${nickName}${role}${muted}`),
            isOwner && isOther && does(isAdministrator ? "makeMember" : "makeAdministrator", promote, "role"),
            isOwner && isOther && does("makeOwner", handOver, "owner"),
            isBelow && (isMuted ? does("unmute", () => change({ mutedUntilMs: 0 }), "mute") : does("mute", mute, "mute")),
            isBelow && does("remove", remove, "remove"),
        );
    };
    const check = (/** @type {string} */ name, /** @type {string} */ text, /** @type {boolean} */ checked) =>
        h("label", { class: "check" }, h("input", { type: "checkbox", name, checked }), t(text));
    const load = async () => {
        const group = await client.group(groupId);
        const myRole = group.members.find((/** @type {any} */ member) => member.uid === account.chats.me)?.role;
        const isOwner = myRole === "owner";
        const mayChange = isOwner || myRole === "administrator";
        const change = h(
            "form",
            {},
            field(t("groupName"), { name: "group", required: true, maxlength: 256, value: group.name, dir: "auto" }),
            check("muted", "muteAll", group.muted),
            check("historyOpen", "historyOpen", group.historyOpen),
            h("button", { class: "main", "data-key": "save" }, t("save")),
        );
        change.onsubmit = (/** @type {Event} */ event) => {
            event.preventDefault();
            const { group: name, muted, historyOpen } = change.elements;
            const changes = { name: name.value.trim(), muted: muted.checked, historyOpen: historyOpen.checked };
            act(() => client.changeGroup(groupId, changes));
        };
        const hint = { "aria-label": t("membersHint"), placeholder: t("membersHint") };
        const add = h(
            "form",
            { class: "inline" },
            h("input", { name: "members", ...hint, required: true }),
            h("button", { "data-key": "add" }, t("add")),
        );
        add.onsubmit = (/** @type {Event} */ event) => {
            event.preventDefault();
            const names = add.elements.members.value;
            act(async () => client.changeMembers(groupId, { addUids: await uidsOf(account, names) }));
        };
        const leave = async () => (await confirmed(t("leave"))) && act(() => client.leaveGroup(groupId), true);
        const dissolve = async () => (await confirmed(t("dissolve"))) && act(() => client.dissolveGroup(groupId), true);
        const rules = [group.muted && t("muteAll"), group.historyOpen && t("historyOpen")].filter(Boolean);
        redraw(
            body,
            mayChange ? change : h("p", { dir: "auto" }, group.name),
            ...(mayChange ? [] : rules.map((rule) => h("p", { class: "faint" }, rule))),
            h("h3", {}, `${t("members")}: ${group.memberCount}`),
            h("ul", {}, ...group.members.map((/** @type {any} */ member) => memberRow(member, myRole))),
            ...(mayChange ? [add] : []),
            h("p", { class: "actions" }, isOwner ? button(t("dissolve"), dissolve) : button(t("leave"), leave)),
        );
    };
    act(async () => {});
}
