/**
 * Hindi, after A. Ramanathan and D. D. Rao, "A Lightweight Stemmer for Hindi" (2003): the longest ending of a
 * list goes, as long as a character is left. The list is the paper's, in its Latin transcription: a vowel
 * after a consonant is a vowel sign, and the `a` that every consonant has is not written.
 */
import { endings } from "./ending.ts";

const transcribed =
  "a A i I u U e o eM oM AM uAM ueM uoM AeM AoM iyAM iyoM AiyAM AiyoM AZ iyAZ AiyAZ awAeM awAoM anAeM anAoM awA " +
  "awI IM awIM awe AwA AwI AwIM Awe anA anI ane AnA Ane UMgA UMgI AUMgA AUMgI eMge eMgI AeMge AeMgI oge ogI Aoge " +
  "AogI egA egI AegA AegI AyA Ae AI AIM ie Ao Aie akr Akr";

const letters: Readonly<Record<string, string>> = {
  ...{
    a: "\u0905",
    A: "\u0906",
    i: "\u0907",
    I: "\u0908",
    u: "\u0909",
    U: "\u090a",
    e: "\u090f",
    o: "\u0913",
  },
  ...{
    k: "\u0915",
    g: "\u0917",
    w: "\u0924",
    n: "\u0928",
    y: "\u092f",
    r: "\u0930",
    M: "\u0902",
    Z: "\u0901",
  },
};
const signs: Readonly<Record<string, string>> = {
  ...{ a: "", A: "\u093e", i: "\u093f", I: "\u0940", u: "\u0941", U: "\u0942", e: "\u0947", o: "\u094b" },
};
const virama = "\u094d";

/** An ending at the start of which a vowel stands for itself, or is the sign of the consonant before it. */
function inDevanagari(ending: string, isSign: boolean): string {
  let afterConsonant = isSign;
  let written = "";
  for (const letter of ending) {
    written += (afterConsonant ? signs[letter] : undefined) ?? letters[letter]!;
    afterConsonant = "kgwnyr".includes(letter);
  }
  return written;
}

const plain = transcribed
  .split(" ")
  .flatMap((ending) => [
    inDevanagari(ending, false),
    ...(ending.startsWith("a") ? [] : [inDevanagari(ending, true)]),
  ]);
/** With the `a` of a consonant, which has to be there. */
const afterConsonant = new Set(
  transcribed.split(" ").flatMap((ending) => (/^a./.test(ending) ? [inDevanagari(ending, true)] : [])),
);
const all = endings(virama, ...plain, ...afterConsonant);
const consonant =
  /[\u0915-\u0928\u092a-\u0930\u0932\u0933\u0935-\u0939\u093c\u0929\u0931\u0934\u0958-\u095f]/;

export function hindiStem(lower: string): string {
  const ending = all.find((each) => lower.endsWith(each) && mayGo(lower, each));
  return ending === undefined ? lower : lower.slice(0, -ending.length);
}

function mayGo(word: string, ending: string): boolean {
  const left = word.length - ending.length;
  return afterConsonant.has(ending) ? left >= 2 && consonant.test(word[left - 1]!) : left >= 1;
}
