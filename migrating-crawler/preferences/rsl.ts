/**
 * Reads Really Simple Licensing (RSL 1.0, recommendation of 10 December 2025): an XML license that robots.txt (`License:`), a
 * `Link` header, a link element or a script element names or contains.
 *
 * A license that is only named is not fetched, because that would cost a request per host, and licenses mostly concern machine
 * learning. It counts as *licensed* for unknown uses, and restricts search no more than a link to terms would. A license
 * inside the page costs nothing and is read. Prohibited uses are denied. Permitted ones are allowed, or licensed if the
 * license asks for payment or names a license server. Other uses are not stated.
 */
import type { ContentUse, PreferenceAnswer, StatedPreference } from "#protocol/preferences";
import { robotsPath, robotsRule, ruleMatches } from "./robots-match.ts";
import { maxStatementValues, type SaidUses, statementsOf } from "./statements.ts";

/** Maximum length of an inline license. Real ones have less than 4 KB. */
export const maxLicenseCharacters = 64 * 1024;

/** `Link` headers also name styles and scripts, so they are long. */
const maxLinkCharacters = 8192;

const maxLinks = 5;
const maxElements = 2000;

/** The uses of RSL 1.0 section 3. */
const labels: ReadonlyMap<string, readonly ContentUse[]> = new Map([
  ["search", ["search"]],
  ["ai-input", ["ai-input"]],
  ["ai-index", ["ai-input"]],
  ["ai-train", ["ai-train"]],
  ["ai-all", ["ai-input", "ai-train"]],
  ["all", ["search", "ai-input", "ai-train", "text-and-data-mining"]],
]);

export function namedLicense(url: string, place: StatedPreference["place"]): StatedPreference[] {
  return statementsOf({ standard: "rsl", place }, [], url).map((one) => ({ ...one, answer: "licensed" }));
}

export function licenseLinks(header: string | readonly string[] | undefined): StatedPreference[] {
  const values = [header ?? []].flat().slice(0, maxStatementValues);
  const targets = values.flatMap((value) =>
    [...value.slice(0, maxLinkCharacters).matchAll(/<([^<>]*)>([^<]*)/g)].flatMap(([, target, parameters]) =>
      isLicense(parameter(parameters!, "rel"), parameter(parameters!, "type")) ? [target!] : [],
    ),
  );
  return [...new Set(targets)].slice(0, maxLinks).flatMap((target) => namedLicense(target, "header"));
}

export function isLicense(rel: string | null, type: string | null): boolean {
  return /(?:^|\s)license(?:\s|$)/i.test(rel ?? "") && licenseType.test(type ?? "");
}

export const licenseType = /^\s*application\/rsl\+xml\s*(?:;|$)/i;

function parameter(parameters: string, name: string): string | null {
  const found = new RegExp(`;\\s*${name}\\s*=\\s*(?:"([^"]*)"|([^\\s;,]+))`, "i").exec(parameters);
  return found?.[1] ?? found?.[2] ?? null;
}

export function inlineLicense(xml: string, url: URL): StatedPreference[] {
  const said: SaidUses[number][] = [];
  let content = { isOurs: true, hasServer: false };
  let license: LicenseUses = newLicense();
  let elements = 0;
  for (const [, slash, name, attributes, text] of withoutComments(xml).matchAll(element)) {
    if (++elements > maxElements) break;
    const isEnd = slash === "/";
    if (name === "content" && !isEnd) content = contentOf(attributes!, url);
    if (name === "license") {
      if (isEnd && content.isOurs) said.push(...answersOf(license, content.hasServer));
      license = newLicense();
    }
    if ((name === "permits" || name === "prohibits") && !isEnd && typeOf(attributes!) === "usage")
      license[name].push(...usesOf(text!));
    if (name === "payment" && !isEnd) license.isFree &&= /^(?:free|attribution)?$/.test(typeOf(attributes!));
  }
  if (said.length === 0) return namedLicense("a license in the page", "meta");
  const answers = strictest(said);
  const text = answers.map(([use, answer]) => `${use} ${answer}`).join(", ");
  return statementsOf({ standard: "rsl", place: "meta" }, answers, text);
}

const element = /<(\/?)(?:[A-Za-z][\w.-]*:)?([A-Za-z]+)((?:\s[^<>]*)?)>([^<]*)/g;

interface LicenseUses {
  readonly permits: ContentUse[];
  readonly prohibits: ContentUse[];
  isFree: boolean;
}

const newLicense = (): LicenseUses => ({ permits: [], prohibits: [], isFree: true });

function answersOf({ permits, prohibits, isFree }: LicenseUses, hasServer: boolean): SaidUses {
  const permitted: PreferenceAnswer = isFree && !hasServer ? "allowed" : "licensed";
  return [
    ...permits.map((use) => [use, permitted] as const),
    ...prohibits.map((use) => [use, "denied"] as const),
  ];
}

/** If several licenses cover a use, the strictest answer wins. */
function strictest(said: SaidUses): SaidUses {
  const order: readonly PreferenceAnswer[] = ["allowed", "licensed", "denied"];
  const answers = new Map<ContentUse, PreferenceAnswer>();
  for (const [use, answer] of said)
    if (order.indexOf(answer) >= order.indexOf(answers.get(use) ?? "allowed")) answers.set(use, answer);
  return [...answers];
}

/** `isOurs` is true if `url` has the page's origin and matches its path as in robots.txt, or is empty. */
function contentOf(attributes: string, url: URL): { isOurs: boolean; hasServer: boolean } {
  const hasServer = (attributeOf(attributes, "server") ?? "").trim() !== "";
  const stated = (attributeOf(attributes, "url") ?? "").trim();
  const path = stated.startsWith(`${url.origin}/`) ? stated.slice(url.origin.length) : stated;
  if (path === "" || path === url.origin) return { isOurs: true, hasServer };
  const rule = path.startsWith("/") && !path.startsWith("//") ? robotsRule(false, path, 0) : null;
  const isOurs = rule !== null && ruleMatches(rule, robotsPath(url.pathname + url.search));
  return { isOurs, hasServer };
}

const typeOf = (attributes: string) => (attributeOf(attributes, "type") ?? "").trim().toLowerCase();

function attributeOf(attributes: string, name: string): string | null {
  const found = new RegExp(`\\s${name}\\s*=\\s*(?:"([^"]*)"|'([^']*)')`, "i").exec(attributes);
  return found?.[1] ?? found?.[2] ?? null;
}

function usesOf(text: string): ContentUse[] {
  return text.split(/[\s,]+/).flatMap((word) => labels.get(word.toLowerCase()) ?? []);
}

/** Removes `<!-- … -->` in one pass. An unclosed comment hides the rest. */
function withoutComments(xml: string): string {
  const bounded = xml.slice(0, maxLicenseCharacters);
  let text = "";
  for (let at = 0; at < bounded.length; ) {
    const open = bounded.indexOf("<!--", at);
    if (open < 0) return text + bounded.slice(at);
    text += bounded.slice(at, open);
    const end = bounded.indexOf("-->", open + 4);
    if (end < 0) return text;
    at = end + 3;
  }
  return text;
}
