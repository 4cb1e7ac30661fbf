/** `nearcrawl changes`: what visits found new, changed or gone, since a cursor; followed as it comes. */

import { setTimeout as delay } from "node:timers/promises";
import { Command } from "commander";
import {
  type ChangeFeed,
  type ChangeQuery,
  type ChangesRead,
  createChangeFeed,
  type FeedRead,
} from "#coordinator/changes/change-feed-reads";
import {
  changeKinds,
  changeWords,
  kindWords,
  type PageChange,
  toldChange,
} from "#coordinator/changes/page-change";
import {
  changesLimit,
  cursorWords,
  readChangeQuery,
  readChanges,
  readSince,
  startOf,
} from "#coordinator/changes/read-changes";
import { differenceText } from "#coordinator/changes/text-difference";
import { UsageError } from "#core/errors";
import { readerGone } from "#crawler/cli/closed-output";
import { boundedInteger } from "../bounded-number.ts";
import { commandContext } from "../command-context.ts";
import { exitCodes } from "../exit-codes.ts";
import { formatTable, printAnswer, printable } from "../output.ts";
import { type DatabaseOptions, readDatabase, withDatabaseOptions } from "../read-database.ts";

interface ChangesOptions extends DatabaseOptions {
  readonly since?: string;
  readonly follow?: boolean;
  readonly host?: string;
  readonly prefix?: string;
  readonly dset?: string;
  readonly kind?: string;
  readonly limit: number;
}

export function changesCommand(): Command {
  return withDatabaseOptions(new Command("changes"))
    .description("list the pages that were new, changed or gone when they were fetched")
    .option(
      "--since <cursor>",
      "changes after it: the cursor at the end of an answer, earliest, or now (default: the latest changes)",
    )
    .option(
      "--follow",
      "keep printing new changes, one per line, until Ctrl-C (without --since: from now on)",
    )
    .option("--host <name>", "only of this host")
    .option("--prefix <url>", "only URLs with this prefix, including scheme and host")
    .option("--dset <set>", 'only hosts and languages of a domain set: ".gr", "example.org lang:el"')
    .option("--kind <kinds>", `with commas: ${changeKinds.join(", ")}`)
    .option(
      "--limit <n>",
      "maximum number of changes",
      boundedInteger(1, changesLimit.most),
      changesLimit.usual,
    )
    .addHelpText(
      "after",
      "\nWhere a text changed, [-these words-] were removed and {+these+} added.\nWith --follow and --json each change is a line of JSON, and its number is the cursor after it.\nThe web page: /changes. Exit codes: 0 done, 1 failed, 2 wrong usage, or a cursor that is too old or unknown, 3 no changes match, 130 interrupted.\n\nExamples:\n  nearcrawl changes --host www.example.org\n  nearcrawl changes --since 4711 --kind changed,gone --json\n  nearcrawl changes --follow --prefix https://www.example.org/docs/",
    )
    .action(async (options: ChangesOptions) => await changes(options));
}

async function changes(options: ChangesOptions): Promise<void> {
  const { host = "", prefix = "", dset = "", kind = "", limit } = options;
  const query = readChangeQuery({ since: "", host, prefix, dset, kind, limit: String(limit) });
  const since = readSince(options.since ?? "");
  await readDatabase(commandContext(options), async ({ pool }) => {
    const feed = createChangeFeed(pool);
    if (options.follow) {
      const at = await startOf(since === "latest" ? "now" : since, feed);
      await followChanges(feed, { at, query, lineOf: options.json ? jsonLine : changeLine });
      return;
    }
    const found = readable(Number(since), await readChanges(feed, since, query));
    printAnswer(options, { ...found, changes: found.changes.map(toldChange) }, changesText(found));
    if (found.changes.length === 0) process.exitCode = exitCodes.notFound;
  });
}

function readable(since: number, found: ChangesRead): Omit<FeedRead, "type"> {
  if (found.type !== "read") throw new UsageError(cursorWords(since, found).words);
  const { type: _, ...answer } = found;
  return answer;
}

const jsonLine = (change: PageChange) => JSON.stringify(toldChange(change));

function changeLine(change: PageChange): string {
  return `${timeOf(change)}  ${kindWords[change.kind].padEnd(15)} ${printable(change.url, 200)}  ${printable(changeText(change), 500)}`;
}

export function changesText({ changes, next, more }: Omit<FeedRead, "type">): string {
  const onwards = `${more ? "more" : "new ones"}: --since ${next}`;
  if (changes.length === 0) return `no changes match; ${onwards}`;
  const table = formatTable(
    [{ title: "when (UTC)" }, { title: "what" }, { title: "page" }, { title: "details" }],
    changes.map((change) => [
      timeOf(change),
      kindWords[change.kind],
      printable(change.url, 100),
      printable(changeText(change), 300),
    ]),
  );
  return `${table}\n${onwards}`;
}

/** With where the texts differ, as wdiff writes it. */
export function changeText(change: PageChange): string {
  const words = changeWords(change);
  return change.difference === null ? words : `${words}: ${differenceText(change.difference)}`;
}

const timeOf = ({ seenAt }: PageChange) => seenAt.toISOString().slice(0, 19).replace("T", " ");

// The change feed, followed: one line for each change, as it comes, until somebody ends it.

interface FollowSettings {
  /** The cursor to begin with. */
  readonly at: number;
  readonly query: ChangeQuery;
  readonly lineOf: (change: PageChange) => string;
  /** Ends the following; Ctrl-C when it is left out. */
  readonly signal?: AbortSignal;
  readonly stream?: { write(text: string): unknown };
}

const lookAgainMs = 1000;

/** Resolves when it has been ended, with the cursor to go on from; the process then has the exit code that says by what. */
export async function followChanges(feed: ChangeFeed, settings: FollowSettings): Promise<number> {
  const { query, lineOf, stream = process.stdout } = settings;
  const interrupt = new AbortController();
  const onInterrupt = () => interrupt.abort();
  const gone = readerGone();
  const signal = AbortSignal.any([settings.signal ?? interrupt.signal, gone]);
  if (!settings.signal) process.once("SIGINT", onInterrupt).once("SIGTERM", onInterrupt);
  let { at } = settings;
  try {
    while (!signal.aborted) {
      const found = await feed.after(at, query);
      if (found.type !== "read") throw new UsageError(cursorWords(at, found).words);
      for (const change of found.changes) stream.write(`${lineOf(change)}\n`);
      at = found.next;
      if (!found.more) await delay(lookAgainMs, undefined, { signal }).catch(() => {});
    }
  } finally {
    process.off("SIGINT", onInterrupt).off("SIGTERM", onInterrupt);
  }
  process.exitCode = gone.aborted ? exitCodes.done : exitCodes.interrupted;
  return at;
}
