/** `nearcrawl rank`: computes PageRank of URLs and of hosts, or stores ranks that another engine computed. */
import { Command } from "commander";
import { storeGivenRanks } from "#coordinator/crawl/web-graph/given-rank-store";
import { type RankProgress, rankInWorker } from "#coordinator/crawl/web-graph/local-rank-store";
import { defaultPageRankSettings, type PageRankSettings } from "#coordinator/crawl/web-graph/page-rank";
import { UsageError } from "#core/errors";
import { answerText } from "../answer-text.ts";
import { recordCommand } from "../audit-command-change.ts";
import { commandContext } from "../command-context.ts";
import { boundedInteger, boundedNumber } from "../options.ts";
import { countText, ProgressLine, paceText, printAnswer, secondsText } from "../output.ts";
import { type DatabaseOptions, readDatabase, withDatabaseOptions } from "../read-database.ts";

interface RankCommandOptions extends DatabaseOptions, PageRankSettings {
  readonly from?: readonly string[];
  readonly write?: boolean;
}

const help = `
Nodes are the URLs of the frontier and what pages link to beyond it. A link counts once however often a page repeats
it, links of a page to itself do not count, and a page without links gives its rank to all alike.

The graph is read by COPY into typed arrays of a thread of its own: about 60 bytes a URL and 20 a link.

Beyond memory (20 million links: the coordinator no longer ranks daily): export the graph as Parquet, let DuckDB, Spark or
another engine rank it, and store what it finds. --from reads Parquet (uncompressed or Snappy) or CSV with the columns
host_hash, url_hash, page_rank, and replaces all ranks at once; a row that is no rank is named, and nothing is changed.
How to, with both engines: ops/runbook/scaling.md.

Examples:
  nearcrawl rank                      the ranks' top, degrees and hosts; nothing is changed
  nearcrawl rank --write              the same, and the order "pagerank" and /graph have it from now on
  nearcrawl graph export --format parquet graph
  nearcrawl rank --from ranks/*.parquet

--write puts ranks into url_rank, where the order "pagerank" finds them, keeps the summary of /graph, and sets right
back-links that had been counted wrongly.
Exit codes: 0 done, 1 failed, 2 wrong usage or a file that is refused, 130 interrupted. It is no failure when the iterations end before the
tolerance: the answer says so.
`;

export function rankCommand(): Command {
  const { damping, tolerance, iterations } = defaultPageRankSettings;
  return withDatabaseOptions(
    new Command("rank").description(
      "PageRank of all URLs, degrees and the graph of hosts; ranks made elsewhere",
    ),
  )
    .option("--from <file...>", "store ranks that another engine computed")
    .option(
      "--damping <share>",
      "how likely a link is followed, 0 to 0.999",
      boundedNumber(0, 0.999),
      damping,
    )
    .option(
      "--tolerance <share>",
      "iterations end when one changes less than this in all",
      boundedNumber(1e-15, 1),
      tolerance,
    )
    .option("--iterations <n>", "upper limit", boundedInteger(1, 10_000), iterations)
    .option("--write", "keep the ranks for the frontier's order and the pages")
    .addHelpText("after", help)
    .action(runRank);
}

/** The columns of the tables that show the graph's totals. */
const columns = {
  bins: "least most nodes",
  topPages: "url pageRank inLinks outLinks",
  mostLinked: "url pageRank inLinks outLinks",
  topHosts: "host rank pages linkingHosts inLinks outLinks",
};

async function runRank(options: RankCommandOptions, command: Command): Promise<void> {
  const { damping, tolerance, iterations, write = false, from } = options;
  const settings = { damping, tolerance, iterations };
  const beside = ["write", ...Object.keys(settings)].find(
    (name) => command.getOptionValueSource(name) === "cli",
  );
  if (from !== undefined && beside !== undefined)
    throw new UsageError(`--${beside} is for ranking here: --from stores ranks as they are`);
  const line = new RankProgressLine();
  const onProgress = (one: RankProgress) => line.show(one);
  const at = new Date();
  const answer = await readDatabase(commandContext(options), async (database) => {
    const found =
      from === undefined
        ? await rankInWorker(database, { settings, write, at }, { onProgress })
        : await storeGivenRanks(database.pool, {
            ...{ files: from, at },
            onProgress: (done) => onProgress({ step: "ranks", done, expected: 0 }),
          });
    if (write || from !== undefined)
      await recordCommand(database.pool, {
        ...{ action: "pages-ranked", target: null },
        words: from === undefined ? "pages were ranked" : "pages were ranked by another engine",
        after: from === undefined ? settings : found,
      });
    return from === undefined ? { ...found, written: write } : found;
  });
  line.done();
  printAnswer(options, answer, answerText(answer, columns));
}

/** A ranking's progress as one line: step, count, rate, remaining time. */
export class RankProgressLine {
  readonly #line = new ProgressLine();
  #step = "";
  #sinceMs = 0;

  show(progress: RankProgress): void {
    const nowMs = performance.now();
    if (progress.step !== this.#step) [this.#step, this.#sinceMs] = [progress.step, nowMs];
    this.#line.show(rankProgressText(progress, (nowMs - this.#sinceMs) / 1000));
  }

  done(): void {
    this.#line.done();
  }
}

/** `elapsedSeconds` is counted from the start of the step. */
export function rankProgressText(progress: RankProgress, elapsedSeconds: number): string {
  const { step, done } = progress;
  if (step === "writing") return `writing the ranks of ${countText(done)} URLs`;
  if (step !== "sweeps") return `reading ${step}: ${paceText(done, progress.expected, elapsedSeconds)}`;
  const each = secondsText(elapsedSeconds / Math.max(1, done));
  return `iteration ${done} · changed ${progress.residual.toExponential(1)} · ${each} each`;
}
