/**
 * Tries once to download a URL into its part file: conditionally (a 304 keeps our copy), resuming an interrupted try,
 * limited in size. Throws a DownloadFailure that says whether another try may help.
 */

import { type FileHandle, open, readFile, rename, rm, stat, truncate, writeFile } from "node:fs/promises";
import type { IncomingHttpHeaders } from "node:http";
import { z } from "zod";
import { foreignDateMs, retryAfterSeconds } from "#core/foreign-dates";
import {
  type Clock,
  DownloadFailure,
  type HttpAnswer,
  type HttpClient,
  type RequestSecrets,
  type Watch,
} from "./http-client.ts";

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

export async function downloadPart(job: PartJob): Promise<DownloadedPart> {
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

/** Sends If-Range for a part, else both validators of our copy, as RFC 9110 section 13.1 advises. */
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

// The unfinished file of a download, `<file>.part`, and `<file>.part.json` with its URL and version, so that a later
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

/** Restarts the part for this origin; null when its version cannot be requested again. */
async function beginPart(partFile: string, origin: PartOrigin | null): Promise<void> {
  await removePart(partFile);
  await writeFile(partFile, "");
  if (origin === null) return;
  await writeFile(`${partFile}.json.new`, JSON.stringify(origin));
  await rename(`${partFile}.json.new`, `${partFile}.json`);
}

export async function removePart(partFile: string): Promise<void> {
  await rm(`${partFile}.json`, { force: true });
  await rm(partFile, { force: true });
}

/** Appends at `start` and flushes the bytes to disk (fsync) even when the source fails. */
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

/** Doubles from a second to a minute, with jitter over half of that so that clients do not retry together. */
export function backOffMs(failedTries: number, random: () => number): number {
  const most = Math.min(mostBackOffMs, firstBackOffMs * 2 ** Math.min(10, failedTries - 1));
  return most * (0.5 + random() / 2);
}
