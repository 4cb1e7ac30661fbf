/**
 * Parses robots.txt (RFC 9309): groups of one agent are merged, `*` applies if none names this crawler, the longest matching
 * rule wins, and Allow wins a tie. Like the large crawlers, the parser also accepts Crawl-delay, a missing colon and common
 * misspellings of `disallow`, whose intent is clear. It also reads statements about page uses (robots-uses.ts). Pure
 * functions.
 */

import imported from "robots-parser";
import { withoutUser } from "#core/ip/url-host";
import { maxUrlLength } from "#protocol/fields";
import type { OtherReading } from "#protocol/result";
import { bodyDigest } from "../extract/extract-list.ts";
import { resolveUrl } from "../extract/resolve-url.ts";
import { isSampled } from "../extract/second-opinion.ts";
import {
  byPrecedence,
  type RobotsRule,
  robotsPath,
  robotsRule,
  ruleMatches,
} from "../preferences/robots-match.ts";
import {
  isAbsoluteUrl,
  isUseField,
  type RobotsUses,
  type UseField,
  UseLines,
  usesOf,
} from "./robots-uses.ts";

/** Files list more sitemaps only by mistake or malice. */
const maxSitemaps = 50;

/** At most this many agents of a group are shown to people. */
const maxToldAgents = 20;

/** One verdict may compare this many characters, which takes about 50 ms. No real file comes near it. */
const maxComparedCharacters = 50_000_000;

export interface RobotsRules {
  /** Sorted in the order of matching (`byPrecedence`). */
  readonly rules: readonly RobotsRule[];
  readonly crawlDelaySeconds: number | null;
  /** Sitemap lines as written, without user names. `sitemapUrls` makes them absolute. */
  readonly sitemaps: readonly string[];
  /** The User-agent lines of the groups used, as written. Empty if no group applies. */
  readonly agents: readonly string[];
  /** True if the file exceeds `maxRobotsBytes`, so that the rest was ignored. */
  readonly cut: boolean;
  readonly uses: RobotsUses;
}

export interface RobotsVerdict {
  readonly allowed: boolean;
  /** The deciding rule, such as `Disallow: /a (line 3)`. Null if none matched. */
  readonly rule: string | null;
  readonly line: number | null;
}

/** Returns the rules for one agent's product token (`Nearcrawl`), or those for `*` if no group names it. */
export function parseRobots(body: Uint8Array | string, agent: string): RobotsRules {
  const { lines, cut } = robotsText(body);
  const reading = new RobotsReading(agent);
  lines.forEach((line, index) => {
    const field = fieldOf(line);
    if (field !== null) reading.take(field, index + 1);
    else if (trimmed(line) === "") reading.takeBlank();
  });
  return { ...reading.rules(), cut };
}

/** Takes a path with its query, such as `/a?b=c`. /robots.txt itself is always allowed (section 2.2.2). */
export function robotsVerdict(rules: RobotsRules, pathAndQuery: string): RobotsVerdict {
  if (pathAndQuery === "/robots.txt") return { allowed: true, rule: null, line: null };
  const path = robotsPath(pathAndQuery);
  let compared = 0;
  for (const rule of rules.rules) {
    compared += rule.pieces.length === 1 ? rule.length : path.meant.length;
    if (compared > maxComparedCharacters) return tooMuch;
    if (!ruleMatches(rule, path)) continue;
    return { allowed: rule.allow, rule: ruleWords(rule), line: rule.line };
  }
  return { allowed: true, rule: null, line: null };
}

/** Returns absolute http(s) URLs without duplicates. Relative ones are resolved against the file's URL. */
export function sitemapUrls(rules: Pick<RobotsRules, "sitemaps">, robotsUrl: string): string[] {
  return [...new Set(rules.sitemaps.flatMap((sitemap) => resolveUrl(sitemap, robotsUrl) ?? []))];
}

/**
 * Returns the product token in lower case: `foobot` for `FooBot/1.2 (x)`. Other agents' tokens may have digits
 * (`360Spider`).
 */
export const agentToken = (text: string): string => (/^[^\s/;:,()#]+/.exec(text)?.[0] ?? "").toLowerCase();

/** Compares up to the first character that cannot be part of a token, as Google's parser does. The token is in lower case. */
function addresses(line: string, token: string): boolean {
  if (token === "" || line.slice(0, token.length).toLowerCase() !== token) return false;
  return !/[A-Za-z_-]/.test(line[token.length] ?? "");
}

/** A file that takes too long to match is not obeyed in part: what cannot be judged is forbidden. */
const tooMuch: RobotsVerdict = {
  allowed: false,
  rule: "robots.txt has more wildcards than can be judged, which forbids everything",
  line: null,
};

interface Group {
  readonly agents: string[];
  readonly rules: RobotsRule[];
  readonly uses: UseLines;
  crawlDelaySeconds: number | null;
}

const newGroup = (): Group => ({ agents: [], rules: [], uses: new UseLines(), crawlDelaySeconds: null });

const groupKeys = new Set("user-agent allow disallow crawl-delay content-signal content-usage".split(" "));

/** Reads the file line by line. Rules belong to the User-agent lines directly before them. */
class RobotsReading {
  readonly #token: string;
  readonly #own = newGroup();
  readonly #all = newGroup();
  readonly #sitemaps: string[] = [];
  /** Lines about uses that come before any group, and licenses that come after one. */
  readonly #forAll = new UseLines();
  #isOurs = false;
  #hasGroups = false;
  #heard = new Set<Group>();
  #inAgents = false;
  /** A blank line ends the group unless a line of a group follows, because licenses and sitemaps are often appended to files. */
  #isBehindGroup = false;

  constructor(agent: string) {
    this.#token = agentToken(agent);
  }

  take({ key, value }: Field, line: number): void {
    if (groupKeys.has(key)) this.#isBehindGroup = false;
    if (key === "user-agent") this.#agent(value);
    else if (key === "allow" || key === "disallow") this.#rule(key === "allow", value, line);
    else if (key === "crawl-delay") {
      for (const group of this.#heard) group.crawlDelaySeconds ??= secondsOf(value);
    } else if (key === "sitemap") this.#sitemap(value);
    else if (isUseField(key)) this.#use(key, value, line);
  }

  takeBlank(): void {
    this.#isBehindGroup = !this.#inAgents;
  }

  rules(): Omit<RobotsRules, "cut"> {
    const { agents, rules, uses, crawlDelaySeconds } = this.#isOurs ? this.#own : this.#all;
    const sitemaps = this.#sitemaps;
    return {
      agents,
      rules: rules.sort(byPrecedence),
      crawlDelaySeconds,
      sitemaps,
      uses: usesOf(this.#forAll, uses),
    };
  }

  #agent(value: string): void {
    if (!this.#inAgents) this.#heard = new Set();
    this.#inAgents = true;
    this.#hasGroups = true;
    const isAll = /^\*([ \t]|$)/.test(value);
    if (!isAll && !addresses(value, this.#token)) return;
    const group = isAll ? this.#all : this.#own;
    this.#isOurs ||= !isAll;
    this.#heard.add(group);
    if (group.agents.length < maxToldAgents) group.agents.push(textOf(value.slice(0, 200)));
  }

  #rule(allow: boolean, value: string, line: number): void {
    this.#inAgents = false;
    if (this.#heard.size === 0) return;
    const rules = rulesOf(allow, value, line);
    for (const group of this.#heard) group.rules.push(...rules);
  }

  /** `Content-Usage` is a rule like any other (attach-05 section 3), so a User-agent line after it starts a new group. */
  #use(field: UseField, value: string, line: number): void {
    const use = { field, value: textOf(value), line };
    const isLicense = field === "license";
    if (isLicense && !isAbsoluteUrl(use.value)) return;
    if (!this.#hasGroups || (isLicense && this.#isBehindGroup)) {
      this.#forAll.take(use);
      return;
    }
    this.#inAgents &&= isLicense;
    for (const group of this.#heard) group.uses.take(use);
  }

  #sitemap(value: string): void {
    if (this.#sitemaps.length < maxSitemaps && value !== "" && value.length <= maxUrlLength) {
      this.#sitemaps.push(withoutUser(textOf(value)));
    }
  }
}

/** Allowing an index page also allows its folder's URL (as in Google's parser). */
function rulesOf(allow: boolean, value: string, line: number): RobotsRule[] {
  const rule = robotsRule(allow, value, line);
  if (rule === null) return [];
  const folder = allow ? /^(.*\/)index\.html?$/.exec(value)?.[1] : undefined;
  const folderRule = folder === undefined ? null : robotsRule(true, `${folder}$`, line);
  return folderRule === null ? [rule] : [rule, folderRule];
}

function ruleWords({ allow, source, line }: RobotsRule): string {
  return `${allow ? "Allow" : "Disallow"}: ${textOf(source.slice(0, 250))} (line ${line})`;
}

interface Field {
  readonly key: string;
  readonly value: string;
}

const aliases = new Map([
  ..."dissallow dissalow disalow diasllow disallaw".split(" ").map((key) => [key, "disallow"] as const),
  ...["useragent", "user agent"].map((key) => [key, "user-agent"] as const),
  ...["crawldelay", "crawl delay"].map((key) => [key, "crawl-delay"] as const),
  ["site-map", "sitemap"],
  ["content-signals", "content-signal"],
]);

function fieldOf(line: string): Field | null {
  const hash = line.indexOf("#");
  const plain = trimmed(hash < 0 ? line : line.slice(0, hash));
  if (plain === "") return null;
  const colon = plain.indexOf(":");
  const [rawKey, value] = colon >= 0 ? [plain.slice(0, colon), plain.slice(colon + 1)] : twoWords(plain);
  const key = trimmed(rawKey).slice(0, 40).toLowerCase();
  return { key: aliases.get(key) ?? key, value: trimmed(value) };
}

/** Trims only ASCII blanks, because `trim()` would also remove a byte order mark. */
function trimmed(text: string): string {
  let first = 0;
  let end = text.length;
  while (first < end && isBlank(text.charCodeAt(first))) first++;
  while (end > first && isBlank(text.charCodeAt(end - 1))) end--;
  return text.slice(first, end);
}

const isBlank = (code: number) => code === 0x20 || (code >= 0x09 && code <= 0x0d);

function twoWords(line: string): [string, string] {
  const words = line.split(/[ \t]+/, 3);
  return words.length === 2 ? [words[0]!, words[1]!] : ["", ""];
}

/** In many countries, a comma precedes decimals. */
function secondsOf(text: string): number | null {
  const written = /^\d{1,9}([.,]\d{1,9})?|^[.,]\d{1,9}/.exec(text)?.[0];
  const seconds = Number(written?.replace(",", ".") ?? Number.NaN);
  return Number.isFinite(seconds) ? seconds : null;
}

const textOf = (bytes: string) => Buffer.from(bytes, "latin1").toString();

// Splits a robots.txt into lines. RFC 9309 section 2.2 requires UTF-8, but files also come in UTF-16, with or without a byte
// order mark, with any line ends, and without a final one. Lines have one character per byte (Latin-1), because rules compare
// bytes, whether or not they are valid UTF-8.

/**
 * The rest of the file is ignored. RFC 9309 section 2.5 requires at least 500 KiB. Some large sites exceed that and other
 * crawlers read their files whole, so this limit is twice as high.
 */
export const maxRobotsBytes = 1024 * 1024;

interface RobotsText {
  readonly lines: readonly string[];
  /** True if the file exceeds `maxRobotsBytes`. The line at the limit is dropped. */
  readonly cut: boolean;
}

function robotsText(body: Uint8Array | string): RobotsText {
  const bytes =
    typeof body === "string" ? Buffer.from(body) : Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  const cut = bytes.length > maxRobotsBytes;
  const lines = asUtf8(bytes.subarray(0, maxRobotsBytes))
    .toString("latin1")
    .split(/\r\n|\r|\n/);
  return { lines: cut ? lines.slice(0, -1) : lines, cut };
}

function asUtf8(bytes: Buffer): Buffer {
  const order = utf16Order(bytes);
  if (order === null) return withoutMark(bytes);
  const even = Buffer.from(bytes.subarray(0, bytes.length - (bytes.length % 2)));
  const text = (order === "little" ? even : even.swap16()).toString("utf16le");
  return Buffer.from(text.replace(/^\ufeff/, ""));
}

/** Detects UTF-16 by the byte order mark, or by the zero byte beside each initial ASCII character. */
function utf16Order([first, second, third, fourth]: Buffer): "little" | "big" | null {
  if (first === 0xff && second === 0xfe) return "little";
  if (first === 0xfe && second === 0xff) return "big";
  if (first !== 0 && second === 0 && third !== 0 && fourth === 0) return "little";
  if (first === 0 && second !== 0 && third === 0 && fourth !== 0) return "big";
  return null;
}

/** Drops a UTF-8 byte order mark, even a truncated one. */
function withoutMark(bytes: Buffer): Buffer {
  const mark = [0xef, 0xbb, 0xbf];
  let length = 0;
  while (length < 3 && bytes[length] === mark[length]) length++;
  return bytes.subarray(length);
}

// Compares this parser's reading of a robots.txt with that of an independent parser (robots-parser), on one file in 1,000,
// chosen by digest. This parser decides. Operators learn of a difference, because one of the two must be wrong.

/** The package's types describe a default export that the module lacks. */
const robotsParser = imported as unknown as (
  url: string,
  text: string,
) => { isAllowed(url: string, agent: string): boolean | undefined };

const oneOfFiles = 1000;

// The other parser compares every rule with every path, which takes 18 ms for the slowest of 1,867 real files. Paths that
// remain after the time limit are not compared.
const maxBytes = 64 * 1024;
const maxPaths = 20;
const maxPathCharacters = 300;
const maxMs = 50;

/** The other parser departs from RFC 9309 for `%7E`, `|`, `[` and similar characters, and for robots.txt itself. */
const isPlain = (path: string) => /^\/[\w\-.~/?=&]*$/.test(path) && path !== "/robots.txt";

/** Returns null for a path that the other parser was not asked about. */
export function otherVerdicts(
  file: Uint8Array,
  agent: string,
  paths: readonly string[],
): readonly (boolean | null)[] {
  if (file.length > maxBytes) return paths.map(() => null);
  const site = "http://site.example";
  const endMs = performance.now() + maxMs;
  const other = robotsParser(`${site}/robots.txt`, Buffer.from(file).toString());
  return paths.map((path, index) => {
    const isAsked =
      index < maxPaths && path.length <= maxPathCharacters && (index === 0 || performance.now() < endMs);
    return isAsked && isPlain(path) ? (other.isAllowed(site + path, agent) ?? null) : null;
  });
}

/** Returns undefined if the file is not sampled, or if both parsers agree on the paths of its rules. */
export function robotsDifference(
  { file, origin, agent }: { readonly file: Buffer; readonly origin: string; readonly agent: string },
  rules: RobotsRules,
): OtherReading | undefined {
  if (!isSampled(bodyDigest(file), oneOfFiles)) return undefined;
  const named = rules.rules.map(({ source }) => source.replaceAll("*", "x").replace(/\$$/, ""));
  const paths = ["/", ...named].filter(isPlain).slice(0, maxPaths);
  const others = otherVerdicts(file, agent, paths);
  const judged = paths.map((path, index) => ({
    path,
    ours: robotsVerdict(rules, path),
    other: others[index],
  }));
  const found = judged.find(({ ours, other }) => typeof other === "boolean" && other !== ours.allowed);
  if (found === undefined) return undefined;
  const { path, ours } = found;
  const words =
    `${origin}/robots.txt: we ${ours.allowed ? "allow" : "forbid"} ${path}, by ${ours.rule ?? "no rule"}, ` +
    `and robots-parser ${ours.allowed ? "forbids" : "allows"} it`;
  return { words: words.slice(0, 500), file: Buffer.from(file).toString().slice(0, 16_384) };
}
