// Hermes
// SPDX-License-Identifier: Apache-2.0

import { h } from "../dom.js";
import { muted, timeText } from "./dom.js";
import { t } from "./i18n.js";
import { Plot } from "./plot.js";
import { Series, plots } from "./series.js";

const AGAIN = 10000;

/**
 * The figures over time, and facts about the server.
 *
 * @param {import("./views.js").Page} page
 */
export async function overview(page) {
    const facts = h("dl");
    const grid = h("div", { class: "plots" });
    const span = h("select", { onchange: () => load() },
        h("option", { value: "hour" }, t("the last hour")), h("option", { value: "month" }, t("30 days")));
    const made = new Map(plots.map(([name, title, kind]) => [name, new Plot(t(title), kind)]));
    const explanation = muted(t("Of each half-hour: the mean, and as a thin line the maximum."));
    let series = new Series();

    function show() {
        for (const [name, plot] of made) {
            const figures = series.of(name);
            const isKnown = figures.some(([, values]) => values.some((value) => value !== null));
            if (!isKnown) plot.element.remove();
            else plot.show(figures, series.from, series.interval, series.of(name, series.maxima));
        }
        // Keep the order of the list, also for plots whose figures were unknown until now.
        const shown = [...made].filter(([name]) =>
            series.of(name).some(([, values]) => values.some((value) => value !== null)));
        shown.forEach(([, plot], index) => {
            if (grid.children[index] !== plot.element) grid.insertBefore(plot.element, grid.children[index] ?? null);
        });
    }

    async function load() {
        explanation.hidden = span.value !== "month";
        series = new Series(span.value === "month" ? 1440 : 360);
        await page.attempt(async () => {
            series.take(await page.api.get(`figures?span=${span.value}`));
            show();
        });
    }

    async function refresh() {
        const about = await page.api.get("overview");
        facts.replaceChildren(
            h("dt", {}, t("Version")), h("dd", {}, about.version),
            h("dt", {}, t("Time")), h("dd", {}, timeText(about.time_ms)),
            h("dt", {}, t("Devices online")), h("dd", {}, String(about.online)),
            h("dt", {}, t("Listeners")),
            h("dd", {}, ...about.listeners.map((/** @type {any} */ one) =>
                h("div", {}, `${one.name} ${one.host}:${one.port}`))));
        if (span.value !== "hour" || series.length === 0) return;
        series.take(await page.api.get(`figures?span=hour&after_ms=${series.last}`));
        show();
    }

    const timer = setInterval(() => {
        if (!document.hidden) refresh().catch(() => page.say(t("The figures cannot be read; the page tries again.")));
    }, AGAIN);
    page.onLeave(() => clearInterval(timer));
    await load();
    await page.attempt(refresh);
    return [
        h("div", { class: "panel" }, h("h2", {}, t("This server")), facts),
        h("label", { class: "field" }, h("span", {}, t("Figures of")), span), explanation, grid,
    ];
}
