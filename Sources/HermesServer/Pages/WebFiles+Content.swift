// Hermes
// SPDX-License-Identifier: Apache-2.0

// Written by scripts/embed-web from the files in web/.
// swift-format-ignore-file

extension WebFile {
    /// The files of the pages, by their paths.
    static let all: [WebFile] = [
        WebFile(
            path: "/api.js",
            contentType: "text/javascript; charset=utf-8",
            tag: "c257cfa5e236c34a46f51fb3a84b70c9",
            gzipBase64: "H4sIAAAAAAACA61aW3PaSBZ+9684y8vKKVkms5M8wGa8HsebsGUnLnA2W5VKhUZqsMZCImrJhGL473vO6ZbUAnFzxg8G1H2u/Z1Ld+v8HN7LdCrVyfk5DO7e/u/sJvRlrORZL5BxFo5DmXbgcib8B3n2i9c+OQmnsyTNYAnX0zDLZAorGKfJFFreudRPvD9Uq1vNm4pHOZBxYE1M8myU/NDzTs5fvDiBF3AJfhI/yVSJLEziDgyXkIdINIR5mD2AiEH4fpLHmQtJSqOTNMlnPZ6RjEHo3x6yIm7/yhYzGcgxLJlNB+J8OmJl/4SStHq6gitLODI4Z73g/kFCFk7xXwJzEWYwRtkCUunLcIaaCDSLHiXZA7IRsZojDxfCGKZhFIVKok2B8ogfflMZKHTEPTJED8AbeN3+1m63u2Ysld9zqbJq+B9muHARaWMmKcgeRIaqRMlkIoMzlOhHIa4Y+OgpcrkH17hoMBZhpIwLzVJfpymqHI6RhUSFUrQb2Y5zJRWgiTgWJPg1TjISqo0ik8gRHvRrCkxzVBxnwoOYzSTOmSN8WKiWOUTTYumTV28SlQ0LsdVjQI8oGEl0o6ShMK2kdvVcbVgqZ1KgXBFF2t9ItUCFlYzG5bKLkcpS4We8hPIHQ9CPhFKV3vJHxiIL/C5PAP/YxfT3AgY8LABB/yizv6OYJFjwUqcyy9NYsVbDB3am9/TS60uVR9nQMwwKPpYy5sFMpGIKSxEvVvCNuK6PjJIkkiLG0VD12V4xiuT6LI1anJQZqPTW8FYSFAov7zDycPifKPq3lRk+508DKIf1ceuCEYNZmku3kvRmDaWnxn2aEwkDI8pL5R+4wk4s58CIc1qEE0wLkZziesqgdXraZeLVyWFLQIgiJSgSw3iigzEusVKg9oHGirnCgtrzF0i7CnmH44X2FBq+XW3EhRITyZghZRWrSp8mc3gwNDmQEgJGhTKZpaDUwSUWGBiUMzKIBGXWdQOMvmgF2fwnsOJocEYkl5Ah1jldChuuV3p8CELBfwYfP3jr7OxcuMLUtz6+NCHZCy46oGW7GFazMJWqFw80CC/s7JrMiJeqeVOoRexzQnSMxi7Kcou5CLXlqgFejuBEjKusvAK7S2bTKUtNI8NTWLkGzlYWPj31zJpsw+KtSB911jGLoyCfUUEgFWpFC/l+J6emUgTblqruW79WdZqjPJ/dJwP5vcF3U9Ssj7Icm41bENi+a/RZQd7BitjIoQMDXlyn5LiC1daY7UsfnaQgiSUVZMqRpmJj/CbzuHSfy8FJBaWsroR2qxohn2Suft6FGpurQnIvaHBiymqvubAk2OtETb7pwpLDTp/dS/IYWW4qWukJrMYppQXsYzi8MIhVlmCNDTx4e3SiO9pzZSEK1T1rUPOckpl+uua2YrKpG7bz2G0mgS6NVZteMyZ24G8lq13u+7fMsC9VRJbKoIpP7gfrnLEM4YJhGlXZz3tnafoVjIkyzbkQhdhRNKU9GJbThx2Mj2hRqWo6MzVFFCFRk1Ty9/cutDsMDG0IFhAWh/xeUi561W7vqPrLUl6HSsSXr4hP1KcDZplhtdYU6NDAJUPHLtYW2TIe17lt7Mavr9q4WEdlbSNgEwelhDIFlU9OC4EEjFPPsNiGkJskeeR8Xe0fTNdYLJMpzLGYym4ZTDKkcHTLSNQZbBtweIthASEO/ccPyK+sjoQFbFMxOJO0wc9GMaeYcpwTDTU5cSLxo+SiHWSGtzmosmFDa9zePGEfmH5Ko5ol/oOIJ7LBDj2AoBuHkXT0r+eYUePTMT8PM+eK5+qUOsO2f56kQRckQmthNmm4y1FUq+slinchu9srDOcouDM8t03B6Fyb0uAgM8Gx+Lk25d6is+krQ0lPtnElB1ILNBaRkhspFcv3U/JoPJfht1in0WKzBYF8wq2d3sva1ZOo7nm+c4zeNiH+Xu3M85e4lpOyq6DmDpt2RUUxkJT4MaIxAreHpxhj8/ypFqNbk/WuLFpIPiqLFkROpUc9b75sH504DU9yJO76+LPgbaVHDphC/L4EULabYbCnjYJL3JrgZh5+efUaXZ/JMnDqyGBlr7R4JyfNCgZvoNXaCxbLRhEwsms8diPmAKvKFgdRKWfZX2K03orWbNbcf8J2Zlmav85utxuuaT9qxQzvMkcY0NtiZdNf9TWdJk/SMu8YQzSxMeTZy2erM4oS//FYNZjor9Qij5+lhyE7TpOyzGCd1o3f61+pBNAhBnZPXrPmX74SjOkb5gfFx4j6J527qTAwWZ8anSZQ+7ifzeQ7OjN1SLBrM3sDX74enLb43JWrFrOkbxsMa1Xq1GOS7XWBh3UTTV2cMWsfus35b4OtPOKY8ePt4gbMOpo2OXiPEXZxM90mU9QrHEV/0Z/yOek+a01NeKeV+dnapzU6qvJpEqeux0/XvtLZtcpnuK9XP63CoQFex4XdG+/ri9EheSbJycYlbrG5+TiT8YXlqb398zsbgi4c2UZXIcZ0Fhpd8Dyv6qUPAGZAh5l87E2Zu4yuruGtIEWb9BS0Hr1wXNzZQA0CCv4Sk4QwLXXjsZbdJ8kXJnlWyCaFqjWpNtC8OJ/iLIxu7YPJL1+r9YC+NiaV0Op/vLn+dnt9+/t1v8Xm6SeXb297H3qD+/7l/cd+y9u6grfaT7vW8JC1M2x2LuHzkG2rjKh8qmPucD2ZdjPhbVPqbahUEhGSzG1dVx+G8PnXPMYVmYrF83N3YNg/05iC/HB7Pgt9/MSbzVQqGfucx802R+n7zjiZo5lV0Ig0DZ8knRMPC6Ih7VCRYLftVMZzKpFFK/rSbWP6DGPape2+8/ny9bcV1X0sGlpmhjEitjSxczLrzqhGbY06OPsUBpEPmQ2Fb0drrTNOMeOi/Kbg4gKbiMOQXPigsQ/brfhehQ2DNZW3t9bUcdFlcJJMXV5lyhR0oUn3rnxfY19z5pR9YMgh00eSYZc7Fr3wNiiI3z5AFH0gzd1brSLkFVnlP0St1s90+Lj5PdpgnUUrKfUdh90YNuBL89UAK0/VxpbtCsxhP6nbhDi6DkzJKY52Jgk8GHNEwvsLJmVWvJqKr/s16mjswtP164rPexBz7UO7bcvLG5mz1Hr/TUFNzyJ17tm/0cEVXahYDqQm0xzT8PWevjeJA76k96M8kMFzYFOMEdOmezqx6MXWEtG0I00mEvpFn7sPo46He4V2Tr0W2vM1pE/CcZN9Ewy/moHF1kQfD2Knyqx4+w6rIy0nmZ06R81t95HczlReHMitHWSunc+ZSc7B0aQJrPa6CCHD6aL4sjtr3yQTyo16LuCWpWvf7z1KOatusPTd+D7Mala97ccSb3mCU8zbu0SVpdXJREG8p/D35QSdo9P/ZzmCu1w9gMpHyk/DmX59ybKWb71C7hMwmRqXzB/CSNLrNiE7osiW22OXZAwsEcVtvy220TdaVSJ37Lm2f/T7R3zqiwDndwK02+m2rkbUPdSnSmYkkg949e9UD7UG1/3/9q6uv32+/v3b3afB+5ZrJDf7vDrDmiE/8mJiO3IN7z7mVW3rEetfEhXa7l59OlBHPQLcA+r7WkUJme6YgO6CSUER60Nzu3Jua2iz5NP2I1dzW9G0ZyL5VWLj99r4JQjCs1CEwXKMrp/CSSyw/yAqft9kJJR8/WtTNdZTHdbLrTRwzcBex+ppnOk3WOD+xWiyK/Hdodqq9kLA2stX2J7HwRmaN9MvEDS9cFcZxDfVm3jHDjilzD6TKaagqcA20MM2ztkHcnN1vWGAlVs3WMKZFleYujr5PyO5tqh6KQAA",
            text: #"""
// Hermes
// SPDX-License-Identifier: Apache-2.0

import { Emitter } from "./emitter.js";
import { makeSend } from "./outbox.js";

/**
 * A conversation: `{ uid }` with an account, or `{ groupId }` of a group.
 *
 * @typedef {{ uid: number } | { groupId: number }} Conversation
 */

/** The time to wait for a receipt, and for other answers, in milliseconds. */
const sendTimeout = 60_000;
const requestTimeout = 30_000;

/**
 * The requests that a logged-in client can make. Each fails with a HermesError if the server refuses it or does not
 * answer in time. Requests that must not happen twice fail with `connectionLost` if the connection ends before their
 * answer; the client repeats all others by itself.
 *
 * @abstract
 */
export class Requests extends Emitter {
    /**
     * Sends a packet's body and returns the `hermes.v1.Result`.
     *
     * @abstract
     * @param {any} _body
     * @param {boolean} _isRepeatable
     * @param {number} _timeout In milliseconds.
     * @returns {Promise<any>}
     */
    request(_body, _isRepeatable = true, _timeout = requestTimeout) {
        return Promise.reject(new Error("not implemented"));
    }

    /**
     * Sends a packet's body without waiting for an answer; does nothing without a connection.
     *
     * @abstract
     * @param {any} _body
     */
    notify(_body) {}

    /**
     * Sends a message and waits for its receipt. `outbox.send` is for a message that may be sent later.
     *
     * @param {string | any} content A text, or a `hermes.v1.Content` as JSON.
     * @param {Conversation} to
     * @param {{ clientId?: string, expiresInSeconds?: number }} options
     */
    async send(content, to, options = {}) {
        return (await this.request({ send: makeSend(content, to, options) }, true, sendTimeout)).receipt;
    }

    /**
     * Marks all messages up to this conversation seq as read.
     *
     * @param {Conversation} conversation
     * @param {number} upToSeq
     */
    async markRead(conversation, upToSeq) {
        await this.request({ markRead: { conversation, upToSeq: String(upToSeq) } });
    }

    /**
     * Recalls one of the account's own messages, within the time that the server allows.
     *
     * @param {Conversation} conversation
     * @param {string} messageId
     */
    async recall(conversation, messageId) {
        await this.request({ recall: { conversation, messageId } });
    }

    /**
     * Tells the others that the user is typing, or stopped. Does nothing without a connection.
     *
     * @param {Conversation} conversation
     * @param {boolean} isTyping
     */
    setTyping(conversation, isTyping = true) {
        this.notify({ typing: { conversation, stopped: !isTyping } });
    }

    /**
     * Fetches stored messages of a conversation, newest last.
     *
     * @param {Conversation} conversation
     * @param {{ beforeSeq?: number, limit?: number }} options `beforeSeq`: only messages with a smaller conversation
     *   seq; 0: the newest. `limit`: 1 to 500.
     * @returns {Promise<{ messages: any[], more: boolean }>}
     */
    async history(conversation, { beforeSeq = 0, limit = 50 } = {}) {
        return (await this.request({ history: { conversation, beforeSeq: String(beforeSeq), limit } })).history;
    }

    /**
     * Looks up an account by its number or its name; without either, the user's own.
     *
     * @param {{ uid?: number, nickName?: string }} selector
     */
    async account(selector = {}) {
        return (await this.request({ account: { get: selector } })).account;
    }

    /**
     * @param {{ nickName?: string, avatarUrl?: string }} change
     */
    async changeProfile(change) {
        return (await this.request({ account: { changeProfile: change } })).account;
    }

    /**
     * Changes the password; every other session of the account ends.
     *
     * @param {string} oldPassword
     * @param {string} newPassword
     */
    async changePassword(oldPassword, newPassword) {
        await this.request({ account: { changePassword: { oldPassword, newPassword } } }, false);
    }

    /** Revokes the tokens of all other devices. */
    async revokeTokens() {
        await this.request({ account: { revokeTokens: {} } });
    }

    /**
     * A page of the contacts, ordered by uid.
     *
     * @param {{ afterUid?: number, limit?: number }} options
     * @returns {Promise<{ contacts: any[], more: boolean }>}
     */
    async contacts({ afterUid = 0, limit = 100 } = {}) {
        return (await this.request({ contact: { list: { afterUid, limit } } })).contacts;
    }

    /**
     * @param {number} uid
     * @param {string} message At most 256 bytes.
     */
    async requestContact(uid, message = "") {
        await this.request({ contact: { add: { uid, message } } });
    }

    /**
     * @param {number} uid
     * @param {boolean} accept
     * @param {string} message At most 256 bytes.
     */
    async answerContact(uid, accept, message = "") {
        await this.request({ contact: { answer: { uid, accept, message } } });
    }

    /**
     * Ends the contact for both.
     *
     * @param {number} uid
     */
    async removeContact(uid) {
        await this.request({ contact: { remove: { uid } } });
    }

    /**
     * @param {number} uid
     */
    async block(uid) {
        await this.request({ contact: { block: { uid } } });
    }

    /**
     * @param {number} uid
     */
    async unblock(uid) {
        await this.request({ contact: { unblock: { uid } } });
    }

    /**
     * @param {string} name 1 to 64 characters.
     * @param {number[]} memberUids The members besides the user.
     */
    async createGroup(name, memberUids = []) {
        return (await this.request({ group: { create: { name, memberUids } } }, false)).group;
    }

    /**
     * A group with its members.
     *
     * @param {number} groupId
     */
    async group(groupId) {
        return (await this.request({ group: { get: { groupId } } })).group;
    }

    /**
     * A page of the user's groups, ordered by id, without their members.
     *
     * @param {{ afterGroupId?: number, limit?: number }} options
     * @returns {Promise<{ groups: any[], more: boolean }>}
     */
    async groups({ afterGroupId = 0, limit = 100 } = {}) {
        return (await this.request({ group: { list: { afterGroupId, limit } } })).groups;
    }

    /**
     * @param {number} groupId
     * @param {{ name?: string, avatarUrl?: string, muted?: boolean, historyOpen?: boolean }} change
     */
    async changeGroup(groupId, change) {
        return (await this.request({ group: { change: { groupId, ...change } } })).group;
    }

    /**
     * Adds and removes members; changes roles and muting.
     *
     * @param {number} groupId
     * @param {{ addUids?: number[], removeUids?: number[], changeRoles?: { uid: number, role?: string,
     *   mutedUntilMs?: number }[] }} change Roles are "ROLE_MEMBER" and "ROLE_ADMINISTRATOR".
     */
    async changeMembers(groupId, change) {
        await this.request({ group: { changeMembers: { groupId, ...change } } });
    }

    /**
     * @param {number} groupId
     */
    async leaveGroup(groupId) {
        await this.request({ group: { leave: { groupId } } });
    }

    /**
     * Dissolves a group; only the owner may.
     *
     * @param {number} groupId
     */
    async dissolveGroup(groupId) {
        await this.request({ group: { dissolve: { groupId } } });
    }

    /**
     * Watches the presence of accounts from now on; changes arrive as `presence` events.
     *
     * @param {number[]} uids At most 1,000 in all.
     * @returns {Promise<any[]>} Their present states.
     */
    async watchPresence(uids) {
        return (await this.request({ presence: { watchUids: uids } })).presence?.presences ?? [];
    }

    /**
     * @param {number[]} uids
     */
    async unwatchPresence(uids) {
        await this.request({ presence: { unwatchUids: uids } });
    }

    /**
     * Enters a room, now and on each later connection until `leaveRoom`; its events arrive as `room` events.
     *
     * @param {string} room
     * @param {{ name?: string, level?: number, iconUrl?: string }} user How the others see this user.
     * @returns {Promise<number>} The number of connections in the room.
     */
    async enterRoom(room, user) {
        return (await this.request({ room: { room, enter: { user } } })).room?.memberCount ?? 0;
    }

    /**
     * @param {string} room
     */
    async leaveRoom(room) {
        await this.request({ room: { room, leave: {} } });
    }

    /**
     * Everyone in the room gets the text, the sender included.
     *
     * @param {string} room
     * @param {string} text
     */
    async sayInRoom(room, text) {
        await this.request({ room: { room, text: { text } } }, false);
    }

    /**
     * @param {string} room
     * @param {{ name: string, count?: number, url?: string }} gift
     */
    async giveInRoom(room, { name, count = 1, url = "" }) {
        await this.request({ room: { room, gift: { name, count, url } } }, false);
    }

    /** @returns {Promise<any[]>} The devices of the account. */
    async devices() {
        return (await this.request({ device: { list: {} } })).devices?.devices ?? [];
    }

    /**
     * Logs a device out; the server keeps nothing for it.
     *
     * @param {string} deviceId
     */
    async removeDevice(deviceId) {
        await this.request({ device: { remove: { deviceId } } });
    }

    /**
     * Registers a Web Push subscription: the server notifies this device while it is not connected.
     *
     * @param {PushSubscription | any} subscription
     */
    async registerPush(subscription) {
        const token = JSON.stringify(subscription);
        await this.request({ device: { setPushToken: { service: "SERVICE_WEB_PUSH", token } } });
    }

    /** Ends the pushes to this device. */
    async clearPush() {
        await this.request({ device: { clearPushToken: {} } });
    }

    /**
     * Passes data that sets up a call to another user.
     *
     * @param {number} toUid
     * @param {string} sessionId
     * @param {{ data: string } | { end: { reason: string } }} signal `data` is base64.
     */
    async signal(toUid, sessionId, signal) {
        await this.request({ signal: { toUid, sessionId, ...signal } }, false);
    }

    /** Pings the server and returns the round-trip time in milliseconds. */
    async ping() {
        const start = performance.now();
        await this.request({ ping: {} }, false);
        return performance.now() - start;
    }
}

"""#
        ),
        WebFile(
            path: "/chat/account.js",
            contentType: "text/javascript; charset=utf-8",
            tag: "ac35d80b412ef4dd8c69dc9154eff07c",
            gzipBase64: "H4sIAAAAAAACA81a647buhH+v0/BdQ5OpUCr3RygReHE2SZ7ekmbG7JJU8AwYK1N2+rKko8oxzEcA32aPlifpHMhJVKispvT/Gh+ZGWRHA6HM998HOr8XPxFlmupTs7PxfXbn/9x9jKdyVzJsxdzmVfpIpXlUDzbJLOVPPspvjg5SdeboqzEQbzI5/KznP/8/LoqShmJ61VSyvlVlsI4cRSLsliLQRyfr0h+/E81eNwMtnqcp49+n7ear1ZJpSJxK/dvFlbPdTGXGXc9OX/4ULxfSaFk+Ql1nF7y02inhufn//nXv6diUZRiLj/JrNisQalIyExJUcGgTbKUv1Gi2OWxeHh+Ij/TvLMiV5UWKEYilzvx4d3La5mUs9XbpEzWKsiKWVKlRR4rehvGS1kFAx4yCMXlpah7FGW6THPQlMUms1mxzSv1N7kH2VO2ytkMFnpumsQPB5Z0nD6u11elaymSRQUq7VbpbCUSUe03ab4UW+gsUiXyAibNl/BDrWBFIlG6B62NZ+cX70FWsa1g/t9dXFxYRqw1qEAfkLZcyrlIc1Hk8AamuCmLHcz2mIy3SEuQmCr6UeQSO4IuXUvWUkficCLgH073h1JW2zJX4qCqEnQaT444EJvBliLJsiDU3fFfVe6tX/iPZecJmA8E//X6zet4k5RK0t5k6IywubgvLyq5Diyz0/YMxpNB+NgRyAqJZ2WZ7ONU0d+A5MMInihepBnsQECvQzF6igaVxYJaxWg0EgNeDfjAUIwnzQRHAe4Au3bwTel0pKdj1Bhqgy5nzHTkqbSlwNxalUYu26WATSnRMLhvMVizVp1aSHd6iqviZbGT5VUCskJxCmtAie5ry1KOdVXXuhFvBWubLvbBGMVFIo5j1mlipN1zjRC9GFz/78tkTay1HXVcvcnruBqKFKJgRtAY8XORQ5wrQgoAuiSfQ3QnFFW3OQYx+BY42CaDsLqC5SkxBaiAIJ9PNRhIgGTB75zIyxKlxDOe1w47dFhxsEG6jjtWjBeAgKQ0+BEKB3pllpAk31tRC0upkhkNMv5s9X2VbJ7k2/WNLHGV+6dHwptNKZXMZxKXiSiywxgByDGGjo1w09GoBOI8CuEkvCORaE8IM35cFQRXhIGRuNk75q/n0rB610RGOE8I4l8TFMFKOtobkGoJzNPZ7WsCDjEY1GbHzYU3Afnu4cjvHyhMrvoZO+UyA//SarHXgqttIGWTIbUKkNtooHoM3oZ4rhCkswQcJ9aDzNhOCGrldDsvRFVgqhlkln0+EwXMFphu3dBkSBTTOplBWjO93bDDNOeOJaW1wVx+ETgZEySCtOM0bAso5awo52jzZJekWmCcFck86PRlt6+72qER0xoPmgtEgqEMuASQoyHwE/w9FAOmThQnA/C2zebv4FTgUtB0ET8aAPgfrVk16OPadHwGBhIUUyitvZmvtrHGls6+m71zo5qFtvu45jzylO1OdiBxtGqVer2l8ZT7eRKZvtzOYPb7rt5mA4j29b7ZuFW3PjA+ZEVO3WhFnp6NCdxaDsLLphV4gnluCejC4xgSnJY1qZPQGJjrhAIZHiBZJGWlPqbVKhiQ+w7CMF4DHgTjiACXu+KTnYqaCeM+jbfpHJW9aAYh5w3Yv8fQGnE6mSA8OeMJmpixjmF6tg5RHUh6QTPS0gdOCB8xRyHlq5IbsQKiuU7KW8RtBdKTOaIs/82ZHFJujFsbpGFMW/F5CcE5S1R1xa/vDHRHSFzk0FdBskboPIh5UiUQdAShHtaIMg1pYMuiMXBQDBvV4oXpAiyJe+LsBC2Y3kc0W7zdvC+u5S+twWYIoroNPcfmkeQz3ChYA+CGnunBjVwmebvNgi+NUTmePKgR0CeoZSA7tcSY934B8Lfc43A4J+WVNZga9Fv/UDhJ3BSfaSz2tcbeSrkJxpbVuKvuN+mRh0lGorhGUm1A/wjO2D7tueWr6htqgcPNs8dxSF5NQyg6zK+YwqQee08H8Ed4KTHloGdpDcliMVoslao2gM4BnIhnWUGk9nDim7TDJWggpToLRmMtpC++epo5rzqNTXoS7+S6+ASJkSitfYAU6BnKsD5NVmq6xKvSvN9eVk2sdJuD5XdyAFvjNhPo9tiVaSVtVEdkgA2YMGIjTKBREeEjsYWkukhh2yZhBEfVbX+q5qN8lRHlTVwC2sPIuBoS2HWPMMakcyQcc9IqiX6z0Hh1cDBmAG46QEjGRmBg4scfxal+RhcODTPBtFBgzYcrGGrQJS9dYZd27sDNcSQDE4Ik8+WL7k4GML/Agh3PMWtnkn0UmOAsMg0rJLGHtl7YD4/hbs68bGX9oQhaypI0yIHTBz8c4LlONN0NfC6XKZBsd+vEDpK67cvs2liUQbb7a6i2Dm1YAhGGfp59EAQ/psNQHxyPrt/rKNfqQYasjdEBogeosz/1Uzsd0gJkFZMul+4kVs2gcWOOXYF23HG2YB7UcTh8fRf9BaZ6dLalz+Dkfx5rk662gIi7do3es07f2O+82D/CBHuQASdUza5cRwQKpqT8LmCCHOcd0DgvmlDoZsDXgPOIJyMOZWZFH4AJGTDx01ibPNmCetPPplDVKyZ44EyAGMMaOwB9mXkNHVEev/bb/Fug0SHBbxaLDDA/ok3AJQmd7QwW5PJzJQwtrXRZx9oc9yATO+aGiVumiamAGJhc3gtQf5JYQ1FmYsi5coEnISLi2VxiFdguMf1vnmLVcd+WxTpV8slNUWQyyangIpH549SgwA7/gxiNPZEnkxKMUHY8TVf5WG3tZGh0rMTm8yDAZzIIPgAp+0U8FRdwIMIn90BkwLI2ix8g4RHS/77Zg4O2HzkYKxLBbOu0GorfXjheZp25zK5DGjATuscH7cv6768BCSM3zmS+BI97albrcEMkOle6Mhd4cKxbtKtXksmKLkiwbF93HHoLgCIYI/NZg52GxH/gfENjY3yF0WTGG22fiJ/w6kGELZqtJ/TwU7OIAxc+P6TzYSM1qYKzR9ZB2Noid4/sSmW82apVAAyPNDVvPae/U6eDXkIIZFYmt+3KfRPVjWnNo9dVWvkb/BKcplamk5I9dNfKyrWOpgKhX3BhgZ9jOmDxbQXwAbmp5HygCxG+7oh/nsOKfaDpZW7oHjBeudHOuuL7rkduc+YvIxpXr4NAGJQ6bZ3DVoniNvAx3PzTNvkLY5WlMxmAS4AvtHD/VM9Wb2knaXWunayds6vXXYelRb7VXQI9URh+/4Ok92YJr3HpFhCzEd711coC/UuzJj9lBfDZuH391N1PIle6huDuZqu+4DmGmsqV7oLL7C/ImU49lTcOBUtS1Blho6k5MeJN2df69Z3/xlhhizhIh8KZtmHcbcHiOJm0I8YFYn8ybxaJvf9cFtvN3X05mCxT0y1YllSvKKApocJAL8exKA4cksbWzwndX4b3DHztCLbWnnPKkpp6Ei83Arr3AHfDuxFRuTdjFj1/Q6lPn0ho2AvYVHqI+XzCz7nrHOY+TJ9bR1Yv7w1yQ9/bhZ5OcieN+kGUgo6KV62Qs6tyLWJOL2NK0ATxGsYH4bf5oU+UphyD0GvpA32f8QFDAx9e62CI3AMK7j7L1dI8KMcx7pXmA0WM2M17rvTRpyLOOSyMjF6hL1cjkc+zfX3tStE/F/qLBfyGIrm1GXtnCy3P8tRK77Wppkx5EO4BktENFrcBjY7dkLqlb0g8S/aU6SwDkeB2JtTT+LeWr6BNGOmvSrBucqs/p2jdbDqz6+6Ku0daWKunvuSuLx3gQX+lElh1YO9CIverljDsp2R9rKWvUABztJusipRzjvGq1tmxrxrSLk/Dgcisn8dc1nWq1s6ZZjijyUpyj29cbndNX7vg0+u1KGmrLkX+RNe/X74IX6FtpL++6CkStO6fcg/bbSdpvsaKBNZrGxkTzf3O8KwRQk6+6wx99+EXCS0nIReQLTS3C9Y9tMKUQewEPZ7qmy5T2DhOza3gnUn4ePJfIakkn8EnAAA=",
            text: #"""
// Hermes
// SPDX-License-Identifier: Apache-2.0

import { IndexedDBStore, SharedClient } from "../hermes.js";
import { t } from "./i18n.js";
import { Chats, keyOf } from "./model.js";

/** The server: `?server=ws://…` for development, else the page's own. */
export const server = new URLSearchParams(location.search).get("server") ?? location.origin;

const accountsKey = `hermes-chat/accounts ${server}`;
/** The time after which a typing user is no longer shown as typing. */
const typingTimeout = 6000;

/** The accounts that logged in on this browser; the first is the one in use. */
export const accounts = {
    /** @returns {string[]} */
    get all() {
        try {
            const names = JSON.parse(localStorage.getItem(accountsKey) ?? "[]");
            return Array.isArray(names) ? names.filter((name) => typeof name === "string") : [];
        } catch {
            return [];
        }
    },
    /** @param {string} name */
    use(name) {
        const others = this.all.filter((other) => other.toLowerCase() !== name.toLowerCase());
        localStorage.setItem(accountsKey, JSON.stringify([name, ...others]));
    },
    /** @param {string} name */
    forget(name) {
        const others = this.all.filter((other) => other.toLowerCase() !== name.toLowerCase());
        localStorage.setItem(accountsKey, JSON.stringify(others));
    },
};

/** One account: its client, its conversations, and what is known of people. Calls `changed` after each change. */
export class Account {
    /** @type {SharedClient} */
    client;
    chats = new Chats();
    /** @type {any[]} */
    contacts = [];
    /** @type {Map<number, any>} The presence of the watched accounts. */
    presences = new Map();
    /** @type {Map<string, Map<number, any>>} Who is typing, by conversation. */
    typing = new Map();
    /** @type {Map<number, string>} Names of accounts. */
    names = new Map();
    nickName = "";
    changed = () => {};
    #store;
    #channel;

    /**
     * Opens the account's stores; it logs in later.
     *
     * @param {string} nickName
     */
    static async open(nickName) {
        const name = `${server} ${nickName.toLowerCase()}`;
        const store = new IndexedDBStore(`hermes-chat/${name}`);
        const records = await store.load();
        const client = await SharedClient.open({ server, name, device: { name: "Hermes Chat", appVersion: "0.1" } });
        return new Account(client, store, records, name, nickName);
    }

    /**
     * @param {SharedClient} client
     * @param {IndexedDBStore} store
     * @param {Map<string, any>} records
     * @param {string} name
     * @param {string} nickName
     */
    constructor(client, store, records, name, nickName) {
        this.client = client;
        this.#store = store;
        this.nickName = records.get("me")?.nickName ?? nickName;
        this.chats = new Chats([...records].filter(([key]) => key.startsWith("chat/")).map(([, chat]) => chat));
        this.chats.me = records.get("me")?.uid ?? 0;
        for (const [uid, known] of records.get("names") ?? []) this.names.set(uid, known);
        // What one tab has marked as read is read in the others.
        this.#channel = new BroadcastChannel(`hermes-chat/${name}`);
        this.#channel.onmessage = ({ data }) => {
            const chat = this.chats.get(data.key);
            if (chat) this.chats.marked(chat, data.upToSeq);
            this.changed();
        };
        if (client.session) this.#began(client.session);
        client.on("session", (session) => this.#began(session));
        client.on("entry", (event) => this.#entry(event));
        client.on("outbox", (entry) => this.#keep([this.chats.outbox(entry)]));
        client.on("state", () => this.changed());
        client.on("typing", (event) => this.#typing(event));
        client.on("presence", (presence) => {
            this.presences.set(presence.uid, presence);
            this.changed();
        });
        this.chats.reopened(client.outbox.entries());
    }

    async close() {
        this.changed = () => {};
        await this.client.close();
        this.#channel.close();
        this.#store.close();
    }

    /** Removes what this browser keeps of the account. */
    async forget() {
        accounts.forget(this.nickName);
        const records = await this.#store.load();
        await this.#store.write([...records.keys()].map((key) => [key, undefined]), true);
    }

    /**
     * The title of a conversation.
     *
     * @param {import("./model.js").Chat} chat
     */
    titleOf(chat) {
        if ("uid" in chat.to && !chat.to.uid) return t("notifications");
        return ("uid" in chat.to ? this.names.get(chat.to.uid) : "") || chat.title || chat.key;
    }

    /** @param {number} uid */
    nameOf(uid) {
        return uid === this.chats.me ? this.nickName : (this.names.get(uid) ?? `#${uid}`);
    }

    /**
     * Begins a conversation with the account of this name.
     *
     * @param {string} nickName
     */
    async chatWith(nickName) {
        const { uid, nickName: known } = await this.client.account({ nickName });
        this.#name(uid, known);
        this.watch([uid]);
        const chat = this.chats.open({ uid }, known);
        await this.#keep([chat]);
        return chat;
    }

    /**
     * @param {any} conversation
     * @param {string} title
     */
    async open(conversation, title) {
        const chat = this.chats.open(conversation, title);
        await this.#keep([chat]);
        return chat;
    }

    /**
     * Everything in the conversation was seen.
     *
     * @param {import("./model.js").Chat} chat
     */
    markRead(chat) {
        if (chat.lastSeq <= chat.markedUpTo) return;
        this.chats.marked(chat, chat.lastSeq);
        this.#channel.postMessage({ key: chat.key, upToSeq: chat.lastSeq });
        this.#keep([chat]);
        if ("uid" in chat.to && !chat.to.uid) return;
        // Offline, the mark moves with the next message that is seen.
        this.client.markRead(chat.to, chat.lastSeq).catch(() => {});
    }

    /**
     * Fetches messages before the oldest that is known.
     *
     * @param {import("./model.js").Chat} chat
     * @returns {Promise<boolean>} Whether there were any.
     */
    async earlier(chat) {
        const oldest = chat.lines.find((line) => line.seq > 0)?.seq ?? 0;
        const { messages } = await this.client.history(chat.to, { beforeSeq: oldest, limit: 50 });
        for (const message of messages) this.chats.message(message);
        await this.#keep([chat]);
        return messages.length > 0;
    }

    async loadContacts() {
        const contacts = [];
        for (let page = { contacts: /** @type {any[]} */ ([]), more: true }; page.more && contacts.length < 2000; ) {
            page = await this.client.contacts({ afterUid: contacts.at(-1)?.uid ?? 0, limit: 500 });
            contacts.push(...page.contacts);
            if (!page.contacts.length) break;
        }
        this.contacts = contacts;
        for (const { uid, nickName } of contacts) this.#name(uid, nickName);
        this.watch(contacts.filter((contact) => contact.state === "accepted").map((contact) => contact.uid));
        this.changed();
    }

    /** @param {number[]} uids */
    async watch(uids) {
        const unknown = uids.filter((uid) => !this.presences.has(uid) && uid !== this.chats.me).slice(0, 500);
        if (!unknown.length) return;
        try {
            for (const presence of await this.client.watchPresence(unknown)) this.presences.set(presence.uid, presence);
            this.changed();
        } catch {
            // Shown without presence until the next login.
        }
    }

    /** @param {any} session */
    async #began(session) {
        this.chats.me = session.uid;
        this.nickName = session.nickName;
        this.#name(session.uid, session.nickName);
        accounts.use(session.nickName);
        await this.#store.write([["me", { uid: session.uid, nickName: session.nickName }]]);
        this.loadContacts().catch(() => {});
        this.#loadGroups().catch(() => {});
        this.watch(this.chats.all.flatMap((chat) => ("uid" in chat.to && chat.to.uid ? [chat.to.uid] : [])));
        this.changed();
    }

    async #loadGroups() {
        const { groups } = await this.client.groups({ limit: 500 });
        const chats = groups.map((group) => {
            const chat = this.chats.open({ groupId: group.id }, group.name);
            chat.title = group.name;
            return chat;
        });
        await this.#keep(chats);
    }

    /** @param {any} event */
    async #entry(event) {
        if (event.type === "contact") this.loadContacts().catch(() => {});
        if (event.type === "message") {
            const { fromUid, fromNickName, conversation } = event.message;
            this.#name(fromUid, fromNickName);
            this.#stopTyping(keyOf(conversation), fromUid);
        }
        // Only what is stored counts as taken.
        await this.#keep(this.chats.entry(event));
    }

    /** @param {any} event */
    #typing({ conversation, uid, stopped }) {
        const key = keyOf(conversation);
        this.#stopTyping(key, uid);
        if (!stopped) {
            const people = this.typing.get(key) ?? new Map();
            this.typing.set(key, people);
            people.set(uid, setTimeout(() => this.#stopTyping(key, uid), typingTimeout));
        }
        this.changed();
    }

    /**
     * @param {string} key
     * @param {number} uid
     */
    #stopTyping(key, uid) {
        const people = this.typing.get(key);
        clearTimeout(people?.get(uid));
        if (people?.delete(uid)) this.changed();
    }

    /**
     * @param {number} uid
     * @param {string} name
     */
    #name(uid, name) {
        if (!name || this.names.get(uid) === name) return;
        this.names.set(uid, name);
        this.#store.write([["names", [...this.names].slice(-2000)]]).catch(() => {});
    }

    /** @param {import("./model.js").Chat[]} chats */
    async #keep(chats) {
        await this.#store.write(chats.map((chat) => [`chat/${chat.key}`, chat]));
        this.changed();
    }
}

"""#
        ),
        WebFile(
            path: "/chat/chat.css",
            contentType: "text/css; charset=utf-8",
            tag: "94901a3ff6559cb10fe13ac9c43c60b4",
            gzipBase64: "H4sIAAAAAAACA61YWW/jNhB+z69gs1ggXkSKJJ+xsYsW7UMvFAX2pcBiHyiRstmVRIGi46SL/PcOL4n0FafbAEnsIefgHN8MefcO/UxFTbsrhNDHP3/6K/qdFbTpaPQLoY1kJaNiiX5ocbGhURYn6N3d1dVScC7RV8WCCl5xEXWwXNMlqth6IxHB4stKr0ZRi1sl4U2pfxy1Y4QqYlZOyrkjsuYL0NJJukj7jSVmjQTqdDpLZtRRK9Yo9mJcYDJ2RFyA4WpvSqZlPnFk3gwroRF81wCN5HRR3vc0udHm0oKWZS+aCsEVFc/SPM0ddc05Uerms3yMDbHkSk86ax/v0ngyRd1TJ2kdbdktuv6DS44+4qa79r+gH3/9DX38EWgdfIs6KhgY+Hx19X1NCcPophW0pKKLQkcrF49sCPxwhE4HX87TYuWtWMeneZZkc3/BOJ8uaE5Ln+4CgMeY5Pf+ig3CuJhMp4m/0Lt7Mctn5dRf8oORkHSWZcGqDkiWjvE0MNoFJZtnZDzzV1xgyvKe3AcrNjjzkiywVfKs3PoOfUU5fwRH/MOa9RI+C0JFBKQVbPi0YQTy/jNsIqxrK/y0RA1vKPqO1S0XEjdSbdvIuroFVvIEGzdUJT1EPUnerlCNxZrBMRK1z+7IcfFlLfi2AYsesLixARqtTPU4IoRgpLje4LY9kAtK01u0yeB3DIueGpVz6jgQjDROBa3V5mXJi20XPbCO5RUFBr6VJmDj9hF1vGLEajXxAMV2R8TLsqNKb6tdchUbn0SSProsa3nHJOOgH+cgayttZe4YkRvDqb/3R3AEZ3bUU/gDFWXFd0tk1BhqUbEWnKSEMQAjeTNN3o6sjg2TNOoAkaiKzU7gVtdLvpWSN7ewv93KW6SsxYJiOLopStZAEjHZ+7z//mxZ7dlq1kTO7iyeKn+aM2NCdMYk8RiI8G/Rr5kk0ucMfKv8OfK3RAITtu2UkEHyyfQwrtiKTtnbcihEKs46wRxkuVFO1XmudQZJ1ofb7Y5rqPCjSdpvPSsnoPb17SuAMjIaAjFSAN61ECJVUr7yYMEJ+YQFwxFgYddR8v5aii29/gwl6C12tKKFHFZfcoBGgQ0mKvd0kqEERRlE8MBRBykVJLsqzz5zLDE5yJnJ1CTN7MWk0Yj7LVnzfBVD266ID2J5xYsvDp0i/S2iijWJ5xYyLNMHBM5vjvAGXrRG+uCTxPdOkoZlEBGwaCKw+AUGTVKx9GhmS2vVw0KkUhtgpnnaQblSLT3HInIaek5Xj8GGJa1bqRDY15nsgXSMC4VlnX/ksqIAfuqvNUBXGFqrjzYIntEmtFaa9sz+2c+66yqu+FpXSI0fXQZlWagE4a3kqyGj0uRhgxTaIwf5VsomtZDX94SZJ8kPfRpnvQUKBKBb0J3vhbVgZKX/AvjXQAPMgWNt6wZyEVwK5t6k6vC3xtwRSkuxOmhcsRo6TniXMEEL00qM5NV+rA7zXIkbUIk1umuZEx3FX5sShxZgGFebCJC0hvOoagd4DWPsFfDMA/1+avCceVZ1DCdQrlV6Ye8qxAq3S3V48yFTHXu/M2oAigYyraBLdqxbHW0HSmjBm8a490g9B7m4MOc9mrSBoE8ES8BaCbnw/rpiDwZoAz41ehk2CePBoduthyf7Hp76HnbcrjcProMVE/OLJVuhDn11rbBO7sfDS7oefkC0KTwPMgLB1mjjPiUVfPNUUTM2Dqo+wFoPVyH+uiJ0p9o7cS/HZNBlxQl1aO02Lukt9JuWySddBEsEERVy9R97tLLNNGGYVhTR78Enh98XxhN94LjBNXWAtrMBmiVeiL6hPLSCCnevgev/S61k+lwvq/W6Glkrlr+3HdzLn9S8U4K6hgRokh4gV18Qe8OE6Rtnxr6Tk90R+/xUckgKNkOgO53L/iTkV8zxAcdj9brz0HAzr+HCTty8sr0MyLtX989WmgFt5Zv9m6CZb9xYYS0ypXY0lkPDHqCnod23Y491/CHkXOiHACutWeEIAnbdjBe6vS+mcP2y/dLknRZrQePImDs/Ht3FiZzTN/zR+bFPGRjzncqmA0N0FRwRu2tGA2/DJd1jdql6EtteMfRqB8YQsY2eTA8R6xybuVyHkAG3nciARjivGo6aSnzByPryjPMKCPI0910qHOdnp8DntMAYUhNXFSW9F8xek9NMwgmK05MJxaJi+rZ7LK5qinhqwZRLDO1DUvC65R0VJwcM47jAtUMaXjQz6so5NzX2NvgPGQ4x4BqsPWkKXpWsO9gYrgUaFQnDcB9QKeUVc6aL+X7ysOvb70kbLq7dM29ZAfh59w1j3HKphBHB270xQazzm0SFBN0h/fDTs6BtBXsPMW/wuX8vm9nLZM+tZ7ALL3mTwxi7rDp4CnrVhWCw5dytYBFMG8fwsNjQsD29lKJeURhe/a4xpIhpNt7Ts9cLJhN9vzMvH8Ft8fQEqmSF20Ev5DQ09f0boeus4fYlIPaN5Rmhgz4fMJ1p2/aGaK896hV4/21dULItKIlqbnpkwyOzRJuCulP3iKcbhH3/9GdY8Ho67YyGfwEHMZPxWBkAAA==",
            text: #"""
/* Hermes
   SPDX-License-Identifier: Apache-2.0 */

:root {
    color-scheme: light dark;
    --paper: #ffffff;
    --side: #f2f4f7;
    --ink: #14181f;
    --faint: #55606e;
    --line: #c3cad3;
    --accent: #1d5fb4;
    --on-accent: #ffffff;
    --own: #dbe8f9;
    --other: #eceff3;
    --error: #a61b1b;
    --good: #176b3a;
    font: 16px/1.45 system-ui, "Noto Sans", "Noto Sans CJK SC", sans-serif;
}

@media (prefers-color-scheme: dark) {
    :root {
        --paper: #14171c;
        --side: #1b2027;
        --ink: #e8ebef;
        --faint: #a3adb9;
        --line: #3c4550;
        --accent: #86b6f5;
        --on-accent: #0d1622;
        --own: #213a5c;
        --other: #272d36;
        --error: #ff9d96;
        --good: #7fd8a2;
    }
}

* { box-sizing: border-box; }
[hidden] { display: none !important; }
html, body { height: 100%; margin: 0; }
body { background: var(--paper); color: var(--ink); }
#app { height: 100%; }
h1, h2, h3 { margin: 0; font-size: 1.1rem; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 1px; }

.hidden-text {
    position: absolute;
    width: 1px;
    height: 1px;
    margin: -1px;
    overflow: hidden;
    clip-path: inset(50%);
    white-space: nowrap;
}

button, input, textarea { font: inherit; color: inherit; }
button {
    min-height: 2.5rem;
    padding: 0.3rem 0.8rem;
    border: 1px solid var(--line);
    border-radius: 0.5rem;
    background: var(--paper);
    cursor: pointer;
    white-space: nowrap;
}
button:hover { border-color: var(--accent); }
button.main { background: var(--accent); border-color: var(--accent); color: var(--on-accent); }
button.plain { border-color: transparent; background: transparent; }
button[aria-pressed="true"], button[aria-selected="true"] { border-color: var(--accent); box-shadow: inset 0 -2px var(--accent); }
input, textarea {
    width: 100%;
    min-width: 0;
    padding: 0.45rem 0.6rem;
    border: 1px solid var(--faint);
    border-radius: 0.5rem;
    background: var(--paper);
}
.field { display: block; margin-block-end: 0.7rem; }
.field > span { display: block; color: var(--faint); font-size: 0.9rem; }
.error { color: var(--error); min-height: 1.4em; margin: 0.3rem 0; overflow-wrap: anywhere; }
.bar-error { margin: 0 0.8rem; }
.bar-error:empty { min-height: 0; margin: 0; }
.actions { display: flex; flex-wrap: wrap; gap: 0.5rem; margin: 0.5rem 0 0; }
.faint { color: var(--faint); font-size: 0.9rem; }

.login { max-width: 22rem; margin: 0 auto; padding: 10vh 1rem 1rem; }
.login h1 { font-size: 1.6rem; margin-block-end: 1.2rem; }

.main-view { display: grid; grid-template-columns: minmax(15rem, 22rem) 1fr; height: 100%; }
.side { display: flex; flex-direction: column; min-height: 0; background: var(--side); border-inline-end: 1px solid var(--line); }
.bar { display: flex; align-items: center; gap: 0.5rem; padding: 0.6rem 0.8rem; border-block-end: 1px solid var(--line); }
.bar .grow { flex: 1; min-width: 0; }
.bar h1, .bar h2 { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.connection { display: block; font-size: 0.85rem; color: var(--faint); }
.connection[data-state="live"] { color: var(--good); }
.tabs { display: flex; gap: 0.4rem; padding: 0.5rem 0.8rem; }
.tabs button { flex: 1; }
.inline { display: flex; gap: 0.4rem; padding: 0 0.8rem 0.6rem; }
.list { flex: 1; min-height: 0; overflow-y: auto; margin: 0; padding: 0 0.5rem 0.5rem; list-style: none; }
.list > li { margin-block-end: 0.2rem; }
.inline button { flex: none; }
.row { display: grid; grid-template-columns: 1fr auto; gap: 0 0.5rem; width: 100%; text-align: start; border-color: transparent; background: transparent; }
.row[aria-current="true"] { background: var(--paper); border-color: var(--accent); }
.row .name { font-weight: 600; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.row .last { color: var(--faint); font-size: 0.9rem; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.row .time { color: var(--faint); font-size: 0.8rem; }
.badge { justify-self: end; min-width: 1.5rem; padding: 0 0.4rem; border-radius: 1rem; background: var(--accent); color: var(--on-accent); font-size: 0.8rem; text-align: center; }
.person { padding: 0.4rem 0.5rem; border-radius: 0.5rem; }
.person .actions { margin: 0.2rem 0 0; }

.pane { display: flex; flex-direction: column; min-width: 0; min-height: 0; }
.pane .bar .back { display: none; }
.empty { margin: auto; color: var(--faint); padding: 1rem; }
.lines { flex: 1; min-height: 0; overflow-y: auto; margin: 0; padding: 0.8rem; list-style: none; display: flex; flex-direction: column; gap: 0.4rem; }
.line { max-width: min(38rem, 85%); align-self: flex-start; padding: 0.45rem 0.7rem; border-radius: 0.8rem; background: var(--other); overflow-wrap: anywhere; }
.line.own { align-self: flex-end; background: var(--own); }
.line.note { align-self: center; background: transparent; color: var(--faint); font-size: 0.9rem; }
.line .author { font-weight: 600; font-size: 0.9rem; }
.line .text { white-space: pre-wrap; margin: 0; }
.line .meta { display: flex; flex-wrap: wrap; align-items: center; gap: 0.5rem; color: var(--faint); font-size: 0.8rem; }
.line .meta button { min-height: 1.6rem; padding: 0 0.4rem; font-size: 0.8rem; }
.line.recalled .text { font-style: italic; color: var(--faint); }
.earlier { align-self: center; }
.typing { min-height: 1.6rem; padding: 0 0.9rem; }
.composer { display: flex; gap: 0.5rem; align-items: flex-end; padding: 0.6rem 0.8rem; border-block-start: 1px solid var(--line); }
.composer textarea { flex: 1; resize: none; max-height: 30vh; }

dialog { width: min(32rem, 94vw); border: 1px solid var(--line); border-radius: 0.8rem; background: var(--paper); color: var(--ink); padding: 1rem 1.2rem; }
dialog::backdrop { background: rgb(0 0 0 / 50%); }
dialog ul { list-style: none; padding: 0; margin: 0.6rem 0; }
dialog li { display: flex; flex-wrap: wrap; gap: 0.4rem; align-items: center; padding: 0.3rem 0; border-block-end: 1px solid var(--line); }
dialog li .grow { flex: 1; min-width: 8rem; overflow-wrap: anywhere; }
.check { display: flex; gap: 0.5rem; align-items: center; }
.check input { width: auto; }

@media (max-width: 44rem) {
    .main-view { grid-template-columns: 1fr; }
    .main-view.chosen .side { display: none; }
    .main-view:not(.chosen) .pane { display: none; }
    .pane .bar .back { display: inline-block; }
}
@media (prefers-reduced-motion: no-preference) {
    button { transition: border-color 0.15s; }
}

"""#
        ),
        WebFile(
            path: "/chat/chat.js",
            contentType: "text/javascript; charset=utf-8",
            tag: "9f789ccf978a4c99694748cc23995bdf",
            gzipBase64: "H4sIAAAAAAACA7U8a2/kRnLf9SvahHEgfSNKuhwOgXSysre7OC+yfsC7gRMIQrY17NHwxCEnbFJjRZ7/nnr0mxyt4mz8YcXpR3V1db272icn4jvVb5Q+OjkRH3568+/H7+ularU6flepdqhXterPxautXK7V8Z/K06OjerPt+kE8iVfLZTe2w0JI/tBiL1Z9txFZeWKayn/o7MLP0Otu90Y9wAJ6QT/+3nfjlj9/UPwrAFLVsunudAJEDoPabGHZ23EYunYheNhCAKpNtRBrhvdzt4NFhnqjPqpfhxBqt0kgNrK9G+WdguHBuPrsn9tk4Pu6JczHzUb2j8HYBjt48NHJN9+Ij2tFS4tbNeyUasWw60TbDbhzMazlAP8oMWrVixoaHrd1CxuoW7Gpm6bWatm1lS7FNydH8KUHM+InCTPEpfjz6ekpLMRdfdcN0Iar/gsMU+Lpu4/fv3/bqA0c3x5AiLzqliP+Ku/UYDr+9viuyjO53WZFcWEg6UEOo/69sHg2gTsKABgmEb+JdmwahHHUqMGyDCyGzRfUtlx3Gkh1KTIgYwAiWwLBdAYgMkB0kEv44QAN8hZn8BCe9staAXV7IjFQ+AE+tawrpns9iHulthpOQyjZN8DeArhfw/Fr0a1okkEEFoO5Wg5115Z2vVq/7jZb+MKDWMlGK0YeUa1e4YZOI+Rl+7gndlBMLLfIRsJxP9Rqx3jBBto75ZahjkvxtL8wq77p5Q5YwC9Ki2ArQGyXwLvA8wr3uoElDTgNe9gw0NXYLnEjpqfKC/F0JOC/eiVyB74QvRrGvr3grmDVoR8Vt2o1fATW7sYhByCX3xo46QSDpu2qoCMv+Pd+IU7hc497EMfHx+J9d3eHs4Ai+BPQ9fiiLEN/3eaq77ue2MPi7phxqIcGD2TIM/rMzErM2NtGLrF3nWfbbAFyvGyk1uciI4jQ0neNgp+yUf2QIXrUEcGo24d6IFbAvaGmyWEx35oVCLiVGwQUNIN2HIduaXgG+rrVCpYwsP3Acl1XFXG/pzSvvOr6DSHvaJlhU7Zwv5/2/tuhhqhESFED7FX911j3qjqnhRbALr82qr0b1ufiL3+eYIsqykzEnhUQXPNM2MPMqlsg7K7rq2hl17ggMYlbUnwSBJZj38MJH7sZ0bqefr6NTtv/DOhGtNsGhCPiOW6QxHAaGSAaAWzDpibiHZRfaDBbbJBDiXWACPDjHTBE8RwYM69Xd7UeVG+nut/hbPNpeAYPvwQ8x9tNjfpG6sd2KfJA53ygrrcPVmkr/EpEldrKbU9/36iVHJvBymfA9foH0kOpQkNLwBAYDcC4uCpxT+Ly8jLYVgqQN74Q9jgXwRGew5gK+AoFDPdoNWYKo62X9z/QUgSsfJDNqMqhrzfhBuROAnmMs5AzU1haJbQIQKOrcGnmGtNVdlvV5nbRYAU/bQn8i86SbFBnOwT9Ns/dF2Mr9jGYAbyJGB+vmuEECoMRolcuwWYBVpbE+ZMoy9JjMKWoXTJBnbgAdPQMbGLg3MNMZu7FUg7Ltch7tRo1dM/gHgEFc5rPrD6n/eY4zS5TEn98BQx2dnp2NoU3rPtuJ8zoBOXol3VYS1BvOeF44HjR+Bg2oHFBtyXnPtTV9223w124BWTTlBu5zXPkVGI7UANNjSpgbz3YnEWCuRLcqH7g0UURWSDrpaKHZiairjGtqHD1roZjee+8Wa+sgP1JPUUAO/SSEBphXbIVEN+KU/GHPyCaYxMpPPBLB2jIZF/L40beqiY7R5Vl9wpWGbYEvEjgzEronQKrkvi9XtdNBco8B9hGewbQnQKF3vWZIZC357A9VAoLg/XCk6MI9aLVGaSLSjJXObsa3qGIqOT8IAuvHMAZaRy/OhfDfhint8TxQDs3zRgq1n//vc7EFf45/k6iRUFfozXKEKXa0KyIGMw28jASTe/8WH8JpGMre7lxnvWelVbo4k24NnD1rOMNR2w/UaB4mI3aIokNXHUYFLWVxpmEPvPF3bcjnLSjoPH8GP0j8Y34ERSqFrJ1oMklhkDoFuQXHI4SBuE4u1MNuh2I/ZsY20qtINSq9qT5j3DXrNL93p38JGJ4fXoT0uErFkivuCJS28bQG94fvchOeCXCywRqdSnbnxUEj9G6zynKF+IUqzOPAET0v9TDGjx1IWEFiEH7e4o9tsCwBFyLnQmK1lKXNCm2MYhtDooX9X1urCc7x7EJfW4Xaaw33R1BLE0YZvWq+TujgoGTklNvlHzwomz0pVoNngeCI8GOONBh7LE9sIA/QoDzBMM23YPipIVzfA09jB9hMQ2ggC6C+HhGghwBomB3gkMoftTObB0FTR+jIHISNxkZjEmCaQoS5B3nMvLEwoBSJw9mouTN2aCVIV2+7poKE0NhV2wKBxYR0Ob4JXslSd+jhJ+LMzIUBD+KQM7+8p+np6eY0unRIYdQIDVaGBp0mDch0BwIBWbEdrM/DQsvnnPfjdMNBwEBi7e2DCL0sUPv+v/mV+NamJDKB+9OGLphCyx6rx4r9iLCVf9VPd52sq+eXx35mzEAKKTYs7cthRe//WZQ0+t6NQA038IpjU5P4v8vs5+63Y5EwwRXc56of5yUXpWUyMHkUs4SEixFwkvjAfU3clAlOBoA9dglX/4aJsqme/E5Gj97oqaurArAPAdBy3FNcAvmHL51TXI9IzEgY69h3ncwYE5qou4YpjFea0wvAOmyaQwPsoMLfzZ4jnINDNwmUeZzIeJW9scHsiIRGKnvGYgXLZYlNIJZ7LhqJXuIFuYFtm5RKZEkshsMkK3mp3n/P2Jo40La6+fjQsulHFOGvIoGNp+EoUkY4Th3ypO2m/KYKK8uxYkuWjbWVYZpMcuCByOtlHuRM5QeXjM0y8IlwJsJxBIQTScrM1Hnk9iPHFMQTrRRBBZUTTLI0yMwcAeDpi3EXsnhHkr5Gj8VTik9K84Dew91knPkPzav6saQSfSpFjIZgYpiU+BbgDv9D2aeUKG1aslxN7C63so2sU22P05ioWRz0BM0EgE+ytvzINZjoqAyAYq5n0WEAdEqnWdJ6Ke6lmA2BnjnhwM/Z5nOBbpE79r30B5thEI13sufIgh3YPXjPYNkgnJfqnlKrSSqxWhCpQZZNzrclmnCXX1ecl9gX2ZCJJqNcniHV1PvEll0N1h2ysL2lWZ8lC9YhIYI7Artvaofoq1zl2AKOB1sLlciIOb24txnFLwu5y7Sqp5ethXohRL+ln+GHIAq8fF8xjZgu/WWWPQd50SifCtJlP2a2OAPyGiNjLPDFjqNcaoBJbQEM8T2Yq0kWMwsHm42BtMWPJwYz3xbzjI/DZNEBgni9zHCEhsogQIH+j18L5xBh7Bo223HLdj0jO8ZE0zJA4+z83SkR9P8Mg49xklRhjnNT7fy4WCGWteVmkvBGE0wk7h+hn4zzGfk1JBuY2noFRfQCGk1zWxP2Fjeag/JKjMPz6qpBBKb/Lgt0bKO8qiWJjlyg84kvQQaRnl8gATmizh7wVbAJo8sU5lbWWsE4iz8bGLLcUSScmJDFGYfrI4BT/YrPyvyDmzCvNbmPgrCItXIR0qQ+0wN+6qgH9RFcJ/HvoQeui24vORKmKjd68iTE/GqpWwawMXw1sS6FediuhaOv+tNvoCT1zbLUyZO/Fyo/VzkPwl+yfxMQt/PJwnm8yEJ05Zo1NGfofQcyAtS9Hs5rMulqps8Z6peXYnTQpyIMwhAi1DCA0CVHCSEBUxuAFXr+XH2OpJQvrI44xJ2w0bAEtTsqdpsdAjdiBCGJa8G8DJBe4EmJU2AKk8rvEz7QJmywJk0LkKMphW+/yUs7zME4MAhmtA3WR4zoRQWYBoUxseXs5SjpRSiS7XiRdyDMonWKzTWAZZ4BsfgiWRBli3dLwkchlfOfSWnlVoTvxalAJMS4S18hUUZ0siGUQrlzH2yRR2ky2mkEtzu/vEDzFoOXZ9/urb4XmZfP73+8KFUeim3Kjdzi3128ynYCYMGgPyBEfw8WQoe4VPc1uH9CTRdnNYZ2x6sQKg0yAfCqwkIHcelynM9bth34TuIcSP+6Pwg6zMxmJxHkbTwNf7sRbxZ80p8yr9+4h/7Qnz95BP6+0/iPLqvTxWmOb8ogYXZIwwVEtRgK4jR9U3Bly1uJ2m2AazBwMnqoWSdL4f8+Gxy75mS7CAN0omoJTVdC8CPK5Hj3xI4CYQfNut+FbB3+tGrJSCvKurO7K8M+02VEU9asngV2JFNblUt1R221PDjyiM6N4eyDAZRWyfFq+Gv+ZVq/drqbhv7keSxRk9Hb+S9msn8BGkEK9eakijWWqMbAm6OE/Vzt5h1fsxtC/Q4jGCTmARBLYPWJr1idQzkPb8sSxxTF84uAsySCAEglBKsalvlkzh6LpYxKZsoo7ngE0ucn0MQ8DTMpM1L5+AxTlcl7pyB4KR1DtStrO5mvU6eBT38Qdd/xmiYFuaheL2UnGS9o1tRoHAYN6WWHlCDIwpZQtd3LcRHPURK1yYUQFKZ/Vr8Fo5VbhbMmfvpTQNWDebevSSFY29Gr1j9wCLkNcLQPGu712xybqYXdHxttedMuCvls3NRLgaXzTB74ox1sJ9TRvXc8OlMqBeEZgSuoP0kqtQZvRkfdN7rZMdy4VIKCxey69ABjXKCyzRHx0j/1HebWqu/yvbxW0ricKGNT+NMsnLsmn8uNWezVggsTVO9MKMVJzWNdbFbZlvyJMYaeMfXdLDzt5+1L7V+pe+5/s34iOiV1C3EENA6o01/pPQnDHfUpdwEpumuStudTiPQrDEtaL6J1/f6PzqKZE36jzLD1KGoJOu26Zb3ptF8++zz1IrNFWPw4sU1/b1JZ6Kf52uSQt2aJ0dCt6VEXMr92voL2DbaFDJZxbP2JA2cUTAOxM1b1WvKuk3iVpDRDg4GJSrRlQ6jeE4msimQQ/kro4FwNxh1mMNGd9hkvTlHT9/TcrGJmk4yCy+vYOPaTMOa4Fz6zAcch9rSBQVmic2BcUwpW71TvU0gkxCgfS2KmWu04qXrVWrJu33ZglREWhQz4APx4j2YMNcvxTcRC2LJ3wWAw+FZVLkrQPVzOFphm4zB/66CRceWhs6uavrMerOgwvzoYUAhmMQ6BxmVQ4b3k1GQ4M4DiP2n2AAninLhlNyXtbouGL2ZCR04BooihxfmgV0upiQOxxS3LQjKeCAI+t+6rlGyZe/aVx+J3Fh4jtCwquU6STc9l2cy0Tknm24KF3i60ji6QQrQJHr47giri/lU0/QOyhoifntxOZvpji5rjJ3CocnlFByVjTBjaxZePhnvPNgGeWwHEiFRHBPMsfCTaQ451LduzOcUbxDohCnjgPCWPEBC2gtAfFB9MCU617m0CrvNi/mNhTszSXq/uH9wMFkPRSe+elhEQOIieNVtKUi8Lssyd3gQ8/lTwuCHLDD6ihxS37AfRIcHKsRJEAY2sAPSIlFZ4QNVZwSEQrVqSUhxLg6J6B67HYyqVwCfvn4yTf/oagjbIBYp9iaZQPibbELnDgUZPxCuiE0wp8KBkDg0xAyIsmamKMSdy4QRSNhcIoTH+ZI6COXvf3a5g4OxAvo+8WsNcp7wWKw6s/E3tNlnGtMnKXG5w2lcifcSregvdXFf7h4sFXlzR+ak20HaUYXUddB5E8Cj/TD1sUgkSmJRqu5QPs3WGwCThsWdISnJU7UxV1odGFWr/B4DYauQXLYT8Z9WoM9qXv4wmZxIC3soQVJ8cn42NuvG4bb7deYeIFbpH4BglFiNS+HD4Iq9AoZXInFyg567ySzCDVmYRYywmTNbmOcvGn+fQX6xCVvBiCqt0bCakKUuKttj19IvQvPT90+BYAUPoOgydpL1Bq/krb1hPVT5ijV7ssckFKpYukf3TwTx5Vnw5EynZbBJCRiVthxF2sLfy+emKCakOISDaOF9fRh5pq8QnTfdrsU8/Rlo0bn+f9ti7zF2nwbnghDnzoKFVBtjc0CWXzWNFecSE37FTfzeqlK/ulSdLuk3mJu5kPRAhrywxcgE4Zoh/pHIcHOV6JwD5UL75CEaXg6/OIniKsLnkiX92M4mS+ym0hxJWNtk3IyZQtswFbKfrfWPXias6gZfkPjHCVS4M3TvOwzEJEInc2l24u6l4iFxfZlxfi/Ns1wfxaZAvuQTLR/0tOYZMSVBxtYIe/jAODeILIS/J0jzv5O4KIxg6f3yFL552GzBPwMifLOBMOIXCc/Mo6JkO4tqnmeeidmb/3/yRXn+iUbxJakOss18lTxxiZ61BESKnrbMbnL6pAeQrypT/53NxNgI/nCK8HMX0dEFwdyl9DSnaNn44Kumg4X7c5VAacztagxA83i1VrHOR8WuWhDY7KHW9W3d1MMj31hmC3t1CVOfmWcquPDeI62ajEuHSfW/pavKjJ08Ig58eRc38cxMeUxRBGU+F4dA33NNAjUuh77BgmR7jcqlEC+v5fQxe4IRlc9eI8Nd4j83kdfI5QL7kF5f5ImPeXSBbyrcU4uOHrzs0rcYF/bBi+/bdNUIURr2YnPV2Z7yqJUP9Z2EjZX4qB1UzS806Mq/BMx4Gv5/CDBHZ97aMshs9tmCe1bwPyfC4egHQgAA",
            text: #"""
// Hermes
// SPDX-License-Identifier: Apache-2.0

import { Account, accounts } from "./account.js";
import { showDevices, showGroup, showNewGroup } from "./dialogs.js";
import { attempt, button, dialog, field, h, showRows, timeText } from "./dom.js";
import { language, t } from "./i18n.js";
import { Lines, summary } from "./lines.js";

/** The time between two notices that the user is typing, in milliseconds. */
const typingPause = 4000;

const root = /** @type {HTMLElement} */ (document.getElementById("app"));
const status = /** @type {HTMLElement} */ (document.getElementById("status"));

/** @type {Account | null} */
let account = null;
let chosen = "";
/** @type {"chats" | "contacts"} */
let tab = "chats";
/** Whether the server said that it keeps no earlier messages of the chosen conversation. */
let isComplete = false;
let typedAt = 0;
/** @type {any} The elements of the main view that change. */
let view = {};
let isDrawing = false;

/** Draws once, however many changes come. */
function changed() {
    if (isDrawing) return;
    isDrawing = true;
    setTimeout(() => {
        isDrawing = false;
        draw();
    }, 0);
}

/* --- Logging in --- */

function showLogin(error = "") {
    document.title = t("title");
    const place = h("p", { class: "error", role: "alert" }, error);
    const invitation = field(t("invitation"), { name: "invitation", autocomplete: "off" });
    invitation.hidden = true;
    const form = h(
        "form",
        {},
        field(t("name"), { name: "name", required: true, maxlength: 64, autocomplete: "username", autofocus: true }),
        field(t("password"), { name: "password", type: "password", required: true, autocomplete: "current-password" }),
        invitation,
        place,
        h(
            "p",
            { class: "actions" },
            h("button", { class: "main", name: "login" }, t("logIn")),
            h("button", { name: "register" }, t("register")),
        ),
    );
    form.onsubmit = async (/** @type {SubmitEvent} */ event) => {
        event.preventDefault();
        const isNew = /** @type {any} */ (event.submitter)?.name === "register";
        const { name, password, invitation: code } = form.elements;
        const nickName = name.value.trim();
        await attempt(place, async () => {
            const next = await Account.open(nickName);
            const credential = { nickName, password: password.value };
            try {
                if (isNew) await next.client.register({ ...credential, invitation: code.value });
                else await next.client.logIn(credential);
            } catch (refusal) {
                await next.close();
                invitation.hidden = /** @type {any} */ (refusal).code !== 1011;
                throw refusal;
            }
            accounts.use(next.nickName);
            showAccount(next);
        });
    };
    const known = accounts.all.map((name) => h("li", {}, button(name, () => start(name))));
    const languages = button(t("language"), switchLanguage, { class: "plain" });
    const others = known.length > 0 && h("ul", { class: "list", "aria-label": t("accounts") }, ...known);
    root.replaceChildren(h("main", { class: "login" }, h("h1", {}, t("title")), form, others, languages));
    form.elements.name.focus();
}

function switchLanguage() {
    language.toggle();
    document.documentElement.lang = language.current === "zh" ? "zh-Hans" : "en";
    if (account) showAccount(account);
    else showLogin();
}

/** @param {Account} next */
function showAccount(next) {
    if (account && account !== next) account.close();
    account = next;
    account.changed = changed;
    build();
    draw();
}

/**
 * Opens an account of this browser.
 *
 * @param {string | undefined} name
 */
async function start(name = accounts.all[0]) {
    if (!name) {
        showLogin();
        return;
    }
    const next = await Account.open(name);
    if (!next.client.canResume) {
        await next.close();
        showLogin();
        return;
    }
    accounts.use(name);
    // Without a network the page shows what it has.
    next.client.resume().catch(async (error) => {
        await next.close();
        account = null;
        showLogin(error.message);
    });
    showAccount(next);
}

async function leave() {
    const left = account;
    if (!left) return;
    await left.client.logOut({ removeDevice: true }).catch(() => {});
    await left.forget();
    account = null;
    chosen = "";
    await left.close();
    await start();
}

/* --- The main view --- */

function build() {
    const lines = new Lines();
    const label = { "aria-label": t("message"), placeholder: t("message") };
    const text = h("textarea", { rows: 1, ...label, maxlength: 16_000, dir: "auto" });
    const composer = h("form", { class: "composer" }, text, h("button", { class: "main" }, t("send")));
    composer.onsubmit = (/** @type {Event} */ event) => {
        event.preventDefault();
        sendText(text);
    };
    text.onkeydown = (/** @type {KeyboardEvent} */ event) => {
        if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
        event.preventDefault();
        sendText(text);
    };
    text.oninput = () => {
        const chat = account?.chats.get(chosen);
        if (!chat || Date.now() - typedAt < typingPause) return;
        typedAt = Date.now();
        account?.client.setTyping(chat.to);
    };
    const hint = { "aria-label": t("newChatHint"), placeholder: t("newChatHint") };
    const name = h("input", { name: "name", ...hint, required: true, autocomplete: "off" });
    const error = h("p", { class: "error bar-error", role: "alert" });
    const ask = h("button", {}, t("open"));
    const search = h("form", { class: "inline" }, name, ask);
    search.onsubmit = (/** @type {Event} */ event) => {
        event.preventDefault();
        attempt(error, async () => {
            const chat = await account?.chatWith(name.value.trim());
            if (!chat) return;
            if (tab === "contacts" && "uid" in chat.to) {
                await account?.client.requestContact(chat.to.uid);
                await account?.loadContacts();
            } else choose(chat.key);
            name.value = "";
        });
    };
    const pick = (/** @type {"chats" | "contacts"} */ next) => () => {
        tab = next;
        draw();
    };
    view = {
        lines,
        text,
        composer,
        ask,
        error,
        connection: h("span", { class: "connection" }),
        me: h("h1"),
        chatsTab: button(t("chats"), pick("chats")),
        contactsTab: button(t("contacts"), pick("contacts")),
        list: h("ul", { class: "list", onkeydown: moveInList }),
        title: h("h2", { class: "grow" }),
        presence: h("span", { class: "faint" }),
        details: button(t("details"), () => {
            const chat = account?.chats.get(chosen);
            if (account && chat && "groupId" in chat.to) showGroup(account, chat.to.groupId);
        }),
        typing: h("div", { class: "typing faint", role: "status" }),
        earlier: h("li", { class: "earlier" }, button(t("earlier"), loadEarlier)),
        empty: h("p", { class: "empty" }, t("choose")),
    };
    const back = button(t("back"), () => choose(""), { class: "back" });
    view.bar = h("header", { class: "bar" }, back, view.title, view.presence, view.details);
    const menu = button(t("menu"), showMenu, { "aria-haspopup": "dialog" });
    view.main = h(
        "div",
        { class: "main-view" },
        h(
            "nav",
            { class: "side", "aria-label": t("chats") },
            h("header", { class: "bar" }, h("div", { class: "grow" }, view.me, view.connection), menu),
            h("div", { class: "tabs" }, view.chatsTab, view.contactsTab),
            search,
            error,
            view.list,
        ),
        h("main", { class: "pane" }, view.bar, view.empty, lines.element, view.typing, composer),
    );
    root.replaceChildren(view.main);
}

function draw() {
    if (!account || !view.main) return;
    const { is, error, delay } = account.client.state;
    if (is === "stopped" && error) {
        // Another device removed this one, or the password changed.
        const left = account;
        account = null;
        chosen = "";
        left.close();
        showLogin(error.message);
        return;
    }
    view.connection.textContent = t(is, Math.ceil((delay ?? 0) / 1000));
    view.connection.dataset.state = is;
    view.connection.title = error?.message ?? "";
    view.me.textContent = account.nickName;
    view.chatsTab.setAttribute("aria-pressed", String(tab === "chats"));
    view.contactsTab.setAttribute("aria-pressed", String(tab === "contacts"));
    view.ask.textContent = t(tab === "chats" ? "open" : "ask");
    const focused = document.activeElement?.getAttribute("data-key");
    if (tab === "chats") drawChats();
    else drawContacts();
    // A row that changed is another element.
    const place = focused && view.list.querySelector(`[data-key="${CSS.escape(focused)}"]`);
    if (place && place !== document.activeElement) place.focus();
    drawPane();
    const unread = account.chats.all.reduce((sum, chat) => sum + (account?.chats.unread(chat) ?? 0), 0);
    document.title = unread ? `(${unread}) ${t("title")}` : t("title");
}

function drawChats() {
    const rows = (account?.chats.all ?? []).map((chat) => {
        const last = chat.lines.at(-1);
        const unread = account?.chats.unread(chat) ?? 0;
        const words = last ? (last.note ? t(last.note) : last.recalled ? t("recalled") : summary(last.content)) : "";
        const title = account?.titleOf(chat) ?? "";
        const time = last ? timeText(last.time) : "";
        const isChosen = chat.key === chosen;
        const make = () => {
            const attributes = { class: "row", "data-key": chat.key, "aria-current": isChosen ? "true" : null };
            const row = button("", () => choose(chat.key), attributes);
            row.append(
                h("span", { class: "name", dir: "auto" }, title),
                h("span", { class: "time" }, time),
                h("span", { class: "last", dir: "auto" }, words),
                unread ? h("span", { class: "badge", "aria-label": t("unread", unread) }, String(unread)) : "",
            );
            return h("li", {}, row);
        };
        return { key: chat.key, signature: [title, time, words, unread, isChosen], make };
    });
    showRows(view.list, rows.length ? rows : [emptyRow("noChats")]);
}

/** @param {string} text */
const emptyRow = (text) => ({ key: text, signature: 0, make: () => h("li", { class: "empty" }, t(text)) });

function drawContacts() {
    if (!account) return;
    const { client, contacts, presences } = account;
    const act = (/** @type {() => Promise<any>} */ action) => () =>
        attempt(view.error, async () => {
            await action();
            await account?.loadContacts();
        });
    const rows = contacts.map(({ uid, nickName, state }) => {
        const isAsking = state === "incoming";
        const isOnline = presences.get(uid)?.isOnline;
        const states = { incoming: t("asksYou"), requested: t("asked"), blocked: t("blocked") };
        const words = /** @type {any} */ (states)[state];
        const open = async () => choose((await account?.open({ uid }, nickName))?.key ?? "");
        const make = () => h(
            "li",
            { class: "person" },
            h("strong", { dir: "auto" }, nickName),
            " ",
            h("span", { class: "faint" }, words ?? t(isOnline ? "online" : "offline")),
            h(
                "div",
                { class: "actions" },
                isAsking && button(t("accept"), act(() => client.answerContact(uid, true)), { class: "main" }),
                isAsking && button(t("decline"), act(() => client.answerContact(uid, false))),
                state === "accepted" && button(t("open"), open),
                state === "accepted" && button(t("remove"), act(() => client.removeContact(uid))),
                state === "blocked"
                    ? button(t("unblock"), act(() => client.unblock(uid)))
                    : button(t("block"), act(() => client.block(uid))),
            ),
        );
        return { key: `contact ${uid}`, signature: [nickName, state, isOnline], make };
    });
    showRows(view.list, rows.length ? rows : [emptyRow("noContacts")]);
}

function drawPane() {
    const chat = account?.chats.get(chosen);
    view.main.classList.toggle("chosen", Boolean(chat));
    for (const element of [view.bar, view.lines.element, view.typing, view.composer]) element.hidden = !chat;
    view.empty.hidden = Boolean(chat);
    if (!account || !chat) return;
    const isGroup = "groupId" in chat.to;
    const presence = "uid" in chat.to ? account.presences.get(chat.to.uid) : null;
    view.title.textContent = account.titleOf(chat);
    view.presence.textContent = presence ? t(presence.isOnline ? "online" : "offline") : "";
    view.details.hidden = !isGroup || chat.isOver;
    view.lines.element.setAttribute("aria-label", account.titleOf(chat));
    view.earlier.hidden = isComplete;
    view.lines.show(account, chat, view.earlier);
    const people = [...(account.typing.get(chat.key)?.keys() ?? [])].map((uid) => account?.nameOf(uid));
    const over = chat.isOver && isGroup ? t("over") : "";
    const words = people.length ? `${people.join(", ")} ${t("typing")}` : over;
    if (view.typing.textContent !== words) view.typing.textContent = words;
    view.composer.hidden = chat.isOver;
    if (!document.hidden) account.markRead(chat);
}

/** @param {string} key */
function choose(key) {
    chosen = key;
    isComplete = false;
    typedAt = 0;
    draw();
    const chat = account?.chats.get(key);
    if (chat && "uid" in chat.to && chat.to.uid) account?.watch([chat.to.uid]);
    if (key) view.text.focus();
    else view.list.querySelector("button")?.focus();
}

/** @param {any} text */
async function sendText(text) {
    const chat = account?.chats.get(chosen);
    const content = text.value.trim();
    if (!account || !chat || !content) return;
    text.value = "";
    typedAt = 0;
    const { outbox } = account.client;
    const isStored = await attempt(view.error, () => outbox.send(content, chat.to));
    if (!isStored) text.value = content;
}

async function loadEarlier() {
    const chat = account?.chats.get(chosen);
    if (!account || !chat) return;
    const found = await account.earlier(chat).catch(() => false);
    if (found) return;
    isComplete = true;
    status.textContent = t("noEarlier");
    draw();
}

/**
 * The arrow keys move between the conversations.
 *
 * @param {KeyboardEvent} event
 */
function moveInList(event) {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (!step) return;
    const buttons = [...view.list.querySelectorAll("button.row")];
    const index = buttons.indexOf(/** @type {any} */ (document.activeElement));
    buttons[index + step]?.focus();
    event.preventDefault();
}

function showMenu() {
    if (!account) return;
    const current = account;
    const run = (/** @type {() => any} */ action) => () => {
        element.close();
        action();
    };
    const others = accounts.all.filter((name) => name.toLowerCase() !== current.nickName.toLowerCase());
    const element = dialog(
        current.nickName,
        h(
            "p",
            { class: "actions" },
            button(t("newGroup"), run(() => showNewGroup(current, (chat) => choose(chat.key)))),
            button(t("devices"), run(() => showDevices(current))),
            button(t("language"), run(switchLanguage)),
            button(t("logOut"), run(leave)),
        ),
        h("h3", {}, t("accounts")),
        h(
            "p",
            { class: "actions" },
            ...others.map((name) => button(name, run(() => start(name)))),
            button(
                t("addAccount"),
                run(async () => {
                    account = null;
                    chosen = "";
                    await current.close();
                    showLogin();
                }),
            ),
        ),
    );
}

document.addEventListener("visibilitychange", changed);
document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && chosen && !document.querySelector("dialog")) choose("");
    if (event.key === "k" && event.ctrlKey && view.main) {
        event.preventDefault();
        view.main.querySelector("input[name=name]")?.focus();
    }
});
document.documentElement.lang = language.current === "zh" ? "zh-Hans" : "en";
// With it the page opens without a network; browsers without module workers do without.
navigator.serviceWorker?.register("worker.js", { type: "module" }).catch(() => {});
start();

"""#
        ),
        WebFile(
            path: "/chat/dialogs.js",
            contentType: "text/javascript; charset=utf-8",
            tag: "d96cd748fda15ee2000569f80df3b06f",
            gzipBase64: "H4sIAAAAAAACA71ZbW/cuBH+7l/BCMFVChRtry2KYl3H9TnuJYAdHxz3BTCMhpa4Xl70dhK1m8WegPZX9Xv/Sv9IZ4ak3hXv3QX1F0vicGY488zwIXexYG9EkYjyaLFg7797/feXlzIUaSlevo1EquRKimLJznIersXL3wS/PjqSSZ4Viu0ZV0okufLZQ6VUlvoskjzOHn0Gc+LIZ2ufKZmIW/FJsZqtiixhTrCIsiT4vnSOWz3dUfn1H1I9fLR48eKIvWBn5ceSPYhVVghWZolQa5k+MlmySJSqyHYiCkAMJf+U84InbA+fQaRm2zVX9L0QqirSku2/AyuyFH98yLJY8PRVDcOLI/GJHFlVaahklrIwS1cSQhK5qMFj+yMGf1oJS8WWGTWuW4gyizfCYyevjBT+wfxSsZ0o2YkJDSnymTsQ1GpJhauKSnjHvSERiwRSEIRxBsY6g3XnWRszomBQ58AYXLtO7vhsX0MmXKesCuF4no+udTRYMzyKLjbwcClLJVJRuA4Zdqzf1tMVj0vhGQXoSk25asL/5vbq8kLrrBvHIMzG06LIiusVeOqaMVJOCtQuF4P5LxaNXPBDJYrde3gLVQbeBaTKQU8sVm7XgvEwzKpU/QoBsgEol0N4aNzB/IURRbx5wZl+qa2CSWiU62z7Wqt1jZzFh15eDMGDtUHgq9gxMZpJEbhgPHQgJzixJx9nPAJhXu7ScIQcLWKmo9SWS2U9B8BIjJcZ7iIHrQSFyGMeivO1jKNCpG4PdEFg5wUJz11Xv0wAt3VjD9V4XhWgCiAny+s0lqmAFfFSvRcivSp9BgYVVHDiM57nfxVFicGsMRak/nhGc8oT0QgF9Pbjj/ZVRnPTtlkRYVTucMa08ftgJWMFIP9GtwIv+D6Tqeuw//ybOd6c4hKWA3qb5bJTrCvoSKUGheOxZRMBPZjRMw3YZui2kZm1VIgk24jZ/Hf/5Iq5z1yNgLZ1fXi+B+tajePVS/Z8j9GoP3ieZ3rZ8aQ6AyXd211Trk2t+gc41NHSB6T2RofKbbLoHT+hBSvBnZGqJ77Xc0FVUsVCV2eZ8xQ7IwshGeWSOY9FtnUYNEoIHOGnZu7zPSa89j5MGDHbAaiKpW2xqN5nz1p4fPWV3QA6ufBNcr2B1trzm3fbXfW/+WRgaJoOjE3uzzIF6Ku2D5YsW+F7KaiafkE3HO2vpI/9Tao1xDdJOG7TagsRC6h3aqA0rbOSUQm+G32+nt1vnisYwZ6nHS3zWCp3cef7//3nv+4Xnu5HOEbYw4cAPElczxsW83F3xza7dcDj2CULpMjAOJXhx3dWpTuJWvPq7pkVhlR5AazH64X+vBBcQUA4AyxV+RcItBvCLg4NpZmZZJGI9bxzoibg9CaTUc2yXKSzO9Y7sf0WXWqDj+LD2BcJlUaDQQc/OS0mAeLNMzE8BDUtFWOCuN5TUnQxVUg8CvFDJQsRQe8DeuOzhH+KRfqo1kv2+99BK6lUBsjJY6FwVrZaOb0qaKwkInmAvt2zYb9Rfw/FOosjZKqt9BuZKpzxlBUoYV2kvX6QcJlSPwCFIWUWqdNRpzjnt/XUxButYxDNBHwMYFL1kEjVtvYO9SH+RaRHbCwzanssfQvygv6/FitexarbF39+5+7ttuSmmVUGGssbHle22o4nppLUHA/R4dMI1DuyFht2hL5hk0VtetgrEb+DaqVPe+3JW0CcdlxGmEP9TK3jp3LsulviZ1oTcEu9DuMj49C2Cmg9X6K7phXqrO1CZot6UNFGvF/UCGdMAVEtI9oF70MW7fR+GMnNIXRVcRlTGeLMnjwPUbYLZg00e+Ti6e4VIZvTEpAoXnLiyvo8AbItkH8GhC0YUPkQo8iQtDlvPuEaDbBNTpOOurdanfibbDtYM6ySFqnH/e6xxu6aOLq7AbBMUnpZXmEN6vm4x7CTk5O2oKDpY2Ucj2Zdb+HEhhNJNU1yMvzmDGUTvrux5PIZmQOW4loNQK/drg4eJTKFQ0PB4czloKhxrWhE9AfH88ZenXVnt8sqZtQPFWi5kZ5T5txcX1784+ri6puLGweYtX4/e3319t3b97c3Z7fXNyNlOQAxU6hPwweg4uon26bWPH0UV7qkXVNPtCXQAMYENoa7PfatZSdDvvazvkdaMFqCDfVPNaon/gVaJNhsjU0asbx2LjUQMTPUMJgl8tzBR2K8yu1o8YD7tsYayturGeK/vS9domA22Hm6Tb57/QkWjIC2BqENj55AQ8I/mhASGPC1J4MNy6R/YKkths9T9TlmfvBRvb9BmuTTR5v0UVZtGZrdy+6HK2D47nzPIetPtA/vlLL7C7vIOUF3UhrbyHwXGemqFF7p0T4k07xShBRcHCQzXIvw40P2yfEb4lcpEcErjYhmp6fPE1djcBDTvGaI2wG9nULul6G5xGCWHRLSo5+mQmL+IOJeidD6qEZ0gIiK4iobIno4gy35pj/N65Y1HaU6xPRwSnoILe3SEYrB0rInnTEwaFyw3K8/d6ZnftstnjYppKhLV42dpf4XGNT022g9BM1aEvXZA3QLyV/q5EwdLj579hjr5VF0IBKbNEp9gcTGTbWtldGRKAgCXMIQmlPAa5GjoQIuziEFhv4fMNH3Cidkbvo4MAZIt/c+tbWCXr2vTh9DzMXE5wESCz66nhvdwUE0Sc7BOzfYYEZIptEekAFSg18CzFWvLOn2/QCTVnTWqhV4wjBS/M/fFbebwKlts8vubw6dY9cIduvfGiF9Udmc8OmmsrvjndNJ6cNYQxUbDQD2/hZJF0WH7JBA4F1L1Q0pH/ZWUO5213kH6LmHZd7djz3Ke/1Xn0VKasF2az3tkIw2T36TXrwmbiUMeHyNNm/+fnBQAHv9q8z/AIP5NLDbGwAA",
            text: #"""
// Hermes
// SPDX-License-Identifier: Apache-2.0

import { attempt, button, dialog, field, h, timeText } from "./dom.js";
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
                const title = h("span", { class: "grow" }, `${words} (${seen})`);
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
            h("span", { class: "grow" }, title),
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

"""#
        ),
        WebFile(
            path: "/chat/dom.js",
            contentType: "text/javascript; charset=utf-8",
            tag: "4407645e57e9a42940682c69728d397e",
            gzipBase64: "H4sIAAAAAAACA6VXbW/bNhD+7l9xE4ZBKhx566fBaZp1W4FtaLeiDdABWbbS0jniIlMCSSc1XP333R0pS3KTDMMMtLHJe314r4sF/IR2g262WMC7Nz/+fvJKF2gcnvxcovF6rdEu4UWrigpPnuZfz2Z60zbWwx48dLC2zQaSfKG/+dbkf7vkdDZbPHkygyfwWt2gA2UAa9yQpBx+qHRdWjTgK+VBWQSPH72DFRbNJvwA05To5uCaQGQaX2lzDc0aFJCRTl0jaAd4ixY2yt5s25yUsb7vWmXVBvbOW+LowKgNjs/fkhZbPgvXczJs97wD5ennauvJ0ouqcRi0rvBaG7jTvoKkMYmYWilT1mjdKaxVTYT0E8y2rqFGdYvQGPq39flYY/orOQOfIKikL0L/KQjILq86KCIiwmXRb61xsCfTOjpZzPCjIL3emsLrxkCVslPzsdVnsO/mkOd5LyqD/QzoUzTG+R57IiubYivPUFhUHl+GCxGYnQrHurGQBrbLG9zN4VbVW7xi7H9b/Y2Fz4nBanTpoD/r1fFHryElxtx5Zb17T/ClDB/R9CGgyvLlLX15pZ1HgzaQ1xRw6dMsKozW8AcZaJYqF3B2dgbeEsVBnkP/orclFZuT5GH+L4g/PN5XX8FwJK8yOdmaEtfaYPmYpnfyqkF0FpV2x0DKqzCCw/OwPeF4rHw4CdExQNa2aMrAEbWEQOkpTmfdIedeANnnmxi7SlLqofzgu0m0ZnD2nNOCwpJe5OY/5M44WIPf0YwzSFnNPEj8LHBZo3hEgRI4kjnXlV2LSxhOGiPsy14KRftIEIU/68hORyhQ0SI0BQRNBaZWK6wfwkEu/5ezQRv5KqLGXo4dlEvxr6iVc+Sg8CXsAF27Von39EsoMznVpt36ZCIyOnow12w3K7T0nppq6D1Fg88vCKCUv0yrQ0mFgOw2eAc/0tdAcToi0O6iKdWOywfd575hshj4meTjgTc7uh2LqZtC1TguQv2XWIbyWpnrSXBHzYdUPu8teCWyLsjSqCkIZ1yrZkutKnl6UuprzahttCHIRkfQZQeJy6nEke2DxE1jfEX8riJISSBZRL8IcbS6YGnj5HtXNXfU8KDUqm6uqYh4XVP4cbsqauot5YOZqH2N9zUOLg7/0ieobWHUmN/bM8JdKjoeaRRiIb1QSLrUp4mcJBSGoTD09UiO02zyvkOXqdIDvknQnMwPJ3tIlNXqROK7xnK1S5Y92YkYyMlwIKfwr55KwujyHroAWzbQj3ybCGknSYfWNpZObFNzZNBDW4mLR1iUIOlEqbgfiSMGDza3COExghY3ze0A4SEnVk2568t9pD3SQGF495rSok7/tRO83RoZvoLtYX6ivrQB6k0qvvKpFEcBhIOUpVPiGfjQ1qrAD8fh+tPF61cxX2NsdiCUn3eRNzQVaofPYu0UG6ax21OsGnoHZYjqfYW+oqmOMsZtiwKxDBlzCGnldqYYAptKIm5an4oJ86ikD2pusnKRBRNzbhE/UDaHME2SgJ+3u9H8ou4UKQ+C0tEYEVHm0SO2eSiULypIBbvxCBTyYd+PqhQvnMkdqZSSzZ0t5u2TRc9+OhmgHrFaZJ3Dhy/3UXwHl1/u+bS7+kD1LJaveHk8B7FphHUuSj9THX2U4aOfZcZzRa0NdV4ykN4IKNItKeGgkbk3nN7h6qEKFxkeGUM+L1ysMY2MscVPKpZ273HFwP5Zed+68+Ufiz8WC02YOd/zZUc9hTnOOcGVJHhlcb2EQYey1+gp4f9aUT+64SKBNdf7pmk5oWkbIQZCDm1yGDsI92n3jsNIF7t0ePL3qG5eq/ZZzJ858I9+wtiD09dGkY1UkfrDmNNL6FOue/6co2YWvA/JGvpvFJ6ORqDQiyz/RwmtCExHC9gLPoE7WXQOKvkV+fkcbQJwg9i6UBZ6S/tVbE11ysnaI2OYk62I9jPq7mQPnbNeR9sFLXi0YpS0K8lf0qekCZKpx/ERfevEvvHFnizZDWCM8KHkocZOu+UyltUDPtwo2eN7o4nxekuXKWuaC900nG5MAFSAzSkOhDKD83PBOOI70BveVs+O70ajv7gwMb3ltSgYTyWBsmZsxSB5eJkz+OXdb7/mAQW93qWXUcSjc9TVKK2DxEbGU/FQPCPDRjTsCe83Ya0h2vN8ZALNeMOvcxG1HEfsKFLZMXqTbrIMBTxdxHMu2u4bHngjuKQWLtbIUuXS7CrfELYp4SRPTX/zaWe8b9ViKRLv/TRwFZauL3pNuaaFYluSgrBVZYH30JgnTdflpOOlKqo0PaSEpv3wo1g0XX4nWi+F6kp2ut7okIfaOBo6vkcSjIPQe5k5+ngIjIhKXfkHbUv/2LIRAAA=",
            text: #"""
// Hermes
// SPDX-License-Identifier: Apache-2.0

import { t } from "./i18n.js";

/**
 * Makes an element. Children that are texts become text nodes, so that nothing of a message is ever markup.
 *
 * @param {string} name
 * @param {Record<string, any>} attributes Those that begin with "on" are handlers; false and null leave one out.
 * @param {(Node | string | null | false)[]} children
 * @returns {any}
 */
export function h(name, attributes = {}, ...children) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
        if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
        else if (value === true) element.setAttribute(key, "");
        else if (value !== false && value !== null && value !== undefined) element.setAttribute(key, String(value));
    }
    for (const child of children) if (child !== null && child !== false) element.append(child);
    return element;
}

/**
 * A button with a text.
 *
 * @param {string} text
 * @param {() => any} click
 * @param {Record<string, any>} attributes
 */
export const button = (text, click, attributes = {}) =>
    h("button", { type: "button", onclick: click, ...attributes }, text);

/**
 * A field with its label.
 *
 * @param {string} label
 * @param {Record<string, any>} attributes
 */
export const field = (label, attributes) =>
    h("label", { class: "field" }, h("span", {}, label), h("input", attributes));

/** @param {number} time */
export function timeText(time) {
    const date = new Date(time);
    const isToday = date.toDateString() === new Date().toDateString();
    const locale = document.documentElement.lang;
    return isToday
        ? date.toLocaleTimeString(locale, { hour: "2-digit", minute: "2-digit" })
        : date.toLocaleDateString(locale, { month: "short", day: "numeric" });
}

/**
 * Shows a dialog until it is closed.
 *
 * @param {string} title
 * @param {(Node | null)[]} children
 * @returns {any} The dialog.
 */
export function dialog(title, ...children) {
    const close = button(t("close"), () => element.close());
    const element = h(
        "dialog",
        { "aria-labelledby": "dialog-title" },
        h("h2", { id: "dialog-title" }, title),
        ...children,
        h("p", { class: "error", role: "alert" }),
        h("p", { class: "actions" }, close),
    );
    element.addEventListener("close", () => element.remove());
    document.body.append(element);
    element.showModal();
    return element;
}

/**
 * Runs an action of a form or a button; its error is shown in `place`.
 *
 * @param {HTMLElement | null} place
 * @param {() => Promise<any>} action
 * @returns {Promise<boolean>} Whether it succeeded.
 */
export async function attempt(place, action) {
    if (place) place.textContent = "";
    try {
        await action();
        return true;
    } catch (error) {
        const { message, code } = /** @type {any} */ (error);
        if (place) place.textContent = code ? `${message} [${code}]` : String(message);
        else console.error(error);
        return false;
    }
}

/**
 * A link, if the address is one of the web.
 *
 * @param {string} address
 * @param {string} text
 */
export function link(address, text) {
    const isWeb = /^https?:\/\//i.test(address);
    return isWeb ? h("a", { href: address, target: "_blank", rel: "noopener noreferrer" }, text) : h("span", {}, text);
}

/** @type {WeakMap<Element, Map<string, { signature: string, element: Element }>>} */
const shown = new WeakMap();

/**
 * Shows rows in a list. A row whose signature is the same keeps its element, so that focus and clicks are not lost and
 * screen readers read what is new.
 *
 * @param {Element} list
 * @param {{ key: string, signature: any, make: () => Element }[]} rows
 */
export function showRows(list, rows) {
    const known = shown.get(list) ?? new Map();
    const next = new Map();
    for (const { key, signature: parts, make } of rows) {
        const signature = JSON.stringify([parts, document.documentElement.lang]);
        const old = known.get(key);
        next.set(key, old?.signature === signature ? old : { signature, element: make() });
    }
    shown.set(list, next);
    const elements = [...next.values()].map((row) => row.element);
    for (const child of [...list.children]) if (!elements.includes(child)) child.remove();
    elements.forEach((element, index) => {
        if (list.children[index] !== element) list.insertBefore(element, list.children[index] ?? null);
    });
}

"""#
        ),
        WebFile(
            path: "/chat/i18n.js",
            contentType: "text/javascript; charset=utf-8",
            tag: "a267eb95b71573d0efd4567f49f4d22b",
            gzipBase64: "H4sIAAAAAAACA4VY2VMbyRl/56/o0kvAhcVWHu04Xsd2ZanyVcvmqlRqqz1qpCmkGWWmBy3xUiWc5TLLAjaHD3xgg8FbAezFCRgZ+F8S9Yz0tP/Cfn1MzyUcHuie7+qv+zv61+rrQ18Qp0Lcrr4+NHDryp/PXjMNYrnkbH+BWNQcNIlzDl2qYqNEzv46/1lXl2FbLkXEKpZNt4QuoDtdCP6oScvkHMpJY+hyCdNcr+BYuMIZN2BQlCp23ZrtFIB6S00Vx7SGTYqpaVvA69cfyLALoXLZLvZz7jW7COKK6JCi6VLuae6yQzAlCBuG7Vk0UrrpUaVle5qMraKHi9y95sG2vzyp6ErZBfolNQ05hYKicF6hgLCVWqpAhuEAueoVOVN0WjJdSQEW/1CSegcVe5izvhQTRTXKtsuJl/kY0rBlkDIniomiulhoD+BIF0LA3eChCJ2A2FFsSLKahlEiNS7IA0VqQjfJ+MIUW+ZRRPZgdtt2lfCo3IQhUvy9Y3tVZbLI54ol5jeivOAWaYkkZCqkcps43NPrcpakx/xxe1HNpCXYXKWCXXSb0BrRXhgiHXReRGFU+1dhVAcTst0hTneHonwgVSqzASY60kbZtIiItJgp+u2ybXD93/FR0TwrpP5BzqKV3L/YHtBrGLIMURv8RyO252RdIrxgxBhfSFDVLIyFpfySk5A6OBiS5SxMzJGqaRWBDCkp5+i/9df6tF1XFsh1OQvTjVh83QEYdAIbuFwWCcwnCarwURnQJC1BnRFlCuEi1jVdMF0DiyZxRc4U/e8e8YTBGjYpeBvzSO5DzSI6lUSqV8RcnQ+KMohN6aNlUxSTJNgpi/6Xuypn4XnoqrGvapGvIIFd4gyD1BAhVReYoQGtltd6l1V13rB5oEHJlZ1uhNA8GqDYoRBGIhMbix4a042qWKrzL6GpS99WfUNMwEB8jbzOSXUSdz4bVR86symcCLcvKjj8Drsmkb3mGh8TNQshc+2yYF5R02RNe6IUb1rlESjBimlB03YwtR0XVfAIqjmmrlC7ZolTFaOu2pgKr4X4d7gEHiKXUnLXgYZOE5bdJZSS3SXqErI9hKnkObJDQ/6OXERf8SYO3ZgnDRStZxUgYuHh3sayB2Bd6hVieaIMLC+87SqytPorscKCnioqi4+KNmwWiA20P/JR32hGeE/eKmN9jRieS+2Kau+QyLyzDplQWRBjHfYhC05VCcREKaSkuKbggoY6LdiE5zBFXDzeuL+WPbWgcl7QUA06r6InZUtwx3aSlfSErGrtX8O5q44hvlGNODx+hVPE5dUZVyiTQZoQDRMz64fmhHk3LJIBejLCsCrUcNkGRx3AGvJshGoYZbMgQA/AC9hLDFhAuVnEoLIfRR+xxoo9uPAAX/EoCilug4vAOpFU2RTFpCxoJwEN0JhhaBucopiqLYpuhiKR8wj6LF9A9Fi+DC97V0Myz1UdEC5uCpAsTFvIp2pVsDK7hOQAfCjzUDYjqgDP6Pmurr4zZ9DncKEQdIf/h0RUmHEUnelTKNIowT0EDeoUFNkau8fW3yRxZLC45U/ts/nZLJhkuxPBi7FOULJ9t97a3Y+YIYgMHjXY0VIWRPp7W2zi+zR4bNfrbPIwoRNDkFfl7rIQsvX+NZvb7wQg/f0Gu/ciwY/gY2vnmK1PdkKP/uq/EkyNHYPNRvvRego7svG99sp2GjyyuWX/P1NJ8Ng8ecq2H6bgYyIGMfzYGlsM9hrNw8MMgPSX3yYDl0CQbPeDv/whePxdOpAKQfrTD9jHehZDglXWOAyO14PGdx1gpGSAtWDzbQZB+lPzbOFhRwCpvfj54/fNxka7vgKxYFMT7ceLaQTJpp6AB50QpIpj6kQkimRzC+36GGSf/+5uGk76P2ywuZUMnPRn7geNpyk06c9MtxsLGTgp45hgRphSriq9ax69aB4cdvBR1Dbb/ynhYgQtgZOwrsElW90KDk8y4DJ43YjIGlv6269AvnX8gI1vdEKXfA9ju0lwKU8uDS/9++vsybMsvJQWuLdJAYku25OzPIHiFiN82Tx4yT7+Mw0vg+1pdjyeUIkwpiTDozGJMmH5lNdYn24jDTalJFt/13q/kQGc/pP3/sobKJPEycTxpr86y+6tsUdb/k9r/up0SuF/9bsZrNk6eShlZXmCiAyIrgEoPLY5k1CNFXykrXIoEtSAE5KoXZ/2Z940D+rNgx/1Qp0gp/8UrP0YHUyEOmUxN0/Wop2HoFP14HgbiKHO1uYrf+lVgqswZ7MxHuysBfMT0AjY3C6cfWurnsKaoNc8aJwCNrX2J4AmdGWosU6SGmXKek2LSKQpCzUJNoO1HbbzmM2v/Pzxub+97j+YbR6t+isv/L0lSPT2Yj06XAU5WyeLUf4r0NmaW2WzSynYyZ4cB9OTKdzZ2t1uP99LAc/W5kT75UIWeTaPZoOjnTT0DN412LMZOAiBMCAj2cQ42/lwGvyEXbXX/t1++lLt6uFxsH6Y1koDT9XuodziTTkNObUUL47FD58Em7yElt/KmwKiAGXxf8AmVxDS0PGiGyuLN7UTMjmTOBO6MnCaB7PQHeEgVOIfbEdRVRATKiUBPBIIU3XXk2dwoXwCYkoxaSaDMbmDwkASY0oaP8Ll7WiXEcaEoEkRuD9FuDfvs/kfoN22dpfS2BJkg6OFoLGagZZgXxb2KciyXX8cPN9QwFJCxyEyArAxVxJI8SxHK30hGMuBEPmmasMbWsqGDI0zDc9xRPbxZC4PQPUCN18ktJ+SSjeY7kEXL6JuCw+bRV7b+dBC3uVPc/dP8Czvzv2jlAM5xEcEThIr16OuPUDKZdLdo1YLAVxeLQtuJD8vXJBGLgoj3BZ8nde6CSfdyMnehJkeqTCq0XcXOoP4Y4eSb6h8vhDxsvuVqw8kDzJc7PMqdnAF3YFWBmEdFVg7S0ffIsvjZTCKhnHZI/x3CqvgokHb4aXOjfWFBz/oWfJlQru5sV6lARvNhcciY8O9c4Eeey58SQwA9L+Ri/YiOf6WPxtQt/a8w+GFr4lz4UtDHQmAAM+xULdY6q/cnb/x8PJJT94hVf5+7s6JFzJsiS/WLbztAf3Rrl8AH9BgvyIXAAA=",
            text: #"""
// Hermes
// SPDX-License-Identifier: Apache-2.0

const english = {
    title: "Hermes Chat",
    name: "Name",
    password: "Password",
    invitation: "Invitation code",
    logIn: "Log in",
    register: "Create account",
    logOut: "Log out",
    language: "中文",
    accounts: "Accounts",
    addAccount: "Add an account",
    devices: "Devices",
    thisDevice: "this device",
    remove: "Remove",
    close: "Close",
    cancel: "Cancel",
    save: "Save",
    chats: "Chats",
    contacts: "Contacts",
    newChat: "New chat",
    newChatHint: "Name of an account",
    open: "Open",
    newGroup: "New group",
    groupName: "Name of the group",
    members: "Members",
    membersHint: "Names, with commas between",
    create: "Create",
    addContact: "Add contact",
    ask: "Ask",
    accept: "Accept",
    decline: "Decline",
    block: "Block",
    unblock: "Unblock",
    asksYou: "wants to be your contact",
    asked: "asked",
    blocked: "blocked",
    online: "online",
    offline: "offline",
    typing: "is typing …",
    message: "Message",
    send: "Send",
    recall: "Recall",
    recalled: "Message recalled",
    retry: "Send again",
    discard: "Discard",
    queued: "waiting",
    sending: "sending",
    sent: "sent",
    read: "read",
    failed: "not sent",
    earlier: "Earlier messages",
    noEarlier: "The server keeps no earlier messages.",
    noChats: "No conversation yet. Start one with a name.",
    noContacts: "No contact yet.",
    choose: "Choose a conversation.",
    unread: "{0} unread",
    details: "Group details",
    leave: "Leave group",
    dissolve: "Dissolve group",
    mute: "Only administrators may write",
    owner: "owner",
    administrator: "administrator",
    makeAdministrator: "Make administrator",
    makeMember: "Make member",
    add: "Add",
    sure: "Really? This cannot be undone.",
    back: "Back",
    menu: "Menu",
    image: "Image",
    sound: "Sound",
    video: "Video",
    location: "Place",
    custom: "Content of kind {0}",
    unknownContent: "Content that this page does not know",
    group_created: "The group was created",
    group_changed: "The group was changed",
    group_members_added: "Members were added",
    group_members_removed: "Members left",
    group_dissolved: "The group was dissolved",
    over: "You are no longer in this group.",
    idle: "logged out",
    connecting: "connecting …",
    authenticating: "logging in …",
    live: "connected",
    lost: "connection lost",
    waiting: "no connection; trying again in {0} s",
    paused: "no network",
    stopped: "logged out",
    notifications: "Notices",
};

/** @type {typeof english} */
const chinese = {
    title: "Hermes 聊天",
    name: "用户名",
    password: "密码",
    invitation: "邀请码",
    logIn: "登录",
    register: "注册",
    logOut: "退出登录",
    language: "English",
    accounts: "账号",
    addAccount: "添加账号",
    devices: "设备",
    thisDevice: "本设备",
    remove: "移除",
    close: "关闭",
    cancel: "取消",
    save: "保存",
    chats: "聊天",
    contacts: "联系人",
    newChat: "新聊天",
    newChatHint: "对方的用户名",
    open: "打开",
    newGroup: "新建群组",
    groupName: "群组名称",
    members: "成员",
    membersHint: "用户名，以逗号分隔",
    create: "创建",
    addContact: "添加联系人",
    ask: "发送请求",
    accept: "接受",
    decline: "拒绝",
    block: "拉黑",
    unblock: "取消拉黑",
    asksYou: "请求添加你为联系人",
    asked: "已请求",
    blocked: "已拉黑",
    online: "在线",
    offline: "离线",
    typing: "正在输入…",
    message: "消息",
    send: "发送",
    recall: "撤回",
    recalled: "消息已撤回",
    retry: "重新发送",
    discard: "丢弃",
    queued: "等待发送",
    sending: "发送中",
    sent: "已发送",
    read: "已读",
    failed: "发送失败",
    earlier: "更早的消息",
    noEarlier: "服务器没有更早的消息。",
    noChats: "还没有聊天。输入用户名开始。",
    noContacts: "还没有联系人。",
    choose: "请选择一个聊天。",
    unread: "{0} 条未读",
    details: "群组信息",
    leave: "退出群组",
    dissolve: "解散群组",
    mute: "仅管理员可发言",
    owner: "群主",
    administrator: "管理员",
    makeAdministrator: "设为管理员",
    makeMember: "取消管理员",
    add: "添加",
    sure: "确定吗？此操作无法撤销。",
    back: "返回",
    menu: "菜单",
    image: "图片",
    sound: "语音",
    video: "视频",
    location: "位置",
    custom: "类型为 {0} 的内容",
    unknownContent: "此页面无法显示的内容",
    group_created: "群组已创建",
    group_changed: "群组已更改",
    group_members_added: "有新成员加入",
    group_members_removed: "有成员离开",
    group_dissolved: "群组已解散",
    over: "你已不在此群组中。",
    idle: "未登录",
    connecting: "正在连接…",
    authenticating: "正在登录…",
    live: "已连接",
    lost: "连接已断开",
    waiting: "无连接，{0} 秒后重试",
    paused: "无网络",
    stopped: "已退出",
    notifications: "通知",
};

const key = "hermes-chat/language";

export const language = {
    current: localStorage.getItem(key) ?? (navigator.language.startsWith("zh") ? "zh" : "en"),
    toggle() {
        this.current = this.current === "zh" ? "en" : "zh";
        localStorage.setItem(key, this.current);
    },
};

/**
 * The text in the page's language.
 *
 * @param {string} name
 * @param {string | number} value Stands for {0}.
 */
export function t(name, value = "") {
    const texts = /** @type {Record<string, string>} */ (language.current === "zh" ? chinese : english);
    return (texts[name] ?? name).replace("{0}", String(value));
}

"""#
        ),
        WebFile(
            path: "/chat/icon.svg",
            contentType: "image/svg+xml",
            tag: "0b1909cccdeb3fe28732409fd11c0a23",
            gzipBase64: "H4sIAAAAAAACA1WPzQ6CMBCE7z7FZj1DfyVgKAdPXngIFUobUQg0LfHprUo0Jpvs5MtMZrecfQfLrb/PCo1z456QEEIaRDpMHeGUUhIdCN624TAsCilQyGQcrMqpvTgItnFGYQRgWtsZ99FT9LK4te17hVvW7PRZIqnK8eQMNAprJoHlRmSey6PgfcIoFD4pTJI/vjGt9V+GZ8CFZ7IW+SoiEdQwjjC7abi2v64VJOuB7/LXM9XmCRX0vr31AAAA",
            text: ##"""
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64"><rect width="64" height="64" rx="14" fill="#1d5fb4"/><path d="M14 18h36v24H32l-10 9v-9h-8z" fill="#fff"/><path d="M26 23v14M38 23v14M26 30h12" stroke="#1d5fb4" stroke-width="4"/></svg>

"""##
        ),
        WebFile(
            path: "/chat/index.html",
            contentType: "text/html; charset=utf-8",
            tag: "44a7c9939228c38ee9fdb52edb8a68fd",
            gzipBase64: "H4sIAAAAAAACA12Tz3KbMBDG734KVZfMpBXUvTTjoFxyyfTUmTyBLC1Itf4QacHx23cxmDEZDmJ/++3yaSWabyZpvPTALAb/smumhXkVO8kh8gmAMrQEQMW0VbkASj5gK574DVvEXsDH4EbJX1NEiCjeQQ/Z4UX8Td7pC2d6TkhuoFWDR1GyZg8xRXh4ZkVn1y+ogG8nhBcPG+JCt4mpYwR9X8XO5VDXPmnlbSp4eJzB/tfv6ic9+8PjMwsquhbK9mPnlE+QN+ioCgjawuqxTTkIpdGluLB1AFEFkHx0cO5Txru9np1BKw2MToO4Bj+Yiw6d8qKQS5D7L0108omMaAsB7hp511lkRuXTF32GFnKGfKeNSayUxOjQw8sb5ACFvVqFTT2jXeNdPLEMXvLrtIsFIPeWqskIKStdCt/obtO7qW5xdYbjmttUOPJ1U0/vVRk7zqYrR3FQHdQEvn8GP5XN92DJhmQGT0OgU1ns/CM3TT2LSF0vd/OYzIWWmJbM3V5ZBDCF/VGjer8mq6ZedbvGuJE5I7nq+6kzhQT7KyqocCic5USntEbaq1Ikt84YiALhE6e6fjKzuKjnH+k/JovsulkDAAA=",
            text: #"""
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self' ws://localhost:* ws://127.0.0.1:*; manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>Hermes Chat</title>
<link rel="stylesheet" href="chat.css">
<link rel="manifest" href="manifest.webmanifest">
<link rel="icon" href="icon.svg" type="image/svg+xml">
<script type="module" src="chat.js"></script>
</head>
<body>
<noscript>Hermes Chat needs JavaScript.</noscript>
<div id="app"></div>
<p id="status" role="status" class="hidden-text"></p>
</body>
</html>

"""#
        ),
        WebFile(
            path: "/chat/lines.js",
            contentType: "text/javascript; charset=utf-8",
            tag: "6747a158de9cdebea8ab884b932097de",
            gzipBase64: "H4sIAAAAAAACA7VXbW/bNhD+7l9x1YpCKhTZLTCgcOpmQbuhAYqlaFNsQ1HMskRbXCTRE6k6gavfte/7Zbs7Um9OjA4dlg8xyTveHe+ee9F0Cq9FVQg9mU7h/dtXv568kYkotTi5SEVp5FqKag7n2zjJxMnTaDaZyGKrKgN7WNXGqDKELIRcltch6Ezt3qmdDsHIQlyJGwMNrCtVgBdNU1VEf2jvtL8/pMonz0pLnkwfP4arTLAM2EmTyRJ2mUwyMHiqRfVZVJALoyEGtFvHGwErAZVI4jwXaQjIX8g8l1okqkx1BI+nE1xp43iuSPACnjyd/T6bzazGCVilO1WlGtaqQuF4x6ALIqQR+YdtXMUF7OPytmlpE5ItbvhB67pMjFQl6Loo4urWdzwB7CeAf9YEfDb6BY0s0G50mapLNPmzTIVCN6okJhEhoMwK38brpNYGvdSgzU7kKQuUa/DN7VaoNcuExWIBnjaVLDdegG81dVUypWdnrT3N9/jAC3oONmjIwQdDDrZ1yMEHQ472GR3T8uEe+dpjL2jm8HDfbqM8Xom8Wfb3+8d3EvqjqIwLYXkdzfnnjGyxa691WkT+CWBOpLq8LtWufGldSPY2XejPu2DDW5mgVKEB3aoQcRVkShPYKsEwR3SvEEa1FozHLcEvVzGiplSE1Y3FtMi12OFt8VX4dLhZqfS/gOZ/AAi91x5FdZWHLo4OMxzEjtgsj4KIpfBRhP+rRHzoZTl0sSzLspa5+BlDDF++wMGlkY4xDFkHHw0tdchk6R1xJKWHqvX30Oc5UkydCnJxuWmXBFZ2dXv19OCiLSGLI6BnrPPCCo+M+kneiNT/PmhCzgqnakhY9jqG711mxmz1fDrd7XaR2mLVNpUQpoi3kao207MClSx6Vc2jAqUvBjqaZWjNdR5phml1WMaG+XJZirb2HuLblncfa3qhUpFTUQ+iN7IUDRkt7meNkwRDbSzzud004E6/Kv1lFiN3gv/HCVWpnU86w1ZSyExtrDn+SI4wcXvMZxgziQVkD0keaz0Hj3gouYUHjUNWf62Bv//CsLUNz1JoF3Q4s7CQ+p2IU8INcWAhgkePwKtl6lHDIrsw4nTGdC3+hBcwG+2fLyxbhXI+bK/UULo2sakJdU7NGXjE5mHps/eZPrbnN3TJ5sCgQ+UP+KDtrXTyKjb09J0fwAl0r4Xng+Z6OipdSS4RPpwyLgxDelybDLvtwIqzli0qZXLNpcA9onRloaPj/nJtXU5FNxi1hczvkoYj2u26yC7pJqZDr9kD/CWneV7jCN3bidpuHMsSAdGJReCk8vMIOZtK1duLOxF+MNRoHcACM5nizHVCFZmhZknBSMV2pIBZQ0glzmgkSfG9Q7sxXzrDqRlyo2GmNrdHOrolu47fNDrq1RfCxN7QB85IQgTbmSJYaDOHUuwYOoMEQW9cvL98z/0I0dT0Y+OAKRgLH2LVYf5elKIRehuXbISHVsQnltubt9dInW/Xh0ra1EA5dsb1Ow96QQho6+KFg7VT6rvoOt/LNIiw7CeZb3n3TTCM2jaPJaKsue9tbSJTq17HkrF2YIepbu+YoWqzUjcRE11omXCRBt+kJZU6iav0mB5HPq7JLbumwcO16xg8WvF4jZO8tjPgYI5mLwF1DO0KtchFQSVkQWFV+Z3irPGkUrmgrdrgxsQrWabiBg9m5GdbF767Frcow6OPDNpzL6O/b+hIx64d6Upj9h/te/DrR1ZYAn9BFkIlfqvgaInfHnaybL0VuetT/qVvLH/UzkIr5u4EI/Ulz6+ubdDrH2DAcUjVEfni9M7EoxN0Y36ltqFbvhZyk5EeDrHdcSVnIS4up3f0npsfy5SbkbWARrmBPGwcnSZcj4Q/h2ezXmBn6+ARh+qwy+uWzGiIcADyGZo2+Ubwt3esRGzlrVAeyYZg7pqhLdNL+jlgwfI/b/N9OKId6/nHe/jhrbYz/+teezAd7umBGEO5KWP6mJnDRzsHWYPCVsWnEIr4Gsk2x4/OS02vpU2mFov0ve8P0RDCR1aPuce49EZ2zMYabQJgKY6iiOL4aSCdP0cslIIR3qIePIv7CBZJ7UTbTP4B93fnBeMQAAA=",
            text: #"""
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
    if (line.note) return h("li", { class: "line note" }, `${t(line.note)} · ${timeText(line.time)}`);
    const isRead = line.own && "uid" in chat.to && line.seq > 0 && line.seq <= chat.readUpTo;
    const status = isRead ? "read" : line.status;
    const isYoung = line.own && line.seq > 0 && !line.recalled && Date.now() - line.time < recallTime;
    const { client } = account;
    const author = line.own ? account.nickName : line.name || account.nameOf(line.from);
    return h(
        "li",
        { class: `line${line.own ? " own" : ""}${line.recalled ? " recalled" : ""}` },
        h("div", { class: "groupId" in chat.to && !line.own ? "author" : "hidden-text" }, author),
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
    element = h("ol", { class: "lines", role: "log", tabindex: "0" });
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

"""#
        ),
        WebFile(
            path: "/chat/manifest.webmanifest",
            contentType: "application/manifest+json",
            tag: "f0c5e667bf52cd38fd846520b11ab4d1",
            gzipBase64: "H4sIAAAAAAACA1XOvQ6CMBSG4Z2raOoogZjo4uriPRhDSnuAxv6lLUYk3Ls9FhNk6/t8JZ0LQqhhGuiZ0Ct4DYFcBhZpiRAG62Pzz6tElmT0CqGq18itg20QMjjFJkzpghFMWQOZWsYfvbejEQ23ynrc7LrvlwdxAA0bO4hT1x6zSW5NSPU2px97jo6pCs+elinJNyBTZiY8xyk/S2rWQ51G+5dWCG70zgb4TclyL5biA8STWyUTAQAA",
            text: ##"""
{
  "name": "Hermes Chat",
  "short_name": "Hermes",
  "start_url": "./",
  "scope": "./",
  "display": "standalone",
  "background_color": "#ffffff",
  "theme_color": "#1d5fb4",
  "icons": [{ "src": "icon.svg", "sizes": "any", "type": "image/svg+xml", "purpose": "any" }]
}

"""##
        ),
        WebFile(
            path: "/chat/model.js",
            contentType: "text/javascript; charset=utf-8",
            tag: "59bef7ec40b8938e6fec16d18f007a48",
            gzipBase64: "H4sIAAAAAAACA7VaX3PbuBF/96dAdDd3VIamlfbhetLp1PTyUM9dzp2JM+1M6rlQIiQxpgiFgGJ7ZH737i7+kABJ2WmnekhIYLFY7O5vd7H0xQX7O692XJ5dXLB3/3jzr/Pf8hUvJT+/zHip8nXOqyl7vU9XW37+p2Rydnbx8iW73nJWHnZLXjGxZrBaphsumdqmiqUVZ7d8r3CGwzK2EuUXXslU5aJM2MuLMxiQiu3S+7d24Zz9eTKZEe8z9pK9tixZikw52+Oz3Io7yXKVAAlS/VU97HnG1+wolp/4StXst7zkNLOvxJ5X6oEdparyclOzPCOhDd/vgU82Y3y3B5oDHLOgbSSvQFK2Te02fZxWRQ6KucyCaa2OGnh8pp3w/7tcbfOSWLeVMGOT525qua4rsSO26UFtRQXyH/AAE7YWFUtZKRRYDTVutQUU4q4cOkOZ7rjPDkdC6qUQBU/LGjkFU2n5UOOZFKhiQGSVwx6XJdvlRZFLDsSZZDIvQc5XP/4wGdys4qu0KHio39GIPbLR5wM/8IweJS8zOIx9VvSwTnNYOgIzqFQdJLvSGjmAkrVGnLMOqkYorZpb/oAKtcqF5YrfqxjsxVn+6i9l8klaD0IjtPleOE/u+ugvgJGBrXHHEdiV/TBiwHG0qcRhz34chaIe0fhTC8Aazn1kRHvZGgUDiIF9VK6KECcInQ83NSvgfzlg0V1a3fLs/f5akIJQqeS2FU8zBpIqAcrOJbr+kB8jqWMgwDTVf8WmSKV6xz8PuVAurxBSuIfW4R2wz3IpRfGFZzEq13oF0IKBWSHKDb6UBoPagsA8rdJd4+4OwkjB7/eiUkxHM7Ad+NqcRW2qMZv/fMbg1x5cJMZWbME+avG+PXox0szXH9mUfUR/8OcXCY4tFmxSf2xi5nUQZCQ6rygB4quVgGgT6xiC5+ZfAC7SRot3b35N2BvBSQ+XF1dTUAFBBfQhlai4DsEr8Fsb4fEF9IXbVlwdqtJ4vdUImEeSo0t2pPOTLhEK7Pg23f+kHTEmkp9rXIlE3+gt5qzkdwzIovHMLb5uQAyHT+wSiDBzhonDbWIMdql4lS4L/pPZQrO+3gpJUTItITVVEMgrVh1Kx45MWR1WcOrICvPhZmwOgT9EeqQtjgTIiwjH5LKJPkIiuaL1CXhFTATmKHUj6eui8O0Vk5rRYpg26AUUwTFTmmS4ziupnLAbDpYoiqgtnpaMIi+4YkvrqAZUtBYG3JIeEkJ7kqro/NV4kdA69KuZY6jNyz4kSdI+4Je0OHAZjW8SCQaPojRmS+KKLCJ4PNdP6bh7cGuidtRrjhTBa/tERoD25pYq5KzXdJGg9QkmN0hglDIJZDG72+ZQoiz5JgfE5IQIqF8oKJSYEIml5TwYDkKCINKaSYMVYw0zrE8OIaz0Qkes14IZR6OuhVFncx1z/IAzCwlLzHnzE/rDH5w7Isr2TvijwURL8vg41zLNPBJjIKJsZurQJQUI0RfkIAi2klcvRQ1h0KQ8bx6jYN1s2ePtgRCE2DnwIlgqYXQc66Q3BajHrRw3ZZPY5St6MVmHnnWKmbJ1WkBIaYkRxoEwBLR0hqOnnNivq1U75UJNQrINeajWwIpqjZabHUpcFOkgcOyTx4SEdV5ABI0ifCNg40OCNa2JHK1a4Lvv2AuaRldzL7aMGycFLzdqO3TQ1xCKS1U92HSUl0txD5eIKodUfRKAlMb6wYWVTDchkhp16nKctV5IgogYdsF2ZORVNbgOUfi4obn5HHBqzAVwtVGTfMEMa+72bXwzxAUN9BaUOwqxaIXxowSAAP4BM4BjNiImlsush4WBQU9ICKPJ2F+Ogr7QvmNPeNOlQFjiSczhTWbU/kKe5+QN2HNEEjmXqxLnUAeoLSy+j7yJIRZWLCS+6YtGoa61jw7o+qSirJ41h+SU3jQ3RAUGQeCzcCgrsygSBmKYcIzuAubGaS6zIYNAcNawG7SMh0k8VHXgPRTmSodRsv6fVLs/yG2IhG9w0KDsphMNm7UU+EeQGcwyerfr2NSdrSeYuFrJiyaisu/AD4q7h5NxxbB4Ttq22Lao7sQOnX3NNAVIsJR9xYL8vY+WWaeU00WAXdJJgBhvke3C4/p7vrr9He/4UygfZmfDbk11Rx9zkxvHYWLbH5QBsY8YzM6WD4Qk3/9Nx6ShsCM+ncTc2icMAN2nxDNOQz36JNjQmPYqxacD5cUhWhECniSECaiMj7VPi0VuQ6g7Odcw9lbGAXg08BpaOxJogLoWU6YtatoaaMPgbEJxf7T++upCHBRiQ/GiME22SmzgtucujsLrnbT6GydSMubRZ9W7tHl0dL4RB3nNKD1muuPzGhsvpBysyVY83ys4cwduHdceKI4xVpkOEUWcLJertMr6MoGriUzsPlkg2dOwF8DVvQDkW+XTpD9nNebyw+rTsDP6WDRpAl019JkTkHMMAszRXbAPeCZY9QEu3BY8eUrJphdkfWhy0rThhDp0njAALSrF+/D0fwAPNaSxq4RehpvfoefhwKFE1MJ1M+u0llSDOqQkOrh/QoAHMuKIsmW6BTUEMixtEWY5ly0Yfy/9grbiWrDIkHahYuTU3ZZ3UNYYSii29hG9PJBf05Nz7HZp09ML6esRhIhqLaOSyLRQNK5CYgvW7v0CwYQv+hwJXIoiD4Kwr6YzMDfR1Mde3QO4lnzuYuK0qCOLDl5aR6e85InW5vNubm7GNj9N6esXIn3lddvmwZ0tLKybqbC07iuylunqFnSSQVrAkm7KUmdKaltRwxwiddrThynFUmQPz77YmdYgVY5H2g078J9j3eR6TgowrYOJB3M6tGkTh8Ww4dNUwtT4h7ITd09My4Ce8SQ3NhX8TXefx8knkZfR6N8l5JI65GouAUcK3MQD729NgQRhSR9PB9pJbMJqe2sKqTrYNWlSq8PPcLRoJYoi3Uv+K/bVnspmosj0VaTI/FzWYXWiLmRJQmzb5wrXx5247WofVIGN0c8NzT3+41xH3x5Mkwk7Sbdw64pt/w98Q7L6633KtazoAe9tteGZoMVCV7N1fEOBGa2ZCnpxIKErTPRHixHStyZ2HIOB/KPiO0HTEAvxLEleropDBoHX3r/H45Pe7u+3gkilhndLs+zr9iLbhiDAK0/z6QM0j98xfBL6CmeJ/vj2iKJ0qVpo6gERwSfAUaP/XhxNscLvYOmEhz/pxV9bXDydBvBLnf5OF4ZIK5+uSY8DrWAP9mUWeQnRNiM6SVgnV33hbDUqglHawQ5TP/nxcYCVCy9mqXt360OKDvOmgntOL/vigv3T9lFb39wz/eVLsSVfCbC7rd82aV4mnW6Lbojb2sMWIrbP4RcXV/TFN0mlzDelXqltgx7UOI5m6Voz9rLgBuqepo+/Zmx49Ddvat1YG7rWJJRayWV62/dEqBvfnarBjMfuetNiAep+r1Xp2tikX1wzAyPglzj9YYb+VIK+vEI5DZewamYrCLZ8QHPlFUEyOeuRPvj+FKXWOEt6WDA9cG7ep3qHq3WU4kcq+7JERwVSQj7S4sM48KrWrrqlDZe51h+xjD2x9gUcIJrErLvq3FtlA0Htf3FuUN78xYyRFj/tuWvncGXcrn4xhZtuwoK9Ai3gJfQ/QgnT5vsjAAA=",
            text: #"""
// Hermes
// SPDX-License-Identifier: Apache-2.0

/** The number of messages that are kept of each conversation. */
const maxMessages = 300;

/**
 * A message as the page shows it.
 *
 * @typedef {object} Line
 * @property {string} id The message's id; empty until the server has it.
 * @property {string} clientId
 * @property {number} seq The seq within the conversation; 0 until the server has it.
 * @property {number} from The author's uid; 0 for a notice of the page's own.
 * @property {string} name The author's name.
 * @property {boolean} own
 * @property {any} content
 * @property {number} time In milliseconds since 1970.
 * @property {boolean} recalled
 * @property {"" | "queued" | "sending" | "sent" | "failed"} status Of the user's own messages.
 * @property {string} note The key of a notice's text, see i18n.js; empty for messages.
 */

/**
 * @typedef {object} Chat
 * @property {string} key "uid 7" or "group 9".
 * @property {{ uid: number } | { groupId: number }} to
 * @property {string} title
 * @property {Line[]} lines
 * @property {number} markedUpTo The user has read up to this seq.
 * @property {number} readUpTo The other user has read up to this seq.
 * @property {number} lastSeq
 * @property {boolean} isOver The group was dissolved, or the user is no longer in it.
 */

/** @param {any} conversation */
export const keyOf = (conversation) =>
    conversation?.groupId ? `group ${conversation.groupId}` : `uid ${conversation?.uid ?? 0}`;

/**
 * The conversations of one account, from the events of the SDK. Does no I/O: its owner stores the chats that a change
 * returns.
 */
export class Chats {
    /** @type {Map<string, Chat>} */
    #chats = new Map();
    /** The user's uid. */
    me = 0;

    /** @param {Iterable<Chat>} chats Those of an earlier run. */
    constructor(chats = []) {
        for (const chat of chats) this.#chats.set(chat.key, chat);
    }

    /** All conversations, the one with the newest message first. */
    get all() {
        const time = (/** @type {Chat} */ chat) => chat.lines.at(-1)?.time ?? 0;
        return [...this.#chats.values()].sort((a, b) => time(b) - time(a));
    }

    /** @param {string} key */
    get(key) {
        return this.#chats.get(key);
    }

    /**
     * The conversation with an account or a group, which begins if there is none.
     *
     * @param {any} conversation
     * @param {string} title
     * @returns {Chat}
     */
    open(conversation, title = "") {
        const key = keyOf(conversation);
        const known = this.#chats.get(key);
        if (known) {
            known.title ||= title;
            return known;
        }
        const to = conversation.groupId ? { groupId: conversation.groupId } : { uid: conversation.uid };
        /** @type {Chat} */
        const chat = { key, to, title, lines: [], markedUpTo: 0, readUpTo: 0, lastSeq: 0, isOver: false };
        this.#chats.set(key, chat);
        return chat;
    }

    /**
     * The messages that the user has not read.
     *
     * @param {Chat} chat
     */
    unread(chat) {
        return chat.lines.filter((line) => line.seq > chat.markedUpTo && !line.own && !line.recalled).length;
    }

    /**
     * An entry of the inbox arrived.
     *
     * @param {any} event
     * @returns {Chat[]} The conversations that changed.
     */
    entry(event) {
        const { type } = event;
        if (type === "message") return [this.message(event.message)];
        if (type === "readMark") {
            const { conversation, uid, upToSeq } = event.readMark;
            const chat = this.#chats.get(keyOf(conversation));
            if (!chat) return [];
            if (uid === this.me) this.marked(chat, upToSeq);
            else chat.readUpTo = Math.max(chat.readUpTo, upToSeq);
            return [chat];
        }
        if (type === "recalled") {
            const chat = this.#chats.get(keyOf(event.recalled.conversation));
            const line = chat?.lines.find((one) => one.id === event.recalled.messageId);
            if (!chat || !line) return [];
            line.recalled = true;
            line.content = {};
            return [chat];
        }
        if (type === "push") return [this.#push(event)];
        return type === "group" ? [this.#group(event)] : [];
    }

    /**
     * A message of the inbox or of the history.
     *
     * @param {any} message
     * @returns {Chat}
     */
    message(message) {
        const own = message.own || message.fromUid === this.me;
        const title = message.conversation.uid && !own ? message.fromNickName : "";
        const chat = this.open(message.conversation, title);
        this.#put(chat, {
            id: message.id,
            clientId: message.clientId,
            seq: message.conversationSeq,
            from: message.fromUid,
            name: message.fromNickName,
            own,
            content: message.content ?? {},
            time: message.serverTimeMs,
            recalled: message.recalled,
            status: own ? "sent" : "",
            note: "",
        });
        return chat;
    }

    /**
     * The outbox tells the progress of one of the user's messages.
     *
     * @param {any} entry
     * @returns {Chat}
     */
    outbox({ clientId, conversation, content, queuedAt, status, receipt }) {
        const chat = this.open(conversation);
        if (status === "discarded") {
            chat.lines = chat.lines.filter((line) => line.clientId !== clientId || line.seq > 0);
            return chat;
        }
        this.#put(chat, {
            id: receipt?.messageId ?? "",
            clientId,
            seq: receipt?.conversationSeq ?? 0,
            from: this.me,
            name: "",
            own: true,
            content,
            time: receipt?.serverTimeMs || queuedAt,
            recalled: false,
            status,
            note: "",
        });
        return chat;
    }

    /**
     * The page was opened: what was unsent and is no longer in the outbox was sent while no page noted it.
     *
     * @param {any[]} entries The outbox's.
     */
    reopened(entries) {
        const unsent = new Set(entries.map((entry) => entry.clientId));
        for (const chat of this.#chats.values()) {
            for (const line of chat.lines) {
                if (line.own && !line.seq && !unsent.has(line.clientId)) line.status = "sent";
            }
        }
        for (const entry of entries) this.outbox(entry);
    }

    /**
     * The user has read up to this seq.
     *
     * @param {Chat} chat
     * @param {number} upToSeq
     */
    marked(chat, upToSeq) {
        chat.markedUpTo = Math.max(chat.markedUpTo, upToSeq);
    }

    /**
     * A back end's push: a line of the notices, a conversation with nobody.
     *
     * @param {any} event
     */
    #push({ push, seq, time }) {
        const chat = this.open({ uid: 0 });
        chat.isOver = true;
        const content = { text: [push.title, push.body].filter(Boolean).join("\n") };
        const line = { id: push.id, clientId: "", seq, from: 0, name: push.title, own: false, content, time };
        if (push.collapseKey) chat.lines = chat.lines.filter((old) => old.clientId !== push.collapseKey);
        this.#put(chat, { ...line, clientId: push.collapseKey, recalled: false, status: "", note: "" });
        return chat;
    }

    /** @param {any} event */
    #group({ group: { kind, group, uids }, seq, time }) {
        const chat = this.open({ groupId: group.id }, group.name);
        chat.title = group.name || chat.title;
        if (kind === "dissolved" || (kind === "members_removed" && uids.includes(this.me))) chat.isOver = true;
        if (kind === "created" || (kind === "members_added" && uids.includes(this.me))) chat.isOver = false;
        const id = `group ${seq}`;
        const note = `group_${kind}`;
        const line = { id, clientId: "", seq: 0, from: 0, name: group.name, own: false, content: {}, time };
        this.#put(chat, { ...line, recalled: false, status: "", note });
        return chat;
    }

    /**
     * @param {Chat} chat
     * @param {Line} line
     */
    #put(chat, line) {
        const known = chat.lines.find(
            (one) =>
                (line.id && one.id === line.id && one.own === line.own) ||
                (line.clientId && one.clientId === line.clientId && one.own === line.own),
        );
        if (known) {
            // What the server has does not become unsent again.
            if (known.seq && !line.seq) return;
            Object.assign(known, line, { recalled: known.recalled || line.recalled });
            if (known.recalled) known.content = {};
        } else {
            chat.lines.push(line);
        }
        chat.lastSeq = Math.max(chat.lastSeq, line.seq);
        // Unsent messages come last; those with a seq in its order; notices by their time.
        chat.lines.sort((a, b) => (a.seq && b.seq ? a.seq - b.seq : orderOf(a) - orderOf(b) || a.time - b.time));
        if (chat.lines.length > maxMessages) chat.lines.splice(0, chat.lines.length - maxMessages);
    }
}

/** @param {Line} line */
const orderOf = (line) => (line.own && !line.seq && line.status !== "sent" ? 1 : 0);

"""#
        ),
        WebFile(
            path: "/chat/worker.js",
            contentType: "text/javascript; charset=utf-8",
            tag: "6d96fc93fae51dbf1f77b73ae783a31b",
            gzipBase64: "H4sIAAAAAAACA4VT246bMBB95yumvBSixFR93CjVVu32IkWrai/avlowBDdgU9sERVn+vWObkKTbSx4IeM6cc+biLIMvqBs0UZbB/beP3xdrkaM0uPhaoLSiFKiv4H3L8woXb9mbyOEeKoS84va1AYN6RwnQK711yC1ia8ASoOUbJEApaqSn0tBXKF1EIwgDUoFE69LmwGUBplK9O3WSObdCScMi0bRKWzj46O15DAYotWogZiy7TPph4mUU5fRqIXe2b3mDsIK48nUunHFCBECwTdFsNoNru28RDlzuB5hlkBisy5S4XognIW1OxqywNV5BHJoIHxw5DC4rYBgvipsddXItjEWJOokFCfO6jueQpLB6N3pgZivaJy6skJskJYK/5vPcih236Aj+YBsd2hP7N9YT5yNNsh5ds7wWdG7on4uGpP6lVaLNq/8KHSKgX+joATT+7JDeBmqrxyx9WJSQjCHWoK1UAa9WNJbPNw8xPD/TNvTweLeeMJ2uU6a02AjpgbUK3R/PUtKxnZaBPJSq0bRKFk/CVgmXpqcKRjZXpJ8K1RHBDD653XFbOu6gczetppI4B6PogFvgfpH9xpKIBlUX9KSQBGHD/qNeAtaGLoFL6LmhW9BaRjpO6rrlmjdwuAtOhmN/KJZF3OxlDmUnc1ca/Gb6orF+l6ml3A00fBmmWpTJtOVpaIbV+zHzlB1aY04EfrKT0nKChzEFMFPb9FyPtZ09pswnSlok6pjf2SNJGM2ECIGBSEgTEtRa6fSFRde0y/pYw89MuusmNlJpvEeu8+qKCu3QX7Zz847muBye8xS2lVY9ePnRUjREvwBROrRBAgUAAA==",
            text: #"""
// Hermes
// SPDX-License-Identifier: Apache-2.0

// The chat's service worker: keeps the page's files for when there is no network, and shows notifications.
import { showNotifications } from "../notifications.js";

const cacheName = "hermes-chat";
const worker = /** @type {any} */ (self);

showNotifications(worker, { title: "Hermes Chat" });

worker.addEventListener("install", () => worker.skipWaiting());
worker.addEventListener("activate", (/** @type {any} */ event) => event.waitUntil(worker.clients.claim()));
worker.addEventListener("fetch", (/** @type {any} */ event) => {
    const { request } = event;
    if (request.method !== "GET" || new URL(request.url).origin !== location.origin) return;
    event.respondWith(answer(request));
});

/**
 * From the network if there is one, so that a page is never older than its server; else what was kept.
 *
 * @param {Request} request
 */
async function answer(request) {
    const cache = await caches.open(cacheName);
    try {
        const response = await fetch(request);
        if (response.ok) await cache.put(request, response.clone());
        return response;
    } catch (error) {
        const kept = await cache.match(request, { ignoreSearch: true });
        if (kept) return kept;
        throw error;
    }
}

"""#
        ),
        WebFile(
            path: "/client.js",
            contentType: "text/javascript; charset=utf-8",
            tag: "65e890eb15021c54f2eeff35831ce994",
            gzipBase64: "H4sIAAAAAAACA7U863Lb1pn//RQnbDcFUxqS027aUlUUx3Yad53YY3k3O6PRhCB5KKIGARYALWsUzuzT7IPtk+x3O1cAlKzs5kcsAufyne9+Ozg6Ut/reqObR0dH6vzN8/98/Cpf6LLRj18uddnmq1zXU/V0my3W+vGX6fGjR/lmW9WtulVv9T93umkbtVerutqoUXqUbfP0H83oxA16VpWlXrR5Vf4AS+Sl9kYv7Lto0nNd5B90nWt/7aV9GI1+UddV/axa6okchR54MzX+jmdtd836e53V7VxnrTd4bZ5F41+W8+rjuzpbvNf1RJ1rXb4o2wjEHMdE8zbZe/3y+US93rXw0htc0YNodNNm5TKrlzz6Vb7JA/zynMeA952OZtY6W75B6PzDbOlBNHJVFUV1/Sa7AoRti6xdVfVmohpdA3b//e2rYPqVHgDwTVXkixtvbK2FnNEE4ZJ32bzQwXBmnmj0uW4a4AdvYMNPOtRY6o96+fzb87aq4Rw/6E1V39APfy7+jrcAGpYN/e0GtuYZj3109MUXj9QX6pv2ZquXeqVuq/k/4Gh79azIQSpeb5FpGxqyrautrtsbddsAO5RXe8Gk+g54UH/MNls49+i6aaZHR4s1sJU8SxfVZnSi2rVW26xdq7xRR9eNylcqb9U6a1RZlTqNtuBDJMHRxikde68u6Nml+vZGAczZrmgdmiYKoNkQktT1WgOWWvp/Lvuop4pmM/B0MqXghVrQgRWISKbafNOB6FaV2UafTRWf3nGU9yjbbv9D10hF+1DtAd6l/gC65lJ9X10THnawOQAAItWuATB+rfISXzJERd60qlrJqyZVL0E88iUeY5MtNUAME4BB1Xu9bWUmHyyGOytvAIKf9Py8QhG5VO/WeNisgc0rJaysrvN2faLmDqG43lVRzbNCEdp+BLWjvjy2BJsCMXGJtSbsVSuGu4Rhj6/1vKlEHocJG8jROH1rfrLAAcx2wOXgGoEOG6dWzdk17IDhNWJVM059nQRrVN7PeJlyt5kDLX9R5a4oiDOzFkiXL5qXZQsclhWMcOQoNdftNahT1V5XarctqmzZMI1J398oN3mCJN3kBbABImHZnAh6YZepKjUMTweE8qKEXar6Pe/7PgcegT3k4QR0oi+sYPVGAdmvQXCJqPO6ukYubXVRdIg4r6pCZyVsxiq2QR17qX5aaxQ2EfUr/btGfcibfJ4XOcxCbvVWhpcCFJ0buBmEkpfTS9zwiLQTnaKoyivQoaDFQARhEYARBAENASEKtA2YK0A3yAlMA4TB2E328Tsc/kqXV6B1TtUf4QxPfj7+459//tc/fXVi1xYKAo5A/IEIKOUN7wGER8rY86Dt0GrmmcSZtyFK4o80+VQ9+fLPTrk+NboF9kBZyRaLale2eEZ8PZvN/kF6iJeRsacqu85AQbKhZ22cAv7L5Fb07nRQ2ar9mPhlIbPKZERnG01UAqxTtmN1+rWiv1JU/Or09FSNYJsGDjlSn3+umnV1zUNTeTzmJRkoWbiorl4iPGW+eI8nB4iysoRdUDUAZZfw4H/+678tPMFk8QoaXS6T0Rq4rIKJt2qXw6w/mRmAG8HSCwSmmcqvx2pGJ5pNga2EcIBdJBS5JiqZkRtDs2bjVL0Anww4rAZyNk55Au8AlOjm4C+iSqNAwbXgypRoPkqVFQWL3hqGFMBi8AewRK3bXV3qJVob2DWvFUjHBqS1YT7eFSuQXmBk9bosbnCIqGg2mZsMRa7QwPZ5izZJVme+W2V5IZbpSresZBvkfD5odpUB4NkKGB5s1fU6B7Ir46MRiuEceeEMX2aWTwV3QHTQFbOJmm3BtmpAB/5dV9UG/23yqzIr8K+yAmVE79pqmy/+lm0B4SQSxBugpkgVseFZmtWZsjCS5KaurmAPUnSZEmYC8rCOfUFEHJuZpAhkIisFIapzoEUGeaSdx64TcgPoiivATrNbLDR4NEu3NIBI/rJdH72ABTBs1So0NfXSaT8w5GTpiBFScLqykvAM9g0sNlh1xOrifVldA42vgA3AlDrysvbSH8n3YlPrizHo3xa4vnFxxe0jILX6DYF0wn9vOIjgX6iryEVTt+I37nEHnsQPZJrxNkF/lPo68EmTsYyxPmBncfIVzMJosuoT7++nqJVelqu8BHUuL1ysIg8AjTlwj/yy5te8BrOBYmN+ZU17TnQG/TPqgCPagDX0xFMzxt9qKyCP87SsGUa9LlqWJQqYAqkEjIFbpvaMMqhnZ+DZqvgAeyWCYNQ0N6Q4P1Q52J1ao6MM7ynomnJwZt+r/cWlQyXxJNLk4tJtRX4YiA0Gn1nBcBreQyhJi6IGMasIbeEcvdgi4v1kVhFF02QAizyiRQkUu6acDbkFENdZkoV0D/xPYkseIypsUo0k+Z6O8YJcszxrgs6yiUWTQ9GuZNsPoPDr2z1YUJlI/4Icvwb713jSS1ob3IBWEwAkXRPUiKDsl5VGT7W1Lu6NRpNLC5n1vtmC47BRt0Gws1eViXpolGAKfbMFGIebcqHIDsuosUgv/scWnGE7Ncuk/PvsTCXsUL8Dnz/NTcCizkhSwzgPUDClx164l4xFgN1OrLYa6yxwAICOZdIZy5HES2QemZaCcUlG/Hw0RgBn4Lk//u0tR/LJeD9zi0C4lnxmJoJqdBPHwebXdd7q5OLCvJ7YjS8vQWDrnfYgYytKB/UVpEHthNecGIDdWrLGvsMh96KoHXUwyqRH8Ywfsu1fbbRX3ny9N7DFA407biAOmIkoUu8WsMM9zuoxWLMDD7xL211dAFltYiOxnEdPvOEYbqbOAIiVsImCBBaaWL61MSOyhse69vnEg4zEHcRCg8JmAZa9gMBJAobSewZnwMA54V9i6VKRU72k0ePxJFgb0KLB0uDqy6zNvNXMG34ezgJdRVNARzToOywgPPWm0uvwpZu/7+DNCLZnp91LY28i8ZLHLF9OyTramSDI6QvzBCZ0bXOgRMrsQ36VATTjs9Sp3zN26mG6sRIOSmeQY0DdG4YV9W84VwglTNPJdyYRL/Bh7LK4ZpCKnPSOt0E/jg9zcOGE+Dwu7hVEu+EdQooXAicJWTDwTjyFjkE7GO80TQVllym49+B/J8nFe31zSSwFf4CqB3Can/J2nYxw1hGox3STbWHcRH3Iip3msfSnBxaOTRuUwCSbqDmNyS6OL8FzncM/nQOIl0VCDzOzNnn8BHgAZ8Dpj+MDLHY1LB5TnJ+OumzunAKgszicSSjqrJymmF6WNNjU/pWMJwpQZSjKQyFQB0G0RmgfEjNvXl+Dh5WwCUedZ2RUwkQa4F6Hs7tJl6lnfON3FO3uQPLBkQUeOFN/OT7++fj4WB2adFAtSOK2ui51bXlKBP8sBR+2K/vhTGEwRrdNLiREW+KebZazb4l/XDy5HA8CAXYlu+kINzugLNjGB+2ba46dUt7o1Cine0wA60lOSrCte2+2HoceBbPgOFqWQ/hT8YtcNUKGp3pbLdYT4WpA3j872HBhiSzjCi0RI5uwPrBa5qHJm0T8RlEhGiJJ3PnmDl+5F+G8FbBACWd8ButfkV3Km+/gmYsakh5EpDwIDiKjD/AiS4ucmb336LzsZcSmlTyO4CFFXsOcHA4uKDfq5MfPmPp63E+sRiK8m8PDqfjXCQYZhJWEfUsCROIfSoCVqELInZyor0h8QdGSJ7CNDMvCIpto6WilYcNkxKCCm8pvw7mg0VDJ+f5MSBoidz89kL0NPrwsqfoMtM8qKxo9jrwnXt+Lg1z5iv2yBDPBuQQdBqBGt8/sY3+EB8p+wFl+N5xmmapZ3swwsBvlIAqAn5F5WV7hr2yHOS0Q7cw8QZbHf5Fg+EglWFRQM4qPZxirmX1nIB/ZzSzOcYPZGG2zHcS80dypzcAiQM2u2ZLjNpHkm6nuGG01phegfKrtFtYyuyZ0Qs7A2ODQ5tNOLKCU8YYg8oaWwZVR+vKVDc4XRdVgMqEdd+JJDmgaTCDkjctTSIrAL9pyqgK9fEDFmUlyqP0+CBRAizKFkm6YeSu028duTMiDNAh0CCd5LXE+/zzyffLme12A0ElMxgcw9LBH4NU0151POhDljYyUjIKcD34dE5x9/iwt2Q0KvcXMKvs46rMVB0wCZzXQtpb8X6FXVMjDBBGEVhWnV2ZgpXYbPcO0Hw5UXioEUQ2P39KIAN0C0Ldc9EgipUhbDMajr6qrBnbhBDOcFEyzzUUxWwtHWr+3wXIM6EddrIbSFbc9qTCXcveyYbdxhmzvZZy6TPuGU9h/5cCWtANruwmnzK2sUf1vBuaAksQCC6eJYTv8g0w0JZMpBJWq6Cy1m7ZrLAOpW08m9urlys9d1Xq1w4Q6lqyuqmqZBqLBxQd3nB6KibMfDxyi1TOTSSpt8hCpVjAJMfeVt7+GJFir+pCjSxTVh2W34Hi1vgLPCXweeXnH8W7R45ahEzt5ShbSmiVPcIQvqe5LOCfKUZI+EiUrIGya6658UGqoVyoUUdnL7xCdE9vHAlYUfOt8+Y7FdAQ6fFiMR10dEWJAeD2AhAHpwUAgoOAETGHNDzC28bBB6UVU9o0nqcMcUOtN9UE/pxAH6CtFUiSw+AGof9wQU4dgZn+v9bax5YUVWTbXGgASqTZc3Pd4hCkCxwe/Kgn3V+JkkNa93fvk6vWoeJGpilbZo5fF3spJ3wK/AUBBcRL9kv4hhMCky4EvsAISOh2p+onNk7JlDCyFMZPO2OzOTkwRqTFtD+L00paMOA0s97Ht5V8Bx8NHHDGIJUSrCsITRxbGP0v6skPbbmrOhUDWTPdET7sSXNq2H8U2o+pFUxNv3bTgCveZv9fURbiXl/2JrCHK+N6hVPHFSTSo5fSUONapepZhpRPNlmfP2IIBFAUW/2aeB0xeJfHUsCiBmwUSNAJq6qsa5Bg8wl/UaA5RoPfTOoKAjrx5XRZw2lDunDsc5vKHfOYOV9jsJXgiqxVaZ65NhBGG5PE+YvKPFHEnsSkbUF7E/fQ9KLdQ3rzCCmucmwr9OHK2T3riB8NcgEGqrEmsmSB4+HAi67sD9a0CA4ubREakzbYAZZAcj3vHDmZz5ZQ+BBNFud2TTsTkKYZzrO+a0ugsVd+AOqrrfKmdaWSt1eNMzqvlDZ7wrd6CLadOvFOJErGECZoCfv+B48WuQUU7JT5QkkgB0BT6euju2b28OcfMn17GQR2vjgskw1aQNRuGUOSSqlVeN+0oxrYDNHy+76FJmHXvgsScxu0EpzaPLo2KOSijuk26uCTqqd8bVE5UjKMuwIijO/l47Gs6obxE69FRfyXnYD/D6maIcWKf5t5wM7Z/7qgJIz+Y9gYbu6xApWHqAvSVIBd8QwiMxt2jdEA3KSkjTd4ZTKkJjoHNS/Ex8BkDLcmsrsWrd2VkBzAaclz9sOhTpMoiDjMfnE2gFqPgsQnWu4jolupcn+w4fWbdej+08Qvvg0ECn6Nltf3389c/poxI5JBOtEDgHKmn4peCrTPePYQm1FIUu9LcpdaqmxycCW2CF0/L/xvwC2Z9GYLTSAzBoP7yi3sXwRfq+l5ozTbnRH4V6SmkgIAQOwd+mwHuH6YTZMFO+qBXPIQDRKemoi4SSVwR8FHG7LN4fU+z9rtZw+4b+Rgnv1LJ2xADtKIR5GhWoJZCPI17NXZIvZhHJ/bkr7Gg0PjM2GuAWf3cWV+l2tRbQ9xkfNgMG5/M7+n0BAwTKBV2ts2lH1MyiORZ/q7xehx7PTxSu51UhAitPfityd+Y2NpFtmrfFWVXgQ1CwIjBzCiQLrOYZdR+jmF5PpN/kb/D4HJq4YMHr6prXT/LKMbwh/YPCbAurD3ghP58hxf6SRbLag7wPEClJM9xZIlRzf+3X4hn9JnwPjz4FsIjlQFvaXBfF9jFqSlmxyDDgCsZNtMuSQ1r8EhfD7Egekeut0xWmaoBO/OC3l9cep1LCE7IuEQofOzT0DPUd6xtm6E8D43B8jrHuIajt4mgNysXByjXQ7XxSb8lnyhTFb8joWyGfWZNljwxzIWpjFf8yAzusUs/6mtqpfC8AFnNNAV2qvZet6CZFxsnXNV3Lk5958I3IfA78ZLZ3RB5sdbLneuaDLYY+xUkWmUkWttPZh/0YsIrYeP0Kf2NTJAtODg0XGXkSJ77vIXZjsQoP3xLCbzuuF/Bh3fxohcAU9Gqw5Zd0yigEmkEDc6VtveTqMcumq0xoxUv4VWiUMF1g51I5dk2o7uVnnh95+tqVyxdEQqrj6SNqauSHEJs6G7avCjwVsJiHTYD98Jj0zpSm59Qf0lfMX+iHKSXQTaHuKwfK3O9wMsPrPTvwokbHOY6utjwOM7rug/Cx12JR2uRevcP7PoPgcGS7RfqPYdRYSae8pSXOZxtEfII3nMyM6lcmsh32Q+kOJx5I5yU3G0pD9Ri7wpwnFAa+bO9y8EO/VqB39Lllu64TxTdBgIc4GzZMV1WvfQAt0aC3GnnZZfxrusKhEBWZLTLjw72e+j0gHnGDeGNMUHSP3oOYvz+ZOB4oKLAgzt4QCsNnE5PHHRnNgySZ1hRKdqHw/Fdlhd6+SugoeyUPIqN4b1hkQDsIBhekEaRlOEk0y3zgG3Jqz2wJ5lo2QeNn+UTvgf1gB254iEtWvc97gL9oOQgZ1p7IG15k4EM/r0BRTfsGa81/aR9bxVVb6e9HS/Se9Xof04NKuFvtX8YjFwLf1kehNAMEjpyDvkBm3E9+bCk9ActfrNLVb7ldQKR6SS2708mCAwHgUKDaIS1+ZZcC2NT5wWY7PuI7aGD8ebRSeQXuDRvKQC2T7Ild3I+9KjNetcuq+vyaVlCTLy4gxQ2YoxnJT3gPIgdxIA/hXWaewITT/pVsOzv1aHlIgXl2p4W5JFiB9NcS9/9UKBr0sPc5h6/5QB4T83vnEC3twFmYbW5r1vej3OP1JPj47/gFTy+pnuN9+eqii7vpmHXJ+6FDh5OCPl5uEhCi76rqlcVdlKM0MEWs4b1RLNRUDUxe42HC69r8KIQeQFMX6kzZA9MJozUFIIUqs+MfD+8E9DarqfoALTumfKKPZacryqYN/Vf0WVEaayfCMG6tzfidJ/nirIe6Mafz7wuBsdOmDGpNZK6UTlsmDXuBqRp9l9nS7XUi3zJd10zao+hbdzFtBiAHjQMnV8o6QGFbCMIH/8fNb3Baq1Xc2DoLcEdaJg0wh7V/s7MQ9zjbk+849pYM8Qt+6G7OGE5vi9N3AxEMPeIyUKkJ+P4hDQvvbtQeQftSEOARsK6PbdLsqd8CAHR9R9Yhph1mYg16kQlw9mVXYk3csu9wptA3rVJ/37Qw0r8HSPAK3a1PaJ/KErlb9RQa775gg3BNIm+VXAgOGVWsPvzihPVXwzkA0t7yIQzFnfnPMAUZBzn8YXW296a7mci6XmJvd0LDSznsczYdH7RoKHj9LskKwpnkmGvan+oBNyNpv3v74zTN8CigB/JRexFYAyr9OQphgqGukQFwoNMBEp/591kJ7XHd/IShujf3rTay2PKivjQXM+DHV/QdhBCpLIxgmFoG+VnaTfMp1LjMqg9f8mvGZp+FdeJE7sn8i+fonkCGGe+LcaO+Eb99tbbc6/onxO/3c0MI2D8e6afoI3AVhJauDVBrGUEalx+20d4zpufOFk10O4VJSoOU9ulJpBkTKKBS3Sy4N3KrbdyhhAMOXJ5eNU0ymh11J+FVvjKjhyWLaNiSBL8bdypezspnKkjmGhgt0B62J26wxYJd9n2ftS07NPgxQHsS6Mu3u6dt/vooi6xDvbOCSxsEyNDiSY7o5BgsR7y24POaAIhJKwEgLGWZvxd7fKi7entoUmv+HM6yaAj5PvaHqp40bNPlcxZT0+3pzKmqC0IEmns3M/uKQZswIYEAUgUIszmEW5dX7v12562PxAb2Qdv6hzvOLAJ6vFDd/gRCFeYlj5jupHpfZDDcpi7VNn/3rs/PLR2x6yYr0r0FQ3i5SXNEyjHC3s7eRICcTmJxtkahTRC2JZTgcFvN3Vz49t+IW7HkUa0b893V1dcHo4m3E9o/XqQt4QhsPOAFEWsxx0nw7932kgD1C5Q9J7HbbtBgPbW7xYsufq4GZR0u178SiK/xO7eYFhXDM6rjeZOcQyXTEU2m2NR3OvRHVItgx9Qk7KtrbnszdqhJPVVeDuWxV2y7lyrHgyoinDRgRiq5yq713brnk/UxcELrpdTV/MekJcL/178pLOzzXr2mMnubS9R485mSh26o8N9DlxnRZv0fPlDnC9e8exM3aO91GvP9qPsQb7m5qbDbE2WoJOpMJ8yo4typ/eAbebBJmhBu8ALe4bhk6Je9mKfFgUGvIFTydv2dCXQTYa/VfSVAy+qYpvCpXGVXAxdYHHP+TLJ8nIMIxbFbqkbQRKZ205Pgd12PHyvQliMrzGEA3rdLXtxqGtfrKzYG0Nyd2Y08iWh9xbCgMlAFuwWLPo9o+DrWvYDblPue/Y+74PRPGemou+nHWwrM+Wknqsy8fXsHrNOdaEJNdKSNTdjT/oaei68T8Fc9jbw8CWJuGnCEckWV5pnu7rGb99Y4MZmMhfL+go0/IW+oCRDT7giE3EZHcmEhf3xn/msxO9P1ZOTnlvUBpQZfdvit7fhrH9xn0Dcz6zulbeM0qBK5GWCOlkTSt3KnuxsjAN29D82JOP8lQ/mMILeHfNVOHPF9d7x4ydnjwypQx68d17m6Eh9y1/ORIPfui43+bTeOl8uQUioQWUB7oEqqKlrfoOf3cvLXcufy/JukXmo9r4ps6wWu43GO3y84sNaBg80lCLNJNGMXaRzDeEa6Ftsn6aePvoucI73ZJvB/tGO4AkPhG5KyB5DFyj7WCkl/knMl8jiPk3bG9ZRIMU9r+5gO2mAVrwd8xyiVbzEhB2lPV8KWspr0ibhDv7sCQExiY2hP+QyXjpDu/BD1q5TYJUEzIPdi78/Yn4SPswPVPnmc4DjuE+eGzCpNRi5kSs0eLnzxkTnYALqTVgYgsFfG+SZTw5+/jlCh3rL7tXNGaAbJ5n3xJverZ3Y7xhmUV9wxn32w3vAqfxP0dIHfel4jTZJf85qxZ3+pLU87PIf2ccEIg+Y/rgnr6B+r55M1JcKLM0fnsCIJ/0HoWDSbG6Yta9BfODrjQ9QZV6G5uM2r71vKFlGkxcDzTV9bpvMGN838WfqNHxjmGsMdBkUnvdem6IyOm9ircmhEFLO8sI7yfjTsthGRt5ihmd4iQc1bfesfa/Evq+eJ8SWVq/t+VvLnSRjT3bRffCYM4b4wUaXXgSGia6q4Ddj8GMO4M+f00N4wh+Iog32asqXr04e/S+xm1f6omEAAA==",
            text: #"""
// Hermes
// SPDX-License-Identifier: Apache-2.0

import { Requests } from "./api.js";
import { ConnectionMachine } from "./connection.js";
import { Deliveries } from "./deliveries.js";
import { ErrorCode, HermesError } from "./errors.js";
import { pushHeartbeat } from "./heartbeat.js";
import { InboxTracker, SeenEntries } from "./inbox.js";
import { makeID, Outbox } from "./outbox.js";
import { standardOutboxLimits } from "./outbox-queue.js";
import { readPacket } from "./packet.js";
import { followPage, platform, serverURL } from "./page.js";
import { standardPolicy } from "./reconnect.js";
import { RequestTable } from "./requests.js";
import { Session } from "./session.js";
import { IndexedDBStore, MemoryStore } from "./stores.js";
import { Transport } from "./transport.js";

/**
 * @typedef {object} ClientOptions
 * @property {string} server For example "wss://chat.example.com"; the path is /ws if it has none.
 * @property {import("./stores.js").Store} [store] By default IndexedDB, or memory where there is none. A store serves
 *   one client at a time.
 * @property {{ name?: string, platform?: string, appVersion?: string }} [device] How the user sees this device in the
 *   list of devices. Its id is made once and kept in the store.
 * @property {any} [WebSocket] The class to connect with; by default the global one. Node 20 has none: pass the one of
 *   node-websocket.js.
 * @property {import("./reconnect.js").ReconnectPolicy} [reconnect]
 * @property {import("./heartbeat.js").HeartbeatPolicy} [heartbeat]
 * @property {import("./outbox-queue.js").OutboxLimits} [outboxLimits]
 * @property {number | null} [statisticsInterval] The time between two uploads of delivery statistics, in milliseconds;
 *   null: never.
 * @property {string} [network] The kind of network, for example "wifi"; by default what the browser tells.
 * @property {boolean} [followsPage] Whether the page's visibility and the browser's network state are followed.
 */

/** The longest frame that is read, in characters. */
const maxFrameLength = 4 * 1_048_576;
/** The number of entry names that outlive the page, see `SeenEntries`. */
const keptNames = 128;

/**
 * A client of one account.
 *
 * ```js
 * const client = await HermesClient.open({ server: "wss://chat.example.com" });
 * client.on("entry", (event) => event.type === "message" && show(event.message));
 * await client.logIn({ nickName: "ann", password: "…" });
 * await client.outbox.send("hello", { uid: 7 });
 * ```
 *
 * Events:
 *
 * - `entry`: an entry of the inbox (`InboxEvent`). Each arrives once and in order, and counts as taken when all
 *   handlers have returned or their promises are fulfilled. Only then the server may delete it. A handler that fails
 *   gets the same entry again after a while. Entries wait until there is a handler.
 * - `typing`, `presence`, `room`, `signal`, `notice`, `topicGap`: live events, never stored.
 * - `outbox`: the progress of a message (`OutboxEntry`).
 * - `state`: the state of the connection, see `state`.
 * - `session`: a login succeeded.
 * - `storeError`: the store cannot record what the app has taken. Meanwhile nothing is acknowledged to the server.
 */
export class HermesClient extends Requests {
    #store;
    #machine;
    /** @type {Session} */
    #session;
    #requests = new RequestTable();
    #transport;
    /** @type {any} */
    #timer;
    #timerAt = Infinity;
    #deliveries;
    #ordinal;
    #heartbeats;
    #learned;
    #lastState = "";
    /** @type {{ uid: number, nickName: string, token: string } | null} The account that logged in last. */
    #account;
    /** @type {{ resolve: (session: any) => void, reject: (error: Error) => void }[]} */
    #logins = [];
    /** The credential that the app last passed. */
    #requested = "";
    /** @type {any} What the server said at the last login. */
    session = null;
    /** @type {Outbox} Messages to send whenever there is a connection. */
    outbox;
    /** @type {() => void} */
    #unfollow = () => {};

    /**
     * Opens the store and creates a client, which does not connect yet.
     *
     * @param {ClientOptions} options
     */
    static async open(options) {
        const store = options.store ?? (globalThis.indexedDB ? new IndexedDBStore() : new MemoryStore());
        const records = await store.load();
        const deviceId = records.get("device") ?? `web-${makeID()}`;
        if (!records.has("device")) await store.write([["device", deviceId]], true);
        return new HermesClient(options, store, records, deviceId);
    }

    /**
     * @param {ClientOptions} options
     * @param {import("./stores.js").Store} store
     * @param {Map<string, any>} records
     * @param {string} deviceId
     */
    constructor(options, store, records, deviceId) {
        super();
        const url = serverURL(options.server);
        this.#transport = new Transport(url, options.WebSocket ?? globalThis.WebSocket, {
            opened: () => this.#turn((now) => this.#perform(this.#machine.connected(now))),
            received: (data) => this.#received(data),
            ended: (reason, code) => this.#ended(reason, code),
        });
        this.#store = store;
        this.#account = records.get("account") ?? null;
        const network = options.network ?? /** @type {any} */ (globalThis.navigator)?.connection?.type ?? "";
        this.#heartbeats = records.get("heartbeats") ?? {};
        this.#machine = new ConnectionMachine(
            options.heartbeat ?? pushHeartbeat,
            options.reconnect ?? standardPolicy,
            this.#heartbeats[network] ?? null,
        );
        this.#learned = this.#machine.learned;
        const seen = [...records].filter(([key]) => key.startsWith("seen/")).map(([, value]) => value);
        seen.sort((a, b) => a[0] - b[0]);
        this.#ordinal = seen.at(-1)?.[0] ?? 0;
        const cursor = records.get("cursor");
        this.#session = new Session({
            device: { platform: platform(), ...options.device, id: deviceId },
            isOwn: (clientId) => this.outbox.isOwn(clientId),
            statisticsInterval: options.statisticsInterval === undefined ? 900_000 : options.statisticsInterval,
        });
        this.#session.owner = this.#account?.uid ?? null;
        this.#session.seen = new SeenEntries(seen.map((pair) => pair[1]));
        this.#session.strays = records.get("logins") ?? [];
        this.#session.statistics.kind = network;
        this.#session.statistics.restore(records.get("statistics") ?? []);
        if (cursor) this.#session.inbox = new InboxTracker(cursor.epoch, cursor.seq);
        this.#deliveries = new Deliveries({
            handlers: () => this.handlers("entry"),
            taken: (delivery) => this.#taken(delivery),
            fullnessChanged: (isFull) => void (this.#session.inbox.isFull = isFull),
        });
        this.outbox = new Outbox({
            store,
            records,
            uid: this.#account?.uid ?? null,
            limits: options.outboxLimits ?? standardOutboxLimits,
            submit: async (send) => (await this.request({ send }, true, 60_000)).receipt,
            changed: (entry) => this.emit("outbox", entry),
            place: () => this.#session.inbox.taken,
        });
        if (options.followsPage !== false) {
            this.#unfollow = followPage(url, (conditions) => this.setConditions(conditions));
        }
    }

    /**
     * The state of the connection: `is` is "idle", "connecting", "authenticating", "live", "waiting" (with `error` and
     * `delay` in milliseconds), "paused" (with `error`: the page is suspended, or there is no network), or "stopped"
     * (the client does not try again; `error` tells why, or is null if the app closed it).
     *
     * @returns {{ is: string, error: HermesError | null, delay?: number }}
     */
    get state() {
        const { state } = this.#machine;
        if (state.is === "waiting" && this.#machine.isHeld) return { is: "paused", error: state.error };
        const { is, error = null, delay = 0 } = /** @type {any} */ (state);
        return { is, error, delay };
    }

    /** Whether an earlier login left a token, so that `resume` can log in. */
    get canResume() {
        return Boolean(this.#account?.token);
    }

    /**
     * Logs in, and stays logged in: the client reconnects by itself.
     *
     * @param {{ nickName: string, password: string } | { token: string }} credential
     * @returns {Promise<any>} The session, once there is one: `uid`, `nickName`, `token`, `epoch`, `serverVersion`.
     * @throws {HermesError} If the server refuses for good.
     */
    logIn(credential) {
        return this.#logIn(credential);
    }

    /**
     * Creates an account and logs in to it.
     *
     * @param {{ nickName: string, password: string, invitation?: string }} account
     */
    register(account) {
        return this.#logIn({ ...account, register: true });
    }

    /** Logs in with the token of an earlier login. */
    async resume() {
        if (!this.#account?.token) throw new HermesError(ErrorCode.invalidToken, "no earlier login left a token");
        return this.#logIn({ token: this.#account.token });
    }

    /**
     * Logs out: revokes the token and closes the client.
     *
     * @param {{ removeDevice?: boolean }} options `removeDevice`: the server keeps nothing for this device any more.
     */
    async logOut({ removeDevice = false } = {}) {
        await this.request({ logOut: { removeDevice } }, false);
        await this.#forgetToken();
        await this.close();
    }

    /** Ends the connection. Waiting requests fail with `closed`; messages in the outbox wait for the next login. */
    async close() {
        this.#deliveries.isHeld = true;
        this.#unfollow();
        this.#stop();
        const statistics = this.#session.statistics.unsent;
        await this.#write([["statistics", statistics.length ? statistics : undefined]]);
        this.#store.close();
    }

    /**
     * The page's state or the network changed. Called by the client itself unless `followsPage` is false.
     *
     * @param {{ app?: "foreground" | "background" | "suspended", isOnline?: boolean }} conditions
     */
    setConditions(conditions) {
        this.#turn((now, effects) => {
            const next = { ...this.#machine.conditions, ...conditions };
            const isLive = this.#machine.state.is === "live";
            this.#session.appStateChanged(next.app, isLive, effects);
            this.#apply(effects.splice(0));
            this.#perform(this.#machine.conditionsChanged(next, now));
        });
    }

    /** See `Requests`. @override */
    request(/** @type {any} */ body, isRepeatable = true, timeout = 30_000) {
        return new Promise((resolve, reject) => {
            if (!this.#isStarted) {
                reject(new HermesError(ErrorCode.closed, "log in first"));
                return;
            }
            this.#turn((now) => {
                const entry = this.#requests.insert(body, isRepeatable, now + timeout, resolve, reject);
                if (this.#machine.state.is === "live") this.#writeRequest(entry);
            });
        });
    }

    /** See `Requests`. @override */
    notify(/** @type {any} */ body) {
        if (this.#machine.state.is === "live") this.#turn((_now, effects) => effects.push({ do: "send", body, id: 0 }));
    }

    /** @override */
    handlersChanged(/** @type {string} */ name) {
        if (name === "entry") this.#deliveries.run();
    }

    get #isStarted() {
        const { state } = this.#machine;
        return state.is !== "idle" && state.is !== "stopped";
    }

    /** @param {import("./session.js").Credential} credential */
    #logIn(credential) {
        const text = JSON.stringify(credential);
        // A login by password goes on with the token that it yielded.
        const isKnown = text === this.#requested || text === JSON.stringify(this.#session.credential);
        const isSame = this.#isStarted && isKnown;
        this.#requested = text;
        if (isSame && this.#machine.state.is === "live") return Promise.resolve(this.session);
        if (!isSame && this.#isStarted) this.#stop();
        this.#deliveries.isHeld = false;
        return new Promise((resolve, reject) => {
            this.#logins.push({ resolve, reject });
            if (isSame) return;
            this.#session.logIn(credential, this.#isOwners(credential));
            this.#turn(() => this.#perform(this.#machine.startRequested()));
        });
    }

    /**
     * Whether the credential can only be that of the store's account.
     *
     * @param {any} credential
     */
    #isOwners({ token, nickName, register }) {
        const account = this.#account;
        if (!account || register) return false;
        return token ? token === account.token : nickName.toLowerCase() === account.nickName.toLowerCase();
    }

    #stop() {
        this.#turn((_now, effects) => {
            if (this.#machine.state.is === "live") this.#session.closing(Date.now(), effects);
            this.#apply(effects.splice(0));
            this.#perform(this.#machine.stopRequested());
        });
    }

    /**
     * Runs a step, carries out its effects, and sets the timer anew.
     *
     * @param {(now: number, effects: import("./session.js").Effect[]) => void} step
     */
    #turn(step) {
        /** @type {import("./session.js").Effect[]} */
        const effects = [];
        step(performance.now(), effects);
        this.#apply(effects);
        const { state, learned } = this.#machine;
        if (learned !== this.#learned) this.#keepLearned(learned);
        const isNew = state.is !== this.#lastState;
        this.#lastState = state.is;
        if (isNew && state.is === "stopped") this.#stopped(state.error);
        this.#schedule();
        if (isNew) this.emit("state", this.state);
    }

    /** @param {import("./connection.js").Action[]} actions */
    #perform(actions) {
        for (const action of actions) {
            /** @type {import("./session.js").Effect[]} */
            const effects = [];
            const now = performance.now();
            if (action === "connect") this.#transport.open();
            else if (action === "authenticate") {
                this.#session.connected(Date.now(), effects);
                // Should the page end now, the login may still reach the server.
                this.#write([["logins", [...this.#session.strays, Date.now()]]]);
            } else if (action === "becameLive") {
                this.#session.becameLive(now, effects);
                for (const entry of this.#requests.unwritten()) this.#writeRequest(entry);
            } else if (action === "sendHeartbeat") {
                const { body, id } = this.#session.heartbeat(Date.now());
                this.#send(body, id);
            } else this.#disconnect();
            this.#apply(effects);
        }
    }

    /** @param {import("./session.js").Effect[]} effects */
    #apply(effects) {
        for (const effect of effects) {
            const now = performance.now();
            switch (effect.do) {
                case "send":
                    this.#session.wrote(effect.body, effect.id);
                    this.#send(effect.body, effect.id);
                    this.#machine.wrote(now);
                    break;
                case "answer":
                    this.#requests.remove(effect.id)?.resolve(effect.result);
                    break;
                case "answerFailed":
                    this.#requests.remove(effect.id)?.reject(effect.error);
                    break;
                case "deliver":
                    this.#deliveries.push(effect.delivery);
                    break;
                case "live":
                    this.emit(effect.type, effect.event);
                    break;
                case "forgetEntries":
                    this.#deliveries.clear();
                    this.#write([["cursor", undefined]]);
                    break;
                case "keepCursor":
                    this.#write([["cursor", { epoch: this.#session.inbox.epoch, seq: effect.seq }]]);
                    break;
                case "loggedIn":
                    this.#loggedIn(effect, now);
                    break;
                case "refused":
                    this.#perform(this.#machine.authenticationRefused(effect.error, now));
                    break;
                case "kicked":
                    if (effect.isBreach) this.#blame(effect.error);
                    this.#perform(this.#machine.kicked(effect.error, effect.mayReturn, effect.advice, now));
                    break;
                case "shutdownAnnounced":
                    this.#machine.shutdownAnnounced(effect.advice, now);
                    break;
                case "reconnectAdvised":
                    this.#machine.reconnectAdvised(effect.advice, now);
                    break;
            }
        }
    }

    /**
     * The connection ended, or could not be opened.
     *
     * @param {string} reason
     * @param {number} code See `Transport`.
     */
    #ended(reason, code) {
        // 1009: a frame was too long.
        if (code === 1009) this.#blame(new HermesError(ErrorCode.frameTooLong, "the request is too long"));
        if (code) this.#session.statistics.happened(code === 1006 ? "resets" : "closed", Date.now());
        const error = new HermesError(code ? ErrorCode.connectionLost : ErrorCode.cannotConnect, reason);
        this.#turn(() => this.#disconnect(error));
    }

    /** Closes the connection and reports it, as what the machine had decided or as an error. */
    #disconnect(error = new HermesError(ErrorCode.connectionLost, "the connection was closed")) {
        const { state } = this.#machine;
        if (state.is === "lost" && state.error.code === ErrorCode.timedOut) {
            this.#session.statistics.happened("heartbeatTimeouts", Date.now());
        }
        this.#transport.close();
        this.#session.lost(Date.now());
        for (const entry of this.#requests.connectionLost()) {
            entry.reject(new HermesError(ErrorCode.connectionLost, "the connection ended before the answer"));
        }
        this.#machine.connectionClosed(error, performance.now());
    }

    /** @param {unknown} data */
    #received(data) {
        this.#turn((now, effects) => {
            this.#machine.received(now);
            try {
                const packet = readPacket(data, maxFrameLength);
                this.#session.received(packet, /** @type {string} */ (data).length, now, Date.now(), effects);
            } catch (error) {
                if (!(error instanceof HermesError)) throw error;
                this.#perform(this.#machine.failed(error, now));
            }
        });
    }

    /** @param {import("./requests.js").PendingRequest} entry */
    #writeRequest(entry) {
        const text = encode(entry.body, entry.id);
        const limit = this.#session.maxFrameBytes;
        entry.bytes = new TextEncoder().encode(text).length;
        if (limit !== null && entry.bytes > limit) {
            this.#requests.remove(entry.id);
            const reason = `the request takes ${entry.bytes} bytes; the server takes ${limit}`;
            entry.reject(new HermesError(ErrorCode.notEncodable, reason));
            return;
        }
        entry.isWritten = true;
        this.#session.wrote(entry.body, entry.id);
        this.#sendText(text);
        this.#machine.wrote(performance.now());
    }

    /**
     * @param {any} body
     * @param {number} id
     */
    #send(body, id) {
        this.#sendText(encode(body, id));
    }

    /** @param {string} text */
    #sendText(text) {
        if (this.#transport.send(text)) return;
        const error = new HermesError(ErrorCode.connectionLost, "the server does not read what is sent to it");
        this.#perform(this.#machine.failed(error, performance.now()));
    }

    /**
     * The server ended the connection for a breach.
     *
     * @param {HermesError} error
     */
    #blame(error) {
        const guilty = this.#requests.blameLongest(error.code === ErrorCode.frameTooLong);
        guilty?.reject(new HermesError(ErrorCode.notEncodable, `the server refuses the request: ${error.message}`));
    }

    /**
     * @param {any} effect
     * @param {number} now
     */
    #loggedIn({ session, heartbeatAtMost, heartbeatPrior }, now) {
        const { uid, nickName, token } = session;
        this.session = session;
        this.#account = { uid, nickName, token };
        const logins = this.#session.strays;
        this.#write([
            ["account", this.#account],
            ["logins", logins.length ? logins : undefined],
        ]);
        if (heartbeatPrior) this.#machine.heartbeatSuggested(heartbeatPrior);
        this.#perform(this.#machine.authenticated(heartbeatAtMost, Date.now() / 1000, now));
        this.outbox.started(uid);
        for (const { resolve } of this.#logins.splice(0)) resolve(session);
        this.emit("session", session);
    }

    /**
     * Something was learned about the network.
     *
     * @param {import("./heartbeat.js").LearnedHeartbeat} learned
     */
    #keepLearned(learned) {
        this.#learned = learned;
        this.#session.statistics.learned(learned, Date.now());
        this.#heartbeats = { ...this.#heartbeats, [this.#session.statistics.kind]: learned };
        this.#write([["heartbeats", this.#heartbeats]]);
    }

    /** @param {HermesError | null} error */
    #stopped(error) {
        this.outbox.halt();
        const reason = error ?? new HermesError(ErrorCode.closed, "the client was closed");
        for (const { reject } of this.#logins.splice(0)) reject(reason);
        const closed = new HermesError(ErrorCode.closed, `the client stopped: ${reason.message}`);
        for (const entry of this.#requests.removeAll()) entry.reject(closed);
        const isTokenGone = /** @type {number[]} */ ([ErrorCode.invalidToken, ErrorCode.revoked]).includes(reason.code);
        if (isTokenGone) this.#forgetToken();
    }

    async #forgetToken() {
        if (this.#account) this.#account = { ...this.#account, token: "" };
        await this.#write([["account", this.#account ?? undefined]]);
    }

    /**
     * The app has taken an entry: first the store knows it, then the server.
     *
     * @param {any} delivery
     */
    async #taken(delivery) {
        const { event, name } = delivery;
        /** @type {[string, any][]} */
        const changes = [];
        if (this.#session.isCurrent(delivery)) changes.push(["cursor", { epoch: event.epoch, seq: event.seq }]);
        if (name !== null) {
            this.#ordinal += 1;
            changes.push([`seen/${this.#ordinal % keptNames}`, [this.#ordinal, name]]);
        }
        try {
            if (changes.length) await this.#store.write(changes);
        } catch (error) {
            this.emit("storeError", error);
            return;
        }
        this.#turn((now, effects) => {
            this.#session.taken(delivery, now, Date.now(), effects);
            // Browsers let the timers of a hidden page come late, by a minute and more.
            if (globalThis.document?.hidden) this.#session.closing(Date.now(), effects);
        });
    }

    /**
     * Writes what can be done without if it is lost.
     *
     * @param {[string, any][]} changes
     */
    #write(changes) {
        return this.#store.write(changes).catch(() => {});
    }

    #schedule() {
        const live = this.#machine.state.is === "live" ? this.#session.nextDeadline : null;
        const deadlines = [this.#machine.nextDeadline, live, this.#requests.nextDeadline];
        const at = Math.min(...deadlines.map((deadline) => deadline ?? Infinity));
        // A timer that comes too early does no harm.
        if (at >= this.#timerAt && at !== Infinity) return;
        clearTimeout(this.#timer);
        this.#timerAt = at;
        if (at === Infinity) return;
        // The longest time that setTimeout takes.
        const wait = Math.min(Math.max(0, at - performance.now()) + 1, 2 ** 31 - 1);
        this.#timer = setTimeout(() => {
            this.#timerAt = Infinity;
            this.#turn((now, effects) => {
                const expired = this.#requests.expired(now);
                for (const entry of expired) entry.reject(new HermesError(ErrorCode.timedOut, "no answer in time"));
                if (expired.length) this.#perform(this.#machine.requestExpired(now));
                this.#perform(this.#machine.deadlineReached(now));
                if (this.#machine.state.is === "live") this.#session.deadlineReached(now, Date.now(), effects);
            });
        }, wait);
    }
}

/** @param {any} body @param {number} id */
const encode = (body, id) => JSON.stringify(id ? { id: String(id), ...body } : body);

"""#
        ),
        WebFile(
            path: "/connection.js",
            contentType: "text/javascript; charset=utf-8",
            tag: "ac580f82f117a215ceefed71948ab27e",
            gzipBase64: "H4sIAAAAAAACA70c7W4bx/G/n2KtFA2ZnCg5QFGUjKIotoMYcOLAdpECgVGd7pbiRcc79vYompAP6NP0wfoknZn93tsjKUuof8Tm7e7s7HzP7GxOTthPvFly8eTkhL379cU/jl8XGa8EP36V86ot5gVvpuxilWYLfvzN5PTJk2K5qpuW3bGXTVM3z+ucJwoEfWAdmzf1kh1NTjj+FpM/xNHMrsrKdLniecIWPG3aK562P6ZF6X14VbWwdL1qva/v1lnGeY7fSvhW8fwnPeTsaaYH277lWV1VPGvfwUHydcmdNY0ek2uenHz11RP2Ffu+3QKifM7uJJRROHU8eVfWbcfwvwcuuMhvgbwdk38PLfIOMZ68Do7bsfALADoxeF9UrKhE26yztqgr1tasXXBWbyreTGAcpxyzS4XW5ZTVK16xlKkPsGTGGk5k05N4fsmAs5d2yvOyFvB1ooCla9gCpCVLWw4Qy/oaULBg3GEFyvkE4N7y+dqFd8WzdMlfF7cITfAqpyNs0qItqmsA+681F61I8GvFKr5hdcWFXozzDWX0+pStYKmekiH6MER/E+wdp/eP6/PsSM05Yp/YkXtM+mCPQT89xOgL7X8E4kC7eFz8bQFynVrx/1Kwet1m9ZIzkW4FS6/gJ6Fe8XZTNzcwYQXE5FUGlCraBROgVvBjyqq6XcDhE4b4AJ1Z0QItBRKmRaCsnrN23VQz3Leuyi3sOwelXDfcrsGdFES5eIE0AlamFQMcS7ATFlmaAWdrZ0yg2grAF5iggEbIWAEDiSJqiiQf4A3EeXlb5LitRx679o4V4sUajgkSD/imLRx4vbziaIk+MTM6T0vhDYP0NAUX9idX+0zNjqzrmKtj3q55PQWWt29g3pHaij5dbX+tyyLbeh+B3wkTYCemZC1Yh9CYHRdtvYIZZDGnnjn9BPiVJWLyC//Y9iiH54P1RV4aLOiDlt3q2vvsqh0MJWwNP0qPYiiu71oQYYsiLUV2RlFMQAI/wsEQP/dgtErp7MBCb/dEyZFwWJTzMt1a9ALgSDWgwz7C6dP4lKuv/gACdf55v181YA6bdgsyWaLedrBTMCCR6UAbqowPjJWpaMHlcACR75jyW1O0La+CGY6hX3jSZ6eQEMkTdugOb/lFy96Dii7BQIBWowouimwh1ZY3t0C9VNxwaUgzoDJMAs9g3dOuDRqO5sHfYQ4kNqvRKqdz8NrufguwAWTg8sDCTgY0WXPkeV3lBU4MKX8Em/Lrpl5XuTQQaXbj/BRrAa4MIgTgWrpaEbYCOUsGDn6s0mseHvSqroF+FfL5TVUWFQfLy2EyHaUBWwmmS5tYizi7cM4DM4HeKC540gItH3kpwVuhjr6uyMoq6yYmCAcACGATL8sLIt0Ze3b6z9PT05naoC2WhAXALoQCjIdZArpCfteHYnmRo5lnzRr8F5h3chHK7juuQnLG2X2RluCSYeu/0Mbyo++b3wMauN6ipzn3gmdgJwVIGqcwQ1EkUf4/kZ7XiDD462ugEVuvyBlY0WMvao7Yslcnb2Z0bKB5gycTKDwIqSAdWRZlWQhclwskZ1pt0fOjlGU32qvgHzSH7Pg75ogn/PKNH35BntHfYNvwbx1h+Ev/++//aMCH/0HcpPABsJHaYMyUyVK4vjci1oJewRQ6jRGsKZybXeLaS2LfEqJwlFBEU0jjKWO7MqeVhVY4Kaj8I8UxEHGD/31uoP6soNw9QTxR1kgFQecR3Q5X4oBE/oz5HmYWLrLKalZm5hMtB1WE9Y7qJkbXpNOOQO2HvBQPUVghhxypXqGqgYJpLdV4qJkS+Bcr8srqh1BZQG9j5Wm05UMTgtoMTgl4AVp6m5ZW9bRhLct6I8y2X8jPr4tlgVqDgOw2CDAv5nPgOwYYV4AyR+3Bz0BvlHSmJZwcDHv2t7+eJqQx0nSDqGt7JlXFqInFAEG9mc/BAAECqLFqe/qb7F/apMsdKYchvIxlPEc0BCJIdUzGpUGY8RBEyGzXseFAOH80ZmffMe1HGyBNvVRzjADK/KduRgbxxCJgMkjFnkQBgZ8/p+1iIn+NlYbgH7S+EyVCMMsAnQUztFwhYEhLelnnyMFB7RKAsJhJiDcVZG4j9VVN7iRDr4G92qOMXGylvw5QmuipHgyUyZ7DA1O8qkHcURjbZos20Jp3I2W4fSF+4mU+uLm1BBN0yGdnZ66XZp8+safhPG0aeli+VwJvY5vLnKc5zn3LsTwBmSXgnq/5TEZ+xZxhWuHhi5HqC7XKw1p6Pm3zCCn6YbkD4Eb0CVCUJwmC6bE+upxF5nnXch0ajz2SSYqyc3mG6aHAKFg1kEiKl0WlJlnlRjWQ31TQeD5R8dz5OXtVzYuqaLeOSCp41oZ1PVuCfEHmbtKqFV4dYaKmGP2V0AS7k/nu7x86T20BsQaiZkruuS9UeGDLFHNq6ZRAjCJjOjlwwfQVdUKbXoCyjpxj95RIHcqd05l/nZwwWSAgK00A8d/XKajPFUfHZ7y0EzSiL7tG+dx3SEq82J//7B4S5XiS1/akcMxgmHxvmJH2OPv7h8P4CiZhiQexBxD3Z2+9inNXbIoW9Nk/fMi3LBVccXwaGdDa5I8ZhgfRTC9zlLnirLc4IJO/p5Nkx1AK7ENsCqntdGhXKXsoWiP0Jk52OzLF14mM+BJ21CqGqZyraI/GSby+IA87jh2JhK2PUCCaWvyeHiJ+sb3vSWjNrukhy7odAo3J0pdCZ4WNWz+D6HoL+RAkBNkihYgv78m3Cj/ciDdzUlV/lg5PwH0fqiAW2HOJwch+SRBQ32GhTTkLfe0smASWhnzKmethgrDDi9ljoFACdrvznsIOuFRAwOex8WZSntzSFVg9ZyRQqGDUd4GhIN1HpcyZlFZRig3m2DlrwsIKYNQ1SBpgFfjHutmkTe5R11LRLWzAqYCtNPY0GJtFAKuqhQfX1DIA1lME5kdVDj1c1MCPOgDh10hLDoJxZGcM4YkmZH0zIsmc7nAll27YdWkVTWYuM6r7bWHvspSJ/yJtliUXYkgDP0O3glBxFNWmB4V/SCSAyr47c2O2UCn6Yogxbf5mDSmUk1Lqek5aiY2qqpX1dVFRRA4LHAF0vHtUBIcDzzjGfWbvi4S8Hfaoop2rq5YhEuq7ikvj0RuQhr+scglJmsZZxPaQy1GpWFzTb4rsxqi5Xyd1iqNH4322hMt6dr/a7591l5GgzFcTIZJgIuWQUN8yFckP0pfG6doj4B0OaJo9S9RHfe3hEjMkqd77WO+N7JK1wx1buEnzhC5bgNB00xODT5BpFgLvr427F81io0WXw1r0pzu7h1PRGInx5aEMll+o1P26FsKlWZS1g7RxTvs18oJ+a1ZINZV3Yuf6H1N7OeaSLx7nOHkG6CTe8D6iLTW3wqEV7ScwoUO3MqvuPj8EcUgQpw/eV4Ewfj1QqI4kOf7V7M6UR4mOWF9j0Q/vLW3hb+5HjBP2ikrzeHUt702p5CCL7k6pch/pNXyPyE7fA2EC1Nbz+o7rzhS0OuW+wkihEL+AETwzKKkYF2wSytopGX09pq5sQTTdr375yGO31tM0T1ct8QJX0pbjA6papvBnTzg+gEUpYIk9ItY77ia0KSsa0l60P2PRPVrk1ZVZe30xVPcdYisWYQn2Biaqwm20ujt5BJ30WixGwQkTVVs+TF2Hylq/fxiqdk7SpsHbr9G4N8MrhYeER9GjfNBUu2ThKv04enZ6epqEC3rgvTo30fuYTMMJe0Y3VaZCYwv8zpWCIp1VEtu/cMZibQVkdGRopMWkCxVN1uRxPTGYViXefbDzSd3/StDdblNIMVXCJpMJbeEQJ9E3wFNdzVb3tf1s2xhEpzXlEHPYyAYdR9VgVF5MzosK6LCuMGCncemS8fY3ZZewYbOl+83LqbKdH1ssKsveHexnEfLqWO8qtQyOCCHUqoGwndXyNrmcQ2jGlutsIWtrQ9ruRHqdROZx9cv2K+mo4PH0SifspC4EfWIp6FteOUlrkK6BWp2ElA/oNt4brLrlGS9AvUeUG9ZU4ePoDl3hD1T+nNKJErYpqrzeyF+go9+wTtGuG7T3F5AkQogOMZw0MbJpz7nLPjiskXxslBIeGLp4icwsHrE7y4buhVQW4BgBzErqjc/RpzZwR/8ZCQmpI2qsWYLecxTrj/SD6xh+cQOnkivQ0B/QG9uFY21DdjCoVndIaeW2rbGN6jRx2w8gbBILcJ2uMzXOVTWn4KU4Un+mIqsKTAWojd5WbkptaJueYy7EfcVi00BG+TCZCBitTHuMzzGG6HwtOmbFLMqcYdaoTkkKRm0iRJfFZGIn7O/SbguwwzJu5aXgRtmw1WSzKEqQD+wvsFwFTc9uRNDXo/dNsY8h44+YcahzvPy4KpoHF28sE+kCcoARA7m1zIIj+vytn7JKSquUJArtgWnzTnfdYl14s9hiK1BhekXraL/rgCe/XKbbt4Ti5ec7WtNcZYCFM2QjtAnNU9UX/WCJkYUd7bHM9onaYaCcfj8ZGipHH1gGe2qweoCTdiJb7L/0gtpSXXibqpJ3WWxquNFqBsTiu24PEX9JyTHzb3v2RAUe+bsDgg2EfojIbwqZZPXkG2wb/AdvZnFvDGJ1v5rb/BgVcN2tf6hUqnvOxbqFMKe6qKp6DXYwHw3I3NB9r5QaZ8T0X57tpekheTPVN7GWkVJl1K0VVWxVpplqmMTKUcUflziG5heSGQ+mjS6tPgpprpr6hquesrqtsxqSKVXzcaiUpRU60ysuKz/Y6Yd34//XfGROj2YOTkAiPSL7i5sWRK/CObCDe3UX78roJUF396qs77vsOKirwS+O6vtz4HNWr0tZMQbeYtF0uHb3OUz1qqfmVckADz/nRqqnHU71wOne1w37u8y/Y5opIuxvFvD6Xmw+FMPIk4ouxnaTEN1yOEk72qfu1Edmei83tVPlk1UKXa8E+5eY5lyyC4TIl4IiaPhtL2dlj6YzV28obQssKbEMNvGEgXroVC3Ja4lB331nq5Ed869EDirCxm9MCvEOcqaq3zYQvY0Obuo1PmcGzLltNtOjiVfzndiy9TQ+sEORh2B7hcV+61qf689jCYt8J+VlNtLe072MSmMwUqAncjt84WcYcOfq/GFKb9sIP6/PjUJRt/UwvJDVr3L2XwSbtnF1k3wWNiLS58RWeakQGuyyy67HwlgTdQcpnIlv75NbRdsYYrw0bDRkCLuFA/PmPciKFGT1VfOg5zrc88hEoKLnYgcLYxBx7zlN31jHD+Xe8Q0fyTzB6uhFxpB2Eb/CQf1WrzPv9x5DOUlmEBf1StC+Duw5apy1q+JD49HCm/sk0V4tRCsIPTSi5PYfmD4W2cMAxnRfSPpEYk9ZJKGDy1susCXmndN4r2V6RIwdTpNW+AexoU/0KH6viZ0yUAf2GT3UkoGx0tBl/0Bl13sP7yNgYrOhNvoBkPrNvQ9NCRIdxOSc55HM3p/R7SgWuFa0zyVrf7zQ7YAaLNqfobr8nW+XdnjSWBv1/ki13zyMYFRtJtZIEm0aH3xzFFRwtCvtlZE95A3hx2ZBoGY4fRRp63GhpO3u9RetnI9SEOvhUUvVpdRn0PJw+qn2HxU1UJOXfxC8VNa4muiCTX06xlAKniyrnhP7Otm8SpanPXYvb3ekG+rNFsmk0cOp119in9CiP9EXK5Bp1M7XDbgZMET0BIbL2w79AH8oPI2bTW3N9Y0CDkUe8pgQLnR0iXV9ugo+Du/Hd1HFGEBFmXzNXcLM1Rseuv4xp1etXHS7rC4ppIsxM3aE6Q9xHybO8KlnuueiHsS2FagLP+0WvauDXY4/XiE1EqM75cKUCqNiue3gjHN1neg2lu3zv7pjZ9r7P5Ak7ArzRdCf/W8KL0yGKhtT9Pt+fNand2Ss/wRUtHx1cJAiHR4uGeCKxDfIq53sOXDgNLvXzYTwR+43TQeV5Mwhy2tGtiXF8Np2rvR7nQ5+GGkO6z8S7B2Vhm3zFybMvdYrjwomZR8o0Pf7vc71/9hnRJslbLAmMZXo6EN38j29PrKAOLe67hikOAK77s1Ldd3gCccYqUH5DHSwt1evSDQwOM3/ANRwRaLvSAAA",
            text: #"""
// Hermes
// SPDX-License-Identifier: Apache-2.0

import { ErrorCode, HermesError } from "./errors.js";
import { clamped, heartbeatFailed, heartbeatInterrupted, heartbeatSucceeded, learnedHeartbeat } from "./heartbeat.js";
import { ReconnectSchedule } from "./reconnect.js";

/**
 * @typedef {import("./reconnect.js").Slot} Slot
 * @typedef {import("./reconnect.js").Advice} Advice
 * @typedef {import("./heartbeat.js").LearnedHeartbeat} LearnedHeartbeat
 */

/**
 * An instruction to the owner.
 *
 * - `connect`: open a connection; report `connected` or `connectionClosed`.
 * - `authenticate`: log in; report `authenticated` or `authenticationRefused`.
 * - `becameLive`: send the waiting requests, then new ones.
 * - `sendHeartbeat`: send a ping.
 * - `close`: close the connection; report `connectionClosed`.
 *
 * @typedef {"connect" | "authenticate" | "becameLive" | "sendHeartbeat" | "close"} Action
 */

/**
 * What a heartbeat's outcome says about the network's patience with silence: nothing, because it was sent out of turn;
 * only a failure, because the silence was short or an earlier heartbeat was lost; success and failure.
 *
 * @typedef {"none" | "failure" | "both"} Evidence
 */

/**
 * @typedef {{ isDue: true, at: number } | { isDue: false, at: number, tries: number, evidence: Evidence }} Heartbeat
 * @typedef {{ do: "atOnce" } | { do: "byPolicy" } | { do: "at", slot: Slot }
 *   | { do: "stop", error: HermesError | null }} Next
 *
 * @typedef {{ is: "idle" } | { is: "connecting" } | { is: "authenticating", until: number } | LiveState
 *   | { is: "lost", error: HermesError, next: Next }
 *   | { is: "waiting", error: HermesError, until: number, earliest: number, delay: number }
 *   | { is: "stopped", error: HermesError | null }} State
 *
 * @typedef {object} LiveState
 * @property {"live"} is
 * @property {number} since
 * @property {number} lastReceived
 * @property {number} lastWritten
 * @property {Heartbeat} heartbeat
 * @property {Slot | null} leaveAt The moment at which the server asked the client to reconnect.
 * @property {Slot | null} returnAt The moment for reconnecting after the server has closed the connection.
 */

/**
 * @typedef {object} Conditions
 * @property {"foreground" | "background" | "suspended"} app The state of the page.
 * @property {boolean} isOnline Whether there is a network.
 */

/** A connection that lived this long resets the count of failures. */
const wellAfter = 10_000;
/** A timer that is this late means that the page did not run; it says nothing about the server. */
const halted = 5000;
const authenticationTimeout = 10_000;

/**
 * Decides when to connect, log in, send heartbeats, give up and reconnect. Does no I/O; times are passed in, in
 * milliseconds of any one clock.
 *
 *     idle -> connecting -> authenticating -> live -> lost -> waiting -> connecting …
 *                                               any state -> (lost ->) stopped
 *
 * There is at most one connection: in `lost` the machine waits until the old one is closed.
 */
export class ConnectionMachine {
    /** @type {State} */
    state = { is: "idle" };
    /** @type {Conditions} */
    conditions = { app: "foreground", isOnline: true };
    /** @type {LearnedHeartbeat} What was learned about the present network. */
    learned;
    #policy;
    #schedule;
    /** @type {number | null} The longest interval that the server allows. */
    #serverLimit = null;
    /** The difference between the date, in seconds since 1970, and the clock of the times passed in. */
    #dateOffset = 0;

    /**
     * @param {import("./heartbeat.js").HeartbeatPolicy} heartbeat
     * @param {import("./reconnect.js").ReconnectPolicy} reconnect
     * @param {LearnedHeartbeat | null} learned
     * @param {() => number} random
     */
    constructor(heartbeat, reconnect, learned = null, random = Math.random) {
        this.#policy = heartbeat;
        this.#schedule = new ReconnectSchedule(reconnect, random);
        this.learned = this.#known(learned);
    }

    get failures() {
        return this.#schedule.failures;
    }

    /** Whether there is no point in trying to connect. */
    get isHeld() {
        return this.conditions.app === "suspended" || !this.conditions.isOnline;
    }

    /** The time at which `deadlineReached` is due; null if none. */
    get nextDeadline() {
        const state = this.state;
        if (state.is === "authenticating") return state.until;
        if (state.is === "waiting") return this.isHeld ? null : state.until;
        if (state.is === "live") return Math.min(state.heartbeat.at, state.leaveAt?.moment ?? Infinity);
        return null;
    }

    /**
     * The app wants a connection.
     *
     * @returns {Action[]}
     */
    startRequested() {
        if (this.state.is === "idle" || this.state.is === "stopped") {
            this.#schedule.startAnew();
            return this.#connect();
        }
        // Closed and started again before the old connection was gone.
        if (this.state.is === "lost" && this.state.next.do === "stop") this.state.next = { do: "byPolicy" };
        return [];
    }

    /**
     * The app wants no more connections.
     *
     * @returns {Action[]}
     */
    stopRequested() {
        switch (this.state.is) {
            case "idle":
            case "waiting":
                this.state = { is: "stopped", error: null };
                return [];
            case "connecting":
            case "authenticating":
            case "live":
                return this.#lose(new HermesError(ErrorCode.closed, "the app closed it"), { do: "stop", error: null });
            case "lost":
                if (this.state.next.do !== "stop") this.state.next = { do: "stop", error: null };
                return [];
            case "stopped":
                return [];
        }
    }

    /**
     * The page's state or the network may have changed.
     *
     * @param {Conditions} conditions
     * @param {number} now
     * @returns {Action[]}
     */
    conditionsChanged(conditions, now) {
        const old = this.conditions;
        const wasHeld = this.isHeld;
        this.conditions = conditions;
        if (conditions.app === "suspended") {
            const state = this.state.is;
            if (state !== "connecting" && state !== "authenticating" && state !== "live") return [];
            return this.#lose(new HermesError(ErrorCode.suspended, "the page is suspended"), { do: "atOnce" });
        }
        const cameForward = conditions.app === "foreground" && old.app !== "foreground";
        const cameOnline = conditions.isOnline && !old.isOnline;
        return cameForward || cameOnline || (wasHeld && !this.isHeld) ? this.#look(now) : [];
    }

    /**
     * `nextDeadline` may have passed; early calls are harmless.
     *
     * @param {number} now
     * @returns {Action[]}
     */
    deadlineReached(now) {
        const state = this.state;
        if (state.is === "authenticating" && now >= state.until) {
            return this.#lose(timedOut("the server did not answer the login in time"), { do: "byPolicy" });
        }
        if (state.is === "waiting" && now >= state.until && !this.isHeld) return this.#connect();
        if (state.is !== "live") return [];
        if (state.leaveAt && now >= state.leaveAt.moment) {
            this.#noteEnd(state, now);
            const error = new HermesError(ErrorCode.kicked, "the server asked to reconnect");
            return this.#lose(error, { do: "at", slot: state.leaveAt });
        }
        const beat = state.heartbeat;
        if (now < beat.at) return [];
        if (beat.isDue) return this.#beat(state, 1, this.#evidence(state, now), now);
        if (now - beat.at >= halted) return this.#beat(state, this.#policy.tries, "none", now);
        if (beat.tries >= this.#policy.tries) {
            const error = timedOut(`the server did not answer ${beat.tries} heartbeat(s)`);
            return this.#lose(error, this.#afterLoss(state, now));
        }
        return this.#beat(state, beat.tries + 1, beat.evidence === "none" ? "none" : "failure", now);
    }

    /**
     * The connection is open.
     *
     * @param {number} now
     * @returns {Action[]}
     */
    connected(now) {
        if (this.state.is !== "connecting") return ["close"];
        this.state = { is: "authenticating", until: now + authenticationTimeout };
        return ["authenticate"];
    }

    /**
     * The server suggests an interval for the network. It is used only if nothing was learned.
     *
     * @param {number} interval
     */
    heartbeatSuggested(interval) {
        const { learned } = this;
        const isNew = learned.changedAt === 0 && !learned.successes && !learned.failures;
        if (this.#policy.adaptation && isNew) this.learned = this.#known(learnedHeartbeat(interval));
    }

    /**
     * The server accepted the login.
     *
     * @param {number | null} heartbeatAtMost The longest interval between heartbeats that the server allows.
     * @param {number} date The wall clock in seconds since 1970.
     * @param {number} now
     * @returns {Action[]}
     */
    authenticated(heartbeatAtMost, date, now) {
        if (this.state.is !== "authenticating") return [];
        this.#schedule.arrived();
        this.#serverLimit = heartbeatAtMost === null ? null : Math.max(1000, heartbeatAtMost);
        this.#dateOffset = date - now / 1000;
        /** @type {Heartbeat} */
        const heartbeat = { isDue: true, at: now + this.interval };
        const times = { since: now, lastReceived: now, lastWritten: now };
        this.state = { is: "live", ...times, heartbeat, leaveAt: null, returnAt: null };
        return ["becameLive"];
    }

    /**
     * The server refused the login. That is final unless the error has a `retryAfter`: the next try then comes after
     * that time, spread over half as much again.
     *
     * @param {HermesError} error
     * @param {number} now
     * @returns {Action[]}
     */
    authenticationRefused(error, now) {
        if (this.state.is !== "authenticating") return [];
        const wait = error.retryAfter;
        if (wait === null || this.#schedule.isOver) return this.#lose(error, { do: "stop", error });
        return this.#lose(error, { do: "at", slot: this.#schedule.slot({ notBefore: wait, window: wait / 2 }, now) });
    }

    /**
     * A packet arrived from the server.
     *
     * @param {number} now
     */
    received(now) {
        if (this.state.is !== "live") return;
        const beat = this.state.heartbeat;
        this.state.lastReceived = now;
        if (!beat.isDue && beat.evidence === "both") this.#learn(heartbeatSucceeded, now);
        this.state.heartbeat = { isDue: true, at: this.#nextBeat(this.state) };
    }

    /**
     * A packet other than a heartbeat went to the server. It shows the server that the client is alive; only incoming
     * packets show that the server is.
     *
     * @param {number} now
     */
    wrote(now) {
        if (this.state.is !== "live") return;
        this.state.lastWritten = now;
        if (this.state.heartbeat.isDue) this.state.heartbeat.at = this.#nextBeat(this.state);
    }

    /**
     * A request was not answered in time. Unless something else arrived meanwhile, one heartbeat checks the connection
     * at once.
     *
     * @param {number} now
     * @returns {Action[]}
     */
    requestExpired(now) {
        const state = this.state;
        if (state.is !== "live" || !state.heartbeat.isDue) return [];
        if (now - state.lastReceived < this.#policy.answerTimeout) return [];
        return this.#beat(state, this.#policy.tries, "none", now);
    }

    /**
     * The server told why it is about to close the connection. That is final unless `mayReturn`.
     *
     * @param {HermesError} error
     * @param {boolean} mayReturn
     * @param {Advice | null} advice
     * @param {number} now
     * @returns {Action[]}
     */
    kicked(error, mayReturn, advice, now) {
        const state = this.state;
        if (state.is !== "authenticating" && state.is !== "live") return [];
        if (!mayReturn) return this.#lose(error, { do: "stop", error });
        /** @type {Next} */
        let next = state.is === "live" ? this.#afterLoss(state, now) : { do: "byPolicy" };
        if (advice) next = { do: "at", slot: this.#schedule.slot(advice, now) };
        return this.#lose(error, next);
    }

    /**
     * The server will close the connection soon and advised when to reconnect.
     *
     * @param {Advice} advice
     * @param {number} now
     */
    shutdownAnnounced(advice, now) {
        if (this.state.is === "live") this.state.returnAt = this.#schedule.slot(advice, now);
    }

    /**
     * The server asked for a new connection in place of this one.
     *
     * @param {Advice} advice
     * @param {number} now
     */
    reconnectAdvised(advice, now) {
        if (this.state.is === "live") this.state.leaveAt = this.#schedule.slot(advice, now);
    }

    /**
     * The server broke the protocol, or the connection cannot be used any more.
     *
     * @param {HermesError} error
     * @param {number} now
     * @returns {Action[]}
     */
    failed(error, now) {
        if (this.state.is === "live") return this.#lose(error, this.#afterLoss(this.state, now));
        if (this.state.is === "connecting" || this.state.is === "authenticating") {
            return this.#lose(error, { do: "byPolicy" });
        }
        return [];
    }

    /**
     * The connection is closed, or could not be opened.
     *
     * @param {HermesError} error
     * @param {number} now
     */
    connectionClosed(error, now) {
        const state = this.state;
        if (state.is === "live") this.state = { is: "lost", error, next: this.#afterLoss(state, now) };
        else if (state.is === "connecting" || state.is === "authenticating") {
            this.state = { is: "lost", error, next: { do: "byPolicy" } };
        }
        this.#leaveLost(now);
    }

    /**
     * The time between two heartbeats: the learned one, at most the policy's in the foreground, and at most the
     * server's limit.
     */
    get interval() {
        let { interval } = this.#policy;
        if (this.#policy.adaptation) {
            const isShown = this.conditions.app === "foreground";
            interval = isShown ? Math.min(interval, this.learned.interval) : this.learned.interval;
        }
        return Math.min(interval, this.#serverLimit ?? Infinity);
    }

    /**
     * Checks the connection with one heartbeat, or tries at once to open one.
     *
     * @param {number} now
     * @returns {Action[]}
     */
    #look(now) {
        const state = this.state;
        if (state.is === "waiting") {
            this.#schedule.startAnew();
            if (!this.isHeld && now >= state.earliest) return this.#connect();
            state.until = Math.min(state.until, Math.max(now, state.earliest));
        }
        return state.is === "live" && state.heartbeat.isDue ? this.#beat(state, this.#policy.tries, "none", now) : [];
    }

    /** @returns {Action[]} */
    #connect() {
        this.state = { is: "connecting" };
        return ["connect"];
    }

    /**
     * @param {HermesError} error
     * @param {Next} next
     * @returns {Action[]}
     */
    #lose(error, next) {
        this.state = { is: "lost", error, next };
        return ["close"];
    }

    /**
     * @param {LiveState} live
     * @param {number} tries
     * @param {Evidence} evidence
     * @param {number} now
     * @returns {Action[]}
     */
    #beat(live, tries, evidence, now) {
        live.lastWritten = now;
        live.heartbeat = { isDue: false, at: now + this.#policy.answerTimeout, tries, evidence };
        return ["sendHeartbeat"];
    }

    /**
     * @param {LiveState} live
     * @param {number} now
     */
    #noteEnd(live, now) {
        if (now - live.since >= wellAfter) this.#schedule.startAnew();
    }

    /**
     * @param {LiveState} live
     * @param {number} now
     * @returns {Next}
     */
    #afterLoss(live, now) {
        this.#noteEnd(live, now);
        const beat = live.heartbeat;
        if (beat.isDue || beat.evidence === "none") this.#learn(heartbeatInterrupted, now);
        else if (this.conditions.isOnline) this.#learn(heartbeatFailed, now);
        return live.returnAt ? { do: "at", slot: live.returnAt } : { do: "byPolicy" };
    }

    /** @param {number} now */
    #leaveLost(now) {
        if (this.state.is !== "lost") return;
        const { error, next } = this.state;
        if (next.do === "stop") {
            this.state = { is: "stopped", error: next.error };
            return;
        }
        /** @type {number | null} */
        let until = now;
        if (next.do === "byPolicy") until = this.#schedule.next(now);
        if (next.do === "at") until = this.#schedule.nextAt(next.slot, now);
        if (until === null) {
            this.state = { is: "stopped", error };
            return;
        }
        const earliest = next.do === "at" ? next.slot.earliest : now;
        this.state = { is: "waiting", error, until, earliest, delay: until - now };
    }

    /**
     * The time of the next heartbeat: an interval after the last packet in or the last write, whichever is earlier.
     *
     * @param {LiveState} live
     */
    #nextBeat(live) {
        return Math.min(live.lastWritten, live.lastReceived) + this.interval;
    }

    /**
     * The evidence of the due heartbeat: full if only the last answer has arrived since the last one.
     *
     * @param {LiveState} live
     * @param {number} now
     * @returns {Evidence}
     */
    #evidence(live, now) {
        const heard = now - live.lastReceived + this.#policy.answerTimeout;
        return this.interval >= this.learned.interval && heard >= this.learned.interval ? "both" : "failure";
    }

    /**
     * @param {(learned: LearnedHeartbeat, bounds: import("./heartbeat.js").HeartbeatAdaptation, date: number) =>
     *   LearnedHeartbeat} step
     * @param {number} now
     */
    #learn(step, now) {
        const bounds = this.#policy.adaptation;
        if (bounds) this.learned = step(this.learned, bounds, Math.floor(now / 1000 + this.#dateOffset));
    }

    /** @param {LearnedHeartbeat | null} learned */
    #known(learned) {
        const known = learned ?? learnedHeartbeat(this.#policy.interval);
        return this.#policy.adaptation ? clamped(known, this.#policy.adaptation) : known;
    }
}

/** @param {string} message */
const timedOut = (message) => new HermesError(ErrorCode.timedOut, message);

"""#
        ),
        WebFile(
            path: "/deliveries.js",
            contentType: "text/javascript; charset=utf-8",
            tag: "3652b176a8d902b4fa2494f4550c5197",
            gzipBase64: "H4sIAAAAAAACA31WbW/bNhD+7l9xSYFOyhzZKbJuiOqgXYsiA1qg6Ap0QBAEtHSy2EikQVJ2DcP/fUdSb5aV+kNCice75+6ee6jZDO5Qlagnsxn8++XDf5efeIJC4+U/KQrDM47qBt6tWZLj5atoPpnMLi7grdmtMcUM9rxcS2WC82imUWsuRfRDn4fRByz4BtXuAM0KLmb+7LccYbkzqEFmQCEUp6XJmYEt4wYyqegJga3XkT2TSKENlOznd9rlYvW3O7qA19dwAVeP8+u/Hv/483Xcui6kWKGunS2R3CHkTKQFqjpMxniBKazQuEAWwg7YinERuxcZV3Sea2CgkcKnU6DzQO5SWS0L1D1cdTSLzWKaP87n89jneUeHdJegbLL6Tbd4piAFvcsM+pwl/VHOO/60ZYWkYFo3JbRu9hOgX9sC2DflvX842HN298XWV4oA3T/E/tWyrtq8fub6ayWEN8pYoTFuHX/P0cJwgJKCUwK2FkkhNaY3IAijPcZ9FlRHWZmoCc31HRbpsc8XTbb1o2FPKOp1VhWFIN68J5sVplS5GoX7Tw1+u2aKlbCXyx+YmAPItSGO6eF2EMLiFoIANwT3htq1cy/sf1uY+lTU8uArmkoJPdKS6MR1Wlf4pqWy8/1FyZJrfLORPL3tQrjs4D0rLMW2Oa1p2RGQERtT2/QtNznh8+w7Dcr1RyrNDSylLJAJF9FG6gINSte2TUgoLecb4ulcVtSSJcITrk0TybfLcVhViZEq2PdY6ZKYwjDEIaz5Z39EAx21vaWWH7e5M/EVWUCv793mMMQCTihhjQ+Tjvd1iTqFSXsKY63Wlc7brp1CrqcjOjYbAkt8+NYgchM0NFOVCMITiO+EG2RgSSIrYUViZXPjop2ThJqqgmex9Sb3FNGlf+zjqWMzvRMJOEw9zzyDwB9phz4E5QZgGKKvCsQL7PatKgcFevGsVK0lg4oWKFbE6pcv4cxteDWIoY+mpR30qHPMpaBX5SaBs3Y+fZAQlgrZUzzit6XD4hje/fzh2NzK/jGwNlrbdaoIrpGZ0FfgCLm9vxpYITB34dTPHW2cIg0ScgXt1/Fo9wAJM0kOASolVTgC0aIgWYicQXDu729SvT6wZvz9ZRfb24suPD288c6n4MPEo1Hqa3QBn5nJo5KLoHfhTeGKbjtSrVdApG8S+lWuvy/g6nTbV07gttHUICBjWWzQyZ5G842XSNdM83rqUIXjmKnVfeL68eg/0XfOcEBLtqPabbCbVChJdbc51S464eKQVXC2WECnN+MYjidF5zwzQ54PxvxZ5elq1hPYMSU7/GK8exf0iLiKqlyiOtTfac13RQPNAzoRL29MPXaLeESAvMXt8GsuHL8MAitB4fN+3px8Fc7g+jlfLt9WLg+T/wH7bPJa+AoAAA==",
            text: #"""
// Hermes
// SPDX-License-Identifier: Apache-2.0

/** @typedef {import("./session.js").Delivery} Delivery */

/** The bytes of entries that wait for the app. */
const maxWaitingBytes = 64 * 1_048_576;
/** The longest wait before handlers that failed get the entry again; the first is a second, and it doubles. */
const longestWait = 60_000;

/** Hands entries to the app's handlers, one after the other. */
export class Deliveries {
    /** @type {Delivery[]} */
    #waiting = [];
    #bytes = 0;
    #isRunning = false;
    /** Whether the client is closed: nothing is handed out. */
    isHeld = false;
    #handlers;
    #taken;
    #fullnessChanged;

    /**
     * @param {object} options
     * @param {() => ((event: any) => any)[]} options.handlers Returns the app's handlers.
     * @param {(delivery: Delivery) => Promise<void>} options.taken Called when all handlers are done with an entry.
     * @param {(isFull: boolean) => void} options.fullnessChanged Whether no more entries should be kept.
     */
    constructor({ handlers, taken, fullnessChanged }) {
        this.#handlers = handlers;
        this.#taken = taken;
        this.#fullnessChanged = fullnessChanged;
    }

    /** @param {Delivery} delivery */
    push(delivery) {
        this.#waiting.push(delivery);
        this.#changed(delivery.bytes);
        this.run();
    }

    /** Another account logged in. */
    clear() {
        this.#waiting = [];
        this.#changed(-this.#bytes);
    }

    async run() {
        if (this.#isRunning) return;
        this.#isRunning = true;
        for (let failures = 0; this.#waiting.length && !this.isHeld; ) {
            const handlers = this.#handlers();
            if (!handlers.length) break;
            const delivery = this.#waiting[0];
            try {
                if (!delivery.isRepeat) for (const handler of handlers) await handler(delivery.event);
                failures = 0;
            } catch (error) {
                console.error("Hermes: a handler of entries failed; it gets the entry again", error);
                const wait = Math.min(longestWait, 1000 * 2 ** failures);
                failures += 1;
                await new Promise((resolve) => setTimeout(resolve, wait));
                continue;
            }
            // Another account may have logged in meanwhile.
            if (this.#waiting[0] !== delivery) continue;
            this.#waiting.shift();
            this.#changed(-delivery.bytes);
            await this.#taken(delivery);
        }
        this.#isRunning = false;
    }

    /** @param {number} bytes */
    #changed(bytes) {
        this.#bytes += bytes;
        if (this.#bytes > maxWaitingBytes) this.#fullnessChanged(true);
        if (this.#bytes < maxWaitingBytes / 4) this.#fullnessChanged(false);
    }
}

"""#
        ),
        WebFile(
            path: "/emitter.js",
            contentType: "text/javascript; charset=utf-8",
            tag: "f1c6d4c5d8bbcb06581482661e22666a",
            gzipBase64: "H4sIAAAAAAACA51TTWvbQBC9768Y6KGSiVelxzhxEtJACw2U5lIIIWy0Y0tE2lV213aN0X/vfmhlSTE5VAdLst6bN/PmbZbBd1Q1apJl8PDr25/5zzJHoXH+g6Mw5apEdQ43DcsLnH+lXwjJZjO4ZVWloWCCV6g0vOzBFAiC1QhyBUwAbi2Zwiwj+LeRykBeMa3hri6NQQUHAvZyla7NvkE43LPmQhtVivUZPKC5SHyBc1tqn8Ll0t2Xy9bVc8RPvfIlCNyBZSfpgsSi/g6xS9dZhwdmAO0koT3XqilK7fumHSlyrxumWA2H0FTrMdNvJ5pso1SPVWg2SmiL9pitLHkLv7GWWxz1FhsIE0qROMWz+DXtLHNXLoU2MLDADUF7T+gajSencHXl7bGGOnsifwLXHbzX0pRxnkThKTGCbu3DGnlQOmLCuHAc9liVY4UG+8KB05JjFE5YHv2IRbrBDlO9R0pp8pEPj0/p01Qx7uimz4cpbEJMoeROA5d2QUIaeEVs/Kak/bGGr5Ss/btf/wJKowGVkgpslhS6uCMHFrb74mqh+qxB7kQU3IggyANPA1P/FUAfON/FKDxoT1m3Uv9x6NfKtpmMEhSPAR17PCT55av95J/BXsJJGMTAGw05M/awJX7I9AT7bYMbvC9zJQ3Tr0kIzXtYyJ41Mti1eAdop8pk/PRByJ5PpSxm+7lLW0ta8g+hRiIHKQUAAA==",
            text: #"""
// Hermes
// SPDX-License-Identifier: Apache-2.0

/** Calls handlers by the name of an event. */
export class Emitter {
    /** @type {Map<string, Set<(event: any) => any>>} */
    #handlers = new Map();

    /**
     * Calls the handler at each event of this name.
     *
     * @param {string} name
     * @param {(event: any) => any} handler
     * @returns {() => void} Removes the handler.
     */
    on(name, handler) {
        const handlers = this.#handlers.get(name) ?? new Set();
        this.#handlers.set(name, handlers.add(handler));
        this.handlersChanged(name);
        return () => void handlers.delete(handler);
    }

    /** @param {string} name */
    handlers(name) {
        return [...(this.#handlers.get(name) ?? [])];
    }

    /**
     * A handler that throws does not keep the others from the event; its error is reported as the browser's own
     * unhandled errors are.
     *
     * @param {string} name
     * @param {any} event
     */
    emit(name, event) {
        for (const handler of this.handlers(name)) {
            try {
                handler(event);
            } catch (error) {
                queueMicrotask(() => {
                    throw error;
                });
            }
        }
    }

    /** @param {string} _name */
    handlersChanged(_name) {}
}

"""#
        ),
        WebFile(
            path: "/errors.js",
            contentType: "text/javascript; charset=utf-8",
            tag: "ea26963cb01229a761a52f37bf5b7fdd",
            gzipBase64: "H4sIAAAAAAACA3VV23LbNhB911ds/RLKI5OUnV5Cj5J6fJlmxkk6iSftoyFySSEBARYALau2/j0LgJRIJfGL5LOLxVmcs6skgb9Q12gmSQKf/r769+SW5ygNnrwtUFpectQZXDQsX+HJaZxOJsnxMdytEGRbL1EbUCWg1kqbDJYo1BrmaZqCpYxccCrxglLWcgalVnWIKenDBvUDagpHhcpNEorEdTGN4TiZ4GOjtIVcSWPh2sUuVYGwgA/LL5jbuNSI/2P0NAH6y5mUyl4qKSmU0S3zWcADwpW8VcYHTkPA8hqLD62HzrpcoQwWDngZgEYrq3IlPnMlmKvhYr+GmMZGsDyk/9ZDD+prQH4PyFeed8AfASCO1zJXBVsKdPCrAJvWNCgLnzrvmBurNN4wLgLacVStXarHm1YIB3Y811rJ6lKj14sJ4yr3TXH5wAQv7oiZp9/3xvJctdJeceO4eI59a5LVeMf6/K45oSour1CwTZfctVjgA9nlltfcfkTnER+dp7vbufVP9xH/a7nuovMRtwtdtTVRz+A07XWjh7ohfoXHOslKpZe8KByv03QvmrPY2yuSvhQ8D0W6Hltp2saZCEOdXjpmA2EHn+2uLLXrW6lbeswMXvobttPz4PcLGTzuzL53dgYM7klOvHfknF8qKmKAycJFaKgMq/ogqkbgyNmCGdMNn/c34KMlG5jgdnjaqUGmPxrkHREpFyJi/hOO4c+G0c3wFGZyC46UH9LAesguPjxjrOay2kJHd39s5htZr5h180XDDYWSCGxJLgRuZyQgXMtKcLOKf0wEnmlLCLGl2bB6c1Fagv5ZoaTX8QjU5DNDi4D2jS9Xc0HlkMa2MOf+bAYSaUv0FyT9WBPrNqcZiVyrs578bHjTwheYdg8ZBq1BHXW5pG2P2xU3cR7Wi/s4iIxq7v8JWdvvxKBBIBFHG+7eC3ffd3H4WkxutrCm+Rh1adzo5GS5yIWGfYSluGbcEqH3/ql9zpsB1XdmCs/PkJ4fnOplXsAnL3x3sIfpyNGeOnVbtrQViZxdOdkN29AZMsXmaBobmjiM0pnf6oPnJBKtliTcemjvaETUPXMgOBDPd/QaUngTvmZBwZ89NFmJqOqBmzawQtFkYUZ3u5+KGdpghiw7aI3T7xJ9CsVo84KbEtq21NzMfeeuVe7cT261Cqh8fyurGJdjP1ZIA2HusKbBZnoTDbXiJUSHLvpl0Xuzeyoy88B0uyPBkpS8+/2Lhz8hu+MlbX08FNoJZtwEL+Ads6u4FIpE2NdNfiLb/hxdnDqJRsj8O+RshLxewKtesO3kG4AHTntfCAAA",
            text: #"""
// Hermes
// SPDX-License-Identifier: Apache-2.0

/** The numbers of errors: below 1000 the client's own, from 1000 on the server's (docs/errors.md). */
export const ErrorCode = Object.freeze({
    cannotConnect: 101,
    connectionLost: 102,
    timedOut: 103,
    closed: 104,
    protocolViolation: 105,
    replaced: 106,
    revoked: 107,
    kicked: 108,
    notEncodable: 109,
    suspended: 111,
    storeFailed: 113,
    outboxFull: 114,
    wrongCredentials: 1003,
    invalidToken: 1004,
    accountDisabled: 1005,
    nameTaken: 1006,
    loginDelayed: 1007,
    deviceLimitReached: 1010,
    invitationRequired: 1011,
    invalidArgument: 2001,
    notFound: 2002,
    forbidden: 2003,
    clientIDConflict: 2004,
    unsupported: 2005,
    rateLimited: 3001,
    frameTooLong: 4003,
});

/** An error of the client: a `code` for programs and a `message` for people. */
export class HermesError extends Error {
    name = "HermesError";

    /**
     * @param {number} code The error for programs.
     * @param {string} message The error, and what can be done about it, in English.
     * @param {number | null} retryAfter When a retry makes sense, in milliseconds; null: never.
     */
    constructor(code, message, retryAfter = null) {
        super(message);
        this.code = code;
        this.retryAfter = retryAfter;
    }

    /**
     * Reads the server's `Error`.
     *
     * @param {any} wire
     */
    static of(wire) {
        const wait = Number(wire?.retryAfterMs) || 0;
        const message = String(wire?.message || "the server refused without saying why").slice(0, 1000);
        return new HermesError(Number(wire?.code) || 0, message, wait > 0 ? wait : null);
    }

    /**
     * Whether a retry may help: the connection was lost, the server is overloaded or failing, or it said when to try
     * again.
     */
    get isTemporary() {
        if (this.retryAfter !== null) return true;
        if (this.code === ErrorCode.notEncodable) return false;
        const thousand = Math.floor(this.code / 1000);
        return thousand === 0 || thousand === 1 || thousand === 3 || thousand >= 9;
    }
}

"""#
        ),
        WebFile(
            path: "/heartbeat.js",
            contentType: "text/javascript; charset=utf-8",
            tag: "4d155f393181f3a67dfd6954cf0f440b",
            gzipBase64: "H4sIAAAAAAACA9VY23LbNhB911fsW+WEpmWnuVSK3bjTZuqZtM3EnknfEkiETNYUqBJgZNXRv/csAIKkbo6TvjQPjk0Aezl7dheLoyP6VZYzqXtHR3T59uc/D99kE6m0PLxIpDLZNJPlkM7nYpLKw5N40OsdPXrUo0d0lUoaF5VKNC0yk2aKFmk2SUnQJM9wkrQUJQ5pmhYlGezOC3UttaEUC2YshaFMGVl+EjmW8ZcgJc2iKG9I5Hmx0BHWaZbleablpICiGHpZ9SuznMtETumuGP8lJ2YFF7zI80TMjTBZoezGeVnMZWmWdKeq2ViWK9JpURq2gu0Pf9SGxDtO1aZftdy474w2cm4PZGpSSqElFVOLQ/AaPkvganfuklJKUzJULCiRuwRN8QtNRZZXpdQ7DaomE6m11D9JhEResn2X9TfGWlBZLGhsV7sKrrGwU26t14l95w1+7b/uF6zTMlM3VvRRoNb7VKqGJZoETmlQKiKhEtAMqywEnFCIPmKNXyvFGzWio82ITDZzmh9In7dFnk2WO/wMRnMsWAM8MgvJ1iyKlr0xvUdCwFYSgY1Da/E0K0Gc6wqIO19aacFKqdGROR8ZMYCPNFtHfwvl6TOpKs9XLb3tNF1jzchuHlIGKiNJs1uZ7IqwUHohyyu4XFSmcd8UtBA4zgnO3tpdI/y/JNSLG4mVsphZpRoqQdEmToWSu7SZMkPwWIv7woZXykmXSZsYgVouAVwBWqMGfLvOPiFI1bzLstds28lT0uzH0xcD0kN6hp8uIKWX+dS71SiLiPf62lFvO+lkX2AZ3b2TIilUvny5JV5nK2uQvJ1DFNsMcmgDXogyaUX1lP6wPI2npZT/yP5dD0QJtWsIHz4MBoPIfvVkGrJDzVcuMOxc88WXlSF1tm0WCAhya1uTHLqj3upgFDD9BUFe0vEJAIqQHajiNENC1oVdf0dZkjv2gEl6ZIPlAK67yAu6H0KXptvgm1c6Dds2kQvkH7KR1vNOknJGRF26M0S8zbJySE+o7e+5po8dlR8j6wenw1pzYy2Wauyyx+MbHLXywOt9zsZx3DGu6+sWptWu0bklNeKhXaazT5z6ouYBRNV50pQsbUFKhm0XaSaWlIpPXCwnBUTNuAfMoQ8FPWa3nD9/V5k0l65Qw5XnQOXFsw/fDwYja1Cnj9raCI8n+KMlQlXJtcRZF9hRq51g74J7A4BQqCBi7Hypo0BvcwGZiTAiIl044RnLV7AaQMHkZHf3eOPEBpi/pH10yQHkKg3DlLw1W289bXnjooAjCgL1pRFjpFNHYApHtTQm313OQ55vaf/3NfnNvr7rxCQV4Edyblw/77T9XCBefoN12PtKGkGWdPzD80G3WL+ai1LMNsG0ayhmVak03a1HopM300q5jpCv7erXwqIG0lM4nGvQvPHilAYHdFdXTyikppw0J6MG3SGhbNS42T8aYatRbxWce+ftX3gu3KhioaK6IJrQwWNHZeEY6a0AbTjFwNNEzMR1i6gesg1QagDam7Z0p5XX+jUQT3IxQ5b0vabIi9rADxUqbGlK82/CpPEsU333i7it5cQN3h6RugsehC++Ax50Id7LH7+2kVgPAWhNPmqJ7DWlyQceHOpvo4yTE9lTB3R6to7fPqr6UwHiVnNqTVpc/sINyl1ZdJZLTjZQbFygZSVZ6a5MzcS2SIFIZ9D5z4m1BTe62FUPHszDAIAtdCjbG5SsQXfE9I0EZRih6tKzlchMLd6dTanPe+M6FrUY/odx+hxxLCY3rsZzBOZoO2PcjGlWsZrCYKTLkbzuhszjchzOW8Ht6hOyorviHRiFg2yVhfFwXcbLbpf9/NltCFX57HQjiXym8r5Gg//oBfe7Qh67PhzVBbQDs5Ox6gUHm1b0+JSO12BtFl+GfN+8om4x8h4Da1k4HN0HwYYDq84LSGvQSHD14REEGSPWMq+ZXv7POcSd/xsSaFdfrGt7uGE8puONDAuLgQlbB5ItXLB56C9Ea9cuFqG54aqivsxiLUviXdm9xqu1HrSP8nsZeVj75KcyHjYq+eXMkwqFzU3hxDdkfKpUicpi8Nl0niYeRL+vJcoFO1ZWc9OwZW/nbzOj27avvuDZEHPMUvths3lq+E53Rs2hm2NcY8N81H5FKKb1y8Gi4LcmVszPSBFhdyryKe/AOLBIpXu+ws+Mpwm9gWe4XkB1/Vxy0b3Oj2iAOTM8fwSM/VtH/YTzO34yBYM6cNT7Em+/1TqYLjw2/ZYJa+C3jTsD4j9SuGcd21G3veEII37nwyE9sfPVAblxmcP1L5xydOhFFgAA",
            text: #"""
// Hermes
// SPDX-License-Identifier: Apache-2.0

/**
 * The bounds within which a client searches for the longest heartbeat interval that a network allows, in milliseconds.
 *
 * @typedef {object} HeartbeatAdaptation
 * @property {number} shortest The shortest interval.
 * @property {number} longest The longest interval.
 * @property {number} step The increase of the interval at each step.
 * @property {number} retreat The decrease of the interval after failures.
 * @property {number} successesBeforeStep Successes in a row before the interval grows.
 * @property {number} failuresBeforeRetreat Failures in a row before the interval shrinks.
 */

/**
 * When heartbeats are sent, and when the connection counts as lost; times in milliseconds.
 *
 * @typedef {object} HeartbeatPolicy
 * @property {number} interval The time between two heartbeats. With an adaptation: the first guess, and the longest
 *   interval in the foreground.
 * @property {HeartbeatAdaptation | null} adaptation The bounds of the interval; null: it is fixed.
 * @property {number} answerTimeout The time to wait for an answer; any packet from the server counts as one.
 * @property {number} tries The number of unanswered heartbeats in a row after which the connection is given up.
 */

/**
 * From 25 s to 580 s: 60 s longer after 5 answers in a row, 80 s shorter after 2 failures.
 *
 * @type {Readonly<HeartbeatAdaptation>}
 */
export const standardAdaptation = Object.freeze({
    shortest: 25_000,
    longest: 580_000,
    step: 60_000,
    retreat: 80_000,
    successesBeforeStep: 5,
    failuresBeforeRetreat: 2,
});

/**
 * Every 120 s, below most networks' idle timeouts; the answer within 8 s.
 *
 * @type {Readonly<HeartbeatPolicy>}
 */
export const pushHeartbeat = Object.freeze({ interval: 120_000, adaptation: null, answerTimeout: 8000, tries: 3 });

/**
 * As `pushHeartbeat`, with an interval that adapts to the network.
 *
 * @type {Readonly<HeartbeatPolicy>}
 */
export const adaptiveHeartbeat = Object.freeze({ ...pushHeartbeat, adaptation: standardAdaptation });

/** After this time without a failure, a longer interval is tried: the network may have become more patient. */
const quietSeconds = 7 * 86_400;
/** The increase in that case. */
const nudge = 20_000;

/**
 * What was learned about a network. Plain data, so that it can be stored.
 *
 * @typedef {object} LearnedHeartbeat
 * @property {number} interval The interval that is used next, in milliseconds.
 * @property {boolean} isStable The interval has settled.
 * @property {number} successes Successes in a row.
 * @property {number} failures Failures in a row.
 * @property {number} changedAt When the interval last changed, in seconds since 1970.
 */

/**
 * @param {number} interval
 * @returns {LearnedHeartbeat}
 */
export function learnedHeartbeat(interval, isStable = false, changedAt = 0) {
    return { interval, isStable, successes: 0, failures: 0, changedAt };
}

/**
 * Returns what is known, within the bounds. What a store returned may be damaged.
 *
 * @param {LearnedHeartbeat} learned
 * @param {HeartbeatAdaptation} bounds
 * @returns {LearnedHeartbeat}
 */
export function clamped(learned, bounds) {
    return { ...learned, interval: Math.min(Math.max(learned.interval, bounds.shortest), bounds.longest) };
}

/**
 * @param {number} interval
 * @param {boolean} isStable
 * @param {HeartbeatAdaptation} bounds
 * @param {number} date
 */
const changed = (interval, isStable, bounds, date) => clamped(learnedHeartbeat(interval, isStable, date), bounds);

/**
 * A heartbeat was answered after silence in both directions for the whole interval.
 *
 * @param {LearnedHeartbeat} learned
 * @param {HeartbeatAdaptation} bounds
 * @param {number} date In seconds since 1970.
 * @returns {LearnedHeartbeat}
 */
export function heartbeatSucceeded(learned, bounds, date) {
    const next = { ...learned, failures: 0 };
    if (next.isStable) {
        // A clock that was put back must not delay the search.
        next.changedAt = Math.min(next.changedAt, date);
        if (date - next.changedAt < quietSeconds || next.interval >= bounds.longest) return next;
        return changed(next.interval + nudge, false, bounds, date);
    }
    next.successes += 1;
    if (next.successes < bounds.successesBeforeStep) return next;
    return changed(next.interval + bounds.step, next.interval >= bounds.longest, bounds, date);
}

/**
 * The connection died while a heartbeat was unanswered.
 *
 * @param {LearnedHeartbeat} learned
 * @param {HeartbeatAdaptation} bounds
 * @param {number} date In seconds since 1970.
 * @returns {LearnedHeartbeat}
 */
export function heartbeatFailed(learned, bounds, date) {
    const next = { ...learned, successes: 0, failures: learned.failures + 1 };
    if (next.failures < bounds.failuresBeforeRetreat) return next;
    // A settled interval that fails is no longer valid.
    if (next.isStable) return changed(bounds.shortest, false, bounds, date);
    return changed(next.interval - bounds.retreat, true, bounds, date);
}

/**
 * The connection ended for a reason unrelated to heartbeats.
 *
 * @param {LearnedHeartbeat} learned
 * @returns {LearnedHeartbeat}
 */
export function heartbeatInterrupted(learned) {
    return { ...learned, successes: 0 };
}

/**
 * The longest heartbeat interval that stays below the server's idle timeout: time for three heartbeats of which two are
 * lost, or half of it where there is less.
 *
 * @param {number} idleTimeout In milliseconds; 0: none.
 * @returns {number | null} Null if there is no timeout.
 */
export function longestInterval(idleTimeout) {
    return idleTimeout > 0 ? Math.max(1000, idleTimeout / 2, idleTimeout - 30_000) : null;
}

"""#
        ),
        WebFile(
            path: "/hermes.js",
            contentType: "text/javascript; charset=utf-8",
            tag: "6a7785e9202466a26ed35322a1786f52",
            gzipBase64: "H4sIAAAAAAACA2WQzU7DMBCE73mKVS9cEgdxhBM0SK0AKVI4cPXPVHaV2NHaQCvEu5NEKUTh5hnNN+vdsqQduEPMypKaunornp2Gjyj2Bj65gwPf0n0vtUVxI66zMfdqQU31dBWpf1et0+Tl0CDIBB3LTyjRGTKImp1CpGTRiQynPnCir3nctnVDPX3TgUNHG1HqyRDHuLn7yz4yB94Gg3zGJmNBYdRxRUkj++Q+sIPkpCBTPvwz2l+54O3FW1UYF6VqUQ9YTvCX94IcG1dQTNIbyaYOw03OiyxDB++h11P23uAEUz00KfCw4wu6wOdJLOg46vWOjZUM8++KSao5+QPVVzfi2QEAAA==",
            text: #"""
// Hermes
// SPDX-License-Identifier: Apache-2.0

// The SDK's public names. docs/web.md describes them.
export { HermesClient } from "./client.js";
export { ErrorCode, HermesError } from "./errors.js";
export { adaptiveHeartbeat, pushHeartbeat } from "./heartbeat.js";
export { disablePush, enablePush } from "./push.js";
export { standardPolicy } from "./reconnect.js";
export { IndexedDBStore, MemoryStore } from "./stores.js";
export { SharedClient } from "./tabs.js";

"""#
        ),
        WebFile(
            path: "/home/home.css",
            contentType: "text/css; charset=utf-8",
            tag: "69fd40c40d028f8c0b09acf6cc64a15b",
            gzipBase64: "H4sIAAAAAAACA62U227bMAyG7/sUAooBzVBntnNoa9/sVWiLToTKkiHJTbKh7z5SthMnXW6GpUCRUBT5kfypwlkbxO8HQZ/aausSX++xxUJotdsHIcG9l/E0SQIeQyEeszpfr9LJ2PYBJVk3m226xclaQf1Oxqaiv3oydmBQszV+JqtWhrI9yjeJuJmMUNdoOFlabWqQ5cPnw88WpQLx1Dls0PnkmpY5F2MdxVDThRi3CE1azmhhBbKC8kKarbPXDMsZJZWZ51V5IVy9rfN1U87pXqB6pUrEJ/F9p4yVPSZe/VJmV9B3J9ElZOLzysoTObTgdsoUgmA48c7Z3hDPB7inAWVRDmOYbFwB2RrL+bJtd/yRLTfCn3zANunVs/BgfOLRqYjRgjIxzTE5KBn2hdimDtvyklhAH2wpOpAyYuZ0LDL+t46Onw/7jCJwQi6FCs+WL5t4xH1I9si6YGs+j5qK5Wa6n9/ez68Q8mXOrldXVjdXrpnZpZt1bzncL+d1rvMxFpDjVQuHaS2GIHwqle80nAqhTCyp0rZ+n7Uk8g5ZoWhs3fvkQ3lVaaR29y1RnG7NJMprE6WxfRiUs+qOwlut5C3Q6JHYpvFIPc27qJVlVOltGdEYqwgwJBgVRl4aOk+Jpm+lGJuSpem3eGP/LAJHZDklQKtNXfQBXJiXvYptHaY9/WKhTkIOwbYU86YaroCwPtAFVYOeogfbcebayqE944ApzRvFjSruVdJaY30HNfmcv8ZBxQtfVyQu52JiugszIjuQqve0A9zXS52jnC0hN9oekmMxLkVPe0S7pLEmTtCaSXq97GCHnnC08iTQcNLUamMNzmJSm86q2jklS7GD7pKKTbTKLTkE5IH1rSEuhx1CeOLkSaMC9UAZkvRTxqv4LLLGLRZXDFfqHWV7Xsg46y9V/kOn7rc9ykdibR0EZc3UhhmhD86a3V8w5z4U7r66JQZQ2p/1/Z/Qv7wdl07NZM8A44ozYe88I3ZWmYBufsi65h2fNHRwPG8wp8MeHQ5bjGFv5f33hoZ9frzGlzA+gYdxoC9pfIL+AH1MAoyiBwAA",
            text: #"""
:root {
    color-scheme: light dark;
    --text: #1c2430;
    --muted: #55606e;
    --back: #fbfbfc;
    --panel: #ffffff;
    --line: #d9dee5;
    --accent: #0b5cad;
}
@media (prefers-color-scheme: dark) {
    :root { --text: #e6eaf0; --muted: #a3adba; --back: #14181e; --panel: #1c222b; --line: #39424f; --accent: #7ab8ff; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--text); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 2rem 1rem 4rem; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0 0 .5rem; }
h2 { font-size: 1.2rem; margin: 2.25rem 0 .5rem; }
h3 { font-size: 1rem; margin: 0; }
p { margin: .5rem 0; max-width: 42rem; }
a { color: var(--accent); }
p a { display: inline-block; padding: .2rem 0; }
a:focus-visible, summary:focus-visible, pre:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
.muted { color: var(--muted); }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: start; padding: .35rem .75rem .35rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
code, pre { font: .9rem/1.5 ui-monospace, monospace; }
pre { background: var(--panel); border: 1px solid var(--line); border-radius: 6px; padding: .75rem; overflow-x: auto; user-select: all; }
ul.pages { list-style: none; padding: 0; display: grid; gap: .75rem; grid-template-columns: repeat(auto-fit, minmax(14rem, 1fr)); }
ul.pages a { display: block; height: 100%; padding: .75rem; border: 1px solid var(--line); border-radius: 6px; background: var(--panel); text-decoration: none; }
ul.pages strong { display: block; }
ul.pages span { color: var(--muted); }
details { border: 1px solid var(--line); border-radius: 6px; background: var(--panel); margin: .5rem 0; padding: .5rem .75rem; }
summary { cursor: pointer; }
summary code { overflow-wrap: anywhere; }
.method { display: inline-block; min-width: 4.5rem; font-weight: 700; }

"""#
        ),
        WebFile(
            path: "/home/icon.svg",
            contentType: "image/svg+xml",
            tag: "0b1909cccdeb3fe28732409fd11c0a23",
            gzipBase64: "H4sIAAAAAAACA1WPzQ6CMBCE7z7FZj1DfyVgKAdPXngIFUobUQg0LfHprUo0Jpvs5MtMZrecfQfLrb/PCo1z456QEEIaRDpMHeGUUhIdCN624TAsCilQyGQcrMqpvTgItnFGYQRgWtsZ99FT9LK4te17hVvW7PRZIqnK8eQMNAprJoHlRmSey6PgfcIoFD4pTJI/vjGt9V+GZ8CFZ7IW+SoiEdQwjjC7abi2v64VJOuB7/LXM9XmCRX0vr31AAAA",
            text: ##"""
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64"><rect width="64" height="64" rx="14" fill="#1d5fb4"/><path d="M14 18h36v24H32l-10 9v-9h-8z" fill="#fff"/><path d="M26 23v14M38 23v14M26 30h12" stroke="#1d5fb4" stroke-width="4"/></svg>

"""##
        ),
        WebFile(
            path: "/inbox.js",
            contentType: "text/javascript; charset=utf-8",
            tag: "b9a52f9df39986df0880f4fd92e288d8",
            gzipBase64: "H4sIAAAAAAACA61be28bNxL/35+CdYCe1MhruZfm7ixLqdukbYAmDRIf7oAgiGgtJe1ltVR2V1FUV9/95kFyyX3IziNAYFkkh8PhzG8eHJ+eit9UvlLF0empePXi8X9Pfk9mKivUydNYZWUyT1R+Li7XcrZUJ99Hw6Oj0+++OxLfictMJFlR5ptZmehMlFqUSyXKXM7eqfxvhdDbTOURzMTJP5a7tYrVXNzciFifi+NYpckHlR8PRKHen4tss7pW+UDAjvnuXMhsNxDXu1IVdkjsxV/CrF0lRaFiWDrP9apaW+pqMu4pqhXFLpstc50lfypYJuelyl9V2/q0gftMb1MVL3DmZn2lg4l78TS71h//2JTrTWnOdiKm5jTTc7GUWQyCSAo+ihWLXK8jM5e5h6n4faFyWCcyLVKdLeDTUhY4UChan6giEr8xSSIipFhIR8o7FtCTxTsx1zlNNYvFtVomliEQtF3onRIZUWnqc1MuZek2JIbkO5UJBWM7oJQtQC58sIrqqdOLn/UmK+H7JJspokKKIFJZAFGt3+F3K6E3ZVM39PX/1Kw0MmY6NGGd67XKy5244XvYi3izTpOZBAURT8xRiWuZ53ARsZALmWRRx2KQYCGewTXgUYB/s3YpYzzVtUJJAg2Q5UBoTxxGPLla67zETQqx0Jnq2gbmySSHec2tLJspnCDvWp9qkFhz7TaB28q0JVIJX1wBj6nMFwrWGYXVc6cKvFgmpVUKKZY6VSM3Yb7J4ZS5kEsFkpC5JwcjT9xppsHoxUp+vKRpY3E2/P7BqPb1T2i6OPYQjnb2dvjgn29/+MfDkeOyTFYK2ADKyrAhQJXcdt5GC8ATBZT+PhzWlpMVi+0ymS2BRq7eb/DcxKyjCFegQMSxR5Bv5QoogAoC4R+GPmWyQpgFBi13KD2ZCc9YViArwA9jj00Z+zyBoBcavyuFBlPwWPAIPqZ9kItRc5AsAAYfPmAGL6/1BzapzXqNqOH2h3lsoszHAAFlRcKF/+/UuozwdLu2SxVGuVO9dSQ9XtdyUyjeeCweDP/1cOTkWGxW6icF65wS1JUQlJbVbgZiBLua4YFgc/VRzsoUIH6VZJtCnIET0MYw4hi1/Qwvr5BzxaCzBbVUofYBKsO2z5ndZ5f/ffvq8pcnb58+v3ry65OXAHFnI7aJH3NVbvKsEDceqOwrUpk2eDUWvb4YT0TvxgOXczEcEFzQB2vQ9AtaJ3wQ+/7IQd+LDRBKcB+nESBgncfoQhV4UCCBfrRw6IqaAQqVlku9WSxBDKjYZNei3CY4hhCBKJShJCLxWM2SGAhsUVorucNtEbEqrQFlf4x6Byrw9PSPERlLQTe/luh5gKUBsrUCHEkKBWKIC9Z0UPgMLinVs3cWm18h7OBamFYmi42G60LVA6UAZi4z6+UYW9AbgBbC3cWAZmtkxU0JQIdwCAiDkqJJWbeFO64M4AEroMcaDCpjRxOrDyAQDiwEHKmQC6Cz1OAqczVTybrEjTdZjBYod6TxmR+ToOYXzkMiG4yd6iPiOZwbxMOu58osuDmCIEJYrQbYhxsESbEveF+MxPHw2MIYfjlPclCpVC8MVuJqWjUKCJErRNtgN8pwQYpuZGXcg6NB54MvmMzMKqzV3V6fB+4ZRB5W25FvFTfP5PrChkk3XqB0MOCa7J1vDS4PJ5Lbt+zdk2bjTG0FbOX4kb4vaHLFG71+syepeB4OrJ0CKVBWBGnEW3R4jHE7VQ6cWXEMKKb3DAL+Ar9NQXcq3iw0jsXrN6PgK5xb8XXPN6EOViFMzDZpuq8OXq25RKTG0buuZTSpLbuXFC8QcVGac5kWyn39C8wJv8QtgvDAi8rQkNlsCXErcZgvrjSf3BKinxi85YqCKumMhvEbrT/b4ADYs8zTBOOgDUZYtM4u/3Etc7kSN5AWAFd7Vv76oI1v6BLM4KnRbJNQ6LzH1jZGExsIe4XDvrFJ/IcHjew0z8zcmDUbGH4my2UE3qZHlAbGg/RrCwIdgFUBFZ67PwpMuSPM8oNnp7nuEhaqtB675x+IXZVhxUyIUpUtyiV4tOBr1N1Whhy2tAfxAQ+HObCG8yjc+XWDjzfobsX5LdL6z1JRdIksIfqj1jqZASnMDcRqA5e5UhC67EaNGAYGZAZgmSp3ikIh6KNp9DyDu9aAUjJDUzOjDbWpDIo/VIqQzEXPLrJTnUmCcqpWsXNEWhosh3xQxmmSqZfk7uMpuURYSpaOW2SYN/h3kamP5WOzKrgS5KehnIgaY8YN8ddfhs8KUMxQP9SocP2jR7Vlo7oWVDbTXD6oLe43pQJ3ynGO8VeY8dkT44Vb3+WdlUMy599oC/6tZqidLtBj31+4bwDdJegOQKfGuHQhs8i4IErwKrQzfm9Kug5+JSfPI8nREeIM7BQMZzAwAf0Hx/RFuMhcXHpQ1DUT3WvXGCx2Qy4GPsaM5I/sGJzRMZyBgh36JVdbEFd8vBdT+31YoTASlzDKCZD1AtaGlxJi1kzbPYVYp5i5JSZ6o6g4ElOzUUicMt2WssUUDzil7RYAKqROSW4iBS00AkoRBS6E05K4Z26nKcsBSQ0zpK2veh583EFIZjP8lyqTC62pDAYOyywPIYX91Dfjsee2/P0DU68mg/fr18g7lkbB4kPekA54KsDqV1bSKIRzrj84qa82lBAZC8TyhkXzqLlVm3PtlnbD31ZI3AzQWsfDaC2cUgtqmhMoEI1m4BXyXr9zQi1SJeAQCuItuhmKcS/Cw9dvMLwpqy8tG7I5RaT492uBBrhT3Gt0UOYdMwJR1ADcDfGl1ORAjtXon72Sb7895Pur0OTsjZgwzVrwstbrA/L+rAup+XGTefBR5cceq1t4SbdEeaGYTIDYVGWPDNiSzYw49SlKuWNEs6kol478VDXmpBytC2MFrL1UpSQ7CdyISufOEqMa55hWv6AsvnfoVJRUVKeBy2k5+COEQHG/WY069/IRc1rPORYK6wV8VGASUkHmeYRGkpTumANXj04ax/BSH+8WJzUltwyGFbs6d80YzY/vbHBkNXriFbQaEUNlvV1Rw5XnozjxBF80RV80LfXUlXUxO4UEbA4OWaEmTCmzntYLJuAWOR5kvbCVCX4raI0fIE3fM4Xu4OF9Z76lu0aIvbsEEmbIewPB7F2b1xDPDRtJ9IhXeuPB9xlTYiDnOzDL6rHuNz2Q5mRMOQzgD/6YiCFBkRYXY+tJbGw7qgWPqMuZ0wKGGYivwTX53oc8LZELVQ7UpccUYD/6EDE3pe63eWu+zG9cvO1ju/dEAQh/Nqo5ipD522Ct+hblWDsJyqhxlPvirDO+qMwFjlk/Q521iilQUnWJFyvTXmOzGl8+Ls0gebOa4CmBuf9wDRpBLzUJ0Uj08EfLdTbP2h+J+nl9wFmBwdPTRMvSUccqwzmyEBn26TOegT4cOsi+RRTt8B1cjWNs4mNjvwmcIQpSpdFGKrW5NfUMiBDA9nzpFsmfCqCX313OQ/DtuF/nP37HcLLnG3cjkurSSG/zi+p1CdSzd81BABxiWOW6Xnhwn/XJYEP1/NTvVgdfkQ00dSqBrzpFI4StRzQFQw1XWU111Sg8vRQcWGtOM+bZh5SJYDI05Ja7rUV/bgQS/6fZPMmScjcwCkCX3a+jUbv7M2GAzAos08bhI7TYJhAQUnAgs4Uybg6fVotRkODNdZrq7RelyYeSX53GEJx8VY/mHdNll4zHvNlBp9ae/dWR9nbod3caZFVhZPorvm4H1T8XeVKdDctp+It9xqaLaX0arMI2kxzwSRuBGmAoWmpDJW/qCehLu8K9lxpeMA8Kc0zzOsfo745dKW4URb7dvVO7otevGRjTmHPi2GC5bW4ZpE3muCfk3LxbIK5OGo7DBhW0Y7sfNaE0XgqF+Fz4hG8Wcl09gialebvmNgP1Ad/U5u46i1KvC/PsFHUnzNF6Uyx7DWRzkNsWEh8sedp/rOJMvq0jB+G0AXZE10aF6I2quQN8Tm13Gm4lIvbvuih6dtEd0SrsYPERKHws6UKiO4TVn4Um2Ajz7/WVZmfRgRyfnpJzOf6Coud+S/0kDEQr7+vPmdBjft1667WaUNUKiHRVk1b/k+o5+6Ovo6PtYe43QV5oxWg3uPD7GdrP3v4y19y0LZdtC0VazKirTS3Erv2BWKUW2QXRW1dIsT/65ICurZ5u3zywK4GrwdxvcJtpfZb91B5Yegd8b1t1xIbElTmF4xdjrg8zalVDz/W21wCplpD7wOPMhCm3+/7O+L6mXm2Ja937tu+AQPqrDKpyX0UR766ATd155UpK8UbV261c/1SHGt2hFtF6f40Xwe63/OACDF6MW0pqXTJve1UmMgfvoKMTtYXkvtMqTW+TC7cKjrTEzzJNsbnCtGgm1NSI7zUkcXSYtgXlFuNFd3xrvYmvoenCGy9/tnhDIZsTcVXSfuQlNXpQH+5DTEYr79Nz9LBeGpL03gtOv5rW+qwYUX8ouEpccMJMtU+05XtZK5c++bimxk8r91jbiBuMwcZ7UStJ1zR64gWixMKgdV7n1d+9ZPiJdcHbDe7Wkk/d9rx3jVLX3s2oOjXurE7dFvJ+WSjRYpa1xvXOLN97Cm8JJr0uoLC80ISlqjZw0l7WfMR1KEzsh6O21RHwrErllS8Mc0FBytuZinBsNK8pQC3WMnvDrW+Oap9rjzAStZRS+wfLJ55wLERVzeW2Nm47AdGTSG5pQrNxonOurIEj12qRZI0c2rLWBI5DfpZoNfUOS5TYlRqGsJ8huIndgagBmNiBk4p9VBjKQnnqYdTy2D8xkjjxCwe5GrTMabhy/yGxmn6Lo7EPIEEzFPbVX2NfqL1Qelhm+PqK/iWo6rX5GJR6h2fpt2Pw/fGdHc5tMPxF0e7hkLwt3v2kKKW26qQtxpiMG53pdwyPqezb3oE07niCtMLcV3/XEDba7UQmV9XffOBb5ErhhKDVn8pjlK1ye7pt00Z6CTc9l7ZlzjzAFvQii3hfb+VbaIibLqm/XwZ9K9j5QyoxCNq3ubme2pFxT+pVoc6VoD27pQMZWbavyzf1XtJXqrzg6ugE/0yG/74GG2HpwZmV30NIFNKo6YiewinkdaoqUizOK+qm5qdrr8vTlji5vzlq69bk9djC0fRgdgybpoB/ntsZtzzXpWkzxXs+XCF2PbVIstnt5PoAbe8hF9aAj5HbgCrW1GRMRCCU28pdAdPCtqIkgytn1hsPlrQOEjD8aXsiJuLhg6r9rqM8QYKIINpmum5+rbzgT5ZxzJO76dEbysQqf73yYJwTX+gbh+1GU1qeSoimCSB4Vb+tZNM4avNmX5p7cTZHtGvKdYs/IEMLbgYp9WaMR41G1teuTEx7vTGFqhOeX8HM/wGutxfTBTkAAA==",
            text: #"""
// Hermes
// SPDX-License-Identifier: Apache-2.0

/**
 * An instruction to the tracker's owner.
 *
 * @typedef {{ do: "deliver", seq: number, entry: any, bytes: number } | { do: "missed", from: number, to: number }
 *   | { do: "synchronize", afterSeq: number } | { do: "acknowledge", upToSeq: number }} InboxOutput
 *
 * - `deliver`: hand this entry to the app.
 * - `missed`: the server no longer has these entries. Hand the app a gap.
 * - `synchronize`: ask for the entries behind this seq.
 * - `acknowledge`: tell the server that the app has taken everything up to this seq.
 */

/**
 * Counts since the owner last took them out.
 *
 * @typedef {object} InboxCounts
 * @property {number} duplicates Entries that arrived again.
 * @property {number} gaps Missing seqs that had to be asked for, or that the server reported as gone.
 * @property {number} repaired Missing seqs that arrived later.
 * @property {number} lost Missing seqs that will not arrive.
 */

/** The largest number of entries that wait behind a hole; entries further ahead are asked for again. */
const maxAhead = 1024;
const maxAheadBytes = 16 * 1_048_576;
/** The time before a hole is asked for. */
const grace = 300;
/** The time after which a request for a hole is repeated. */
const repairTimeout = 5000;
/** The longest delay of an acknowledgement, and the number of entries after which it goes at once. */
const acknowledgeDelay = 50;
const acknowledgeCount = 64;
/** Above the upper number of untaken entries, no more are kept. They are asked for again at the lower number. */
const pauseAbove = 4096;
const resumeBelow = 1024;
/** The largest seq that can be counted exactly, minus 1, so that adding 1 is safe everywhere. */
const maxSeq = Number.MAX_SAFE_INTEGER - 1;

/** @returns {InboxCounts} */
const noCounts = () => ({ duplicates: 0, gaps: 0, repaired: 0, lost: 0 });

/**
 * Puts inbox entries in order: each reaches the app once, although some arrive twice, late or never. Decides what may
 * be acknowledged. Does no I/O; times are passed in, in milliseconds of any one clock.
 *
 * Seqs are contiguous per user. An entry that was seen is dropped. An entry behind a hole waits a moment for the
 * missing ones, often this device's own message whose receipt is under way. Then the tracker asks for the hole.
 */
export class InboxTracker {
    /** The epoch of the seqs; "0" before the first login. */
    epoch;
    /** The last seq up to which every entry arrived. */
    received;
    counts = noCounts();
    #head = 0;
    /** @type {Map<number, { to: number, entry: any, bytes: number }>} Entries behind a hole, by seq. */
    #ahead = new Map();
    #aheadBytes = 0;
    /** @type {number[]} The seqs that were handed out and not taken yet, in order, from `#untakenFrom` on. */
    #untaken = [];
    #untakenFrom = 0;
    #acknowledged;
    /** @type {number | null} */
    #acknowledgeAt = null;
    /** @type {number | null} */
    #repairAt = null;
    #isPaused = false;
    #isFull = false;
    /** Missing seqs up to this one are counted. */
    #countedTo = 0;

    /**
     * Creates a tracker that continues an earlier run.
     *
     * @param {string} epoch
     * @param {number} taken
     */
    constructor(epoch = "0", taken = 0) {
        this.epoch = epoch;
        this.received = Math.min(taken, maxSeq);
        this.#acknowledged = this.received;
    }

    /** The number of entries that the app has not taken. */
    get untaken() {
        return this.#untaken.length - this.#untakenFrom;
    }

    /** The last seq that the app has taken. */
    get taken() {
        return this.untaken ? this.#untaken[this.#untakenFrom] - 1 : this.received;
    }

    /** Whether the waiting entries take too much memory; no more are kept meanwhile. */
    set isFull(/** @type {boolean} */ isFull) {
        this.#isFull = isFull;
        if (isFull) this.#isPaused = true;
    }

    /** The time at which `deadlineReached` is due; null if none. */
    get nextDeadline() {
        if (this.#acknowledgeAt === null || this.#repairAt === null) return this.#acknowledgeAt ?? this.#repairAt;
        return Math.min(this.#acknowledgeAt, this.#repairAt);
    }

    /** Takes the counts out. */
    takeCounts() {
        const counts = this.counts;
        this.counts = noCounts();
        return counts;
    }

    /**
     * A session began. The server continues behind `taken` or, in a new epoch, behind its own record.
     *
     * @param {string} epoch
     * @param {number} serverAcknowledged
     * @param {number} head
     * @param {number} now
     * @returns {"goesOn" | "newInbox" | "rewound"} `newInbox`: the server counts anew, and earlier entries have no
     *   place in this inbox. `rewound`: the server lost the entries behind `head` and gives their seqs to others.
     */
    resumed(epoch, serverAcknowledged, head, now) {
        /** @type {"goesOn" | "newInbox" | "rewound"} */
        let resumption = "goesOn";
        if (epoch !== this.epoch) {
            if (this.epoch !== "0") resumption = "newInbox";
            this.epoch = epoch;
            // At most the head: later entries must not count as received.
            this.received = Math.min(serverAcknowledged, head, maxSeq);
            this.#untaken = [];
            this.#untakenFrom = 0;
            this.#countedTo = 0;
            this.#ahead.clear();
            this.#aheadBytes = 0;
        } else if (head < this.received) {
            resumption = "rewound";
            this.counts.lost += this.received - head;
            this.received = head;
            this.#countedTo = Math.min(this.#countedTo, head);
            while (this.untaken && this.#untaken[this.#untaken.length - 1] > head) this.#untaken.pop();
            this.#ahead.clear();
            this.#aheadBytes = 0;
        }
        this.#head = Math.max(head, this.received);
        this.#acknowledged = Math.min(this.taken, serverAcknowledged);
        // Entries ahead stay: the receipt of an own message does not come again, and the message itself must not.
        this.#dropPassed();
        this.#acknowledgeAt = this.taken > this.#acknowledged ? now + acknowledgeDelay : null;
        // The server sends the rest by itself; if it does not, ask for it.
        this.#repairAt = this.#head > this.received ? now + repairTimeout : null;
        this.#isPaused = this.#isFull || this.untaken > pauseAbove;
        return resumption;
    }

    /**
     * The entries from `seq` to `to` arrived in one frame of `bytes`. An entry that is null is not for the app.
     *
     * @param {any} entry
     * @param {number} seq
     * @param {number} to
     * @param {number} bytes
     * @param {number} now
     * @param {InboxOutput[]} output
     */
    arrived(entry, seq, to, bytes, now, output) {
        if (!(to >= seq && seq > 0 && to <= maxSeq)) return;
        const known = this.#ahead.get(seq);
        if (to <= this.received || (known && known.to >= to)) {
            if (entry !== null) this.counts.duplicates += 1;
            return;
        }
        this.#head = Math.max(this.#head, to);
        if (seq <= this.received + 1) {
            if (this.#isPaused && entry !== null) return;
            this.#noteArrival(this.received + 1, to);
            this.#accept(entry, to, bytes, output);
            for (let next; (next = this.#ahead.get(this.received + 1)); ) {
                this.#removeAhead(this.received + 1);
                this.#accept(next.entry, next.to, next.bytes, output);
            }
            this.#dropPassed();
            if (this.received >= this.#head) this.#repairAt = null;
            else if (this.#repairAt !== null) this.#repairAt = now + (this.#ahead.size ? grace : repairTimeout);
            this.#acknowledgeLater(now, output);
        } else {
            if (this.#ahead.size < maxAhead && (bytes === 0 || this.#aheadBytes + bytes <= maxAheadBytes)) {
                this.#noteArrival(seq, to);
                this.#removeAhead(seq);
                this.#ahead.set(seq, { to, entry, bytes });
                this.#aheadBytes += bytes;
            }
            if (!this.#isPaused) this.#repairAt = Math.min(this.#repairAt ?? Infinity, now + grace);
        }
    }

    /**
     * The server answered `synchronize` with the range that it has; the entries follow.
     *
     * @param {string} epoch
     * @param {number} head
     * @param {number} oldest
     * @param {number} now
     * @param {InboxOutput[]} output
     */
    synchronized(epoch, head, oldest, now, output) {
        if (epoch !== this.epoch) return;
        this.#head = Math.max(this.#head, Math.min(head, maxSeq));
        // Gaps that the app does not take are not reported; they are asked for again.
        while (oldest > this.received + 1 && !this.#isPaused) {
            // Received entries are not lost.
            const next = Math.min(Infinity, ...this.#ahead.keys());
            const from = this.received + 1;
            const to = Math.min(oldest - 1, this.#head, next - 1);
            if (to < from) return;
            // The app must take the gap, so that it is reported even if the app stops before.
            this.#untaken.push(to);
            if (this.untaken > pauseAbove) this.#isPaused = true;
            output.push({ do: "missed", from, to });
            this.arrived(null, from, to, 0, now, output);
            this.noteLoss(from, to);
        }
    }

    /**
     * The app has taken the entries up to this one.
     *
     * @param {number} seq
     * @param {number} now
     * @param {InboxOutput[]} output
     */
    tookUpTo(seq, now, output) {
        while (this.untaken && this.#untaken[this.#untakenFrom] <= seq) this.#untakenFrom += 1;
        if (this.#untakenFrom > 1024) {
            this.#untaken = this.#untaken.slice(this.#untakenFrom);
            this.#untakenFrom = 0;
        }
        if (this.untaken > pauseAbove) this.#isPaused = true;
        if (this.#isPaused && !this.#isFull && this.untaken < resumeBelow) {
            this.#isPaused = false;
            if (this.#head > this.received) {
                output.push({ do: "synchronize", afterSeq: this.received });
                this.#repairAt = now + repairTimeout;
            }
        }
        this.#acknowledgeLater(now, output);
    }

    /**
     * A deadline may have passed.
     *
     * @param {number} now
     * @param {InboxOutput[]} output
     */
    deadlineReached(now, output) {
        if (this.#acknowledgeAt !== null && this.#acknowledgeAt <= now) this.acknowledgeNow(output);
        if (this.#repairAt === null || this.#repairAt > now) return;
        this.#repairAt = null;
        if (this.#head <= this.received || this.#isPaused) return;
        this.#noteGap();
        output.push({ do: "synchronize", afterSeq: this.received });
        this.#repairAt = now + repairTimeout;
    }

    /**
     * Sends the due acknowledgement at once.
     *
     * @param {InboxOutput[]} output
     */
    acknowledgeNow(output) {
        this.#acknowledgeAt = null;
        if (this.taken <= this.#acknowledged) return;
        this.#acknowledged = this.taken;
        output.push({ do: "acknowledge", upToSeq: this.#acknowledged });
    }

    /**
     * Counts entries as lost. Called once their replacement has arrived.
     *
     * @param {number} from
     * @param {number} to
     */
    noteLoss(from, to) {
        const known = from <= this.#countedTo ? Math.min(to, this.#countedTo) - from + 1 : 0;
        const all = to - from + 1;
        this.counts.gaps += all - known;
        this.counts.lost += all;
        // Expired entries do not repair the gap.
        this.counts.repaired -= Math.min(known, this.counts.repaired);
    }

    /**
     * @param {any} entry
     * @param {number} to
     * @param {number} bytes
     * @param {InboxOutput[]} output
     */
    #accept(entry, to, bytes, output) {
        this.received = to;
        if (entry === null) return;
        this.#untaken.push(to);
        if (this.untaken > pauseAbove) this.#isPaused = true;
        output.push({ do: "deliver", seq: to, entry, bytes });
    }

    /** @param {number} seq */
    #removeAhead(seq) {
        this.#aheadBytes -= this.#ahead.get(seq)?.bytes ?? 0;
        this.#ahead.delete(seq);
    }

    #dropPassed() {
        for (const [seq, span] of this.#ahead) if (span.to <= this.received) this.#removeAhead(seq);
    }

    /** Counts everything that is missing now as one gap. */
    #noteGap() {
        const begin = Math.max(this.received, this.#countedTo);
        if (this.#head <= begin) return;
        let here = 0;
        for (const [seq, span] of this.#ahead) if (span.to > begin) here += span.to - Math.max(seq - 1, begin);
        this.counts.gaps += this.#head - begin - Math.min(here, this.#head - begin);
        this.#countedTo = this.#head;
    }

    /**
     * Counts arrived entries that had been missing as repaired.
     *
     * @param {number} from
     * @param {number} to
     */
    #noteArrival(from, to) {
        if (from <= this.#countedTo) this.counts.repaired += Math.min(to, this.#countedTo) - from + 1;
    }

    /**
     * @param {number} now
     * @param {InboxOutput[]} output
     */
    #acknowledgeLater(now, output) {
        if (this.taken <= this.#acknowledged) return;
        if (this.taken - this.#acknowledged >= acknowledgeCount) this.acknowledgeNow(output);
        else this.#acknowledgeAt ??= now + acknowledgeDelay;
    }
}

/** The number of entry names that are remembered. */
const maxSeen = 1024;

/**
 * The ids of the last messages and pushes that the app got. After a server lost its count, some arrive again under
 * other seqs. Does no I/O.
 */
export class SeenEntries {
    /** @type {Set<string>} In the order of arrival. */
    #names;

    /** @param {Iterable<string>} names Those of an earlier run, oldest first. */
    constructor(names = []) {
        this.#names = new Set(names);
    }

    /**
     * Notes an entry.
     *
     * @param {string | null} name
     * @returns {boolean} Whether it is new; an entry without a name always is.
     */
    insert(name) {
        if (!name || name.length > 64) return true;
        if (this.#names.has(name)) return false;
        this.#names.add(name);
        if (this.#names.size > maxSeen) {
            const [oldest] = this.#names;
            this.#names.delete(oldest);
        }
        return true;
    }

    /**
     * Returns the last names, oldest first.
     *
     * @param {number} count
     */
    last(count) {
        return [...this.#names].slice(-count);
    }
}

"""#
        ),
        WebFile(
            path: "/notifications.js",
            contentType: "text/javascript; charset=utf-8",
            tag: "c27492984a05fb1e8120636bfb98dc30",
            gzipBase64: "H4sIAAAAAAACA4VW224bNxB911dM9NDuGjJV9HENVXHRAk2ROAGcIAWKAqJ2ZyXCK3JLcq0I8v57Z0hKWskqogdZvMztzDlDT6fwB9oNutF0Co+ffvvr9r0qUTu8fVeh9qpWaAu4b2W5xtufxU+j0fTmZgQ38HUtPUhwaJ/JALbGPqEFtzZbB7WxdNR2bg2mBr/GcI2Os8qUbsoHYlPlBSz24JVvcAJLU+3oW1YrWni5msA6pDWBSnoJ/UJw0Pvo1HPsUmptPCwRLMoKnFdNk+I7s0G/Vpq8LLGUnUNYWjpA6+jyv52yCMqzR3b6tpVWbmDvvCUTeIFOV1grjVUPHr95+EwFcNwfXUhGvDbqoZZNs5TlU7gcaoKt8mvTMUicoFzSltEYrS36zmoH+wRAAdHRBEzrldGugAfD6JeSlx/jJvwAe3Km+WQ3Lwg006DU0CfkCtDdZkk4v9APQqPvKdh0hN9aYz3UnS7ZDeih5zrjGifHAnLYj4A+1GZ463ctwl7qXc9+eLtBH3swg31/F7a83SUb/qTDPx8/PgjCyGHwD/M5jMc5/zmY9dRBX64HpsxA6p8+IkekqpyIt8N3SSDEbQqRDVLs9JMmS04TnmXTYQ6zXyDjQ2Jg2IHZbAbjCPMY5mmz4LTuBs6Je+SbQ2SBp7Q+Ow90pOITP4tQsBiSNW1F3g5NU2uDNfO9GIThdZ6Yf+hwEZJ5w2mPDzqI/iJ94EieQbq8kcPLy7GhR0odSfIQSCKUe6c9rtCmDPiQOgSnFRSJR3ej/ij8D/IJ3XXlD6ROWmE/6ASLVpKvINq1dOFSbcrOJbUq74DAc3QpLLCp2ahsFMlpye1yHJfNZNuCN9GDNZq0pStojSMPPEqo29TP2AsxZPn41ThhN69HQGB6KuhzquVUI9W04OwWZxNgH8qbnxQcWnBckwiPjV/wzQUoRztI8wWWOwIyFrqlBJGkGcFKV8RV/TJsw+ngspjfBGIuRLCxmI5TJryKI35MmmPZHiQeWdkG3ElOQTLRk6CcaPo7sWGJ3jdNdkR3q3RltuRc6bLpKvyiyY23pmmwIsJa0lR/JphAjBlIt9PlmWavzVuSL4+LkMppMERHw4aSw6tTLNL/7sJSuUdEtsnkVqpUcpbngh+KLHs96sKNkAT/EIGtWA38qhqyYQJJL6xVVkwOMVBCU8tntZLeWOHQ37ftr3x5Lq54yEUYillsxr6/CPkmVnLh3uJKEZjRzSU5zoOk1/ZsL7EzhbqYWAG217074MRqutqsv2tlnf+HjYeQX3bGS7uiF2UG4To/D9lZaQceciJfA/Oy0JqBo3g/2M9jp4ZhYoC54CHxIQ6Z7DuTQog0u88RSRnJqvr9mXJ6T5CThm025jlHZtfgQb4Z8Am/BKf6hf6rajJuUxY3OdhcMH+JkofK/jfaMNkwOb4b+tSaGO+s+WVj6IkeAHaZKCOfXTEMnT8glPMD8R/LApMxSwoAAA==",
            text: #"""
// Hermes
// SPDX-License-Identifier: Apache-2.0

/**
 * What a service worker shows for a push of the server (docs/push.md): `{ title, body, badge, tag, hermes, data }`.
 * A push that cannot be read still shows something, because browsers require it.
 *
 * @param {string | undefined} text The push's data.
 * @param {string} fallback The title without a readable one.
 * @returns {{ title: string, options: NotificationOptions & { renotify?: boolean }, badge: number | null }}
 */
export function notificationOf(text, fallback) {
    /** @type {any} */
    let push = {};
    try {
        push = JSON.parse(text ?? "") ?? {};
    } catch {
        // Shown without words.
    }
    const word = (/** @type {unknown} */ value) => (typeof value === "string" ? value : "");
    const tag = word(push.tag);
    const data = { hermes: push.hermes, data: push.data };
    const options = { body: word(push.body), tag, renotify: tag !== "", data };
    return { title: word(push.title) || fallback, options, badge: Number.isInteger(push.badge) ? push.badge : null };
}

/**
 * Makes a service worker show the server's pushes. A page that has the focus shows its messages itself. A click brings
 * the app to the front and posts `{ type: "hermes.notification", hermes, data }` to it.
 *
 * @param {any} worker The service worker's `self`.
 * @param {{ page?: string, title?: string }} options `page` is opened by a click where no page is open.
 */
export function showNotifications(worker, { page = "./", title = "Hermes" } = {}) {
    const pages = () => worker.clients.matchAll({ type: "window", includeUncontrolled: true });
    const show = async (/** @type {string | undefined} */ text) => {
        const notification = notificationOf(text, title);
        const isSeen = (await pages()).some((/** @type {any} */ page) => page.focused);
        if (notification.badge !== null) await worker.navigator.setAppBadge?.(notification.badge).catch(() => {});
        if (!isSeen) await worker.registration.showNotification(notification.title, notification.options);
    };
    const open = async (/** @type {any} */ data) => {
        const [first] = await pages();
        const target = first ?? (await worker.clients.openWindow(page));
        await first?.focus();
        target?.postMessage({ type: "hermes.notification", ...data });
    };
    worker.addEventListener("push", (/** @type {any} */ event) => event.waitUntil(show(event.data?.text())));
    worker.addEventListener("notificationclick", (/** @type {any} */ event) => {
        event.notification.close();
        event.waitUntil(open(event.notification.data));
    });
}

"""#
        ),
        WebFile(
            path: "/outbox-queue.js",
            contentType: "text/javascript; charset=utf-8",
            tag: "a2b2bf84cf31b154007ad70296931e99",
            gzipBase64: "H4sIAAAAAAACA7Uaa3PbxvG7fsVZycRAQkJSHk5DmlKcOJ2qTew0died0ajmkTiKiECAwR1NMzL+e3f3HrgDQMrqpPogkri73b19P3Bywv4mqpWQRycn7NXPz/89/DGbi0KK4WUqCpUtMlGN2LM1ny/F8PPk9OgoW63LSrE79kNVldX3ZSoGBgQ9YDVbVOWKHScnAn/L5Dd5PD46Ovn00yP2KXvGYKPkN4KpkklRpAPGJcsUyySTqqxEmsA23Pmt2q1FKhbsrpz9JuaqZi83ala+u1RiRevrqlyLSu3YXbFZzURVM/3JXi+F/ZoVTMGvskrhR7mgH3y9fizZnOe5TPYA2mQpQeHzebkpFBzjiqhFUtuHeLGraZGOTJfEi+TtWfIKnk3xen9/9fLFPlS/b8RGpM8U+3UpCksfggOWqAGb7ehZKt6CWJDsvJzfDvBeqyzPMynmJVIls2Iu2Nk3X5+28dyxOYhoZBgysOwfAberrLgBcb2HtTwHsfEs31SCbiFF9VZUgK8Si43k+Zj2sGyBolrClYpS6TUtsBMn4H1i+zFbZUruYcKKv/uhAHqE9IUH8jLUygFRJ1JWFrAHLptvUo15D7jvdsoAm9G3ANY9IoHjKDrkTkgN8Bq4IrnKykKybaaWjDt93hSoY1u+C/mBEADFTQXbEIY7MDJ6jn+o+YhueG70Ab9JQwN8jW7g3iPSitieCf7+03x9D/sBmQrh0V+EUivKbT+Mx8NhJVS1Gw7h67llePsvKgTwIO4Y6bG5wzHo07FGSl/NLei7IYu+a/DHNfsZ1Enco0KoHLuWtBpvUINSdnwCga3Z2kDvtXLwbzkJCI3XeAekcZ9iGGMAvRLoBHm1ax6BRXJWldt9Z0kN3TX1HdndL4KnZZHvnvpGcl7jNvGO/CzonATfo3iR8ir1t7EJe0n8SRaVEH+I6M6zoxE7Oz09HThTGLEvga6zN6df/uXNV18/GXhKDlufsDrWPprYseUIni8UKLTqXhUVv9wouK/KVsIwLgML2RYJUq5J1kAm7EoT8jn9/4r+n52+oc8vzOcT+rwem5N5WYCZql8BAJz/4s2TU1pvgsgLDjYE6H17ZAuIPfNyteZVJgHMiB2jF//6GJw/O76pys2afXPsggts4yvju30wRx7rF5tiTqD9Df8Qu8j/HbO7I7QLMJ1NFW69SAjtZcou2FRT8PGdv8Gu11M2YlMkN1y/SPDZxQU7rafjozrwKcheNHHPq4ESb5fZfGkksgIZ79hM6GBSiHcqgfAb8EyHNPAtzotxK9YBk6WOe5zlHDQBEdtd5ANYCf8UvyVRWHIAVsKelwIjBLs8eTkmYLADAsuaSwgXYCmJz+V5Do9NkPgn+g3DUM9KfuLrpzZ+kSsAC/lu50JaO8gbl0O6iJA+Eia2TIDwLQNoEWh7Dw4dEgcGsDZDAqAf9AD4CIhXL3SAmLBT81CHHPfbw2JiiQ25fo6xXZbSyUH6smuCb4GigkwpL29uNCcdiXhpIgL3WuLIT4DdGCroE8T4fSW4IrGRo9ZiBsUACW7wccEEr3LI/Fi1KR5jlkTn7HFrPL4zqlluAnzfHvTSV9faT9stmm6y+Gozh+ARaQgDvQs9x7U1LvxTy0wm5kqwaO9ml9H8I+0/8DzqwVWSJATrOpGgaVHEIZ+K2eSc8cQIYshm5mvs48I/YHf0SCM14k8glkQIMEFmJ3PgUKEuUzipt2WQNgMa3KEvkdiU6sLFOzB0Gx3jhvj6SP936vIM5G209n79vhFgpHke+Tcw7ghZoIkz0JK3PAcZR/H1uIXTSg7yUMBWeZkNJToIhekrM3BK2rsDz+Gpn/n0Koq2q5pZjgUagEx1rOzeoCsBt7l9g734LCrkwe5+ZJZVwNcoRI9PmuPgmIdnXSrQqCkwcmX8MXcJmWXpfuvGnTIQLXru55An5FkhAhmjhmr6rPFPtPnH9j6NL3C2RuDAfn7iapmssiKyGgIalKzAs0XEJTIT/TWhHIqANxnchWZmonOoEbssFlmRqV0ce2ptqSCMcNxugtN05xEt7VPE100tlMpGHQeGqaB4UEIiE23Z2Kt7rjprL3i13r6lFLykW9OXkVhR0dVHOhSBecoXYjtis7LMBbjOWrt18S7TIqfNpnJCmrG6gvzFXidxCNQS0keA7xXTNZuW5ED/CuyajtnUKN/z78tikWdzNUXADiTYJZojBlmy2ZIMGR07HEoCq+Mp1E+RLsCBAwO6q69cWlnKPAVdIf3QxhN6vnGgi7C5z4nCY3LDlMw8AjXAz/fvdQmmTTVb7JptiCKmja0dtNDGoEMDcI5Cs8e7yPUnkjbXBmz68V1wkxoZxwvNMCOZx56/m3pXbRx2S8+dYsBVnFosIGMWrG77+obFFK0mcFhr3cgGuiax+IydGSFpedmWwYiENrCF+0gbVd02eL8saAoCKPwnQUwd9/gV6wll9odg5xO/TgcB6j062flMFzgvFxT+YnbuELUFpolS2guBHLqY6iYLgmhndxB8U0exRQY3paBI5jENpXOfPjQ2NSBC4j7ptIXaE+NdzRs7cUMu46Td79JsCMikDezkwPb5r7C3FdiwdnyRyV86tqsdz6QnqJkTocRp+4Xv7N3tWBAHXAKz/5ZoTCat9bPVEcOkoS/Fve/2jZO2V+eVgrvD826O6FJhWO2LzhWmNKA/gBuKFGBWIXSdNxOQRQqSCcUsINxLsZc8R5QH8DXhtsuUX0z4UEsvyafEO6jSyi3le5Tr6ZJuxatbqes5LmEjxpQPYRmA6sYuClmQiQfMxLtG2BZ6UG5xdd12NLON3JkS6RVoWbwn8/AP5kK5Pperl1rpvNZjqmn7Etm40d5AeU3fKXbwP5uws/8NQTemWZjnoQ9Nmq5KzGZQZd2OO0c1pUFADBgNjrVzGVM8xK5IG/e41KCyn3SaFh5eCn2qjPugZPL5Bo28Q4Pr6b0/lBd+8kmQGD6dUL+xywWNBnY/Qq3Reb3fVekL8y0vZCU87mykXsd6I5cml+3u6NeJbmQn4iBXCok7EC4OJbS/iFX5VniprLb/LZg1GjTkYJmcc7B8iPHUzNpA9oUt23uT3ANBoiKkf1qUeGSqA3NdLP0gpxfpuOUTLaBUgImLLqywrjK72irak2f6OcfQain97JQdtPYhkXhr5hnkgWdiziGDtu3gJjpg8DJlL/oOFySw4/VwsWSQk1fVZq3+5AD+8Fhthz12nONHqAddzK0GBQwNAR8eo9j7RrdqdglM1zdSIscOtOlRmJIK+JIyfsOpsxjoPt0oso1ComXAWqHu/2QHJBJEmGTSzQv6k+Fyiw6bdOvK1eVajrbpPtDLSS6KG6jshuwsvg4dV7i/x7O1FMO67L5N2nmT74bMviGJrkNDomc0HLi4QNoHfsfed45MYO1z14Mg6I5h8aOHlBrBnGbKblCpH1pjrQ9eygTKAw76Xq+ALQe8Ykae2kzB7rGHPQ2uw0r9L/tV936Y3MyXzifhjFXjbqs0aXtvE6tHkVsdrwMZ/6Mgz9iv1r3yC/tMhzxQj6YGed+HSKnbW7YTwHA9HAF6TAyrOFrfz8c75m0b6KHhiJ0O3DyMfsz0kC0sgut9UVEKjTxxnqmVp4Th0W0PoqLpMe8JrcFgQlswfxe11w7DMKX9A8Js3QwRm7E5pCACvzd2JBN26V7GMNMkyJbp9Qosi0GsA+yi4PmCpkdV9lbQmyIL16bR70SApaQ4mqLgjVWSN4LU2TjWHGfB/JAeuiJMD17sjCjTXWBbvz425Dhim5cf8JWYFC5SNLlAtTEVvY6okNZkmDUiTnjcYNGVHTzasdVGUoJ3W2AU4FJjd+970EzVm6f1jM7wNj/Zy9x90FxLR/3fJb5e4npcHzBIwzPjbr8dTLDis1w8vQoxXZ/XGs1rYjG+/RCMlpK+KRAd6B/+mCU7g8OfDx8CfNC8AUEfHjb0JFDzcgVFoMJcpN2sXlrBAmDL5kbDUPKkZQ+OL618CqDvW1rnfK7f7UHrJzqo+vD1Goe5RdLX8b4Va+Va3FCoVOV6LVL7EtHVNXa97eBIhU2uxvr9ETVoMyUNFU6GwxCHlhw1Tg4oHWjqfWl5Gm5pcOPaxocbOltNB6/0v0K1J3dy3TQASK9065ouBEWswW/g6doySzsdDmQTIEPmnhuOY4l7WKdsOMbDsa9/UrT4EI97+zO/mwbt0NFnssRz6wH7084r9LBSXSN73JyQwN2KHY4Ik0WWg2lHeFWcBz2y8M0LWBIXWtV1wCKNoLde9ue19PKNORhwwNSFAaddXxb55VSx6bmCidoAjolkZRzGa/DPP+gnkX3XZV8igYrkXv4IQ3rwsofBkOjPqDWuoAOxkQW+vvFfbfsUG2wpAAA=",
            text: #"""
// Hermes
// SPDX-License-Identifier: Apache-2.0

import { ErrorCode, HermesError } from "./errors.js";

/**
 * A message to send, as it is stored.
 *
 * @typedef {object} OutboxItem
 * @property {number} number The number in the order of the app's calls.
 * @property {number} uid The account that sends it.
 * @property {any} send The `hermes.v1.Send` as JSON.
 * @property {number} queuedAt When the app sent it, by the device's clock, in milliseconds since 1970.
 * @property {{ code: number, message: string } | null} failure The server's refusal; null if it has not refused.
 */

/**
 * @typedef {object} OutboxLimits
 * @property {number} maxEntries The number of messages, failed ones included.
 * @property {number} maxBytes The bytes of messages, as JSON.
 * @property {number} maxSending The number of conversations with a message under way.
 */

/**
 * The progress of a message:
 *
 *     storing -> queued -> sending -> (gone: sent)
 *                  ^          |-> resting -> queued      (not now)
 *                  '--retry-- '-> failed                 (never)
 *
 * @typedef {"storing" | "queued" | "sending" | "resting" | "failed"} Phase
 */

/**
 * @typedef {object} Entry
 * @property {OutboxItem} item
 * @property {Phase} phase
 * @property {number} until The end of the rest.
 * @property {number} refusals Temporary refusals in a row.
 * @property {number} bytes
 */

/** @type {Readonly<OutboxLimits>} */
export const standardOutboxLimits = Object.freeze({ maxEntries: 1000, maxBytes: 4 * 1_048_576, maxSending: 16 });

/** The waits after temporary refusals without a time of their own. */
const waits = [1000, 2000, 5000, 10_000, 30_000, 60_000];
const longestWait = 3_600_000;

/**
 * Names a conversation for comparisons: "uid 7" or "group 9".
 *
 * @param {any} conversation
 */
export function conversationKey(conversation) {
    return conversation?.groupId ? `group ${conversation.groupId}` : `uid ${conversation?.uid ?? 0}`;
}

/**
 * The waiting messages, and which of them may be sent next. A conversation sends one message at a time, so that a later
 * message never overtakes a waiting one. Does no I/O; times are passed in.
 */
export class OutboxQueue {
    /** @type {Map<number, Entry>} By number, in the order of sending. */
    #entries = new Map();
    /** @type {Map<string, number>} */
    #numbers = new Map();
    #lastNumber = 0;
    #bytes = 0;
    /** @type {number | null} The account whose messages may be sent; null if none is logged in. */
    #sender = null;
    #limits;

    /**
     * Creates a queue that continues an earlier run's.
     *
     * @param {OutboxLimits} limits
     * @param {OutboxItem[]} items
     */
    constructor(limits, items = []) {
        this.#limits = limits;
        for (const item of [...items].sort((a, b) => a.number - b.number)) {
            if (!this.#numbers.has(item.send.clientId)) this.#insert(item, item.failure ? "failed" : "queued");
        }
    }

    /** All entries, in the order of sending. */
    get all() {
        return [...this.#entries.values()];
    }

    /**
     * Whether a message with this client id waits or is under way.
     *
     * @param {string} clientId
     */
    has(clientId) {
        return this.#numbers.has(clientId);
    }

    /** @param {string} clientId */
    entry(clientId) {
        return this.#entries.get(this.#numbers.get(clientId) ?? -1);
    }

    /** The time at which a resting message may be sent; null if none rests. */
    get nextDeadline() {
        if (this.#sender === null) return null;
        const next = Math.min(...this.all.map((entry) => (entry.phase === "resting" ? entry.until : Infinity)));
        return next === Infinity ? null : next;
    }

    /**
     * The app sends a message, which is to be stored.
     *
     * @param {any} send
     * @param {number} uid
     * @param {number} date
     * @returns {{ entry: Entry, isNew: boolean }} The existing entry if it is the same message.
     * @throws {HermesError} `outboxFull`; `clientIDConflict` if the same id is used with other content.
     */
    added(send, uid, date) {
        const old = this.entry(send.clientId);
        if (old) {
            if (old.item.uid !== uid || JSON.stringify(old.item.send) !== JSON.stringify(send)) {
                throw new HermesError(ErrorCode.clientIDConflict, `${send.clientId} is another message's client id`);
            }
            return { entry: old, isNew: false };
        }
        const item = { number: this.#lastNumber + 1, uid, send, queuedAt: date, failure: null };
        const { maxEntries, maxBytes } = this.#limits;
        if (this.#entries.size >= maxEntries || this.#bytes + bytesOf(item) > maxBytes) {
            const text = `${this.#entries.size} messages of ${this.#bytes} bytes fill the outbox`;
            throw new HermesError(ErrorCode.outboxFull, text);
        }
        return { entry: this.#insert(item, "storing"), isNew: true };
    }

    /**
     * The message is in the store.
     *
     * @param {number} number
     */
    stored(number) {
        const entry = this.#entries.get(number);
        if (entry?.phase === "storing") entry.phase = "queued";
    }

    /**
     * This account is logged in: its messages may be sent.
     *
     * @param {number} uid
     */
    started(uid) {
        this.#sender = uid;
    }

    /** There will be no connection before the next login. */
    halted() {
        this.#sender = null;
    }

    /**
     * Returns the messages that may be sent now, in order, and marks them as being sent.
     *
     * @param {number} now
     * @returns {Entry[]}
     */
    next(now) {
        if (this.#sender === null) return [];
        const busy = new Set();
        const next = [];
        let sending = 0;
        for (const entry of this.#entries.values()) if (entry.phase === "sending") sending += 1;
        for (const entry of this.#entries.values()) {
            if (sending >= this.#limits.maxSending) break;
            if (entry.item.uid !== this.#sender || entry.phase === "failed") continue;
            const conversation = conversationKey(entry.item.send.to);
            const isDue = entry.phase === "queued" || (entry.phase === "resting" && entry.until <= now);
            if (isDue && !busy.has(conversation)) {
                entry.phase = "sending";
                next.push(entry);
                sending += 1;
            }
            busy.add(conversation);
        }
        return next;
    }

    /**
     * Removes a message that was sent, discarded, or could not be stored.
     *
     * @param {number} number
     */
    removed(number) {
        const entry = this.#entries.get(number);
        if (!entry) return undefined;
        this.#entries.delete(number);
        this.#numbers.delete(entry.item.send.clientId);
        this.#bytes -= entry.bytes;
        return entry;
    }

    /**
     * The message was not sent because of the connection: it waits for the next one.
     *
     * @param {number} number
     */
    interrupted(number) {
        const entry = this.#entries.get(number);
        if (entry) entry.phase = "queued";
    }

    /**
     * The server refused the message.
     *
     * @param {number} number
     * @param {HermesError} error
     * @param {number} now
     * @returns {Entry | undefined} Its phase tells whether it is tried again.
     */
    refused(number, error, now) {
        const entry = this.#entries.get(number);
        if (!entry) return undefined;
        if (error.isTemporary) {
            const own = waits[Math.min(entry.refusals, waits.length - 1)];
            entry.refusals += 1;
            entry.phase = "resting";
            entry.until = now + Math.min(error.retryAfter ?? own, longestWait);
        } else {
            entry.item.failure = { code: error.code, message: error.message };
            entry.phase = "failed";
        }
        return entry;
    }

    /**
     * The app retries a failed message.
     *
     * @param {string} clientId
     * @returns {Entry | undefined} Undefined if no such message has failed.
     */
    retried(clientId) {
        const entry = this.entry(clientId);
        if (entry?.phase !== "failed") return undefined;
        entry.item.failure = null;
        entry.phase = "queued";
        entry.refusals = 0;
        return entry;
    }

    /**
     * @param {OutboxItem} item
     * @param {Phase} phase
     */
    #insert(item, phase) {
        const entry = { item, phase, until: 0, refusals: 0, bytes: bytesOf(item) };
        this.#entries.set(item.number, entry);
        this.#numbers.set(item.send.clientId, item.number);
        this.#lastNumber = Math.max(this.#lastNumber, item.number);
        this.#bytes += entry.bytes;
        return entry;
    }
}

/** The number of remembered messages. If the app never reads its inbox, older ones arrive as if another device had
 * sent them. */
const maxSent = 1000;

/**
 * Sent messages whose entries in this account's inbox the app has not reached. In the next run the server delivers
 * these entries, and they must be known as this device's own. Does no I/O.
 */
export class SentMessages {
    /** @type {Map<string, number>} The seqs by client id, in the order of sending. */
    #seqs;

    /** @param {Iterable<[string, number]>} seqs Those of an earlier run. */
    constructor(seqs = []) {
        this.#seqs = new Map(seqs);
    }

    /** @param {string} clientId */
    has(clientId) {
        return this.#seqs.has(clientId);
    }

    /**
     * The server committed a message, which has this seq in the account's own inbox.
     *
     * @param {string} clientId
     * @param {number} seq
     * @param {number} place The last seq that the app has taken.
     * @returns {{ kept: boolean, dropped: string[] }} Whether the message is remembered, and which no longer are.
     */
    sent(clientId, seq, place) {
        /** @type {string[]} */
        const dropped = [];
        for (const [id, other] of this.#seqs) if (other <= place) dropped.push(id);
        const kept = seq > place && !this.#seqs.has(clientId);
        if (kept) this.#seqs.set(clientId, seq);
        if (this.#seqs.size - dropped.length > maxSent) {
            const [oldest] = [...this.#seqs.keys()].filter((id) => !dropped.includes(id));
            dropped.push(oldest);
        }
        for (const id of dropped) this.#seqs.delete(id);
        return { kept, dropped };
    }
}

const encoder = new TextEncoder();

/** @param {OutboxItem} item */
function bytesOf(item) {
    return encoder.encode(JSON.stringify(item)).length;
}

"""#
        ),
        WebFile(
            path: "/outbox.js",
            contentType: "text/javascript; charset=utf-8",
            tag: "d8b27b1742f1f2c93b419588a52ea408",
            gzipBase64: "H4sIAAAAAAACA7VabXPbuBH+7l+Buu2UzDG0k86krXxO6onv5tzmree01xmPZwyLkMSYIhkAtK0q/O/dXbwQJCXZmdzlQyISwGKx++yzi2UODthPQi6F2js4YOcfTv/79E0+FaUST88yUep8lgs5YSc1ny7E0+fp4d5evqwrqdma/SBlJV9XmUisCHrBWjaT1ZLtpwcCn1X6Se0fdaveN/q6uv9XIxpYdw5bvBVK8blQwcKK5jz9jJPM8r2DJ0/22BN2wpZmOstLpheCmakJm8HO+MzrOoWJOPfvelWLTMzYurr+JKa6tXv/UGq5ogm1rGoh9YqtlZZ5OW/ZtMhBpbOMveOwEUl0G5Jy+EJpLnXKfsn1guXavBLyVkgmxbSal/n/YCWHh1roXOdVmQ424+UKdqpKWKI4TmBXa9bkGWuvGBwDHuayauozfLFtrQY1B0Nls7wWsmVktuxEs7OSLfOiyBWoVWaKqbycCvbsb385HErdN2v22Re2r0SZgS3cb00/Zjwv7HiWqymXGTy1aArdqE0qgilEXmv20VvnT8q9TFiFiqDwoSJrOFsmJsycJXHGnzDjIMDIFxgripYRuEi8FLNG8cJKNZqi3IO9PTi30qyGGfk9O2b7Bi0HACgzgip88KP4dGDBBkpxyZedVc2/7J9iBYZEKF+v7LsUtzLybsTq/QxERWYkZscv3e7fudm6OqezRM9exGnNs3OEEzwkbP9wP+6g7uNCV6hnxu4WohQIM0CchABAkMG2JUAbMAQ2q+4SDAsOXi8bDeEFBuIzbVawGkF8xxVgvFIiYxxEgtlL/DnneenCpgsx1cjb/NaGAS0nC1+hNldswdGhqipuwdwUDbR3D9dLdwYuJUjyQQvwkaya4QNuOeVFoRImgGRoi8mWoIK3S7Q7/JtLG6ssz5TxtrgnipkWXCkb6my9x+DP7wneR+Y3etn91JX0r5vrZe4GpgtezkVmn+qCT+00QgbyigOGxyMikU+nVQMqmZMxUESzopqDbVE/kgVhPpJEAeMm6HwpJKDAzqF/WQdHR2VVjQZWw2FDsxFwKJ2NyDdOz/G3X5PS0HDlW15/b4IsAWisXnbT0QES6INCGZeaSMZ36VDKwChOBJLbbgNtP8gwGcSp8e2bHPyluj0Keh7KiRCsEzwRBeMHIHHgw+/7JzS+x2yUYVA5/GOESKEbWSogek9fI10jgRllEqYX2uy2yrNuE4sp9hrAjjGnDd7N67FMkuDIx8kgJLKfrU7ehEp8hgeuXQak2NT8Rni7GnARSclmCk6M1saXiXNlghkoYcaKCTMmSax6MGC2bmMbUl4cWEYsFXDexeWRHwnAfeFAZc5yeXHpsd7JwJgciMCEHpnRC6DVhN3yohGXCB2rcagK/slnLIKZKeVnhYQUGe6NY6NkWjdqEZGc+OihpV1qgOWUqmj1BU0roEYKZqSFKOd6ETslA+mt/wX8qFLDRHDUUtyFpVDk7E6KBuvNKmsfXBSWTKTCeDL6FWYH7NYNYiQeM89CwSoTA8csJMJu2KH3mPW4sZtg8HHMArJsPYtR8DclHQOjCnFqErVPEckoOdhCxHPnXEDIQHDlcPDQ9yZEQ/umEGLpkteRiUwKJTNMz/ZtPNTSxeBJFtKAC6FhhNqK5AsLSzLInlrca5N62dWC6uL09ln62oxfMYjMf5y/fzcKeJICqX5nKdhfsvbl6itXIEESva9zIP6z8txUfa9cMcXacdZw7LZ2vBhQ2EuT08hWtrYCfEDVQbjKOm30QlZ3ICO4BLTsytD2j5AGrhIoGXDNj+TxqyN2ZfU+BavMIJbALBCBvKywsvH0SySGOQdK8S7ZH7l9GYrBSoYWm5rI1EdY5PB+XjEI4mpVTglXkfVXAiZPnFkAvesewSEtBGFzfExpLWZ0YorG4MyRvw+lRi8o6EAHhDUZ71rMMC7Bz1gpzcmSWF4H8Wvobu1snqt3sEULavWwnUHtHS2B3c+3HQSIyKudsFOuRQrFYRQHW+HRfkcbxP0ACiNkrJmDEuhEU1Lkq4AK5GpAyvyO0x3JE1N6J2FNdHFBtbIrlJNA3OUlqC97HA3xxTUky4iq/iHxh9aRYllBQerkHg0m7vZbgFLAbHj5g7KlyKDChrLfFkFQVPxhTeq0Vw/xvRG8QSmb/WjUu3mzB3o0HJklw+G6WdZR8NI61kzexnau6unzsb8T7OC+7rq8nVCuq6oQvAQy+WUhKLz97UU14NERzYaRCtLAEm6TcelBNhqEB67JwUJ+1QDzNiNY08x4oYIc+RBaO5CmjwNu32tbc9BDHkSp2/x3au7jYeHalAX8snR9LZBt7GX7N/ImMu7AnZAJTVMB2A/iiK+Az+EGaC6CmWFqWIyKJpbAO2bvrrUkGuhUO/7cUIiHkLHdia8EjXHJTsiwL1+sq2tITIKywT5ixPRKNg3aRso2sG2irTHAvg2cTZlBgQp3/AexuWZpmo4BmtgezyRs/MA14Ntx6xDES0iReFc3Zr7DthrK7FI+opjeZOIWCm+4flZ35ePKsxGoDVZy9f6u3IiRDcUkeDSYCp7uavL+2LaTfkTd3dV3QXieYy2dlxOCs++SYJRci52x6m6EkNl7J6KbC7gR3ofHeaDod9mpW7vDr0E5f2JLNXcoVNzUOtiG6tU3Lm7psoolGVMLLBfvFjl1e4Sv7xe80NFYeeeEAlUMcycwkfyYLwVUmpZZqXcy1vYnjhkOFSihNu/MDdU2vjT+S7C/ZvQEEGKkzaiG76jIK2qMEiga3FUNiKm/0SmP20a1kDBvyaEWtNXY5jrmUclieG8Lgx95J4ZQFmXUm49/IkudwZVoWi1BgHbkkzh2jZPxalt++bXUeu1WmuH+uo210QO+68g6EzwrgL8GfI0GPbVDfbLuFvhq3YT0EPq0H153hXaKRN3JjIsT9pbrBdwk76PDpNPlKRv7kn3Hnm0lgMc0tejO1Rr8bLwbWrf0on6780Zpb+176tRM3lrBP6aW3tTeAR0393YMnqlDNKz5g+zU96JL8JQYzsVn9pIdDqPFHetG4BeFTFZ1LbLgtkQsin9RCzB1LO1N5IUnYQcjije2htCi9iC2DxR8OviOPbDD5UBmwBfAzEAWVvude+BVrjPYxrDCT3gLuqlQurwWVDklvc9YjpapvvfNmHGvPXcpqN9XsjWH1TNO6V5mI2fdfkN1QXdhb7rdFcZvFGFEX/342khwW2Nra1SZaVJwBRXtsf12lcM7ZBDwf/j99JUdnuxqMPik9IYcbL8oGfXiYSzhril+VyNSHLYphnEFIPros2L4wQh0usmnN3g3NskboFRWDHCT5VMNqTzEWbr1hp6XGvRsar39lv5VaXBI7+0WLjOOdCRorJJsYPKjR4WTDxgU2/9QTN2eJcZKzw+j+4H9php/bXfk0UH3ddfNXzGo/L0xaCe2/cAyWq2p3w1eIKu0myILqTXx37QTalM0UKdhqG0KMkMo2Ige38SweB87ACLOvAQWst/Bx42vjtx1Nel95Ex877elcqLMRtegcPnGpeEBzQE8E06oirHUM+mO75zWms/Vb/mN+V8HwOjV0qaV5y8woUg+hYhTafCNdNaU5naNbcSzU1/MWn1PpOSrFP/DQzSVq1pX6Vzon0nyf/ADh4qQmv4NkfxXmho9fxEDSKPrlRYESvrF/sj+/DzuvnfDQ5x+qvIy2semZ+u/dO/sqO+Ne+R7v04PfIs5xl3Vbg9wsLPYeBcYPCQMdE1k738U08MASp8wrKHATw5AtqdgWgqvcBnUuZMAX5MOMKPdWzTp/wGv2ZgnzyMAAA==",
            text: #"""
// Hermes
// SPDX-License-Identifier: Apache-2.0

import { ErrorCode, HermesError } from "./errors.js";
import { OutboxQueue, SentMessages } from "./outbox-queue.js";

/**
 * A message in the outbox, for the app.
 *
 * @typedef {object} OutboxEntry
 * @property {string} clientId Names the message from the start. With it the server recognizes a repetition.
 * @property {any} conversation `{ uid }` or `{ groupId }`.
 * @property {any} content
 * @property {number} queuedAt In milliseconds since 1970.
 * @property {"queued" | "sending" | "sent" | "failed" | "discarded"} status
 * @property {any} receipt The server's receipt, once sent.
 * @property {{ code: number, message: string } | null} error The refusal, once failed.
 */

const prefix = "outbox/";
const sentPrefix = "sent/";

/** @param {number} number Keys sort by number. */
const keyOf = (number) => prefix + number.toString(16).padStart(16, "0");

/**
 * Messages to send whenever there is a connection: now, in a minute, or after the page was closed and opened again.
 *
 * A message survives the page once `send` has resolved. Within a conversation messages arrive in the order of the
 * calls, each once: the server recognizes them by their client ids.
 */
export class Outbox {
    #queue;
    #sent;
    #store;
    #submit;
    #changed;
    #place;
    /** @type {number | null} The account of the last login. */
    #uid;
    /** @type {any} */
    #timer;

    /**
     * @param {object} options
     * @param {import("./stores.js").Store} options.store
     * @param {Map<string, any>} options.records The store's records.
     * @param {number | null} options.uid The account of the last login.
     * @param {import("./outbox-queue.js").OutboxLimits} options.limits
     * @param {(send: any) => Promise<any>} options.submit Sends a message and returns its receipt.
     * @param {(entry: OutboxEntry) => void} options.changed Called at each change.
     * @param {() => number} options.place Returns the last seq that the app has taken.
     */
    constructor({ store, records, uid, limits, submit, changed, place }) {
        const items = [];
        /** @type {[string, number][]} */
        const sent = [];
        for (const [key, value] of records) {
            if (key.startsWith(prefix)) items.push(value);
            if (key.startsWith(sentPrefix)) sent.push([key.slice(sentPrefix.length), value]);
        }
        this.#queue = new OutboxQueue(limits, items);
        this.#sent = new SentMessages(sent);
        this.#store = store;
        this.#uid = uid;
        this.#submit = submit;
        this.#changed = changed;
        this.#place = place;
    }

    /** The unsent and the failed messages, in the order of sending. */
    get entries() {
        return this.#queue.all.map((entry) => this.#entry(entry));
    }

    /**
     * Adds a message.
     *
     * @param {string | any} content A text, or a `hermes.v1.Content` as JSON.
     * @param {any} to `{ uid }` or `{ groupId }`.
     * @param {{ clientId?: string, expiresInSeconds?: number }} options
     * @returns {Promise<OutboxEntry>} The entry, once it is stored.
     * @throws {HermesError} `outboxFull`, `storeFailed`; `clientIDConflict` if another message has the same client id;
     *   `closed` if there never was a login.
     */
    async send(content, to, options = {}) {
        if (this.#uid === null) throw new HermesError(ErrorCode.closed, "log in once before anything is sent");
        const { entry, isNew } = this.#queue.added(makeSend(content, to, options), this.#uid, Date.now());
        if (!isNew) return this.#entry(entry);
        const { number } = entry.item;
        try {
            await this.#store.write([[keyOf(number), entry.item]], true);
        } catch (error) {
            this.#queue.removed(number);
            throw new HermesError(ErrorCode.storeFailed, `the message could not be stored: ${error}`);
        }
        this.#queue.stored(number);
        const stored = this.#entry(entry);
        this.#changed(stored);
        this.pump();
        return stored;
    }

    /**
     * Sends a failed message again.
     *
     * @param {string} clientId
     * @returns {Promise<boolean>} Whether there is such a message.
     */
    async retry(clientId) {
        const entry = this.#queue.retried(clientId);
        if (!entry) return false;
        await this.#store.write([[keyOf(entry.item.number), entry.item]], true);
        this.#changed(this.#entry(entry));
        this.pump();
        return true;
    }

    /**
     * Discards a message unless it is being sent.
     *
     * @param {string} clientId
     * @returns {Promise<boolean>} Whether there was such a message. A queued one may have arrived nevertheless, if the
     *   connection was lost before its receipt.
     */
    async discard(clientId) {
        const entry = this.#queue.entry(clientId);
        if (!entry || entry.phase === "storing" || entry.phase === "sending") return false;
        this.#queue.removed(entry.item.number);
        await this.#store.write([[keyOf(entry.item.number), undefined]], true);
        this.#changed({ ...this.#entry(entry), status: "discarded" });
        this.pump();
        return true;
    }

    /**
     * Whether an inbox entry with this client id is this device's own message.
     *
     * @param {string} clientId
     */
    isOwn(clientId) {
        return this.#queue.has(clientId) || this.#sent.has(clientId);
    }

    /**
     * This account has logged in: its messages may be sent.
     *
     * @param {number} uid
     */
    started(uid) {
        this.#uid = uid;
        this.#queue.started(uid);
        this.pump();
    }

    /** Another account may log in: nothing is sent before the login shows which one. */
    halt() {
        this.#queue.halted();
        clearTimeout(this.#timer);
    }

    /** Hands the next messages to the client, where they wait for a connection. */
    pump() {
        for (const entry of this.#queue.next(performance.now())) {
            this.#changed(this.#entry(entry));
            this.#submit(entry.item.send).then(
                (receipt) => this.#committed(entry, receipt),
                (error) => this.#refused(entry, error),
            );
        }
        clearTimeout(this.#timer);
        const deadline = this.#queue.nextDeadline;
        if (deadline === null) return;
        this.#timer = setTimeout(() => this.pump(), Math.max(0, deadline - performance.now()) + 1);
    }

    /**
     * @param {import("./outbox-queue.js").Entry} entry
     * @param {any} receipt
     */
    #committed(entry, receipt) {
        const { number, send } = entry.item;
        this.#queue.removed(number);
        /** @type {[string, any][]} */
        const changes = [[keyOf(number), undefined]];
        if (receipt.inboxSeq > 0) {
            const { kept, dropped } = this.#sent.sent(send.clientId, receipt.inboxSeq, this.#place());
            if (kept) changes.push([sentPrefix + send.clientId, receipt.inboxSeq]);
            for (const id of dropped) changes.push([sentPrefix + id, undefined]);
        }
        // Should this be lost, the message is sent again and the server recognizes it.
        this.#store.write(changes).catch(() => {});
        this.#changed({ ...this.#entry(entry), status: "sent", receipt });
        this.pump();
    }

    /**
     * @param {import("./outbox-queue.js").Entry} entry
     * @param {any} error
     */
    #refused(entry, error) {
        const { number } = entry.item;
        const reason = error instanceof HermesError ? error : new HermesError(ErrorCode.connectionLost, String(error));
        if (reason.code === ErrorCode.closed) {
            // The client was closed or kicked, which is no verdict on the message.
            this.#queue.interrupted(number);
            this.#changed(this.#entry(entry));
            return;
        }
        this.#queue.refused(number, reason, performance.now());
        // Should this be lost, the server refuses the message once more.
        if (entry.phase === "failed") this.#store.write([[keyOf(number), entry.item]]).catch(() => {});
        this.#changed(this.#entry(entry));
        this.pump();
    }

    /**
     * @param {import("./outbox-queue.js").Entry} entry
     * @returns {OutboxEntry}
     */
    #entry({ item, phase }) {
        const { send, queuedAt, failure } = item;
        const status = phase === "sending" || phase === "failed" ? phase : "queued";
        const { clientId, to: conversation, content } = send;
        return { clientId, conversation, content, queuedAt, status, receipt: null, error: failure };
    }
}

/** Makes a random id of 26 characters. */
export function makeID() {
    return Array.from(crypto.getRandomValues(new Uint8Array(26)), (byte) => (byte % 32).toString(32)).join("");
}

/**
 * @param {string | any} content
 * @param {any} to
 * @param {{ clientId?: string, expiresInSeconds?: number }} options
 */
export function makeSend(content, to, { clientId = makeID(), expiresInSeconds = 0 } = {}) {
    return { to, clientId, content: typeof content === "string" ? { text: content } : content, expiresInSeconds };
}

"""#
        ),
        WebFile(
            path: "/packet.js",
            contentType: "text/javascript; charset=utf-8",
            tag: "4552fed99463987189db18b2e418ea9a",
            gzipBase64: "H4sIAAAAAAACA60aa3PbNvK7fwXK6fSkjkw79/pgjeu6aTp1m9qZOO3djcdTQSRkMaYIhQDl6Bz999sHAIIU7bZ3pw82nruLfWPBoyPxvapXyhwcHYnrN9/+8/B1kanKqMOLXFW2WBSqPhHna5kt1eGf0+ODg2K11rUVj+JVXev6pc7VxIGgAbETi1qvRJIeKeyb9L1JpgcHR19+eSC+FO+WStRK5qo2Qi+EXRZGLIpSCdvUlVjX2uq/iB+ury5FUVkt1qUsKqHn71VmDQyJh2WRLYXaqHoL+1SZCwBgl6pWQla5WEpYBSvtdg1kPSylxaWIGNYIo2rowb/KpuLvfz2cF1ZUzWqOxMxVplfKd6dCrXW2NMJYuRVWfbRmgktkYxSC2goJGHVVbgVsW0MnTwELIjoXZinXCulKEjHCveOJOBYjBg3thSwNUJcQigQaK7lOmFox05W6WsyAR8gQQDq7IXC3M7EA5kpRFsZOBDY9X4CPiJeWmRTwM18elhporSQcSlU5MS85S5CsqilLUSyAUdiTc+KHo/5r5FyuFuJRVtuduEagMH5EAiTplbq6U8YSIcAKSUBQpNOIx38C6T5UsGbFSF5Mjo+PU4ST6Qr2reTHC6tWRpyKv8EM64f4GhgpV+LR2Lqo7nagDmpRfNwbxjMZ8bVjkXgkInctcGIhQB7x/glvGIvTr8To0QE9EbPPH7m5+3XmlpyIm6SpzFplqPc5yCRNU5pJzbos7CgRyfhW7MZAL6OCv3BaI22hK8D4KJKmyM+SE3EMYr2rdbO+4K7YTdstFhiOqw8E/BLUEFyTJBMeKFbyTuHIo2jqkibEQ5HbJYFdquJuaQmkW290U+W8Pm9qouUatBmEThtgus7Uzx5SqTNaEgbQ/C7hkNgLMP0qBltC2za5InioAFFPzlXZ2bopcqV75A/RZZdgEJUsSkdJAKA+gmCMCdiLnNZXfRqzxli94jWotg6VtDJeJi2ozbyxKF62tIMgC5CsAV4HWSAmL4ZYtPsj1+oDEkXj6O9+ZiJD/7LI7j1T3e6yALFfdDGgJnCH7eZdsVI/mQAJbOjEuQvq1+CBylLlYTCcBDmmqoyOIhrHscJcVWVRKb8chGXstVIVoWhVUmYZqJDt7K3iAwi5Aa7WQWX2AGfgAKzKz20PMh5RZq2yNxGbqj0WdbEwWyzAPWGTHiXX787fvUKPCRSrNSAEjnxowBtBq6jAE4N/EHPQ3Xuw3jFD6NMaSx8d8jOnrnXZ4n579ZpQu10yB2TgAkGvwRmDoFQNGMUKFC3/GQJn2eMEOYOOonk2/BYLCGRHDSBoAtLt1Vp11YNJe4myDOB5DF0bt26d7nUEFjElV5siG7aILqUQmi2EpFVE+3r9C6AC62jH9riPgx01dHuz+0o/gGrfqTy2rcK8bOpa4YH2VL4xy0E6wVeVEaFznW/bHrqHH0xMYqbLUq6N+lFFy8AHFWBSgT904rrQdWG3QSXevL24envx7l+oFhWwQpYgmrul1zyr10UWkYXd+Gw08AqTgJOQDLTHqzV4FeP0s4Q0pux4QTDCLDhx0dn1ahPHFxyJggskMDW6TA9+smeXyXsNAuOAEsKBWtjOgA9aj5QcddzyXeHWRrSGQJA55XzGiR/v+3DgrgWtfALhfYH2zpOg1k64fvoPst0UdxXI0XPP6tizGw5LsRNPZJ5jtHKBEsJm+b02to215RtIl+lUek5OPm/n/UhYgnnU1ql6OB9yo5MgqGrwtOEMlHiT3mTahWkX6ZxfU7beni+sqvuBIPfGL4Dj3yiwbxeOIAGpcv3gOu7MDM0i+61XQ09CRwdNxP7BQJc4+vBYrukmkCM/yfqeD9wJysFrN+t3miUceOYj5dA2h8BJcSisi/mWxd6qKQcyBncPvAhO4MeLy2/RAbSRKASnXGXo+zBKrfSGQtITkSYST2tHGDEIIfXxN4jYuXKRLSVk5rn3+L+CkKKeI0HkhTG63LTxEX+Equ3607cjQDWGkGMXPTyJ6IKRQvzvGQVsf45LEKExSMvKPMClDegDeuAfqDTz56GwS4e9Z24DSWScMoK7dtK2kTK0GglXWFDToQgMojNNabusTsiIcIwaLSsSE+WmYbTvRP1vP8nxP6vvVbU/rHqOKZ5bgi3Ensz/ngqe/jdocv5X5KXCKd3YgVm4qH0Hly/1zZYS6EHAe0E/ore2c9DONxg5o9y/S0A11x/fQvpqO0lCpGfeolWxtvts75pzZ2o/5w4zT+TyHaL+MC/zBq6JGWWsz5zEbKtsWeuq+LfX2J7QY0ELXeYK0yXu9eNn7JxMcHbUA3t1zVtwMODJe3Gl62R6LoAnHERuAzxqPAPN30J4m+/hTt++7cpU+9AfspReEttZzrmpI8p1ADa3upDdlQaXumY06fJnhuPUhzNkag4fMLgajGzkFzbh8gaCW6qVqmXZcyKQ0YC3ey52ASXrdcjvn+Smbw8wL6R8sYpRFsN4o+sptb8ldnmn6vKd3iGjfOv54GOWjc2x1FOjdVdUjlorvhSRh/vVZdJxuImTkY6BMwQSGmUi7exQPj6Q/4X1PjPyl7dX59dXlxym4eKScSCU85KC8wYIzbn4CJcBSGjIG7rqlT/h/3gAn4l146cOykGeqnUrfT/jY5kro74FB2GEFBtZNgriNRU9qQIYCnmuaOaKY8YV8sI4lfdoO42GYhqOU8Fv0VQZlbUwAxvR/glvGPsQuhA8Lk5PT73zGrvSJSXzeuEopAVcv0vEp08Dk1wdTcSZuKZlI4cKeHycTIfw/R5UZ24QJTUEhIwuwGkB2LpRQ+uPx5GOcV7BhENe8V8f+JJa7YGPp5EaE2G8Ii3Md0VVWOVLybDXYQ+bdoHo87qWW9hC//kI43HHQgh0d5mjwbEtNRDN1AivD65eO05Xcj0aAQ0rqqe2uoG5oaBxPMLNbUwOM4rK0ljxZSZ8BkygSvQXXwxwh0vbsQAfd4NagBW9gWNd0f4U/d2rCsSgzMgNKddlcsbpoijhIjQarWVR05kcMdi/eXHbkeR43Ocy25wrMPdV40HXOZy3o9Cpc0Bupy9RgzanVr/WkBS/lEaNxtO+mmEh//RZPYpouaEFt8A2pGFPn6KVaVFlZQMpxgi7pFKICQwmroTHx6ZKPdLhnAj4ipZMTqUxy3biwleLEc/d3Kst6Ai4yPoWH396AtlXUd5WmKs1OiK6lQOIFJ8z/gHXhFFyljzFp2jTGW0Kqnz4AhUUhqZ7eM7pKaS7G7TTqcoNgmZ9aOC2sqCbHZj23ixq9TjmObLEz7dozlj9T9iIiC2TDrCOsjnJMbDpwW4vFLj7DT2q+WeYfjBoKrwoVDuqocQTrEQ7tPPXqrqzy85TD67uPPWk/FQESewDhIzo9W8nZj6M/lLoknKdWUrxBCI4vht2wsobopneyCYt7ji+OH0nCj6LLVEQdrHxWEZJ74VPzItK1luqJQmNo1K4+IzoUS/xndFrECEDLGnJ5/8qpqePa9bHJSGzQsUDUj9/jMDs8FZeQwoOid/MYSpBSu8hOeGeBRJbjcdx0BEkLAXRgCOg90OnCAKuFtkyWv6bPPB0eeFBXtc5devIGLP3yW3EovHPIpf8OzhP77cxSq+dHm1QZlB8npkQorFX7L03P/9S0yoSG22gAt/73CLy4pV6iJ+lR+G1Ot1T0FB+GbcJ1nnlSlioJ3g+uV6nYBT4poolCjjSzKgPMyHnoFuQn+F7sPNk3gbpDjkVSoLMZF0XG5zCNxp8qcZn7TpvTZQZLrw7EZ948PDw0P/lAc+IT2LmmjM/5UtlOOfbsxMxG7h6hJqZ2EXbuWTG27k9tD3ct/dKZ65uFsH07z8A0jUZIt4lHCG+QhIAR9v50QQ2UyPeytdVxkeATLSNXgZgF/5vSZGo10AH/G8RSAYvHXDMFyZwcQFgJ/EnA7kCqwXWwJBp5TynAil/xODeTe40ekq18gja4gZ0Ko0PIRHYUmPcwdQd7ktqGgCT7TitE0uZkxFRAQRLeKhqtNPhcF49IJAVAdqiHkrilwcIdG64WCNyrdg2cS9B6j7/+2o8G+CES7gcJia+XuHn8MLUTt6QBvvZW6RnK3Y7cYGsoIsqf1DABozkYVJ440vAfElj7eU2qyKVOlmHEv+4jg0UMs3BquQ2+tKE7jNgpkvyAunmRUrIZ/xliRwy8F64pPTmAe6d8aD3SMSD7t2pPeFuMOQVYX6EUB0ffbhjfjwip/vXP2TwxN2BwbyAXbi/DVxuJlxkQJ8ZDcH6Sdol5O0fuefWplQlHXsaphEJ5IhOWTKQHlf5aIRtcquI9wZ7t5AqnmGSSLqXdPw6A8CY4ach2Xl0H+UwEYiUFQeOc/LkJGgTToASEWJq4yvDrvNBUSvIjgGhndyBRfTF6pMdNPahcav/T/IOYvBupSdxx67w9cIdfQdElhbWeuuCzBWmfT2HfVSXE5f0WYwMbpQ+F6LKPC7G4sQdlhzxsx/MX/ELIo1fTiHCKYd9ZCGPOUb2WRedmLneZQjzCh0RQBvmCXkmJHVE+z0rjo7EeaAcyAWxGVUu6OuuBx3kSqEX5kSBOWhkNKw+/umIIwDaCSGZdtJJd2903gYTfNdOi9aCZp8/+lF0raDppMYn7cadaJcU+W72hAWQe0Ik2ICFAIriEux2IxC3TohhKMz/AHBH+YqQJwAA",
            text: #"""
// Hermes
// SPDX-License-Identifier: Apache-2.0

import { ErrorCode, HermesError } from "./errors.js";

/**
 * The readers of this file turn proto3 JSON into plain objects in which every field is there and has its type, whatever
 * the server sent. 64-bit numbers become numbers; epochs stay texts, because they are only compared.
 *
 * A shape is "" (text), 0 (number), false, "epoch", "map", what `oneOf` returns, `[shape]` for a list, or an object of
 * shapes. A field whose name ends in "?" is null if it is absent.
 *
 * @typedef {any} Shape
 */

/** The longest list that is read; the server's own limit is 1,000. */
const maxItems = 5000;

/** @param {string} prefix @param {string} names @returns {Shape} */
const oneOf = (prefix, names) => ({ prefix: `${prefix}_`, names: ["unspecified", ...names.split(" ")] });

const conversation = { "uid?": 0, "groupId?": 0 };
const content = {
    "text?": "",
    "image?": { url: "", width: 0, height: 0 },
    "sound?": { durationSeconds: 0, sourceUrl: "", locationUrl: "", fileName: "" },
    "location?": { latitude: 0, longitude: 0, label: "" },
    "video?": { url: "", durationSeconds: 0, thumbnailUrl: "" },
    "expression?": { id: 0, name: "" },
    "custom?": { type: "", data: "" },
    attributes: "map",
};
const message = {
    id: "",
    conversation,
    conversationSeq: 0,
    fromUid: 0,
    fromNickName: "",
    clientId: "",
    content,
    serverTimeMs: 0,
    own: false,
    recalled: false,
};
const presence = { uid: 0, isOnline: false, lastSeenMs: 0 };
const account = { uid: 0, nickName: "", avatarUrl: "", isOnline: false, createdAtMs: 0 };
const contact = {
    uid: 0,
    nickName: "",
    avatarUrl: "",
    state: oneOf("STATE", "accepted requested incoming blocked"),
    isOnline: false,
};
const member = { uid: 0, nickName: "", role: oneOf("ROLE", "member administrator owner"), mutedUntilMs: 0 };
const group = {
    id: 0,
    name: "",
    avatarUrl: "",
    muted: false,
    historyOpen: false,
    memberCount: 0,
    members: [member],
    createdAtMs: 0,
};
const device = {
    id: "",
    name: "",
    platform: "",
    appVersion: "",
    isOnline: false,
    lastSeenMs: 0,
    acknowledgedSeq: 0,
    isCurrent: false,
};
const push = {
    id: "",
    title: "",
    body: "",
    dataJson: "",
    collapseKey: "",
    expiresAtMs: 0,
    priority: oneOf("PRIORITY", "normal high"),
    topic: "",
    topicSeq: 0,
    topicEpoch: "epoch",
};
const roomUser = { level: 0, name: "", iconUrl: "" };
const roomEvent = {
    room: "",
    "user?": roomUser,
    uid: 0,
    "joined?": {},
    "left?": {},
    "text?": { text: "" },
    "gift?": { name: "", url: "", count: 0 },
    "custom?": { type: 0, data: "" },
    "notice?": { text: "" },
    "kicked?": { reason: "" },
    topicSeq: 0,
    topicEpoch: "epoch",
};
const signal = {
    toUid: 0,
    sessionId: "",
    "address?": { localHost: "", localPort: 0, observedHost: "", observedPort: 0, ready: false },
    "data?": "",
    "end?": { reason: "" },
};
const error = { code: 0, message: "", retryAfterMs: 0 };
const advice = { notBeforeMs: 0, windowMs: 0, address: "", ticket: "" };

const event = {
    seq: 0,
    serverTimeMs: 0,
    "message?": message,
    "readMark?": { conversation, uid: 0, upToSeq: 0 },
    "recalled?": { conversation, messageId: "", conversationSeq: 0, byUid: 0 },
    "contact?": { kind: oneOf("KIND", "requested accepted declined removed"), uid: 0, nickName: "", message: "" },
    "group?": {
        kind: oneOf("KIND", "created changed members_added members_removed dissolved"),
        group,
        byUid: 0,
        uids: [0],
    },
    "push?": push,
    "call?": { kind: oneOf("KIND", "ringing answered missed ended"), withUid: 0, sessionId: "", durationSeconds: 0 },
    "expired?": { toSeq: 0 },
};

const packet = {
    id: 0,
    "result?": {
        "error?": error,
        "session?": {
            uid: 0,
            nickName: "",
            token: "",
            epoch: "epoch",
            headSeq: 0,
            acknowledgedSeq: 0,
            serverTimeMs: 0,
            idleTimeoutMs: 0,
            maxFrameBytes: 0,
            serverVersion: "",
            heartbeatPriorSeconds: 0,
            inboxReset: false,
        },
        "receipt?": {
            messageId: "",
            clientId: "",
            conversationSeq: 0,
            inboxSeq: 0,
            serverTimeMs: 0,
            duplicate: false,
        },
        "synchronized?": { epoch: "epoch", headSeq: 0, oldestSeq: 0, count: 0 },
        "contacts?": { contacts: [contact], more: false },
        "group?": group,
        "groups?": { groups: [group], more: false },
        "presence?": { presences: [presence] },
        "room?": { room: "", memberCount: 0 },
        "devices?": { devices: [device] },
        "account?": account,
        "history?": { messages: [message], more: false },
    },
    "event?": event,
    "ephemeral?": {
        "typing?": { conversation, uid: 0, stopped: false },
        "presence?": presence,
        "room?": roomEvent,
        "signal?": { fromUid: 0, fromDeviceId: "", signal },
    },
    "notice?": {
        kind: oneOf("KIND", "shutdown reconnect operator token_expires"),
        message: "",
        "reconnect?": advice,
        expiresAtMs: 0,
    },
    "kicked?": {
        reason: oneOf("REASON", "replaced disabled revoked protocol timeout limit shutdown"),
        message: "",
        "reconnect?": advice,
        code: 0,
    },
    "pong?": { clientTimeMs: 0, serverTimeMs: 0 },
};

/**
 * Reads a value by its shape.
 *
 * @param {Shape} shape
 * @param {any} value
 * @returns {any}
 */
function read(shape, value) {
    if (shape === "epoch") return typeof value === "string" || typeof value === "number" ? String(value) : "0";
    if (shape === "") return typeof value === "string" ? value : "";
    if (shape === false) return value === true;
    if (shape === 0) {
        const number = typeof value === "string" || typeof value === "number" ? Number(value) : 0;
        return Number.isFinite(number) ? number : 0;
    }
    if (Array.isArray(shape)) {
        return Array.isArray(value) ? value.slice(0, maxItems).map((item) => read(shape[0], item)) : [];
    }
    const fields = value !== null && typeof value === "object" ? value : {};
    if (shape === "map") {
        return Object.fromEntries(Object.entries(fields).filter((pair) => typeof pair[1] === "string"));
    }
    if (shape.names) {
        const word = String(value).replace(shape.prefix, "").toLowerCase();
        const name = typeof value === "number" ? shape.names[value] : word;
        return shape.names.includes(name) ? name : "unspecified";
    }
    /** @type {any} */
    const result = {};
    for (const [key, inner] of Object.entries(shape)) {
        const isOptional = key.endsWith("?");
        const name = isOptional ? key.slice(0, -1) : key;
        const isAbsent = isOptional && (fields[name] === undefined || fields[name] === null);
        result[name] = isAbsent ? null : read(inner, fields[name]);
    }
    return result;
}

/**
 * Reads a packet of the server.
 *
 * @param {unknown} text
 * @param {number} maxLength The longest text that is read.
 * @throws {HermesError} `protocolViolation`.
 */
export function readPacket(text, maxLength) {
    if (typeof text !== "string") throw violation("the server sent binary data over a connection for JSON");
    if (text.length > maxLength) throw violation(`the server sent a frame of ${text.length} characters`);
    let json;
    try {
        json = JSON.parse(text);
    } catch {
        throw violation("the server sent a frame that is not JSON");
    }
    if (json === null || typeof json !== "object") throw violation("the server sent JSON that is not a packet");
    return read(packet, json);
}

/** @param {string} message */
export const violation = (message) => new HermesError(ErrorCode.protocolViolation, message);

/**
 * An event for the app. Those with a `seq` above 0 are entries of the inbox; each arrives once and in order.
 *
 * | type | fields |
 * | --- | --- |
 * | message | `message` |
 * | readMark | `readMark`: `{ conversation, uid, upToSeq }` |
 * | recalled | `recalled`: `{ conversation, messageId, conversationSeq, byUid }` |
 * | contact | `contact`: `{ kind, uid, nickName, message }` |
 * | group | `group`: `{ kind, group, byUid, uids }` |
 * | push | `push` |
 * | call | `call` |
 * | gap | `gap`: `{ from, to }`: the server deleted these entries before this device got them |
 * | inboxReset | none: the server lost its store; entries that the app had not received are lost |
 * | unknown | none: an entry of a kind that this version does not know |
 *
 * @typedef {{ type: string, seq: number, epoch: string, time: number, [field: string]: any }} InboxEvent
 */

const kinds = ["message", "readMark", "recalled", "contact", "group", "push", "call"];

/**
 * Turns a `hermes.v1.Event` into an event for the app.
 *
 * @param {any} wire
 * @param {string} epoch
 * @returns {InboxEvent}
 */
export function inboxEvent(wire, epoch) {
    const { seq, serverTimeMs: time, expired } = wire;
    if (expired) return gapEvent(seq, Math.max(seq, expired.toSeq), epoch);
    const type = kinds.find((kind) => wire[kind]) ?? "unknown";
    return type === "unknown" ? { type, seq, epoch, time } : { type, seq, epoch, time, [type]: wire[type] };
}

/**
 * The event for entries that are gone.
 *
 * @param {number} from
 * @param {number} to
 * @param {string} epoch
 * @returns {InboxEvent}
 */
export function gapEvent(from, to, epoch) {
    return { type: "gap", seq: to, epoch, time: 0, gap: { from, to } };
}

/**
 * Names a message or a push, to recognize it under another seq; null for other entries.
 *
 * @param {InboxEvent} event
 * @returns {string | null}
 */
export function entryName(event) {
    // A message to oneself is two entries with one id.
    const { type, message, push } = event;
    if (type === "message" && message.id) return `${message.own ? "own" : "message"} ${message.id}`;
    return type === "push" && push.id ? `push ${push.id}` : null;
}

"""#
        ),
        WebFile(
            path: "/page.js",
            contentType: "text/javascript; charset=utf-8",
            tag: "fffe111b79bf46c8814f67375829e605",
            gzipBase64: "H4sIAAAAAAACA41UXW/bNhR996+4EQZUyhyp7csAB55bbC02wFiDJkUHxBlKS1cWEZkUSNpOZum/71K0vmynnR8MivfznHt4owj+QLVGPYoiuL35/e+rOY9RaLz6M0FheMpRTeB9weIMr96Gr0ej6PJyBJdwlyF8+TwHIyGWQmBs6DiBzJgClhhLSgk7PQYmEjDkWzCTAdcQ7TTw1F4ptN9CCgwpoc35rmCKrWGvjeJiVYFGtUVFlmiET4VUBtKNiA2X4mCiBnx3CmA/AvpRL9rARuUwBYE76Hlc1w5kCgsljYyl9el/hgqLnMXoexaFNwZvp71DGLXs174EQ7A1wnQ6BS/yAhje0h0FuRiFZqNE7ZApTK9HVc1eTV3tLVNHTc5MKtV6DPRf3+ScQJA1wS1NQ4fnGGii/CH0PaXe8hUzUo2BkFG4hooas5XfmecCYc/Ec0UpwV/lcsnyu4zrHsxD0Cwk0jRVopOQCQYNnm9/0Rf8tD/4tW61V/XtutfMgZPI/5Csyk83n8uPnIiQT+VvmSKFlLcsZYoHi2iR/OzPLsLLxjEIohCfMPZbMLNwQ3N8vyJRBgN6bY1ZeP/6oRtfZGcHNJvZDLyvuPQa6q3IPso8lyRCJ8oVvtKw5Zovec7NcyvXpSIfVGQUaHZSPYI2zLyoVCs4O1YntVc67Dv5REbC7dD0hObDimI2AY9mhyslNyLxoARvyeLH3qfe6AJFgglB4fqTyLlAilpKmSMTUAUw/RW2kicVxBkTK0zqio4TTTV7DrdGFpq0ZXFTt+HZB+XMN0SI1fm4yXosrkTGmzXNgB52knzY0mlOWkWBpDaFa7nFo8t2gLUIO8F1ertockJZwsVx2lZ2DtG+coG0re66MYFmzxo8maaWJw923GRyY4A10xvDsv508wHCa6gHWNNaowCIidIlUiW75pKwh5jruYyZ3RTRP35uj5nUpnzz9pdFWC7uJ5M3iwfSqkFt/GbfEH9BaN2C/lvIpXykNAcYtaEzkibI1hARdoK8tapzyybjCa1kD2ZDsQyldN0ldgP0a8F1Ipq0kIjtdjihFHNLxAUVSlmukRTmUlV9DKlC/BdbFIMSk75o2/BuD2gKu/dk3YR9n82w6Gifoc7kzntwQXYN+r0NQpuwzhCciM639+Oa20PBE486O3FnK7n+D54t26chHf8Oojco8Z1AhZpM/9vd9XPcmI31h0vuWDUvM3TmEZ6S5DKfOr7I1QDH2cjvU/bj+HPM/TjqPIGV3ff/AWSYuzLaCAAA",
            text: #"""
// Hermes
// SPDX-License-Identifier: Apache-2.0

/**
 * The URL to connect to: http becomes ws, and the path is /ws if there is none.
 *
 * @param {string} server
 */
export function serverURL(server) {
    const url = new URL(server);
    url.protocol = url.protocol.replace("http", "ws");
    if (url.pathname === "/") url.pathname = "/ws";
    return url.href;
}

/** The name of the platform, for the list of devices. */
export function platform() {
    const { navigator, process } = /** @type {any} */ (globalThis);
    if (process?.versions?.node) return `Node ${process.versions.node}`;
    const name = /(Edg|OPR|Firefox|Chrome|Safari)\/\d+(?!.*(Edg|OPR))/.exec(navigator?.userAgent);
    return name?.[0].replace("/", " ") ?? "Web";
}

/**
 * Follows the page's visibility and the browser's network state.
 *
 * @param {string} url The server's.
 * @param {(conditions: { app?: "foreground" | "background" | "suspended", isOnline?: boolean }) => void} changed
 * @returns {() => void} Stops following.
 */
export function followPage(url, changed) {
    const { document, addEventListener, removeEventListener, navigator } = globalThis;
    if (!document || !addEventListener) return () => {};
    // The browser says "offline" without a network, but a server on this machine can be reached.
    const isLocal = /^(localhost|127\.|\[::1\])/.test(new URL(url).host);
    const look = () => {
        const app = document.visibilityState === "hidden" ? "background" : "foreground";
        changed({ app, isOnline: isLocal || navigator.onLine !== false });
    };
    const freeze = () => changed({ app: "suspended" });
    const names = ["online", "offline", "pageshow"];
    for (const name of names) addEventListener(name, look);
    addEventListener("pagehide", freeze);
    document.addEventListener("visibilitychange", look);
    document.addEventListener("resume", look);
    document.addEventListener("freeze", freeze);
    look();
    return () => {
        for (const name of names) removeEventListener(name, look);
        removeEventListener("pagehide", freeze);
        document.removeEventListener("visibilitychange", look);
        document.removeEventListener("resume", look);
        document.removeEventListener("freeze", freeze);
    };
}

"""#
        ),
        WebFile(
            path: "/push.js",
            contentType: "text/javascript; charset=utf-8",
            tag: "2b9550e092d8d9a8906f8d21a6ad9a61",
            gzipBase64: "H4sIAAAAAAACA51V74/TRhD97r9img9gX5M1qlBV3XEcJ0AqgsLpUgpShWBtT+wlzq7ZXWOsKP97Z722Yx9XHa2/xNkfb968eTOOY/gd9Q5NEMewvnr2fvVKpCgNrl5kKK3YCNSncFnxtMDVL+xBEMQnJ/Ck4prvYG+sFjI/gMVvFhJu8NeHtS4ZnMTBppapFUpC0lo0bzahOxPBPgB6UiXNcAHOu+tMY1XyFMN4FedLWPy8iI5LH7uleBGdddc12lpLeCuk/e1Sa96yjVa7kFuVhB40WkKYiVxQxPPH0L2xtOD6qcrw0oYPIkI6dLkEcALrOjGpFgkasIUwkGjVGNRgFUjlNEi5S8UAlxkFz4WxqA0IC42wBd1BoONfUS+hKURa9LfQHylEie6FgGndxaP0JaYWMwZPeVm6TZcAcEhLkW5PO8SBBDdb0y3U9O94gedcSOAWkEoDxnJtT8H4RCrPFmXGKJyLOBRM7CqlbbhgMa8E+2xI5Gv8UqOx5uCCU8mnx1XymXgeQHnE6dZQ+n6LVXVC3F9iC3+Octw38KmqTcEaTK7c73joE7sN6+8BrFF6i/pDB/X2+hWozSgyuRP89hnJYGCjyoxUInGbgtQgZXa89QVogSeqtj6U94yB/RUpLQw+SpQqkcvHB3hXIKHrUWQgiVWDGYG5u3GA35xqVIlWpjAaGyVPSnR5hV65JexhzHDZsyR7L3reK7/iZIfD0ApiA2HIG07EX0+8Rt7vynJFzSmMoZUwiuCnc0LLNZfknUU09MGGlwbPJo3lLao7IIrv0SX/KnJqEc16Ou88m8HPoWfnkrBthaew2KmsLtFx9eB34fCsnbLgVVX22aw7OzhznI/zYFSqRy/Rzvw7Ep9mw5yd/uCS5xQxR7ueXAijafStVI3DmEJesMFgt3E7G+sxo3HvXo9FL+vOqKHEZjJ8wm67r05/4jb8aCi5e2jaHvsECu5mi+pcuCWVjJApsvGw12HKitXSDENryNs9NwSUdVn6zUPw3fbFxZ0KH2Psu874SxhBnn8jy5aGlK5xeXuV547x3TEareuYKZP5VHew0+H8XGZ+/s1HcTcSjrP6/w26f2vtTJgbvT3/cv2nBiObXk/Oz216p+MvfsTyM51TGmte5NnuvBFu+OcQ/APdoOt9CQgAAA==",
            text: #"""
// Hermes
// SPDX-License-Identifier: Apache-2.0

/** @param {string} text base64url. */
function bytesOf(text) {
    const base64 = text.replace(/-/g, "+").replace(/_/g, "/");
    return Uint8Array.from(atob(base64), (digit) => digit.charCodeAt(0));
}

/**
 * Subscribes this browser to notifications and registers it with the server, which notifies it while it is not
 * connected. Call it from a click: the browser asks the user. Call it again at each start: subscriptions end.
 *
 * @param {import("./api.js").Requests} client
 * @param {object} options
 * @param {string} options.publicKey The server's `push.webPush.publicKey`.
 * @param {string} [options.worker] The URL of the service worker; its folder is what it may notify about.
 * @returns {Promise<boolean>} Whether the user allowed it.
 */
export async function enablePush(client, { publicKey, worker = "service-worker.js" }) {
    if ((await Notification.requestPermission()) !== "granted") return false;
    const registration = await navigator.serviceWorker.register(worker, { type: "module" });
    await navigator.serviceWorker.ready;
    const applicationServerKey = bytesOf(publicKey);
    let subscription = await registration.pushManager.getSubscription();
    const known = subscription?.options.applicationServerKey;
    if (subscription && known && String(new Uint8Array(known)) !== String(applicationServerKey)) {
        // The server has another key since.
        await subscription.unsubscribe();
        subscription = null;
    }
    subscription ??= await registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey });
    await client.registerPush(subscription);
    return true;
}

/**
 * Ends the notifications of this browser.
 *
 * @param {import("./api.js").Requests} client
 */
export async function disablePush(client) {
    const registration = await navigator.serviceWorker.getRegistration();
    const subscription = await registration?.pushManager.getSubscription();
    await client.clearPush();
    await subscription?.unsubscribe();
}

"""#
        ),
        WebFile(
            path: "/reconnect.js",
            contentType: "text/javascript; charset=utf-8",
            tag: "56a5e47e7972312c364929967eb3ca24",
            gzipBase64: "H4sIAAAAAAACA6VYbW/bNhD+nl9xw4DOTlXHTtENsOt2HrphATakaApsQBEMtETHXGTKoOS6Xur/vrvji0RJzlosXyKJ5L0+99zRFxfwqzQbWZ5dXMDN2zd/PvtNpVKX8tlVJnWlVkqaKSy2Il3LZ5ej8dnZxfn5GZzD+7WEvVCV0ndQKRQAS7kqjAQBaa7wKBiZFlrLtCoTUBo2Ks9VSd+ycoQSSMiP1WErM7mCh2L5N+48wjt/6G2Rq/TAm7am2EpTHeBB7zZLaT7cHmGvdFbsS2uGey5WUOHrSpmygsooWY7gZzQcnw+QFmSjqNA+I3D/Bjb4Bc3EU6oqnZAEcI2kkGIIkldFnhd7KDS6pwtcNqOTlmUyFwdrmHtEDbmopLE2zdjIXKCNJM/IrRQVWbrZVocp6AJWO0MqnAu9io7wt6pI5HuWZe4kisvkRyUqVWjSKKx2dAi9hpURqV9R1RTGUBUwOSV7Iz4tso+YrOwPDoDVUmjWYmPig11K81Ga71AHHkglfsMQK/R5KQ8yIwUXATI36pP1CWVUa4TE5AWUIDFDCcnSIFbk0iSBywRecCYmY8SN3lWynGISDIjtFtGEuvdrhYkVTj+s0cuN0IcRLEDLal+YezaF1NrML0V6jydRBGzFXW1ouS72qPlOKJ1gMspKGEQDubZlBLKteIgwJChlqYzQCw/vpMgKnR9etrD76sjey0/bwlRohcbgoXidCZPZHTCHa8b9aGWk/EcOHs6gRt0UPkxe/DUejxP4sv+3CR+3qMPT34/d6qV7eD52D9/bB3fAQglBMbq0H9r5n8Lzv9yR5Ow4nEUk0EYApSmUPrLDVxT/giWcACXW3U+WYVjrGoPKcEQOmlFmNgW+CQ3rYmdiBPZJ29fAdo8MCFvoNv8kecpPjtC2Kr0v+/kjBvrCr3VjIcpG2XDISmtkf0Ru8qI64YEUBs1Cn8mH8GIVt8ugUQOQFfiEwcQs30s03Z01J8nAukJaIsdP7ZdYtmwS/nck0YwwvTuRewxGZgSW38oUmzqEMd1gFtqsQhttPbldFjhYTgGnsyBoiwXNhKh9uCN7NjsUs0R9cmXzRZxCOOWKR+hicuEKKUFpzFgpYVnsEMSWIaS4x6BUsmmRRGZ/R5bPsaB+eFEbwivcK79Ac4IMh4IJJHUEG2o8/p2mCbvs8fdGpiojmiVSpeNafqqsPxjxnUw44E2Sc13P0XOJPUiYEbyxUIGri+uZa/LCUERLiiIRptKkr1ndNtQH7m1pXqT3HtyPd+qeFkshkNwILfuuhMrJNupihjvqCG4KV5yljWlOJIBnlCGVvsos6kqxCdBj7JMuEkwdiDJN0T60BwGs32pnNI05TlwpJad/w9MEH9MOBVfoOymuzaXiYhh14beUqdiVsskHylYm1+lBVkkNCbJV+XIhjSg1JJHa1ihqNjhelPUsdYPDW7bLsVcxvRMgf0HrZObzrXRq7fBUhTHmCYVKdC/znJFHZ8mrHeojdM+CNNcJLQXAZ9C7PD+2WYAFYmS+K5twJhHf2vefce+cz3YkEw9Gckv64ARv0R5KKsquRfKGprRvLdTdi6UyLBmniP8zoQkjNtTUo15+dIXS3jYYwvwVeOpz/PiOEdPoFHY9IbxYEhgzupaSEE9TGAu1hnN5m11aFWZgdSZezBx+F9V6ZN+GLpn0h8NUOXL+4a6mo/VyEOJdp6VjCAD84YqtyQq2GUYjaR3iO0mcfI24HTSNsfXilPIsMhhjlObNXDTUvo9R5wHHo5pDZKZoqYR0LZDtM9eTkYYZAQGRbnQTWtbI4m8L/DLoxKuL5DpW/Xis1zvgaji04Oovd2kqsZdns8BirfpC0w7WV1/295pGUaz7YL4wRn2UWdf4xyzwGF0EGsJCLzr6KdJElx5+bWjXc9c+LBmH7L5K58bmKtL3mxmvg+KvRlpHtYwRT5sHqKXppG1y4dYyjzA8GM5aGxlmYZcFnT/c2Ix2DNxWB8ehh2ucZSvV2N7qVOPL9Yp4iG2NhfLOb4LM2o8u2p5is55F694C5IKnVud58LzeeQxPuaSx4U5RWPBQbEms7GVEDSPXfke51HfVum2nl8kkg1cA8jPpFMTr1xD73181VtjTXv0fIiNv+3x8LGYuXl4DJ/R/1kDd7ePBnPovZnyElE63dPpgJ814iK7vCF4vad3QXaXAKy2RodD8K4MLxImSI3QdWeP/KMZObS2qAYlMoFVjJ4ikxj+xkYN/qNEYbbzj8VKKtNC/x7g2QK8HdZwIHCeS8DTsYKIHugFEr2ACr+sdaLqTZEfCIUyj11OIeoMTWMmiXcpxnGHvwjRmIXIqx/aqcnS7virPDI8ovaR4YCV10mtzGC6Gc0cwNgBKu2OjcK1O4stUh2Pd1DrvSPADc1Tq7Z8Qurl6CLYlbiqf1tY+9erOW8yf0ETZt/HYacTtmIZu4kfEVp/oxO7B31cS95tK4n91O4a20J61+ji4TbsuAP1s2Ev+JPUba0NbSl/h+nZoT3wICYsNe9YyzHvpXnF9MrztpM3KPofBBGPvwoFvlw27+eTwP/NBePSpaHXXTiocf9Rk0ooNr3/+zDJfOoJwEPmSFu8ZBS2POqo7ybtezeNL95Mn4fugcb6l+7zxg8Bre2AaTW3Hs38BGSoTa4MXAAA=",
            text: #"""
// Hermes
// SPDX-License-Identifier: Apache-2.0

/**
 * The waiting times before a client reconnects, in milliseconds.
 *
 * @typedef {object} ReconnectPolicy
 * @property {number[]} windows The windows of the first tries. Each try comes at a random moment of its window, and the
 *   windows follow one another.
 * @property {number[]} delays The delays of later tries; the last one repeats. Empty: no further tries.
 * @property {number} jitter The largest deviation of a delay, as a fraction of it: 0 to 1.
 * @property {number} maxAdvisedWindow The longest window of the server's advice that is obeyed.
 */

/**
 * Six tries within 15 s each, then after 1, 2, 5 and 10 minutes: for apps, of which a server has many. A network that
 * comes back, or a page that is shown again, restarts the policy with a try at once.
 *
 * @type {Readonly<ReconnectPolicy>}
 */
export const standardPolicy = Object.freeze({
    windows: [15_000, 15_000, 15_000, 15_000, 15_000, 15_000],
    delays: [60_000, 120_000, 300_000, 600_000],
    jitter: 0.2,
    maxAdvisedWindow: 3_600_000,
});

/**
 * The server's advice for reconnecting, in milliseconds.
 *
 * @typedef {object} Advice
 * @property {number} notBefore The shortest wait; at most an hour is obeyed.
 * @property {number} window The window that follows the wait: the client picks a random moment of it.
 */

/**
 * A moment for reconnecting, as the server advised.
 *
 * @typedef {object} Slot
 * @property {number} earliest The earliest moment. A network that comes back does not make it earlier.
 * @property {number} moment The random moment.
 * @property {number} end The end of the window that the moment was drawn from.
 */

/** The longest wait that is obeyed. */
const longestAdvice = 3_600_000;
/** The part of an advised window that must be left for a second try in it. Its inverse bounds the peak rate. */
const leastRest = 0.75;
/** The least time that must be left for a second try, whatever the window. */
const shortestRest = 1000;

/**
 * Decides when the next try is due, from the policy and the tries so far. Does no I/O; times are passed in, in
 * milliseconds of any one clock.
 *
 * The windows of the first tries follow one another, whether a try fails soon or late. So clients that lost their
 * server at the same moment make one try each in every window, and the returning server sees them at an even rate. If a
 * try fails early in an advised window because the server is not back yet, a second one is drawn evenly from the rest.
 */
export class ReconnectSchedule {
    /** Failed tries since the connection last was well. */
    failures = 0;
    /** @type {number | null} The end of the last try's window. */
    #windowEnd = null;
    /** @type {Slot | null} The slot of the present try. */
    #slot = null;
    #policy;
    #random;

    /**
     * @param {ReconnectPolicy} policy
     * @param {() => number} random Returns a random number, at least 0 and below 1.
     */
    constructor(policy, random = Math.random) {
        this.#policy = policy;
        this.#random = random;
    }

    /** Whether the policy allows no further try. */
    get isOver() {
        return this.#delay(0) === null;
    }

    /** The connection was well, or the conditions changed: the count of failures starts anew. */
    startAnew() {
        this.failures = 0;
        this.#windowEnd = null;
        this.#slot = null;
    }

    /** A try succeeded; whether the connection stays well is not known yet. */
    arrived() {
        this.#slot = null;
    }

    /**
     * A try failed or the connection was lost.
     *
     * @param {number} now
     * @returns {number | null} The time of the next try; null if there is none.
     */
    next(now) {
        const fraction = this.#random();
        const delay = this.#delay(fraction);
        if (delay === null) return null;
        const rest = this.#restOfSlot(now);
        if (rest !== null) {
            this.failures += 1;
            return now + rest * fraction;
        }
        let begin = now;
        if (this.failures < this.#policy.windows.length) {
            begin = Math.max(now, this.#windowEnd ?? now);
            this.#windowEnd = begin + this.#policy.windows[this.failures];
        }
        this.failures += 1;
        return begin + delay;
    }

    /**
     * A try failed or the connection was lost, and the server advised a slot. Repeated advice does not make the client
     * try more often than its policy.
     *
     * @param {Slot} slot
     * @param {number} now
     * @returns {number | null}
     */
    nextAt(slot, now) {
        this.#slot = null;
        const own = this.next(now);
        if (own === null) return null;
        this.#slot = slot;
        this.#windowEnd = Math.max(this.#windowEnd ?? slot.end, slot.end);
        return Math.max(now, this.failures > 1 ? Math.max(own, slot.moment) : slot.moment);
    }

    /**
     * Draws this client's slot from the advice.
     *
     * @param {Advice} advice
     * @param {number} now
     * @returns {Slot}
     */
    slot(advice, now) {
        const earliest = now + Math.min(advice.notBefore, longestAdvice);
        const window = Math.min(advice.window, this.#policy.maxAdvisedWindow);
        return { earliest, moment: earliest + window * this.#random(), end: earliest + window };
    }

    /** @param {number} fraction */
    #delay(fraction) {
        const { windows, delays, jitter } = this.#policy;
        if (this.failures < windows.length) return windows[this.failures] * fraction;
        if (!delays.length) return null;
        const delay = delays[Math.min(this.failures - windows.length, delays.length - 1)];
        return delay * (1 + jitter * (2 * fraction - 1));
    }

    /** @param {number} now */
    #restOfSlot(now) {
        const slot = this.#slot;
        if (!slot || now < slot.earliest) return null;
        const rest = slot.end - now;
        return rest >= shortestRest && rest >= (slot.end - slot.earliest) * leastRest ? rest : null;
    }
}

"""#
        ),
        WebFile(
            path: "/requests.js",
            contentType: "text/javascript; charset=utf-8",
            tag: "9f1307296ddd4c281e16bd6213d5b840",
            gzipBase64: "H4sIAAAAAAACA51XbY8aNxD+zq+YqlK6pNySRGo/QLhLpKvUq5ImyqVKpSgfDDsLbhab2uYIvfDfO2N7wbsLIcl9ObDH8/Y888JwCL+jWaLtDYdw+/r674sXcobK4sVNgcrJUqIZwfOVmC3w4kn+qNcbPnzYg4fwXMFaCWU3aLAAg/+u0bqcbvjymduusMAS7vX0H5y5HbxGVUg1fxPkvMzK6BUat4V7tV5O0exAFq0LobY7mOpiC28XCOTER3Q/WX8yAGHhj9tXf+atN1OtKxSKtNk3uELhxLRCeLdAt0AD0tE5WAoNxFxIBaJ0/tjCTCtFvkqtgJyloKZYaoNA7yAEOvKfLZo7NGwVKO6Zniv5H1oQ9GWFTrKCAWgDM2HMlmJmm3rtwG0os1BoklUaFsIsc3jFTm2kRRYqhaxsfiI3BYqikgpb15lBu67ciDzc9mFyCXdaFjtyxerqriOMxmiK4jf+15BmkE7n8Z2RzqFKk7ih7G/isdM+Lysyynk95PFULNOtoyTcUM4rVHO3AEr5t2mwzsiPpINpEc5Al8k7S/qES+CKkBKgBNTUIPEZNgtZMbxECA6HhSut5pGfcILfQ18CLcu1P4FNpJjUi/pVAHaUsG7gU6jXVcF+AZKD2zRqtkJf6elSfLqNuifwZBxs/9VxjGpiS+WTw01hYW70ZgDWoyLJPVMwZiHA8IU9DgWZw3Uk5M3wlbeLn1baEAaVsBZivb71NXTfo6QAO+DrG+5fitXTkINBq8Avd6yKxX+koI307ivcAD3J+uNwQxbczTVdPP4lnqAwleSMTeBGlVJJt6WQ+WqODizVWdaPboCvPrc2yiOY13Zylgrqdr29w4zWXnldSr5KBSz1koGJ1S7dmHCtKpAlJ4xPfHpqBtRxsUMKP7nrqOzrHIOr+rB2ZuSttR0OmqjLFoU9ECmPx/Xts5UwYpm0yfbF0V7YFup2mOb9uRbTkj7TY6J0yJCF+yZvdr4ryIKTTvVLzlOKHv9aBx5SL2k8GZeFKZBGNkigje4NouEUnYBAZN/PRL/x/ioUHdmfNKTaAgzplmTuSXQA3+TI4NBPR9QYKks3vh+O4NGg7iP0GXbjlsNJcRwl1kvhFvlSqqwpfvClT2SrP3eU17rQZRyTj7A/bjPaH58i6xtc6jtM+BqaMEMZ29UpAqcLQAK08QrJnxS9JgJN7+fe+/6p4Aqs0GFT4kuB+bax77A05njiUQ9Vs7AVJBsDBVlJRplWCt9j941ireKcPNYh3ud53vTxTlRkLut/yEtZ0TDJsgAFV9IP/mO+J1D/FBJvG3PPtp1tTEFBAyguJdTRxDKEFqMepVORAsd6jlREU0+vU5Amred2TV00ccmKbZzPAkrDFv341dobys/1CPhMOaXlklhMfSWBaBAJQ/Sl5p0sVAmlphXZexHiyYJrKSzJcPuS0aiM/4hRdX4OpOIEZylRdQnHYU6N+95WQtZCGR48CFrysDddQhYNXsWTqyu4eEyqapwmKZ0DQ1L9P0S5fs3CfWSHF1EkrxebZpuM7yK0nz93xC8n6eYSh14s51qWy3rUtn2cy81CmxMPO7Q7QZb3H3atKmbeMTEOpToOmxFPe94EmTiEH5/xgG9uowmVDucvNJGp26PYCh5GiRMfMa3mIzDvC/wwSvrfx6q28kmYNR0Ig4/nOrpLM7hZaPq9Ug8S+iFj6ZeZtee7u9KbRgJp05Q0FDI6T5PHFG1NvEvwMnXT/NCZx0HTmVTvXX468fq+MGAP2+f3JL+j7uRobjp2ZCyFwDqDaT9qaVGtgTkye0LFPa+q09tpSJXPkjNr7IyUZLFjX0etRd8/3Pf6kn9H14u/18wn3crgK+bkV4w/r+AMDKytf3zWxzo4MvH9qzraXe9/xB44QAkRAAA=",
            text: #"""
// Hermes
// SPDX-License-Identifier: Apache-2.0

/**
 * An unanswered request.
 *
 * @typedef {object} PendingRequest
 * @property {number} id
 * @property {any} body The packet's body, as JSON.
 * @property {boolean} isRepeatable Whether it is sent again after its connection ended before the answer: the server
 *   recognizes a repetition, or carrying it out twice does no harm. Otherwise it fails.
 * @property {number} deadline
 * @property {(result: any) => void} resolve
 * @property {(error: Error) => void} reject
 * @property {boolean} isWritten Whether it was written to the present connection.
 * @property {number} bytes Its length on the present connection.
 * @property {number} strikes The number of connections that the server ended for a breach while this was the longest
 *   unanswered request.
 */

/** The number of strikes after which a request fails: sent again, it would end every connection. */
const maxStrikes = 2;

/** Unanswered requests by id. Ids grow, so their order is the order of sending. Does no I/O. */
export class RequestTable {
    /** @type {Map<number, PendingRequest>} */
    #entries = new Map();
    #lastID = 15;
    #earliest = Infinity;

    get size() {
        return this.#entries.size;
    }

    /** The earliest deadline, or a moment before it; null if there is no request. */
    get nextDeadline() {
        return this.#entries.size ? this.#earliest : null;
    }

    /**
     * Adds a request.
     *
     * @param {any} body
     * @param {boolean} isRepeatable
     * @param {number} deadline
     * @param {(result: any) => void} resolve
     * @param {(error: Error) => void} reject
     * @returns {PendingRequest} Its id is at least 16.
     */
    insert(body, isRepeatable, deadline, resolve, reject) {
        this.#lastID += 1;
        const id = this.#lastID;
        const entry = { id, body, isRepeatable, deadline, resolve, reject, isWritten: false, bytes: 0, strikes: 0 };
        this.#earliest = this.#entries.size ? Math.min(this.#earliest, deadline) : deadline;
        this.#entries.set(id, entry);
        return entry;
    }

    /**
     * Removes a request that is answered.
     *
     * @param {number} id
     */
    remove(id) {
        const entry = this.#entries.get(id);
        this.#entries.delete(id);
        return entry;
    }

    /** The requests to write once the connection is live, in order. */
    unwritten() {
        return [...this.#entries.values()].filter((entry) => !entry.isWritten);
    }

    /**
     * The server ends the connection for a breach and does not name the request: the longest one is the likeliest.
     *
     * @param {boolean} isSure The server says that a frame was too long.
     * @returns {PendingRequest | undefined} The request, removed, if it fails.
     */
    blameLongest(isSure) {
        /** @type {PendingRequest | undefined} */
        let longest;
        for (const entry of this.#entries.values()) {
            if (entry.isWritten && entry.bytes > (longest?.bytes ?? -1)) longest = entry;
        }
        if (!longest) return undefined;
        longest.strikes += 1;
        return isSure || longest.strikes >= maxStrikes ? this.remove(longest.id) : undefined;
    }

    /**
     * The connection is gone.
     *
     * @returns {PendingRequest[]} The requests that fail, in order; the others wait for the next connection.
     */
    connectionLost() {
        const failed = this.#take((entry) => entry.isWritten && !entry.isRepeatable);
        for (const entry of this.#entries.values()) entry.isWritten = false;
        return failed;
    }

    /**
     * Removes the requests whose deadline has passed.
     *
     * @param {number} now
     */
    expired(now) {
        if (this.#earliest > now) return [];
        const expired = this.#take((entry) => entry.deadline <= now);
        this.#earliest = Infinity;
        for (const entry of this.#entries.values()) this.#earliest = Math.min(this.#earliest, entry.deadline);
        return expired;
    }

    /** Removes all requests, in order. */
    removeAll() {
        return this.#take(() => true);
    }

    /** @param {(entry: PendingRequest) => boolean} fits */
    #take(fits) {
        const taken = [...this.#entries.values()].filter(fits);
        for (const entry of taken) this.#entries.delete(entry.id);
        return taken;
    }
}

"""#
        ),
        WebFile(
            path: "/service-worker.js",
            contentType: "text/javascript; charset=utf-8",
            tag: "d55f30f2b90302c08c0d72e1f22b1e78",
            gzipBase64: "H4sIAAAAAAACA2XNMQvCMBQE4D2/4uikQxNxtFPBQUFE0ME11FcTtXklL9hB/O82uEhd777jjMGGYkeijMHxsD6XO99QECq3FwrJt57iCnVvG0flUi9UdidHEIrPUWLgeKcIbmHR2yshOZvgrCBwoJz7JOAhaNQTkHvf9RxTxvmrsclzEH0T+JB4nGr1FXhBHA/7X4Y32sgdCm2m86JS6s/PhB7tvFIfAdhCHPQAAAA=",
            text: #"""
// Hermes
// SPDX-License-Identifier: Apache-2.0

// The service worker of a page that has none of its own. A page that has one imports notifications.js into it.
import { showNotifications } from "./notifications.js";

showNotifications(self);

"""#
        ),
        WebFile(
            path: "/session.js",
            contentType: "text/javascript; charset=utf-8",
            tag: "2fb929711c85337f8f298714498471e9",
            gzipBase64: "H4sIAAAAAAACA9U8a3PbxrXf/SvWdKcBExqi09TNpcyoiu3eaiauPZbS3BmPJwKJJYmKBBgAFK3K/O/3PPaFxYKkcpPO3HyIRezr7Dlnz3v35ET8XZYrWT06ORGX7179z9MfsqnMK/n0IpV5nc0yWY7E+TqZLuTTr+Pho0fZal2UtbgXr8uyKF8WqRyoKeiD2IlZWaxELz6R+LuK/1X1Tu2oZZHPZVVf5LUsb5Ol030hk7KeyKT2Rlzkk+LTVZlMb2Q5EJdS5q/zusxk5YzNsI83DsAv7/6RrAC+ebJ+fQu/B4I6qr9vs2KZ1FmROxOtcRkfgpfLYnrzdjarJIx6JZfZrSzvXhYb3MNAXBXrbKrgc2aqapi7qrOpwsCjky+/fCS+FH+t79YylTNxfy/ybHqDEI5EBTvK5wOxTqpqW5Sp/gITfgYI6uJG5vYbziOooZRzWARpVJcb2OnhGREHt1lNGz+zU+7Ey1ISyZMlTH9i4D3PGWmMTwHYyupKbJM7AErUCymS9TqGjs29FZN/yWm9M9ii1nVZrGVZ34l7Rm3UQHg/vjDE2QmJ/3ijFKyfRb5ZLncih30iP4hrQ+rr2BuSb1YTWe5gC9OkzJnaVwA0b6leJDXtoZK/iIlE3qxgW12TTO5q4DocvpT5vF6IYkajZyVCQpPBKsCaKeDIn2RSFEuZ5ABK9V6ugc1pIkCeWCQVACBzmCGrFJonclaUQM9NngJXJXkB65QIZtwmDqBlM6WdKYoU21yWbZrci7QYiV4l87Q3EJMivRvBzHfAEMAcvEfFbtQvyautLHtu8wD4rdosaxrnsqEz4G9JtpSpN4xEwciTE2ZgykwCY9RfAJhmnNYq+Bl64q4sSxO3KKhsV0DhXNZKWvTclhsp1y83ZVXgooBVu39/tWI+l+lFTt2qCpCscGak1Xn9pqhqMwEzp9P+rsxw643m1jKlnG0qwloIU17nGzjjHX0HYpXcvZf1pgQ4FccNRJLeglDXxK6+LyWIc9Pemr9abOoUeOg8z0HGTWkpZwoXj6WcFnkOJ/0c2qt2z514PZtBs2FacZFWeGz42IMcWRQVnALinEodRUIzShm5nIlkm8BfMY6HpapaXLwSY1g+2UBnkFZTOtMj8cxB+Uh8DXIPWFXmCMmfgHZ3+XRRFnn2b/j9Dfw2wnkknovdKYGG53GWlbBGlgrgHTyKkiROWRSrSiTzJANszhI4kJPiVhK4Ge9HCcIvKjghv2xAwbkg06RMFYD9awFr/Xlo11SsAbOUciXxbxAgwHhwssU2qxfFpgYMKSQBgvNULIotaVJc904kpXSGOguvkk+XdZncVbDss+en6muFn95kyyVQDL6k2Pqn4fDn4dABCk4iiHgt4Agrm/WySFL8ZtEnklmNAorhBcQWLAezGhgEhCUILuCIFCVTAsOKcoXjeXMOoDz1Oc71A7YBRM8VQFrUEaZgWcA7CNW6mBZLVEYI3nSZAakA91WWAn0Rz5XhsCyHtSVxYcXIw8OPnAdgrjaw+ASxhxIZ0K5mzOUnUj6Ku4HDYvGK9yMuTt6eiuu82F7DWYLpxcpFJewOOb/IESwwGwbiOoWZr1sdK1BJUjz7r78MWaTLT2RtTJegr0Gr8SG4fwQHUyBNSIyLe6ukjRqEsdhpalvG1HLqj22IoJ1Vg4C4ZDpFcwakwwxJB/u6gQ3mSg0RSohmsV6NVExroZ8WkvQUEcXCYzWrVU+WVczkKLtELUE8shwob/VUJKnN2ln1Fmd4CXo1IVaZJctKMhSs1wEuuW0YjlGf20nPcrNjSZpWy9fcxzP2dD+irOriGIe6WZ+hdTKXyJUwqzx1N7XeVAtgJpDaFXQB9NfAMMAN2wXoTkUAPDkZcyPSYF4CCKnBAciaS5wWgOjZ5t4xNFcWuGu1OKABJ8h1XZ2ynmJ2SEEeIjhVcmcAANHyN5zge7KJ9nLch4875IxcoNpRpKZlt2D4zAG/OZx/+gECu47FuVjizvAIIUfA2VwmgJyEPpceI1Zavn34yMs/SSUqIPWDeEX9bamrvQ/dyTEOx2LY2sY9H1ZrzmzWV0XDZGLsar+EpWaljhd8QImDnzIgPe6lwg3TacgqMur0bp5o+9FFKGzi3NF2IPUbLP8EkPS9fK8cARrrtmoP4aL6MWcV0uqSVGBPnNd2709qNDHwQ6/NUm+S9QuNCLa/vmPGYjGsNSKamVq/g5kgM+Aq0lSk0WUKFuidEtIwxGIAx/Ee8XTBYu6pCoBwT9rZmoJgR5XK+gC43pPmNkyO5jbb2JJ7h2Ewiv8QEHpRWM4uVvD8bC+4GqWhTvRabFscu1uDcGdjiNSJRHBpXSCvslTCmyvJEAnu7gkoH2uoOGaLZgt0dTWwrt8bgPpS1gpqgPac9QshZ5vUIAaOQw715eNAErsOLOSJOD1UmRS1OUp6HP1LvlkCAsy6qsUa16785ntyZDSh0ec8c5xrEEkgflfOJ2Cxf4It63vXavaYpZO/SMRn58Ks1Bfj74RxGfVgkmZGyyZagSg7hKQJzw9aB6xGED4DAXYsiNbYX9HDml6hLSPpaNfZCnms3pKbui2UwabUBIhCENZ6CWWOFMovLcroXkE1YNXtmt82DtRXxg7+hzuJlSAH+rkS3TYzMsbCEfG2MbDCWHQpgN2jhtqmzaJ6WmTAqNepTNJlloOExSBYSlZfupFWQ9Lm9b7B4SR2fqVGRe6+2Nglbh/DuasX8SrLI4KYI1juSHF2BibMLMuzGtw23pZhaqetb/fOR1stMB6bLuKMgR1Rk79pzRo6HgEKFvkJuFuWi2TNToiJQShTUVPb5ytroO4cE9Dv5QRDyJarukzHaYJCYokBERZ2yiPxDNcm78EGLvLIzjIwy7SYrGE12x8eO7UsTj2f7XdyoniH5K1n8YIvepsVGx9cw60tdRsmjpWQyIPFWuZdVNARK3Q9/Db2yNEoU16Rf25xDZlGOHag+7S5uIE5D5cWLXA8ose2oQ89S/BdUZo7YYvIxJJjMK0rNA4w8oJCjZRQr+8RpNv6dOVDy2rCGKnfzRo/uOEm5D1tPPUQFHcbFhsWIzaea6OubrSV6AvmYpjRLEQdFlsTeLus7k5hkf0QDJQoHRkJW03LbM0x8Obciu4xuipRKHJoY89ix8G+i1dxMyoDQt1OCuwGFqeHOEUCO0pGPYp1ewgHAWaC4PZrTF9gZoTGxrmdYTvLwA4k+44Y27Dod+BubTTnwEEDb/lh52wip0CmH8D7iWDsnnOWWf3VpdqaTGsGPB7zwej7ymOM4IqvrAbSQwatQEwfNhQ9033LJE+LVdR3kIlxsogh/YCmLBvgH1lOEzejodoP0t2xNr8ai2fhs6CM1Rj9a3/YgGz//sM5lzwG/nfAVjP+RMiBm3aaoVtQ7lpc5Ih+dqC/QBNslmyWxoknp7YpEHliZdzGVfZvKf74R17OOvbjpmvfV9r91OMPHeek409T/gge2Eh8iOO4sc7HuMKcS5QAHsi8TMRT+GsgbMeslLy4IwyOQKcBwQoC+6nfpdH0OXE3CfZobwIehfOz2lSg6FKZ9nYcSdljS+Bxetgx1Oh+uUjyOSg9WmGgpgqeSiRgZSjUoFmbRB5JVShoHwV155G4Pn/37ufLq/Or1z//4Z4Ggrz7cQ1G2cukArtyd+2SiU4+Qd3//Uh2bvxJMArLrK5RHh8ZTnX9uw5hCl70jiDskrJZ2iDetixAYeAA3IRPJPwe47a1/FORBZIkWcq4oA6x9r76p+0ZUEacxezRwyF97MulRVLBbP2whNOBBLOmlj1m6tgKTfcrDYxZIAWFjgcfnACkfAgGEsDgdy6lQpZdtx8Suezkx5w86x6wC6mATUb5ARqk+eksNlIJ3ZYPHzU9tPxL0jSCgWGlEp5xkx+YU23XTuv4eCEjWbOUySGR+esiVPlW9/YIAV3xX2aeK3Aa34DYvST3XY3eOcfLzKxP7Z7jhUHAW9jFvnOiuv6E5+66BJ/xHX24VoDa0a39htLYmNOngHD8AAvn13sZFBCEHUa8iwHDNBBkCh1wPDAgoxPRKvML/6wXciVLNGFA51KsgdOkYAgXVEYxVhhrHnGexj84JExT8UI8e64ZSxvikV4YgQiA69kiaPLyBOiJV4uHTKAsZgSGdhk+3opXIoWIbkSGJ9Z48yd3jiCF2YBHPvTgL2BuUCM9fRTx7yqb58my99GfQmPSrPEBZ/oY1k9OWt+k872BDUnYFEGtpVhaORKQykq89qMwxOwUxj23pZFmub0TMT+GJ+K2SLPsEWAhV4fYFr/HrkhSSKCUVWy4uNVNL0oNbMqq8aeho/HdmM5GiJJO3YitF7nXx3B3rCPWiHXMnfjiEVJIh4GqthhH+MPxAYUom1DSdjF/YQSBEb0EUkdPTWq9f0TcwUm22H5+2ubz5/GeAIA/+nBaxwmGKsNnClaCCdUHjJSOdmvrdHRohdobzU4hHHfkCqGofygOiXVRdYIefpJzWRTn7ylbWWNeGpPUFddaBVlDp293prDoP6LdCOhIL3lIq1mPMKtebsoS5ZQe2+9wKZ7UmHeJomJTkyvnhJDrorj5cX1VmDlikqZwpn9RkOCgsIxp08INyxIJvqCEpVDpHJWgZm1Qc1T2wcTQWX29+Xut1N287M5HmdmVeDEWQzg9PCqW62K6oNiHgxT6qHHpHxIOmjgpYD3WTQybwc0wnP5I3XXyVgde0F9wJ/5u3OwYcw0I9GpsptkHc82HXOjfhYu9vEd0mIs9aeCiwWt6wSEo0xBI19joVUhhtmJZh2NjbgKm3hblTaVDai0JFfVDwxrVIfdOom/USFjFtgF9kx5oQrPgrq1MddtRbrsDgvUs3I9BB+2QyAhS+iFSws3+V1gct6kx9UGxfM7oHPT9/w8ZC1hFu1xB1jy0ffgOOwaVNJf/KLbRwY1jis8NnUddPgoVKI+JA3SiWP10WMQkBVweOm27nXpCO5c7jeGxH5KJXI5afH2TgeLctbdhQn5RwNfdH5DEmDyH3jtiVo3hXbGrbqFGXm53CnE/UzRzCm4qMMAgJyfip0CKE1SdLlbSNWhiW2yWqXA4RpVgmBGSa4BijyFYK42D6cSzlqYCrPaGPT9O6KyaXoKqGOtgw8FJ2YoaiWG/NaeDJpJqYPS62OrMFw14SwMfqoFKgY6aqc2HBZQbUB3MLrVZ6O9gJi4l1xOzcYziCAvKVPpYFRljmcQ216Wie8Mt7MgcDEz+vir56CiEp5jBYaNygBYKjQJuO0MhrXvYtXmogxJMAgJk5/5G9wc0OnZrBaC/Hzjy51jfsEpy1FpUfw9GBx9vJ4Idt/Q1AxRT7T3iz0ljx8Ws0dyHQ3kl8apLAqb8Ud5QO3DUGvAakyHREbvXMZo9oR0T8y/szmyUVf+lY6zK9x0ORDuB1Q9Ffw4EekaNOJIK+rTSEO1tdpLbVvkjZdR+nK9pV+JeybIFGEIkw4oliLoahSxq5sBEwcB5p4Xhjow61zronu2LmTxAWP3GIunB57ZlLX1wNY4SzR8xAuOVlQwMJVSfUCxXnUzwBx+rbmGiczdDXP55tvc4gwY1dwajnqNcFkBDuhugVuwFgmZOVQLw5rGVJfurS/YWkxhHmfYyLVI24WypDVqTV2QZGDXgxaRC0GjpieXcJdj8paoDKVmjtC6sUC3FIrkFpbuZTiXA6gnV7nqs8JZPu0cfrvlx/2v47g170a0m8cHadcX62xHp7lhfUA/uDpYxeNfEWiLSjxU1BaViTq6a6Qfxre+Zuj1djHeUq3XWZemJmt8/fw7FCb0IdaM6S4sQPV9HgFpHbUDmfi/nSa63rMRQm24qwUHbbFWx0Tm11Uh+65n/RaFr1EBLk4wNankXDBtt5rIhWeRmG4ogzb6tq4jeHWtD+AyMYsQZnE9AW8ck6r6iHtP8fqkuL30png2HQ01IO9Nub4hAXTGBKeBsbpR9TtQaULBX+19gqFPdMn7DIL7nVIV1ngL4NyvQOsxGoegX34tqRb7sZ43XTZaGbNKmByqYOwBHIy6w8G9S5VJf0cKi5LIAD9uTrtYK2XMrqhmv33tFyj9qNrrZVcIVutISqlBoJRdsB21o7unSqFo4Xy6jI6rC/PvB3cEzfd3Nod6hEuGm3gkbmiP6g7S4mtkfgfbHaq2qRx2Lkr5bY1LD1XLGcX5i237bVtLzYlxnXsjqbR4oMgt1BtYgLuqFvcQuggcrQDH2kmS1ur1C16f03ShJPEgYal2gigMWHUbKW3X1GpozCqSjI8Mowf/397OrufblTcRR+7Oz9hngm2HHlNK2L6AzJ+yJ33afNR2coawKrKB8K+KU9+BN1XqNoYna4B0H+I3WzPBwfPdc18E6V53pwp7W1v8PQifH1l+0vBOUTmLcyoXOqaLLP1bYF8U8vtsAK3bl++00qlApSwMuw+OWRxOo6KJCh/a5NUEOHdrwrqXRGwA6RAbURGJSyUx8sCQsUDnGmOLyBTo5MH2F5sve6Ii+vnTEeWlGDRACGzHQdbxcQ8fPL2wwZDjURUBe3cF+U7mZMw/RRzmQubblvTR6izO89tCUvv/qs013oYXz3kboRYi2E/swp0Htst9Q1VjNqBpip4Yas5VAgxamKgpWKyjUXdAzVmQYYgFJOmxdpDF3+jFA69xzA7epcOoBMJbF97Sc22+Y2qj42hCyt1ox9pyhX8R3Ytg/nB1S9VXMV5RFp/8NjwrXHFkgs6/mVu31qKJATOfsLfv7D8WEFM4QnAfW9hFu5ac1jATsGAkB/IOTtT03aFC9wSFj1Z98itxZwC0DLsPgDXxt8Nklhn4ndw3WcV48cEqQJiU4XuiS1OpaP2m/pZzVp1Q6qVgMhgDEfF+OOW8t68xJe9pbHeryotrgGVqY6C2o36Yi2Y3Qv8HrhH6H1mFTG/CsRS63DFeRNKTBviPAQJu7hPYtLUXoVsGFOip10WQCOjJNVxjZIiTw7EdPWGqiA37Ujl8gN2h0NfdNlRdF320CR0v+UFRV1OQZNddX4lkf4e4uHuZrujthCGXcRqaToU9H7Rlg0vbpKC5xAvVcBd1UTeDab9Ax67thcLvuvnoVJ/rUljjfMw4SeqaCX25hIY9vc1iLgcWuDgKCK1qZhyKYYfZKKvW+128mcpwaTy4e2psQ43qbfRWZTZOH+3eWzDcMsmDfXWB5WuKS9ZAtAqJae1WY/WIsnn8TDl/Pk7WxPBSsjUpgM7syk/j3a7b+O7eDwMHMobivn4xaAA9IMHDxwh7M/CarODLJeIdJYEXxlP6gJ/HwSJ3+igwRzf7fydq19+jbSFzjDk7+cG+3s7um60yInN1RCaSH2ZpH3GYi5uZ64AdysC4mvhdYrGF0H5oIShO5seeW6uR3twxP8M/IjPXEJ9WDkDOvX/vqIQvyqI5SpM5nwRqYbs5u1u8dY9Hue06MVzrDi6CAKZZRZOJvYbFiOxJ/xojkbs91GYXQ/hFEZ1q4LNegibPMAU5gEfMbyjlVKa49rBCbDAQle3YHra3jWSZ0bUa9IOErxBrveiloXWcJHaVIP2OCnZy36nQ+xL5Op7+QKbIvfeffJNcraEqB14yLHRENbD6r50BnmdACfKaRpx1OA3iD/3wHD0mmDwYFstJeIAr8VheqgFna8IPUo3Dtx5MwxzZRVmsCPtgpv7UE4yfLZEUX8aYy4NmbYnfnVzzLlvjWVZSwIUgGUjKpqMAOJDp+fjFuvyIXDAm4JHbXWBfrqN+MlHgUylPnVQCNrYGgtGuFhXXKYDchcooubhfghvYc4oVvT7iUSLMqmSwDlGiCoELyr1RvBYkO1KMDYeY5uGQpb4ubgyuqXmolLkVDqqvvmOehJxIooNM7dNVe+x3mfLkA6Rf1em0imBGgHkiunPE/IyeTrO+t9JyHxOjOrudHoYClZ2r1pHsKG9qOrXUvWVDht1YhPX/UD6E04s8UDqPcWKnf6aCHc8COxmjR82/UzTh8T+nbb4Gec3Tt8PJhUsnn3zTjB7hOzLM41tq33/b9HKnTMVDV6agy44iQToNBpg2TdUbNtbpxA1706SypvKIXEZEWNSd++H2g9cZ7H7HLYo+4M7h85t1e8+Kyerb3LfXAi5ggMm6LLN1/k/dXaD52Vvm2b6dic96FOgzrrq2nNFbse3L0WAMsqnDQSjc7JrG24LzKS3o8EPw0Bjt8zZUnR2bTywTudnFTnBZKcKlnc7vu3anuFD2KCSePKdUDtnRXYYeqxynUW9eYJXAKcShB7z5iORDNNbD7nvIMB1XmAigvRRuisAJFufEBJhNmcBmeVNBXQg16SgC28XqoGkNnSlzgzVZUoCJc4+HIc48YK/Z/Oj0ns6h+i1xPgM6RWRwjJYEoyvDh8DglZ73uoiK3Yo7uNODDH5SYVKXFalb9vR8qvznm3oKzjnNxwf0a3tn9r1nNyYLSsx7rqyKwJ/XZuaU9POgydlv7R79o/oDg7AGBqDmqefO309pXtxHMW+nqUvFpKzKpnicfq3QT1gMAP4JaryOc40B0O/SYt7nRxRcYnEzmKJREVTsxkLje1u7R/wKZnatDs2AAAA==",
            text: #"""
// Hermes
// SPDX-License-Identifier: Apache-2.0

import { ErrorCode, HermesError } from "./errors.js";
import { longestInterval } from "./heartbeat.js";
import { InboxTracker, SeenEntries } from "./inbox.js";
import { entryName, gapEvent, inboxEvent, violation } from "./packet.js";
import { ClockOffset, DeliveryCounter, TopicTracker } from "./statistics.js";

/**
 * @typedef {{ nickName: string, password: string } | { token: string }
 *   | { register: true, nickName: string, password: string, invitation?: string }} Credential
 */

/**
 * An inbox entry on its way to the app.
 *
 * @typedef {object} Delivery
 * @property {import("./packet.js").InboxEvent} event
 * @property {string | null} name See `entryName`.
 * @property {number} incarnation The inbox that the seq belongs to.
 * @property {number} bytes The length of the frame that carried it.
 * @property {boolean} isRepeat The app has seen this entry before, under another seq.
 */

/**
 * An instruction to the owner.
 *
 * @typedef {{ do: "send", body: any, id: number } | { do: "answer", id: number, result: any }
 *   | { do: "answerFailed", id: number, error: HermesError } | { do: "deliver", delivery: Delivery }
 *   | { do: "live", type: string, event: any } | { do: "forgetEntries" } | { do: "keepCursor", seq: number }
 *   | { do: "loggedIn", session: any, heartbeatAtMost: number | null, heartbeatPrior: number | null }
 *   | { do: "refused", error: HermesError }
 *   | { do: "kicked", error: HermesError, mayReturn: boolean, advice: any, isBreach: boolean }
 *   | { do: "shutdownAnnounced", advice: any } | { do: "reconnectAdvised", advice: any }} Effect
 */

/** Ids of packets whose answers the session itself awaits. */
const ID = { authentication: 1, heartbeat: 2, presence: 3, synchronize: 4, statistics: 6 };
/** The first id for entering rooms again, far above the ids of the app's requests. */
const firstReturn = 2 ** 50;
/** The number of remembered logins without an answer, and how long they are remembered. */
const maxStrays = 16;
const strayMilliseconds = 300_000;
/** The delay of the first upload of statistics after a login, so that it does not add to a storm of logins. */
const uploadAfterLogin = 60_000;

/**
 * The native protocol on the client's side: turns packets into effects, and keeps what must be repeated on the next
 * connection. Does no I/O; `now` is in milliseconds of any one clock, `date` in milliseconds since 1970.
 */
export class Session {
    /** @type {Credential | null} */
    credential = null;
    /** @type {number | null} The inbox's account, if it is known before the login. */
    owner = null;
    /** Whether the credential belongs to the owner, so that the login may tell the server the cursor. */
    isOwnerCertain = false;
    inbox = new InboxTracker();
    seen = new SeenEntries();
    statistics = new DeliveryCounter();
    clock = new ClockOffset();
    /** The page's state; the server pushes messages at once while it is not in the foreground. */
    appState = "foreground";
    /** @type {number | null} The longest frame that the server accepts; null if it did not say. */
    maxFrameBytes = null;
    /** @type {number[]} When each login that was given up was sent. A late one may replace a later login. */
    strays = [];
    #device;
    #isOwn;
    #statisticsInterval;
    #incarnation = 0;
    /** @type {{ since: number, upTo: number } | null} Entries of these inboxes keep their places up to this seq. */
    #carried = null;
    #isAuthenticating = false;
    #mayBeRegistered = false;
    #registerIsUnanswered = false;
    #askedAt = 0;
    #ticket = "";
    /** @type {Map<number, string>} The client ids of sends whose receipts are awaited, by packet id. */
    #sending = new Map();
    /** @type {Map<number, { room: string, user: any }>} Rooms that the app is entering, by packet id. */
    #entering = new Map();
    /** @type {Map<string, any>} Rooms to enter again on the next connection. */
    #rooms = new Map();
    /** @type {Map<number, string>} Rooms that are being entered again, by packet id. */
    #returning = new Map();
    #lastReturn = firstReturn;
    #topics = new TopicTracker();
    /** @type {Set<number>} Accounts to watch again on the next connection. */
    #watched = new Set();
    /** @type {number | null} */
    #uploadAt = null;

    /**
     * @param {object} options
     * @param {{ id: string, name?: string, platform?: string, appVersion?: string }} options.device
     * @param {(clientId: string) => boolean} options.isOwn Whether a message is in this device's outbox, or was.
     * @param {number | null} options.statisticsInterval The time between two uploads; null: none.
     */
    constructor({ device, isOwn, statisticsInterval }) {
        this.#device = device;
        this.#isOwn = isOwn;
        this.#statisticsInterval = statisticsInterval;
    }

    /** The time at which `deadlineReached` is due; null if none. */
    get nextDeadline() {
        const next = Math.min(this.inbox.nextDeadline ?? Infinity, this.#uploadAt ?? Infinity);
        return next === Infinity ? null : next;
    }

    /**
     * The app logs in, perhaps with another account.
     *
     * @param {Credential} credential
     * @param {boolean} isOwners Whether the credential can only be that of the inbox's account.
     */
    logIn(credential, isOwners) {
        this.credential = credential;
        this.isOwnerCertain = isOwners;
        // The ticket belongs to the previous account.
        this.#ticket = "";
    }

    /**
     * The connection is open.
     *
     * @param {number} date
     * @param {Effect[]} effects
     */
    connected(date, effects) {
        const credential = this.credential;
        if (!credential) throw new HermesError(ErrorCode.closed, "log in first");
        this.maxFrameBytes = null;
        this.#isAuthenticating = true;
        this.#askedAt = date;
        if ("register" in credential) {
            const { nickName, password, invitation = "" } = credential;
            this.#registerIsUnanswered = true;
            const register = { nickName, password, invitation, device: this.#description };
            effects.push({ do: "send", body: { register }, id: ID.authentication });
        } else {
            this.#authenticate("token" in credential ? { token: credential.token } : { password: credential }, effects);
        }
    }

    /**
     * The client may send requests.
     *
     * @param {number} now
     * @param {Effect[]} effects
     */
    becameLive(now, effects) {
        const interval = this.#statisticsInterval;
        if (interval !== null) this.#uploadAt = now + Math.min(interval, uploadAfterLogin) * (1 + Math.random());
        for (const [room, user] of this.#rooms) {
            this.#lastReturn += 1;
            this.#returning.set(this.#lastReturn, room);
            effects.push({ do: "send", body: { room: { room, enter: { user } } }, id: this.#lastReturn });
        }
        // The server's default is not sent.
        if (!this.#watched.size && this.appState === "foreground") return;
        const presence = { watchUids: [...this.#watched].sort((a, b) => a - b), ...this.#wireState };
        effects.push({ do: "send", body: { presence }, id: ID.presence });
    }

    /**
     * @param {"foreground" | "background" | "suspended"} state
     * @param {boolean} isLive
     * @param {Effect[]} effects
     */
    appStateChanged(state, isLive, effects) {
        if (state === this.appState) return;
        this.appState = state;
        const presence = { appState: `APP_STATE_${state.toUpperCase()}` };
        if (isLive) effects.push({ do: "send", body: { presence }, id: ID.presence });
    }

    /**
     * A packet is written: keeps what must be repeated on the next connection.
     *
     * @param {any} body
     * @param {number} id
     */
    wrote(body, id) {
        if (body.send) this.#sending.set(id, body.send.clientId);
        if (body.room?.enter && !this.#returning.has(id)) {
            this.#entering.set(id, { room: body.room.room, user: body.room.enter.user });
        }
        if (body.room?.leave) {
            this.#rooms.delete(body.room.room);
            this.#topics.forget(body.room.room);
        }
        for (const uid of body.presence?.watchUids ?? []) this.#watched.add(uid);
        for (const uid of body.presence?.unwatchUids ?? []) this.#watched.delete(uid);
    }

    /** @param {number} date */
    heartbeat(date) {
        return { body: { ping: { clientTimeMs: String(date) } }, id: ID.heartbeat };
    }

    /**
     * A packet arrived.
     *
     * @param {any} packet What `readPacket` returned.
     * @param {number} bytes The length of its frame.
     * @param {number} now
     * @param {number} date
     * @param {Effect[]} effects
     */
    received(packet, bytes, now, date, effects) {
        const { id, result, event, ephemeral, notice, kicked, pong } = packet;
        if (result) {
            if (id < 16) this.#answered(result, id, now, date, effects);
            else this.#finished(result, id, now, date, effects);
        } else if (event) {
            this.#arrived(event, bytes, now, date, effects);
        } else if (ephemeral) {
            for (const type of ["typing", "presence", "signal"]) {
                if (ephemeral[type]) effects.push({ do: "live", type, event: ephemeral[type] });
            }
            if (ephemeral.room) this.#roomEvent(ephemeral.room, date, effects);
        } else if (notice) {
            this.#noticed(notice, effects);
        } else if (kicked) {
            this.#kicked(kicked, date, effects);
        } else if (pong) {
            if (pong.clientTimeMs) this.clock.answered(pong.clientTimeMs, date, pong.serverTimeMs);
            if (id >= 16) effects.push({ do: "answer", id, result: { pong } });
        }
    }

    /**
     * The connection is gone.
     *
     * @param {number} date
     */
    lost(date) {
        if (this.#isAuthenticating) this.strays = [...this.strays, date].slice(-maxStrays);
        this.#isAuthenticating = false;
        this.#mayBeRegistered ||= this.#registerIsUnanswered;
        this.#registerIsUnanswered = false;
        this.#sending.clear();
        this.#entering.clear();
        this.#returning.clear();
        this.#uploadAt = null;
        this.statistics.uploadFailed();
    }

    /**
     * The app has taken an entry, and the store knows it.
     *
     * @param {Delivery} delivery
     * @param {number} now
     * @param {number} date
     * @param {Effect[]} effects
     */
    taken(delivery, now, date, effects) {
        if (!this.isCurrent(delivery)) return;
        this.#track((out) => this.inbox.tookUpTo(delivery.event.seq, now, out), date, effects);
    }

    /**
     * Whether the entry's seq counts in the present inbox.
     *
     * @param {Delivery} delivery
     */
    isCurrent({ event, incarnation }) {
        if (event.seq <= 0 || event.epoch !== this.inbox.epoch) return false;
        if (incarnation === this.#incarnation) return true;
        return this.#carried !== null && incarnation >= this.#carried.since && event.seq <= this.#carried.upTo;
    }

    /**
     * @param {number} now
     * @param {number} date
     * @param {Effect[]} effects
     */
    deadlineReached(now, date, effects) {
        if (this.#uploadAt !== null && this.#uploadAt <= now && this.#statisticsInterval !== null) {
            this.#uploadAt = now + this.#statisticsInterval;
            const networks = this.statistics.upload();
            const statistics = { appVersion: this.#device.appVersion ?? "", networks };
            if (networks) effects.push({ do: "send", body: { statistics }, id: ID.statistics });
        }
        this.#track((out) => this.inbox.deadlineReached(now, out), date, effects);
    }

    /**
     * The client is about to close the connection.
     *
     * @param {number} date
     * @param {Effect[]} effects
     */
    closing(date, effects) {
        this.#track((out) => this.inbox.acknowledgeNow(out), date, effects);
    }

    get #description() {
        const { id, name = "", platform = "", appVersion = "" } = this.#device;
        return { id, name, platform, appVersion, networkLabel: this.statistics.kind };
    }

    get #wireState() {
        return this.appState === "foreground" ? {} : { appState: `APP_STATE_${this.appState.toUpperCase()}` };
    }

    /**
     * @param {any} credential
     * @param {Effect[]} effects
     */
    #authenticate(credential, effects) {
        // With another account's login the cursor would acknowledge that account's entries.
        const epoch = this.isOwnerCertain ? this.inbox.epoch : "0";
        const acknowledgedSeq = String(this.isOwnerCertain ? this.inbox.taken : 0);
        const authenticate = { ...credential, device: this.#description, epoch, acknowledgedSeq, ticket: this.#ticket };
        effects.push({ do: "send", body: { authenticate }, id: ID.authentication });
    }

    /**
     * Handles the answer to one of the session's own packets.
     *
     * @param {any} result
     * @param {number} id
     * @param {number} now
     * @param {number} date
     * @param {Effect[]} effects
     */
    #answered(result, id, now, date, effects) {
        if (id === ID.authentication && this.#isAuthenticating) {
            this.#isAuthenticating = false;
            this.#registerIsUnanswered = false;
            this.#authenticationAnswered(result, now, date, effects);
        }
        if (id === ID.statistics) {
            // A permanent refusal would be repeated.
            if (result.error && HermesError.of(result.error).isTemporary) this.statistics.uploadFailed();
            else this.statistics.uploadEnded();
        }
        if (id === ID.presence) {
            for (const presence of (result.presence?.presences ?? []).slice(0, this.#watched.size)) {
                effects.push({ do: "live", type: "presence", event: presence });
            }
        }
        if (id === ID.synchronize && result.synchronized) {
            const { epoch, headSeq, oldestSeq } = result.synchronized;
            this.#track((out) => this.inbox.synchronized(epoch, headSeq, oldestSeq, now, out), date, effects);
        }
    }

    /**
     * @param {any} result
     * @param {number} now
     * @param {number} date
     * @param {Effect[]} effects
     */
    #authenticationAnswered(result, now, date, effects) {
        const [credential, session] = [this.credential, result.session];
        if (result.error || !session) {
            const error = result.error ? HermesError.of(result.error) : violation("the answer holds no session");
            if (credential && "register" in credential) {
                const { nickName, password } = credential;
                if (error.code === ErrorCode.nameTaken && this.#mayBeRegistered) {
                    // An earlier registration without an answer may have succeeded.
                    this.credential = { nickName, password };
                    this.#isAuthenticating = true;
                    return this.#authenticate({ password: this.credential }, effects);
                }
                this.#mayBeRegistered = false;
            }
            effects.push({ do: "refused", error });
            return;
        }
        if (session.token) this.credential = { token: session.token };
        this.#ticket = "";
        this.maxFrameBytes = session.maxFrameBytes || null;
        this.clock.answered(this.#askedAt, date, session.serverTimeMs);
        this.#inboxBegan(session, now, effects);
        const token = this.credential && "token" in this.credential ? this.credential.token : "";
        effects.push({
            do: "loggedIn",
            session: { ...session, token },
            heartbeatAtMost: longestInterval(session.idleTimeoutMs),
            heartbeatPrior: session.heartbeatPriorSeconds * 1000 || null,
        });
    }

    /**
     * The server continues the inbox, has another one, or has lost entries.
     *
     * @param {any} session
     * @param {number} now
     * @param {Effect[]} effects
     */
    #inboxBegan(session, now, effects) {
        if (this.owner !== null && this.owner !== session.uid) {
            // Another account logged in: what belongs to the one before is dropped.
            this.inbox = new InboxTracker();
            this.seen = new SeenEntries();
            this.#incarnation += 1;
            this.#carried = null;
            this.#rooms.clear();
            this.#watched.clear();
            this.#topics.forgetAll();
            effects.push({ do: "forgetEntries" });
        }
        this.owner = session.uid;
        this.isOwnerCertain = true;
        const { epoch, headSeq: head } = session;
        const resumption = this.inbox.resumed(epoch, session.acknowledgedSeq, head, now);
        if (resumption === "goesOn") return;
        if (resumption === "newInbox") {
            this.#carried = null;
        } else {
            // Waiting entries up to the new head keep their places.
            const upTo = Math.min(this.#carried?.upTo ?? head, head);
            this.#carried = { since: this.#carried?.since ?? this.#incarnation, upTo };
            effects.push({ do: "keepCursor", seq: head });
        }
        this.#incarnation += 1;
        this.#deliver({ type: "inboxReset", seq: 0, epoch, time: 0 }, 0, effects);
    }

    /**
     * A request of the app was answered.
     *
     * @param {any} result
     * @param {number} id
     * @param {number} now
     * @param {number} date
     * @param {Effect[]} effects
     */
    #finished(result, id, now, date, effects) {
        const room = this.#returning.get(id);
        if (room !== undefined) {
            this.#returning.delete(id);
            if (!result.error || !this.#rooms.delete(room)) return;
            // A refusal to enter again reaches the app as a kick.
            this.#topics.forget(room);
            const kicked = { reason: HermesError.of(result.error).message };
            effects.push({ do: "live", type: "room", event: { room, user: null, uid: 0, kicked } });
            return;
        }
        this.#sending.delete(id);
        const entered = this.#entering.get(id);
        this.#entering.delete(id);
        if (result.error) {
            effects.push({ do: "answerFailed", id, error: HermesError.of(result.error) });
            return;
        }
        if (entered) this.#rooms.set(entered.room, entered.user);
        const seq = result.receipt?.inboxSeq ?? 0;
        // The client's own message is also an entry, for which this device gets only the receipt.
        if (seq > 0) this.#track((out) => this.inbox.arrived(null, seq, seq, 0, now, out), date, effects);
        effects.push({ do: "answer", id, result });
    }

    /**
     * An entry arrived.
     *
     * @param {any} wire
     * @param {number} bytes
     * @param {number} now
     * @param {number} date
     * @param {Effect[]} effects
     */
    #arrived(wire, bytes, now, date, effects) {
        const { seq, expired, message } = wire;
        const to = expired ? Math.max(seq, expired.toSeq) : seq;
        // Sent by this device before the connection broke or the page was left; its receipt comes with the repetition.
        const isOwn = message?.own && message.clientId && this.#isMine(message.clientId);
        const before = this.inbox.received;
        this.#track(
            (out) => this.inbox.arrived(isOwn ? null : inboxEvent(wire, this.inbox.epoch), seq, to, bytes, now, out),
            date,
            effects,
        );
        if (expired && before < to && this.inbox.received >= to) this.inbox.noteLoss(Math.max(seq, before + 1), to);
    }

    /** @param {string} clientId */
    #isMine(clientId) {
        if (this.#isOwn(clientId)) return true;
        for (const id of this.#sending.values()) if (id === clientId) return true;
        return false;
    }

    /**
     * Before a push to a room, tells the app which earlier ones did not arrive.
     *
     * @param {any} event
     * @param {number} date
     * @param {Effect[]} effects
     */
    #roomEvent(event, date, effects) {
        if (event.kicked) {
            this.#topics.forget(event.room);
            this.#rooms.delete(event.room);
        }
        if (event.topicSeq > 0 && event.room.length <= 64) {
            const gap = this.#topics.arrived(event.topicSeq, event.topicEpoch, event.room);
            if (gap) {
                this.statistics.happened("topicMissed", date, gap.to - gap.from + 1);
                effects.push({ do: "live", type: "topicGap", event: { topic: `room/${event.room}`, ...gap } });
            }
        }
        effects.push({ do: "live", type: "room", event });
    }

    /**
     * @param {any} notice
     * @param {Effect[]} effects
     */
    #noticed({ kind, message, reconnect }, effects) {
        const advice = this.#advice(reconnect);
        if (kind === "shutdown" && advice) effects.push({ do: "shutdownAnnounced", advice });
        if (kind === "reconnect") {
            effects.push({ do: "reconnectAdvised", advice: advice ?? { notBefore: 0, window: 5000 } });
        }
        if (message) effects.push({ do: "live", type: "notice", event: { kind, message } });
    }

    /**
     * @param {any} kicked
     * @param {number} date
     * @param {Effect[]} effects
     */
    #kicked({ reason, message, reconnect, code }, date, effects) {
        const advice = this.#advice(reconnect);
        /** @param {number} number @param {string} text */
        const end = (number, text, mayReturn = false, isBreach = false) => {
            const error = new HermesError(number, message || text);
            effects.push({ do: "kicked", error, mayReturn, advice: mayReturn ? advice : null, isBreach });
        };
        if (reason === "replaced") {
            // One of this client's own logins that was given up may be the cause; each is blamed once.
            this.strays = this.strays.filter((at) => Math.abs(date - at) <= strayMilliseconds);
            const mayReturn = this.strays.pop() !== undefined;
            end(ErrorCode.replaced, "the same device logged in elsewhere", mayReturn);
        } else if (reason === "disabled") {
            end(ErrorCode.accountDisabled, "the account is disabled");
        } else if (reason === "revoked") {
            end(ErrorCode.revoked, "the login was revoked: log in again");
        } else {
            const isBreach = reason === "protocol";
            end(isBreach && code ? code : ErrorCode.kicked, "the server ended the connection", true, isBreach);
        }
    }

    /** @param {any} wire */
    #advice(wire) {
        if (!wire) return null;
        // A longer ticket is invalid: 64 bytes are 88 digits of base64.
        if (wire.ticket.length <= 88) this.#ticket = wire.ticket;
        return { notBefore: Math.max(0, wire.notBeforeMs), window: Math.max(0, wire.windowMs) };
    }

    /**
     * Turns the tracker's outputs into effects.
     *
     * @param {(output: import("./inbox.js").InboxOutput[]) => void} body
     * @param {number} date
     * @param {Effect[]} effects
     */
    #track(body, date, effects) {
        /** @type {import("./inbox.js").InboxOutput[]} */
        const outputs = [];
        body(outputs);
        this.statistics.noticed(this.inbox.takeCounts(), date);
        for (const output of outputs) {
            if (output.do === "deliver") {
                if (output.entry.type !== "gap") {
                    const [offset, time] = [this.clock.milliseconds, output.entry.time];
                    this.statistics.received(offset === null || !time ? null : Math.max(0, date + offset - time), date);
                }
                this.#deliver(output.entry, output.bytes, effects);
            } else if (output.do === "missed") {
                this.#deliver(gapEvent(output.from, output.to, this.inbox.epoch), 0, effects);
            } else if (output.do === "synchronize") {
                const synchronize = { afterSeq: String(output.afterSeq) };
                effects.push({ do: "send", body: { synchronize }, id: ID.synchronize });
            } else {
                effects.push({ do: "send", body: { acknowledge: { upToSeq: String(output.upToSeq) } }, id: 0 });
            }
        }
    }

    /**
     * @param {import("./packet.js").InboxEvent} event
     * @param {number} bytes
     * @param {Effect[]} effects
     */
    #deliver(event, bytes, effects) {
        const name = entryName(event);
        const isRepeat = !this.seen.insert(name);
        effects.push({ do: "deliver", delivery: { event, name, incarnation: this.#incarnation, bytes, isRepeat } });
    }
}

"""#
        ),
        WebFile(
            path: "/statistics.js",
            contentType: "text/javascript; charset=utf-8",
            tag: "6981959cb58c39c83c869fe8ceff1f7d",
            gzipBase64: "H4sIAAAAAAACA51ZW3PbthJ+96/YOjMpmciUnE56Wiuym+YyzUyTdGI/nBmPJ4FIyGJNkQwB2VEd/feziwVI8CLbPX5IRBDY++63C47H8IesVlLtjcdw+tfr/x78mcYyV/LgXSJznS5SWR3By1LES3nwLJrs7Y2fPIGzpYR8vZrLCooFiFzdyEqBXgoNcbHO9RSEgpXIN/T/h7O/flSwSDON25e4oLS4lCqCJ+O9uMiVhitZ6lOxKjOpYAa/TGseWZHjTg0VEk1AV2nJTJTYKGS70cs0vxxBmsMqzbJUSaSX+JQtgU90/oyOz+CnyefJZNLw2EhR4eJk4h8Tmtji5mefn09++vzzL+ZQ+2BSpQsNc6lvpMxRJCN/Txg0BZKrLlH3JF0sZCXzWMJKotFYFwFxVsRXcEOWkdqTghnM4BlxJbZ78ATeKJ2uSDxYFjewQNk1yqJkdS0rNDPTStE6SykS8g69TuQ1evVHlG5RFSuo5Nc16kcmTOh9WrGFD9jC6Yq8c+aRJca0TK5blZClyN4pbokZWhwJI1CFYbsQytjRSpEJs42DxcSJggC1RotxjLDwHCkj4vnp7St4/uvkOVKUsU6LHA4nYQSvC+SfF/Bu/HHK4oKoZNfyoFIy9eGv/5lEe2RV+a0sKoxQlEPBK+L1cbFAk8PtHuAf+fU3vSkl3N6iyPTmyEb5iO1DEeSWYHt+sSWqdPSRqqP3/AJ95cid9V2zSvO1ajllihSzDNIFrPOrvLjJI0f2EmXzNQpCKyr9VVKvqxwppSp6NEczB+FJxGLDyYmhOTWbt7U8fNYXy7pDJpF957b8VopKrOCWld1iHl/J5KWG3zct2VmpaOcpS/1fH2TpztC1dgcbxNELrDgjj8PIO+TbiXOp8iqAJ9WBU2za2Z+qU6qCuLs5eTyDCTx+7K28mPUrDG5oBKnPeEt0yNSXhif6PvjBsfz+vbb2CzzsPR7bg6F1fldojkKUuYlfj+8BOLPBU3gv9DJaZEVRBY06Y3gWhl6sw7bLYc5l0Q+6ZgsiyO+FXkIs8rygvVix1/IIily6EmC8rupa16GeFOs5kTdcTnwZA1qKGsGeNkKGRmxcOYQjmLRtagih9Q0lMVdMxibJgbWXfQ7RvCzAU668oVWznduOfOtdVK7VMuCHsC1Ce18m80u00LEPeR0+kVoic2dXm7zW1l5YZ6jBOa1e1P6wBBr+i6KCoBUaxg3e3tDIaO3gxTW07R06x/POabcIzeto3u5th1qEG6GxgUCwKco0xoo3lxssaJBi1lJYUIQYMDSBkaKVtBHe4T/iGT5eFlrL3APIlfh2ZgiiZIcTHyU/FBrLDAbaMo2XQN7BB11g1BQrhUCcAEWoqKr0GgP0JqVGAusCyLLA/Q2iWhVMwV6ZfcVaw6UoESDfp0qhSkycmDZxv5BGXQbRRVqhrLTNNEtGhpGDXvvWvMjlDQswogaHJKT2BsSceGKXgrBbkanUAJwZO5xVIr7CPT08ey/KFwrBnZqlW+aBpcEuKPm1AbXjrZH5PofEBYGukb1Gq0dlJmKTJ6QIsqQY7kLPSzYEW/5e1EHRuq9Y6i0rseulCbP6JQepIlin9qcBdV00isN3A5lbL3AVuWXlexl9i1bATkM3oJ2TrTBAGbrbcMVaBqjGyHnWiNbHJ9MbuURmQ0YI/wFvH0AnsaJCT8dOIo7a2WzGTLpFypJLJNYM2aPY2qMcyzpObHxYjrYoY+IFxDoymuE/IRDUfIXtYPVzxNN/EBCbrPWt0Oh2XmRJq6zZ01dyo3y02aUfH/c2brvVyupiUPmrAVXWxGDICbgo8Zc5VujhAPds4ejO/uot1ipJ7TV7+8hFj2m+MUwwvUzDStWC42tXIgwFNMfWwvAIeuF0n8sbaRsxMZC5MEdt6i+zLNhJO86wJDUwNVj2r1Lqw/FHjsNCUV3ZiQdV1+gmEKglzYroGFPKlrio3OjYrvMfmICp9D9P7bpar2jBK3RmndpyCM6NYPuVjCUl4f6In5N1maUxtVFuhaq5+42CiLRqdmeF0u43o8Thaed5Ui9Qc1a5B+x0VEOnkphZNRcczSo9l0JTX4bFvX5hzfRqKajMulXjG0YbXLoIG5gja9tBCo1MhchSOIIvSzPWR9eHkbXdqRY6xekxVl8MkrkqR2hCxIwJE7mA2084blTJC3pGsmTlc957MbKHjuEx5kkm5jJrgITC+73yy6v3RBwAas1PeaJpNjdvtJhnCMrzosAIy2G7BavAK6OpwT5nAF7CqSJDH1c0lhKuSht1yCLnuVFBiRFJ4ehF4wgHLp1mPtzT9YSujdqZNBOKGuL6r4fN1yzfxoh7H0C3tEU8tjrWqcM9BnUGGMqFSKjPcBCcN2nigXCHWYvB+UUL+eIOs12MeIXezbxSWF+NuCmvY/H6vFmfwf7+QIeABTqfF9/Qi7raPKxTqFWgFMzjDfZmPde0rkmay4wGyFPtXZ+4UXxXZ0Kx0KrHrs4EVoSR2dIHelcJHboVi8BsbPDK2cpRhKdY89qw6tT8YcbWD92hc/fmBXfECGdN3YIjaL3+3N4wMTtsFbvwuA5fILCTctNoJ6CwITTt6i5HpSvKh2A/GpuD0d9qP4ze0U+Ow60NvQcb3HIO+Fjf3GamtnncFH1CfbdKhd9/dsXfXyMA2DVu3+9KbwDLqeXATNgBVi1ccpjk45HFoouw2zU5zxMD4zWWnJ+7XVDflafOcVj7ylLmqP4XQ+GLvQjc4U8HcJh6Dt3oZx/aaLWDa7Tkg9rWWOfBnneCBnSKHT9irak76Dcszi8dE90V3LUaQF0OGYVcSSWkJGXz2vlT27vgDoOpHnjcmwg1E06GP5nTH25120jxYNNYaYP6ZD8vxmMcwtBfOkOZU4Kja5FhxTa1UTXNWMEVEYvgFHASxSIbs/twJkx1bY9cftP2SNTOPTa+Q6QIoZXHAar9ocmxxgDYkhvY//9TzVXNboeBR+qRZTLy75Q87s4KY1M0wzvJGjmRal/4nQElrtBqNMRrD2ELi6q9OKnH1V04/cECFjlF2pYgxxQo6DrXUmUMS9BrN2LTnkp5Q9CtlWzYBte/f4euC2mAcx7yUL/JNL8rOI+iqHMeTbyWOMRdRIpSIBAjmIcwO4ZARKaXpIsn++sEDuhC7zDsjao1udYE0rsSr2XpzT1n/X6PNxsT3mDrgG43l+NxLEuctps7Dt73Bg2bDExGw03RMOcV3/CgBNfSEwEnbXPdhRmFoeWqisHkuiltyfJWpFlHGE6ZhXlRZ0zHHPcJ7aKCqdgrSix9uqikW+yph/Niq4HUw+qOOsVjnbvrYSzsrY8f65xqbd/SbdV7AXBX6O1K0pdJ4rf+/F2zvnUzMmJAOKvuSF1bnjuJu3VVRHU6Rrame+lr6TUONCg3HTQmIbYJkkqZNxWHw1cpA1UTqUU0l42ILqda507FVTye5urymeZB+w1T4N8dEgNtDw2RYb9XQRLdRsVF3q6CHpJyOs3XcljuAQAgQbvL9x12Zb591qvzdzVVd+D0rvq+bcWGA7iRm5Q85Gx/A+BqOTP7pq03Xe/XEUT3Rl3PG8R2JxCbByo/fcvyb2IO2r2WYWuF2TcNw/6gjR8mz3ZQsuEw/0dWReceSOQbbqw/zv+WsTZh+gbnyRRrAIUitgNlYPpHgz/n3ElOsLsOdwl9C1hVDKsR69lceLCn+LqDf/fvOSYDVxwLkSnpf2QbADnljDPaOcKzps5Eg0ZkQ9nSNnsgpdaXvXfeBzzzVaDEfmYu4iv+gqNKrJarNWU8VnmJMVtfleOvyzRX/sc+g2NkL78785Zt19or7LyluXL8H2cxMjG+IgAA",
            text: #"""
// Hermes
// SPDX-License-Identifier: Apache-2.0

/** The number of answers that count; as many as NTP's filter has stages. */
const keptSamples = 8;
/** The longest round trip that says anything, in milliseconds. */
const longestRoundTrip = 30_000;
/** The year 3000. */
const latest = 32_503_680_000_000;
/** The drift between samples, in milliseconds; a larger difference means that a clock was set. */
const drift = 200;

/**
 * Estimates how far the server's clock is ahead of the device's, from requests and their round-trip times. The server's
 * time stamp lies between request and answer, so the fastest of the last answers counts (as in NTP's clock filter,
 * RFC 5905, section 10). Does no I/O; times are in milliseconds since 1970.
 */
export class ClockOffset {
    /** @type {{ offset: number, roundTrip: number }[]} */
    #samples = [];

    /** The server's clock minus the device's; null if unknown. */
    get milliseconds() {
        return this.#best()?.offset ?? null;
    }

    /**
     * The server answered.
     *
     * @param {number} askedAt By the device's clock.
     * @param {number} answeredAt By the device's clock.
     * @param {number} serverTime
     */
    answered(askedAt, answeredAt, serverTime) {
        const roundTrip = answeredAt - askedAt;
        const isSense = roundTrip >= 0 && roundTrip <= longestRoundTrip && serverTime >= 0 && serverTime <= latest;
        if (!isSense || askedAt < 0 || askedAt > latest) return;
        const sample = { offset: serverTime - (askedAt + Math.floor(roundTrip / 2)), roundTrip };
        const best = this.#best();
        // Both cannot be true: one of the clocks was set.
        const doubt = best ? Math.floor((best.roundTrip + roundTrip) / 2) + 1 : 0;
        if (best && Math.abs(best.offset - sample.offset) > doubt + drift) this.#samples = [];
        this.#samples.push(sample);
        if (this.#samples.length > keptSamples) this.#samples.shift();
    }

    #best() {
        let [best] = this.#samples;
        for (const sample of this.#samples) if (sample.roundTrip < best.roundTrip) best = sample;
        return best;
    }
}

/** The number of watched topics; beyond it, the one that was silent for longest is forgotten. */
const maxTopics = 1000;

/**
 * Notices which pushes to rooms did not arrive: within an epoch the server numbers them without gaps. Missed pushes
 * cannot be fetched. The first push of a room, and the first of a new epoch, say nothing about earlier ones.
 */
export class TopicTracker {
    /** @type {Map<string, { epoch: string, seq: number }>} The one that was silent for longest comes first. */
    #places = new Map();

    /**
     * A push arrived.
     *
     * @param {number} seq
     * @param {string} epoch
     * @param {string} topic
     * @returns {{ from: number, to: number } | null} The numbers of missed pushes before it; null if none is known.
     */
    arrived(seq, epoch, topic) {
        const last = this.#places.get(topic);
        const isSame = last?.epoch === epoch;
        this.#places.delete(topic);
        this.#places.set(topic, { epoch, seq: isSame ? Math.max(last.seq, seq) : seq });
        if (this.#places.size > maxTopics) {
            const [oldest] = this.#places.keys();
            this.#places.delete(oldest);
        }
        return isSame && seq > last.seq + 1 ? { from: last.seq + 1, to: seq - 1 } : null;
    }

    /**
     * Forgets a topic: pushes from now on are not missed.
     *
     * @param {string} topic
     */
    forget(topic) {
        this.#places.delete(topic);
    }

    /** Forgets all topics. */
    forgetAll() {
        this.#places.clear();
    }
}

/** The number of kinds of network that are told apart; a report holds as many. */
const maxNetworks = 16;
const sums = /** @type {const} */ ([
    "received",
    "duplicates",
    "gaps",
    "repaired",
    "lost",
    "within1S",
    "within10S",
    "later",
    "closed",
    "resets",
    "heartbeatTimeouts",
    "networkChanges",
    "topicMissed",
]);

/**
 * The counts of one network: `hermes.v1.NetworkStatistics` with numbers.
 *
 * @typedef {Record<typeof sums[number], number> & { label: string, fromMs: number, toMs: number,
 *   heartbeatSeconds: number, heartbeatStable: boolean }} NetworkCounts
 */

/**
 * Counts deliveries and ends of connections per kind of network, until the server has the counts. Does no I/O; dates
 * are in milliseconds since 1970.
 */
export class DeliveryCounter {
    /** @type {Map<string, NetworkCounts>} Counts that are not being uploaded. */
    #networks = new Map();
    /** @type {NetworkCounts[] | null} The counts that are being uploaded. */
    #uploading = null;
    /** The device's kind of network. */
    kind = "";

    /**
     * An inbox entry arrived.
     *
     * @param {number | null} latency Milliseconds since the server's time stamp; null if its clock is unknown.
     * @param {number} date
     */
    received(latency, date) {
        const network = this.#of(date);
        network.received += 1;
        if (latency !== null) network[latency <= 1000 ? "within1S" : latency <= 10_000 ? "within10S" : "later"] += 1;
    }

    /**
     * The inbox noticed something.
     *
     * @param {import("./inbox.js").InboxCounts} counts
     * @param {number} date
     */
    noticed(counts, date) {
        if (!counts.duplicates && !counts.gaps && !counts.repaired && !counts.lost) return;
        const network = this.#of(date);
        for (const name of /** @type {const} */ (["duplicates", "gaps", "repaired", "lost"])) {
            network[name] += counts[name];
        }
    }

    /**
     * Something happened `count` times.
     *
     * @param {"closed" | "resets" | "heartbeatTimeouts" | "networkChanges" | "topicMissed"} name
     * @param {number} date
     */
    happened(name, date, count = 1) {
        this.#of(date)[name] += count;
    }

    /**
     * The heartbeat learned for the present network; reported with the counts.
     *
     * @param {import("./heartbeat.js").LearnedHeartbeat} heartbeat
     * @param {number} date
     */
    learned(heartbeat, date) {
        // A settled interval deserves a report of its own; other changes wait for the next report.
        if (!this.#networks.has(this.kind) && !heartbeat.isStable) return;
        const network = this.#of(date);
        network.heartbeatSeconds = Math.max(0, Math.floor(heartbeat.interval / 1000));
        network.heartbeatStable = heartbeat.isStable;
    }

    /**
     * Takes out the counts to upload.
     *
     * @returns {NetworkCounts[] | null} Null if there are none, or an upload is under way.
     */
    upload() {
        if (this.#uploading || !this.#networks.size) return null;
        this.#uploading = [...this.#networks.values()].sort((a, b) => (a.label < b.label ? -1 : 1));
        this.#networks.clear();
        return this.#uploading;
    }

    /** The server has the upload, or will never accept it. */
    uploadEnded() {
        this.#uploading = null;
    }

    /** The server may not have the upload: it is repeated with later counts. */
    uploadFailed() {
        const failed = this.#uploading;
        this.#uploading = null;
        if (failed) this.restore(failed);
    }

    /** All counts that the server may not have, for the next run of the app. */
    get unsent() {
        this.uploadFailed();
        return [...this.#networks.values()];
    }

    /**
     * Adds the counts of an earlier run or a failed upload.
     *
     * @param {NetworkCounts[]} networks
     */
    restore(networks) {
        for (const old of networks.slice(0, maxNetworks)) {
            const network = this.#of(old.toMs, old.label);
            network.fromMs = Math.min(network.fromMs, old.fromMs);
            for (const name of sums) network[name] += old[name];
            if (network.heartbeatSeconds) continue;
            network.heartbeatSeconds = old.heartbeatSeconds;
            network.heartbeatStable = old.heartbeatStable;
        }
    }

    /**
     * @param {number} date
     * @returns {NetworkCounts}
     */
    #of(date, kind = this.kind) {
        let label = kind;
        let network = this.#networks.get(label);
        if (!network && this.#networks.size >= maxNetworks - 1) {
            label = "other";
            network = this.#networks.get(label);
        }
        if (!network) {
            const zeros = /** @type {any} */ (Object.fromEntries(sums.map((name) => [name, 0])));
            network = { ...zeros, label, fromMs: date, toMs: date, heartbeatSeconds: 0, heartbeatStable: false };
            this.#networks.set(label, /** @type {NetworkCounts} */ (network));
        }
        const counts = /** @type {NetworkCounts} */ (network);
        // If the clock was put back, the span must not end before it begins.
        counts.toMs = Math.max(counts.toMs, date);
        return counts;
    }
}

"""#
        ),
        WebFile(
            path: "/stores.js",
            contentType: "text/javascript; charset=utf-8",
            tag: "3633bd8d3f0b056efef8262cbd8fde27",
            gzipBase64: "H4sIAAAAAAACA61X227jNhB991cMnIfKgSO3fbTjZLNIiy622y42AVrAMLC0NLbZ0KRKUnYMV//eISnJkm9tgNWDLYlzPXNmSA0G8AvqFZrOYABPnx//vPmVJygN3nxIUVo+56iH8JCxZIk3P8bfdzqD6+sOXMNHxMzAZsksrHJjQeVW8DWCXSJkbIFDf5fimsx9Z4Cnff/CqheU4TbJtVE63JP2TL3GZNjZfme3GaY4h52a/YWJLeDJKo1+KdMqQ223sIt6ML6Dz1qtuMHbTyy7NVZzuegDk9u7uwKEYil8QZtraYAJARoTpVMTHxpKlkwu0Axh8oLbIVRm1kzklAdZm06mfeDmMddsJvB+CDOlBDLZimCteEpeN5pbhD/cb/BaWgelnV8AqSSOyCrkknLkEtPgicJbqTUJOkBCqDH8nIs5F4JklEwCusZhAUvmBVcj2HC7hK91dF/7tegWTK7XVJXgmBEihuKYQ6Y2qIEszJn/80UTzM6VXkFCoVkUIj6Jt8uygIQsOauDAz6UCFNqlouaC5R6uNcqQYoAZSiCd8BXmcAVcc3Azpe58HbxNVPakiNGCp8IGb31q7DrUCpAXgNNYHdY+cKpO5kqmDFI3ACJRb1Rx68ws5WJ5wclFQwGBceVWtouuYlLI6TpJIrO3nvGNFvBbtLwTTwp6nqXUQRfnhUV0Zo+CXKIEiWphRz7StZNXZVOSLuLzyEKhBmPx3sS9aAZb5yiQPJIJsvQqwuFwbaoQRvtXTfEi2bOvuQOrqJDb0LEpYXf2IqCgW752B2dYQWX8IHCfcX08X2fZgdPlhVDnZCrB7WMTIOvFCybvY0ntfUmVa4khTc6ZE3VtR8e3z8ycsQM3sE/IHMhagJdpeWKoxAtjI6rH4pfgPMBz27ilSoj6kL01UWancCSRFFTEPDM7vvixcPDyJaNK6ceWZ0nlEEkS2CXfkR3m0zwFbwqBfYZFhcJHqoWBsgYIrZh3JaWqMtl1OvFVjNpWGK5klGjvL04jGIPbGthdGDdsdiUXDJTchO8lHjHNBGjSUrYRD6MeIH2QYiPpEPe+3C0Qm+nDR8HLep8xSu6CQTmrv5+TE2efGE8/6tgJn55Ou1902ZubAyU7JxRex1DnjoBLjjN0XFD/h66zmFiuzB07SMYsbd7iGiDhccV2wvTBv5M1H5KNM8sbbmCzzTTW4KU4pfKwotUm7DbZq68sEUbH7gKK25kNlqFsHAtAdGumUdxVPkGdc4YqDI5S7O+Q4GlHuBuvwrnyFPF4IaV/8HPbzhqA0Mvz9ggk+U2mOhDW644xemySyLKwCixJiWNLi3P6XZsrdxlotx4tL6tvXBpINoHPbqgzmZuiO51nc+oKYJaE3r39z7Kn9xD1K2nLXh1N7CJXKF2vWam7X6rN5KDWVaR4z4mMzLak8WFVD3EpXYvTphNllEIeNckY9taPbobEZStczYCynP81nJUG+LfNGgckrwCJ/bO9uO6Dz8clKJUojLk2UIzOncjnX7TuhzuyFULUSS5sHFCbWLx9//kfNt+qOJBmatlv3hW1eSJP7tVyu3sTw6rdsijMwrUlTTpL9h112H5RyelLlS+eRXHr2h2PtCIpH02bMyhs8PBuLLXr46xM602hiTLUwq34VtH4quF3LjxSh9Q9BrYgnEZd84mo+QataH2CuPHbR8ejNElFe/1gmjV+HX7tEWK4748hq7VXNFJWHvHm3Jbruq4oj4MvrO4cl8ZdFAKnxZhz6UT2JfAlNtnOryXrPESuvx4q09rJOBPffNchn3GnxdKlaqh3z5Pz9O8QrPN5Vbub24uh3vR+Rf4Hzvgeg8AAA==",
            text: #"""
// Hermes
// SPDX-License-Identifier: Apache-2.0

/**
 * Keeps what must outlive the page: the device's id, the token, the cursor, the outbox.
 *
 * @typedef {object} Store
 * @property {() => Promise<Map<string, any>>} load Returns all records.
 * @property {(changes: [key: string, value: any][], isDurable?: boolean) => Promise<void>} write Writes all changes or
 *   none; an undefined value removes the record. Fulfilled once the store has them; with `isDurable`, once they survive
 *   a loss of power as far as the platform can tell.
 * @property {() => void} close
 */

/**
 * Keeps records until the page or the process ends.
 *
 * @implements {Store}
 */
export class MemoryStore {
    /** @type {Map<string, any>} */
    records = new Map();

    async load() {
        return new Map(this.records);
    }

    /** @param {[string, any][]} changes */
    async write(changes) {
        for (const [key, value] of changes) {
            if (value === undefined) this.records.delete(key);
            else this.records.set(key, value);
        }
    }

    close() {}
}

const recordsName = "records";

/**
 * Keeps records in IndexedDB, which survives reloads and closed tabs.
 *
 * @implements {Store}
 */
export class IndexedDBStore {
    #name;
    /** @type {Promise<IDBDatabase> | null} */
    #database = null;

    /** @param {string} name The database; one for each account that the page keeps apart. */
    constructor(name = "hermes") {
        this.#name = name;
    }

    async load() {
        const store = (await this.#open()).transaction(recordsName).objectStore(recordsName);
        const [keys, values] = await Promise.all([done(store.getAllKeys()), done(store.getAll())]);
        return new Map(keys.map((key, index) => [String(key), values[index]]));
    }

    /** @param {[string, any][]} changes */
    async write(changes, isDurable = false) {
        const durability = isDurable ? "strict" : "relaxed";
        const database = await this.#open();
        // TypeScript's library does not know the option yet.
        const options = /** @type {any} */ ({ durability });
        const transaction = /** @type {any} */ (database).transaction(recordsName, "readwrite", options);
        const store = transaction.objectStore(recordsName);
        for (const [key, value] of changes) {
            if (value === undefined) store.delete(key);
            else store.put(value, key);
        }
        return new Promise((resolve, reject) => {
            transaction.oncomplete = () => resolve(undefined);
            transaction.onabort = () => reject(transaction.error ?? new Error("IndexedDB aborted the write"));
        });
    }

    close() {
        this.#database?.then((database) => database.close()).catch(() => {});
        this.#database = null;
    }

    #open() {
        this.#database ??= new Promise((resolve, reject) => {
            const request = indexedDB.open(this.#name, 1);
            request.onupgradeneeded = () => void request.result.createObjectStore(recordsName);
            request.onerror = () => reject(request.error);
            request.onsuccess = () => {
                const database = request.result;
                const forget = () => {
                    database.close();
                    this.#database = null;
                };
                // Another page deletes the database, or the browser closed it: the next use opens it again.
                database.onversionchange = forget;
                database.onclose = forget;
                resolve(database);
            };
        });
        this.#database.catch(() => (this.#database = null));
        return this.#database;
    }
}

/**
 * @template T
 * @param {IDBRequest<T>} request
 * @returns {Promise<T>}
 */
function done(request) {
    return new Promise((resolve, reject) => {
        request.onsuccess = () => resolve(request.result);
        request.onerror = () => reject(request.error);
    });
}

"""#
        ),
        WebFile(
            path: "/tabs.js",
            contentType: "text/javascript; charset=utf-8",
            tag: "b9e271c4e8c3886e94fd0ae409e9f2a0",
            gzipBase64: "H4sIAAAAAAACA7U8a3PbNrbf/SsQtdOSHZX23f0m13GzafduZtJNJ+lO74zHc0WJsMRGIlWCsutV9d/3vAACJCg77b390IgEcHBw3g/Q5+fqH7rZanN2fq4+/Pjd/3z9tlzqyuiv3xS6asu7Ujcz9WqXL9f6679kF2dn5XZXN606qPf61702rVFHddfUWzXJzvNdmf1iJpfdJAb+elMCMG/ikl705n7fNHXzui70VJbRC2+VxmfTW7XNP+o333mz6n27qH/rzbqrN5v64cd8BcCNbu5186/3b71FOxjpLXlTFfo3XXz3tw9t3WhvrsFnQePs/KuvztRX6tv2cacLfacOvD4JDplmTIF3u7asK6O+APBVvtXXM2XapqxWU7Wplx8NPL+Ff3/IK0AHTn5UH9Z5owtZhxspNceVc1pvVLvWytAcxdupvCpUCVwp8jZf5EZfqrrScP5GaWCiypfLeg/T2nXe0mo8ufqo9c6ofJc3babmhMscUANYRpUV74sgcMGiqR+AhF+aDN6fEwXUT/B+U95rpe8BB8PQASuAbgzgVleqrWl1Df8DOPnCZLh6Ccdqaen3vPJK3UyAlkCTyVRNdkBoXS01/m7qeov/mnJV5Rv8VdVtyWNtvSuX/53vaFwbA9Sin8gpkqLJ7SUh+jMi1uEA0vOocvNR1XeE3UbnhW48zLa6XdcFo9WwwNud7x7x16ZevaG9Gr0qTasb/m32Wy3D7/Yto1UVPNY2tLIozTJvCsTMStE74JSwEamdbzaMJWCXV6puylVZzYifgF2llygVU3ou9D2Qgn+LAgBAhImsISD5qtEaOZHLMdUCzq5+1gsSuoyZyCPrnEWr2+ay454hipVAR1AjgPC3ps6LZW7a1+scpm9wZyC0rjySfmkQCVUaOF8NEjGFAzEbEOMWdNiQ1O42+VKTDMPWbVkBwVnvSNCRnZkCSWkeCdxKwxKNj7glyV6mXlUK/oUZwtOyAmooknrEnDYDYoJUhfgB8sWGTgdyWyBaD2W7BqwsJd+0ji4iCmYqAj9Vc9CWVs/xB8vfnE4xZ2bMiYWBNWTt0b+RtVluQE9E2cVY6t9ajernzOzhDJRQfVYWIIxs9JL0kt/VbB/kCS2D/CRNlt9L5g4/oS6QzVKHwET/rqr9ZnMEWSiJY18aK5AP63KjketIMFZeBsvDV7TQbstSdKUmE3lTmnc7oPqVapu9HqCQJKm6eqnu67JIb26P6ns8ONJ5XW8KMAXMSocRnarDoNGwH1AdlfS2B5tM8kHUuLO2ebMyM2DQ483tFJhp6s29nqnkPt/sNb13+ODwL6ACMEruJxxFE/0a1VRw8c70Q777xm6HU17yTENSBVKBGp1X5kHMDdOSJgAp9YOC9Za/I1ABkZdH1lpQPvWxqh8qOKkxYNGNlX6WvynqunCqLLoNUVFK/Ue2RGtsrBcpnXaXlccXmnIK9AfdflPttwvdCFTxTn3AD3kL8YfHcn5RCHAAEwEOuIoco4sDsSENRfev1byLB+YdVHKFviA/SQU0rF8SfDABYhtE+JEd9GIbbvB8YiN1+PdLbzsgMXtyJO9zNt1qJPDpbfsKiJIK5H1gIy5cQOOXWzOJ8iXS020lYz/nZcs7DvQRldHoX2eK2Q72c1cv11YxUZ2cPLMRDwVhVbfdbjTrSgnACwdrMlHHwbY/ghMpjf4GjyjUJGydddH2OF1oJER1MUz/oCh/AjcTIxKjrSPt0a3fVyyAAICHD8e4/MoCEl06awl2a1LC5rFDBkvYDQXyvMyr9xSawNu7fAPB4ZkFQf9iCAJmOhJWXloraZznBC9ZGhdMZALAwvkWYsl8CyruB7BHVdtIVmZBNLRvYEPHH98HvjzKvI4I5RIk/rFaAiBdJQItFd9IR6SwTXAX8+CBdEsu3Yr8AcRVVmSf/VKXVeKNMoIyzK+PZx3dT57SIk44NfslhC8xlM1+pxt/TxT3zDp1OETg3rsJ6OdhdL4mB37++UHmZTRwfQ0hpr7L95t2cpz315IL7UBn/AxrVpt6kW/QbAKY+3KVA9LXmRdHdDAkoBAq96PApEMyHVmZ1ZW4K9SDA6Us6kj6wPMavdSQGhQJjvShsGdDpXDvLVtQu/eQxEo6hNJ8l5eosNY9TtGMkn9sCjZmGJ+DMXA6bv8TqzATRb3JsoyRs9aPggaTpLfTAR4f0NW843Ac4c8H0PEtgB7qMMW/sMU0ot+QS0VfI7B3TmoORMlgN8LrnMgDsUuJ6U8BdhBUGdxiLVmbWlLegb9hRqN3GmxPgfmbDdnFLpZiJ1DahK7ZYDthOIBMbAp0446G5ziIhXkDdLBh7VQBlf3THG/TkLqURYWEYxfCtBOInigxBjb5urEz+nAlKft0yDabG4F9HJgOSJA4DfXda5hzOWmBPAeo/ZbInvimQ6yTIMLx3Ysr3+QfBxaehDLIRCiHnY9Z8IOqyuXHfwKXu/gZXeJD3RSd44bM4QD8hNTKd+ZLsIpYRso3gSWnDZNucPxIRFubY990K27T5x/PZuZ/6oRoMO5L9EB1de0fUULW4Hx2x0QGnzifVzq4kRXD80UPhr68Myr8nDy5mxQnbsaJ+LZeGUwd0EraKsQ49Rq9re/1d1SCANos6hosRIXECd29Yz6YxKQODNVT/Ociyo0silDnJyohOGUC3IOKxar24zcOIagSEVCLN7XBWTIIEsR36rwL9IZOTcAOYwUslzQlGFzHLsrsY8Z/URePIHHmPVnffLHRkjqDzSy3Gjlzpf568b8XFxfD4OcgqYEtnoFyXhHEDuPyTiU46ToDOdJNav0tZmxgeFsazBgM/eRpMQBEjRBAAQl5qzsY3josayWM5h5cEPhdi+V1Rkndv8qC4hAQToEpuV6WF0UCa54JbF89AU6QDCFG1cVW/W6GXHHsuH0Gv7loOMbuoRzy/q7USNvfptkSD5DYtOEZ+9rCFgZmKwim4p6NAjUPB+QwR5jgTyaUjE1Sn+SSENjaTNbL/jKz24A9SC7SVPWSo4HaYt3ZBmTAFqlrYuj2VNYRarRE7wNKRqpPXigk4QxquJEqd8lFJgx6YJQkQnJCqXOs6soLdnzrgCWrZP75oQt/j+f2CVLAuSdtUvymRMVb7AXOEGpCmpN40QYim6QeEFhuRYIKVN1cvS3bxK+BQ4ZMMwYocOmI43hJxJJESM9yFgRJlv9o9S3qdQV2mggJ2ySRRaxeuMQ3nd0IS8i+gpylrHTRm3P0no8D07urwYxC+AEyDdnxWoP1ngTTmEEuV89BLm82WIWmk98OAMZcQDiCGbSrISWupZQEuVvG7yGeTWAfP2asIdmgKVYpcXzUHf/sRDNnuUTVQFnBojlkOm25UXP2S6NBjlV1lKvx9JvLI4G/ZqHsmwexlDGJsSXTiBCgUXnhZaBpVEgCY9GL+mHTnmRERBMTjAa4QzVoRPHVom7a1+5tH7bNNrmOnO32xhrYDlKWI4xA9Xrp9ADdzHp4JB5mOty6mvlQ+ZU6jivNEzQZZwadJsimh+eTd57epZE9junwbGJzIt6sM0P0i8sRmJVMiA1si9QXX4iYJAOj1HNqYtsl7Bo37lLR6omCbU/4OdIgdBv2MDqrwYPXYVzXCz+EjJ0vdLQOvCDTemBTGn23R5YxryjKQ1Z6TfDE9cYz2z+bUK4ovZnc9tUmacTH2qCYOjfcTgNzMwyIxblEAkopNbmC0pR7caJdYac86QpS5P3mKQWggWEc5RKTPMhyqNJ3UK7uIiAEhamYYYN2eMYyEJh+cvJCAOz2rkGK1EKDxDDF1BZyFWpuZWcRM8XSlVoVk57+QBb4GMCHdyiJL264RMst6N0O+HKbldVysy+0YRdBFd2sNOmoLMZFVar5gAHEJQEGQi3wwxysTYWrCbUoI8Yl5jtpLiytKBl2kOh1QNZB2MMV8fEJBEpwiftyT594P9Cm7mZA6p2QhqfSr/MsHFVp7ehuk0MwyFPSOKG4hIgBC2E3gNRN4PE4FGKli3qC9XaIcZE19DJAKSgoeo0auwlXEG3BcQsjHsI39DOzVSfB9TbtZWssm2B1rQjbXoAjrC0fxDOMDk9Ic+s9hONDQwZ4S5HKxrsRa6SxxxleBVEP65qt01RCmweEWK0MX0LpGi/d3gMr9YSlJ53ml+kgkOhUEtZHmNWf6Xordha/6E3z2y19ql8ObKxrTxKoqdessebzdNhL9CPLPAJn2tWyo4KlYslkL3qENNuyomM2sHnADbCbxN4rL2+BRwwDymLQjbD3BQZDnMO4xAIvP1xZkEHmTuyVTUf4+1kLokfheugeukqsywUX+g7d2zKHRBpbf3u8/wAZ4HYPR4OMHLzIDoOO9gGcO+aD+I5yiayf3dXUpDzhz1259y1MFb9OTW+8fRIWhANHPxZF2NsOfMtB+in8inN5W9FAY4BTbv7rlgbId04J47hVvsGKBMax4Qa3XdhDFxhspaUozY4sCS/zF43A54IT1Zo8oFRUskDzFSonl7hmrtRFS0BPjj2JCEs+pvy37sOxFSOE5SpGM6/NI4tvPegR/aDYFws0naWiDfqVHYeU9f8cGHNDF/gRGbMRRHqqLPV0XWgsH2S29EfpasyReDWeLNI9iDBXJOQCTv9f5ow2GIsljZRK/Omw+Q9lm1gh79/JGpbyuLAaUyF3BclSYRBpfYpCPZ/1CObPikWQP5xCMKYEn1l/bAMLvA6lC1nuR4873YCh2Lq4ogfcO77GBCDmHxHoZKqGqJ2g2GtyAKZzADmZ5tx81EXvzugTZRdY9v+ggQdF8e013UqT8h4/qGNPNYVFjpD5YpxBvYAqkuOH/PNcUfMYU1+5RtvlQPwiRc43EOyN6+2+Mvsd3pFE5Z1XtfVknx/4R1BQtfuNeTuJzdv80byp3oPnYDKQE7y45V6FS/WEtuAYjrZ9G9KnhXW6pavB45d7B0dW12H0pWaDTK/bgjBwaTFveMOAbhNwUT3Vt+e/eea15NsoQ8ZifM+EO9r4SZZPJTQuYAiUrUkf4lDkSiVDkak+lBG1/GfdakwaStiB7zZjWwBvNlPP6dNVkcRaJGWobdLQPAaRohRUsDfB2yICjJL0HFHOstA9DkRP9uxbxxfyXvpzKLvdK+m4CRGjVS8iylWvZLDCvh4DYVHHxljv/qTr7cm8oD1oAZkeoCn3h7FBBz8GxpjMPU6QlhvOIW3EdxyT2b5b0J5hx99NCpGwTUb/QINGnkecsaCNLh11V4n9C0eRQhhawSmX0DArw2m9iBPNJBkeaUM4s2N9XawIE1O3o0c9BxRvkD4TJgWuP+WLBLGNxhN0HZW4iVOmdJoMX8ZjGNezeBJLcrXPw9L6Iw8D65XogSyctME4Pojeaoo5fJ4uLn/G4CSyoBHw++Hln6eOJQDHWCjBi7cPn4CxfgI2F95I0U8RTcpjdDX2Kqg4cX2NduQi23gZR/Je/Nokv2vFnpHR6t0n9r+KQFdHF4sH3ob2HLaKg7pg1+HkZ+YoF7FCxLz4bSm9MbeBUHRQRIwRlMshTxI0qPwQdHqIKEBX9OFp/ZJPtOwjwjAo+pyq+vEZ/WJfrMnyKfW/WIWuZxXGXC1+TWOLsYFg8H6zrmFOgbHctmQP+EmtSN8m0449z0kFVRYCKWgfzp5byY4VsEMR8wE/N336FPRj+4xetuCqcRrKJq25HFsh37ylfVE9uUqq22kkYudvqXDvvbFboH36/Xc1HJJg16tRWOkVJ81L3N3JUYW3y9AlhWtC3oSZeFcofA4X/0EfNeb2IzH6LNF9WWSt3VTtqw0QEdvr6xw/qLQlQWzES5FQeDom5SOiIHmY3w6JxBlG/yrfM0xJoCnaiDCzs3f0mRuYGd06Ljz9gYQFAxPUS3WB1pLmeFVWBJLxSxjFid8EQ/BmWG/tZ/idGbYUtl2qFMLZatWu+0LIGc/ohZTojaOgr92/T5JGZcerPnoftsQxTQUpGRj0sjxCxjgg5B9eBf6U8syphP8ocU1oeXpFFQEgS9VxKHx4RrzbehXUrlZSuxpaUBoWRe/NIEvCWZ1Avc5GKnV8VWBJX3/zb7lSbh8ptX6F4cogwfBgM9c5H32KzgnHhSe/DpTyucsA70D/+3C8YxwZ2ZADUpjHpfYGlkf0YX2d/fegqB4pqyBICaJS98HseP0xziT7kcNjFtzHGA8NQgtnv+Bw37ihF5aX8aKfreKG12Zx3Q+8jLv9jv8Yqcxcz+dEta5rLYqFbvtf/2XqFX/w7u7zydfsarfHr4Mf8kdJ6rkRifcJ8cvpnHJ7XaEjAJBm3XV64na/S5Z6ccDg4tdB5bsd3ip9V23AUIUaiUSDYfHAewN0Yzcby0AG95L9uPhE/bxLBslU9dCJiVOskSabxUD3v6kKBMoD1i+CdIiNdfS6DLYrDHurTjdMKZeekjzMfCJEosRB6htcr9FIM/76lb81gkBh1UBCX8hX02ieQZ0xduBPOP3vpz3YA1tsPxjt2lF8YvfN0WWMYuJzIVZ7wdOti+0TkTchAVNCynoLnpZJDnaP/iyGE8DuXBMsY/rPCui5yJcf5TF+qQUZ9bo7bk/UZidQsHPSE9r/97qhvwfAJXq6L8za6t3VfUZN0P/CGKsnVK2KmTHGdp0bnoLUDm42xiWWv123FwOH94TzxXEevwvo7+pV0kL9HHZTUeA8ZyLls1gPzdXp7JnSfvMFK5Z+57HfhiULxAVz/GTrVOvsZE3J8fjo/jTGKxDW3aP7RE0+PaQ/HDFjp2ogRF+C7HA1WdULdGbG/vGGwDqT+pwFNV58T3+R4W5fca89KG0ztZBCXJIHt9DmIGJA1+/7Ht3G8BjMgGJdTJVzZV0QI5cNKa6P9Vf8ECYomfPNLBqWmggHTbE9XKjpQeD4MePwr38M0GryvX6MGBT5M1ukV4LDJfDoP8fFJzxFSAAA",
            text: #"""
// Hermes
// SPDX-License-Identifier: Apache-2.0

import { Requests } from "./api.js";
import { HermesClient } from "./client.js";
import { ErrorCode, HermesError } from "./errors.js";
import { makeID } from "./outbox.js";
import { followPage, serverURL } from "./page.js";
import { IndexedDBStore } from "./stores.js";

/**
 * @typedef {import("./client.js").ClientOptions & { name?: string, locks?: LockManager }} SharedOptions
 *   `name` names the shared client and its database; one for each account that the page keeps apart. `locks` stands in
 *   for the browser's.
 */

/** The live events that are passed on to the other tabs. */
const liveEvents = ["typing", "presence", "room", "signal", "notice", "topicGap", "session", "storeError"];
/** What other tabs may ask of the leader. */
const methods = ["request", "notify", "logIn", "register", "resume", "logOut", "send", "retry", "discard"];

/**
 * One client for all tabs of an origin: one connection, one device, one outbox.
 *
 * The tabs agree on a leader by a Web Lock. The leader has the connection; the others ask it over a BroadcastChannel.
 * When the leader's tab is closed, another one takes its place and continues from the store. Every tab gets every
 * event. An entry of the inbox counts as taken once the leader's handlers are done with it.
 *
 * It has the requests, events, `state`, `session` and `outbox` of a HermesClient.
 */
export class SharedClient extends Requests {
    #id = makeID();
    #options;
    #name;
    #locks;
    #channel;
    /** @type {HermesClient | null} This tab's client while it leads. */
    #client = null;
    #leader = "";
    #isOpen = true;
    /** @type {(() => void)[]} Ends the holding of this tab's locks. */
    #releases = [];
    /** @typedef {{ method: string, args: any[], resolve: (value: any) => void, reject: (error: any) => void }} Call */
    /** @type {Map<string, Call>} Calls without an answer. */
    #calls = new Map();
    /** @type {Map<string, any>} The last known messages of the outbox, by client id. */
    #entries = new Map();
    /** @type {Map<string, any>} The rooms that this tab is in. */
    #rooms = new Map();
    /** @type {Set<number>} The accounts that this tab watches. */
    #watched = new Set();
    /** @type {any} This page's state, see `followPage`. */
    #page = null;
    /** @type {Map<string, any>} The tabs' pages, as the leader knows them. */
    #pages = new Map();
    /** @type {Map<string, Set<string>>} The tabs in each room, as the leader knows them. */
    #members = new Map();
    /** @type {(() => void)[]} Called when this tab has a handler of entries. */
    #handlerWaiters = [];
    /** @type {{ seq: number, epoch: string }} The last entry that this tab got. */
    #last = { seq: 0, epoch: "" };
    /** @type {Promise<void>} The handling of the entries that the leader passed on. */
    #handled = Promise.resolve();
    /** @type {() => void} */
    #unfollow = () => {};
    /** @type {any} */
    state = { is: "idle" };
    /** @type {any} */
    session = null;
    canResume = false;

    /**
     * Opens the shared client; resolves once there is a leader.
     *
     * @param {SharedOptions} options
     * @returns {Promise<SharedClient>}
     */
    static async open(options) {
        const shared = new SharedClient(options);
        await shared.#join();
        return shared;
    }

    /** @param {SharedOptions} options */
    constructor(options) {
        super();
        this.#options = options;
        this.#name = `hermes/${options.name ?? "default"}`;
        this.#locks = options.locks ?? globalThis.navigator?.locks;
        this.#channel = new BroadcastChannel(this.#name);
        this.#channel.onmessage = ({ data }) => this.#received(data);
        this.outbox = {
            /** The unsent and the failed messages, in the order of sending. */
            entries: () => [...this.#entries.values()],
            /** See `Outbox.send`. */
            send: (/** @type {any} */ content, /** @type {any} */ to, /** @type {any} */ sendOptions = {}) =>
                // The id is made here, so that a call that is repeated to another leader is the same message.
                this.#call("send", [content, to, { clientId: makeID(), ...sendOptions }]),
            retry: (/** @type {string} */ clientId) => this.#call("retry", [clientId]),
            discard: (/** @type {string} */ clientId) => this.#call("discard", [clientId]),
        };
    }

    /** Whether this tab has the connection. */
    get isLeader() {
        return this.#client !== null;
    }

    /**
     * See `HermesClient.logIn`.
     *
     * @param {{ nickName: string, password: string } | { token: string }} credential
     */
    logIn(credential) {
        return this.#call("logIn", [credential]);
    }

    /**
     * See `HermesClient.register`.
     *
     * @param {{ nickName: string, password: string, invitation?: string }} account
     */
    register(account) {
        return this.#call("register", [account]);
    }

    /** See `HermesClient.resume`. */
    resume() {
        return this.#call("resume", []);
    }

    /**
     * Logs out in all tabs.
     *
     * @param {{ removeDevice?: boolean }} options
     */
    logOut(options = {}) {
        return this.#call("logOut", [options]);
    }

    /** Takes this tab out; the others go on. */
    async close() {
        this.#unfollow();
        await this.#leave();
        this.#channel.close();
    }

    /** @override */
    request(/** @type {any} */ body, isRepeatable = true, timeout = 30_000) {
        const { room, presence } = body;
        if (room?.enter) this.#rooms.set(room.room, room.enter);
        if (room?.leave) this.#rooms.delete(room.room);
        for (const uid of presence?.watchUids ?? []) this.#watched.add(uid);
        for (const uid of presence?.unwatchUids ?? []) this.#watched.delete(uid);
        return this.#call("request", [body, isRepeatable, timeout]);
    }

    /** @override */
    notify(/** @type {any} */ body) {
        this.#call("notify", [body]).catch(() => {});
    }

    /** @override */
    handlersChanged(/** @type {string} */ name) {
        if (name === "entry") for (const resolve of this.#handlerWaiters.splice(0)) resolve();
    }

    /** Takes part in the election, and resolves once there is a leader. */
    async #join() {
        this.#isOpen = true;
        // The leader waits for this lock to learn that the tab is gone.
        await this.#hold(`${this.#name}/${this.#id}`);
        const led = this.#hold(this.#name).then(() => this.#lead());
        led.catch((error) => this.emit("storeError", error));
        const known = new Promise((resolve) => {
            const remove = this.on("leader", () => {
                remove();
                resolve(undefined);
            });
        });
        this.#post({ type: "hello" });
        await Promise.race([led, known]);
        this.#unfollow();
        this.#unfollow = followPage(serverURL(this.#options.server), (now) => this.#conditionsChanged(now));
    }

    /**
     * Waits for a lock and holds it until `#leave`.
     *
     * @param {string} name
     * @returns {Promise<void>}
     */
    #hold(name) {
        return new Promise((resolve, reject) => {
            if (!this.#locks) {
                resolve();
                return;
            }
            const controller = new AbortController();
            this.#releases.push(() => controller.abort());
            this.#locks
                .request(name, { signal: controller.signal }, () => {
                    resolve();
                    return new Promise((release) => this.#releases.push(() => release(undefined)));
                })
                .catch((/** @type {any} */ error) => error.name !== "AbortError" && reject(error));
        });
    }

    async #leave() {
        this.#isOpen = false;
        const client = this.#client;
        this.#client = null;
        await client?.close();
        for (const release of this.#releases.splice(0)) release();
        this.#refuse(() => true, new HermesError(ErrorCode.closed, "the client was closed"));
    }

    /** This tab leads from now on. */
    async #lead() {
        const { name = "default", store = new IndexedDBStore(`hermes/${name}`) } = this.#options;
        const client = await HermesClient.open({ ...this.#options, store, followsPage: false });
        // This tab may have been closed meanwhile.
        if (!this.#isOpen) return client.close();
        const wasOn = !["idle", "stopped"].includes(this.state.is);
        this.#client = client;
        this.#members.clear();
        client.on("entry", async (event) => {
            this.#post({ type: "event", name: "entry", event });
            await this.#handled;
            await this.#entry(event);
        });
        for (const event of liveEvents) client.on(event, (value) => this.#share(event, plain(value)));
        client.on("outbox", (entry) => this.#share("outbox", entry));
        client.on("state", () => this.#share("state", plain(client.state)));
        this.#entries = new Map(client.outbox.entries.map((entry) => [entry.clientId, entry]));
        if (wasOn && client.canResume) client.resume().catch(() => {});
        this.#announce();
        this.#newLeader(this.#id);
    }

    /** Tells the other tabs who leads, and how things stand. */
    #announce() {
        const client = this.#client;
        if (!client) return;
        this.state = plain(client.state);
        this.session = client.session;
        this.canResume = client.canResume;
        const { state, session, canResume } = this;
        this.#post({ type: "leads", state, session, canResume, entries: client.outbox.entries });
    }

    /** @param {string} id */
    #newLeader(id) {
        const isOther = this.#leader !== id;
        this.#leader = id;
        this.emit("leader", id === this.#id);
        if (!isOther) return;
        this.#tellPage();
        // Whether the leader before carried out what must not happen twice is not known.
        const lost = new HermesError(ErrorCode.connectionLost, "the tab with the connection was closed");
        this.#refuse(({ method, args }) => method === "request" && args[1] === false, lost);
        for (const [call, { method, args }] of this.#calls) this.#dispatch(call, method, args);
        for (const [room, enter] of this.#rooms) this.#again({ room: { room, enter } });
        if (this.#watched.size) this.#again({ presence: { watchUids: [...this.#watched] } });
    }

    /** @param {any} body */
    #again(body) {
        if (this.state.is !== "idle" && this.state.is !== "stopped") this.#call("request", [body]).catch(() => {});
    }

    /**
     * @param {string} method
     * @param {any[]} args
     * @returns {Promise<any>}
     */
    #call(method, args) {
        return new Promise((resolve, reject) => {
            if (!this.#isOpen) {
                reject(new HermesError(ErrorCode.closed, "the client was closed"));
                return;
            }
            const call = makeID();
            this.#calls.set(call, { method, args, resolve, reject });
            this.#dispatch(call, method, args);
        });
    }

    /**
     * @param {string} call
     * @param {string} method
     * @param {any[]} args
     */
    async #dispatch(call, method, args) {
        if (this.#client) this.#answered(call, await this.#perform(this.#id, method, args));
        else this.#post({ type: "call", call, method, args });
    }

    /**
     * Carries out what a tab asked of the leader.
     *
     * @param {string} tab
     * @param {string} method
     * @param {any[]} args
     * @returns {Promise<{ value?: any, error?: any }>}
     */
    async #perform(tab, method, args) {
        const client = /** @type {any} */ (this.#client);
        try {
            if (!methods.includes(method)) throw new HermesError(ErrorCode.unsupported, `no method ${method}`);
            if (method === "request" && this.#staysInRoom(tab, args[0].room)) return { value: {} };
            const target = ["send", "retry", "discard"].includes(method) ? client.outbox : client;
            const value = await target[method](...args);
            if (["logIn", "register", "resume", "logOut"].includes(method)) this.#announce();
            return { value: plain(value) };
        } catch (error) {
            return { error: plain(error) };
        }
    }

    /**
     * Notes which tabs are in a room.
     *
     * @param {string} tab
     * @param {any} request
     * @returns {boolean} Whether the tab leaves a room in which others stay.
     */
    #staysInRoom(tab, request) {
        if (!request?.enter && !request?.leave) return false;
        const tabs = this.#members.get(request.room) ?? new Set();
        if (request.enter) this.#members.set(request.room, tabs.add(tab));
        else if (tabs.delete(tab) && tabs.size) return true;
        if (!tabs.size) this.#members.delete(request.room);
        return false;
    }

    /** @param {any} data */
    #received(data) {
        const { type, from } = data;
        if (type === "hello" && this.#client) {
            this.#announce();
        } else if (type === "page" && this.#client) {
            this.#watchTab(from);
            this.#pages.set(from, data.page);
            this.#conditions();
        } else if (type === "call" && this.#client) {
            this.#perform(from, data.method, data.args).then((answer) =>
                this.#post({ type: "answer", call: data.call, answer }),
            );
        } else if (type === "answer") {
            this.#answered(data.call, data.answer);
        } else if (type === "event" && !this.#client) {
            const entry = () => this.#entry(data.event).catch(() => {});
            // One after the other, as the leader's handlers get them.
            if (data.name === "entry") this.#handled = this.#handled.then(entry);
            else this.#changed(data.name, data.event);
        } else if (type === "leads" && !this.#client) {
            this.state = data.state;
            this.session = data.session;
            this.canResume = data.canResume;
            this.#entries = new Map(data.entries.map((/** @type {any} */ entry) => [entry.clientId, entry]));
            this.#newLeader(from);
        }
    }

    /**
     * An event of the leader's client: for this tab and the others.
     *
     * @param {string} name
     * @param {any} event
     */
    #share(name, event) {
        this.#post({ type: "event", name, event });
        this.#changed(name, event);
    }

    /**
     * @param {string} name
     * @param {any} event
     */
    #changed(name, event) {
        if (name === "state") this.state = event;
        if (name === "session") this.session = event;
        if (name === "outbox") {
            if (event.status === "sent" || event.status === "discarded") this.#entries.delete(event.clientId);
            else this.#entries.set(event.clientId, event);
        }
        this.emit(name, event);
    }

    /**
     * Hands an entry to this tab's handlers, unless it had it before its leader changed.
     *
     * @param {any} event
     */
    async #entry(event) {
        const { seq, epoch, type } = event;
        if (type === "inboxReset") this.#last = { seq: 0, epoch: "" };
        if (seq > 0 && epoch === this.#last.epoch && seq <= this.#last.seq) return;
        if (this.#client && !this.handlers("entry").length) {
            await new Promise((resolve) => this.#handlerWaiters.push(() => resolve(undefined)));
        }
        for (const handler of this.handlers("entry")) await handler(event);
        if (seq > 0) this.#last = { seq, epoch };
    }

    /**
     * @param {string} call
     * @param {{ value?: any, error?: any }} answer
     */
    #answered(call, { value, error }) {
        const waiting = this.#calls.get(call);
        this.#calls.delete(call);
        if (error) waiting?.reject(new HermesError(error.code, error.message, error.retryAfter));
        else waiting?.resolve(value);
    }

    /**
     * @param {(call: { method: string, args: any[] }) => boolean} fits
     * @param {HermesError} error
     */
    #refuse(fits, error) {
        for (const [call, entry] of this.#calls) {
            if (!fits(entry)) continue;
            this.#calls.delete(call);
            entry.reject(error);
        }
    }

    /** @param {any} message */
    #post(message) {
        if (this.#isOpen) this.#channel.postMessage({ ...message, from: this.#id });
    }

    /**
     * Tells the leader this page's state. A page that the browser puts away leaves, and joins again when it is shown.
     *
     * @param {any} conditions
     */
    #conditionsChanged({ app, isOnline }) {
        if (app === "suspended") {
            this.#leave();
        } else if (this.#isOpen) {
            this.#page = { app, isOnline };
            this.#tellPage();
        } else {
            this.#join();
        }
    }

    #tellPage() {
        if (!this.#page) return;
        this.#pages.set(this.#id, this.#page);
        this.#post({ type: "page", page: this.#page });
        this.#conditions();
    }

    /** The app is in the foreground while any of its tabs is. */
    #conditions() {
        const pages = [...this.#pages.values()];
        if (!this.#client || !pages.length) return;
        const app = pages.some((page) => page.app === "foreground") ? "foreground" : "background";
        this.#client.setConditions({ app, isOnline: pages.some((page) => page.isOnline) });
    }

    /**
     * Forgets a tab once it is gone.
     *
     * @param {string} tab
     */
    #watchTab(tab) {
        if (this.#pages.has(tab) || !this.#locks) return;
        this.#locks.request(`${this.#name}/${tab}`, () => {
            this.#pages.delete(tab);
            for (const [room, tabs] of this.#members) {
                if (tabs.has(tab)) this.#perform(tab, "request", [{ room: { room, leave: {} } }]);
            }
            this.#conditions();
        });
    }
}

/**
 * A copy that a channel takes: errors become plain objects.
 *
 * @param {any} value
 * @returns {any}
 */
function plain(value) {
    if (value instanceof Error) {
        const { code = 0, message, retryAfter = null } = /** @type {any} */ (value);
        return { name: value.name, code, message, retryAfter };
    }
    return value?.error instanceof Error ? { ...value, error: plain(value.error) } : value;
}

"""#
        ),
        WebFile(
            path: "/transport.js",
            contentType: "text/javascript; charset=utf-8",
            tag: "56a1ca494b0fa580ef8b256c7aaf8448",
            gzipBase64: "H4sIAAAAAAACA51W227jNhB991fMpvsgBYrsFO22sJG9oBe0xaIp4BQtUBQxLY0ibSRSICk7hqF/75DUXcm2qB8SWzOcOTNz5ojLJfyEskC1WC5h+9v3f159zCLkCq9+jpHrLMlQruFDyaIUr74MV4vF8vIS7lIEVe1LKbSIRA46ZRqYelSQCAm/bG9/DeFyuYgEV3rkeAMXqU0XHq7DT0rwi00XMBf8AclfVLqsdBMTFMoDSijYCXJkB4SKS2RxABmH/UlTpD5TwZ5+J+hcU57rN3AJ1/err769//qbN5vGg/5yjPRdViClMW6r+9VqtXFl3XKEP3C/FdEjUm6TXpNnACKBY5pFKXCh04w/QKYgRSZjYPwEhZAIgkcImTaWKBcKY4sLn0ohKW3OlII7ybiyv88LoM8Xlcw37lvBHrH5igcqQLkfBtR7fSoRzpSoNhGtj3IIb4BXef55V1OApPoaH/ufOvO+ZJIVcFZaUj01EJSpyYbp2vGdK4Hm5IrRom0mHDOdhtPTYv+JbDW4cqZWz4ebt3AQWdx6hKJEjvHMMWaarWnoj1wc+fyUxAizwzPniCRErzW4AgMCG+Oa+lXsUc7DII8xdtW5ojLBwT6k4Ut6WOWxGT7sadIW6AZ2JuSuTQxm8pazRBZt20QsgITQoI2xgiwxBOFo+HxkygZq++amZUkqq0gL6dFEgkn7gwau3xDIfCio92rs5lN+KY6U6Qh3xIgfpKR4FwSKeEoouRiw3E5zDaWZqSD+M2XRi9K2oPO78DddSloBFRryEgE7CvcGw2WyjDFNnVwh5Dake+1oavriDWt0u3tuOh9AO/TAjQhqijMM2yfL0WzkLZ0jl4TlCjeTqAnLTB0NX+jbLmLcTLplNxH99bkrud5Z8ti8zZkAVrPm2K2jYApbrfFMomAiQMNz8jSouMfXrzpNs2+w1yEK4K+Bwv49CNnD6YK4L2MX9ywUXLg2ud0cY7FMa/tIDMXNzByRPMu22EEX/Lmrm6M3sdQvwKK3hWIPhlLeQOTO4JTBCHBt5A7cE6gt/JYiVj/8FyK7FZ3GHSqF4dpQR7pUxqk1upQv9etdQ5adfkZdwHt9NqFq4pgLVvs7J1Y+rC05h22qIWKaXkMempX2J0OiN/hHpg1oJZwU2ZQsz4mLKS12kvFMpZQ1o9VTGstw8T8m+CLDHXEs5q3tVgPTH29IPdz1z7ySND7pziZRV5IrOO+FIJi8hh/NNhv5M0U2twR7QzDvJgFFRX1yd4WxxtL9IPZM7LnCdGsy3JrNSGrds3ehiXvaamo3vLqha4QPDuFkOfoj4b5KEhLg+EMhKrqhvO1vK93ZiUA1B3vAvWmWrGmnZfRYO/99qP+p+ImQ9BeP7iXkbG0xszI6fXlmsWcbOQ7fmS2feomqZy5N/W1P6sU/d8IY0eAKAAA=",
            text: #"""
// Hermes
// SPDX-License-Identifier: Apache-2.0

/** The subprotocol that asks for JSON. */
const subprotocol = "hermes.v1.json";
/** The longest output that a server may leave unread, in bytes. */
const maxUnsent = 16 * 1_048_576;
const connectTimeout = 10_000;

/** One WebSocket at a time, of which nothing is heard any more once it is closed. */
export class Transport {
    #url;
    #make;
    #events;
    /** @type {any} */
    #socket = null;
    /** @type {any} */
    #timer;

    /**
     * @param {string} url
     * @param {any} WebSocketClass The class to connect with.
     * @param {object} events
     * @param {() => void} events.opened
     * @param {(data: unknown) => void} events.received
     * @param {(reason: string, code: number) => void} events.ended The connection ended, or could not be opened; `code`
     *   is that of the close frame, or 0 if it never was open.
     */
    constructor(url, WebSocketClass, events) {
        if (!WebSocketClass) throw new TypeError("there is no WebSocket class: pass one as the option WebSocket");
        this.#url = url;
        this.#make = WebSocketClass;
        this.#events = events;
    }

    open() {
        const { opened, received, ended } = this.#events;
        let isOpen = false;
        const fail = (reason = `cannot connect to ${this.#url}`) => ended(reason, 0);
        this.#timer = setTimeout(fail, connectTimeout);
        try {
            const socket = new this.#make(this.#url, [subprotocol]);
            this.#socket = socket;
            socket.onopen = () => {
                isOpen = true;
                clearTimeout(this.#timer);
                opened();
            };
            socket.onmessage = (/** @type {{ data: any }} */ { data }) => received(data);
            socket.onclose = (/** @type {{ code: number, reason: string }} */ { code, reason }) =>
                isOpen ? ended(`the connection ended (${code} ${reason})`, code) : fail();
        } catch (error) {
            // Later, so that the caller has finished its step.
            clearTimeout(this.#timer);
            this.#timer = setTimeout(() => fail(String(error)), 0);
        }
    }

    /**
     * @param {string} text
     * @returns {boolean} False if the server leaves too much unread.
     */
    send(text) {
        const socket = this.#socket;
        if (socket?.readyState !== 1) return true;
        if (socket.bufferedAmount > maxUnsent) return false;
        socket.send(text);
        return true;
    }

    close() {
        clearTimeout(this.#timer);
        const socket = this.#socket;
        this.#socket = null;
        if (!socket) return;
        socket.onopen = socket.onmessage = socket.onclose = null;
        socket.onerror = () => {};
        socket.close();
    }
}

"""#
        ),
    ]
}
