// Hermes
// SPDX-License-Identifier: Apache-2.0

import { attempt, dialog, timeText } from "./dom.js";
import { button, field, h } from "../dom.js";
import { t } from "./i18n.js";

/**
 * Asks before something is destroyed.
 *
 * @param {string} what
 * @returns {Promise<boolean>}
 */
export function confirmed(what) {
    return new Promise((resolve) => {
        const yes = button(what, () => {
            resolve(true);
            element.close();
        });
        const element = dialog(what, h("p", {}, t("sure")), yes);
        element.addEventListener("close", () => resolve(false));
    });
}

/** @param {HTMLElement} element */
const errorOf = (element) => /** @type {HTMLElement} */ (element.querySelector(".error"));

/**
 * The account's devices.
 *
 * @param {import("./account.js").Account} account
 */
export function showDevices(account) {
    const list = h("ul");
    const element = dialog(t("devices"), list);
    const load = async () => {
        const devices = await account.client.devices();
        list.replaceChildren(
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

/**
 * Finds the accounts of these names.
 *
 * @param {import("./account.js").Account} account
 * @param {string} names With commas between.
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
        field(t("groupName"), { name: "group", required: true, maxlength: 64, autocomplete: "off" }),
        field(t("members"), { name: "members", placeholder: t("membersHint"), autocomplete: "off" }),
        h("button", { class: "main" }, t("create")),
    );
    const element = dialog(t("newGroup"), form);
    form.onsubmit = async (/** @type {Event} */ event) => {
        event.preventDefault();
        await attempt(errorOf(element), async () => {
            const name = form.elements.group.value.trim();
            const group = await account.client.createGroup(name, await uidsOf(account, form.elements.members.value));
            open(await account.open({ groupId: group.id }, group.name));
            element.close();
        });
    };
}

/**
 * A group's name, members and roles.
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
        const isMe = member.uid === account.chats.me;
        const isOwner = myRole === "owner";
        const mayRemove = !isMe && (isOwner || (myRole === "administrator" && member.role === "member"));
        const isAdministrator = member.role === "administrator";
        const role = isAdministrator ? "ROLE_MEMBER" : "ROLE_ADMINISTRATOR";
        const promote = () => act(() => client.changeMembers(groupId, { changeRoles: [{ uid: member.uid, role }] }));
        const remove = () => act(() => client.changeMembers(groupId, { removeUids: [member.uid] }));
        const title = member.role === "member" ? member.nickName : `${member.nickName} (${t(member.role)})`;
        return h(
            "li",
            {},
            h("span", { class: "grow", dir: "auto" }, title),
            isOwner && !isMe && button(t(isAdministrator ? "makeMember" : "makeAdministrator"), promote),
            mayRemove && button(t("remove"), remove),
        );
    };
    const load = async () => {
        const group = await client.group(groupId);
        const myRole = group.members.find((/** @type {any} */ member) => member.uid === account.chats.me)?.role;
        const isOwner = myRole === "owner";
        const mayChange = myRole === "owner" || myRole === "administrator";
        const muting = h("input", { type: "checkbox", name: "muted", checked: group.muted });
        const rename = h(
            "form",
            {},
            field(t("groupName"), { name: "group", required: true, maxlength: 64, value: group.name }),
            h("label", { class: "check" }, muting, t("mute")),
            h("button", { class: "main" }, t("save")),
        );
        rename.onsubmit = (/** @type {Event} */ event) => {
            event.preventDefault();
            const { group: name, muted } = rename.elements;
            act(() => client.changeGroup(groupId, { name: name.value.trim(), muted: muted.checked }));
        };
        const hint = { "aria-label": t("membersHint"), placeholder: t("membersHint") };
        const add = h(
            "form",
            { class: "inline" },
            h("input", { name: "members", ...hint, required: true }),
            h("button", {}, t("add")),
        );
        add.onsubmit = (/** @type {Event} */ event) => {
            event.preventDefault();
            const names = add.elements.members.value;
            act(async () => client.changeMembers(groupId, { addUids: await uidsOf(account, names) }));
        };
        const leave = async () => (await confirmed(t("leave"))) && act(() => client.leaveGroup(groupId), true);
        const dissolve = async () => (await confirmed(t("dissolve"))) && act(() => client.dissolveGroup(groupId), true);
        body.replaceChildren(
            mayChange ? rename : h("p", {}, group.name),
            h("h3", {}, `${t("members")}: ${group.memberCount}`),
            h("ul", {}, ...group.members.map((/** @type {any} */ member) => memberRow(member, myRole))),
            ...(mayChange ? [add] : []),
            h("p", { class: "actions" }, isOwner ? button(t("dissolve"), dissolve) : button(t("leave"), leave)),
        );
    };
    act(async () => {});
}
