/** `nearcrawl rank`: computes PageRank of URLs and of hosts, on this machine or inside the database. */
import { Command, Option } from "commander";
import { type RankProgress, rankInWorker } from "#coordinator/crawl/web-graph/local-rank-store";
import { defaultPageRankSettings, type PageRankSettings } from "#coordinator/crawl/web-graph/page-rank";
import { rankInDatabase } from "#coordinator/crawl/web-graph/sql-rank-store";
import { answerText } from "../answer-text.ts";
import { recordCommand } from "../audit-command-change.ts";
import { commandContext } from "../command-context.ts";
import { boundedInteger, boundedNumber } from "../options.ts";
import { countText, ProgressLine, paceText, printAnswer, secondsText } from "../output.ts";
import { type DatabaseOptions, readDatabase, withDatabaseOptions } from "../read-database.ts";

interface RankCommandOptions extends DatabaseOptions, PageRankSettings {
  readonly engine: "local" | "sql";
  readonly write?: boolean;
}

const help = `
Nodes are the URLs of the frontier and what pages link to beyond it. A link counts once however often a page repeats
it, links of a page to itself do not count, and a page without links gives its rank to all alike.

Engines:
  local   reads the graph by COPY into typed arrays of a thread of its own: about 60 bytes a URL and 20 a link
  sql     plain statements on tables partitioned by host, for graphs that fit no machine's memory; makes work
          tables sql_rank_* in the schema and drops them at the end

Examples:
  nearcrawl rank                      the ranks' top, degrees and hosts; nothing is changed
  nearcrawl rank --write              the same, and the order "pagerank" and /graph have it from now on
  nearcrawl rank --engine sql --iterations 20 --write

--write puts ranks into url_rank, where the order "pagerank" finds them; engine local also keeps the summary of /graph and
sets right back-links that had been counted wrongly.
Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted. It is no failure when the iterations end before the
tolerance: the answer says so.
`;

export function rankCommand(): Command {
  const { damping, tolerance, iterations } = defaultPageRankSettings;
  return withDatabaseOptions(
    new Command("rank").description(
      "PageRank of all URLs, degrees and the graph of hosts, here or in the database",
    ),
  )
    .addOption(new Option("--engine <name>", "where to rank").choices(["local", "sql"]).default("local"))
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

async function runRank(options: RankCommandOptions): Promise<void> {
  const { engine, damping, tolerance, iterations, write = false } = options;
  const settings = { damping, tolerance, iterations };
  const line = new RankProgressLine();
  const answer = await readDatabase(commandContext(options), async (database) => {
    const rank = engine === "local" ? rankInWorker : rankInDatabase;
    const found = await rank(
      database,
      { settings, write, at: new Date() },
      { onProgress: (one) => line.show(one) },
    );
    if (write)
      await recordCommand(database.pool, {
        action: "pages-ranked",
        target: null,
        words: `pages were ranked (engine ${engine})`,
        after: settings,
      });
    return { ...found, written: write };
  });
  line.done();
  printAnswer(options, answer, answerText(answer, columns));
}

/** A ranking's progress as one line: step, count, rate, remaining time. */
class RankProgressLine {
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
