/** The mark of the supervisor that runs a home: one of several concurrent ones gets it. */
import { readdirSync, rmSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  emptyState,
  type KeptRelease,
  noteWelcome,
  passWatch,
  returnToGood,
  swapTo,
  withWaiting,
} from "#crawler/core/release-state";
import { Spool } from "#crawler/spool/spool";
import { ReleaseShelf } from "#crawler/supervisor/release-store";
import { restingReport } from "#crawler/supervisor/resting-report";
import {
  leaveHome,
  runningSupervisor,
  supervisorMark,
  takeHome,
  takeMark,
} from "#crawler/supervisor/supervisor-home";
import { temporaryFolder } from "../../support/temporary-folder.ts";

let home: string;
beforeEach(() => {
  home = temporaryFolder("nearcrawl-one-dock-");
});
afterEach(() => rmSync(home, { recursive: true }));

const mark = (pid: number) => writeFileSync(supervisorMark(home), JSON.stringify({ pid, startTicks: null }));
/** Exceeds Linux's maximum process id. */
const gone = 2 ** 22 + 1;

it("the process file of a supervisor that has ended, or a truncated one, is replaced and leaves nothing beside it", () => {
  for (const make of [
    () => mark(gone),
    () => writeFileSync(supervisorMark(home), "{"),
    () => leaveHome(home),
  ]) {
    make();

    takeHome(home);

    expect(runningSupervisor(home)).toBe(process.pid);
    expect(readdirSync(home)).toEqual(["dock.pid"]);
  }
});

it("a process file that another supervisor has just written is not overwritten", () => {
  mark(process.ppid);

  const isTaken = takeMark(supervisorMark(home), process.pid);

  expect(isTaken).toBe(false);
  expect(runningSupervisor(home)).toBe(process.ppid);
  expect(readdirSync(home)).toEqual(["dock.pid"]);
});

it("a supervisor that finds another one names its process, and may check for its own twice", () => {
  takeHome(home);
  takeHome(home);
  expect(runningSupervisor(home)).toBe(process.pid);
  mark(process.ppid);

  expect(() => takeHome(home)).toThrow(`process ${process.ppid} runs the crawler of this folder already`);
});

/** What a folder's files report while no crawler answers, with this process as its supervisor. */
describe("the resting report", () => {
  let home: string;
  beforeEach(() => {
    home = temporaryFolder("nearcrawl-resting-");
    takeHome(home);
  });
  afterEach(() => leaveHome(home));

  it("says what the supervisor waits for even while that has the spool open to report to the coordinator", () => {
    const shelf = new ReleaseShelf({ home, warn: () => {} });
    shelf.saveState(withWaiting(emptyState, "its administrator: release 2 is offered", new Date()));
    const spool = new Spool({ home, maxBytes: 1e6 });

    const report = restingReport(home, "crawler", new Date());
    spool.close();

    expect(report.words).toMatch(/the supervisor runs as process \d+, and waits for its administrator/);
    expect(report.holdingBack).toContain("it waits for its administrator: release 2 is offered");
  });
});

// In a young fleet no release has passed its watch yet, and a faulty one arrives.

const fault = { reason: "it ended with code 1", at: new Date("2026-01-01T12:00:00Z"), againMs: 3_600_000 };
const releaseOf = (number: number): KeptRelease => ({
  version: `0.${number}.0`,
  digest: String(number).repeat(64),
  sequence: number,
  bytes: 1000,
});
const [first, second, third] = [releaseOf(1), releaseOf(2), releaseOf(3)] as const;

it("returns to a release that was welcomed, even if it had not passed its watch", () => {
  const young = swapTo(noteWelcome(swapTo(emptyState, first)), second);

  const returned = returnToGood(young, fault);

  expect(returned).toMatchObject({ current: first, good: first, bad: [{ digest: second.digest }] });
});

it("has nothing to return to when the previous one was never welcomed", () => {
  const never = swapTo(swapTo(emptyState, first), second);

  expect(returnToGood(never, fault)).toBeNull();
});

it("prefers to return to a release that passed its watch over one that was only welcomed", () => {
  const passed = passWatch(noteWelcome(swapTo(emptyState, first)));
  const young = swapTo(noteWelcome(swapTo(passed, second)), third);

  expect(returnToGood(young, fault)).toMatchObject({ current: first });
});
