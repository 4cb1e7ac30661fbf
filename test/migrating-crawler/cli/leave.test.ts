/** Leaving and uninstalling: who is told, what remains on the machine, and what is never touched. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  existsSync,
  lchownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readStopWords } from "#core/words/stop-words-resolver";
import { leaveCoordinator } from "#crawler/cli/leave-command";
import type { PartnerSurroundings } from "#crawler/cli/partner-commands";
import { readMembership } from "#crawler/core/membership";
import { bundlePartnerProgram } from "../../../ops/bundle-crawler.mjs";
import { atEnd } from "../../support/at-end.ts";
import { builtProgram } from "../../support/built-command.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
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
  it("says a final goodbye in its own session when no crawler runs, and keeps the folder", async () => {
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

  it("says what to do when the coordinator is unreachable, and changes nothing", async () => {
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
  it("restores the file system to its state before the join", async () => {
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

  it("removes nothing without confirmation", async () => {
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

  it("asks a running crawler, found from its folder alone, to leave, and waits until it ends", async () => {
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

  it("touches no folder that is not a crawler's, and no target of a link", async () => {
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

  it("continues on request despite damaged files and after an interrupted removal", async () => {
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

/** Root leaves and uninstalls as the crawler's user, or not at all, in a folder that an attacker of the crawler may have filled. Needs root, because the kernel enforces the users. */
describe("leaving as the owner", () => {
  const nobody = 65_534;
  const isRoot = process.getuid?.() === 0;
  let scratch: string;
  let self: readonly string[];
  beforeAll(async () => {
    scratch = temporaryFolder("nearcrawl-as-owner-");
    chmodSync(scratch, 0o755);
    const outfile = join(scratch, "nearcrawl-crawler.mjs");
    await bundlePartnerProgram({
      root: join(import.meta.dirname, "../../.."),
      outfile,
      stopWords: readStopWords(),
    });
    self = [outfile];
  }, 60_000);
  afterAll(() => rmSync(scratch, { recursive: true, force: true }));

  /** Joins and gives the folder to nobody; only root may enter its parent, as with systemd's. */
  async function nobodysFolder(): Promise<PartnerConsole & { readonly world: SmallCoordinator }> {
    const world = await startSmallCoordinator();
    const partner = partnerConsole({ self });
    const { code, text } = await partner.run("join", world.invitation());
    if (code !== 0) throw new Error(text);
    for (const name of ["", ...readdirSync(partner.home, { recursive: true, encoding: "utf8" })])
      lchownSync(join(partner.home, name), nobody, nobody);
    return { ...partner, world };
  }

  function innocent(): ChildProcess {
    const child = spawn("sleep", ["60"], { stdio: "ignore" });
    atEnd(() => child.kill("SIGKILL"));
    return child;
  }

  /** A folder that only root may write, linked from the crawler's folder. */
  function rootsFolder(): string {
    const folder = mkdtempSync(join(scratch, "root-"));
    writeFileSync(join(folder, "kept"), "root's");
    return folder;
  }

  describe.runIf(isRoot)("root in a folder of the crawler's user", () => {
    it("leaves as the folder's user, and removes the folder", async () => {
      const { home, run, world } = await nobodysFolder();

      const left = await run("leave");
      const owners = readdirSync(home, { recursive: true, encoding: "utf8" }).map(
        (name) => statSync(join(home, name)).uid,
      );
      const { code, text } = await run("uninstall", "--yes");

      expect([left.code, code]).toEqual([0, 0]);
      expect(new Set(owners)).toEqual(new Set([nobody]));
      expect(world.goodbyes.at(-1)?.forGood).toBe(true);
      expect(text).toContain(`${home} is removed.`);
      expect(existsSync(home)).toBe(false);
    });

    it("signals no process of another user that a forged process id names", async () => {
      const { home, run } = await nobodysFolder();
      const victim = innocent();
      writeFileSync(join(home, "dock.pid"), JSON.stringify({ pid: victim.pid, startTicks: null }));

      const { code, text } = await run("uninstall", "--yes");

      expect(code).toBe(1);
      expect(text).toMatch(/process \d+, which the folder names as its crawler, is not of the user/);
      expect(victim.signalCode).toBe(null);
      expect(existsSync(join(home, "membership.json"))).toBe(true);
    });

    it("writes and removes nothing behind a link in the folder, and runs nothing as root", async () => {
      const { home, run } = await nobodysFolder();
      const folder = rootsFolder();
      rmSync(join(home, "spool"), { recursive: true });
      symlinkSync(folder, join(home, "spool"));
      symlinkSync(join(folder, "made"), join(home, "status.json.new"));

      const { code, text } = await run("uninstall", "--yes");

      expect(text).toMatch(/Not left: .*spool/);
      expect(code).toBe(0);
      expect(readdirSync(folder)).toEqual(["kept"]);
    });

    it("keeps and names files of another user", async () => {
      const { home, run } = await nobodysFolder();
      const folder = join(home, "backup");
      mkdirSync(folder);
      writeFileSync(join(folder, "kept"), "root's");
      chownSync(folder, 0, 0);

      const { code, text } = await run("uninstall", "--yes");

      expect(code).toBe(1);
      expect(text).toContain(`could not remove: "backup". Look at it first.`);
      expect(readdirSync(folder)).toEqual(["kept"]);
    });

    it("signals no process of another user in its own folder either", async () => {
      const { home } = await nobodysFolder();
      chownSync(home, 0, 0);
      const other = spawn("sleep", ["60"], { stdio: "ignore", uid: nobody, gid: nobody });
      atEnd(() => other.kill("SIGKILL"));
      mkdirSync(join(home, "spool"), { recursive: true });
      writeFileSync(join(home, "spool/lock"), String(other.pid));

      expect(await leaveCoordinator(home)).toMatchObject({ type: "still-runs" });
      expect(other.signalCode).toBe(null);
    });
  });
});
