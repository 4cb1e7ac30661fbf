/**
 * The form in which text is indexed, compared and queried: composed (Unicode NFC, UAX #15), so that `ü` is one letter whether
 * it was written as one character or as `u` and a mark.
 */

/** Characters below U+0300 never compose. They include most of Latin and everything that V8 stores in one byte. */
const composable = /[\u0300-\uffff]/;
/** Ordering marks takes quadratic time, so only short slices are composed at once. */
const sliceCharacters = 512;
/** A slice may shrink by this much so that no letter is separated from its marks. */
const longestLetter = 64;

export function composed(text: string): string {
  if (!composable.test(text)) return text;
  if (text.length <= sliceCharacters) return text.normalize("NFC");
  let whole = "";
  for (let from = 0; from < text.length; ) {
    const to = sliceEnd(text, from);
    whole += text.slice(from, to).normalize("NFC");
    from = to;
  }
  return whole;
}

function sliceEnd(text: string, from: number): number {
  const furthest = from + sliceCharacters;
  if (furthest >= text.length) return text.length;
  let to = furthest;
  while (to > furthest - longestLetter && goesOn.test(text[to]!)) to--;
  return goesOn.test(text[to]!) ? furthest : to;
}

/** Matches characters that continue a letter: marks, the later parts of Hangul syllables, and low surrogates. */
const goesOn = /[\p{M}\u1160-\u11ff\udc00-\udfff]/u;
