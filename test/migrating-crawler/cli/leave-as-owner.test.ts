/**
 * Root leaves and uninstalls as the crawler's user, or not at all, in a folder that an attacker of the crawler may have
 * filled. Needs root, because the kernel enforces the users.
 */
import { type ChildProcess, spawn } from "node:child_process";
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
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { leaveCoordinator } from "#crawler/cli/leave-as-owner";
import { readStopWords } from "#crawler/extract/stop-words";
import { bundleDock } from "../../../ops/bundle-crawler.mjs";
import { atEnd } from "../../support/at-end.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { type PartnerConsole, partnerConsole } from "../support/partner-console.ts";
import { type SmallCoordinator, startSmallCoordinator } from "../support/small-coordinator.ts";

const nobody = 65_534;
const isRoot = process.getuid?.() === 0;
let scratch: string;
let self: readonly string[];
beforeAll(async () => {
  scratch = temporaryFolder("nearcrawl-as-owner-");
  chmodSync(scratch, 0o755);
  const outfile = join(scratch, "nearcrawl-crawler.mjs");
  await bundleDock({ root: join(import.meta.dirname, "../../.."), outfile, stopWords: readStopWords() });
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
  it("leaves as that user, and removes the folder", async () => {
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

  it("signals no process of another user that a forged mark names", async () => {
    const { home, run } = await nobodysFolder();
    const victim = innocent();
    writeFileSync(join(home, "dock.pid"), JSON.stringify({ pid: victim.pid, startTicks: null }));

    const { code, text } = await run("uninstall", "--yes");

    expect(code).toBe(1);
    expect(text).toMatch(/process \d+, which the folder names as its crawler, is not of the user/);
    expect(victim.signalCode).toBe(null);
    expect(existsSync(join(home, "membership.json"))).toBe(true);
  });

  it("writes and removes nothing behind a link that lies in it, and runs nothing with root's rights", async () => {
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

  it("leaves alone, and names, what another user has put there", async () => {
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

  it("signals no process of another user in a folder of its own either", async () => {
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
