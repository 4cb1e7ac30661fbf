/** `nearcrawl rir` where many subnets in use would be removed, and the alerts about it. */
import { mkdirSync } from "node:fs";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Database } from "#db/server-database";
import { rirCommand } from "#ops/cli/commands/rir";
import { type SourceFolder, sourceFolder } from "../../rir-import/source-folder.ts";
import { delegate } from "../../rir-import/tree-in-force.ts";
import { commandNamed, inProcess } from "../../support/command-in-process.ts";
import { testDatabase } from "../../support/database.ts";

let database: Database;
let folder: SourceFolder;
beforeAll(async () => {
  database = await testDatabase();
  folder = sourceFolder();
});
afterAll(async () => {
  folder.remove();
  await database.close();
});

const place = () => ["--database-url", database.url, "--schema", database.schema];
const rir = (name: string, ...words: readonly string[]) =>
  inProcess(rirCommand(), [name, ...place(), ...words]);
const registryAlerts = async () => {
  const { out } = await inProcess(commandNamed("alerts"), [...place(), "--json"]);
  const { alerts } = JSON.parse(out) as {
    alerts: { name: string; severity: string; words: string; advice: string }[];
  };
  return alerts.filter(({ name }) => /^registry-(empty|refused)$/.test(name));
};
const net = (n: number) => `inetnum: 45.10.${n}.0/24\nnetname: EX\ncountry: NL\nsource: RIPE\n\n`;
const nets = (...numbers: readonly number[]) => numbers.map(net).join("");

it("an import that would remove subnets in use states their number, is refused with an alert, and is accepted with the number", async () => {
  const whole = folder.write("whole.db", nets(0, 1, 2, 3));
  const cut = folder.write("cut.db", nets(0, 1));
  expect((await rir("apply", whole)).code).toBe(0);
  for (const n of [1, 2, 3]) await delegate(database, `45.10.${n}.0/24`, "amber");

  const plan = await rir("plan", cut);
  const refused = await rir("apply", cut);
  const wrong = await rir("apply", cut, "--yes-remove", "1");
  const alerts = await registryAlerts();
  const done = await rir("apply", cut, "--yes-remove", "2");

  expect(plan.out).toContain("WARNING: Subnets in use. 2 of the 3 subnets in use (66.7 %) would go");
  expect(plan.out).toMatch(/--planned \S+ --yes-remove 2\n$/);
  expect(refused).toMatchObject({ code: 2, out: "" });
  expect(refused.err).toMatch(/nearcrawl: this removes 2 of the 3 .*say --yes-remove 2\n$/);
  expect(wrong).toMatchObject({ code: 2, err: expect.stringContaining(", and not 1.") });
  expect(alerts).toMatchObject([{ name: "registry-refused", severity: "warning" }]);
  expect(alerts[0]!.words).toMatch(/^An import was refused: this removes 2 of the 3 subnets in use/);
  expect([done.code, await registryAlerts()]).toEqual([0, []]);
});

it("a rollback that empties the tree needs both options, is a critical alert, and is undone by one command", async () => {
  expect((await rir("rollback", "--yes")).code).toBe(0);
  expect((await rir("rollback", "--to-empty", "--yes")).err).toContain("removes 3 of the 3 subnets in use");

  const emptied = await rir("rollback", "--to-empty", "--yes-remove", "3");
  const alerts = await registryAlerts();
  const { code } = await rir("rollforward");

  expect(emptied).toMatchObject({ code: 0, out: expect.stringContaining("nearcrawl rir rollforward") });
  expect(alerts).toMatchObject([
    {
      name: "registry-empty",
      severity: "critical",
      advice: expect.stringContaining("nearcrawl rir rollforward"),
    },
  ]);
  expect([code, await registryAlerts()]).toEqual([0, []]);
});

it("a tree of which nothing is delegated although subnets are is a critical alert", async () => {
  const other = folder.write("other.db", nets(100, 101));
  expect((await rir("apply", other, "--yes-remove", "3")).code).toBe(0);

  expect(await registryAlerts()).toMatchObject([
    { name: "registry-empty", severity: "critical", words: expect.stringMatching(/^No delegated subnet/) },
  ]);
  expect((await rir("rollback", "--json")).code).toBe(0);
  expect(await registryAlerts()).toEqual([]);
});

// Losses of remaining subnets: the organisations' file is missing or differs.

const withFacts = (n: number, facts: string) =>
  `inetnum: 45.20.${n}.0/24\nnetname: EX\n${facts}source: RIPE\n\n`;
const org = (n: number) => `organisation: ORG-${n}-RIPE\norg-name: Holder ${n}\nsource: RIPE\n\n`;
const forty = Array.from({ length: 40 }, (_, n) => n);
const known = () => forty.map((n) => withFacts(n, `country: NL\norg: ORG-${n}-RIPE\n`)).join("");

it("an import that loses most holders or countries of remaining subnets states the number, and is accepted with it", async () => {
  const organisations = folder.write("organisations.db", forty.map(org).join(""));
  const whole = folder.write("known.db", known());
  expect((await rir("apply", whole, organisations, "--yes-remove", "3")).code).toBe(0);
  const moved = folder.write("moved.db", known().replaceAll("country: NL", "country: DE"));

  const plan = await rir("plan", whole);
  const refused = await rir("apply", whole);
  const wrong = await rir("apply", whole, "--yes-lose", "7");
  const elsewhere = await rir("apply", moved, organisations);
  const alerts = await registryAlerts();
  const few = folder.write("few.db", known().replace("country: NL", "country: BE"));
  const usual = await rir("apply", few, organisations);
  const done = await rir("apply", whole, "--yes-lose", "40");

  expect(plan.out).toContain(
    "WARNING: 40 of the 40 holders (or their names) whose subnets stay of ripencc would go",
  );
  expect(plan.out).toMatch(/--planned \S+ --yes-lose 40\n$/);
  expect(refused).toMatchObject({ code: 2, out: "" });
  expect(refused.err).toMatch(/this loses 40 of the 40 holders .*say --yes-lose 40\n$/);
  expect(wrong).toMatchObject({ code: 2, err: expect.stringContaining("(and not 7)") });
  expect(elsewhere).toMatchObject({
    code: 2,
    err: expect.stringContaining("40 of the 40 countries of subnets"),
  });
  expect(alerts.map(({ name }) => name)).toContain("registry-refused");
  expect([usual.code, done.code]).toEqual([0, 0]);
  expect((await registryAlerts()).map(({ name }) => name)).not.toContain("registry-refused");
});

it("an import without a previous list of published places states the number of lost places", async () => {
  const ranges = forty.map((n) => `45.20.${n}.0/24,NL,NL-NH,Amsterdam,`).join("\n");
  const feed = folder.write("geofeed.csv", `${ranges}\n`);
  const whole = folder.write("known.db", known());
  expect((await rir("apply", whole, feed)).code).toBe(0);

  const refused = await rir("apply", whole);
  const done = await rir("apply", whole, "--yes-lose", "40");

  expect(refused).toMatchObject({
    code: 2,
    err: expect.stringContaining("40 of the 40 published ranges of"),
  });
  expect(done.code).toBe(0);
});

it("the plan reports a file that is years old, and the check continues after broken files", async () => {
  const old = folder.write(
    "old.txt",
    "2|ripencc|20140302|1|19830705|20140301|+0100\nripencc|NL|ipv4|45.30.0.0|256|20140301|allocated\n",
  );
  mkdirSync(`${folder.path}/many`);
  folder.write("many/good.db", net(200));
  const [cut, none] = [folder.write("many/cut.db.gz", "no gzip"), `${folder.path}/many/missing.db`];

  const plan = await rir("plan", old);
  const check = await inProcess(rirCommand(), ["check", `${folder.path}/many`, none]);

  expect(plan.out).toMatch(/WARNING: \S*old\.txt is of 2014-03-0\d, [\d,]+ days old: is it the newest\?/);
  expect(check.code).toBe(2);
  expect(check.out).toMatch(/^IPv4 subnets +1$/m);
  for (const file of [cut, none]) expect(check.err).toContain(`nearcrawl: ${file}:`);
});
