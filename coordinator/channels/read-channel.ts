/** A channel as somebody types it: beginnings of URLs, seeds and filters, read into the rules that they are. */

import { UsageError } from "#core/errors";
import { urlKeyOf } from "#core/url-key";
import type { ChannelRules } from "./channel.ts";
import { parseUrlPattern, type UrlPattern } from "./url-pattern.ts";

export interface ChannelAsked {
  /** `www.example.org`, `https://www.example.org/docs/`: a host or directories of one host. */
  readonly prefixes: readonly string[];
  readonly seeds: readonly string[];
  readonly include: readonly string[];
  readonly exclude: readonly string[];
  /** Null: as the scope has it. */
  readonly maxDepth: number | null;
}

export const channelBounds = { directories: 50, seeds: 200, patterns: 50, depth: 1000 } as const;

/** Throws a UsageError that lists every fault of the texts; what contradicts is found beside the host's other channels. */
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
  if (hosts.length > 1) faults.push(`a channel is of one host, and these are of ${hosts.join(", ")}`);
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
    return `"${short(text)}" is no host or directory, such as https://www.example.org/docs/`;
  const { pathname, search } = new URL(key.url);
  if (search !== "" || !pathname.endsWith("/"))
    return `"${short(text)}" is no directory: it must end with /, and have no query`;
  return { host: key.host, directory: pathname };
}

function seedOf(text: string): { readonly host: string; readonly url: string } | string {
  const key = urlKeyOf(text);
  return typeof key === "string" ? `seed "${short(text)}" is no URL of the web` : key;
}

const short = (text: string) => (text.length > 60 ? `${text.slice(0, 59)}…` : text);
