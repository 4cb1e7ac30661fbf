/**
 * Provides the newest edition of the Snowball stemmers (snowballstem.org). Most come from a package that has an older one;
 * what has changed since is implemented here. The two that this package lacks come from another.
 */

type Stem = (lower: string) => string;

export async function stemmerOf(algorithm: string): Promise<Stem> {
  if (algorithm === "greek") return (await import("@orama/stemmers/greek")).stemmer;
  if (algorithm === "indonesian") return (await import("@orama/stemmers/indonesian")).stemmer;
  if (algorithm === "german") return germanStem;
  const { newStemmer } = await import("snowball-stemmers");
  const stemmer = newStemmer(algorithm);
  const older = (word: string) => stemmer.stem(word);
  const edition = newer[algorithm];
  return edition === undefined ? older : (word) => edition(word, older);
}

type Edition = (word: string, older: Stem) => string;

/** Where the package differs from the newest edition. */
const newer: Readonly<Record<string, Edition>> = {
  /** ë and ï start a new syllable and combine with a suffix, unless the suffix is that of a verb in -ir. */
  french: (word, older) => {
    if (!/[ëï]/.test(word)) return older(word);
    const marked = word.replaceAll("ë", "He").replaceAll("ï", "Hi");
    const stem = older(marked);
    const isCutWithin = stem.endsWith("H") && verbInIr.test(marked);
    const kept = isCutWithin ? older(marked.replaceAll("Hi", "Hû")) : stem;
    return kept.replaceAll("He", "ë").replace(/H[iû]/g, "ï").replaceAll("H", "");
  },
  russian: (word, older) => older(word.replaceAll("ё", "е")),
  /** Short words keep their double consonant: `added`, `erring`. */
  english: (word, older) => {
    const stem = older(word);
    const isShortened = stem.length === 2 && /^[aeo]([bdfgmnprt])\1(?:ed|ing)(?:ly)?s?$/.test(word);
    return isShortened ? stem + stem[1] : stem;
  },
  /** Keeps `divano` (sofa) from being reduced to the stem of `diva`. */
  italian: (word, older) => (word === "divano" ? "divan" : older(word)),
  /** ş and ţ with a cedilla equal ș and ț with a comma. The older edition knows only the cedilla. */
  romanian: (word, older) => {
    if (!/[şţșț]/.test(word)) return older(word);
    return older(word.replaceAll("ș", "ş").replaceAll("ț", "ţ")).replaceAll("ş", "ș").replaceAll("ţ", "ț");
  },
  /** -öst loses its t after more consonants than just l. */
  swedish: (word, older) => {
    const stem = older(word);
    if (!/[iklnprtuv]öst$/.test(stem)) return stem;
    const afterVowel = /^.*?[aeiouyäåö][^aeiouyäåö]/.exec(word)?.[0].length ?? word.length;
    return Math.max(3, afterVowel) <= stem.length - 3 ? stem.slice(0, -1) : stem;
  },
};

/** An ending of a verb like finir that begins with an i with diaeresis, marked above. */
const verbInIr =
  /Hi(?:es?|r(?:a(?:is?|it|ient|s)?|ent|ez|iez|ions|ons|ont)?|s(?:s(?:ai(?:ent|s|t)|ante?s?|e(?:s|nt|z)?|iez|ions|ons))?|t)?$/;

/** Sorts the endings by length, longest first, for `endingOf`. */
function endings(...words: readonly string[]): readonly string[] {
  return words.flatMap((each) => each.split(" ")).sort((a, b) => b.length - a.length);
}

function endingOf(word: string, ordered: readonly string[]): string {
  return ordered.find((ending) => word.endsWith(ending)) ?? "";
}

function without(word: string, ending: string): string {
  return word.slice(0, word.length - ending.length);
}

// German stems by snowballstem.org/algorithms/german/stemmer.html, in its newest edition. It reads ae, oe and ue as
// umlauts, removes the endings -erin and -eln, and treats words in -system separately.

const vowel = "[aeiouyäöü]";
const vowelThenNot = new RegExp(`${vowel}+[^aeiouyäöü]`);
const betweenVowels = new RegExp(`(${vowel})([uy])(?=${vowel})`, "g");
const spellings: Readonly<Record<string, string>> = { ß: "ss", ae: "ä", oe: "ö", ue: "ü", qu: "qu" };
const plain: Readonly<Record<string, string>> = { Y: "y", U: "u", ä: "a", ö: "o", ü: "u" };

function germanStem(lower: string): string {
  const word = lower
    .replace(betweenVowels, (_, before: string, letter: string) => before + letter.toUpperCase())
    .replace(/ß|[aou]e|qu/g, (spelling) => spellings[spelling]!);
  const regions = regionsOf(word);
  const stem = withoutDerivation(withoutDegree(withoutInflection(word, regions), regions), regions);
  return stem.replace(/[YUäöü]/g, (letter) => plain[letter]!);
}

/** R1 begins after the first consonant that follows a vowel, but not before the third letter. R2 begins after the second one. */
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
