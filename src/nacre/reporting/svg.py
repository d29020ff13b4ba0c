"""Elements of SVG and HTML as text. What comes from elsewhere is escaped, and nothing of it steers what is shown."""

from __future__ import annotations

from html import escape

from nacre.text.passages import one_line

Value = str | float | int


def words(text: str) -> str:
    """A text of anybody's, as the content of an element or the value of an attribute."""
    return escape("".join(one for one in one_line(text) if one.isprintable()))


def element(name: str, *children: str, **attributes: Value) -> str:
    """An element with its children: elements, or escaped. ``class_`` is ``class``, ``text_anchor`` has a dash."""
    told = "".join(f' {_key(key)}="{_value(value)}"' for key, value in attributes.items() if value != "")
    return f"<{name}{told}>{''.join(children)}</{name}>"


def drawing(title: str, width: float, height: float, *children: str) -> str:
    """A picture with what it shows, for those who do not see it."""
    return element(
        "svg", element("title", words(title)), *children, xmlns="http://www.w3.org/2000/svg", role="img",
        viewBox=f"0 0 {_value(width)} {_value(height)}", width=width, height=height,
    )  # fmt: skip


def rectangle(x: float, y: float, width: float, height: float, class_: str, told: str = "", radius: float = 0) -> str:
    """A rectangle; ``told`` is shown where one points at it."""
    return element(
        "rect", _told(told), x=x, y=y, width=width, height=height, rx=radius or "", class_=class_
    )  # fmt: skip


def line(x: float, y: float, to_x: float, to_y: float, class_: str) -> str:
    """A straight line."""
    return element("line", x1=x, y1=y, x2=to_x, y2=to_y, class_=class_)


def circle(x: float, y: float, radius: float, class_: str, told: str = "") -> str:
    """A disc; ``told`` is shown where one points at it."""
    return element("circle", _told(told), cx=x, cy=y, r=radius, class_=class_)


def area(points: list[tuple[float, float]], class_: str, told: str = "") -> str:
    """A polygon; ``told`` is shown where one points at it."""
    path = " ".join(f"{_value(x)},{_value(y)}" for x, y in points)
    return element("polygon", _told(told), points=path, class_=class_)


def label(x: float, y: float, text: str, class_: str = "", anchor: str = "") -> str:
    """A text beside what it names; ``anchor``: ``middle`` or ``end`` of it is at the point, else its beginning."""
    return element("text", words(text), x=x, y=y, class_=class_, text_anchor=anchor)


def _told(text: str) -> str:
    return element("title", words(text)) if text else ""


def _key(name: str) -> str:
    return name.rstrip("_") if name.endswith("_") else name.replace("_", "-")


def _value(value: Value) -> str:
    if isinstance(value, float):
        return f"{value:.1f}".removesuffix(".0")
    return escape(str(value))
