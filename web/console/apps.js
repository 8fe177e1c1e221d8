// Hermes
// SPDX-License-Identifier: Apache-2.0

import { h } from "../dom.js";
import { muted, table } from "./dom.js";
import { t } from "./i18n.js";
import { Plot } from "./plot.js";
import { parts, query } from "./reports.js";

const AGAIN = 10000;

/**
 * A list of names to choose from. The chosen name stays in the list, even if no app reports it any more.
 *
 * @param {string} all
 * @param {string[]} names
 * @param {string | null} chosen
 * @param {(name: string | null) => void} choose
 */
function choices(all, names, chosen, choose) {
    const known = [...new Set(chosen === null ? names : [...names, chosen])].sort();
    const list = h("select", { onchange: () => choose(list.selectedIndex === 0 ? null : known[list.selectedIndex - 1]) },
        h("option", { selected: chosen === null }, all),
        ...known.map((name) => h("option", { selected: name === chosen }, name || t("unknown"))));
    return list;
}

/**
 * The apps' reports about deliveries, heartbeats and connections.
 *
 * @param {import("./views.js").Page} page
 */
export async function apps(page) {
    /** @type {{ version: string | null, network: string | null }} */
    const chosen = { version: null, network: null };
    const period = h("select", { onchange: () => load() },
        h("option", { value: "hour" }, t("the last hour")), h("option", { value: "day" }, t("24 hours")),
        h("option", { value: "month" }, t("30 days")));
    const versions = h("label", { class: "field" });
    const networks = h("label", { class: "field" });
    const plots = parts.map(([title]) => new Plot(t(title), "count"));
    const step = h("p", { class: "muted" });
    const sums = h("div");
    let asked = 0;

    /** @param {any[]} groups */
    function choose(groups) {
        const names = (/** @type {string} */ key) => groups.map((group) => group[key]);
        versions.replaceChildren(h("span", {}, t("Version")), choices(t("all"), names("app_version"), chosen.version, (name) => {
            chosen.version = name;
            load();
        }));
        networks.replaceChildren(h("span", {}, t("Network")), choices(t("all"), names("network"), chosen.network, (name) => {
            chosen.network = name;
            load();
        }));
    }

    /** @param {any[]} groups */
    function list(groups) {
        const names = (/** @type {any} */ one) => [one.app_version || t("unknown"), one.network || t("unknown")];
        const [, heartbeats, ends] = parts;
        const shown = groups.filter((one) => (chosen.version ?? one.app_version) === one.app_version
            && (chosen.network ?? one.network) === one.network);
        if (shown.length === 0) return sums.replaceChildren(muted(t("No app has reported anything.")));
        sums.replaceChildren(
            table(t("Deliveries by version and network"), [t("Version"), t("Network"), t("Reports"), t("In 1 s"), t("In 10 s"),
                t("Later"), t("Never"), t("Repeated"), t("Gaps"), t("Repaired")],
            shown.map((one) => [...names(one), ...[one.reports, one.within_1s, one.within_10s, one.later, one.never,
                one.duplicates, one.gaps, one.repaired].map(String)])),
            ...[heartbeats, ends].map(([title, figures]) => table(t(title),
                [t("Version"), t("Network"), ...figures.map(([, name]) => t(name))],
                shown.map((one) => [...names(one), ...figures.map(([key]) => String(one[key]))]))));
    }

    async function refresh() {
        const now = asked += 1;
        const [all, series] = await Promise.all([
            page.api.get(`stats/delivery?period=${period.value}`),
            page.api.get(`stats/delivery/series?${query(period.value, chosen)}`),
        ]);
        // The user has chosen something else in the meantime.
        if (now !== asked) return;
        // An open list must not close while the user uses it.
        if (!versions.contains(document.activeElement) && !networks.contains(document.activeElement)) choose(all.groups);
        list(all.groups);
        step.textContent = series.interval_ms < 60000
            ? t("Each point is the count of {0} seconds.", series.interval_ms / 1000)
            : t("Each point is the count of {0} minutes.", series.interval_ms / 60000);
        parts.forEach(([, figures], index) => plots[index].show(
            figures.map(([key, name]) => /** @type {[string, number[]]} */ ([name, series.figures[key]])),
            series.from_ms, series.interval_ms));
    }

    const load = () => page.attempt(refresh);
    const timer = setInterval(() => {
        if (!document.hidden) refresh().catch(() => page.say(t("The figures cannot be read; the page tries again.")));
    }, AGAIN);
    page.onLeave(() => clearInterval(timer));
    choose([]);
    await load();
    return [
        h("div", { class: "row" }, h("label", { class: "field" }, h("span", {}, t("Figures of")), period), versions, networks),
        step, h("div", { class: "plots" }, ...plots.map((plot) => plot.element)), sums,
    ];
}
