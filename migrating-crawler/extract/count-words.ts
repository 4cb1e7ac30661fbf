/**
 * How many words stand in a part of a text: runs without a blank, and where a script has none between words, two
 * characters count as one. 0 for white space. A longer part's words are reckoned from its beginning.
 */
export function countWords(text: string, from: number, to: number): number {
  let begin = from;
  while (begin < to && text.charCodeAt(begin) <= 0x20) begin++;
  const end = Math.min(to, begin + sampleCharacters);
  const words = wordsBetween(text, begin, end);
  return end === to ? words : Math.round((words * (to - begin)) / sampleCharacters);
}

const sampleCharacters = 64;

function wordsBetween(text: string, from: number, to: number): number {
  let [words, wide, wasBlank] = [0, 0, 1];
  for (let at = from; at < to; at++) {
    const code = text.charCodeAt(at);
    // Without a branch, which the processor would guess wrong at every word: 1 up to the blank, else 0.
    const isBlank = (code - 0x21) >>> 31;
    words += wasBlank & (isBlank ^ 1);
    wasBlank = isBlank;
    if (code >= 0x0e00 && isWithoutBlanks(code)) wide++;
  }
  return words + (wide >> 1);
}

/** Thai, Lao; Burmese; Khmer; Chinese characters and kana. */
const isWithoutBlanks = (code: number) =>
  code < 0x0f00 ||
  (code >= 0x1000 && code < 0x10a0) ||
  (code >= 0x1780 && code < 0x1800) ||
  (code >= 0x2e80 && code < 0xac00);
