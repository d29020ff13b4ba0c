import { describe, expect, it } from "vitest";
import { translator } from "./said";

const say = translator({
  "told above": "上文已告知",
  decision: "决定",
  "a {}, importance {}": "{},重要度 {}",
  "{} offered after {} ms": "{2} 毫秒后提供 {1}",
  "{} is missing": "缺少 {}",
  ready: "就绪",
  "{} of {} tokens today": "今天 {} / {} 个词元",
  "sessions waiting: {}": "等待的会话:{}",
  "branch {} waits{}": "分支 {} 等待{}",
  " since {}": "(自 {} 起)",
});

describe("what nacre says, in another language", () => {
  it("is looked up whole", () => expect(say("told above")).toBe("上文已告知"));
  it("has what differs in its place", () => expect(say("a decision, importance 8")).toBe("决定,重要度 8"));
  it("may have it in another order", () => expect(say("recall offered after 12 ms")).toBe("12 毫秒后提供 recall"));
  it("is translated piece by piece where the whole is not known", () =>
    expect(say("claude, ready, 3 of 50 tokens today; sessions waiting: 2")).toBe(
      "claude,就绪,今天 3 / 50 个词元;等待的会话:2",
    ));
  it("may end with what is not always there", () => {
    expect(say("branch main waits since noon")).toBe("分支 main 等待(自 noon 起)");
    expect(say("branch main waits")).toBe("分支 main 等待");
  });
  it("stays as it is where nobody translated it", () => expect(say("the moon is full")).toBe("the moon is full"));
  it("takes dollars and braces of a value as they are", () => expect(say("$& {1} is missing")).toBe("缺少 $& {1}"));
  it("takes lines as they are", () => expect(say("a\nb is missing")).toBe("缺少 a\nb"));
});
