/**
 * Text in the one form in which it is indexed, compared and asked for: composed (Unicode's NFC, UAX #15), so that `ü`
 * is the same letter whether it was written as one character or as `u` and a mark.
 */

/** Below it every character stands for itself: most of Latin, and all that V8 keeps in one byte. */
const composable = /[\u0300-\uffff]/;
/** Putting marks in order costs the square of their number: what is composed at once is short. */
const sliceCharacters = 512;
/** So far a slice gives way, that no letter is parted from its marks. */
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

/** Marks, the later parts of Hangul's syllables, and the second half of a character that is two units long. */
const goesOn = /[\p{M}\u1160-\u11ff\udc00-\udfff]/u;
