// Hermes
// SPDX-License-Identifier: Apache-2.0

import { button, field, h } from "../dom.js";
import { encoded } from "./api.js";
import { confirmed, form, muted, pages, table, timeText } from "./dom.js";
import { counted, t } from "./i18n.js";

/** @typedef {import("./views.js").Page} Page */

/**
 * The number of members that are shown at once. It is limited, because each member has controls that take time to draw.
 */
const membersAtOnce = 100;

/**
 * The groups of all accounts, with their members.
 *
 * @param {Page} page
 */
export async function groups(page) {
    const detail = h("div");
    let text = "";

    const list = pages(page, async (after) => {
        const { groups: found, next } = await page.api.get(`groups?after=${after}&limit=50${text ? `&text=${encoded(text)}` : ""}`);
        return {
            rows: found.map((/** @type {any} */ group) => [
                String(group.number), group.name, String(group.members), group.muted ? t("yes") : t("no"),
                timeText(group.created_at_ms),
                button(t("Members"), () => page.attempt(() => open(group.number)), { "aria-label": t("Members of {0}", group.name) }),
            ]),
            next,
        };
    }, t("Groups"), [t("Number"), t("Name"), t("Members"), t("Muted"), t("Created"), ""]);

    /**
     * @param {any} group
     * @param {any} member
     */
    function tools(group, member) {
        const path = `groups/${group.number}/members/${member.uid}`;
        const shown = [];
        if (page.api.may("administrator") && member.role !== "owner") {
            const roles = h("select", { name: "role", "aria-label": t("Role of {0}", member.nick_name) },
                ...["member", "administrator", "owner"].map((role) =>
                    h("option", { value: role, selected: role === member.role }, t(role))));
            shown.push(roles, button(t("Change role"), () => page.attempt(async () => {
                const role = roles.value;
                if (role === member.role) return;
                const what = role === "owner" ? t("The present owner becomes an administrator of the group.")
                    : t("The members see it as a change by the owner.");
                if (!await confirmed(t("Make {0} {1} of {2}?", member.nick_name, t(role), group.name), what, t("Change role"))) return;
                await page.api.request("PATCH", path, { role });
                page.say(t("{0} has another role.", member.nick_name));
                await open(group.number);
            }), { "aria-label": t("Change the role of {0}", member.nick_name) }));
        }
        if (page.api.may("operator") && member.role !== "owner") {
            shown.push(button(t("Remove"), () => page.attempt(async () => {
                if (!await confirmed(t("Remove {0} from {1}?", member.nick_name, group.name),
                    t("The members see it as a change by the owner."), t("Remove"))) return;
                await page.api.request("DELETE", path);
                page.say(t("{0} is removed from {1}.", member.nick_name, group.name));
                await open(group.number);
            }), { class: "danger", "aria-label": t("Remove {0}", member.nick_name) }));
        }
        return shown.length > 0 ? h("div", { class: "row" }, ...shown) : "";
    }

    /** @param {any} group */
    const dissolution = (group) => button(t("Dissolve the group"), () => page.attempt(async () => {
        if (!await confirmed(t("Dissolve {0}?", group.name), counted(group.members, "Its {0} member loses it for good.", "Its {0} members lose it for good."),
            t("Dissolve the group"), group.name)) return;
        await page.api.request("DELETE", `groups/${group.number}`);
        page.say(t("{0} is dissolved.", group.name));
        detail.replaceChildren();
        await list.first();
    }), { class: "danger" });

    /** @param {number | string} number */
    async function open(number) {
        detail.replaceChildren();
        const { group, members } = await page.api.get(`groups/${encoded(number)}`);
        const title = h("h2", { tabindex: "-1" }, t("Group {0}: {1}", group.number, group.name));
        const part = h("div");
        /** @type {(from: number) => void} */
        const show = (from) => part.replaceChildren(
            table(t("Members of {0}", group.name), [t("Account"), t("Role"), t("Muted until"), ""],
                members.slice(from, from + membersAtOnce).map((/** @type {any} */ member) => [
                    h("a", { href: `#accounts/${member.uid}` }, member.nick_name || `#${member.uid}`), t(member.role),
                    member.muted_until_ms > Date.now() ? timeText(member.muted_until_ms) : "", tools(group, member),
                ])),
            from + membersAtOnce < members.length ? button(t("Next page"), () => show(from + membersAtOnce))
                : from > 0 ? muted(t("These are the last ones.")) : "");
        show(0);
        detail.replaceChildren(h("section", { class: "panel" }, title, part,
            page.api.may("administrator") ? h("p", {}, dissolution(group)) : null));
        title.focus();
    }

    await page.attempt(list.first);
    if (page.argument) await page.attempt(() => open(page.argument));
    return [
        h("div", { class: "panel" }, form([field(t("Part of the name; empty: all"), { name: "text", autocomplete: "off", maxlength: 256 })],
            t("Search"), (values) => page.attempt(() => {
                text = values.text.trim();
                detail.replaceChildren();
                return list.first();
            }))),
        list.element, detail,
    ];
}
