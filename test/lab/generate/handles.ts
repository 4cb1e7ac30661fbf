/** Handles of organisations, customers and people, each registry's in its own form; one number, one handle. */
import type { RegionalRegistry } from "./address-blocks.ts";
import { draw, fraction } from "./path-random.ts";
import { countryOf } from "./places.ts";
import type { RegistryPlan } from "./registry-plan.ts";

export const rpslSources: Readonly<Record<RegionalRegistry, string>> = {
  afrinic: "AFRINIC",
  apnic: "APNIC",
  arin: "ARIN",
  lacnic: "LACNIC",
  ripencc: "RIPE",
};
const endings: Readonly<Record<RegionalRegistry, string>> = { ...rpslSources, apnic: "AP" };

const letterPairs = Array.from({ length: 676 }, (_, at) =>
  String.fromCharCode(65 + Math.floor(at / 26), 65 + (at % 26)),
);

/** `ORG-VM12-RIPE`, `BR-VM12-LACNIC`, ARIN's `VM-12`. */
export function organisationHandle(registry: RegionalRegistry, number: number): string {
  const letters = lettersOf(number);
  if (registry === "arin") return `${letters}-${number + 1}`;
  if (registry === "lacnic") return `${countryOf(registry, draw(number, 70))}-${letters}${number + 1}-LACNIC`;
  return `ORG-${letters}${number + 1}-${endings[registry]}`;
}

/** `C00000012`. */
export function customerHandle(number: number): string {
  return `C${String(number + 1).padStart(8, "0")}`;
}

/** `VM120-RIPE`: somebody whose own object is not published. */
export function personHandle(registry: RegionalRegistry, number: number): string {
  return `${letterPairs[number % 676]}${number % 30_011}-${endings[registry]}`;
}

/** `AS-VM120-MNT`-like: whoever may edit the object; never a holder. */
export function maintainerName(registry: RegionalRegistry, number: number): string {
  const letters = lettersOf(number);
  return registry === "apnic" ? `MAINT-${letters}${number}` : `${letters}${number}-MNT`;
}

/** One organisation in a hundred is named by objects and has none of its own; the registry itself is there. */
export function isMissing(plan: RegistryPlan, kind: "organisation" | "customer", number: number): boolean {
  return number > 0 && fraction(number ^ plan.path, kind === "organisation" ? 71 : 72) < 0.01;
}

/** What the statistics of a registry call a holder: means something within one file only. */
export function opaqueId(registry: RegionalRegistry, number: number): string {
  const hex = (purpose: number) => draw(number, purpose).toString(16).padStart(8, "0");
  if (registry === "apnic") return `A9${(number + 1).toString(16).toUpperCase().padStart(6, "0")}`;
  if (registry === "lacnic") return String(100_000 + number);
  if (registry === "afrinic") return `F${(number + 1).toString(16).toUpperCase().padStart(7, "0")}`;
  return `${hex(73)}${hex(74)}-${(number + 1).toString(16).padStart(7, "0")}`;
}

function lettersOf(number: number): string {
  return letterPairs[draw(number, 75) % 676] as string;
}
