/** What a URL has in common with the others that a site makes by the same rule. */
import { urlParts } from "./url-parts.ts";

export interface UrlShapes {
  /** Numbers and tokens masked, the query's values left out. */
  readonly shape: string;
  /** The same with the last segment masked altogether: the folder's pages. */
  readonly folder: string;
}

/** Letters and digits mixed, as in hashes and random names. */
const token = /^(?=.*\d)(?=.*[a-z])[a-z0-9_-]{8,}$/i;

export function urlShapes(url: string): UrlShapes {
  const { segments, parameters } = urlParts(url);
  const masked = segments.map(mask);
  const names = parameters.map(({ name }) => mask(name)).sort();
  const query = names.length === 0 ? "" : `?${[...new Set(names)].join("&")}`;
  const folder = masked.slice(0, -1).concat("*").join("/");
  return { shape: (masked.join("/") + query).slice(0, 300), folder: (folder + query).slice(0, 300) };
}

function mask(segment: string): string {
  return token.test(segment) ? "*" : segment.replace(/\d+/g, "#");
}
