import { render } from "preact";
import { expect, test } from "vitest";
import { Markdown } from "./markdown";

function shown(text: string, names?: (name: string) => string | null): HTMLElement {
  const root = document.createElement("div");
  render(names ? <Markdown names={names}>{text}</Markdown> : <Markdown>{text}</Markdown>, root);
  return root;
}

test.each([
  "<script>alert(1)</script>",
  "<img src=x onerror=alert(1)>",
  "text <b onclick=alert(1)>bold</b>",
  "</div></article><h1>trusted</h1>",
  "<svg onload=alert(1)>",
  "<style>body{display:none}</style>",
])("%s is shown as text", (text) => {
  const root = shown(text);
  expect(root.querySelector("script, img, b, h1, svg, style, [onclick], [onload], [onerror]")).toBeNull();
  expect(root.textContent).toContain("<");
});

test.each([
  "[a](javascript:alert(1))",
  "[a](JaVaScRiPt:alert(1))",
  "[a](data:text/html,x)",
  "[a](vbscript:x)",
  "[a](file:///etc/passwd)",
  "[a](&#106;avascript:alert(1))",
  "![a](javascript:alert(1))",
  "<javascript:alert(1)>",
  "[a][1]\n\n[1]: javascript:alert(1)",
])("%s leads nowhere", (text) => {
  expect(shown(text).querySelector("a")).toBeNull();
});

test("a link to the web opens apart, and tells nothing of this page", () => {
  const link = shown("[docs](https://example.org/a)").querySelector("a");
  expect(link?.getAttribute("href")).toBe("https://example.org/a");
  expect(link?.rel).toContain("noreferrer");
});

test("a picture is a link, and loads nothing", () => {
  const root = shown("![chart](https://example.org/a.png)");
  expect(root.querySelector("img")).toBeNull();
  expect(root.querySelector("a")?.textContent).toBe("chart");
});

test("a name in brackets leads to the memory, if there is one", () => {
  const root = shown("see [[One]] and [[Two]]", (name) => (name === "One" ? "/memories/1" : null));
  expect([...root.querySelectorAll("a")].map((one) => one.getAttribute("href"))).toEqual(["/memories/1"]);
  expect(root.textContent).toBe("see One and [[Two]]");
});

test("lists, tables, code and tasks look as they should", () => {
  const root = shown("# T\n\n- [x] done\n- **b** `c`\n\n| a |\n|---|\n| 1 |\n\n```\n<x>\n```\n");
  expect(root.querySelector("h3")?.textContent).toBe("T");
  expect(root.querySelector<HTMLInputElement>("li.task input")?.checked).toBe(true);
  expect(root.querySelector("li strong")?.textContent).toBe("b");
  expect(root.querySelector("td")?.textContent).toBe("1");
  expect(root.querySelector("pre")?.textContent).toBe("<x>");
});

test("entities are what they stand for, once", () => {
  expect(shown("a &lt; b &amp;lt; c").textContent).toBe("a < b &lt; c");
});

test.each([
  ["quotes", "> ".repeat(5_000)],
  ["lists", "- ".repeat(5_000)],
  ["emphasis", `${"**a *b ".repeat(60)}c${"* **".repeat(60)}`],
  ["a huge table", `${"|a".repeat(50_000)}\n${"|-".repeat(50_000)}\n${"|b".repeat(50_000)}`],
])("%s beyond all bounds are shown as they are written", (_, nested) => {
  const root = shown(`${nested} end`);
  expect(root.textContent).toContain("end");
  expect(root.querySelectorAll("*").length).toBeLessThan(1_000);
});
