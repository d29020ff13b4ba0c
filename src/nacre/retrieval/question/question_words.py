"""Words that ask rather than tell: what an answer need not hold."""

from __future__ import annotations

import re

_ASKING = frozenset(
    """
    kind kinds type types sort sorts way ways name names named much many often long far likely possibly probably maybe
    might must ever never still already yet again else really actually usually consider considered describe described
    description explain explained remind show list give gave given mention mentioned say says said tell told call
    called use uses used using current currently exact exactly complete completely full overall entire main major
    first last latest recent recently new old thing things stuff something anything someone anyone item items event
    events activity activities person people somebody place places time times part parts example examples reason
    reasons cause causes caused purpose happen happens happened attend attended take takes took taken make makes made
    get gets got getting go goes went gone come comes came see saw seen know knew known find found think thought feel
    felt believe keep kept receive received have want wanted need needed start started begin began plan planned plans
    decide decided agree agreed choose chose chosen prefer preferred learn learned learnt talk talked discuss
    discussed answer question questions one two three year years month months week weeks day days date dates today
    yesterday tomorrow different various several certain specific particular able help please thanks thank ok okay yes
    yeah yep sure perfect cool great nice good fine fix hi hello hey welcome sorry continue next ready wait moment
    looks sounds right alright bye lgtm problem
    problems issue issues trouble early late
    """.split()
)
"""The frame of a question, and what people say in passing (English)."""

_PARTICLES = re.compile(
    "请问|什么时候|什么样|什么|怎么样|怎么办|怎么|怎样|如何|为什么|为何|哪一个|哪个|哪里|哪儿|哪些|哪种|哪|谁|多少|多久|多长时间|多长|多大|多远|几个|是不是|有没有|"
    "是否|能不能|可不可以|我们|你们|他们|她们|咱们|我|你|他|她|它们|它|一下|还有|以及|还是|或者|因为|所以|但是|之前|之后|时候|现在|目前|"
    "当前|最近|上次|这个|那个|这些|那些|谢谢|好的|继续|可以|嗯|[的了吗呢吧啊呀嘛]"
)
"""The same for Chinese, which writes them without spaces: left in, every pair of characters across their border would
be looked for."""


def asks(word: str) -> bool:
    """Whether a word belongs to the asking; a single letter tells nothing either."""
    return word in _ASKING or (len(word) == 1 and word.isascii() and not word.isdecimal())


def without_particles(text: str) -> str:
    """A text without the Chinese words that only ask, whose places become spaces."""
    return text if text.isascii() else _PARTICLES.sub(" ", text)


def only_asks(text: str) -> bool:
    """Whether every sentence of a text is a question."""
    text = text.strip()
    if not text.endswith(("?", "？")):
        return False
    return all(part.rstrip().endswith(("?", "？")) for part in _SENTENCE_END.split(text) if part.strip())


_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")
