/** A start repeats a failed check and not a successful one. */
import { rmSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { keepCheck, lastCheckFailed } from "#crawler/check/machine-check";
import { recheckAfterFailure } from "#crawler/cli/run-command";
import type { CrawlerLog } from "#crawler/core/log";
import { writeMembership } from "#crawler/core/membership";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { type SmallCoordinator, startSmallCoordinator } from "../support/small-coordinator.ts";

let home = "";
let world: SmallCoordinator;
beforeEach(async () => {
  home = temporaryFolder("nearcrawl-recheck-");
  world = await startSmallCoordinator({ clockBehindMs: 120_000 });
  writeMembership(home, {
    coordinatorUrl: world.url,
    name: "amber",
    certificatePin: null,
    releaseKeys: [],
    releaseThreshold: 1,
    key: "a-key-of-its-own-0123",
    ticket: null,
  });
});
afterEach(async () => {
  await world.close();
  rmSync(home, { recursive: true, force: true });
});

function logOf(lines: string[]): CrawlerLog {
  const line = (fields: object, message: string) => void lines.push(`${message} ${JSON.stringify(fields)}`);
  return { debug: line, info: line, warn: line, error: line };
}

const report = { at: new Date(), findings: [], isConnected: true, neededProxy: null };
const given = () => ({ home, env: {}, now: () => new Date() });

describe("a start", () => {
  it("after a failed check logs what must be fixed", async () => {
    keepCheck(home, { ...report, isUsable: false });
    const lines: string[] = [];

    await recheckAfterFailure(given(), logOf(lines));

    expect(lines.join("\n")).toMatch(/must be fixed .*"subject":"clock".*s ahead of the coordinator's/);
    expect(lastCheckFailed(home)).toBe(true);
  });

  it("after a good check checks nothing", async () => {
    keepCheck(home, { ...report, isUsable: true });
    const lines: string[] = [];

    await recheckAfterFailure(given(), logOf(lines));

    expect(lines).toEqual([]);
  });
});
