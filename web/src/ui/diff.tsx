import { diffWords, type Piece } from "./diffing";
import { Text } from "./text";
import "./diff.css";

/** Lines with the prefix `+`, `-` or space, as returned by the operation `diff`. */
export function Diff({ lines }: { lines: readonly string[] }) {
  return (
    <div class="diff">
      {lines.map((line, index) => (
        <Line key={index} mark={line.charAt(0)} text={line.slice(1)} />
      ))}
    </div>
  );
}

function Line({ mark, text }: { mark: string; text: string }) {
  const kind = mark === "+" ? "added" : mark === "-" ? "removed" : "kept";
  const Element = mark === "+" ? "ins" : mark === "-" ? "del" : "div";
  return (
    <Element class={`diff-line ${kind}`}>
      <span aria-hidden="true">{mark === " " ? "" : mark}</span>
      <span>
        <Text>{text || " "}</Text>
      </span>
    </Element>
  );
}

/** One of two texts side by side, with its differences marked. */
export function OneSide({ text, other, side }: { text: string; other: string; side: "before" | "after" }) {
  const own = diffWords(other, text).filter(({ kind }) => kind !== "removed");
  const mark = side === "before" ? "removed" : "added";
  return <Pieces pieces={own.map((piece) => (piece.kind === "kept" ? piece : { ...piece, kind: mark }))} />;
}

/** Two texts as one: removed parts are struck through, added parts are marked. */
export function WordDiff({ before, after }: { before: string; after: string }) {
  return <Pieces pieces={diffWords(before, after)} />;
}

function Pieces({ pieces }: { pieces: readonly Piece[] }) {
  return (
    <p class="word-diff">
      {pieces.map((piece, index) =>
        piece.kind === "kept" ? (
          <Text key={index}>{piece.text}</Text>
        ) : piece.kind === "added" ? (
          <ins key={index}>
            <Text>{piece.text}</Text>
          </ins>
        ) : (
          <del key={index}>
            <Text>{piece.text}</Text>
          </del>
        ),
      )}
    </p>
  );
}
