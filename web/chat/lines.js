// Hermes
// SPDX-License-Identifier: Apache-2.0

import { button, h, link, showRows, timeText } from "./dom.js";
import { t } from "./i18n.js";

/** The time within which the server lets a message be recalled, in milliseconds. */
const recallTime = 120_000;

/**
 * The words for a content.
 *
 * @param {any} content
 */
export function summary(content) {
    const { text, image, sound, video, location, expression, custom } = content;
    if (typeof text === "string") return text;
    if (image) return t("image");
    if (sound) return t("sound");
    if (video) return t("video");
    if (location) return `${t("location")}: ${location.label}`;
    if (expression) return expression.name;
    return custom ? t("custom", custom.type) : t("unknownContent");
}

/**
 * A content. Pictures of other hosts are links, because the page loads nothing from elsewhere.
 *
 * @param {any} content
 */
function body(content) {
    const { text, image, sound, video, location } = content;
    if (typeof text === "string") return text;
    if (image) return link(image.url, `${t("image")}: ${image.url}`);
    if (sound) return link(sound.sourceUrl, `${t("sound")}: ${sound.fileName || sound.sourceUrl}`);
    if (video) return link(video.url, `${t("video")}: ${video.url}`);
    if (location) {
        const { latitude, longitude, label } = location;
        const words = `${t("location")}: ${label} ${latitude.toFixed(5)}, ${longitude.toFixed(5)}`;
        return link(`https://www.openstreetmap.org/?mlat=${latitude}&mlon=${longitude}`, words);
    }
    return summary(content);
}

/**
 * One message.
 *
 * @param {import("./model.js").Line} line
 * @param {import("./account.js").Account} account
 * @param {import("./model.js").Chat} chat
 */
function row(line, account, chat) {
    if (line.note) return h("div", { class: "line note" }, `${t(line.note)} · ${timeText(line.time)}`);
    const isRead = line.own && "uid" in chat.to && line.seq > 0 && line.seq <= chat.readUpTo;
    const status = isRead ? "read" : line.status;
    const isYoung = line.own && line.seq > 0 && !line.recalled && Date.now() - line.time < recallTime;
    const { client } = account;
    const author = line.own ? account.nickName : line.name || account.nameOf(line.from);
    return h(
        "div",
        { class: `line${line.own ? " own" : ""}${line.recalled ? " recalled" : ""}` },
        h("div", { class: "groupId" in chat.to && !line.own ? "author" : "hidden-text", dir: "auto" }, author),
        h("p", { class: "text", dir: "auto" }, line.recalled ? t("recalled") : body(line.content)),
        h(
            "div",
            { class: "meta" },
            h("time", { datetime: new Date(line.time).toISOString() }, timeText(line.time)),
            line.own && status && !line.recalled && h("span", { "data-status": status }, t(status)),
            isYoung && button(t("recall"), () => client.recall(chat.to, line.id).catch(() => {}), { class: "plain" }),
            line.status === "failed" && button(t("retry"), () => client.outbox.retry(line.clientId)),
            line.status === "failed" && button(t("discard"), () => client.outbox.discard(line.clientId)),
        ),
    );
}

/** The messages of a conversation. */
export class Lines {
    element = h("div", { class: "lines", role: "log", tabindex: "0" });
    #key = "";

    /**
     * @param {import("./account.js").Account} account
     * @param {import("./model.js").Chat} chat
     * @param {Element} first What stands before the messages.
     */
    show(account, chat, first) {
        const isOther = chat.key !== this.#key;
        const { scrollTop, scrollHeight, clientHeight } = this.element;
        const isAtEnd = isOther || scrollHeight - scrollTop - clientHeight < 80;
        this.#key = chat.key;
        const rows = chat.lines.map((line) => {
            const key = `${chat.key} ${line.clientId && line.own ? `own ${line.clientId}` : line.id}`;
            const isRead = line.seq <= chat.readUpTo;
            const isYoung = Date.now() - line.time < recallTime;
            return { key, signature: [line, isRead, isYoung], make: () => row(line, account, chat) };
        });
        showRows(this.element, [{ key: "first", signature: 0, make: () => first }, ...rows]);
        if (isAtEnd) this.element.scrollTop = this.element.scrollHeight;
    }
}
