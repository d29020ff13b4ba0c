import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { GraphMap } from "../../api/types";
import { useShortcuts } from "../../app/keys";
import type { Drawing } from "./drawing";
import { t } from "./strings";

const STEP = 0.15;

/** The graph as a picture. The drawing library is loaded with the first one. */
export function Picture(props: {
  map: GraphMap;
  chosen: string | null;
  onPick: (id: string | null) => void;
  onFailure: () => void;
}) {
  const element = useRef<HTMLDivElement>(null);
  const drawing = useSignal<Drawing | null>(null);
  const share = useSignal(0);
  const pick = useRef(props.onPick);
  pick.current = props.onPick;

  useEffect(() => {
    let isOver = false;
    import("./drawing")
      .then(({ Drawing }) => {
        if (isOver || !element.current) return;
        const onDone = (done: number) => (share.value = done);
        drawing.value = new Drawing(element.current, t.peek(), (id) => pick.current(id), onDone);
      })
      .catch(props.onFailure);
    return () => {
      isOver = true;
      drawing.peek()?.end();
    };
  }, []);
  useEffect(() => drawing.value?.show(props.map), [drawing.value, props.map]);
  useEffect(() => drawing.value?.choose(props.chosen), [drawing.value, props.chosen]);
  useEffect(() => {
    if (props.chosen && share.value === 1) drawing.value?.centre(props.chosen);
  }, [drawing.value, props.chosen, share.value === 1]);

  useShortcuts(t.value.picture, [
    { keys: "+, =", says: t.value.nearer, run: () => drawing.value?.zoom(1.6) },
    { keys: "-", says: t.value.further, run: () => drawing.value?.zoom(1 / 1.6) },
    { keys: "0", says: t.value.all, run: () => drawing.value?.zoom(0) },
    { keys: "arrowleft", says: t.value.left, run: () => drawing.value?.pan(-STEP, 0) },
    { keys: "arrowright", says: t.value.right, run: () => drawing.value?.pan(STEP, 0) },
    { keys: "arrowup", says: t.value.up, run: () => drawing.value?.pan(0, STEP) },
    { keys: "arrowdown", says: t.value.down, run: () => drawing.value?.pan(0, -STEP) },
  ]);

  const { memories } = props.map;
  return (
    <div class="graph-picture">
      <div
        class="graph-canvas"
        ref={element}
        role="img"
        aria-label={t.value.pictureOf(Math.min(props.map.nodes.length, memories))}
        aria-busy={share.value < 1}
      />
      <div class="graph-zoom">
        <button type="button" aria-label={t.value.nearer} onClick={() => drawing.value?.zoom(1.6)}>
          +
        </button>
        <button type="button" aria-label={t.value.further} onClick={() => drawing.value?.zoom(1 / 1.6)}>
          −
        </button>
        <button type="button" aria-label={t.value.all} title={t.value.all} onClick={() => drawing.value?.zoom(0)}>
          ⤢
        </button>
      </div>
      {share.value < 1 && <progress class="graph-progress" max={1} value={share.value} aria-label={t.value.placing} />}
    </div>
  );
}

/** Return true if this browser supports WebGL. */
export function canDraw(): boolean {
  try {
    return document.createElement("canvas").getContext("webgl2") !== null;
  } catch {
    return false;
  }
}
