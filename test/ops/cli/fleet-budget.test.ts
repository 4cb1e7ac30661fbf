/** `nearcrawl fleet budget`, `domain-sets`, `log`, `absences`, `failures`, `moves` and `trust` as people run them, in one process. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { fleetCommand } from "#ops/cli/commands/fleet";
import { failuresText } from "#ops/cli/fleet/failures";
import { absencesText, logText, movesText } from "#ops/cli/fleet/log";
import { trustListText } from "#ops/cli/fleet/trust";
import { inProcess, said } from "../../support/command-in-process.ts";
import { newWorld, noon, type World } from "../../support/store-world.ts";

let world: World;
beforeAll(async () => {
  world = await newWorld();
  await world.crawler("north");
});
afterAll(async () => await world.close());

const placed = (args: readonly string[]) => [
  ...args,
  ...["--database-url", world.database.url, "--schema", world.database.schema],
];
const outcome = (...args: readonly string[]) => inProcess(fleetCommand(), placed(args));
const fleet = (...args: readonly string[]) => said(fleetCommand(), placed(args));

it("grants a budget that holds at once, and writes down by whom", async () => {
  const granted = await fleet("budget", "north", "--pages-per-day", "700", "--json");
  const shown = await fleet("budget", "north");
  await fleet("budget", "north", "--pages-per-day", "own");
  const free = await fleet("budget", "north");

  expect(JSON.parse(granted)).toMatchObject({ name: "north", inForce: { pagesPerDay: 700 } });
  expect(shown).toMatch(
    /north may fetch 700 pages .*\n +granted +700 pages, any bytes\n +its partner +has not said/,
  );
  expect(free).toMatch(/granted +as its partner allows/);
  const [entry] = await world.rows<{ action: string; via: string; target: string; after: unknown }>(
    "select action, via, target, after from audit_entry order by entry_id limit 1",
  );
  expect(entry).toEqual({
    ...{ action: "crawler-budget-granted", via: "command", target: "north" },
    after: { pagesPerDay: 700, bytesPerDay: null },
  });
});

it("gives domain sets, shows them, takes them back, and refuses what cannot be with the reason", async () => {
  const given = await fleet("domain-sets", "north", ".gr not shop.gr", "LANG:el", "--json");
  const shown = await outcome("domain-sets", "north");
  await world.rows("update crawler set partner_domain_sets = '{.gr}'");
  const refused = [
    await outcome("domain-sets", "north", ".com"),
    await outcome("domain-sets", "north", ".gr not .gr"),
    await outcome("domain-sets", "north", ".gr", "--clear"),
  ];
  const nobody = await outcome("domain-sets", "nobody", ".gr");
  const cleared = await fleet("domain-sets", "north", "--clear");

  expect(JSON.parse(given)).toEqual({
    ...{ name: "north", operator: [".gr not shop.gr", "lang:el"], partner: [], before: [] },
  });
  expect(shown).toEqual({ code: 0, out: "north may have hosts in .gr not shop.gr or lang:el\n", err: "" });
  expect(refused.map(({ code }) => code)).toEqual([2, 2, 2]);
  expect(refused.map(({ err }) => err)).toEqual([
    "nearcrawl: .com has nothing in common with what its partner allows: .gr\n",
    "nearcrawl: the domain set has both .gr and not .gr: it can hold neither\n",
    "nearcrawl: give sets or --clear, not both\n",
  ]);
  expect([nobody.code, nobody.err]).toEqual([3, expect.stringContaining('there is no crawler "nobody"')]);
  expect(cleared).toContain("north is given hosts of every domain, of those that its partner allows (.gr)");
  const entries = await world.rows(
    "select after from audit_entry where action = 'crawler-domain-sets-given' order by entry_id",
  );
  expect(entries).toEqual([{ after: [".gr not shop.gr", "lang:el"] }, { after: [] }]);
});

it("says of a crawler that nobody knows that it is not there, with exit code 3", async () => {
  for (const args of [["budget", "--pages-per-day", "1"], ["log"], ["absences"]]) {
    expect(await outcome(args[0]!, "nobody", ...args.slice(1))).toMatchObject({
      code: 3,
      err: expect.stringContaining('there is no crawler "nobody"'),
    });
  }
});

it("shows the log, absences, moves, failures and trust from the database", async () => {
  const [log, absences, moves, failures, trust] = [
    await fleet("log", "north"),
    await fleet("absences", "north"),
    await fleet("moves"),
    await fleet("failures", "--hours", "1"),
    await fleet("trust"),
  ];

  expect(log).toMatch(/change +north is granted/);
  expect(absences).toContain("it was never away");
  expect(moves).toContain("no moves yet");
  expect(failures).toContain("nothing was fetched in this time");
  expect(trust).toMatch(/north +not compared yet +0 +0 +0 +0\.0 +0/);
});

it("words of a crawler cannot steer the terminal", () => {
  const hostile = "gone\u001b[2J\nroot:";
  const none = { target: 0, network: 1, crawler: 0, us: 0 };
  const failure = { at: noon, crawler: "north", blame: "network", status: null, host: "a.example" } as const;
  const doubt = { since: noon, words: hostile, restoredAt: null, score: 9, pages: 1 };

  const texts = [
    logText({ lines: [{ at: noon, kind: "away", words: hostile, by: null }], page: 1, more: true }),
    absencesText([{ since: noon, until: noon, reason: hostile, lastWords: hostile }]),
    movesText([
      {
        ...{ moveId: 1, name: "north", otherName: "south", step: "failed", words: hostile },
        ...{ askedAt: noon, changedAt: noon, bytes: 0, sentBytes: 0 },
      },
    ]),
    failuresText({
      shares: { since: noon, fetches: 2, failures: none, byCrawler: [] },
      latest: [{ ...failure, url: null, words: hostile }],
    }),
    trustListText([
      {
        crawler: "north",
        standing: "distrusted",
        comparisons: { agreed: 0, alone: 3, once: 0, untold: 0 },
        ...doubt,
      },
    ]),
  ];

  for (const text of texts) {
    expect(text).not.toContain("\u001b[2J");
    expect(text).not.toContain("\nroot:");
  }
  expect(texts[0]).toContain("There is more: --page 2");
  expect(texts[3]).toMatch(/^all +2 +0 +1 /m);
});
