/**
 * Fetches one source into the cache. It tries the URL, then its mirrors, several times with growing pauses. The result
 * is checked (content, size, published checksum) and replaces the old file in one rename. On any failure the old file
 * stays.
 */

import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import {
  copyFile,
  type FileHandle,
  link,
  open,
  readFile,
  rename,
  rm,
  stat,
  truncate,
  utimes,
  writeFile,
} from "node:fs/promises";
import type { IncomingHttpHeaders } from "node:http";
import { join } from "node:path";
import { z } from "zod";
import { SourceFileError } from "#core/errors";
import { foreignDateMs, retryAfterSeconds } from "#core/foreign-dates";
import { GeofeedFinder } from "../formats/geofeed.ts";
import { isPublishedFormat, type PublishedFormat } from "../formats/published.ts";
import { openSource } from "../read/open-source.ts";
import { checkPublished } from "../read/read-published.ts";
import type { RegistryFormat } from "../read/sniff.ts";
import { type CachedFile, isInPlace, mostGeofeedsNamed } from "./cache-manifest.ts";
import {
  type Clock,
  DownloadFailure,
  downloadFailure,
  type HttpAnswer,
  type HttpClient,
  noSecrets,
  type RequestSecrets,
  Watch,
} from "./http-client.ts";
import type { DownloadKind, DownloadSource, FetchLimits } from "./source-settings.ts";

interface SourceJob {
  readonly source: DownloadSource;
  readonly secrets: RequestSecrets;
  readonly cacheFolder: string;
  readonly cached: CachedFile | null;
  readonly acceptSmaller: boolean;
  readonly client: HttpClient;
  readonly limits: FetchLimits;
  readonly clock: Clock;
  readonly random: () => number;
  /** Stops the download. The part file is kept for the next fetch. */
  readonly signal: AbortSignal;
  readonly onBytes: (done: number, total: number | null) => void;
  readonly onWait: (ms: number, reason: string) => void;
}

export interface FetchedSource {
  readonly type: "fetched" | "unchanged";
  readonly entry: CachedFile;
  readonly warning: string | null;
}

/** Throws a DownloadFailure with the reasons of every URL tried. */
export async function fetchSource(job: SourceJob): Promise<FetchedSource> {
  const { source, clock, limits } = job;
  const total = new Watch({
    clock,
    ms: limits.totalMinutes * 60_000,
    again: "never",
    reason: `not finished within ${limits.totalMinutes} minutes`,
    parent: job.signal,
  });
  total.restart();
  try {
    const cached = job.cached !== null && (await isInPlace(job.cacheFolder, job.cached)) ? job.cached : null;
    const urls = [...(source.url === null ? [] : [source.url]), ...source.mirrors];
    return await fromFirstThatWorks(urls, total.signal, (url) =>
      fetchFrom(url, { ...job, cached, signal: total.signal }),
    );
  } finally {
    total.pause();
  }
}

async function fromFirstThatWorks(
  urls: readonly string[],
  signal: AbortSignal,
  work: (url: string) => Promise<FetchedSource>,
): Promise<FetchedSource> {
  const reasons: string[] = [];
  for (const url of urls) {
    try {
      return await work(url);
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      reasons.push(`${url}: ${downloadFailure(error).message}`);
    }
  }
  throw new DownloadFailure("never", reasons.join("; "));
}

async function fetchFrom(url: string, job: SourceJob): Promise<FetchedSource> {
  for (let failedTries = 0; ; ) {
    try {
      return await tryOnce(url, job);
    } catch (error) {
      if (job.signal.aborted) throw job.signal.reason;
      const failure = downloadFailure(error);
      failedTries++;
      const most = { later: job.limits.tries, once: 2, never: 1 }[failure.again];
      if (failedTries >= Math.min(most, job.limits.tries)) throw failure;
      await pause(job, failure, failedTries);
    }
  }
}

async function pause(job: SourceJob, failure: DownloadFailure, failedTries: number): Promise<void> {
  const seconds = failure.retryAfterSeconds ?? 0;
  if (seconds > job.limits.longestWaitSeconds)
    throw new DownloadFailure("never", `${failure.message} and asks to come back in ${seconds} seconds`);
  const ms = Math.max(seconds * 1000, backOffMs(failedTries, job.random));
  job.onWait(ms, failure.message);
  await job.clock.sleep(ms, job.signal);
}

async function tryOnce(url: string, job: SourceJob): Promise<FetchedSource> {
  const { source, clock, cacheFolder, cached, client, limits } = job;
  const partFile = join(cacheFolder, `${source.file}.part`);
  const watch = new Watch({
    clock,
    ms: limits.idleSeconds * 1000,
    again: "later",
    reason: `nothing came for ${limits.idleSeconds} seconds`,
    parent: job.signal,
  });
  const isAskedUrl = url === source.url;
  const part = await downloadPart({
    client,
    url,
    secrets: isAskedUrl ? job.secrets : { headers: {}, query: {} },
    partFile,
    known: cached?.url === url ? cached : null,
    fewestBytes: fewestBytes(job),
    mostBytes: source.maxBytes,
    watch,
    clock,
    onBytes: job.onBytes,
  }).catch(async (error: unknown) => {
    if (error instanceof DownloadFailure && error.again === "never") await removePart(partFile);
    throw error;
  });
  const checkedAt = clock.now().toISOString();
  if (part.type === "unchanged") {
    return { type: "unchanged", entry: { ...cached!, checkedAt }, warning: null };
  }
  const { content, sum } = await checkedPart(partFile, { url, job, watch });
  const { size } = await stat(partFile);
  const { etag, lastModified } = part;
  await dateBack(partFile, lastModified);
  await takePlace(cacheFolder, source.file);
  const { registry, kind, file } = source;
  const facts = { registry, kind, file, url, etag, lastModified, bytes: size, ...content };
  const entry = { ...facts, checksumAgreed: sum === "agrees", fetchedAt: checkedAt, checkedAt };
  const warning = sum === "missing" ? "the checksum that should be beside it is not there" : null;
  return { type: "fetched", entry, warning };
}

function fewestBytes({ cached, acceptSmaller, source }: SourceJob): number {
  return cached === null || acceptSmaller ? 1 : Math.max(1, Math.floor(cached.bytes * source.smallestShare));
}

async function checkedPart(
  partFile: string,
  at: { readonly url: string; readonly job: SourceJob; readonly watch: Watch },
): Promise<{ readonly content: FileContent; readonly sum: "agrees" | "missing" | "none" }> {
  const { url, job, watch } = at;
  try {
    const content = await checkContent(partFile, job.source.kind);
    if (!job.source.hasMd5) return { content, sum: "none" };
    const published = await publishedMd5(job.client, url, watch);
    if (published === null) return { content, sum: "missing" };
    const ours = await md5OfFile(partFile);
    if (ours === published) return { content, sum: "agrees" };
    // The server replaces a file and its checksum one after the other, so one more try may get a matching pair.
    throw new DownloadFailure("once", `its MD5 sum is ${ours}, the published one ${published}`);
  } catch (error) {
    await removePart(partFile);
    throw error;
  }
}

/** Sets the file's date to that of its data. Reports use it for files that contain no date. */
async function dateBack(partFile: string, lastModified: string | null): Promise<void> {
  const modifiedMs = foreignDateMs(lastModified ?? "");
  if (modifiedMs !== null) await utimes(partFile, modifiedMs / 1000, modifiedMs / 1000);
}

/** The old file becomes `.previous` and the part becomes the file. A complete file exists at any moment. */
async function takePlace(cacheFolder: string, file: string): Promise<void> {
  const path = join(cacheFolder, file);
  const previous = `${path}.previous`;
  await rm(previous, { force: true });
  await link(path, previous).catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") await copyFile(path, previous);
  });
  await rename(`${path}.part`, path);
  await rm(`${path}.part.json`, { force: true });
  const folder = await open(cacheFolder, "r");
  await folder.sync().catch(() => {});
  await folder.close();
}

// Reads the MD5 sums published beside statistics, in BSD's form (`MD5 (name) = sum`) or coreutils' (`sum  name`). They
// detect broken transfers, while TLS prevents forgery.

const maxSumBytes = 4096;

/** Returns the sum at `<url>.md5`, or null when there is none (404, 410). Throws a DownloadFailure. */
async function publishedMd5(client: HttpClient, url: string, watch: Watch): Promise<string | null> {
  const headers = { accept: "text/plain, */*", "accept-encoding": "identity" };
  const answer = await client.get({ url: `${url}.md5`, headers, secrets: noSecrets, watch });
  try {
    if (answer.status === 404 || answer.status === 410) return null;
    if (answer.status !== 200) {
      throw new DownloadFailure("later", `its checksum cannot be had: the server answers ${answer.status}`);
    }
    return md5In(await startOf(answer.body));
  } finally {
    answer.close();
  }
}

/** Throws a DownloadFailure unless the text has exactly one sum. */
function md5In(text: string): string {
  const sums = new Set(text.match(/(?<![0-9A-Za-z])[0-9A-Fa-f]{32}(?![0-9A-Za-z])/g));
  const [sum] = sums;
  if (sums.size === 1 && sum !== undefined) return sum.toLowerCase();
  const found = JSON.stringify(text.slice(0, 60));
  throw new DownloadFailure("never", `its checksum file holds ${sums.size} MD5 sums, not one: ${found}`);
}

async function md5OfFile(path: string): Promise<string> {
  const hash = createHash("md5");
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) hash.update(chunk);
  return hash.digest("hex");
}

async function startOf(body: AsyncIterable<Buffer>): Promise<string> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of body) {
    pieces.push(piece);
    bytes += piece.length;
    if (bytes > maxSumBytes) break;
  }
  return Buffer.concat(pieces).subarray(0, maxSumBytes).toString("latin1");
}

// Checks that a download is what its source publishes, and computes its digest. The file is read and unpacked to its
// end, so a truncated gzip, a damaged ZIP or a web page never enters the cache.

type RegistryKind = Exclude<DownloadKind, PublishedFormat>;

const formatsOf: Readonly<Record<RegistryKind, readonly RegistryFormat[]>> = {
  "iana-registry": ["iana-xml"],
  statistics: ["delegated"],
  "rpsl-split": ["rpsl"],
  "whole-database": ["rpsl"],
  "arin-bulk": ["arin-xml", "rpsl"],
};

type FileContent = Pick<CachedFile, "sha256" | "geofeeds">;

/** Returns the digest and the geofeeds named. Throws a DownloadFailure that says what the file is instead. */
export async function checkContent(path: string, kind: DownloadKind): Promise<FileContent> {
  try {
    if (!isPublishedFormat(kind)) return await checkRegistryFile(path, kind);
    await checkPublished(path, kind);
    return {
      sha256: createHash("sha256")
        .update(await readFile(path))
        .digest("hex"),
    };
  } catch (error) {
    if (!(error instanceof SourceFileError)) throw error;
    const place = `${path}${error.line === null ? "" : `:${error.line}`}: `;
    throw new DownloadFailure("never", `not taken: ${error.message.replace(place, "")}`, { cause: error });
  }
}

async function checkRegistryFile(path: string, kind: RegistryKind): Promise<FileContent> {
  const finder = new GeofeedFinder(mostGeofeedsNamed);
  const source = await openSource(path, () => {});
  for await (const { format, chunks, file } of source.parts) {
    if (!(formatsOf[kind] as readonly string[]).includes(format)) {
      throw new SourceFileError(file, null, `it is ${format} data, where ${kind} is expected`);
    }
    for await (const chunk of chunks) if (namesGeofeeds(kind)) finder.push(chunk);
    finder.end();
  }
  const sha256 = await source.sha256();
  return namesGeofeeds(kind) ? { sha256, geofeeds: [...finder.urls].sort() } : { sha256 };
}

/** Databases have objects that may name geofeeds. Statistics and IANA's registries have none. */
export const namesGeofeeds = (kind: DownloadKind) =>
  kind === "rpsl-split" || kind === "whole-database" || kind === "arin-bulk";

// Tries once to download a URL into its part file: conditionally (a 304 keeps our copy), resuming an interrupted try,
// and limited in size. The DownloadFailure says whether another try may help.

interface PartJob {
  readonly client: HttpClient;
  readonly url: string;
  readonly secrets: RequestSecrets;
  readonly partFile: string;
  readonly known: { readonly etag: string | null; readonly lastModified: string | null } | null;
  readonly fewestBytes: number;
  readonly mostBytes: number;
  readonly watch: Watch;
  readonly clock: Clock;
  readonly onBytes: (done: number, total: number | null) => void;
}

type DownloadedPart =
  | { readonly type: "unchanged" }
  | { readonly type: "whole"; readonly etag: string | null; readonly lastModified: string | null };

async function downloadPart(job: PartJob): Promise<DownloadedPart> {
  const beginning = await partBeginning(job.partFile, job.url);
  const answer = await job.client.get({
    url: job.url,
    secrets: job.secrets,
    watch: job.watch,
    headers: { accept: "*/*", "accept-encoding": "identity", ...conditions(job, beginning) },
  });
  try {
    return await takeAnswer(job, beginning, answer);
  } finally {
    answer.close();
  }
}

/** Sends If-Range to resume a part, otherwise both validators of our copy, as RFC 9110 section 13.1 advises. */
function conditions(job: PartJob, beginning: PartBeginning | null): Record<string, string> {
  if (beginning !== null) {
    return { range: `bytes=${beginning.bytes}-`, "if-range": beginning.validator };
  }
  const { etag, lastModified } = job.known ?? { etag: null, lastModified: null };
  return {
    ...(etag !== null && { "if-none-match": etag }),
    ...(lastModified !== null && { "if-modified-since": lastModified }),
  };
}

async function takeAnswer(
  job: PartJob,
  beginning: PartBeginning | null,
  answer: HttpAnswer,
): Promise<DownloadedPart> {
  const { status, headers } = answer;
  if (status === 304 && beginning === null && job.known !== null) return { type: "unchanged" };
  if (status === 206 && beginning !== null) await goOn(job, beginning, answer);
  else if (status === 200) await startAnew(job, answer);
  else throw await refusal(job, answer);
  return { type: "whole", etag: headers.etag ?? null, lastModified: headers["last-modified"] ?? null };
}

async function startAnew(job: PartJob, answer: HttpAnswer): Promise<void> {
  const total = lengthOf(answer.headers);
  checkSize(job, total);
  const validator = strongValidator(answer.headers);
  await beginPart(job.partFile, validator === null ? null : { url: job.url, validator });
  await append(job, answer, { start: 0, total });
}

async function goOn(job: PartJob, beginning: PartBeginning, answer: HttpAnswer): Promise<void> {
  const range = /^bytes (\d{1,15})-(\d{1,15})\/(\d{1,15}|\*)$/.exec(answer.headers["content-range"] ?? "");
  const start = Number(range?.[1]);
  const total = range?.[3] === "*" || !range ? null : Number(range[3]);
  if (start !== beginning.bytes || (total !== null && total !== Number(range?.[2]) + 1)) {
    await removePart(job.partFile);
    const stated = (answer.headers["content-range"] ?? "none").slice(0, 80);
    throw new DownloadFailure("later", `asked from byte ${beginning.bytes} on, the range sent is ${stated}`);
  }
  checkSize(job, total);
  await append(job, answer, { start, total });
}

async function append(
  job: PartJob,
  answer: HttpAnswer,
  at: { readonly start: number; readonly total: number | null },
): Promise<void> {
  let done = at.start;
  async function* counted(): AsyncGenerator<Buffer> {
    job.onBytes(done, at.total);
    for await (const piece of answer.body) {
      done += piece.length;
      if (done > job.mostBytes) throw tooLarge(job, null);
      yield piece;
      job.onBytes(done, at.total);
    }
  }
  await appendToPart(job.partFile, at.start, counted());
  if (at.total !== null && done !== at.total) {
    throw new DownloadFailure("later", `${done} bytes came of ${at.total}`);
  }
  checkSize(job, done);
}

function checkSize(job: PartJob, bytes: number | null): void {
  if (bytes === null) return;
  if (bytes > job.mostBytes) throw tooLarge(job, bytes);
  if (bytes < job.fewestBytes) {
    throw new DownloadFailure(
      "never",
      `only ${bytes} bytes, much smaller than the last one (at least ${job.fewestBytes} are expected)`,
    );
  }
}

function tooLarge(job: PartJob, bytes: number | null): DownloadFailure {
  const size = bytes === null ? "larger" : `${bytes} bytes, larger`;
  return new DownloadFailure("never", `${size} than the ${job.mostBytes} bytes that are taken`);
}

async function refusal(job: PartJob, answer: HttpAnswer): Promise<DownloadFailure> {
  const { status, headers } = answer;
  if (status === 416) await removePart(job.partFile);
  const passing = status >= 500 || status === 416 || status === 429 || status === 408 || status === 425;
  return new DownloadFailure(passing ? "later" : "never", `the server answers ${status}`, {
    retryAfterSeconds: retryAfterSeconds(headers["retry-after"], job.clock.now()),
  });
}

function lengthOf(headers: IncomingHttpHeaders): number | null {
  const text = headers["content-length"] ?? "";
  return /^\d{1,15}$/.test(text) ? Number(text) : null;
}

// The unfinished file of a download is `<file>.part`. Its URL and version are in `<file>.part.json`, so that a later
// try can resume (RFC 9110 sections 13.1.5, 14).

const originSchema = z.strictObject({
  url: z.string(),
  validator: z.string().min(1).max(1000),
});

type PartOrigin = z.infer<typeof originSchema>;

interface PartBeginning {
  readonly bytes: number;
  readonly validator: string;
}

async function partBeginning(partFile: string, url: string): Promise<PartBeginning | null> {
  try {
    const origin = originSchema.parse(JSON.parse(await readFile(`${partFile}.json`, "utf8")));
    const { size } = await stat(partFile);
    return origin.url === url && size > 0 ? { bytes: size, validator: origin.validator } : null;
  } catch {
    return null;
  }
}

/** Starts an empty part for this origin. `null` means that no later try can request the same version to resume it. */
async function beginPart(partFile: string, origin: PartOrigin | null): Promise<void> {
  await removePart(partFile);
  await writeFile(partFile, "");
  if (origin === null) return;
  await writeFile(`${partFile}.json.new`, JSON.stringify(origin));
  await rename(`${partFile}.json.new`, `${partFile}.json`);
}

async function removePart(partFile: string): Promise<void> {
  await rm(`${partFile}.json`, { force: true });
  await rm(partFile, { force: true });
}

/** Appends at `start`. Flushes the bytes to disk (fsync) even when the source fails. */
async function appendToPart(partFile: string, start: number, pieces: AsyncIterable<Buffer>): Promise<void> {
  await truncate(partFile, start);
  const handle = await open(partFile, "r+");
  try {
    let position = start;
    for await (const piece of pieces) {
      await writeWhole(handle, piece, position);
      position += piece.length;
    }
  } finally {
    await handle.sync();
    await handle.close();
  }
}

async function writeWhole(handle: FileHandle, piece: Buffer, position: number): Promise<void> {
  for (let written = 0; written < piece.length; ) {
    const { bytesWritten } = await handle.write(piece, written, piece.length - written, position + written);
    written += bytesWritten;
  }
}

/**
 * Returns a validator for If-Range: a strong entity tag, or a modification date at least a minute before the answer
 * (RFC 9110 section 8.8.2.2 requires a second).
 */
function strongValidator(headers: IncomingHttpHeaders): string | null {
  const etag = headers.etag ?? "";
  if (/^"[\x21\x23-\x7e]*"$/.test(etag)) return etag;
  const lastModified = headers["last-modified"] ?? "";
  const modifiedMs = foreignDateMs(lastModified);
  const answeredMs = foreignDateMs(headers.date ?? "");
  return modifiedMs !== null && answeredMs !== null && answeredMs - modifiedMs >= 60_000
    ? lastModified
    : null;
}

const firstBackOffMs = 1000;
const mostBackOffMs = 60_000;

/** Doubles from a second to a minute. Half of the pause is random, so that clients do not retry together. */
export function backOffMs(failedTries: number, random: () => number): number {
  const most = Math.min(mostBackOffMs, firstBackOffMs * 2 ** Math.min(10, failedTries - 1));
  return most * (0.5 + random() / 2);
}
