// Hermes
// SPDX-License-Identifier: Apache-2.0

import { h } from "../dom.js";
import { Lanes } from "./thinning.js";

/** The time that a text takes to cross the stage, and the time that a gift is shown, in milliseconds. */
const flight = 9000;
const giftTime = 3500;
/** The largest number of gifts and of waiting texts on the stage. Further gifts and texts are not shown there. */
const maxGifts = 4;
const maxWaiting = 20;
const laneHeight = 40;
/** The largest number of texts that fly at once. Their elements are reused. */
const maxFlying = 40;
/** The largest number of texts that start in one animation frame. It is small, because each text must be measured. */
const perFrame = 2;

/** The area in which texts fly and gifts appear. It is only visual; the log contains the same texts and gifts. */
export class Stage {
    element = h("div", { class: "stage", "aria-hidden": "true" });
    #lanes = new Lanes();
    /** @type {{ name: string, text: string, isOwn: boolean }[]} */
    #waiting = [];
    /** @type {HTMLElement[]} The elements that do not fly. */
    #idle = Array.from({ length: maxFlying }, () =>
        h("span", { class: "flying", hidden: true }, h("b", { dir: "auto" }), " ", h("bdi")),
    );
    #gifts = h("div", { class: "gifts" });
    #isAsked = false;
    #still = matchMedia("(prefers-reduced-motion: reduce)");

    constructor() {
        this.element.append(...this.#idle, this.#gifts);
    }

    /** Whether the user's settings allow animations. */
    get isMoving() {
        return !this.#still.matches;
    }

    /**
     * @param {string} name
     * @param {string} text
     * @param {boolean} isOwn
     * @returns {boolean} Whether the text flies.
     */
    fly(name, text, isOwn) {
        if (this.#waiting.length >= maxWaiting || !this.isMoving || document.hidden) return false;
        const short = text.length > 80 ? `${text.slice(0, 80)}…` : text;
        this.#waiting.push({ name, text: short, isOwn });
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
        for (const flight of this.element.getAnimations({ subtree: true })) flight.cancel();
    }

    #ask() {
        if (this.#isAsked || !this.#waiting.length || document.hidden) return;
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
        const begun = [];
        while (begun.length < perFrame && this.#waiting.length && this.#idle.length) {
            const lane = this.#lanes.find(now);
            if (lane < 0) break;
            const element = /** @type {HTMLElement} */ (this.#idle.shift());
            const { name, text, isOwn } = /** @type {any} */ (this.#waiting.shift());
            element.children[0].textContent = name;
            element.children[1].textContent = text;
            element.classList.toggle("own", isOwn);
            element.style.insetBlockStart = `${lane * laneHeight}px`;
            element.hidden = false;
            // The lane is taken until the text is measured.
            this.#lanes.take(lane, Infinity);
            begun.push({ element, lane });
        }
        // All texts are measured together, so that the browser lays out the page only once.
        for (const { own, element, lane } of begun.map((one) => ({ ...one, own: one.element.offsetWidth }))) {
            const way = [{ transform: `translateX(${width}px)` }, { transform: `translateX(${-own}px)` }];
            const flown = element.animate(way, flight);
            flown.onfinish = flown.oncancel = () => {
                element.hidden = true;
                this.#idle.push(element);
            };
            this.#lanes.take(lane, now + (flight * (own + 48)) / (width + own));
        }
    }
}
