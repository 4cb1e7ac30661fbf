/**
 * Matches robots.txt rules against paths. Both are converted to one percent-encoding (RFC 9309 section 2.2.2), `*` stands for
 * anything and a final `$` for the end (section 2.2.3). Each rule takes one pass over the path, so that a hostile file costs
 * only time linear in its length.
 */

export interface RobotsRule {
  readonly allow: boolean;
  readonly line: number;
  /** The bytes of the pattern as written, one character each. */
  readonly source: string;
  /** The length in the common encoding, by which the longest match is found. */
  readonly length: number;
  /** The literal pieces between `*`, in the common encoding. */
  readonly pieces: readonly string[];
  readonly anchored: boolean;
}

/** A path in the spellings with which rules are compared. They are equal for nearly every URL. */
interface RobotsPath {
  /** The fully normalised encoding, for rules that forbid. */
  readonly meant: string;
  /** For rules that allow: non-ASCII characters stay as received. Escaped letters and digits are decoded in one spelling. */
  readonly spelled: readonly string[];
}

/** Length of the longest URL with every character escaped. A rule with longer literal text matches nothing. */
const maxLiteralLength = 6 * 1024;
/** U+FFFD in UTF-8, which programs write for a lost character. */
const replacementCharacter = "\xef\xbf\xbd";

/**
 * Returns null if no URL can match. The value's characters are bytes. A rule with a lost character matches nothing, because
 * its intended path is unknown.
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

/** Sorts longer rules first, and Allow before Disallow of the same length. */
export function byPrecedence(a: RobotsRule, b: RobotsRule): number {
  return b.length - a.length || Number(b.allow) - Number(a.allow);
}

/** Takes a path with its query, as in a URL or as typed. */
export function robotsPath(pathAndQuery: string): RobotsPath {
  if (alreadyEncoded.test(pathAndQuery)) return { meant: pathAndQuery, spelled: [pathAndQuery] };
  const spelled = [encodedPath(pathAndQuery, "plain", "kept"), encodedPath(pathAndQuery, "kept", "kept")];
  return { meant: encodedPath(pathAndQuery, "plain", "escaped"), spelled: [...new Set(spelled)] };
}

/**
 * Takes the stricter reading in case of doubt: rules that forbid are compared with a path's meaning, rules that allow with its
 * spelling. `Allow: /%62` does not allow `/b`, and no rule allows a non-ASCII character in a path that lacks the
 * percent-encoding that every URL has.
 */
export function ruleMatches(rule: RobotsRule, path: RobotsPath): boolean {
  return rule.allow ? path.spelled.some((spelling) => fits(rule, spelling)) : fits(rule, path.meant);
}

/** Takes the leftmost match of each piece, which is correct for `*` because an earlier match never prevents a later one. */
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
 * Encodes a path. Unreserved characters and `'` are plain. Non-ASCII characters, and those neither reserved nor unreserved
 * (RFC 3986 section 2), become upper-case `%XX`. Reserved ones stay as received. A `*` or `$` in a path is data, like `%2A`
 * and `%24` in a rule. A lone surrogate stays and matches no rule.
 */
function encodedPath(path: string, octets: Octets, beyondAscii: "escaped" | "kept"): string {
  return path.replace(toEncode, (found) => {
    if (isTriplet(found)) return octet(found, octets);
    const stays = found.charCodeAt(0) >= 0x80 && (beyondAscii === "kept" || loneSurrogate.test(found));
    return stays ? found : escaped(Buffer.from(found));
  });
}

/**
 * A rule's characters are bytes. An escaped letter or digit means that character in a rule that forbids, but the escaped URL
 * in a rule that allows (RFC 9309 only decodes the URL's escapes).
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

/** Whether escaped letters and digits become plain or are kept. */
type Octets = "plain" | "kept";

function octet(triplet: string, lettersAndDigits: Octets): string {
  const character = String.fromCharCode(Number.parseInt(triplet.slice(1), 16));
  const plain = lettersAndDigits === "plain" ? /[A-Za-z0-9\-._~']/ : /[-._~']/;
  return plain.test(character) ? character : triplet.toUpperCase();
}

function escaped(bytes: Buffer): string {
  return Array.from(bytes, (byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`).join("");
}

/** Copies the text, because a slice would keep the whole file in memory as long as the rule is cached. */
const copyOf = (text: string): string => Buffer.from(text, "latin1").toString("latin1");
