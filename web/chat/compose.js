// Hermes
// SPDX-License-Identifier: Apache-2.0

import { composed, fieldOf, kinds } from "./contents.js";
import { errorOf } from "./dialogs.js";
import { attempt, dialog } from "./dom.js";
import { h } from "../dom.js";
import { t } from "./i18n.js";

/** The longest text of a message, in characters. The field of the conversation has the same limit. */
const maxText = 16_000;
/** The largest size of all attributes together that the server accepts, in bytes. */
const maxAttributeBytes = 4096;

/**
 * Composes a message of any kind that the schema has. A file is given as a URL. Nothing is uploaded.
 *
 * @param {string} begun The text that the user has already typed.
 * @param {(content: any) => Promise<any>} send
 */
export function showCompose(begun, send) {
    const names = ["location", "expression", "image", "sound", "video", "custom", "text"];
    const kind = h("select", { name: "kind" }, ...names.map((name) => h("option", { value: name }, t(name))));
    const fields = h("div");
    const attributes = h("textarea", { name: "attributes", rows: 2, maxlength: maxAttributeBytes, dir: "auto" });
    const show = () => {
        if (kind.value !== "text") {
            fields.replaceChildren(...kinds[kind.value].map(fieldOf));
            return;
        }
        const text = h("textarea", { name: "text", rows: 3, maxlength: maxText, required: true, dir: "auto" });
        text.value = begun;
        fields.replaceChildren(h("label", { class: "field" }, h("span", {}, t("text")), text));
    };
    kind.onchange = show;
    show();
    const form = h(
        "form",
        {},
        h("label", { class: "field" }, h("span", {}, t("kind")), kind),
        fields,
        h("label", { class: "field" }, h("span", {}, t("attributes")), attributes),
        h("button", { class: "main" }, t("send")),
    );
    const element = dialog(t("otherContent"), form);
    form.onsubmit = (/** @type {Event} */ event) => {
        event.preventDefault();
        attempt(errorOf(element), async () => {
            const inputs = [...fields.querySelectorAll("input, textarea")];
            const values = Object.fromEntries(inputs.map((input) => [input.name, input.value]));
            await send(composed(kind.value, values, attributes.value));
            element.close();
        });
    };
}
