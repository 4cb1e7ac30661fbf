/** `nearcrawl rank` and `nearcrawl graph`: answers, files that other programs read, wrong usage. */
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { XMLParser, XMLValidator } from "fast-xml-parser";
import { asyncBufferFromFile, parquetReadObjects } from "hyparquet";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { urlKeyOf } from "#core/url-key";
import type { Database } from "#db/server-database";
import { rankCommand, rankProgressText } from "#ops/cli/commands/rank";
import { commandNamed, inProcess, said } from "../../support/command-in-process.ts";
import { testDatabase } from "../../support/database.ts";
import { addLinks } from "../../support/links.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const [home, about, other, beyond] = [
  "http://a.example/?q=1&r=<2>",
  'http://a.example/about,"us"',
  "http://b.example/",
  "http://c.example/unknown",
].map((url) => {
  const key = urlKeyOf(url);
  if (typeof key === "string") throw new Error(key);
  return key;
}) as [Key, Key, Key, Key];
type Key = Exclude<ReturnType<typeof urlKeyOf>, string>;

const known = [home, about, other];
const links: readonly (readonly [Key, Key])[] = [
  [home, about],
  [home, other],
  [home, home],
  [about, home],
  [about, other],
  [other, beyond],
];

let database: Database;
let folder: string;
beforeAll(async () => {
  folder = temporaryFolder("nearcrawl-graph-");
  database = await testDatabase();
  await database.pool.query(
    "insert into frontier_host (host_hash, host) select distinct * from unnest($1::bigint[], $2::text[])",
    [known.map(({ hostHash }) => hostHash), known.map(({ host }) => host)],
  );
  await database.pool.query(
    "insert into frontier_url (host_hash, url_hash, url) select * from unnest($1::bigint[], $2::bigint[], $3::text[])",
    [known.map(({ hostHash }) => hostHash), known.map(({ urlHash }) => urlHash), known.map(({ url }) => url)],
  );
  await addLinks(
    database.pool,
    links.map(([from, to]) => ({ from, to, nofollow: to === beyond })),
  );
});
afterAll(async () => {
  await database.close();
  rmSync(folder, { recursive: true, force: true });
});

const commands = { graph: () => commandNamed("graph"), rank: rankCommand };
const placed = (args: readonly string[]) => [
  ...args,
  ...["--database-url", database.url, "--schema", database.schema, "--home", folder],
];
const run = (which: keyof typeof commands, ...args: readonly string[]) =>
  said(commands[which](), placed(args));
const outcome = (which: keyof typeof commands, ...args: readonly string[]) =>
  inProcess(commands[which](), placed(args));

const hash = ({ hostHash, urlHash }: Key) =>
  [hostHash, urlHash].map((one) => BigInt.asUintN(64, BigInt(one)).toString(16).padStart(16, "0")).join("");
const nameOf = (key: Key) => (key === beyond ? `urn:nearcrawl:${hash(key)}` : key.url);
const rowsOf = async (file: string) => await parquetReadObjects({ file: await asyncBufferFromFile(file) });
const sorted = (lines: readonly string[]) => [...lines].sort();

describe("nearcrawl graph export", () => {
  it("writes every link once as an edge, by URL or by hash", async () => {
    const byUrl = await run("graph", "export", "-");
    const byHash = await run("graph", "export", "-", "--hashes");

    expect(sorted(byUrl.trim().split("\n"))).toEqual(
      sorted(links.map((link) => link.map(nameOf).join("\t"))),
    );
    expect(sorted(byHash.trim().split("\n"))).toEqual(sorted(links.map((link) => link.map(hash).join("\t"))));
  });

  it("counts the links between hosts", async () => {
    const lines = (await run("graph", "export", "-", "--hosts")).trim().split("\n");

    const unknown = `urn:nearcrawl:${hash(beyond).slice(0, 16)}`;
    expect(sorted(lines)).toEqual(["a.example\tb.example\t2", `b.example\t${unknown}\t1`]);
  });

  it("writes well-formed GraphML whatever the URLs hold", async () => {
    const file = join(folder, "web.graphml");

    await run("graph", "export", file, "--format", "graphml");

    const text = readFileSync(file, "utf8");
    expect(XMLValidator.validate(text)).toBe(true);
    const parser = new XMLParser({ ignoreAttributes: false, isArray: (name) => name === "data" });
    const { node, edge } = parser.parse(text).graphml.graph;
    const names = new Map<string, string>(
      node.map((one: { "@_id": string; data: [{ "#text": string }] }) => [one["@_id"], one.data[0]["#text"]]),
    );
    expect(sorted([...names.values()])).toEqual(sorted([...known, beyond].map(nameOf)));
    const ends = edge.map((one: Record<string, string>) =>
      [one["@_source"], one["@_target"]].map((id) => names.get(id!)).join(),
    );
    expect(sorted(ends)).toEqual(sorted(links.map((link) => link.map(nameOf).join())));
  });

  it("writes WebGraph's ASCII format with a list of nodes beside it", async () => {
    await run("graph", "export", join(folder, "web"), "--format", "webgraph");

    const nodes = readFileSync(join(folder, "web.nodes"), "utf8").trim().split("\n");
    const [count, ...lines] = readFileSync(join(folder, "web.graph-txt"), "utf8").trimEnd().split("\n");
    const padded = [...lines, ...Array.from({ length: nodes.length - lines.length }, () => "")];
    const read = padded.flatMap((line, node) => {
      const targets = line.split(" ").filter(Boolean).map(Number);
      expect(targets).toEqual([...targets].sort((a, b) => a - b));
      return targets.map((target) => `${nodes[node]} ${nodes[target]}`);
    });
    expect(Number(count)).toBe(4);
    expect(nodes).toHaveLength(4);
    expect(sorted(read)).toEqual(sorted(links.map((link) => link.map(nameOf).join(" "))));
  });

  it("writes CSV of links and of nodes, with quotes where they are needed", async () => {
    const nodes = await run("graph", "export", "-", "--format", "csv", "--nodes");
    const edges = await run("graph", "export", "-", "--format", "csv");

    expect(nodes).toContain("id,name,page_rank,in_links,out_links\r\n");
    expect(nodes).toContain(`${hash(home)},${home.url},`);
    expect(nodes).toContain(`${hash(beyond)},,,1,\r\n`);
    expect(nodes.trim().split("\r\n")).toHaveLength(5);
    expect(edges.trim().split("\r\n")).toHaveLength(1 + links.length);
    expect(edges).toContain(`${hash(other)},${hash(beyond)},${other.url},,1\r\n`);
  });

  it("writes nodes and edges as Parquet files, with the hashes as 64-bit integers", async () => {
    const web = join(folder, "web");

    const answer = JSON.parse(await run("graph", "export", web, "--format", "parquet", "--json"));

    const [nodes, edges] = await Promise.all((answer.written as string[]).map(rowsOf));
    const bits = ({ hostHash, urlHash }: Key) => [BigInt(hostHash), BigInt(urlHash)];
    expect(readdirSync(web)).toEqual(["edges.parquet", "nodes.parquet"]);
    expect(new Set(nodes!.map((node) => Object.values(node)))).toEqual(
      new Set([...known.map((key) => [...bits(key), key.url]), [...bits(beyond), null]]),
    );
    expect(new Set(edges!.map((edge) => Object.values(edge)))).toEqual(
      new Set(links.map(([from, to]) => [...bits(from), ...bits(to), to === beyond])),
    );
  });

  it("refuses a file that cannot be written, and options of other formats, and leaves nothing behind", async () => {
    const nowhere = join(folder, "missing", "web.tsv");

    const refused = [
      await outcome("graph", "export", nowhere),
      await outcome("graph", "export", "-", "--format", "csv", "--hashes"),
      await outcome("graph", "export", "-", "--nodes"),
      await outcome("graph", "export", "-", "--format", "matrix"),
      await outcome("graph", "export", "-", "--format", "parquet"),
      await outcome("graph", "export", "/dev/null/graph", "--format", "parquet"),
    ];

    expect(refused.map(({ code, out }) => [code, out])).toEqual(Array(6).fill([2, ""]));
    expect(refused.map(({ err }) => err)).toEqual([
      expect.stringContaining(`${nowhere} cannot be written`),
      expect.stringContaining("--hashes is for"),
      expect.stringContaining("--nodes is for --format csv"),
      expect.stringContaining("Allowed choices are"),
      expect.stringContaining("--format parquet is for the graph of pages, into a folder"),
      expect.stringContaining("/dev/null/graph cannot be written: ENOTDIR"),
    ]);
    expect(existsSync(`${nowhere}.part`)).toBe(false);
  });
});

describe("nearcrawl graph export, when output ends early", () => {
  const fault = (code: string, message: string) => Object.assign(new Error(message), { code });

  /** The output up to each time a write ended like this; inProcess cannot split it. */
  async function exported(outputFault: NodeJS.ErrnoException, ...args: string[]) {
    const written: string[] = [];
    const spy = vi.spyOn(process.stdout, "write").mockImplementation((text: unknown, ...rest: unknown[]) => {
      const done = rest.find((one) => typeof one === "function");
      done?.(outputFault);
      return written.push(String(text)) > 0;
    });
    try {
      await (await commandNamed("graph")).parseAsync(placed(["export", "-", ...args]), { from: "user" });
    } finally {
      spy.mockRestore();
    }
    return written.join("");
  }

  it("ends silently when its reader is gone", async () => {
    const read = await exported(fault("EPIPE", "write EPIPE"), "--format", "graphml");

    expect(read).toContain("<graphml");
    expect(read).not.toContain("</graphml>");
    expect(process.exitCode).toBeUndefined();
  });

  it("names the full output, and leaves no partial file", async () => {
    const file = join(folder, "full.tsv");
    symlinkSync("/dev/full", `${file}.part`);
    const full = fault("ENOSPC", "ENOSPC: no space left on device, write");

    const { err } = await outcome("graph", "export", file);

    expect(err).toBe(`nearcrawl: ${file} cannot be written: ${full.message}\n`);
    mkdirSync(join(folder, "full"));
    symlinkSync("/dev/full", join(folder, "full/nodes.parquet.part"));
    const parquet = await outcome("graph", "export", join(folder, "full"), "--format", "parquet");
    expect(parquet.err).toBe(
      `nearcrawl: ${join(folder, "full/nodes.parquet")} cannot be written: ${full.message}\n`,
    );
    expect(readdirSync(join(folder, "full"))).toEqual([]);
    await expect(exported(full)).rejects.toThrow("standard output cannot be written: ENOSPC");
    expect([file, `${file}.part`].filter((one) => existsSync(one))).toEqual([]);
  });
});

describe("nearcrawl rank and graph", () => {
  it("report with exit code 3 that no ranking exists", async () => {
    expect(await outcome("graph")).toMatchObject({
      code: 3,
      out: expect.stringContaining("not been ranked"),
    });
  });

  it("rank, store, record that, and show the result", async () => {
    const ranked = await run("rank", "--write");
    const kept = await run("graph");

    expect(ranked).toMatch(/nodes +4\nlinks +5\nself links +1/);
    expect(ranked).toMatch(/mended +3/);
    for (const words of [/^Pages +4 /m, /^Links +5 +3 of them to another host/m, /^Hosts +3 +2 pairs/m])
      expect(kept).toMatch(words);
    const { rows } = await database.pool.query("select action, words from audit_entry");
    expect(rows).toEqual([{ action: "pages-ranked", words: "pages were ranked" }]);
  });

  it("store ranks that another engine computed, record that, and refuse settings beside them", async () => {
    const file = join(folder, "ranks.csv");
    const line = ({ hostHash, urlHash }: Key, at: number) => `${hostHash},${urlHash},${(at + 1) / 8}\n`;
    writeFileSync(file, `host_hash,url_hash,page_rank\n${[...known, beyond].map(line).join("")}`);

    const stored = JSON.parse(await run("rank", "--from", file, "--json"));
    const refused = [
      await outcome("rank", "--from", file, "--damping", "0.5"),
      await outcome("rank", "--from", join(folder, "missing.parquet")),
    ];

    expect(stored).toEqual({ ranked: 3, notInFrontier: 1 });
    expect(refused.map(({ code }) => code)).toEqual([2, 2]);
    expect(refused[1]!.err).toMatch(/missing\.parquet: cannot be read: ENOENT/);
    const { rows } = await database.pool.query("select page_rank from url_rank order by 1");
    expect(rows.map(({ page_rank: rank }) => rank)).toEqual([0.125, 0.25, 0.375]);
    const audit = await database.pool.query("select words from audit_entry order by at desc limit 1");
    expect(audit.rows).toEqual([{ words: "pages were ranked by another engine" }]);
  });

  it("show progress, rate and time left", () => {
    expect(rankProgressText({ step: "links", done: 500_000, expected: 2_000_000 }, 2)).toBe(
      "reading links: 500,000 of about 2,000,000 · 250,000/s · 6.0 s left",
    );
    expect(rankProgressText({ step: "urls", done: 50, expected: 0 }, 0.1)).toBe("reading urls: 50");
    expect(rankProgressText({ step: "sweeps", done: 4, residual: 0.00123 }, 2)).toBe(
      "iteration 4 · changed 1.2e-3 · 0.5 s each",
    );
  });
});
