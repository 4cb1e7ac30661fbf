/** What a partner says of releases is kept, over real processes. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { until } from "../../support/until.ts";
import { offer, startDock, writeSettings } from "./release-world.ts";
import {
  type Docked,
  docked,
  publish,
  reasonOf,
  reports,
  running,
  soonMs,
  useReleaseWorld,
  world,
} from "./supervisor-ground.ts";

useReleaseWorld();

describe("the partner's policy", () => {
  let dock: Docked;
  beforeAll(async () => {
    dock = await docked();
    running.splice(running.indexOf(dock), 1);
  });
  afterAll(() => dock.dock.stop());

  it.each([
    ["pin", `[releases]\npolicy = "pin"`, "pinned", "the partner stays with what runs"],
    ["ask", `[releases]\npolicy = "ask"`, "pinned", "the partner has not accepted this version yet"],
    [
      "delay",
      `[releases]\npolicy = "delay"\ndelayHours = 2`,
      "delayed",
      expect.stringMatching(/takes it at 20/),
    ],
  ])("%s keeps what runs, and says so", async (_policy, settings, state, reason) => {
    writeSettings(dock.home.path, settings);
    const next = publish();

    offer(dock.home, next);

    await until(() => reasonOf(dock, next) !== undefined, soonMs);
    expect(dock.state().reports.at(-1)).toEqual({ version: next.version, state, reason });
    expect(dock.state().current?.digest).toBe(dock.first.digest);
  });

  it("refuse keeps one version out and lets the next one in", async () => {
    const [unwanted, wanted] = [publish(), publish()];
    writeSettings(dock.home.path, `[releases]\nrefuse = ["${unwanted.version}"]`);

    offer(dock.home, unwanted);
    await until(() => reasonOf(dock, unwanted) !== undefined, soonMs);
    offer(dock.home, wanted);

    await until(() => dock.state().good?.digest === wanted.digest, soonMs);
    expect(reasonOf(dock, unwanted)).toBe("the partner refuses this version");
  });

  it("delay takes the release when its time has come", async () => {
    const home = world.newHome(`[releases]\npolicy = "delay"\ndelayHours = 2`);
    const first = publish();
    world.offerToAll(first);
    let hours = 0;
    const clock = () => new Date(Date.now() + hours * 3_600_000);
    const dock = await startDock(home, { pollMs: 30 }, clock);
    running.push(dock);
    await until(() => dock.state().good?.digest === first.digest, soonMs);
    const next = publish();
    offer(home, next);
    await until(() => reports(dock).some(([, state]) => state === "delayed"), soonMs);

    hours = 3;

    await until(() => dock.state().good?.digest === next.digest, soonMs);
  });

  it("pin brings back the version that it names, when it is on the disk", async () => {
    const dock = await docked({ pollMs: 30 });
    const next = publish();
    offer(dock.home, next);
    await until(() => dock.state().good?.digest === next.digest, soonMs);

    writeSettings(dock.home.path, `[releases]\npolicy = "pin"\npin = "${dock.first.version}"`);

    await until(() => dock.state().good?.digest === dock.first.digest, soonMs);
    expect(dock.state().bad).toEqual([]);
  });
});
