/** `nearcrawl opt-outs` and `nearcrawl complaints`: real database, exit codes, each once in its own process; and what they say. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Complaint, deedsParagraph } from "#coordinator/opt-outs/complaints";
import type { OptOut } from "#coordinator/opt-outs/opt-out";
import { createOptOutStore } from "#coordinator/opt-outs/store";
import type { Database } from "#db/server-database";
import { complaintsCommand, complaintText } from "#ops/cli/commands/complaints";
import { optOutsCommand, optOutsText, optOutText } from "#ops/cli/commands/opt-outs";
import { nearcrawl as run } from "../../support/built-command.ts";
import { inProcess, said } from "../../support/command-in-process.ts";
import { testDatabase } from "../../support/database.ts";
import { seedWorld, worldNow } from "../../support/seed-world.ts";

let database: Database;
beforeAll(async () => {
  database = await testDatabase();
  await seedWorld(database.pool);
});
afterAll(async () => await database?.close());

/** As its own process. */
const nearcrawl = (...args: readonly string[]) => run(args, { database });

const commands = { "opt-outs": optOutsCommand, complaints: complaintsCommand };
const placed = (args: readonly string[]) => [
  ...args,
  ...["--database-url", database.url, "--schema", database.schema],
];
/** In this process, which is quicker; what it prints. */
const told = (name: keyof typeof commands, ...args: readonly string[]) =>
  said(commands[name](), placed(args));

describe("the commands", { timeout: 60_000 }, () => {
  it("add, confirm, list and lift opt-outs, of networks, too", async () => {
    const { optOutId } = await createOptOutStore(database.pool).request(
      {
        target: { site: "www.example.org", network: null },
        source: "form",
        words: "go away\u001b[31m",
        replyTo: null,
        requester: "192.0.2.7",
        confirmed: false,
      },
      new Date(),
    );

    const added = await told("opt-outs", "add", "192.0.2.0/24", "--words", "by letter");
    const hidden = await told("opt-outs", "list");
    const previewed = await told("opt-outs", "preview", "www.example.org");
    await told("opt-outs", "confirm", "www.example.org");
    const listed = await told("opt-outs", "list");
    const lifted = await told("opt-outs", "lift", String(optOutId), "--json");
    const unknown = await nearcrawl("opt-outs", "lift", "nobody.example.org");

    expect(added).toContain("of the network 192.0.2.0/24 is permanent");
    for (const words of [hidden, previewed]) expect(words).toContain("unconfirmed: hidden");
    expect(listed).toMatch(/www\.example\.org +confirmed .* 192\.0\.2\.7 +go away/);
    expect(listed).not.toContain("\u001b");
    expect(JSON.parse(lifted)).toMatchObject({ target: "www.example.org", state: "lifted" });
    expect(unknown.code).toBe(3);
    expect(unknown.err).toContain('"nobody.example.org" has no open opt-out');
    expect(await inProcess(optOutsCommand(), placed(["add", "not a site"]))).toMatchObject({
      code: 2,
      err: expect.stringContaining("is not the name of a site"),
    });
  });

  it("leave a public suffix or a very wide network alone when an operator says how many pages go, and not before", async () => {
    const suffix = await inProcess(optOutsCommand(), placed(["add", "github.io"]));
    const wide = await inProcess(optOutsCommand(), placed(["add", "10.0.0.0/8"]));
    const wrong = await inProcess(optOutsCommand(), placed(["add", "github.io", "--yes-remove", "7"]));
    const before = await inProcess(optOutsCommand(), placed(["lift", "github.io"]));
    const done = await inProcess(optOutsCommand(), placed(["add", "github.io", "--yes-remove", "0"]));
    const usual = await inProcess(optOutsCommand(), placed(["add", "someone.github.io"]));
    const lifted = await inProcess(optOutsCommand(), placed(["lift", "github.io"]));

    expect([suffix.code, wide.code, wrong.code, before.code]).toEqual([2, 2, 2, 3]);
    expect(suffix.err).toContain("github.io is a public suffix: many people's sites");
    expect(suffix.err).toContain(
      "0 hosts with 0 pages in the index and 0 known URLs, 0 of them due. Nothing was changed; if that is meant, say --yes-remove 0",
    );
    expect(done).toMatchObject({ code: 0, out: expect.stringContaining("github.io is permanent") });
    expect(wide.err).toContain("10.0.0.0/8 is larger than a usual network");
    expect([usual.code, usual.err, lifted.code, lifted.err]).toEqual([0, "", 0, ""]);
    expect(lifted.out).toMatch(/Its pages were deleted from the index on .* not believed for it again/);
  });

  it("write a complaint down, show what can be sent on, and close it", async () => {
    const report = ["--target", "www.example.org", "--from", "abuse@isp.example", "--text", "too fast"];
    const added = JSON.parse(await told("complaints", "add", ...report, "--json")) as Complaint;
    const number = String(added.complaintId);

    const shown = await told("complaints", "show", number);
    await told("complaints", "close", number, "--words", "answered");
    const listed = await told("complaints", "list", "--all");
    const missing = await nearcrawl("complaints", "close", number, "--words", "again");

    expect(shown).toContain("> too fast");
    expect(shown).toContain("We have no record of a request to it");
    expect(listed).toMatch(/www\.example\.org +abuse@isp\.example +0 +closed: answered/);
    expect(missing.code).toBe(3);
  });
});

const complaint: Complaint = {
  complaintId: 12,
  target: "example.org",
  source: "form",
  reporter: "admin@example.org",
  words: "too fast",
  requester: "203.0.113.5",
  createdAt: worldNow,
  closedAt: null,
  closingWords: null,
  deeds: {
    since: "2026-02-28T12:00:00.000Z",
    hosts: 2,
    requests: 71,
    mostInAnHour: 3,
    bytes: 71_000,
    firstAt: "2026-02-28T12:20:00.000Z",
    lastAt: "2026-03-01T11:40:00.000Z",
    measurements: 4,
    crawlers: [
      {
        name: "athens",
        address: "198.51.100.7",
        place: "Athens",
        contact: "abuse@uni.example",
        requests: 71,
        lastAt: "2026-03-01T11:40:00.000Z",
      },
    ],
    answers: [
      { outcome: "fetched", status: 200, requests: 70 },
      { outcome: "http-error", status: 429, requests: 1 },
    ],
    robots: { rules: 1, none: 1 },
    crawlDelayMs: 5000,
    backOffMs: null,
    atWork: ["athens"],
  },
};

describe("a complaint", () => {
  it("is answered by a paragraph that tells what we did, and to the operator names the partner", () => {
    expect(deedsParagraph(complaint)).toBe(
      "On 2026-03-01 12:00:00 UTC we received a report about our crawler's requests to example.org. In the 24 hours before, we sent 71 requests to 2 hosts between 2026-02-28 12:20:00 UTC and 2026-03-01 11:40:00 UTC, at most 3 within one hour, from 198.51.100.7 (athens); 71.0 kB came back. Its distance was measured 4 times. The answers were 70 × status 200 and 1 × status 429. Its robots.txt was read and followed for 1 host and absent, which allows everything for 1 host. A Crawl-delay of 5 s was respected.",
    );
    expect(complaintText(complaint)).toContain(
      "athens (198.51.100.7, Athens): 71 requests; its partner can be reached at abuse@uni.example",
    );
    expect(deedsParagraph(complaint)).not.toContain("abuse@uni.example");
  });
});

describe("many opt-outs within a day", () => {
  it("are shown to the operator as what may be a flood, and those that wait are counted", () => {
    const one: OptOut = {
      optOutId: 1,
      target: "example.org",
      scope: "subdomains",
      site: "example.org",
      kind: "site",
      state: "waiting",
      source: "form",
      token: "t",
      words: "",
      replyTo: null,
      requester: "203.0.113.5",
      createdAt: worldNow,
      inForceAt: null,
      lapsesAt: worldNow,
      confirmedAt: null,
      confirmedBy: null,
      endedAt: null,
      endingWords: "",
      erasedAt: null,
      urls: 0,
      hosts: 0,
      pages: 0,
    };

    const text = optOutsText(Array(50).fill(one), worldNow);

    expect(text).toContain("50 wait for confirmation");
    expect(text).toContain("50 came by the form within a day, from one address: this may be a flood");
    expect(optOutText(one)).toContain('_nearcrawl.example.org TXT "opt-out=t"');
  });
});
