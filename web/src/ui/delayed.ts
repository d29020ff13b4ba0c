import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

/** A value once it has stayed the same for a moment: what one types, before it is asked. */
export function useDelayed<T>(value: T, ms = 160): T {
  const settled = useSignal(value);
  useEffect(() => {
    const timer = setTimeout(() => {
      settled.value = value;
    }, ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return settled.value;
}
