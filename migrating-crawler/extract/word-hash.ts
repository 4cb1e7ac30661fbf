/** A hash of words for tables in memory, character by character (FNV-1a over UTF-16 units). */

/** Of no characters. */
export const noHash = 0x811c9dc5 | 0;

/** One character further. */
export function hashOn(hash: number, code: number): number {
  return Math.imul(hash ^ code, 0x01000193);
}

export function hashOf(text: string, from: number, to: number): number {
  let hash = noHash;
  for (let at = from; at < to; at++) hash = hashOn(hash, text.charCodeAt(at));
  return hash;
}
