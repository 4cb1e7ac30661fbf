/** Reads people's lists of URLs: plain text of any length, sitemaps and feeds, gzip or not. */

import { closeSync, createReadStream, existsSync, openSync, readSync, statSync } from "node:fs";
import type { Readable } from "node:stream";
import { UsageError } from "#core/errors";
import { encodingOf, plainLines } from "#core/plain-lines";
import { listForm, xmlText } from "#crawler/extract/document-kind";
import { readList, WorkTurns } from "#crawler/extract/read-list";
import { isGzip, unpackGzip } from "#crawler/extract/unpack-gzip";
import { readInput } from "./read-input.ts";

/** The limit of a sitemap (sitemaps protocol), applied packed and unpacked. */
const mostListBytes = 50 * 1024 * 1024;

/** A longer line is no URL. */
const mostLineCharacters = 4096;

/** The URLs of a source: a URL itself, `-` (standard input) or a file. Throws a UsageError that names the source. */
export async function* urlsOfSource(source: string, standardInput: Readable): AsyncGenerator<string> {
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(source)) yield source;
  else if (source === "-") yield* linesOf(standardInput);
  else if (!existsSync(source))
    throw new UsageError(`${source}: neither a URL (https://…) nor a file that is there`);
  else if (!statSync(source).isFile()) throw new UsageError(`${source}: it is no file`);
  else if (isPackedOrXml(source)) yield* entriesOf(source);
  else yield* linesOf(createReadStream(source));
}

function isPackedOrXml(file: string): boolean {
  const head = Buffer.alloc(64);
  let descriptor: number | null = null;
  try {
    descriptor = openSync(file, "r");
    const length = readSync(descriptor, head);
    const start = head.subarray(0, length);
    const text = new TextDecoder(encodingOf(start)).decode(start).trimStart();
    return isGzip(head) || text.startsWith("<");
  } catch (error) {
    throw new UsageError(`${file}: ${(error as Error).message}`);
  } finally {
    if (descriptor !== null) closeSync(descriptor);
  }
}

async function* entriesOf(file: string): AsyncGenerator<string> {
  const { bytes, cut } = readInput(file, mostListBytes);
  const unpacked = await unpackGzip(bytes, mostListBytes);
  if (cut || unpacked.truncated)
    throw new UsageError(`${file}: it is broken, or more than ${mostListBytes / 1024 / 1024} MB unpacked`);
  const { text } = xmlText(unpacked.bytes, "");
  const form = listForm(text);
  if (form === null || form === "text") {
    if (text.trimStart().startsWith("<"))
      throw new UsageError(`${file}: it is neither a sitemap nor a feed nor a list of URLs`);
    yield* plainLines(unpacked.bytes)
      .toString()
      .split(/\r?\n/)
      .map((line) => line.slice(0, mostLineCharacters));
    return;
  }
  const entries = await readList(text, form, new WorkTurns(async () => {}));
  for (const { href } of entries) yield href;
}

/** Enough to distinguish UTF-8 and UTF-16. */
const encodingBytes = 4;

/** Yields lines; an overlong one is cut where it is clearly no URL. */
async function* linesOf(stream: Readable): AsyncGenerator<string> {
  let decoder: InstanceType<typeof TextDecoder> | null = null;
  let [start, rest] = [Buffer.alloc(0), ""];
  for await (const chunk of stream) {
    start = Buffer.concat([start, chunk as Buffer]);
    if (decoder === null && start.length < encodingBytes) continue;
    decoder ??= new TextDecoder(encodingOf(start));
    const text = decoder.decode(start, { stream: true });
    start = Buffer.alloc(0);
    const lines = (rest + text).split(/\r\n|\n|\r(?!$)/);
    rest = (lines.pop() ?? "").slice(0, mostLineCharacters);
    for (const line of lines) yield line.slice(0, mostLineCharacters);
  }
  rest += decoder === null ? new TextDecoder(encodingOf(start)).decode(start) : decoder.decode();
  if (rest !== "") yield rest;
}
