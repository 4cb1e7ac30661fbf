/**
 * Percent-encoded octets of a path and a query in their one spelling (RFC 3986 section 6.2.2): unreserved characters
 * stand for themselves, and all other octets have upper-case digits. Nothing reserved is decoded (`%2F` is no slash), and
 * a `%` without two digits stays. What is directly behind such a one stays encoded, since its digits would complete it:
 * `%%37E` would be `%7E`, which is another URL. SQL says the same in function canonical_escapes (migration 0074).
 */

/** For a WHATWG-parsed URL or its path; idempotent, and never longer. The same text where there is nothing to do. */
export function canonicalEscapes(text: string): string {
  return text.includes("%") && otherSpelling.test(text) ? text.replace(octets, canonicalOctet) : text;
}

/** Of a letter, a digit, `-`, `.`, `_` or `~`, or with a digit in lower case. Most encoded octets are not. */
const otherSpelling = /%(?:[0-9A-Fa-f]?[a-f]|2[DE]|3[0-9]|4[1-9A-F]|5[0-9AF]|6[1-9A-F]|7[0-9AE])/;

/** An octet; or a `%` that begins none, with an octet directly behind it. */
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
