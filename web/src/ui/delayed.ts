import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

/** A value after it stopped changing for a moment, for search while typing. */
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
