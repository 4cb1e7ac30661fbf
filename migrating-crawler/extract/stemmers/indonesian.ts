/**
 * Indonesian, after F. Z. Tala, "A Study of Stemming Effects on Information Retrieval in Bahasa Indonesia"
 * (2003), as snowballstem.org describes it: a particle, a possessive, then prefixes and a suffix are taken off,
 * each only while the word has more than two vowels, less one for each part gone.
 */

/** The kind of the prefix taken off, which decides what suffixes may follow. */
type Prefix = "none" | "verb" | "noun" | "per" | "ber";

interface Word {
  readonly text: string;
  readonly vowels: number;
  readonly prefix: Prefix;
  /** Letters at the start that stand for a prefix and are left alone. */
  readonly fixed: number;
}

export function indonesianStem(lower: string): string {
  const vowels = lower.match(/[aeiou]/g)?.length ?? 0;
  let word: Word = { text: lower, vowels, prefix: "none", fixed: 0 };
  for (const ending of [/(?:kah|lah|pun)$/, /(?:ku|mu|nya)$/]) {
    if (word.vowels <= 2) return word.text;
    const text = word.text.replace(ending, "");
    if (text !== word.text) word = { ...word, text, vowels: word.vowels - 1 };
  }
  return word.vowels <= 2 ? word.text : withoutAffixes(word).text;
}

/** Either a first prefix, a suffix and only then a second prefix, or without the first: a second one and a suffix. */
function withoutAffixes(word: Word): Word {
  const first = withoutFirstPrefix(word);
  if (first === null) {
    const second = withoutSecondPrefix(word);
    return withoutSuffix(second) ?? second;
  }
  const suffixed = withoutSuffix(first);
  if (suffixed === null) return first;
  return suffixed.vowels > 2 && suffixed.fixed === 0 ? withoutSecondPrefix(suffixed) : suffixed;
}

function withoutFirstPrefix(word: Word): Word | null {
  const { text } = word;
  const found = /^(?:me(?:ny(?=[aeiou])|ng|m|n|)|pe(?:ny(?=[aeiou])|ng|m|n)|di|ter|ke)/.exec(text)?.[0];
  if (found === undefined) return null;
  const rest = text.slice(found.length);
  const letter = found.endsWith("ny") ? "s" : found.endsWith("m") && /^[aeiou]/.test(rest) ? "p" : "";
  const prefix = found.startsWith("pe") || found === "ke" ? "noun" : "verb";
  return { text: letter + rest, vowels: word.vowels - 1, prefix, fixed: letter.length };
}

function withoutSecondPrefix(word: Word): Word {
  const { text, prefix } = word;
  const vowels = word.vowels - 1;
  if (text.startsWith("pelajar")) return { text: text.slice(3), vowels, prefix, fixed: 0 };
  if (text.startsWith("belajar")) return { text: text.slice(3), vowels, prefix: "ber", fixed: 0 };
  const per = /^per?/.exec(text)?.[0];
  if (per !== undefined) return { text: text.slice(per.length), vowels, prefix: "per", fixed: 0 };
  const ber = /^be(?:r|(?=[^aeiou]er))/.exec(text)?.[0];
  return ber === undefined ? word : { text: text.slice(ber.length), vowels, prefix: "ber", fixed: 0 };
}

/** Null where no suffix goes. */
function withoutSuffix(word: Word): Word | null {
  if (word.vowels <= 2) return null;
  const { prefix, fixed } = word;
  const part = word.text.slice(fixed);
  const mayEnd = [
    part.endsWith("kan") && prefix !== "noun" && prefix !== "per" ? 3 : 0,
    part.endsWith("an") && prefix !== "verb" ? 2 : 0,
    /(?:^|[^s])i$/.test(part) && prefix !== "noun" && prefix !== "ber" ? 1 : 0,
  ].find((length) => length > 0);
  return mayEnd === undefined
    ? null
    : { ...word, text: word.text.slice(0, -mayEnd), vowels: word.vowels - 1 };
}
