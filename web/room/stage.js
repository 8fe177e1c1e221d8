// Hermes
// SPDX-License-Identifier: Apache-2.0

import { h } from "../chat/dom.js";
import { Lanes } from "./thinning.js";

/** How long a text takes across the stage, and how long a gift is shown, in milliseconds. */
const flight = 9000;
const giftTime = 3500;
/** The most gifts and waiting texts; what comes on top is not flown, but counted. */
const maxGifts = 4;
const maxWaiting = 20;
const laneHeight = 40;
/** The most texts that begin in one frame: each must be measured. */
const perFrame = 4;

/** Texts fly over it, gifts light up. For the eyes only: the log says the same. */
export class Stage {
    element = h("div", { class: "stage", "aria-hidden": "true" });
    #lanes = new Lanes();
    /** @type {Element[]} */
    #waiting = [];
    #gifts = h("div", { class: "gifts" });
    #isAsked = false;
    #still = matchMedia("(prefers-reduced-motion: reduce)");

    constructor() {
        this.element.append(this.#gifts);
    }

    /** Whether the user wants things to move. */
    get isMoving() {
        return !this.#still.matches;
    }

    /**
     * @param {string} name
     * @param {string} text
     * @param {boolean} isOwn
     * @returns {boolean} Whether it flies.
     */
    fly(name, text, isOwn) {
        if (this.#waiting.length >= maxWaiting || !this.isMoving || document.hidden) return false;
        const short = text.length > 80 ? `${text.slice(0, 80)}…` : text;
        const content = [h("b", { dir: "auto" }, name), " ", h("bdi", {}, short)];
        this.#waiting.push(h("span", { class: isOwn ? "flying own" : "flying" }, ...content));
        this.#ask();
        return true;
    }

    /**
     * @param {string} name
     * @param {string} gift
     */
    give(name, gift) {
        if (this.#gifts.children.length >= maxGifts) return false;
        const card = h("p", { class: "gift" }, h("bdi", {}, name), " ", h("bdi", {}, gift));
        this.#gifts.append(card);
        if (this.isMoving) {
            const grown = [
                { transform: "scale(0.3) rotate(-8deg)", opacity: 0 },
                { transform: "scale(1.15) rotate(3deg)", opacity: 1, offset: 0.12 },
                { transform: "none", opacity: 1, offset: 0.2 },
                { transform: "none", opacity: 1, offset: 0.85 },
                { transform: "translateY(-1.5rem)", opacity: 0 },
            ];
            card.animate(grown, { duration: giftTime, easing: "ease-out" });
        }
        setTimeout(() => card.remove(), giftTime);
        return true;
    }

    clear() {
        this.#waiting = [];
        for (const element of this.element.querySelectorAll(".flying")) element.remove();
    }

    #ask() {
        if (this.#isAsked || !this.#waiting.length) return;
        this.#isAsked = true;
        requestAnimationFrame((now) => {
            this.#isAsked = false;
            this.#begin(now);
            this.#ask();
        });
    }

    /** @param {number} now */
    #begin(now) {
        const { clientWidth: width, clientHeight: height } = this.element;
        this.#lanes.resize(Math.max(1, Math.floor(height / laneHeight)));
        for (let count = 0; count < perFrame && this.#waiting.length; count += 1) {
            const lane = this.#lanes.find(now);
            if (lane < 0) return;
            const element = /** @type {HTMLElement} */ (this.#waiting.shift());
            element.style.insetBlockStart = `${lane * laneHeight}px`;
            this.element.append(element);
            const own = element.offsetWidth;
            const way = [{ transform: `translateX(${width}px)` }, { transform: `translateX(${-own}px)` }];
            element.animate(way, flight).onfinish = () => element.remove();
            this.#lanes.take(lane, now + (flight * (own + 48)) / (width + own));
        }
    }
}
