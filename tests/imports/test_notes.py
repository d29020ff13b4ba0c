"""Free notes are cut where a person would cut them."""

from __future__ import annotations

from nacre.data.importers import kind_of, notes
from nacre.values.memory import Kind

TEXT = """\
Ignored nowhere: a paragraph before any heading
over two lines.

# Garden

- **Soil:** clay below thirty centimetres
  - and wet in March
- [x] Order seeds for the north bed

For the greenhouse:

- heat only below four degrees
1. open the roof at noon

```sh
greenhouse --roof open
```

## 决定

番茄只种在南墙边。

**Bees**

The hive stands under the pear tree. <!-- moved in May -->

---

The fence is nobody's business but the neighbour's.
"""


def test_items_and_paragraphs_become_statements_under_their_headings() -> None:
    found = [(note.headings, note.text) for note in notes(TEXT)]
    assert found == [
        ((), "Ignored nowhere: a paragraph before any heading\nover two lines."),
        (("Garden",), "**Soil:** clay below thirty centimetres\n  - and wet in March"),
        (("Garden",), "Order seeds for the north bed"),
        (("Garden", "For the greenhouse"), "heat only below four degrees"),
        (
            ("Garden", "For the greenhouse"),
            "open the roof at noon\n\n```sh\ngreenhouse --roof open\n```",
        ),
        (("Garden", "决定"), "番茄只种在南墙边。"),
        (("Garden", "决定", "Bees"), "The hive stands under the pear tree."),
        (("Garden", "决定", "Bees"), "The fence is nobody's business but the neighbour's."),
    ]


def test_headings_determine_kinds_and_bold_words_become_subjects() -> None:
    found = list(notes(TEXT))
    assert found[1].subject == "Soil"
    assert kind_of(found[5].headings, Kind.FACT) is Kind.DECISION
    assert kind_of(("People", "Misc"), Kind.FACT) is Kind.RELATIONSHIP
    assert kind_of(("Misc",), Kind.EVENT) is Kind.EVENT
    short = "- ok\n- 好的\n- 请用中文回答我\n- yes, always do that\n- yes, always do that"
    assert [note.text for note in notes(short)] == ["请用中文回答我", "yes, always do that"]
