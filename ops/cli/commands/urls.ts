/** `nearcrawl urls`: submits URLs, has them fetched again, and shows their state. */

import { closeSync, createReadStream, existsSync, openSync, readSync, statSync } from "node:fs";
import type { Readable } from "node:stream";
import { Command } from "commander";
import type { Pool } from "pg";
import {
  type AnsweredUrl,
  countWords,
  type FollowedUrl,
  type GivenUrl,
  givenUrl,
  notFollowed,
  type Submission,
  type SubmissionDeed,
  submissionBounds,
  submissionChange,
  sumOf,
} from "#coordinator/crawl/submissions/submission";
import {
  createSubmissionStore,
  type SubmissionStore,
  submitUrls,
} from "#coordinator/crawl/submissions/submission-store";
import { readCoordinatorPlace } from "#coordinator/place/crawlers/coordinator-place-store";
import { knownPolicies } from "#coordinator/run/settings/change";
import { createPolicyStore } from "#coordinator/run/settings/settings-store";
import { UsageError } from "#core/errors";
import { instantWords } from "#core/format";
import { encodingOf, plainLines } from "#core/plain-lines";
import { printable } from "#core/terminal-text";
import { listForm, xmlText } from "#crawler/extract/document-kind";
import { readList, WorkTurns } from "#crawler/extract/read-list";
import { isGzip, unpackGzip } from "#crawler/extract/unpack-gzip";
import { commandActor, recordCommand } from "../audit-command-change.ts";
import { commandContext } from "../command-context.ts";
import { exitCodes } from "../exit-codes.ts";
import { formatTable, ProgressLine, printAnswer, writeOut } from "../output.ts";
import { readInput } from "../page/single-fetch.ts";
import { type DatabaseOptions, readDatabase, withDatabaseOptions } from "../read-database.ts";

const sources = "URLs, files (lists, sitemaps, feeds, also gzip), or - for standard input";

/** Maximum number of refused lines that are named. */
const namedUrls = 20;

/** How many URLs' states are read and printed at a time, so that lists may be of any length. */
const statusBatch = 1000;

export function urlsCommand(): Command {
  const command = new Command("urls")
    .description("submit URLs, have them fetched again, and see their state")
    .addHelpText(
      "after",
      `
A receipt is kept for ${submissionBounds.keepDays} days: nearcrawl urls status NUMBER, or /submissions/NUMBER on the pages.
Lists have one URL per line; blank lines and those that begin with # are skipped. The URL of a sitemap adds the URLs
of its own host that it lists.
Exit codes: 0 done, 1 failed, 2 wrong usage, or every URL was refused, 3 nothing is known about them.

Examples:
  nearcrawl urls add https://www.example.org/ https://www.example.net/news
  nearcrawl urls add seeds.txt sitemap.xml.gz
  sort seeds.txt | nearcrawl urls add -
  nearcrawl urls recrawl https://www.example.org/
  nearcrawl urls status https://www.example.org/`,
    );
  const deeds = [
    ["add", "add them to the crawl; known URLs keep their schedule"],
    ["recrawl", "fetch known URLs again now, at the usual politeness"],
  ] as const;
  for (const [deed, description] of deeds)
    command.addCommand(
      withDatabaseOptions(new Command(deed))
        .argument("<url-or-file...>", sources)
        .description(description)
        .action(
          async (given: readonly string[], options: DatabaseOptions) => await submit(given, deed, options),
        ),
    );
  command.addCommand(
    withDatabaseOptions(new Command("status"))
      .argument("<url-or-file-or-number...>", `${sources}; or the number of a receipt`)
      .description("their state, and when they are fetched")
      .action(async (given: readonly string[], options: DatabaseOptions) => await status(given, options)),
  );
  return command;
}

async function* textsOf(given: readonly string[]): AsyncGenerator<string> {
  for (const source of given) yield* urlsOfSource(source, process.stdin);
}

async function submit(
  given: readonly string[],
  deed: SubmissionDeed,
  options: DatabaseOptions,
): Promise<void> {
  const progress = new ProgressLine();
  const refused: AnsweredUrl[] = [];
  const startedMs = performance.now();
  const { submission, link, left } = await readDatabase(commandContext(options), async ({ pool }) => {
    const { scope } = knownPolicies(await createPolicyStore(pool).read()).settings;
    const submission = await submitUrls(await begun(textsOf(given)), createSubmissionStore(pool), {
      deed,
      submittedBy: commandActor(),
      scope,
      // Only the coordinator can decide about such addresses, since the host must be resolved first.
      allowSpecialPurpose: true,
      now: () => new Date(),
      onBatch: (answers, taken) => {
        refused.push(
          ...answers.filter(({ answer }) => answer === "refused").slice(0, namedUrls - refused.length),
        );
        const perSecond = (1000 * taken) / Math.max(1, performance.now() - startedMs);
        if (taken >= 1000) progress.show(`${taken.toLocaleString("en-GB")} URLs, ${Math.round(perSecond)}/s`);
      },
    });
    await recordCommand(pool, submissionChange(submission, given[0] as string));
    const left = deed === "add" ? notFollowed(scope) : [];
    return { submission, link: await receiptLink(pool, submission.submissionId), left };
  });
  progress.done();
  const answer = { ...submission, link, notFollowed: left };
  printAnswer(options, answer, receiptText({ submission, refused, link, left }));
  const { urls } = submission;
  if (urls.new + urls.known + urls.elsewhere === 0) process.exitCode = exitCodes.usage;
}

/** Waits for the first text, so that an unreadable or empty source leaves no receipt. */
async function begun(texts: AsyncGenerator<string>): Promise<AsyncIterable<string>> {
  const first = await texts.next();
  if (first.done === true) throw new UsageError("no URL was given");
  return (async function* () {
    yield first.value;
    yield* texts;
  })();
}

async function receiptLink(pool: Pool, submissionId: number): Promise<string | null> {
  const place = await readCoordinatorPlace(pool);
  return place === null ? null : `${place.webUrl}/submissions/${submissionId}`;
}

interface Receipt {
  readonly submission: Submission;
  readonly refused: readonly AnsweredUrl[];
  readonly link: string | null;
  /** URLs that will not be followed. */
  readonly left: readonly string[];
}

function receiptText({ submission, refused, link, left }: Receipt): string {
  const more = submission.urls.refused - refused.length;
  const all = sumOf(submission);
  return [
    `${all.toLocaleString("en-GB")} ${all === 1 ? "URL" : "URLs"}: ${countWords(submission)}`,
    ...refused.map(({ place, url, reason }) => `  refused, line ${place}: ${printable(url, 200)}: ${reason}`),
    ...(more > 0 ? [`  refused: ${more.toLocaleString("en-GB")} more, all on the receipt`] : []),
    `follow them: nearcrawl urls status ${submission.submissionId}${link === null ? "" : `   or ${link}`}`,
    ...left.map((words, at) => `${at === 0 ? "not followed:" : "             "} ${words}`),
  ].join("\n");
}

/** Works in batches, so that a list of any length is answered while it is read and never held in memory. */
async function status(given: readonly string[], options: DatabaseOptions): Promise<void> {
  const number = given.length === 1 && /^[1-9]\d{0,14}$/.test(given[0] as string) ? Number(given[0]) : null;
  await readDatabase(commandContext(options), async ({ pool }) => {
    const store = createSubmissionStore(pool);
    const submission = number === null ? null : await store.find(number);
    if (number !== null && submission === null) {
      process.stderr.write(`nearcrawl: there is no receipt ${number}, or no longer\n`);
      process.exitCode = exitCodes.notFound;
      return;
    }
    const batches = number === null ? statesOf(given, store) : receiptStates(number, store);
    if (submission === null) process.exitCode = exitCodes.notFound;
    const print = options.json ? jsonOf : tableOf;
    let piece = options.json ? `{"submission": ${JSON.stringify(submission)}, "urls": [` : headOf(submission);
    let isFirst = true;
    for await (const batch of batches) {
      if (batch.some(({ state }) => state !== "unknown" && state !== "refused"))
        process.exitCode = exitCodes.done;
      if (!(await writeOut(piece + print(batch, isFirst)))) return;
      [piece, isFirst] = ["", false];
    }
    await writeOut(options.json ? `${piece}\n]}\n` : piece);
  });
}

/** Yields each line once, in the lists' order. A line that is not a URL is refused in its place without ending the list. */
async function* statesOf(
  given: readonly string[],
  store: Pick<SubmissionStore, "statusOf">,
): AsyncGenerator<readonly FollowedUrl[]> {
  let place = 0;
  let batch: GivenUrl[] = [];
  for await (const text of textsOf(given)) {
    place += 1;
    const line = text.trim();
    if (line === "" || line.startsWith("#")) continue;
    batch.push(givenUrl(line, place, true));
    if (batch.length < statusBatch) continue;
    yield await store.statusOf(batch, new Date());
    batch = [];
  }
  if (batch.length > 0) yield await store.statusOf(batch, new Date());
  else if (place === 0) throw new UsageError("no URL was given");
}

async function* receiptStates(
  number: number,
  store: Pick<SubmissionStore, "urls">,
): AsyncGenerator<readonly FollowedUrl[]> {
  for (let after = 0; ; ) {
    const urls = await store.urls(number, { after, limit: statusBatch, now: new Date() });
    if (urls.length > 0) yield urls;
    if (urls.length < statusBatch) return;
    after = urls.at(-1)!.place;
  }
}

function headOf(submission: Submission | null): string {
  if (submission === null) return "";
  const { submissionId, deed, submittedBy, submittedAt, fetched } = submission;
  const since = fetched === null ? "" : `; ${fetched} fetched since`;
  return `submission ${submissionId} (${deed}) by ${submittedBy}, ${instantWords(submittedAt)}: ${countWords(submission)}${since}\n\n`;
}

/** Columns are sized for each batch. Only the first batch has titles. */
function tableOf(batch: readonly FollowedUrl[], isFirst: boolean): string {
  const rows = batch.map(({ url, state, crawler, words }) => [url, state, crawler ?? "–", words]);
  const table = formatTable(
    ["url", "state", "crawler", "words"].map((title) => ({ title })),
    rows.map((row) => row.map((cell) => printable(cell, 300))),
  );
  return `${isFirst ? table : table.split("\n").slice(2).join("\n")}\n`;
}

/** Writes a part of one JSON array. */
const jsonOf = (batch: readonly FollowedUrl[], isFirst: boolean): string =>
  `${isFirst ? "\n" : ",\n"}${batch.map((one) => JSON.stringify(one)).join(",\n")}`;

// Reads lists of URLs from people: plain text of any length, sitemaps and feeds, with or without gzip.

/** The sitemaps protocol's limit for a sitemap, applied before and after unpacking. */
const mostListBytes = 50 * 1024 * 1024;

/** A longer line is not a URL. */
const mostLineCharacters = 4096;

/** Yields the URLs of a source: a URL itself, `-` (standard input) or a file. Throws a UsageError that names the source. */
async function* urlsOfSource(source: string, standardInput: Readable): AsyncGenerator<string> {
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

/** How many bytes are enough to distinguish UTF-8 and UTF-16. */
const encodingBytes = 4;

/** Yields lines. An overlong line is cut at a length that no URL has. */
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
