/** `nearcrawl search export`: exports the index to another search engine and keeps it current from the change feed. */

import { hostname } from "node:os";
import { resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Command, Option } from "commander";
import type { Pool } from "pg";
import { readCoordinatorConfig } from "#coordinator/config";
import { openSearchPlace } from "#coordinator/tell/search/engine/opensearch-place-resolver";
import {
  type ExportProgress,
  type ExportSummary,
  type ExportTarget,
  exportIndex,
} from "#coordinator/tell/search/export/export-index";
import { createExportReads } from "#coordinator/tell/search/export/export-reads";
import { NdjsonFile, NdjsonPipe, NobodyReads } from "#coordinator/tell/search/export/ndjson-store";
import { alone } from "#coordinator/tell/search/export/one-export-store";
import { OpenSearchIndex } from "#coordinator/tell/search/export/opensearch-target";
import { UsageError } from "#core/errors";
import { howMany } from "#core/format";
import { printable } from "#core/terminal-text";
import { timerMs } from "#core/timer-ms";
import type { UrlAddress } from "#core/url-key";
import { type CommandContext, commandContext, openSearchAuthorization } from "../command-context.ts";
import { exitCodes } from "../exit-codes.ts";
import { countText, ProgressLine, paceText, secondsText, writeOut } from "../output.ts";
import { type DatabaseOptions, readDatabase, withDatabaseOptions } from "../read-database.ts";
import { readCoordinatorSettings, withPlaces } from "../setup/coordinator-settings.ts";

interface ExportOptions extends DatabaseOptions {
  readonly to: "opensearch" | "ndjson";
  readonly url?: string;
  readonly ca?: string;
  readonly out?: string;
  readonly state?: string;
  readonly full?: boolean;
  readonly follow?: boolean;
}

const help = `
The first run exports all pages that the search shows; later ones what changed since. What is hidden (noindex, an
opt-out, a site that does not want its page searched) is removed at the target. A run that was killed goes on where it
stood, and what is sent twice changes nothing. All pages are exported again, and it is said why, where the database
went back to an earlier state, or the feed no longer reaches what the target has (policy changes.keepDays); what the
index does not have any more is removed at the end of it. Ranks and counts of links are as of a page's last export:
--full now and then renews them.

Targets:
  opensearch  an index, made where it is not there; --url https://search.example.org:9200/INDEX (default
              nearcrawl-pages). Credentials: NEARCRAWL_OPENSEARCH_USER and NEARCRAWL_OPENSEARCH_PASSWORD, or
              NEARCRAWL_OPENSEARCH_AUTHORIZATION, the header's whole value; over https, or on loopback. The
              cursor is the document nearcrawl-cursor of the index.
  ndjson      lines of JSON to a file that grows (--out FILE; the cursor is FILE.state.json, or --state), or to
              standard output (--out -): {"op":"index","_id","version","document"}, {"op":"delete","_id","version"};
              {"op":"begin-full","version"} and, when it is whole, {"op":"end-full","version"}: what has a lower
              version by then is in the index no more.

The runbook, scaling, has the fields and how to search them. Only one export to a target runs at a time.
Exit codes: 0 done, 1 failed, the target refused some documents, 2 wrong usage, 130 interrupted; what was taken stays.

Examples:
  nearcrawl search export --to opensearch --url https://search.example.org:9200/pages --follow
  nearcrawl search export --to ndjson --out /var/lib/export/pages.ndjson
  nearcrawl search export --to ndjson --out - | gzip > pages.ndjson.gz
To search for the word, quote it: nearcrawl search '"export"'
`;

export function exportCommand(): Command {
  return withDatabaseOptions(
    new Command("export").description("export the index to a search engine, and keep it up to date"),
  )
    .addOption(
      new Option("--to <target>", "what it is exported to")
        .choices(["opensearch", "ndjson"])
        .makeOptionMandatory(),
    )
    .option("--url <url>", "opensearch: its address, with the index as the path")
    .option("--ca <file>", "opensearch: the authority that signed its certificate, in PEM form")
    .option("--out <file>", "ndjson: the file; - for standard output")
    .option("--state <file>", "ndjson: where the cursor is kept (default: beside the file)")
    .option("--full", "all pages again")
    .option("--follow", "keep exporting what changes, until Ctrl-C")
    .addHelpText("after", help)
    .action(exportPages);
}

async function exportPages(options: ExportOptions): Promise<void> {
  const interrupt = new AbortController();
  const onInterrupt = () => interrupt.abort();
  const line = new ProgressLine();
  const say = (words: string) => {
    line.done();
    process.stderr.write(`nearcrawl: ${printable(words, 600)}\n`);
  };
  const opened = { onTrouble: say, signal: interrupt.signal };
  const context = commandContext(options);
  const { place, target, close } = targetOf(options, opened);
  const texts = textsElsewhere(context, opened);
  let withoutText = 0;
  process.on("SIGINT", onInterrupt).on("SIGTERM", onInterrupt);
  try {
    const summary = await readDatabase(context, async ({ pool, schema }) => {
      return await only(pool, { schema, place }, async () => {
        const begunMs = performance.now();
        const ports = {
          ...{ reads: createExportReads(pool), target, signal: interrupt.signal },
          texts: {
            ...(texts && { elsewhere: texts.documents }),
            onLost: async (pages: readonly UrlAddress[]) => {
              withoutText += pages.length;
            },
          },
          nowMs: () => performance.now(),
          onProgress: (progress: ExportProgress) =>
            line.show(progressText(progress, (performance.now() - begunMs) / 1000)),
          onFull: (why: string) => say(`exporting all pages: ${why}`),
        };
        let summary = await exportIndex(ports, { full: options.full === true });
        while (options.follow && !interrupt.signal.aborted) {
          await delay(lookAgainMs, undefined, { signal: interrupt.signal }).catch(() => {});
          if (!interrupt.signal.aborted) summary = joined(summary, await exportIndex(ports));
        }
        return { ...summary, seconds: Math.round((performance.now() - begunMs) / 100) / 10 };
      });
    });
    line.done();
    tell(options, { to: place, ...summary });
    if (withoutText > 0)
      say(`${howMany(withoutText, "page")} left out: the text is neither in the database nor at search.url`);
    if (summary.rejected > 0) process.exitCode = exitCodes.failed;
    if (interrupt.signal.aborted) process.exitCode = exitCodes.interrupted;
  } catch (error) {
    line.done();
    if (interrupt.signal.aborted) process.exitCode = exitCodes.interrupted;
    else if (!(error instanceof NobodyReads)) throw error;
  } finally {
    process.off("SIGINT", onInterrupt).off("SIGTERM", onInterrupt);
    await Promise.all([close(), texts?.close()]);
  }
}

/** The engine that keeps texts, if the coordinator's settings name one. */
function textsElsewhere({ settingsFile }: CommandContext, ports: Ports): OpenSearchIndex | null {
  const { search } = withPlaces(settingsFile, () =>
    readCoordinatorConfig(readCoordinatorSettings(settingsFile)),
  );
  const names = { url: "search.url", ca: "search.ca" };
  return search.url === null ? null : openSearch({ ...search, names, url: search.url }, ports);
}

const lookAgainMs = 5000;

interface Opened {
  /** The target's address without credentials. */
  readonly place: string;
  readonly target: ExportTarget;
  close(): Promise<void>;
}

interface Ports {
  readonly onTrouble: (words: string) => void;
  readonly signal: AbortSignal;
}

function targetOf(options: ExportOptions, ports: Ports): Opened {
  const { to, url, ca, out, state } = options;
  const strange = to === "opensearch" ? { out, state } : { url, ca };
  for (const [name, value] of Object.entries(strange))
    if (value !== undefined) throw new UsageError(`--${name} ${value}: not for --to ${to}`);
  if (to === "ndjson") return ndjson(out, state);
  if (url === undefined) throw new UsageError("--to opensearch needs --url https://HOST:9200/INDEX");
  const target = openSearch({ names: { url: "--url", ca: "--ca" }, url, ca: ca ?? null }, ports);
  return { place: target.name, target, close: async () => await target.close() };
}

function ndjson(out: string | undefined, state: string | undefined): Opened {
  if (out === undefined) throw new UsageError("--to ndjson needs --out FILE, or --out - for standard output");
  if (out === "-")
    return {
      place: "standard output",
      target: new NdjsonPipe(writeOut, state ?? null),
      close: async () => {},
    };
  const file = new NdjsonFile(out, state ?? `${out}.state.json`);
  return { place: resolve(out), target: file, close: async () => await file.close() };
}

type Named = Omit<Parameters<typeof openSearchPlace>[0], "authorization">;

function openSearch({ names, url, ca }: Named, ports: Ports): OpenSearchIndex {
  const place = openSearchPlace({ names, url, ca, authorization: openSearchAuthorization() });
  return new OpenSearchIndex({
    ...{ ...place, onTrouble: ports.onTrouble, onRefused: ports.onTrouble },
    // An interrupted export stops waiting for an unavailable target.
    pause: async (ms) => await delay(timerMs(ms), undefined, { signal: ports.signal }),
    random: Math.random,
  });
}

/** Throws when another export to the target is running. */
async function only<T>(
  pool: Pool,
  { schema, place }: { readonly schema: string; readonly place: string },
  work: () => Promise<T>,
): Promise<T> {
  // Two pipes are different targets, so they need no lock.
  if (place === "standard output") return await work();
  const where = place.startsWith("http") ? place : `${hostname()} ${place}`;
  const done = await alone(pool, { schema, place: where }, work);
  if (done === null) throw new UsageError(`another export to ${place} is running`);
  return done;
}

function joined(before: ExportSummary, now: ExportSummary): ExportSummary {
  return {
    ...now,
    indexed: before.indexed + now.indexed,
    deleted: before.deleted + now.deleted,
    alreadyThere: before.alreadyThere + now.alreadyThere,
    rejected: before.rejected + now.rejected,
    full: now.full ?? before.full,
    removed: now.removed ?? before.removed,
  };
}

type Told = ExportSummary & { readonly to: string; readonly seconds: number };

/** The summary goes to standard error when the lines go to standard output. */
function tell({ json = false, out }: ExportOptions, summary: Told): void {
  const stream = out === "-" ? process.stderr : process.stdout;
  stream.write(json ? `${JSON.stringify(summary, null, 2)}\n` : `${summaryText(summary)}\n`);
}

export function summaryText(summary: Told): string {
  const { to, full, indexed, deleted, alreadyThere, rejected, removed, cursor, isCutShort, seconds } =
    summary;
  return [
    `${isCutShort ? "broken off, to be gone on with" : "up to date"}: ${printable(to)}`,
    `${full === null ? "what changed" : "all pages"}: ${howMany(indexed, "document")} written, ${countText(deleted)} deleted in ${secondsText(seconds)}`,
    ...(alreadyThere > 0
      ? [`${howMany(alreadyThere, "document")} there already, in this version or a later one`]
      : []),
    ...(removed !== null && removed > 0
      ? [`${howMany(removed, "document")} removed that the index has no more`]
      : []),
    ...(rejected > 0 ? [`${howMany(rejected, "document")} refused by the target`] : []),
    `cursor: ${cursor}`,
  ].join("\n");
}

export const progressText = ({ phase, done, expected }: ExportProgress, elapsedSeconds: number): string =>
  `${phase}: ${paceText(done, expected, elapsedSeconds)}`;
