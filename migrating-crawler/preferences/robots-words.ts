/**
 * Reads unstandardised robots directives (meta and X-Robots-Tag) about uses of a page, each as its inventors meant it.
 * `noai` and `noimageai` (DeviantArt, 2022) forbid training, the latter on images; `noml` (noml.info, 2023) forbids
 * machine learning. None concerns a search index.
 */
import type { ContentUse, StatedPreference } from "#protocol/preferences";
import { statementsOf } from "./statements.ts";

const words: ReadonlyMap<string, readonly ContentUse[]> = new Map([
  ["noai", ["ai-train"]],
  ["noml", ["ai-train"]],
  ["noimageai", []],
]);

/** `names` are the directives that apply to us, in lower case. */
export function robotsWords(names: readonly string[], place: StatedPreference["place"]): StatedPreference[] {
  const stated = { standard: "robots-words", place } as const;
  return [...new Set(names)].flatMap((name): StatedPreference[] => {
    const uses = words.get(name);
    if (uses === undefined) return [];
    if (uses.length === 0) return [{ ...stated, uses: [], answer: "denied", text: name }];
    return statementsOf(
      stated,
      uses.map((use) => [use, "denied"]),
      name,
    );
  });
}
