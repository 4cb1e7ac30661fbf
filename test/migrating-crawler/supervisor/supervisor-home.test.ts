/** The mark of the supervisor that runs a home: one of several concurrent ones gets it. */
import { readdirSync, rmSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, expect, it } from "vitest";
import { dockMark, leaveHome, runningDock, takeHome, takeMark } from "#crawler/supervisor/supervisor-home";
import { temporaryFolder } from "../../support/temporary-folder.ts";

let home: string;
beforeEach(() => {
  home = temporaryFolder("nearcrawl-one-dock-");
});
afterEach(() => rmSync(home, { recursive: true }));

const mark = (pid: number) => writeFileSync(dockMark(home), JSON.stringify({ pid, startTicks: null }));
/** Exceeds Linux's maximum process id. */
const gone = 2 ** 22 + 1;

it("the mark of a dock that is gone, or was torn, is taken over, and leaves nothing beside it", () => {
  for (const make of [() => mark(gone), () => writeFileSync(dockMark(home), "{"), () => leaveHome(home)]) {
    make();

    takeHome(home);

    expect(runningDock(home)).toBe(process.pid);
    expect(readdirSync(home)).toEqual(["dock.pid"]);
  }
});

it("a mark that another dock has made since the look is not written over", () => {
  mark(process.ppid);

  const isTaken = takeMark(dockMark(home), process.pid);

  expect(isTaken).toBe(false);
  expect(runningDock(home)).toBe(process.ppid);
  expect(readdirSync(home)).toEqual(["dock.pid"]);
});

it("a dock that finds another one says which process it is, and may ask for its own twice", () => {
  takeHome(home);
  takeHome(home);
  expect(runningDock(home)).toBe(process.pid);
  mark(process.ppid);

  expect(() => takeHome(home)).toThrow(`process ${process.ppid} runs the crawler of this folder already`);
});
