/** `nearcrawl rir fetch`: brings the registries' files into the cache folder. */
import { Command } from "commander";
import { softwareVersion } from "#protocol/software-version";
import { systemClock } from "#rir-import/download/clock";
import { type FetchProgress, type FetchResult, fetchSources } from "#rir-import/download/fetch-sources";
import { type GeofeedCopies, quarterDays, type SourceRow } from "#rir-import/download/source-status";
import { exitCodes } from "../exit-codes.ts";
import { type Column, formatTable, ProgressLine, printable, printJson } from "../output.ts";
import {
  type CacheOptions,
  cacheFolderOf,
  settingsOf,
  sourcesFileHelp,
  untilInterrupted,
  withCacheOptions,
} from "./cache-options.ts";
import { endWithCoordinator, isJob, JobSteps } from "./job-steps.ts";
import { secondsText } from "./progress-text.ts";

type Options = CacheOptions & { readonly acceptSmaller?: boolean };

const help = `
Only what changed is downloaded; what broke off is gone on with. A file that is not what its source publishes,
much smaller than the last one, or against its published checksum is refused: the one we have stays.

Fetched besides: the clouds' lists of ranges by region, and at the end the geofeeds that registry objects name (RFC 9632),
a few at a time and one at a time per host, 16 MB each at most. They come from strangers' servers, so none is fetched from a
private or other special-purpose address, whatever a redirect says. That some geofeeds fail is reported and no failure;
what they said before is imported for a quarter.
${sourcesFileHelp}

Exit codes: 0 all is fetched or unchanged, 1 a source failed (the others are done), 2 wrong usage or settings,
130 interrupted.

Examples:
  nearcrawl rir fetch --contact noc@example.org
  nearcrawl rir fetch ripencc-inetnum ripencc-organisation
  nearcrawl rir fetch apnic-inetnum --accept-smaller
  nearcrawl rir fetch aws-ranges google-ranges geofeeds`;

export function fetchCommand(): Command {
  return withCacheOptions(new Command("fetch"))
    .description("download the registries' files, and what networks publish, into the cache folder")
    .argument("[source...]", "names that `rir sources` lists, or `geofeeds` (default: all that are set up)")
    .option("--accept-smaller", "accept files that are much smaller than before")
    .option("--contact <address>", "told to the registries in the User-Agent: an e-mail address or a URL")
    .addHelpText("after", help)
    .action(fetch);
}

async function fetch(names: string[], options: Options): Promise<void> {
  const settings = await settingsOf(options);
  if (settings.contact === null) {
    process.stderr.write(
      "no contact is set: give the registries one with --contact (an e-mail address or a URL)\n",
    );
  }
  const cacheFolder = cacheFolderOf(options);
  const interrupted = untilInterrupted();
  endWithCoordinator();
  const line = new ProgressLine();
  try {
    const results = await fetchSources({
      settings,
      names,
      cacheFolder,
      acceptSmaller: options.acceptSmaller ?? false,
      version: softwareVersion,
      clock: systemClock,
      random: Math.random,
      signal: interrupted.signal,
      onProgress: isJob() ? tellSteps() : showLine(line),
    });
    line.done();
    report(options, cacheFolder, results);
  } catch (error) {
    if (!interrupted.signal.aborted) throw error;
    process.stderr.write("interrupted; the next fetch goes on where this one ended\n");
    process.exitCode = exitCodes.interrupted;
  } finally {
    line.done();
    interrupted.release();
  }
}

function showLine(line: ProgressLine): (progress: FetchProgress) => void {
  const shown = new DownloadLine();
  return (progress) => line.show(shown.text(progress, performance.now()));
}

function tellSteps(): (progress: FetchProgress) => void {
  const shown = new DownloadLine();
  const steps = new JobSteps();
  return (progress) => {
    const nowMs = performance.now();
    const { source, state, note, sourcesDone, sourcesTotal } = progress;
    const text = shown.text(progress, nowMs).slice(0, 400);
    const done = state === "done" ? `${source}: ${note}`.slice(0, 400) : null;
    steps.tell({ text, share: sourcesTotal > 0 ? sourcesDone / sourcesTotal : null, done }, nowMs);
  };
}

function report(options: Options, cacheFolder: string, results: readonly FetchResult[]): void {
  if (options.json) printJson({ cacheFolder, results });
  else process.stdout.write(`${fetchedText(cacheFolder, results)}\n`);
  if (results.some(({ type }) => type === "failed")) process.exitCode = exitCodes.failed;
}

// What `rir sources` and `rir fetch` print for people.

const left = (title: string): Column => ({ title });
const right = (title: string): Column => ({ title, align: "right" });

export function sourcesText(
  cacheFolder: string,
  rows: readonly SourceRow[],
  geofeeds: GeofeedCopies,
): string {
  const table = formatTable(
    [
      left("source"),
      left("kind"),
      left("our copy"),
      right("size"),
      left("data of"),
      right("days old"),
      right("checked, days ago"),
      left("published at"),
    ],
    rows.map((row) => [
      row.name,
      row.kind,
      row.state,
      row.bytes === null ? "" : bytesText(row.bytes),
      row.dataDate?.slice(0, 10) ?? "",
      row.dataAgeDays === null ? "" : String(row.dataAgeDays),
      row.checkedDaysAgo === null ? "" : String(row.checkedDaysAgo),
      row.url ?? "(on request)",
    ]),
  );
  const notPublic = rows.filter(
    ({ access, state }) => access.type === "on-request" && state === "not set up",
  );
  const lines = notPublic.map(
    (row) => `${row.name}: ${row.access.type === "on-request" ? row.access.how : ""}`,
  );
  const bytes = rows.reduce((sum, row) => sum + (row.bytes ?? 0), 0);
  return [
    `kept in ${cacheFolder}: ${bytesText(bytes)}`,
    table,
    ...geofeedsText(geofeeds),
    ...lines,
    ...whatToDo(rows),
  ].join("\n\n");
}

function geofeedsText({ files, bytes, tooOld }: GeofeedCopies): readonly string[] {
  if (files === 0) return [];
  const old = tooOld === 0 ? "" : `; ${tooOld} of them not confirmed for a quarter, and imported no more`;
  return [`geofeeds that registry objects name: ${files} files, ${bytesText(bytes)}${old}`];
}

function whatToDo(rows: readonly SourceRow[]): readonly string[] {
  const named = (state: SourceRow["state"]) =>
    rows.filter((row) => row.state === state).map(({ name }) => name);
  const [stale, old, missing, changed, unlisted] = [
    named("stale"),
    named("old at its source"),
    named("missing"),
    named("changed on disk"),
    named("not in the list"),
  ];
  return [
    ...(stale.length > 0 ? [`older than a quarter (${quarterDays} days): ${stale.join(", ")}`] : []),
    ...(old.length > 0 ? [`nothing newer published for a quarter: ${old.join(", ")}`] : []),
    ...(missing.length > 0 ? [`never fetched: ${missing.join(", ")}`] : []),
    ...(changed.length > 0 ? [`not what was fetched: ${changed.join(", ")}`] : []),
    ...(unlisted.length > 0
      ? [`in the cache, and imported, but not in the list of sources: ${unlisted.join(", ")}`]
      : []),
    ...(stale.length + missing.length + changed.length > 0 ? ["fetch them with: nearcrawl rir fetch"] : []),
  ];
}

function fetchedText(cacheFolder: string, results: readonly FetchResult[]): string {
  const table = formatTable(
    [left("source"), left("outcome"), right("size"), left("remark")],
    results.map((result) =>
      result.type === "failed"
        ? [result.source, "failed", "", printable(result.reason)]
        : [result.source, result.type, bytesText(result.bytes), result.note],
    ),
  );
  const failed = results.filter(({ type }) => type === "failed").length;
  const ending =
    failed === 0
      ? `see what they would change: nearcrawl rir plan --cache ${cacheFolder}`
      : `${failed} of ${results.length} sources failed; of those the copy we had stays`;
  return [table, ending].join("\n\n");
}

/** `12.3 MB`: thousand-based, as download sizes are stated. */
export function bytesText(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  const units = ["kB", "MB", "GB", "TB"];
  let value = bytes / 1000;
  let unit = 0;
  for (; value >= 999.95 && unit < units.length - 1; unit++) value /= 1000;
  return `${value.toFixed(1)} ${units[unit]}`;
}

interface Running {
  readonly sinceMs: number;
  readonly bytesAtStart: number;
  readonly latest: FetchProgress;
}

/** The progress line of a fetch: how many are done, and for each that runs how far, how fast, how long still. */
export class DownloadLine {
  readonly #running = new Map<string, Running>();

  /** `nowMs` of any clock that does not jump. */
  text(progress: FetchProgress, nowMs: number): string {
    if (progress.state === "done") this.#running.delete(progress.source);
    else this.#running.set(progress.source, this.#follow(progress, nowMs));
    const running = [...this.#running.values()].map((one) => runningText(one, nowMs));
    return [`${progress.sourcesDone} of ${progress.sourcesTotal}`, ...running].join(" · ");
  }

  #follow(progress: FetchProgress, nowMs: number): Running {
    const known = this.#running.get(progress.source);
    const goesOn = known !== undefined && progress.bytesDone >= known.latest.bytesDone;
    if (goesOn && known.latest.state === progress.state) return { ...known, latest: progress };
    return { sinceMs: nowMs, bytesAtStart: progress.bytesDone, latest: progress };
  }
}

function runningText({ sinceMs, bytesAtStart, latest }: Running, nowMs: number): string {
  const { source, state, bytesDone, bytesTotal, note } = latest;
  if (state === "waiting") return `${source}: ${printable(note, 80)}`;
  const of = bytesTotal === null ? "" : ` of ${bytesText(bytesTotal)}`;
  const seconds = (nowMs - sinceMs) / 1000;
  const rate = seconds > 0.5 ? (bytesDone - bytesAtStart) / seconds : 0;
  if (rate <= 0) return `${source} ${bytesText(bytesDone)}${of}`;
  const ending = bytesTotal === null ? "" : `, ${secondsText((bytesTotal - bytesDone) / rate)} left`;
  return `${source} ${bytesText(bytesDone)}${of}, ${bytesText(Math.round(rate))}/s${ending}`;
}
