"""Formulas of the pages: subscripts, exponents and variables of a `.formula` block are set as such, without scripts."""

from __future__ import annotations

import re

_BLOCK = re.compile(r'(<div class="[^"]*\bformula\b[^"]*"><pre>.*?<code>)(.*?)(</code></pre></div>)', re.S)
_LOWERED = dict(zip("₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ", "0123456789+−=()aeijklmnoprstuvx", strict=True))
_RAISED = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ᵀⁿ", "0123456789+−Tn", strict=True))
_PART = re.compile(
    r"(?P<tag><[^>]*>|&\w+;)"
    rf"|(?P<low>[{''.join(_LOWERED)}≤]*[{''.join(_LOWERED)}]+)|_(?P<index>[A-Za-z]+)"
    rf"|(?P<high>[{''.join(_RAISED)}]+)|\^(?P<power>\([^)]*\)|[\w½⅓⅔¼¾]+)"
    r"|(?P<word>[A-Za-zÀ-ɏα-ωℓ\u0302]+)"
)


def typeset(html: str) -> str:
    """The page with its formulas set: `xₜ₊₁`, `R_y` and `t^(3/4)` have real subscripts and exponents.

    >>> line("S(t)² = R_y/xₜ₊₁")
    '<i>S</i>(<i>t</i>)<sup>2</sup> = <i>R</i><sub>y</sub>/<i>x</i><sub>t+1</sub>'
    """
    return _BLOCK.sub(lambda block: block[1] + line(block[2]) + block[3], html)


def line(text: str) -> str:
    """One text: single letters, but for the article "a", are variables; longer words stay upright.

    >>> line("min t^(−¼)")
    'min <i>t</i><sup>−¼</sup>'
    """
    return _PART.sub(_set, text)


def _set(part: re.Match[str]) -> str:
    if part["tag"]:
        return part[0]
    if part["low"] or part["index"]:
        return f"<sub>{''.join(_LOWERED.get(each, each) for each in part['low'] or part['index'])}</sub>"
    if part["high"]:
        return f"<sup>{''.join(_RAISED[each] for each in part['high'])}</sup>"
    if part["power"]:
        return f"<sup>{part['power'].strip('()')}</sup>"
    letters = [each for each in part["word"] if each != "\u0302"]
    return f"<i>{part['word']}</i>" if len(letters) == 1 and letters != ["a"] else str(part["word"])
