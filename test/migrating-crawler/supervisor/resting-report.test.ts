/** What a folder's files report while no crawler answers, with this process as its supervisor. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { emptyState, withWaiting } from "#crawler/core/release-state";
import { Spool } from "#crawler/spool/spool";
import { ReleaseShelf } from "#crawler/supervisor/release-store";
import { restingReport } from "#crawler/supervisor/resting-report";
import { leaveHome, takeHome } from "#crawler/supervisor/supervisor-home";
import { temporaryFolder } from "../../support/temporary-folder.ts";

let home: string;
beforeEach(() => {
  home = temporaryFolder("nearcrawl-resting-");
  takeHome(home);
});
afterEach(() => leaveHome(home));

it("says what the supervisor waits for also while that tells the coordinator, for which it has the spool open", () => {
  const shelf = new ReleaseShelf({ home, warn: () => {} });
  shelf.saveState(withWaiting(emptyState, "its administrator: release 2 is offered", new Date()));
  const spool = new Spool({ home, maxBytes: 1e6 });

  const report = restingReport(home, "crawler", new Date());
  spool.close();

  expect(report.words).toMatch(/the supervisor runs as process \d+, and waits for its administrator/);
  expect(report.holdingBack).toContain("it waits for its administrator: release 2 is offered");
});
