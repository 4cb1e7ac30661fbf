/**
 * Meta robots and X-Robots-Tag: what the page asks us not to do with it, of all crawlers or of us by name. A value
 * that begins with another crawler's name is not for us. Where several apply, the one that forbids more holds, as
 * with the large search engines, whose rules these are (they are in no standard).
 */
export interface RobotsDirectives {
  readonly noindex: boolean;
  readonly nofollow: boolean;
  /** The longest excerpt that may be shown; 0: none (nosnippet, noarchive). */
  readonly excerptCharacters: number;
}

export function robotsDirectives(said: {
  /** The contents of the page's metas for `robots` and for our name. */
  readonly metas: readonly string[];
  readonly header: string | readonly string[] | undefined;
  /** For `unavailable_after`. */
  readonly nowMs: number;
}): RobotsDirectives {
  const headers = [said.header ?? []].flat().slice(0, maxValues);
  const rules = [...said.metas, ...headers].flatMap((value) => oursOf(value.slice(0, maxCharacters)));
  const says = (...names: readonly string[]) => rules.some(({ name }) => names.includes(name));
  const isOver = rules.some(({ name, value }) => name === "unavailable_after" && isPast(value, said.nowMs));
  return {
    noindex: isOver || says("noindex", "none"),
    nofollow: says("nofollow", "none"),
    excerptCharacters: says("nosnippet", "noarchive", "nocache") ? 0 : maxSnippet(rules),
  };
}

interface Rule {
  readonly name: string;
  /** Behind the colon; empty without one. */
  readonly value: string;
}

const maxValues = 50;
const maxCharacters = 2000;
/** Also as robots.txt may name us: `Nearcrawl*`. */
const ourName = /^(?:nearcrawl(?![a-z_-]).*|robots|\*)$/;
/** Rules with a value behind a colon, which else would look like a crawler's name. */
const valued = new Set(["unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"]);

/** The rules of one value that are for us: `nofollow, otherbot: noindex` says two things to two crawlers. */
function oursOf(value: string): Rule[] {
  const rules: Rule[] = [];
  let isOurs = true;
  for (const part of value.toLowerCase().split(/[,;]/)) {
    const [, name, rest] = /^\s*([a-z0-9_*-]{1,60})\s*:(.*)$/s.exec(part) ?? [];
    if (name !== undefined && valued.has(name)) {
      if (isOurs) rules.push({ name, value: rest!.trim() });
      continue;
    }
    const last = rules.at(-1);
    if (isOurs && last?.name === "unavailable_after" && /^\s*\d/.test(part)) {
      // The date itself has a comma: "Wednesday, 25-Jun-30 15:00:00 PST".
      rules[rules.length - 1] = { ...last, value: `${last.value}, ${part.trim()}` };
      continue;
    }
    if (name !== undefined) isOurs = ourName.test(name);
    if (isOurs) for (const word of (rest ?? part).trim().split(/\s+/)) rules.push({ name: word, value: "" });
  }
  return rules;
}

/** RFC 822, RFC 850, ISO 8601; a date that cannot be read is not held against the page. */
function isPast(date: string, nowMs: number): boolean {
  const at = Date.parse(date.replace(/(\d)-([a-z]{3})-(\d)/, "$1 $2 $3"));
  return !Number.isNaN(at) && at < nowMs;
}

/** `max-snippet:n`; -1 is no bound. */
function maxSnippet(rules: readonly Rule[]): number {
  const bounds = rules
    .filter(({ name, value }) => name === "max-snippet" && /^-?\d{1,9}$/.test(value))
    .map(({ value }) => (Number(value) < 0 ? Number.POSITIVE_INFINITY : Number(value)));
  return Math.min(Number.POSITIVE_INFINITY, ...bounds);
}
