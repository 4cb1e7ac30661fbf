/**
 * A channel (SARSS section 2.1): a host, a directory of a host, or a set of directories of a host, with what is crawled
 * of it. What lies in no channel is crawled as the scope says.
 */
import { patternFits, type UrlPattern } from "./url-pattern.ts";

export interface ChannelRules {
  /** As `urlHost` names it. */
  readonly host: string;
  /** Each begins and ends with `/`; `/` is the whole host. */
  readonly directories: readonly string[];
  /** Canonical URLs; crawled whatever `include` says. */
  readonly seeds: readonly string[];
  /** Empty: everything. */
  readonly include: readonly UrlPattern[];
  /** Goes before `include`. */
  readonly exclude: readonly UrlPattern[];
  /** Links from a seed; null: as the scope has it. */
  readonly maxDepth: number | null;
}

/** What is left out, and why; null: it is crawled. `depth` in links from a seed. */
export function leftOut(channel: ChannelRules, { url, depth }: ChannelUrl): string | null {
  const path = pathOf(url);
  const excluded = channel.exclude.find((pattern) => patternFits(pattern, path));
  if (excluded) return `its filter leaves ${excluded.text} out`;
  if (channel.seeds.includes(url)) return null;
  if (channel.maxDepth !== null && depth > channel.maxDepth)
    return `it is ${depth} links from a seed, and the channel goes ${channel.maxDepth} deep`;
  const isIncluded =
    channel.include.length === 0 || channel.include.some((pattern) => patternFits(pattern, path));
  return isIncluded ? null : "none of its filters includes it";
}

export interface ChannelUrl {
  /** Canonical, of the channel's host. */
  readonly url: string;
  readonly depth: number;
}

/** Whether the URL, of the channel's host, lies in one of its directories. */
export function channelHolds({ directories }: Pick<ChannelRules, "directories">, url: string): boolean {
  const path = pathOf(url);
  return directories.some((directory) => path.startsWith(directory));
}

/** Path and query as they stand in a canonical URL. */
export function pathOf(url: string): string {
  return url.slice(url.indexOf("/", url.indexOf("//") + 2));
}
