/**
 * Parses `Content-Signal` (contentsignals.org, the policy of September 2025 with the `use` level added in July 2026;
 * labels: draft-romm-aipref-contentsignals-00 of October 2025), such as `search=yes, ai-train=no`, in robots.txt groups
 * and headers. `yes` allows, `no` denies, and an absent use is neither. The policy does not cover contradictions, so
 * denied wins.
 *
 * `use=immediate` forbids storing, so it denies indexing; `reference` (index, excerpt, link) and `full` deny nothing
 * that we do.
 */
import type { ContentUse, StatedPreference } from "#protocol/preferences";
import { boundedValue, type SaidUses, statementsOf, withoutContradictions } from "./statements.ts";

const labels: ReadonlyMap<string, ContentUse> = new Map([
  ["search", "search"],
  ["ai-input", "ai-input"],
  ["ai-train", "ai-train"],
]);

export function contentSignal(value: string, place: StatedPreference["place"]): StatedPreference[] {
  return statementsOf({ standard: "content-signal", place }, withoutContradictions(saidIn(value)), value);
}

function saidIn(value: string): SaidUses {
  return boundedValue(value)
    .split(/[,;]/)
    .flatMap((part): SaidUses => {
      const [key = "", answer = ""] = part.split("=", 2).map((word) => word.trim().toLowerCase());
      if (key === "use" && answer === "immediate") return [["search", "denied"]];
      const use = labels.get(key);
      if (use === undefined || (answer !== "yes" && answer !== "no")) return [];
      return [[use, answer === "yes" ? "allowed" : "denied"]];
    });
}
