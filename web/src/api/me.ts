import { signal } from "@preact/signals";
import { asProblem, isStranger, type Problem, read } from "./client";

/** The user and the home. */
export interface Me {
  owner: boolean;
  version: string;
  plugins: string[];
  home: string;
  embedding: string;
  /** The model that writes memories, or none. */
  writer: string;
}

export const me = signal<Me | null>(null);
export const refusal = signal<Problem | null>(null);

/** Ask the daemon for this browser's identity. */
export async function loadMe(): Promise<void> {
  try {
    me.value = await read<Me>("/me");
    refusal.value = null;
    isStranger.value = false;
  } catch (error) {
    refusal.value = asProblem(error);
  }
}
