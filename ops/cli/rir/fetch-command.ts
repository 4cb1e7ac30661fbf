/** `nearcrawl rir fetch`: brings the registries' files into the cache folder. */
import { Command } from "commander";
import { systemClock } from "#rir-import/download/clock";
import { type FetchProgress, type FetchResult, fetchSources } from "#rir-import/download/fetch-sources";
import { exitCodes } from "../command-context.ts";
import { ProgressLine, printJson } from "../output.ts";
import { softwareVersion } from "../software-version.ts";
import {
  type CacheOptions,
  cacheFolderOf,
  settingsOf,
  sourcesFileHelp,
  untilInterrupted,
  withCacheOptions,
} from "./cache-options.ts";
import { DownloadLine, fetchedText } from "./download-text.ts";
import { endWithCoordinator, isJob, JobSteps } from "./job-steps.ts";

type Options = CacheOptions & { readonly acceptSmaller?: boolean };

const help = `
Only what changed is downloaded; what broke off is gone on with. A file that is not what its source publishes,
much smaller than the last one, or against its published checksum is refused: the one we have stays.
${sourcesFileHelp}

Exit codes: 0 all is fetched or unchanged, 1 a source failed (the others are done), 2 wrong usage or settings,
130 interrupted.

Examples:
  nearcrawl rir fetch --contact noc@example.org
  nearcrawl rir fetch ripencc-inetnum ripencc-organisation
  nearcrawl rir fetch apnic-inetnum --accept-smaller`;

export function fetchCommand(): Command {
  return withCacheOptions(new Command("fetch"))
    .description("download the registries' files into the cache folder")
    .argument("[source...]", "names that `rir sources` lists (default: all that are set up)")
    .option("--accept-smaller", "take a file also when it is much smaller than the last one")
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
      version: softwareVersion(),
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
