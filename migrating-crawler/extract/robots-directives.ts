/**
 * Meta robots and X-Robots-Tag: what the page forbids us to do with it. A value that begins with another
 * crawler's name is not for us; one with ours, or with none, is.
 */
export interface RobotsDirectives {
  readonly noindex: boolean;
  readonly nofollow: boolean;
}

/** Directives that have a value behind a colon and so look like a crawler's name. */
const valued = new Set(["unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"]);

export function robotsDirectives(
  metas: readonly string[],
  header: string | readonly string[] | undefined,
): RobotsDirectives {
  const values = [...metas, ...[header ?? []].flat()].flatMap((value) => ours(value.toLowerCase()));
  const says = (word: string) => values.some((value) => value === word || value === "none");
  return { noindex: says("noindex"), nofollow: says("nofollow") };
}

function ours(value: string): string[] {
  const name = /^\s*([a-z0-9_-]{1,60})\s*:/.exec(value);
  const named = name !== null && !valued.has(name[1]!);
  if (named && name[1] !== "nearcrawl") return [];
  return (named ? value.slice(name[0].length) : value).split(",").map((word) => word.trim());
}
