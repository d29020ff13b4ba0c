import { expect, test } from "vitest";
import { bare, isHidden, plain, segments } from "./hidden";

test("what turns the direction of text is shown by its number", () => {
  expect(segments("a\u202eb")).toEqual([
    { text: "a", hidden: false },
    { text: "U+202E", hidden: true },
    { text: "b", hidden: false },
  ]);
});

test("the first of them is shown as well once a text was looked at", () => {
  const text = "a\u202eb\u2066";
  expect(isHidden(text)).toBe(true);
  expect(segments(text).filter((one) => one.hidden)).toHaveLength(2);
});

test.each(["\u200b", "\u2066", "\ufeff", "\u0007", "\u{e0041}", "\u00ad"])("%j is shown", (character) => {
  expect(isHidden(`x${character}`)).toBe(true);
  expect(plain(character)).toMatch(/^U\+[0-9A-F]{4,5}$/);
});

test.each(["Grüße\n\tTab", "👩‍🔬", "می‌خواهم", "中文", "☕️"])("%s stays as it is", (text) => {
  expect(isHidden(text)).toBe(false);
  expect(plain(text)).toBe(text);
});

test.each([
  ["## The **pond** is `40 × 60`", "The pond is 40 × 60"],
  [
    "**Layout:** use *grid* and _flex_, see [the page](https://example.org/a_b)",
    "Layout: use grid and flex, see the page",
  ],
  ["cut in a **bold wor…", "cut in a bold wor…"],
  ["- one\n- **`two`**\n\n### Three", "one · two Three"],
  [
    "web/**/*.ts, 2**3, a * b, snake_case, `**kwargs` and __init__.py",
    "web/**/*.ts, 2**3, a * b, snake_case, **kwargs and __init__.py",
  ],
])("%j is shown without marks", (text, expected) => {
  expect(bare(text)).toBe(expected);
});
