// Hermes
// SPDX-License-Identifier: Apache-2.0

import { link } from "./dom.js";
import { h } from "../dom.js";
import { t } from "./i18n.js";

/**
 * A field of a kind of content, and of the form that composes such a content. `type` is the type of the input element.
 * It is "data" for bytes, which the user types as a text.
 *
 * @typedef {{ name: string, type: "url" | "text" | "number" | "data", required?: boolean, min?: number, max?: number,
 *   step?: string, limit?: number }} Field `limit` is in characters.
 */

const url = { type: /** @type {const} */ ("url"), limit: 1024 };
const text = { type: /** @type {const} */ ("text") };
const pixels = { type: /** @type {const} */ ("number"), min: 0, max: 4_294_967_295, step: "1" };
const seconds = { type: /** @type {const} */ ("number"), min: 0, step: "any" };
const degrees = { type: /** @type {const} */ ("number"), required: true, step: "any" };

/**
 * The kinds of `hermes.v1.Content`, except plain text, with their fields.
 *
 * @type {Record<string, Field[]>}
 */
export const kinds = {
    image: [{ name: "url", ...url, required: true }, { name: "width", ...pixels }, { name: "height", ...pixels }],
    sound: [
        { name: "sourceUrl", ...url, required: true },
        { name: "durationSeconds", ...seconds },
        { name: "fileName", ...text, limit: 256 },
        { name: "locationUrl", ...url },
    ],
    video: [
        { name: "url", ...url, required: true },
        { name: "durationSeconds", ...seconds },
        { name: "thumbnailUrl", ...url },
    ],
    location: [
        { name: "latitude", ...degrees, min: -90, max: 90 },
        { name: "longitude", ...degrees, min: -180, max: 180 },
        { name: "label", ...text, limit: 256 },
    ],
    expression: [
        { name: "id", type: "number", required: true, min: -2_147_483_648, max: 2_147_483_647, step: "1" },
        { name: "name", ...text, limit: 64 },
    ],
    custom: [
        { name: "type", ...text, required: true, limit: 64 },
        { name: "data", type: "data", limit: 65_536 },
    ],
};

/** The largest number of attributes that the server accepts. */
const maxAttributes = 32;
/** The number of base64 characters of a custom content that are decoded. It is more than the page shows. */
const maxDecoded = 48_000;

/**
 * Makes a content from the values of a form.
 *
 * @param {string} kind "text" or one of `kinds`.
 * @param {Record<string, string>} values By the names of the fields.
 * @param {string} attributes One attribute per line, with "=" between name and value.
 */
export function composed(kind, values, attributes) {
    const pairs = attributes.split("\n").map((line) => line.trim()).filter(Boolean).map((line) => line.split("="));
    if (pairs.length > maxAttributes || pairs.some((pair) => pair.length < 2 || !pair[0].trim())) {
        throw new Error(t("attributesWrong", maxAttributes));
    }
    // The server treats names that are equal after normalization as the same name.
    const named = Object.fromEntries(pairs.map(([name, ...value]) => [name.trim().normalize(), value.join("=").trim()]));
    if (kind === "text") return { text: values.text, attributes: named };
    const fields = kinds[kind].map(({ name, type }) => {
        const value = values[name].trim();
        if (type === "number") return [name, Number(value)];
        return [name, type === "data" ? base64(value) : value];
    });
    return { [kind]: Object.fromEntries(fields), attributes: named };
}

/** @param {string} value */
const base64 = (value) => btoa(Array.from(new TextEncoder().encode(value), (byte) => String.fromCharCode(byte)).join(""));

/**
 * A short text that describes a content.
 *
 * @param {any} content
 */
export function summary(content) {
    const { text, image, sound, video, location, expression, custom, typed, data } = content;
    if (typeof text === "string") return beginning(text, 200);
    if (image) return t("image");
    if (sound) return t("sound");
    if (video) return t("video");
    if (location) return `${t("location")}: ${location.label}`;
    if (expression) return expression.name || `${t("expression")} ${expression.id}`;
    // A push without a text.
    if (typed?.type || custom) return t("customKind", (typed ?? custom).type);
    return t(typed || data ? "custom" : "unknownContent");
}

/**
 * The beginning of a text. It never ends in the middle of a character.
 *
 * @param {string} text
 * @param {number} limit
 */
export function beginning(text, limit) {
    return text.length > limit ? text.slice(0, limit).replace(/[\ud800-\udbff]$/, "") : text;
}

/**
 * The nodes that show a content. Pictures are links, because the page loads nothing from other hosts.
 *
 * @param {any} content
 * @returns {(Node | string | false)[]}
 */
export function body(content) {
    const { image, sound, video, location } = content;
    if (image) {
        const size = image.width && image.height ? ` (${image.width} × ${image.height})` : "";
        return [link(image.url, `${t("image")}: ${image.url}`), size];
    }
    if (sound) return [link(sound.sourceUrl, `${t("sound")}: ${sound.fileName || sound.sourceUrl}`), length(sound)];
    if (video) {
        const still = video.thumbnailUrl && link(video.thumbnailUrl, t("field_thumbnailUrl"));
        return [link(video.url, `${t("video")}: ${video.url}`), length(video), still && " · ", still || false];
    }
    if (location) {
        const { latitude, longitude, label } = location;
        const words = `${t("location")}: ${label} ${latitude.toFixed(5)}, ${longitude.toFixed(5)}`;
        return [link(`https://www.openstreetmap.org/?mlat=${latitude}&mlon=${longitude}`, words)];
    }
    return [summary(content)];
}

/** @param {{ durationSeconds: number }} content */
function length({ durationSeconds }) {
    return durationSeconds > 0 ? ` (${Math.round(durationSeconds * 10) / 10} s)` : "";
}

/**
 * The additional lines of a content: the application's data as a text or its size, the kind and size of a push's typed
 * message, and the attributes.
 *
 * @param {any} content
 */
export function extra({ text, custom, typed, data, attributes }) {
    // Maps have no order on the wire.
    const pairs = Object.entries(attributes ?? {}).map(([name, value]) => `${name}: ${value}`).sort();
    const size = typed ? t("bytes", typed.bytes) : "";
    const named = typed?.type && text ? `${typed.type}: ${size}` : size;
    return [custom?.data ? dataText(custom.data) : (data ?? ""), named, ...pairs].filter(Boolean).join("\n");
}

/**
 * The bytes as a text, or their number if they are not a text.
 *
 * @param {string} data In base64.
 */
function dataText(data) {
    const count = Math.floor((data.length * 3) / 4) - (/=*$/.exec(data)?.[0].length ?? 0);
    try {
        const raw = atob(data.slice(0, maxDecoded));
        const bytes = Uint8Array.from(raw, (character) => character.charCodeAt(0));
        const isWhole = data.length <= maxDecoded;
        // The last character may be incomplete.
        const words = new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: !isWhole });
        if (!/[\u0000-\u0008\u000b-\u001f\u007f]/.test(words)) return isWhole ? words : `${words}…`;
    } catch {
        // The bytes are not a text.
    }
    return t("bytes", count);
}

/**
 * A field of the form that composes a content.
 *
 * @param {Field} field
 */
export function fieldOf({ name, type, limit, required = false, ...bounds }) {
    const label = h("span", {}, t(`field_${name}`) + (required ? "" : ` (${t("optional")})`));
    const attributes = { name, maxlength: limit, required, dir: "auto" };
    const input = type === "data"
        ? h("textarea", { rows: 3, ...attributes })
        : h("input", { type, ...bounds, ...attributes });
    return h("label", { class: "field" }, label, input);
}
