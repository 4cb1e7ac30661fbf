/** `nearcrawl rir fetch`: downloads the registries' files into the cache folder. */
import { Command } from "commander";
import { plain } from "#coordinator/ask/document";
import { fetchedTable } from "#coordinator/run/registry/job-ask";
import { cachedNodes, completeWords, sizeWords } from "#coordinator/run/registry/registry-ask";
import { bytesText } from "#core/format";
import { printable } from "#core/terminal-text";
import { softwareVersion } from "#protocol/software-version";
import type { GeofeedCopies, SourceRow } from "#rir-import/download/cache-manifest";
import { type FetchProgress, type FetchResult, fetchSources } from "#rir-import/download/fetch-sources";
import { systemClock } from "#rir-import/download/http-client";
import { exitCodes } from "../exit-codes.ts";
import { printAnswer, secondsText } from "../output.ts";
import {
  type CacheOptions,
  cacheFolderOf,
  settingsOf,
  sourcesFileHelp,
  untilInterrupted,
  withCacheOptions,
} from "./cache-options.ts";
import { WorkProgress } from "./job-steps.ts";
import { textOf } from "./plan-text.ts";

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
  const told = new WorkProgress();
  const shown = new DownloadLine();
  const onProgress = (progress: FetchProgress) => {
    const nowMs = performance.now();
    const { source, state, note, sourcesDone, sourcesTotal } = progress;
    const share = sourcesTotal > 0 ? sourcesDone / sourcesTotal : null;
    const done = state === "done" ? `${source}: ${note}` : null;
    told.tell({ text: shown.text(progress, nowMs), share, done }, nowMs);
  };
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
      onProgress,
    });
    told.end();
    report(options, cacheFolder, results);
  } catch (error) {
    if (!interrupted.signal.aborted) throw error;
    process.stderr.write("interrupted; the next fetch goes on where this one ended\n");
    process.exitCode = exitCodes.interrupted;
  } finally {
    told.end();
    interrupted.release();
  }
}

function report(options: Options, cacheFolder: string, results: readonly FetchResult[]): void {
  printAnswer(options, { cacheFolder, results }, fetchedText(cacheFolder, results));
  if (results.some(({ type }) => type === "failed")) process.exitCode = exitCodes.failed;
}

// Formats the output of `rir sources` and `rir fetch` for people.

export function sourcesText(
  cacheFolder: string,
  sources: readonly SourceRow[],
  geofeeds: GeofeedCopies,
): string {
  const isOwed = sources.some(({ state }) => ["stale", "missing", "changed on disk"].includes(state));
  const { files, bytes, tooOld } = geofeeds;
  return textOf([
    plain(`${completeWords(sources)} ${sizeWords(sources)}Kept in ${cacheFolder}.`),
    ...(files === 0 ? [] : [plain(`${files} geofeeds, ${bytesText(bytes)}, ${tooOld} of them too old.`)]),
    ...cachedNodes(sources),
    ...(isOwed ? [plain("Fetch them with: nearcrawl rir fetch")] : []),
  ]);
}

function fetchedText(cacheFolder: string, results: readonly FetchResult[]): string {
  const failed = results.filter(({ type }) => type === "failed").length;
  const ending =
    failed === 0
      ? `See what they would change: nearcrawl rir plan --cache ${cacheFolder}`
      : `${failed} of ${results.length} sources failed; of those the copy we had stays.`;
  return textOf([fetchedTable(results), plain(ending)]);
}

interface Running {
  readonly sinceMs: number;
  readonly bytesAtStart: number;
  readonly latest: FetchProgress;
}

/** A fetch's progress line: how many downloads are complete, and the position, rate and remaining time of each running one. */
export class DownloadLine {
  readonly #running = new Map<string, Running>();

  /** `nowMs` is monotonic. */
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
