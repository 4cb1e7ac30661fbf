/**
 * Whom an object names as its holder: an organisation by handle, which may be missing from the database, a
 * customer, a company by name only, a name that strangers share, nobody in particular, or nobody at all.
 */
import type { RegionalRegistry } from "./address-blocks.ts";
import { below, draw, fraction } from "./path-random.ts";
import type { RegistryPlan } from "./registry-plan.ts";
import type { Slot } from "./slot.ts";

export interface HolderChoice {
  readonly type: "organisation" | "customer" | "company" | "shared-name" | "anonymous" | "none";
  /** Which of them. */
  readonly number: number;
}

/** The slot's holder after `edits` changes of it; one change never leaves it as it was, if there is another. */
export function holderOfSlot(plan: RegistryPlan, slot: Slot, edits: number): HolderChoice {
  if (edits === 0) return firstHolder(plan, slot);
  const before = holderOfSlot(plan, slot, edits - 1);
  const path = draw(slot.path, 60 + edits);
  const chosen = slot.kind === "assignment" ? choose(plan, path) : organisation(plan, path);
  return isSame(before, chosen) ? { ...chosen, number: (chosen.number + 1) % poolOf(plan, chosen) } : chosen;
}

export function isSame(a: HolderChoice, b: HolderChoice): boolean {
  return a.type === b.type && a.number === b.number;
}

function firstHolder(plan: RegistryPlan, slot: Slot): HolderChoice {
  const { kind, path } = slot;
  if (kind === "block" || kind === "allocation") return { type: "organisation", number: slot.organisation };
  if (fraction(path, 50) < 0.12) return { type: "organisation", number: slot.organisation };
  return choose(plan, draw(path, 51));
}

const organisation = (plan: RegistryPlan, path: number): HolderChoice => ({
  type: "organisation",
  number: below(path, 52, plan.organisations),
});

/** Cumulative shares, in the order organisation, customer, company, shared name, anonymous; the rest name nobody. */
const mixes: Readonly<Record<RegionalRegistry, readonly [number, number, number, number, number]>> = {
  ripencc: [0.12, 0.12, 0.95, 0.96, 0.99],
  apnic: [0.05, 0.05, 0.95, 0.96, 0.99],
  afrinic: [0.1, 0.1, 0.95, 0.96, 0.99],
  arin: [0.55, 1, 1, 1, 1],
  lacnic: [0.8, 0.8, 0.985, 0.995, 1],
};

function choose(plan: RegistryPlan, path: number): HolderChoice {
  const [organisations, customers, companies, shared, anonymous] = mixes[plan.registry];
  const chance = fraction(path, 53);
  if (chance < organisations) return organisation(plan, path);
  if (chance < customers) return { type: "customer", number: below(path, 54, plan.customers) };
  if (chance < companies) return { type: "company", number: below(path, 55, plan.companies) };
  if (chance < shared) return { type: "shared-name", number: below(path, 56, sharedNames.length) };
  if (chance < anonymous) return { type: "anonymous", number: below(path, 57, anonymousNames.length) };
  return { type: "none", number: 0 };
}

function poolOf(plan: RegistryPlan, { type }: HolderChoice): number {
  if (type === "organisation") return plan.organisations;
  if (type === "customer") return plan.customers;
  if (type === "company") return plan.companies;
  return type === "shared-name" ? sharedNames.length : 1;
}

// Names of made-up companies: one per number, spelled in the ways in which registries spell one company
// (legal form with and without points, capitals, accents), and names that strangers share. The first word is
// made of syllables and unlike any word in use, so that two numbers never read as one company.

const consonants = ["b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "z", "br", "st"];
const vowels = ["a", "e", "i", "o", "u"];
const syllables = consonants.flatMap((consonant) => vowels.map((vowel) => consonant + vowel));
const firstSyllables = syllables.map((syllable) => syllable.charAt(0).toUpperCase() + syllable.slice(1));

/** None of them is so common among companies that the importer sets it aside. */
const seconds =
  "Anvil Archive Bakery Brewery Canal Castle Dairy Depot Farm Ferry Forest Foundry Garden Gazette Grain Harbour Island Journal Kitchen Lantern Meadow Mill Museum Orchard Pharmacy Pier Quarry Railway Steel Theatre Textile Tower Valley Vineyard Workshop".split(
    " ",
  );

/** Spellings of one legal form; a company keeps its form. */
const legalForms: readonly (readonly string[])[] = [
  [" Ltd", " Ltd.", " Limited", ", Ltd."],
  [" GmbH", " GMBH", " GmbH & Co. KG"],
  [" Inc", ", Inc.", " INC.", " Incorporated"],
  [" S.A.", " SA", ""],
  [" B.V.", " BV", " b.v."],
  [" S.p.A.", " SPA", " S.p.A"],
  [" LLC", ", LLC", " L.L.C."],
  [" AB", " AS", ""],
];

const accents: Readonly<Record<string, string>> = {
  a: "\u00e4",
  e: "\u00e9",
  i: "\u00ed",
  o: "\u00f6",
  u: "\u00fc",
};

/** Company `number` in one of its spellings; `spelling` is any number. Characters are Latin-1. */
export function companyName(number: number, spelling: number): string {
  const form = legalForms[number % legalForms.length] as readonly string[];
  const variant = draw(spelling, 0);
  const name = `${firstWord(number)} ${seconds[number % seconds.length]}${form[variant % form.length]}`;
  if (variant % 16 === 3) return name.toUpperCase();
  return variant % 32 === 5 ? withAccent(name) : name;
}

/** `Vakelox`: base 80, a syllable for each digit, at least three. */
export function firstWord(number: number): string {
  const base = syllables.length;
  let word = "x";
  let rest = number;
  for (let digits = 1; rest >= base || digits < 3; digits++) {
    word = `${syllables[rest % base]}${word}`;
    rest = Math.floor(rest / base);
  }
  return `${firstSyllables[rest]}${word}`;
}

/** Too common to mean one company: told apart by registry and country only. */
export const sharedNames = [
  "Skynet",
  "Intercom",
  "Fiberlink",
  "Data Center",
  "Infonet",
  "Netcom",
  "Unicom",
] as const;

/** What stands where a holder should, and names nobody. */
export const anonymousNames = [
  "Private Customer",
  "PRIVATE CUSTOMER",
  "Residential customer",
  "Private person",
  "EXAMPLE-MNT",
  "N/A",
] as const;

function withAccent(name: string): string {
  return name.replace(/[aeiou]/, (vowel) => accents[vowel] ?? vowel);
}
