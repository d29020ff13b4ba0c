import { expect, test } from "vitest";
import { isHidden, plain, segments } from "./hidden";

test("what turns the direction of text is shown by its number", () => {
  expect(segments("a\u202eb")).toEqual([
    { text: "a", hidden: false },
    { text: "U+202E", hidden: true },
    { text: "b", hidden: false },
  ]);
});

test.each(["\u200b", "\u2066", "\ufeff", "\u0007", "\u{e0041}", "\u00ad"])("%j is shown", (character) => {
  expect(isHidden(`x${character}`)).toBe(true);
  expect(plain(character)).toMatch(/^U\+[0-9A-F]{4,5}$/);
});

test.each(["Grüße\n\tTab", "👩‍🔬", "می‌خواهم", "中文", "☕️"])("%s stays as it is", (text) => {
  expect(isHidden(text)).toBe(false);
  expect(plain(text)).toBe(text);
});
