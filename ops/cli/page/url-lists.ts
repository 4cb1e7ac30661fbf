/** Lists of URLs as people have them: plain text line by line of any length, sitemaps and feeds, gzip or not. */
import { closeSync, createReadStream, existsSync, openSync, readSync, statSync } from "node:fs";
import type { Readable } from "node:stream";
import { UsageError } from "#core/errors";
import { listForm, xmlText } from "#crawler/extract/document-kind";
import { readList, WorkTurns } from "#crawler/extract/read-list";
import { isGzip, unpackGzip } from "#crawler/extract/unpack-gzip";
import { readInput } from "./read-input.ts";

/** A sitemap holds 50 MB at most (sitemaps protocol); so much of one is read, packed or unpacked. */
const mostListBytes = 50 * 1024 * 1024;

/** More of a line is no URL. */
const mostLineCharacters = 4096;

/** The URLs of one source: a URL itself, `-` (standard input) or a file. Throws a UsageError that names the source. */
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
    const text = head.subarray(0, length).toString("utf8").replace("\ufeff", "").trimStart();
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
    yield* text.split(/\r?\n/).map((line) => line.slice(0, mostLineCharacters));
    return;
  }
  const { entries } = await readList(text, form, new WorkTurns(async () => {}));
  for (const { href } of entries) yield href;
}

/** Line by line; of one that is too long as much as shows that it is no URL. */
async function* linesOf(stream: Readable): AsyncGenerator<string> {
  const decoder = new TextDecoder("utf-8");
  let rest = "";
  for await (const chunk of stream) {
    const lines = (rest + decoder.decode(chunk as Buffer, { stream: true })).split(/\r\n|\n|\r(?!$)/);
    rest = (lines.pop() ?? "").slice(0, mostLineCharacters);
    for (const line of lines) yield line.slice(0, mostLineCharacters);
  }
  rest += decoder.decode();
  if (rest !== "") yield rest;
}
