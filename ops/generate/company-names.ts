/**
 * Names of made-up companies: one per number, spelled in the ways in which registries spell one company
 * (legal form with and without points, capitals, accents), and names that strangers share. The first word is
 * made of syllables and unlike any word in use, so that two numbers never read as one company.
 */
import { draw } from "./path-random.ts";

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
