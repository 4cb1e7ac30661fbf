/**
 * robots.txt as RFC 9309 reads it: groups of one agent merged, those for `*` when none names us, the longest
 * matching rule wins, Allow on a tie. Beyond the RFC, as the large crawlers do: Crawl-delay; a missing colon; and
 * the usual misspellings of `disallow`, because their writer meant it. What the file states of the uses of pages is read
 * along with its rules (robots-uses.ts). Pure: bytes in, rules and verdicts out.
 */
import { withoutUser } from "#core/ip/url-host";
import { maxUrlLength } from "#protocol/fields";
import { resolveUrl } from "../extract/resolve-url.ts";
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

/** A file names more sitemaps than this only by mistake or malice. */
const maxSitemaps = 50;

/** Of a group's agents so many are told to people. */
const maxToldAgents = 20;

/** Characters compared for one verdict: about 50 ms. No real file comes near it. */
const maxComparedCharacters = 50_000_000;

export interface RobotsRules {
  /** In the order in which they are asked (`byPrecedence`). */
  readonly rules: readonly RobotsRule[];
  readonly crawlDelaySeconds: number | null;
  /** As they stand in the file, wherever in it, without users; `sitemapUrls` makes them absolute. */
  readonly sitemaps: readonly string[];
  /** The User-agent lines of the groups that these rules come from, as written; empty when no group is for us. */
  readonly agents: readonly string[];
  /** The file is longer than `maxRobotsBytes`; what lies beyond was not read. */
  readonly cut: boolean;
  /** What it states of the uses of what it lets be fetched. */
  readonly uses: RobotsUses;
}

export interface RobotsVerdict {
  readonly allowed: boolean;
  /** What decided, in words: a rule with its line, as in `Disallow: /a (line 3)`; null when none matched. */
  readonly rule: string | null;
  /** The line of that rule in the file, from 1. */
  readonly line: number | null;
}

/** The rules for one agent (`Nearcrawl`), by its product token, or those for `*` when no group names it. */
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

/** Whether the rules allow a path with its query, such as `/a?b=c`. robots.txt itself always is (section 2.2.2). */
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

/** The file's sitemaps as absolute http(s) URLs, each once; relative ones belong to the file's own URL. */
export function sitemapUrls(rules: Pick<RobotsRules, "sitemaps">, robotsUrl: string): string[] {
  return [...new Set(rules.sitemaps.flatMap((sitemap) => resolveUrl(sitemap, robotsUrl) ?? []))];
}

/** The product token of a User-Agent, in lower case: `foobot` of `FooBot/1.2 (x)`. Of others it may have digits (`360Spider`). */
export const agentToken = (text: string): string => (/^[^\s/;:,()#]+/.exec(text)?.[0] ?? "").toLowerCase();

/** Whether a User-agent line names the token (in lower case): as Google's parser, up to what no token can hold. */
function addresses(line: string, token: string): boolean {
  if (token === "" || line.slice(0, token.length).toLowerCase() !== token) return false;
  return !/[A-Za-z_-]/.test(line[token.length] ?? "");
}

/** A file that would keep us busy is not obeyed in part: what cannot be judged is forbidden. */
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

/** Reads the lines one by one. Rules go to the groups whose User-agent lines stand right before them. */
class RobotsReading {
  readonly #token: string;
  readonly #own = newGroup();
  readonly #all = newGroup();
  readonly #sitemaps: string[] = [];
  /** Lines about uses that stand before any group, and licenses behind one. */
  readonly #forAll = new UseLines();
  #isOurs = false;
  #hasGroups = false;
  #heard = new Set<Group>();
  #inAgents = false;
  /** A blank line has ended the group, unless one of its lines follows: licenses and sitemaps are appended to files. */
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

  /** `Content-Usage` is a rule like any other (attach-05 section 3): agents named after it begin a group of their own. */
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

/** An allowed index page allows its folder's own URL, too (as Google's parser has it). */
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

const misspelled = new Set(["dissallow", "dissalow", "disalow", "diasllow", "disallaw"]);

function fieldOf(line: string): Field | null {
  const hash = line.indexOf("#");
  const plain = trimmed(hash < 0 ? line : line.slice(0, hash));
  if (plain === "") return null;
  const colon = plain.indexOf(":");
  const [rawKey, value] = colon >= 0 ? [plain.slice(0, colon), plain.slice(colon + 1)] : twoWords(plain);
  return { key: keyOf(trimmed(rawKey).slice(0, 40).toLowerCase()), value: trimmed(value) };
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
  if (key === "content-signals") return "content-signal";
  return key;
}

function twoWords(line: string): [string, string] {
  const words = line.split(/[ \t]+/, 3);
  return words.length === 2 ? [words[0]!, words[1]!] : ["", ""];
}

/** Half of the world writes a comma before decimals. */
function secondsOf(text: string): number | null {
  const written = /^\d{1,9}([.,]\d{1,9})?|^[.,]\d{1,9}/.exec(text)?.[0];
  const seconds = Number(written?.replace(",", ".") ?? Number.NaN);
  return Number.isFinite(seconds) ? seconds : null;
}

/** The file's bytes as text for people and URLs. */
const textOf = (bytes: string) => Buffer.from(bytes, "latin1").toString();

// The bytes of a robots.txt as lines. RFC 9309 section 2.2 wants UTF-8; what is served is also UTF-16, has a byte
// order mark or none, ends lines as it likes and may be endless. Lines come back with one character per byte
// (Latin-1), because a rule is compared by the file's bytes, valid UTF-8 or not.

/**
 * What lies beyond is ignored. RFC 9309 section 2.5 asks for at least 500 KiB; some large sites' files are
 * longer and other crawlers read them whole, so twice that.
 */
export const maxRobotsBytes = 1024 * 1024;

interface RobotsText {
  readonly lines: readonly string[];
  /** The file is longer than `maxRobotsBytes`; the line that the bound cuts in two is left out. */
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

/** By the byte order mark, or by the zero byte of each ASCII character that a file begins with. */
function utf16Order([first, second, third, fourth]: Buffer): "little" | "big" | null {
  if (first === 0xff && second === 0xfe) return "little";
  if (first === 0xfe && second === 0xff) return "big";
  if (first !== 0 && second === 0 && third !== 0 && fourth === 0) return "little";
  if (first === 0 && second !== 0 && third === 0 && fourth !== 0) return "big";
  return null;
}

/** Drops a UTF-8 byte order mark, and the beginning of one cut short. */
function withoutMark(bytes: Buffer): Buffer {
  const mark = [0xef, 0xbb, 0xbf];
  let length = 0;
  while (length < 3 && bytes[length] === mark[length]) length++;
  return bytes.subarray(length);
}
