/** `nearcrawl graph export`: the web graph of pages or hosts, to a file, folder or pipe. */

import { type FileHandle, mkdir, open, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { Command, Option } from "commander";
import { fileWriter, parquetWriteRows } from "hyparquet-writer";
import type { Pool } from "pg";
import {
  type ExportedLink,
  type ExportedNode,
  type GraphRows,
  readGraphRows,
  readGraphTables,
} from "#coordinator/crawl/web-graph/graph-reads";
import { csvField } from "#coordinator/web/html";
import { UsageError } from "#core/errors";
import { commandContext } from "../command-context.ts";
import { printJson, writeOut } from "../output.ts";
import { type DatabaseOptions, readDatabase, withDatabaseOptions } from "../read-database.ts";
import { RankProgressLine } from "./rank.ts";

interface ExportOptions extends DatabaseOptions {
  readonly format: GraphFormat | "parquet";
  readonly hosts?: boolean;
  readonly hashes?: boolean;
  readonly nodes?: boolean;
}

const exportHelp = `
Formats:
  edges     one link a line, from<tab>to; between hosts a third column says how many links
  csv       from,to,from_name,to_name,links; with --nodes id,name,page_rank,in_links,out_links
  graphml   nodes with URL and rank, edges; for Gephi, networkx, igraph
  webgraph  WebGraph's ASCIIGraph: FILE.graph-txt, and FILE.nodes with the URL of each node (not to a pipe)
  parquet   a folder with nodes.parquet (host_hash, url_hash, url: null beyond the frontier) and edges.parquet
            (from_host_hash, from_url_hash, to_host_hash, to_url_hash, nofollow); for Spark, DuckDB and the like

What pages link to beyond the frontier is a node too, named urn:nearcrawl: and its hashes. Links of a page to itself
are in the export, though not in the ranking. Rows are passed on as they come; only webgraph holds the nodes' numbers
in memory. Ranks come back by nearcrawl rank --from.

Examples:
  nearcrawl graph export --format edges - | gzip > web.tsv.gz
  nearcrawl graph export --hosts --format graphml hosts.graphml
  nearcrawl graph export --format webgraph web        web.graph-txt and web.nodes
  nearcrawl graph export --format parquet graph       graph/nodes.parquet and graph/edges.parquet
Exit codes: 0 done, 1 failed, 2 wrong usage or a file that cannot be written, 130 interrupted.
`;

export function exportCommand(): Command {
  return withDatabaseOptions(new Command("export").description("the web graph for other programs"))
    .argument("<file>", "where to; - for standard output")
    .addOption(
      new Option("--format <name>", "how it is written")
        .choices([...graphFormats, "parquet"])
        .default("edges"),
    )
    .option("--hosts", "the graph of hosts instead of pages")
    .option("--hashes", "edges: by hash, which needs no look-up of URLs by whoever reads it")
    .option("--nodes", "csv: the nodes instead of the links")
    .addHelpText("after", exportHelp)
    .action(exportGraph);
}

const filesOf: Partial<Record<ExportOptions["format"], (file: string) => string[]>> = {
  webgraph: (file) => [`${file}.graph-txt`, `${file}.nodes`],
  parquet: (folder) => [join(folder, "nodes.parquet"), join(folder, "edges.parquet")],
};

async function exportGraph(file: string, options: ExportOptions): Promise<void> {
  const { format, hosts = false, hashes = false, nodes = false } = options;
  if (hashes && format !== "edges") throw new UsageError(`--hashes is for --format edges, not ${format}`);
  if (nodes && format !== "csv") throw new UsageError(`--nodes is for --format csv, not ${format}`);
  const isPipe = file === "-";
  if (format === "parquet" && (isPipe || hosts))
    throw new UsageError("--format parquet is for the graph of pages, into a folder");
  const names = isPipe ? [] : (filesOf[format]?.(file) ?? [file]);
  const outputs: OutputFile[] = [];
  try {
    if (format === "parquet") await written(file, async () => await mkdir(file, { recursive: true }));
    for (const name of names) outputs.push(await OutputFile.open(name));
    const [main, list] = outputs.map(({ sink }) => sink);
    await readDatabase(commandContext(options), async ({ pool }) => {
      if (format === "parquet") return await writeParquet(file, pool);
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

const hashes = (...names: string[]) =>
  names.map((name) => ({ name, type: "INT64", nullable: false }) as const);

const parquetColumns = {
  nodes: [...hashes("host_hash", "url_hash"), { name: "url", type: "STRING", nullable: true } as const],
  edges: [
    ...hashes("from_host_hash", "from_url_hash", "to_host_hash", "to_url_hash"),
    { name: "nofollow", type: "BOOLEAN", nullable: false } as const,
  ],
};

/** At most one group of rows is in memory. */
async function writeParquet(folder: string, pool: Pool): Promise<void> {
  const line = new RankProgressLine();
  const onTable: Parameters<typeof readGraphTables>[1] = async (table, rows) => {
    const file = join(folder, `${table}.parquet`);
    try {
      const writer = fileWriter(partOf(file));
      await parquetWriteRows({ writer, rows, columns: parquetColumns[table], rowGroupSize: 100_000 });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).syscall === "write")
        await written(file, () => Promise.reject(error));
      throw error;
    }
  };
  await readGraphTables(pool, onTable, (progress) => line.show(progress));
  line.done();
}

/** Writes under a temporary name until the file is complete. */
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
      // A full disk may be reported only at this point.
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

/** The pipe was closed (`… | head`), so the rest of the graph is not needed. */
class NobodyReads extends Error {}

const toStandardOutput: Sink = async (text) => {
  const isRead = await written("standard output", async () => await writeOut(text));
  if (!isRead) throw new NobodyReads();
};

// Writes the web graph as text: edges, CSV, GraphML (graphml.graphdrawing.org) and WebGraph's ASCIIGraph.

const graphFormats = ["edges", "csv", "graphml", "webgraph"] as const;
type GraphFormat = (typeof graphFormats)[number];

/** Resolves when more can be written. */
type Sink = (text: string) => Promise<void>;

interface FormatOptions {
  /** Edges only: writes hashes instead of URLs. */
  readonly hashes: boolean;
  /** CSV only: writes the nodes instead of the links. */
  readonly nodes: boolean;
  /** WebGraph only: receives the list of nodes, one per line. `null` omits the list. */
  readonly nodeList: Sink | null;
}

type WriteGraph = (rows: GraphRows, sink: Sink, options: FormatOptions) => Promise<void>;

const inOrder = ({ id, name, pageRank, inLinks, outLinks }: ExportedNode) => ({
  id,
  name,
  pageRank,
  inLinks,
  outLinks,
});

const isHost = (id: string) => id.length === 16;

const nameOf = (name: string | null, id: string) => name ?? `urn:nearcrawl:${id}`;

const writeGraph: Readonly<Record<GraphFormat, WriteGraph>> = {
  edges: writeEdges,
  csv: writeCsv,
  graphml: writeGraphMl,
  webgraph: writeWebGraph,
};

/** Writes lines `from<tab>to`. Between hosts, the number of links follows. */
async function writeEdges(rows: GraphRows, sink: Sink, { hashes }: FormatOptions): Promise<void> {
  await rows.links(false, async (links) => {
    const lines = links.map((link) => {
      const ends = hashes
        ? [link.from, link.to]
        : [nameOf(link.fromName, link.from), nameOf(link.toName, link.to)];
      return `${[...ends, ...(isHost(link.from) ? [link.links] : [])].join("\t")}\n`;
    });
    await sink(lines.join(""));
  });
}

/** Writes CSV (RFC 4180). */
async function writeCsv(rows: GraphRows, sink: Sink, { nodes }: FormatOptions): Promise<void> {
  if (nodes) {
    await sink("id,name,page_rank,in_links,out_links\r\n");
    await rows.nodes(
      async (some) => await sink(some.map((node) => csvLine(Object.values(inOrder(node)))).join("")),
    );
    return;
  }
  await sink("from,to,from_name,to_name,links\r\n");
  await rows.links(false, async (some) => {
    await sink(
      some
        .map(({ from, to, fromName, toName, links }) => csvLine([from, to, fromName, toName, links]))
        .join(""),
    );
  });
}

async function writeGraphMl(rows: GraphRows, sink: Sink): Promise<void> {
  await sink(
    `<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="name" for="node" attr.name="name" attr.type="string"/>
<key id="rank" for="node" attr.name="page_rank" attr.type="double"/>
<key id="links" for="edge" attr.name="links" attr.type="long"><default>1</default></key>
<graph id="web" edgedefault="directed">
`,
  );
  await rows.nodes(async (some) => await sink(some.map(nodeElement).join("")));
  await rows.links(false, async (some) => await sink(some.map(edgeElement).join("")));
  await sink("</graph>\n</graphml>\n");
}

/**
 * Writes WebGraph's ASCIIGraph: the number of nodes, then a line per node with the ascending numbers of its link targets. Only
 * the numbers are kept in memory.
 */
async function writeWebGraph(rows: GraphRows, sink: Sink, { nodeList }: FormatOptions): Promise<void> {
  const numbers = new Map<string, number>();
  await rows.nodes(async (some) => {
    for (const { id } of some) numbers.set(id, numbers.size);
    await nodeList?.(some.map(({ id, name }) => `${nameOf(name, id)}\n`).join(""));
  });
  await sink(`${numbers.size}\n`);
  let [node, targets] = [0, [] as number[]];
  const lines: string[] = [];
  const endLine = () => {
    lines.push(`${targets.sort((a, b) => a - b).join(" ")}\n`);
    [node, targets] = [node + 1, []];
  };
  const flush = async () => await sink(lines.splice(0).join(""));
  await rows.links(true, async (some) => {
    for (const { from, to } of some) {
      const source = numbers.get(from)!;
      while (node < source) endLine();
      targets.push(numbers.get(to)!);
    }
    await flush();
  });
  while (node < numbers.size) {
    endLine();
    if (lines.length === 10_000) await flush();
  }
  await flush();
}

function csvLine(values: readonly (string | number | null)[]): string {
  return `${values.map(csvField).join(",")}\r\n`;
}

function nodeElement({ id, name, pageRank }: ExportedNode): string {
  const rank = pageRank === null ? "" : `<data key="rank">${pageRank}</data>`;
  return `<node id="n${id}"><data key="name">${escaped(nameOf(name, id))}</data>${rank}</node>\n`;
}

function edgeElement({ from, to, links }: ExportedLink): string {
  const weight = links === 1 ? "/>" : `><data key="links">${links}</data></edge>`;
  return `<edge source="n${from}" target="n${to}"${weight}\n`;
}

/** Removes characters that XML 1.0 cannot hold. */
function escaped(text: string): string {
  return text
    .replace(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, "")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;");
}
