/**
 * robots.txt as RFC 9309 reads it: groups of one agent merged, the longest matching rule wins, Allow on a
 * tie, `*` and a final `$`, both sides of a comparison brought to one percent-encoding (section 2.2.2).
 * Beyond the RFC, as the large crawlers do: Crawl-delay; a missing colon; and the usual misspellings of
 * `disallow`, because their writer meant it. Our own matcher: each rule is matched in one pass over the
 * path, so that a hostile file costs time in proportion to its length.
 */

/**
 * What lies beyond is ignored. RFC 9309 section 2.5 asks for at least 500 KiB; some large sites' files are
 * longer and other crawlers read them whole, so twice that.
 */
export const maxRobotsBytes = 1024 * 1024;
/** Longer patterns cannot match a URL that we fetch (2048 characters, each escaped at worst). */
const maxPatternLength = 6 * 1024;
const maxSitemaps = 1000;

export interface RobotsRules {
  /** Longest pattern first, Allow before Disallow of the same length. */
  readonly rules: readonly RobotsRule[];
  readonly crawlDelaySeconds: number | null;
  readonly sitemaps: readonly string[];
}

interface RobotsRule {
  readonly allow: boolean;
  /** For people: as it stands in the file, with its line. */
  readonly words: string;
  readonly length: number;
  /** The pattern's literal pieces between `*`, in one percent-encoding. */
  readonly pieces: readonly string[];
  /** The pattern ends in `$`. */
  readonly anchored: boolean;
}

export interface RobotsVerdict {
  readonly allowed: boolean;
  /** The rule that decided, or null when none matched. */
  readonly rule: string | null;
}

/** The rules for one product token (`Nearcrawl`), or those for `*` when no group names it. */
export function parseRobots(body: Uint8Array | string, productToken: string): RobotsRules {
  const groups = { own: newGroup(), all: newGroup() };
  const sitemaps: string[] = [];
  const token = productToken.toLowerCase();
  let heard: Set<Group> = new Set();
  let inAgents = false;
  let number = 0;
  for (const line of linesOf(body)) {
    number++;
    const field = fieldOf(line);
    if (field === null) continue;
    if (field.key === "user-agent") {
      if (!inAgents) heard = new Set();
      inAgents = true;
      if (/^\*([ \t]|$)/.test(field.value)) heard.add(groups.all);
      else if (agentToken(field.value) === token) heard.add(groups.own);
      for (const group of heard) group.named = true;
    } else if (field.key === "allow" || field.key === "disallow") {
      inAgents = false;
      const rules = rulesOf(field.key === "allow", field.value, number);
      for (const group of heard) group.rules.push(...rules);
    } else if (field.key === "crawl-delay") {
      for (const group of heard) group.crawlDelaySeconds ??= secondsOf(field.value);
    } else if (field.key === "sitemap" && sitemaps.length < maxSitemaps) {
      sitemaps.push(field.value.slice(0, 2048));
    }
  }
  const group = groups.own.named ? groups.own : groups.all;
  return {
    rules: group.rules.sort((a, b) => b.length - a.length || Number(b.allow) - Number(a.allow)),
    crawlDelaySeconds: group.crawlDelaySeconds,
    sitemaps,
  };
}

/** Whether the rules allow a path with its query, such as `/a?b=c`. robots.txt itself always is (section 2.2.2). */
export function robotsVerdict(rules: RobotsRules, pathAndQuery: string): RobotsVerdict {
  if (pathAndQuery === "/robots.txt") return { allowed: true, rule: null };
  const path = encodedPath(pathAndQuery, "plain");
  const asCame = encodedPath(pathAndQuery, "kept");
  const rule = rules.rules.find(
    (candidate) =>
      matches(candidate, path) || (candidate.allow && asCame !== path && matches(candidate, asCame)),
  );
  return rule ? { allowed: rule.allow, rule: rule.words } : { allowed: true, rule: null };
}

/** The product token that a User-Agent line names: `FooBot` of `FooBot/1.2 (x)`. */
export function agentToken(text: string): string {
  return (/^[^\s/;:,()#]+/.exec(text)?.[0] ?? "").toLowerCase();
}

interface Group {
  named: boolean;
  readonly rules: RobotsRule[];
  crawlDelaySeconds: number | null;
}

const newGroup = (): Group => ({ named: false, rules: [], crawlDelaySeconds: null });

/** One character per byte, because the file's bytes are what a rule is compared by, valid UTF-8 or not. */
function linesOf(body: Uint8Array | string): string[] {
  const bytes =
    typeof body === "string" ? Buffer.from(body) : Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  const text = stripMark(bytes.subarray(0, maxRobotsBytes));
  return text.toString("latin1").split(/\r\n|\r|\n/);
}

/** Drops a UTF-8 byte order mark, and the beginning of one cut short. */
function stripMark(bytes: Buffer): Buffer {
  const mark = [0xef, 0xbb, 0xbf];
  let length = 0;
  while (length < 3 && bytes[length] === mark[length]) length++;
  return bytes.subarray(length);
}

const misspelled = new Set(["dissallow", "dissalow", "disalow", "diasllow", "disallaw"]);

function fieldOf(line: string): { readonly key: string; readonly value: string } | null {
  const hash = line.indexOf("#");
  const plain = trimmed(hash < 0 ? line : line.slice(0, hash));
  if (plain === "") return null;
  const colon = plain.indexOf(":");
  const [rawKey, value] = colon >= 0 ? [plain.slice(0, colon), plain.slice(colon + 1)] : twoWords(plain);
  const key = trimmed(rawKey).toLowerCase();
  return { key: keyOf(key), value: trimmed(value) };
}

/** Without ASCII blanks at the ends. Not `trim()`: that takes a byte order mark for a blank, too. */
function trimmed(text: string): string {
  let first = 0;
  let end = text.length;
  while (first < end && isBlank(text.charCodeAt(first))) first++;
  while (end > first && isBlank(text.charCodeAt(end - 1))) end--;
  return text.slice(first, end);
}

const isBlank = (code: number) => code === 0x20 || (code >= 0x09 && code <= 0x0d);

function keyOf(key: string): string {
  if (misspelled.has(key)) return "disallow";
  if (key === "useragent" || key === "user agent") return "user-agent";
  if (key === "crawldelay" || key === "crawl delay") return "crawl-delay";
  if (key === "site-map") return "sitemap";
  return key;
}

function twoWords(line: string): [string, string] {
  const words = line.split(/[ \t]+/, 3);
  return words.length === 2 ? [words[0]!, words[1]!] : ["", ""];
}

function secondsOf(text: string): number | null {
  const seconds = Number(/^\d{1,9}(\.\d{1,9})?|^\.\d{1,9}/.exec(text)?.[0] ?? Number.NaN);
  return Number.isFinite(seconds) ? seconds : null;
}

/** An allowed index page allows its folder's own URL, too (as Google's parser has it). */
function rulesOf(allow: boolean, value: string, line: number): RobotsRule[] {
  if (value === "" || value.length > maxPatternLength) return [];
  const rule = ruleOf(allow, value, line);
  const folder = allow ? /^(.*\/)index\.html?$/.exec(value)?.[1] : undefined;
  return folder === undefined ? [rule] : [rule, { ...ruleOf(true, `${folder}$`, line), words: rule.words }];
}

function ruleOf(allow: boolean, value: string, line: number): RobotsRule {
  const anchored = value.endsWith("$");
  const pattern = anchored ? value.slice(0, -1) : value;
  const pieces = pattern.split(/\*+/).map((piece) => encodedRule(piece, allow));
  const stars = pieces.length - 1;
  const length = pieces.reduce((sum, piece) => sum + piece.length, stars + Number(anchored));
  const words = `${allow ? "Allow" : "Disallow"}: ${Buffer.from(value, "latin1").toString()} (line ${line})`;
  return { allow, words: words.slice(0, 300), length, pieces, anchored };
}

/** Leftmost fit of each piece in turn: right for `*` because an earlier fit never hinders a later one. */
function matches(rule: RobotsRule, path: string): boolean {
  const { pieces, anchored } = rule;
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
 * One spelling for both sides: unreserved characters and `'` plain, everything outside ASCII and all that
 * is neither reserved nor unreserved (RFC 3986 section 2) as upper-case `%XX`, reserved ones as they came.
 * A `*` or `$` in a path is data, as `%2A` and `%24` are in a rule.
 */
function encodedPath(path: string, lettersAndDigits: "plain" | "kept"): string {
  if (alreadyEncoded.test(path)) return path;
  return path.replace(toEncode, (found) => {
    if (!isTriplet(found)) return escaped(Buffer.from(found));
    return octet(found, lettersAndDigits);
  });
}

/**
 * A rule's characters are bytes. An escaped letter or digit is read in the stricter way: a rule that forbids
 * means what it spells, one that allows means the URL so escaped (RFC 9309 has only the URL's escapes undone).
 */
function encodedRule(piece: string, allow: boolean): string {
  if (alreadyEncoded.test(piece)) return piece;
  return piece.replace(toEncode, (found) => {
    if (!isTriplet(found)) return escaped(Buffer.from(found, "latin1"));
    return octet(found, allow ? "kept" : "plain");
  });
}

const isTriplet = (found: string) => found.length === 3 && found[0] === "%";
const alreadyEncoded = /^[A-Za-z0-9\-._~:/?#@!&()+,;=']*$/;
const toEncode = /%[0-9A-Fa-f]{2}|[^A-Za-z0-9\-._~:/?#@!&()+,;=']/gu;

function octet(triplet: string, lettersAndDigits: "plain" | "kept"): string {
  const character = String.fromCharCode(Number.parseInt(triplet.slice(1), 16));
  const plain = lettersAndDigits === "plain" ? /[A-Za-z0-9\-._~']/ : /[-._~']/;
  return plain.test(character) ? character : triplet.toUpperCase();
}

function escaped(bytes: Buffer): string {
  return Array.from(bytes, (byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`).join("");
}
