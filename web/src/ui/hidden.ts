// Control characters, text directions and invisible characters. Joiners between letters (U+200C, U+200D) and variation
// selectors of emoji are left alone: Persian, Hindi and emoji need them.
const HIDDEN =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;

export interface Segment {
  text: string;
  hidden: boolean;
}

/** Return true if a text contains such a character. */
export function isHidden(text: string): boolean {
  return text.search(HIDDEN) >= 0; // test() would keep a position that affects matchAll()
}

/** Split a text into visible parts and such characters by number. */
export function segments(text: string): Segment[] {
  const parts: Segment[] = [];
  let end = 0;
  for (const found of text.matchAll(HIDDEN)) {
    if (found.index > end) parts.push({ text: text.slice(end, found.index), hidden: false });
    parts.push({ text: numberOf(found[0]), hidden: true });
    end = found.index + found[0].length;
  }
  if (end < text.length) parts.push({ text: text.slice(end), hidden: false });
  return parts;
}

/** The same for plain-text places such as the page title. */
export function plain(text: string): string {
  return text.replace(HIDDEN, numberOf);
}

/** Return a title or an excerpt as one line without Markdown marks. Code keeps its characters. */
export function bare(text: string): string {
  return text
    .replace(/```\w*/g, "")
    .replace(/^\s*(#{1,6}|>|[-*+])\s+|(?<=\s)#{2,6}\s+|(?<=\n)>\s+/g, "")
    .replace(/\n\s*[-*+]\s+/g, " · ")
    .split(/`([^`]*)`/)
    .map((part, index) =>
      index % 2 ? part : part.replace(/`/g, "").replace(STRONG, "").replace(LINK_OR_EMPHASIS, "$1$2$3"),
    )
    .join("")
    .replace(/\s+/g, " ")
    .trim();
}

const STRONG = /(?<![\w*/])\*\*(?=["'(]|[\p{L}\p{N}]|$)|(?<=["').:!?…]|[\p{L}\p{N}]|^)\*\*(?![\w*./])/gu;
const LINK_OR_EMPHASIS =
  /!?\[([^\]]+)\]\([^\s)]+\)|(?<![\w*/])\*([^\s*](?:[^*\n]*[^\s*])?)\*(?![\w*./])|(?<![\w/])_([^\s_](?:[^_\n]*[^\s_])?)_(?![\w./])/g;

function numberOf(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;
}
