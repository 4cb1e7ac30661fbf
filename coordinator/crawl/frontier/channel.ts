/**
 * A channel (SARSS section 2.1) is a host or a set of its directories, with rules of what is crawled there. URLs in no
 * channel follow the scope.
 */
import { UsageError } from "#core/errors";
import { canonicalEscapes } from "#core/ip/url-host";
import { urlKeyOf } from "#core/url-key";

export interface ChannelRules {
  /** Written as `urlHost` returns it. */
  readonly host: string;
  /** Each begins and ends with `/`, and `/` is the whole host. */
  readonly directories: readonly string[];
  /** Canonical URLs that are crawled whatever `include` says. */
  readonly seeds: readonly string[];
  /** If empty, everything is included. */
  readonly include: readonly UrlPattern[];
  readonly exclude: readonly UrlPattern[];
  /** Maximum links from a seed. Null means the scope's limit. */
  readonly maxDepth: number | null;
}

/** Why the URL is excluded, or null if it is crawled. `depth` counts links from a seed. */
export function leftOut(channel: ChannelRules, { url, depth }: ChannelUrl): string | null {
  const path = pathOf(url);
  const excluded = channel.exclude.find((pattern) => patternFits(pattern, path));
  if (excluded) return `its filter skips ${excluded.text}`;
  if (channel.seeds.includes(url)) return null;
  if (channel.maxDepth !== null && depth > channel.maxDepth)
    return `it is ${depth} links from a seed, and the channel goes ${channel.maxDepth} deep`;
  const isIncluded =
    channel.include.length === 0 || channel.include.some((pattern) => patternFits(pattern, path));
  return isIncluded ? null : "none of its filters includes it";
}

interface ChannelUrl {
  readonly url: string;
  readonly depth: number;
}

/** Whether a URL of the channel's host lies in one of its directories. */
export function channelHolds({ directories }: Pick<ChannelRules, "directories">, url: string): boolean {
  const path = pathOf(url);
  return directories.some((directory) => path.startsWith(directory));
}

function pathOf(url: string): string {
  return url.slice(url.indexOf("/", url.indexOf("//") + 2));
}

// Finds settings that are impossible, contradictory or without effect. Each fault names the values.

export interface OtherChannel extends Pick<ChannelRules, "directories"> {
  readonly channelId: number;
}

/** Empty if the channel is valid. `others` are the host's existing channels. */
export function channelFaults(channel: ChannelRules, others: readonly OtherChannel[]): string[] {
  return [
    ...nestedDirectories(channel),
    ...overlaps(channel, others),
    ...lostSeeds(channel),
    ...lostFilters(channel),
    ...depthFaults(channel),
  ];
}

function nestedDirectories({ directories }: ChannelRules): string[] {
  return directories.flatMap((outer, at) =>
    directories.flatMap((inner, place) =>
      place !== at && inner.startsWith(outer) && (inner !== outer || place > at)
        ? [`directories: ${outer} holds ${inner} already; name one of them`]
        : [],
    ),
  );
}

function overlaps({ directories }: ChannelRules, others: readonly OtherChannel[]): string[] {
  return others.flatMap((other) => {
    const shared = directories.flatMap((own) =>
      other.directories
        .filter((their) => own.startsWith(their) || their.startsWith(own))
        .map((their) => (own.length > their.length ? own : their)),
    );
    return shared.length === 0
      ? []
      : [
          `directories: ${shared[0]} is in channel ${other.channelId} of this host already; a URL has one channel`,
        ];
  });
}

function lostSeeds(channel: ChannelRules): string[] {
  return channel.seeds.flatMap((url) => {
    if (!channelHolds(channel, url))
      return [`seed ${url}: it is outside the channel (${channel.directories.join(", ")})`];
    const why = leftOut(channel, { url, depth: 0 });
    return why === null ? [] : [`seed ${url}: it would never be fetched, ${why}`];
  });
}

function lostFilters({ include, exclude, directories }: ChannelRules): string[] {
  const covered = include.flatMap((wanted) => {
    const by = exclude.find((unwanted) => patternCovers(unwanted, wanted));
    return by ? [`include ${wanted.text}: exclude ${by.text} holds all of it, so nothing is left`] : [];
  });
  const empty = exclude.filter(({ pieces, anchored }) => {
    const isPrefix = !anchored && pieces.slice(1).every((piece) => piece === "");
    return isPrefix && directories.every((directory) => directory.startsWith(pieces[0]!));
  });
  const outside = include.filter(
    ({ pieces }) =>
      pieces[0] !== "" &&
      !directories.some((one) => one.startsWith(pieces[0]!) || pieces[0]!.startsWith(one)),
  );
  return [
    ...covered,
    ...empty.map(({ text }) => `exclude ${text}: it holds the whole channel, so nothing is left`),
    ...outside.map(({ text }) => `include ${text}: it is outside the channel (${directories.join(", ")})`),
  ];
}

/** With depth 0 no links are followed: without seeds nothing is crawled, and link filters have no effect. */
function depthFaults({ maxDepth, seeds, include }: ChannelRules): string[] {
  if (maxDepth !== 0) return [];
  return [
    ...(seeds.length === 0 ? ["max-depth 0: then only seeds are crawled, and there are none"] : []),
    ...(include.length > 0
      ? [`max-depth 0: then no link is followed, so include ${include[0]!.text} has no effect`]
      : []),
  ];
}

/**
 * Patterns of paths with queries as in robots.txt (RFC 9309 section 2.2.3): `*` for anything, a final `$` for the end.
 * SARSS uses regular expressions, which a malicious pattern can keep busy for ever, while these match in one pass.
 * `/news/` matches every path that begins so, `/*.html$` every path that ends so.
 */
export interface UrlPattern {
  readonly text: string;
  readonly pieces: readonly string[];
  readonly anchored: boolean;
}

const mostPatternCharacters = 300;

/** Returns the pattern with its octets encoded as in URLs, or what is wrong with it. */
export function parseUrlPattern(given: string): UrlPattern | string {
  const text = canonicalEscapes(given);
  if (text.length > mostPatternCharacters)
    return `the pattern is ${text.length} characters long, at most ${mostPatternCharacters} are allowed: ${text.slice(0, 40)}…`;
  if (!/^[/*]/.test(text))
    return `the pattern "${text}" must begin with / or *: it is matched from the start of the path`;
  if (/[^\x21-\x7e]/.test(text))
    return `the pattern "${text}" has a space or a character beyond ASCII: write it as URLs do, such as %20`;
  const anchored = text.endsWith("$");
  return { text, pieces: (anchored ? text.slice(0, -1) : text).split(/\*+/), anchored };
}

/** Matches each piece at its leftmost fit, which is correct for `*` because an earlier fit never hinders a later one. */
export function patternFits({ pieces, anchored }: UrlPattern, path: string): boolean {
  const first = pieces[0]!;
  if (!path.startsWith(first)) return false;
  let at = first.length;
  if (pieces.length === 1) return !anchored || at === path.length;
  for (const piece of pieces.slice(1, -1)) {
    const found = path.indexOf(piece, at);
    if (found < 0) return false;
    at = found + piece.length;
  }
  const end = pieces.at(-1)!;
  if (!anchored) return path.indexOf(end, at) >= 0;
  return path.length - end.length >= at && path.endsWith(end);
}

/** Whether everything that fits `inner` also fits `outer`. False if that is not evident. */
function patternCovers(outer: UrlPattern, inner: UrlPattern): boolean {
  if (outer.text === inner.text) return true;
  if (outer.anchored) return false;
  const [begin, ...rest] = outer.pieces;
  return rest.every((piece) => piece === "") && inner.pieces[0]!.startsWith(begin!);
}

interface ChannelAsked {
  /** `www.example.org`, `https://www.example.org/docs/`: a host or directories of one host. */
  readonly prefixes: readonly string[];
  readonly seeds: readonly string[];
  readonly include: readonly string[];
  readonly exclude: readonly string[];
  readonly maxDepth: number | null;
}

export const channelBounds = { directories: 50, seeds: 200, patterns: 50, depth: 1000 } as const;

/** Throws a UsageError that lists every fault in the texts. Conflicts with other channels are checked separately. */
export function readChannel(asked: ChannelAsked): ChannelRules {
  const faults: string[] = [];
  const taken = <T>(value: T | string): T[] => {
    if (typeof value !== "string") return [value];
    faults.push(value);
    return [];
  };
  const places = asked.prefixes.flatMap((text) => taken(placeOf(text)));
  const seeds = asked.seeds.flatMap((text) => taken(seedOf(text)));
  const patterns = (name: "include" | "exclude"): UrlPattern[] =>
    asked[name].flatMap((text) => taken(parseUrlPattern(text)));
  const [include, exclude] = [patterns("include"), patterns("exclude")];
  const hosts = [...new Set([...places, ...seeds].map(({ host }) => host))];
  if (hosts.length > 1) faults.push(`a channel has one host, and these are of ${hosts.join(", ")}`);
  faults.push(...boundFaults(asked));
  if (faults.length > 0) throw new UsageError(faults.join("\n"));
  return {
    host: hosts[0]!,
    directories: places.map(({ directory }) => directory),
    seeds: [...new Set(seeds.map(({ url }) => url))],
    include,
    exclude,
    maxDepth: asked.maxDepth,
  };
}

function boundFaults({ prefixes, seeds, include, exclude, maxDepth }: ChannelAsked): string[] {
  const { directories, depth } = channelBounds;
  const counted = [
    ["directories", prefixes.length, directories],
    ["seeds", seeds.length, channelBounds.seeds],
    ["filters", include.length + exclude.length, channelBounds.patterns],
  ] as const;
  const isDepth = maxDepth === null || (Number.isInteger(maxDepth) && maxDepth >= 0 && maxDepth <= depth);
  return [
    ...(prefixes.length === 0
      ? ["a channel needs a host or a directory, such as https://www.example.org/docs/"]
      : []),
    ...counted.flatMap(([name, count, most]) => (count > most ? [`${count} ${name}: at most ${most}`] : [])),
    ...(isDepth ? [] : [`max-depth ${maxDepth}: must be a whole number from 0 to ${depth}`]),
  ];
}

function placeOf(text: string): { readonly host: string; readonly directory: string } | string {
  const key = urlKeyOf(/^https?:\/\//i.test(text) ? text : `https://${text}`);
  if (typeof key === "string")
    return `"${short(text)}" is not a host or directory, such as https://www.example.org/docs/`;
  const { pathname, search } = new URL(key.url);
  if (search !== "" || !pathname.endsWith("/"))
    return `"${short(text)}" is not a directory: it must end with /, and have no query`;
  return { host: key.host, directory: pathname };
}

function seedOf(text: string): { readonly host: string; readonly url: string } | string {
  const key = urlKeyOf(text);
  return typeof key === "string" ? `seed "${short(text)}" is not a web URL` : key;
}

const short = (text: string) => (text.length > 60 ? `${text.slice(0, 59)}…` : text);

// Explains that a URL is not crawled because its channel excludes it.

export interface LeavingChannel {
  readonly channelId: number;
  readonly prefixes: readonly string[];
  readonly why: string;
}

/** `last_outcome` of URLs that were in the frontier before a channel excluded them. */
export const outsideChannel = "outside-channel";
