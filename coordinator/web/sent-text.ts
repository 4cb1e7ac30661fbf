/** Texts as they come from outside, as the database and its JSON can hold them. */

/** NUL, which no column holds, becomes the character that stands for what cannot be shown. */
export function sentText(text: string): string {
  return text.replaceAll("\0", "\ufffd");
}

/**
 * True: somewhere in it is NUL or half of a surrogate pair. JSON.stringify escapes both and no other character like
 * that; a backslash that was sent is two there.
 */
export function isUnstorable(body: unknown): boolean {
  return /(?<!\\)(?:\\\\)*\\u(?:0000|d[89a-f])/.test(JSON.stringify(body) ?? "");
}
