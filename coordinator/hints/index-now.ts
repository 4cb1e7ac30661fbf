/**
 * IndexNow (indexnow.org/documentation, as of November 2026): what a submission must look like, and what its key file must
 * hold. A key has 8 to 128 letters, digits and dashes; its file lies at the root of the host, or where `keyLocation` says,
 * on the same host, and speaks then for its folder and what is below. Answers are 200 and 202, 400, 403, 422 and 429.
 *
 * A crawler fetches the key file, as it does any URL, and of what it ships the body's digest is enough: we know what the
 * body has to be.
 */
import { createHash } from "node:crypto";
import { z } from "zod";
import { type UrlKey, urlKeyOf } from "#core/url-key";

export const mostSubmittedUrls = 10_000;

export const submissionBody = z.object({
  host: z.string().min(1).max(300),
  key: z.string().max(1000),
  keyLocation: z.string().min(1).max(2048).optional(),
  urlList: z.array(z.string()).min(1).max(mostSubmittedUrls),
});

export interface IndexNowSubmission {
  readonly key: string;
  /** Of the key's file. */
  readonly location: UrlKey;
  /** `//host/folder/` */
  readonly scope: string;
  /** Each once, the first so many. */
  readonly urls: readonly UrlKey[];
  /** URLs named, with those that are beyond. */
  readonly named: number;
}

export interface IndexNowRefusal {
  readonly status: 400 | 403 | 422 | 429;
  readonly words: string;
  readonly retryAfterSeconds?: number;
}

export const isRefusal = <Value extends object>(value: Value | IndexNowRefusal): value is IndexNowRefusal =>
  "status" in value && "words" in value;

/** `given` as the POST's body has it; `most` URLs are worth a closer look, the others are only checked. */
export function readSubmission(given: unknown, most: number): IndexNowSubmission | IndexNowRefusal {
  const checked = submissionBody.safeParse(given);
  if (!checked.success) {
    const [issue] = checked.error.issues;
    return { status: 400, words: `${issue?.path.join(".") || "the body"}: ${issue?.message ?? "malformed"}` };
  }
  const { host, key, keyLocation, urlList } = checked.data;
  if (!/^[a-zA-Z0-9-]{8,128}$/.test(key))
    return { status: 422, words: "key: 8 to 128 letters, digits and dashes" };
  const home = urlKeyOf(`https://${host}/`);
  const authority = typeof home === "string" ? null : authorityOf(home.url);
  if (authority === null) return { status: 422, words: "host: not the name of a host" };
  const location = locationOf({ key, keyLocation, authority, first: urlList[0]! });
  if (isRefusal(location)) return location;
  const scope = scopeOf(location.url);
  const urls = new Map<string, UrlKey>();
  const isPlain = new RegExp(`^https?:${escaped(scope)}(?!.*/\\.)`);
  for (const [index, text] of urlList.entries()) {
    if (urls.size >= most && isPlain.test(text)) continue;
    const url = urlKeyOf(text);
    const fault =
      typeof url === "string" ? "not a URL that is crawled" : placeFault(url.url, authority, scope);
    if (fault !== null) return { status: 422, words: `urlList.${index}: ${fault}` };
    if (urls.size < most) urls.set((url as UrlKey).url, url as UrlKey);
  }
  return { key, location, scope, urls: [...urls.values()], named: urlList.length };
}

/** A GET names one URL, and the host with it. */
export function fromQuery(query: Readonly<Record<string, string>>): unknown {
  const { url = "", key = "", keyLocation } = query;
  const own = urlKeyOf(url);
  return {
    host: typeof own === "string" ? "" : authorityOf(own.url),
    key,
    ...(keyLocation ? { keyLocation } : {}),
    urlList: [url],
  };
}

const authorityOf = (url: string) => /^https?:\/\/([^/?#]+)/.exec(url)?.[1] ?? "";

function locationOf(given: {
  readonly key: string;
  readonly keyLocation: string | undefined;
  readonly authority: string;
  readonly first: string;
}): UrlKey | IndexNowRefusal {
  const scheme = given.first.startsWith("http:") ? "http" : "https";
  const location = urlKeyOf(given.keyLocation ?? `${scheme}://${given.authority}/${given.key}.txt`);
  if (typeof location === "string") return { status: 422, words: "keyLocation: not a URL that is crawled" };
  if (authorityOf(location.url) !== given.authority)
    return { status: 422, words: "keyLocation: it is not on the host" };
  // What repeats its query would state any key, and speak for all of the host.
  if (location.url.includes("?")) return { status: 422, words: "keyLocation: a file has no query" };
  return location;
}

function placeFault(url: string, authority: string, scope: string): string | null {
  if (authorityOf(url) !== authority) return "it does not belong to the host";
  return isWithin(url, scope) ? null : "it is outside the key's folder";
}

/** Of both schemes; without the file's name. */
export function scopeOf(location: string): string {
  const path = location.replace(/^https?:/, "").replace(/[?#].*$/, "");
  return path.slice(0, path.lastIndexOf("/") + 1);
}

const isWithin = (url: string, scope: string) => url.replace(/^https?:/, "").startsWith(scope);

const escaped = (text: string) => text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");

// The key's file.

export type KeyVerdict =
  | { readonly type: "good" }
  /** It was fetched, and is no such file. */
  | { readonly type: "wrong"; readonly words: string }
  /** The fetch says nothing of it: a site that does not answer now. */
  | { readonly type: "unknown" };

export interface KeyFileVisit {
  readonly outcome: string;
  readonly status: number | null;
  /** SHA-256 of its body in hex; null: there was none. */
  readonly digest: string | null;
}

export function keyVerdict(key: string, { outcome, status, digest }: KeyFileVisit): KeyVerdict {
  if (outcome === "fetched" || outcome === "unchanged") {
    if (digest !== null && digestsOf(key).includes(digest)) return { type: "good" };
    return { type: "wrong", words: "its file contains something else" };
  }
  if (outcome === "failed") return { type: "unknown" };
  if (outcome === "http-error" && status !== null && (status >= 500 || status === 429))
    return { type: "unknown" };
  if (outcome === "refused-by-robots") return { type: "wrong", words: "robots.txt forbids its file" };
  if (outcome === "http-error") return { type: "wrong", words: `its file returned status ${status}` };
  return { type: "wrong", words: `its file is not a key file (${outcome})` };
}

/** As editors and shells write a line of text: with or without a byte order mark and an end of the line. */
function digestsOf(key: string): string[] {
  const ends = ["", "\n", "\r\n", " ", "\n\n"];
  return ["", "\ufeff"].flatMap((mark) =>
    ends.map((end) => createHash("sha256").update(`${mark}${key}${end}`, "utf8").digest("hex")),
  );
}
