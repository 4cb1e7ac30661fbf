/**
 * German, after the description at snowballstem.org/algorithms/german/stemmer.html, in the edition of Postgres 18:
 * ae, oe and ue are read as umlauts, -erin and -eln are endings, and -system keeps its own.
 */
import { endingOf, endings, without } from "./ending.ts";

const vowel = "[aeiouyäöü]";
const vowelThenNot = new RegExp(`${vowel}+[^aeiouyäöü]`);
const betweenVowels = new RegExp(`(${vowel})([uy])(?=${vowel})`, "g");
const spellings: Readonly<Record<string, string>> = { ß: "ss", ae: "ä", oe: "ö", ue: "ü", qu: "qu" };
const plain: Readonly<Record<string, string>> = { Y: "y", U: "u", ä: "a", ö: "o", ü: "u" };

export function germanStem(lower: string): string {
  const word = lower
    .replace(betweenVowels, (_, before: string, letter: string) => before + letter.toUpperCase())
    .replace(/ß|[aou]e|qu/g, (spelling) => spellings[spelling]!);
  const regions = regionsOf(word);
  const stem = withoutDerivation(withoutDegree(withoutInflection(word, regions), regions), regions);
  return stem.replace(/[YUäöü]/g, (letter) => plain[letter]!);
}

/** Where R1 and R2 begin: after the first, and the second, consonant that follows a vowel; R1 not before the third letter. */
interface Regions {
  readonly r1: number;
  readonly r2: number;
}

function regionsOf(word: string): Regions {
  const first = word.length < 3 ? null : vowelThenNot.exec(word);
  if (first === null) return { r1: word.length, r2: word.length };
  const r1 = first.index + first[0].length;
  const second = vowelThenNot.exec(word.slice(r1));
  const r2 = second === null ? word.length : r1 + second.index + second[0].length;
  return { r1: Math.max(3, r1), r2 };
}

const inflections = endings("em ern er erin erinnen e en es s ln lns");

function withoutInflection(word: string, { r1 }: Regions): string {
  const ending = endingOf(word, inflections);
  const rest = without(word, ending);
  if (ending === "" || rest.length < r1) return word;
  if (ending === "em" && rest.endsWith("syst")) return word;
  if (ending === "s") return /[bdfghklmnrt]$/.test(rest) ? rest : word;
  if (ending.startsWith("l")) return `${rest}l`;
  const isNoun = (ending === "e" || ending === "en" || ending === "es") && rest.endsWith("niss");
  return isNoun ? rest.slice(0, -1) : rest;
}

const degrees = endings("en er est st");

function withoutDegree(word: string, { r1 }: Regions): string {
  const ending = endingOf(word, degrees);
  const rest = without(word, ending);
  if (ending === "" || rest.length < r1) return word;
  return ending === "st" && !/...[bdfghklmnt]$/.test(rest) ? word : rest;
}

const derivations = endings("end ung ig ik isch lich heit keit");

function withoutDerivation(word: string, { r1, r2 }: Regions): string {
  const ending = endingOf(word, derivations);
  const rest = without(word, ending);
  if (ending === "" || rest.length < r2) return word;
  switch (ending) {
    case "end":
    case "ung":
      return /[^e]ig$|^ig$/.test(rest) && rest.length - 2 >= r2 ? rest.slice(0, -2) : rest;
    case "lich":
    case "heit":
      return /e[rn]$/.test(rest) && rest.length - 2 >= r1 ? rest.slice(0, -2) : rest;
    case "keit":
      return withoutKeit(rest, r2);
    default:
      return rest.endsWith("e") ? word : rest;
  }
}

function withoutKeit(rest: string, r2: number): string {
  const ending = endingOf(rest, ["lich", "ig"]);
  return rest.length - ending.length >= r2 ? without(rest, ending) : rest;
}
