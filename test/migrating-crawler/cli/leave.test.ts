/** Leaving and uninstalling: who is told, what remains on the machine, and what is never touched. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { leaveCoordinator } from "#crawler/cli/leave-as-owner";
import type { PartnerSurroundings } from "#crawler/cli/partner-commands";
import { readMembership } from "#crawler/core/membership";
import { atEnd } from "../../support/at-end.ts";
import { builtProgram } from "../../support/built-command.ts";
import { until } from "../../support/until.ts";
import { type PartnerConsole, partnerConsole } from "../support/partner-console.ts";
import { type SmallCoordinator, startSmallCoordinator } from "../support/small-coordinator.ts";

interface Joined extends PartnerConsole {
  readonly world: SmallCoordinator;
}

async function joined(changes: Partial<PartnerSurroundings> = {}): Promise<Joined> {
  const world = await startSmallCoordinator();
  const partner = partnerConsole(changes);
  const { code, text } = await partner.run("join", world.invitation());
  if (code !== 0) throw new Error(text);
  return { ...partner, world };
}

/** Runs the crawler as a process from its folder alone. */
async function runCrawler(
  home: string,
): Promise<{ readonly child: ChildProcess; readonly ended: Promise<number | null> }> {
  const file = join(dirname(home), "start.json");
  writeFileSync(file, JSON.stringify({ home }));
  const main = await builtProgram("migrating-crawler/main");
  const child = spawn(process.execPath, [main, file], { stdio: "ignore" });
  atEnd(() => child.kill("SIGKILL"));
  return { child, ended: once(child, "exit").then(([code]) => code as number | null) };
}

const everythingBelow = (folder: string) => readdirSync(folder, { recursive: true, encoding: "utf8" }).sort();

describe("leave", () => {
  it("says goodbye for good in a session of its own where no crawler runs, and keeps the folder", async () => {
    const { world, home, run } = await joined();

    const { code, text } = await run("leave");

    expect(code).toBe(0);
    expect(text).toMatch(/^Left: the coordinator gives this crawler's work to others/);
    expect(world.goodbyes.at(-1)).toEqual({
      ...{ code: "leaves", reason: "the crawler leaves for good", forGood: true },
    });
    expect(world.hellos.at(-1)?.limits.pagesPerDay).toBe(0);
    expect(existsSync(join(home, "identity.json"))).toBe(true);
  });

  it("says what to do when the coordinator is gone, and leaves everything as it is", async () => {
    const { world, home, run } = await joined();
    await world.close();
    const before = readMembership(home);

    const outcome = await leaveCoordinator(home, { endMs: 100, connectMs: 200, shipMs: 100 });

    expect(outcome).toMatchObject({
      type: "failed",
      reason: expect.stringContaining("no link to the coordinator"),
    });
    expect(readMembership(home)).toEqual(before);
    expect((await run("leave", "--home", dirname(home))).code).toBe(2);
  });
});

describe("uninstall", () => {
  it("leaves nothing on the file system of what was there before the join", async () => {
    const world = await startSmallCoordinator();
    const partner = partnerConsole();
    const before = everythingBelow(dirname(partner.home));
    await partner.run("join", world.invitation());
    const between = everythingBelow(dirname(partner.home));

    const { code, text } = await partner.run("uninstall", "--yes");

    expect(code).toBe(0);
    expect(text).toContain(`${partner.home} is removed.`);
    expect(between.length).toBeGreaterThan(before.length + 4);
    expect(everythingBelow(dirname(partner.home))).toEqual(before);
    expect(world.goodbyes.at(-1)?.forGood).toBe(true);
    expect((await partner.run("uninstall", "--yes")).code).toBe(3);
  });

  it("removes nothing unless somebody said yes", async () => {
    const asked: string[] = [];
    const ask = async (question: string) => question.startsWith("Join with") || asked.push(question) < 0;
    const { home, run } = await joined({ ask });

    const no = await run("uninstall");
    const nobody = await partnerConsole().run("uninstall", "--home", home);

    expect([no.code, nobody.code]).toEqual([1, 2]);
    expect(asked).toEqual([`Remove ${home} with everything in it, after the crawler has left for good?`]);
    expect(nobody.text).toContain("say --yes");
    expect(existsSync(join(home, "membership.json"))).toBe(true);
  });

  it("lets a crawler that runs, from its folder alone, leave by itself, and waits for its end", async () => {
    const { world, home, run } = await joined();
    const crawler = await runCrawler(home);
    await until(() => world.hellos.length === 2, 20_000);
    const [first, second] = world.hellos;

    const { code } = await run("uninstall", "--yes");

    expect(code).toBe(0);
    expect(await crawler.ended).toBe(0);
    expect(world.goodbyes.at(-1)?.forGood).toBe(true);
    expect(existsSync(home)).toBe(false);
    expect(second?.identity?.publicKey).toBe(first?.identity?.publicKey);
    expect(second?.identity?.ticket).toBe(world.tickets[0]);
    expect(second?.spoolId).toBe(first?.spoolId);
  });

  it("touches no folder that is not a crawler's, nor what a link in it leads to", async () => {
    const { home, run } = await joined();
    const foreign = join(dirname(home), "documents");
    mkdirSync(foreign);
    writeFileSync(join(foreign, "thesis.tex"), "years of work");
    symlinkSync(foreign, join(home, "link"));

    const wrong = await run("uninstall", "--yes", "--home", foreign);
    const right = await run("uninstall", "--yes");

    expect(wrong.code).toBe(2);
    expect(wrong.text).toContain("documents is no crawler's folder");
    expect(right.code).toBe(0);
    expect(readdirSync(foreign)).toEqual(["thesis.tex"]);
  });

  it("goes on, told to, from damaged files and from a removal that was cut short", async () => {
    const { home, run } = await joined();
    writeFileSync(join(home, "membership.json"), "{");

    const { code, text } = await run("uninstall", "--yes");

    expect(code).toBe(0);
    expect(text).toContain("membership.json: this is no whole JSON file");
    expect(existsSync(home)).toBe(false);
  });

  it("removes a folder behind a link together with the link", async () => {
    const { home, run } = await joined();
    const link = join(dirname(home), "default");
    symlinkSync(home, link);

    const { code } = await run("uninstall", "--yes", "--home", link);

    expect(code).toBe(0);
    expect(readdirSync(dirname(home))).toEqual([]);
  });
});
