import { expect, test } from "vitest";
import { match } from "../app/router";
import { rowsOf } from "../pages/timeline/layout";
import { diffWords } from "./diffing";
import { monthsOf, weeksOf } from "./scales";
import { ago } from "./time";

test("no stem of the timeline crosses a label", () => {
  const [wide, near, far, alone] = rowsOf(
    [
      { x: 0, wide: 100 },
      { x: 40, wide: 100 },
      { x: 90, wide: 30 },
      { x: 300, wide: 50 },
    ],
    2,
  );
  expect([wide, near, far, alone]).toEqual([null, 1, 0, 0]);
});

test("a calendar's weeks begin on Monday and hold the last day", () => {
  const weeks = weeksOf("2026-11-22", 3);
  expect(weeks.at(-1)).toEqual([
    "2026-11-16",
    "2026-11-17",
    "2026-11-18",
    "2026-11-19",
    "2026-11-20",
    "2026-11-21",
    "2026-11-22",
  ]);
  expect(monthsOf(weeksOf("2026-11-22", 10)).map(([day]) => day.slice(0, 7))).toContain("2026-10");
});

test("a difference holds both texts", () => {
  const pieces = diffWords("the old text of a note", "the new text of a longer note");
  const side = (kind: string) =>
    pieces
      .filter((one) => one.kind === "kept" || one.kind === kind)
      .map((one) => one.text)
      .join("");
  expect(side("removed")).toBe("the old text of a note");
  expect(side("added")).toBe("the new text of a longer note");
  expect(pieces.find((one) => one.kind === "removed")?.text).toBe("old ");
  expect(diffWords("same", "same")).toEqual([{ kind: "kept", text: "same" }]);
});

test("a word at the end is the same word as one before others", () => {
  const kept = diffWords("Scans of the shop", "Now the shop is closed").filter(({ kind }) => kind === "kept");
  expect(kept.map(({ text }) => text)).toEqual(["the shop "]);
});

test("addresses name their parts", () => {
  expect(match("/memories/:id", "/memories/a%2Fb")).toEqual({ id: "a/b" });
  expect(match("/memories", "/memories/")).toEqual({});
  expect(match("/memories", "/memories/1")).toBeNull();
  expect(match("/", "/")).toEqual({});
});

test("times near are told by their distance, others by their day", () => {
  const now = Date.parse("2026-11-22T12:00:00Z");
  expect(ago("2026-11-22T11:55:00Z", now, "en")).toContain("5");
  expect(ago("2026-11-01T11:55:00Z", now, "en")).toContain("Nov");
  expect(ago("2024-11-01T11:55:00Z", now, "en")).toContain("2024");
});
