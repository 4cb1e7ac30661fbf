/**
 * Texts that are really numbers or bytes: each form says what a text of it is worth, and gives the same text
 * back to the letter. Deflate cannot shorten a digest, and a time of day costs it more than its number.
 */

/** Lowercase hex of whole bytes, 8 to 64 of them: digests, hashes. */
export function isHex(text: string): boolean {
  return text.length >= 16 && text.length <= 128 && text.length % 2 === 0 && /^[0-9a-f]+$/.test(text);
}

/** A decimal number without a sign or zeros before it: ids. */
export function isDecimal(text: string): boolean {
  return /^(0|[1-9]\d{0,14})$/.test(text);
}

/** Milliseconds of `2026-11-22T08:30:00.000Z`, from 1970 on; null for any other text. */
export function instantOf(text: string): number | null {
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(text)) return null;
  const ms = Date.parse(text);
  return ms >= 0 && instantText(ms) === text ? ms : null;
}

/** Null for what is no time. */
export function instantText(ms: number): string | null {
  const date = new Date(ms);
  return Number.isNaN(date.getTime()) ? null : date.toISOString();
}

/** Seconds of an HTTP date (RFC 9110 section 5.6.7, its preferred form), from 1970 on; null for any other text. */
export function httpDateOf(text: string): number | null {
  if (text.length !== 29 || !text.endsWith(" GMT")) return null;
  const ms = Date.parse(text);
  return ms >= 0 && httpDateText(ms / 1000) === text ? ms / 1000 : null;
}

export function httpDateText(seconds: number): string | null {
  const date = new Date(seconds * 1000);
  return Number.isNaN(date.getTime()) ? null : date.toUTCString();
}
