/** `nearcrawl graph`: sizes and degrees of the web graph, and the graph itself for other programs. */
import { Command } from "commander";
import { rankInWorker } from "#coordinator/web-graph/local-rank-store";
import { defaultPageRankSettings } from "#coordinator/web-graph/page-rank";
import { latestSummary } from "#coordinator/web-graph/rank-store";
import { commandContext, exitCodes } from "../command-context.ts";
import { type DatabaseOptions, withDatabaseOptions } from "../database-options.ts";
import { exportCommand } from "../graph/export-command.ts";
import { RankProgressLine } from "../graph/rank-progress-line.ts";
import { graphText } from "../graph/summary-text.ts";
import { printAnswer } from "../output.ts";
import { readDatabase } from "../read-database.ts";

interface GraphOptions extends DatabaseOptions {
  readonly latest?: boolean;
}

const help = `
Counts anew, which takes some ten seconds for ten million links; --latest shows what nearcrawl rank --write kept.

Examples:
  nearcrawl graph                                    nodes, links, degrees, change ratio, hosts
  nearcrawl graph export --format graphml web.graphml
  nearcrawl graph export --hosts --format csv - | head
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 --latest and nothing was kept yet, 130 interrupted.
`;

export function graphCommand(): Command {
  return (
    withDatabaseOptions(
      new Command("graph").description("the web graph: sizes, degrees and hosts; its export"),
    )
      // What stands after export is export's.
      .enablePositionalOptions()
      .option("--latest", "as last kept, without counting")
      .addHelpText("after", help)
      .action(showGraph)
      .addCommand(exportCommand())
  );
}

async function showGraph(options: GraphOptions): Promise<void> {
  const line = new RankProgressLine();
  const answer = await readDatabase(commandContext(options), async (database) => {
    if (options.latest) return await latestSummary(database.pool);
    const asked = { settings: defaultPageRankSettings, write: false, at: new Date() };
    const { summary } = await rankInWorker(database, asked, { onProgress: (one) => line.show(one) });
    return { madeAt: null, summary };
  });
  line.done();
  if (answer === null) return nothingKept(options);
  printAnswer(options, answer, graphText(answer.summary, answer.madeAt));
}

function nothingKept(options: GraphOptions): void {
  printAnswer(options, null, "Nobody has ranked the graph yet: nearcrawl rank --write does.");
  process.exitCode = exitCodes.notFound;
}
