/** `nearcrawl graph export`: the web graph, or that of its hosts, into a file or a pipe. */
import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { Command, Option } from "commander";
import { readGraphRows } from "#coordinator/web-graph/graph-reads";
import { UsageError } from "#core/errors";
import { commandContext } from "../command-context.ts";
import { type DatabaseOptions, withDatabaseOptions } from "../database-options.ts";
import { printJson } from "../output.ts";
import { readDatabase } from "../read-database.ts";
import { writeOut } from "../rir/write-out.ts";
import { type GraphFormat, graphFormats, type Sink, writeGraph } from "./graph-formats.ts";

interface ExportOptions extends DatabaseOptions {
  readonly format: GraphFormat;
  readonly hosts?: boolean;
  readonly hashes?: boolean;
  readonly nodes?: boolean;
}

const help = `
Formats:
  edges     one link a line, from<tab>to; between hosts a third column says how many links
  csv       from,to,from_name,to_name,links; with --nodes id,name,page_rank,in_links,out_links
  graphml   nodes with URL and rank, edges; for Gephi, networkx, igraph
  webgraph  WebGraph's ASCIIGraph: FILE.graph-txt, and FILE.nodes with the URL of each node (not to a pipe)

What pages link to beyond the frontier is a node too, named urn:nearcrawl: and its hashes. Links of a page to itself
are in the export, though not in the ranking. Rows are passed on as they come; only webgraph holds the nodes' numbers
in memory. For Parquet, let a tool read the CSV: duckdb -c "copy 'web.csv' to 'web.parquet'".

Examples:
  nearcrawl graph export --format edges - | gzip > web.tsv.gz
  nearcrawl graph export --hosts --format graphml hosts.graphml
  nearcrawl graph export --format webgraph web        web.graph-txt and web.nodes
Exit codes: 0 done, 1 failed, 2 wrong usage or a file that cannot be written, 130 interrupted.
`;

export function exportCommand(): Command {
  return withDatabaseOptions(new Command("export").description("the web graph for other programs"))
    .argument("<file>", "where to; - for standard output")
    .addOption(new Option("--format <name>", "how it is written").choices(graphFormats).default("edges"))
    .option("--hosts", "the graph of hosts instead of pages")
    .option("--hashes", "edges: by hash, which needs no look-up of URLs by whoever reads it")
    .option("--nodes", "csv: the nodes instead of the links")
    .addHelpText("after", help)
    .action(exportGraph);
}

async function exportGraph(file: string, options: ExportOptions): Promise<void> {
  const { format, hosts = false, hashes = false, nodes = false } = options;
  if (hashes && format !== "edges") throw new UsageError(`--hashes is for --format edges, not ${format}`);
  if (nodes && format !== "csv") throw new UsageError(`--nodes is for --format csv, not ${format}`);
  const isPipe = file === "-";
  const names = isPipe ? [] : format === "webgraph" ? [`${file}.graph-txt`, `${file}.nodes`] : [file];
  const outputs: OutputFile[] = [];
  try {
    for (const name of names) outputs.push(await OutputFile.open(name));
    const [main, list] = outputs.map(({ sink }) => sink);
    await readDatabase(commandContext(options), async ({ pool }) => {
      await readGraphRows(pool, hosts ? "hosts" : "pages", async (rows) => {
        await writeGraph[format](rows, main ?? toStandardOutput, { hashes, nodes, nodeList: list ?? null });
      });
    });
    for (const output of outputs) await output.keep();
  } catch (error) {
    for (const output of outputs) await output.forget();
    if (error instanceof NobodyReads) return;
    throw error;
  }
  if (options.json && !isPipe) printJson({ written: names });
}

/** Under a name of its own until it is whole. */
class OutputFile {
  readonly file: string;
  readonly #handle: FileHandle;

  private constructor(file: string, handle: FileHandle) {
    this.file = file;
    this.#handle = handle;
  }

  static async open(file: string): Promise<OutputFile> {
    return new OutputFile(file, await written(file, async () => await open(partOf(file), "w")));
  }

  readonly sink: Sink = async (text) => {
    await written(this.file, async () => await this.#handle.writeFile(text));
  };

  async keep(): Promise<void> {
    await written(this.file, async () => {
      // A full disk may be told of here first.
      await this.#handle.sync();
      await this.#handle.close();
      await rename(partOf(this.file), this.file);
    });
  }

  async forget(): Promise<void> {
    await this.#handle.close().catch(() => {});
    await rm(partOf(this.file), { force: true });
  }
}

const partOf = (file: string) => `${file}.part`;

async function written<T>(file: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw new UsageError(`${file} cannot be written: ${(error as Error).message}`, { cause: error });
  }
}

/** The pipe was closed (`… | head`): what is left of the graph need not be read. */
class NobodyReads extends Error {}

const toStandardOutput: Sink = async (text) => {
  const isRead = await written("standard output", async () => await writeOut(text));
  if (!isRead) throw new NobodyReads();
};
