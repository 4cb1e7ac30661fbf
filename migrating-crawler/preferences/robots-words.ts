/**
 * Words among robots directives (meta and X-Robots-Tag) that speak of what is made of a page: in no standard, each with
 * the meaning that those who brought it up gave it. `noai` and `noimageai` (DeviantArt, 2022): not for training, of images;
 * `noml` (noml.info, 2023): not for machine learning. None of them is about an index for people.
 */
import type { ContentUse, StatedPreference } from "#protocol/preferences";
import { statementsOf } from "./statements.ts";

const words: ReadonlyMap<string, readonly ContentUse[]> = new Map([
  ["noai", ["ai-train"]],
  ["noml", ["ai-train"]],
  ["noimageai", []],
]);

/** `names`: the directives that are for us, in lower case. */
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
