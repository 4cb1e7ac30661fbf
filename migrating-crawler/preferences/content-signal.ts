/**
 * `Content-Signal` (contentsignals.org, the policy of September 2025 with the `use` level added in July 2026;
 * labels: draft-romm-aipref-contentsignals-00 of October 2025): `search=yes, ai-train=no`, in a group of robots.txt and in
 * headers. `yes` allows, `no` denies, what is absent is neither. The policy has no word for contradictions: denied wins.
 *
 * `use=immediate` lets nobody store anything, so that no index may; `reference` (index, excerpt, link) and `full` deny
 * nothing of what we do.
 */
import type { ContentUse, StatedPreference } from "#protocol/preferences";
import { boundedValue, type SaidUses, statementsOf } from "./statements.ts";

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

/** One text that allows and denies a use denies it. */
export function withoutContradictions(said: SaidUses): SaidUses {
  const denied = new Set(said.filter(([, answer]) => answer === "denied").map(([use]) => use));
  return said.filter(([use, answer]) => answer === "denied" || !denied.has(use));
}
