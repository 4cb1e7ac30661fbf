/**
 * Whether a robots.txt rule matches a path: both sides in one percent-encoding (RFC 9309 section 2.2.2), `*` for
 * anything and a final `$` for the end (section 2.2.3). Our own matcher: each rule is matched in one pass over the
 * path, so that a hostile file costs time in proportion to its length.
 */

export interface RobotsRule {
  readonly allow: boolean;
  /** The line of the file, from 1. */
  readonly line: number;
  /** The pattern's bytes as they stand there, one character each. */
  readonly source: string;
  /** In the one encoding: what "longest match" compares. */
  readonly length: number;
  /** The pattern's literal pieces between `*`, in the one encoding. */
  readonly pieces: readonly string[];
  /** The pattern ends in `$`. */
  readonly anchored: boolean;
}

/** A path in the spellings that rules are compared with; for nearly every URL they are one. */
interface RobotsPath {
  /** For rules that forbid: fully brought to the one encoding. */
  readonly meant: string;
  /** For rules that allow: characters beyond ASCII left as they came, escaped letters and digits read or left. */
  readonly spelled: readonly string[];
}

/** Our longest URL, every character of it escaped. A rule whose literal text is longer matches nothing. */
const maxLiteralLength = 6 * 1024;
/** U+FFFD in UTF-8: what a program writes for a character that it has lost. */
const replacementCharacter = "\xef\xbf\xbd";

/**
 * The rule of a line; null when no URL can match it. The value's characters are bytes. A rule with a lost
 * character names something else than its writer meant, which nobody can tell: it matches nothing.
 */
export function robotsRule(allow: boolean, value: string, line: number): RobotsRule | null {
  if (value === "" || value.includes(replacementCharacter)) return null;
  const anchored = value.endsWith("$");
  const pieces = (anchored ? value.slice(0, -1) : value)
    .split(/\*+/)
    .map((piece) => copyOf(encodedRule(piece, allow)));
  const literal = pieces.reduce((sum, piece) => sum + piece.length, 0);
  if (literal > maxLiteralLength) return null;
  const length = literal + pieces.length - 1 + Number(anchored);
  return { allow, line, source: copyOf(value), length, pieces, anchored };
}

/** The order in which rules are asked: the longest first, Allow before Disallow of the same length. */
export function byPrecedence(a: RobotsRule, b: RobotsRule): number {
  return b.length - a.length || Number(b.allow) - Number(a.allow);
}

/** A path with its query, as in a URL or as somebody typed it. */
export function robotsPath(pathAndQuery: string): RobotsPath {
  if (alreadyEncoded.test(pathAndQuery)) return { meant: pathAndQuery, spelled: [pathAndQuery] };
  const spelled = [encodedPath(pathAndQuery, "plain", "kept"), encodedPath(pathAndQuery, "kept", "kept")];
  return { meant: encodedPath(pathAndQuery, "plain", "escaped"), spelled: [...new Set(spelled)] };
}

/**
 * In doubt the stricter reading: a rule that forbids is compared with what the path means, one that allows with
 * how it is spelled. `Allow: /%62` does not allow `/b`, and no rule allows a character beyond ASCII in a path
 * that is not percent-encoded as every URL is.
 */
export function ruleMatches(rule: RobotsRule, path: RobotsPath): boolean {
  return rule.allow ? path.spelled.some((spelling) => fits(rule, spelling)) : fits(rule, path.meant);
}

/** Leftmost fit of each piece in turn: right for `*` because an earlier fit never hinders a later one. */
function fits({ pieces, anchored }: RobotsRule, path: string): boolean {
  const first = pieces[0]!;
  if (!path.startsWith(first)) return false;
  let at = first.length;
  if (pieces.length === 1) return !anchored || at === path.length;
  const last = pieces.length - 1;
  for (let index = 1; index < last; index++) {
    const found = path.indexOf(pieces[index]!, at);
    if (found < 0) return false;
    at = found + pieces[index]!.length;
  }
  const end = pieces[last]!;
  if (!anchored) return path.indexOf(end, at) >= 0;
  return path.length - end.length >= at && path.endsWith(end);
}

/**
 * The one encoding: unreserved characters and `'` plain, everything outside ASCII and all that is neither
 * reserved nor unreserved (RFC 3986 section 2) as upper-case `%XX`, reserved ones as they came. A `*` or `$` in a
 * path is data, as `%2A` and `%24` are in a rule. A lone surrogate has no encoding and stays: no rule matches it.
 */
function encodedPath(path: string, octets: Octets, beyondAscii: "escaped" | "kept"): string {
  return path.replace(toEncode, (found) => {
    if (isTriplet(found)) return octet(found, octets);
    const stays = found.charCodeAt(0) >= 0x80 && (beyondAscii === "kept" || loneSurrogate.test(found));
    return stays ? found : escaped(Buffer.from(found));
  });
}

/**
 * A rule's characters are bytes. An escaped letter or digit in a rule that forbids means what it spells; in one
 * that allows it means the URL so escaped (RFC 9309 has only the URL's escapes undone).
 */
function encodedRule(piece: string, allow: boolean): string {
  if (alreadyEncoded.test(piece)) return piece;
  return piece.replace(toEncode, (found) => {
    if (!isTriplet(found)) return escaped(Buffer.from(found, "latin1"));
    return octet(found, allow ? "kept" : "plain");
  });
}

const isTriplet = (found: string) => found.length === 3 && found[0] === "%";
const loneSurrogate = /^\p{Surrogate}$/u;
const alreadyEncoded = /^[A-Za-z0-9\-._~:/?#@!&()+,;=']*$/;
const toEncode = /%[0-9A-Fa-f]{2}|[^A-Za-z0-9\-._~:/?#@!&()+,;=']/gu;

/** What becomes of an escaped letter or digit. */
type Octets = "plain" | "kept";

function octet(triplet: string, lettersAndDigits: Octets): string {
  const character = String.fromCharCode(Number.parseInt(triplet.slice(1), 16));
  const plain = lettersAndDigits === "plain" ? /[A-Za-z0-9\-._~']/ : /[-._~']/;
  return plain.test(character) ? character : triplet.toUpperCase();
}

function escaped(bytes: Buffer): string {
  return Array.from(bytes, (byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`).join("");
}

/** A string of its own: a slice would keep the whole file in memory for as long as the rule is remembered. */
const copyOf = (text: string): string => Buffer.from(text, "latin1").toString("latin1");
