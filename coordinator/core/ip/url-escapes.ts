/**
 * Percent-encoded octets of path and query in canonical form (RFC 3986 section 6.2.2): unreserved characters are decoded, other
 * octets get upper-case digits. Reserved characters stay encoded (`%2F` is no slash), and so does a `%` without two digits.
 * What directly follows such a `%` stays encoded because it would complete it: `%%37E` would become `%7E`, another URL. The SQL
 * function canonical_escapes (migration 0074) does the same.
 */

/** Takes a WHATWG-parsed URL or its path. Idempotent, and never longer; returns the same text when nothing changes. */
export function canonicalEscapes(text: string): string {
  return text.includes("%") && otherSpelling.test(text) ? text.replace(octets, canonicalOctet) : text;
}

/** Matches an encoded unreserved character or lower-case digits. Most encoded octets are neither. */
const otherSpelling = /%(?:[0-9A-Fa-f]?[a-f]|2[DE]|3[0-9]|4[1-9A-F]|5[0-9AF]|6[1-9A-F]|7[0-9AE])/;

/** Matches an octet, or a `%` that begins none together with the octet that follows it. */
const octets = /%(?:([0-9A-Fa-f]{2})|[0-9A-Fa-f]?(?:%[0-9A-Fa-f]{2})?)/g;

function canonicalOctet(whole: string, digits: string | undefined): string {
  if (digits === undefined) {
    const at = whole.lastIndexOf("%");
    return at === 0 ? whole : whole.slice(0, at) + whole.slice(at).toUpperCase();
  }
  const character = String.fromCharCode(Number.parseInt(digits, 16));
  return unreserved.test(character) ? character : whole.toUpperCase();
}

const unreserved = /[\w.~-]/;
