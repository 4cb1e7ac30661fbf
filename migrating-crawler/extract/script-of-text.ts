/** The script of a text, and the language that it says where nearly nothing else is written in it. */

/** Scripts of many languages, by name; of the others the language (ISO 639-1). First and last code point, the block's. */
const blocks: readonly (readonly [first: number, last: number, script: string])[] = [
  [0x41, 0x24f, "Latin"],
  [0x370, 0x3ff, "el"],
  [0x400, 0x52f, "Cyrillic"],
  [0x530, 0x58f, "hy"],
  [0x590, 0x5ff, "he"],
  [0x600, 0x77f, "Arabic"],
  [0x900, 0x97f, "Devanagari"],
  [0x980, 0x9ff, "bn"],
  [0xa00, 0xa7f, "pa"],
  [0xa80, 0xaff, "gu"],
  [0xb80, 0xbff, "ta"],
  [0xc00, 0xc7f, "te"],
  [0xc80, 0xcff, "kn"],
  [0xd00, 0xd7f, "ml"],
  [0xd80, 0xdff, "si"],
  [0xe00, 0xe7f, "th"],
  [0xe80, 0xeff, "lo"],
  [0xf00, 0xfff, "bo"],
  [0x1000, 0x109f, "my"],
  [0x10a0, 0x10ff, "ka"],
  [0x1100, 0x11ff, "ko"],
  [0x1200, 0x139f, "am"],
  [0x1780, 0x17ff, "km"],
  [0x1e00, 0x1eff, "Latin"],
  [0x1f00, 0x1fff, "el"],
  [0x3040, 0x30ff, "ja"],
  [0x3400, 0x4dbf, "zh"],
  [0x4e00, 0x9fff, "zh"],
  [0xac00, 0xd7af, "ko"],
  [0xfb50, 0xfdff, "Arabic"],
  [0xfe70, 0xfeff, "Arabic"],
];
/** Whether the language has a script of its own. */
export function hasOwnScript(language: string): boolean {
  return blocks.some(([, , script]) => script === language);
}

/** So many letters have to be seen. */
const fewestLetters = 30;
const isLetter = /\p{L}/u;

/** By UTF-16 unit: 0 not looked at yet, 1 no letter of these scripts, else two more than the block's place. */
const blockOf = new Uint8Array(0x10000);
const none = 1;
const firstBlock = 2;

/** The script of most letters (`Latin`, `Cyrillic`, `Arabic`, `Devanagari`) or the language of its script; null: too few. */
export function scriptOfText(text: string): string | null {
  const counts = new Int32Array(firstBlock + blocks.length);
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    counts[blockOf[code] || findBlock(code)]!++;
  }
  return mostOf(counts);
}

function findBlock(code: number): number {
  const place = isLetter.test(String.fromCharCode(code))
    ? blocks.findIndex(([first, last]) => code >= first && code <= last)
    : -1;
  const block = place < 0 ? none : firstBlock + place;
  blockOf[code] = block;
  return block;
}

function mostOf(counts: Int32Array): string | null {
  const byScript = new Map<string, number>();
  let letters = 0;
  for (const [place, [, , script]] of blocks.entries()) {
    const count = counts[firstBlock + place]!;
    letters += count;
    if (count > 0) byScript.set(script, (byScript.get(script) ?? 0) + count);
  }
  if (letters < fewestLetters) return null;
  // Japanese is written with Chinese characters, too.
  if ((byScript.get("ja") ?? 0) * 5 > letters) return "ja";
  const [script, count] = [...byScript].reduce((most, each) => (each[1] > most[1] ? each : most));
  return 2 * count > letters ? script : null;
}
