/** `nearcrawl urls`: lists in every format, invalid lines, receipts, exit codes. */
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createAuditLog } from "#coordinator/database/audit-log";
import { createPolicyStore } from "#coordinator/run/settings/settings-store";
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
  `<?xml version="1.0"?><urlset ` +
  `xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>http://${host}/1</loc></url><url><loc>http://${host}/2</loc></url></urlset>`;

it("a list with invalid lines is accepted partly; each refused line is named", async () => {
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

it.each<readonly [string, (text: string) => Buffer]>([
  ["carriage returns alone", (text) => Buffer.from(text.replaceAll("\n", "\r"))],
  ["carriage returns alone, packed", (text) => gzipSync(text.replaceAll("\n", "\r"))],
  ["UTF-16 with a mark", (text) => Buffer.from(`\ufeff${text}`, "utf16le")],
  ["UTF-16 without a mark", (text) => Buffer.from(text, "utf16le")],
  ["UTF-16 of big end", (text) => Buffer.from(`\ufeff${text}`, "utf16le").swap16()],
  [
    "UTF-16 with carriage returns and line feeds",
    (text) => Buffer.from(text.replaceAll("\n", "\r\n"), "utf16le"),
  ],
  ["UTF-16, packed", (text) => gzipSync(Buffer.from(`\ufeff${text}`, "utf16le"))],
])("a list in %s is read whole", async (form, written) => {
  const host = `${form.replace(/[^a-z0-9]+/gi, "-").toLowerCase()}.example`;
  const list = file(
    `${host}.txt`,
    written(`http://${host}/1\n# a comment\nhttp://${host}/2\nhttp://${host}/3\n`),
  );

  expect((await run("add", list)).out).toMatch(/^3 URLs: 3 new/);
});

it("a sitemap in UTF-16 is one", async () => {
  const written = Buffer.from(
    `\ufeff${sitemap("wide.example").replace("?>", ' encoding="UTF-16"?>')}`,
    "utf16le",
  );

  expect((await run("add", file("wide.xml", written))).out).toMatch(/^2 URLs: 2 new/);
});

it("links that will not be followed are listed at the end with the way to change that, by current policies", async () => {
  const before = await run("add", "http://scope.example/");
  await createPolicyStore(database.pool).save(
    {
      ...{ changedAt: new Date(), changedBy: "anna", words: "", takesBack: null },
      changes: [{ name: "scope.admitNewHosts", before: null, after: true }],
    },
    0,
  );
  const after = await run("add", "http://scope.example/2", "--json");
  const recrawl = await run("recrawl", "http://scope.example/");
  await database.pool.query("truncate setting, policy_version");

  expect(before.out).toContain(
    "not followed: links to hosts that nobody submitted: nearcrawl policy set scope.admitNewHosts=yes follows them\n",
  );
  expect(before.out).toContain("what is more than 8 links from a submitted URL (scope.maxDepth)");
  expect(JSON.parse(after.out).notFollowed.join()).not.toContain("hosts that nobody submitted");
  expect(recrawl.out).not.toContain("not followed");
});

it("sitemaps are read, packed or not; a URL is taken literally", async () => {
  const plain = file("sitemap.xml", sitemap("map.example"));
  const packed = file("sitemap.xml.gz", gzipSync(sitemap("packed.example")));

  const { out } = await run("add", plain, packed, "http://one.example/", "--json");
  const { submissionId } = JSON.parse(out);
  const status = await run("status", String(submissionId));

  expect(JSON.parse(out).urls).toMatchObject({ new: 5, refused: 0 });
  expect(status.out).toMatch(/http:\/\/packed\.example\/2 +resolving/);
});

it("shows single URLs, and an unknown one by its exit code", async () => {
  const known = await run("status", "http://one.example/");
  const unknown = await run("status", "http://unknown.example/");
  const nowhere = await run("status", "99999");

  expect(known).toMatchObject({ code: 0, out: expect.stringContaining("address is being looked up") });
  expect(unknown).toMatchObject({ code: 3, out: expect.stringContaining("not in the crawl") });
  expect(nowhere).toMatchObject({ code: 3, err: expect.stringContaining("there is no receipt 99999") });
});

it("the state of a list of any length is printed line by line, also after an invalid line", async () => {
  const many = Array.from({ length: 10_500 }, (_, page) => `http://long.example/${page}`);
  const list = file("long.txt", ["http://one.example/", "no URL", ...many].join("\n"));

  const { code, out } = await run("status", list, "--json");
  const text = (await run("status", list)).out.split("\n");

  expect(code).toBe(0);
  expect(JSON.parse(out).urls.map(({ state }: { state: string }) => state)).toEqual([
    "resolving",
    "refused",
    ...many.map(() => "unknown"),
  ]);
  expect(JSON.parse(out).urls.at(-1).url).toBe(many.at(-1));
  expect(text.filter((line) => line.startsWith("http"))).toHaveLength(10_501);
  expect(text.find((line) => line.startsWith("no URL"))).toMatch(/refused .*cannot be parsed/);
});

it("all URLs of a receipt are listed, also many", async () => {
  const many = Array.from({ length: 2500 }, (_, page) => `http://receipt.example/${page}`);
  const { submissionId } = JSON.parse((await run("add", file("many.txt", many.join("\n")), "--json")).out);

  const { out } = await run("status", String(submissionId), "--json");

  expect(JSON.parse(out).urls.map(({ url }: { url: string }) => url)).toEqual(many);
});

it("an unreadable list leaves no receipt, and a completely refused one is a failure", async () => {
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
