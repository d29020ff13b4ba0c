export interface Piece {
  kind: "kept" | "added" | "removed";
  text: string;
}

const MOST_CELLS = 4_000_000;

/**
 * Compare two texts by words (longest common subsequence), or as a whole if they are very long. The space after a word
 * is ignored and taken from the second text.
 */
export function diffWords(before: string, after: string): Piece[] {
  const old = words(before);
  const fresh = words(after);
  let start = 0;
  while (start < old.length && start < fresh.length && isSame(old[start], fresh[start])) start++;
  let end = 0;
  while (
    end < Math.min(old.length, fresh.length) - start &&
    isSame(old[old.length - 1 - end], fresh[fresh.length - 1 - end])
  )
    end++;
  const middle = between(old.slice(start, old.length - end), fresh.slice(start, fresh.length - end));
  const pieces: Piece[] = [
    { kind: "kept", text: fresh.slice(0, start).join("") },
    ...middle,
    { kind: "kept", text: fresh.slice(fresh.length - end).join("") },
  ];
  return joined(pieces);
}

function isSame(one: string | undefined, other: string | undefined): boolean {
  return one?.trimEnd() === other?.trimEnd();
}

function between(old: string[], fresh: string[]): Piece[] {
  if (old.length * fresh.length > MOST_CELLS) {
    return [
      { kind: "removed", text: old.join("") },
      { kind: "added", text: fresh.join("") },
    ];
  }
  const lengths = table(old, fresh);
  const at = (row: number, column: number) => lengths[row]?.[column] ?? 0;
  const pieces: Piece[] = [];
  let [row, column] = [0, 0];
  while (row < old.length || column < fresh.length) {
    if (row < old.length && column < fresh.length && isSame(old[row], fresh[column])) {
      pieces.push({ kind: "kept", text: fresh[column++] ?? "" });
      row++;
    } else if (column >= fresh.length || (row < old.length && at(row + 1, column) >= at(row, column + 1))) {
      pieces.push({ kind: "removed", text: old[row++] ?? "" });
    } else pieces.push({ kind: "added", text: fresh[column++] ?? "" });
  }
  return pieces;
}

function table(old: string[], fresh: string[]): Uint16Array[] {
  const lengths = Array.from({ length: old.length + 1 }, () => new Uint16Array(fresh.length + 1));
  for (let row = old.length - 1; row >= 0; row--) {
    const [here, below] = [lengths[row], lengths[row + 1]];
    if (!here || !below) continue;
    for (let column = fresh.length - 1; column >= 0; column--) {
      const same = isSame(old[row], fresh[column]);
      here[column] = same ? (below[column + 1] ?? 0) + 1 : Math.max(below[column] ?? 0, here[column + 1] ?? 0);
    }
  }
  return lengths;
}

/** Split into words with the space after them; Chinese by character. */
function words(text: string): string[] {
  return (
    text.match(/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]|[\p{L}\p{N}_]+\s*|\s+|[^\p{L}\p{N}_\s]\s*/gu) ??
    []
  );
}

function joined(pieces: Piece[]): Piece[] {
  const found: Piece[] = [];
  for (const piece of pieces) {
    const last = found.at(-1);
    if (!piece.text) continue;
    if (last?.kind === piece.kind) last.text += piece.text;
    else found.push({ ...piece });
  }
  return found;
}
