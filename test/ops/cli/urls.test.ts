/** `nearcrawl urls`: lists in every form they come in, garbage between, receipts, exit codes. */
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createAuditLog } from "#coordinator/database/audit-log";
import type { Database } from "#db/server-database";
import { urlsCommand } from "#ops/cli/commands/urls";
import { inProcess } from "../../support/command-in-process.ts";
import { testDatabase } from "../../support/database.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

let database: Database;
let folder: string;
beforeAll(async () => {
  folder = temporaryFolder("nearcrawl-urls-");
  database = await testDatabase();
});
afterAll(async () => {
  await database?.close();
  rmSync(folder, { recursive: true, force: true });
});

const run = async (...words: string[]) => {
  const place = ["--database-url", database.url, "--schema", database.schema, "--home", folder];
  return await inProcess(urlsCommand(), [...words, ...place]);
};
const file = (name: string, content: string | Buffer) => {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
};
const sitemap = (host: string) =>
  `<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>http://${host}/1</loc></url><url><loc>http://${host}/2</loc></url></urlset>`;

it("a list with garbage between is taken as far as it goes; each refused line is named", async () => {
  const lines = [
    "\ufeffhttp://list.example/",
    "",
    "# comment",
    "x".repeat(100_000),
    "\u0000\u001b[31m",
    "http://list.example/2",
  ];
  const list = file(
    "list.txt",
    Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n`), Buffer.from([0xff, 0xfe, 0x0a])]),
  );

  const { code, out } = await run("add", list);

  expect(code).toBe(0);
  expect(out).toMatch(/^5 URLs: 2 new, 3 refused\n/);
  expect(out).toContain("refused, line 4: xxxx");
  expect(out).toMatch(/refused, line 5: .*cannot be parsed as an absolute URL/);
  expect(out).not.toContain("\u001b");
  expect(out).toMatch(/follow them: nearcrawl urls status \d+/);
});

it("sitemaps are read, packed or not; a URL is taken as it stands", async () => {
  const plain = file("sitemap.xml", sitemap("map.example"));
  const packed = file("sitemap.xml.gz", gzipSync(sitemap("packed.example")));

  const { out } = await run("add", plain, packed, "http://one.example/", "--json");
  const { submissionId } = JSON.parse(out);
  const status = await run("status", String(submissionId));

  expect(JSON.parse(out).urls).toMatchObject({ new: 5, refused: 0 });
  expect(status.out).toMatch(/http:\/\/packed\.example\/2 +resolving/);
});

it("tells of single URLs, and by its exit code that nothing is known", async () => {
  const known = await run("status", "http://one.example/");
  const unknown = await run("status", "http://unknown.example/");
  const nowhere = await run("status", "99999");

  expect(known).toMatchObject({ code: 0, out: expect.stringContaining("address is being looked up") });
  expect(unknown).toMatchObject({ code: 3, out: expect.stringContaining("not in the crawl") });
  expect(nowhere).toMatchObject({ code: 3, err: expect.stringContaining("there is no receipt 99999") });
});

// Issue 41: more than 10,000 lines were refused, and a receipt was cut there.
it("tells of a list of any length, in order, and of a receipt as long", async () => {
  const urls = Array.from({ length: 10_500 }, (_, at) => `http://long.example/${at}`);
  const list = file("long.txt", `# all of them\n${urls.join("\n")}\n`);

  const unknown = await run("status", list, "--json");
  const { submissionId } = JSON.parse((await run("add", list, "--json")).out);
  const receipt = await run("status", String(submissionId), "--json");
  const text = await run("status", list);

  const urlsOf = (out: string) => JSON.parse(out).urls.map(({ url }: { url: string }) => url);
  expect([unknown.code, urlsOf(unknown.out)]).toEqual([3, urls]);
  expect([receipt.code, urlsOf(receipt.out)]).toEqual([0, urls]);
  expect(text.out.match(/http:\/\/long\.example\/\d+/g)).toEqual(urls);
});

it("what cannot be read leaves no receipt, and what is refused altogether is no success", async () => {
  const before = (await createAuditLog(database.pool).list({ limit: 50 })).entries.length;
  const wrong = [
    await run("add", join(folder, "missing.txt")),
    await run("add", folder),
    await run("add", file("empty.txt", "")),
    await run("add", file("page.html", "<html><body>no list</body></html>")),
    await run("add", file("cut.gz", gzipSync(sitemap("cut.example")).subarray(0, 40))),
  ];
  const { rows } = await database.pool.query("select count(*)::int as receipts from submission");
  const refused = await run("add", "ftp://files.example/");
  const unknown = await run("recrawl", "http://unknown.example/");

  expect(wrong.map(({ code }) => code)).toEqual([2, 2, 2, 2, 2]);
  expect(wrong.map(({ err }) => err)).toEqual([
    expect.stringContaining("neither a URL (https://…) nor a file"),
    expect.stringContaining("it is no file"),
    expect.stringContaining("no URL was given"),
    expect.stringContaining("neither a sitemap nor a feed"),
    expect.stringContaining("it is broken"),
  ]);
  expect(rows[0].receipts).toBe(before);
  expect(refused).toMatchObject({ code: 2, out: expect.stringContaining("only http and https are crawled") });
  expect(unknown).toMatchObject({ code: 2, out: expect.stringContaining("not in the crawl") });
});
