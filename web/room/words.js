// Hermes
// SPDX-License-Identifier: Apache-2.0

const english = {
    liveRoom: "live room",
    log: "What is said in the room",
    pause: "Pause",
    logOut: "Log out",
    gives: "gives",
    notice: "Notice",
    someone: "someone",
    removed: "You were removed from the room: {0}",
    viewer: "1 viewer",
    viewers: "{0} viewers",
    live: "connected",
    watching: "watching",
    stopped: "not connected",
    idle: "not connected",
    paused: "paused",
    connecting: "connecting…",
    moreInPause: "… {0} more, during the pause",
    more: "… {0} more, too many to show",
    enter: "Enter the room",
    logIn: "Log in",
    register: "Create account",
    name: "Name",
    password: "Password",
    toTalk: "You are watching. Log in to talk, or create an account.",
    toWatch: "Log in to watch and talk, or create an account.",
    needsAccount: "This room can be watched with an account only.",
    noAnswer: "The server does not answer. The page goes on trying.",
    open: "Open the room to talk",
    say: "Say",
    saySomething: "Say something",
    give: "Give",
    rose: "rose",
    star: "star",
    rocket: "rocket",
};

/** @type {typeof english} */
const chinese = {
    liveRoom: "直播间",
    log: "直播间里的发言",
    pause: "暂停",
    logOut: "退出登录",
    gives: "送出",
    notice: "通知",
    someone: "有人",
    removed: "你已被移出直播间：{0}",
    viewer: "1 位观众",
    viewers: "{0} 位观众",
    live: "已连接",
    watching: "正在观看",
    stopped: "未连接",
    idle: "未连接",
    paused: "已暂停",
    connecting: "正在连接…",
    moreInPause: "… 暂停期间还有 {0} 条",
    more: "… 还有 {0} 条，太多而未显示",
    enter: "进入直播间",
    logIn: "登录",
    register: "注册",
    name: "用户名",
    password: "密码",
    toTalk: "你正在观看。登录或注册后即可发言。",
    toWatch: "登录或注册后即可观看和发言。",
    needsAccount: "此直播间需要账号才能观看。",
    noAnswer: "服务器没有响应，页面会继续尝试。",
    open: "打开直播间参与发言",
    say: "发送",
    saySomething: "说点什么",
    give: "送礼物",
    rose: "玫瑰",
    star: "星星",
    rocket: "火箭",
};

/**
 * The texts of the page. They are in the language from the page's address or, without one, in the browser's language.
 *
 * @param {string | null} asked
 */
export function wordsOf(asked) {
    const isChinese = (asked || navigator.language).startsWith("zh");
    const texts = /** @type {Record<string, string>} */ (isChinese ? chinese : english);
    return {
        lang: isChinese ? "zh-Hans" : "en",
        /**
         * @param {string} name
         * @param {string | number} value The value that replaces {0}.
         */
        say: (name, value = "") => (texts[name] ?? name).replace("{0}", String(value)),
    };
}
