/** The supervisor follows a partner's release policy, with real processes. */
import { describe, expect, it } from "vitest";
import { judgeByPolicy, releasePolicy } from "#crawler/settings/release-policy";
import { until } from "../../support/until.ts";
import { offer, startDock, writeSettings } from "./release-world.ts";
import {
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
  const [firstOfferedAt, now] = [new Date("2026-11-01T00:00:00Z"), new Date("2026-11-01T03:00:00Z")];
  /** Returns why a release is not taken, or null. */
  const judged = (version: string, policy: object, hasRelease: boolean) => {
    const answer = judgeByPolicy(version, {
      policy: releasePolicy.parse(policy),
      now,
      firstOfferedAt,
      hasRelease,
    });
    return answer.take ? null : answer.reason;
  };
  it.each([
    [{}, "1.5.0", null],
    [{ refuse: ["1.5.0"] }, "1.5.0", "the partner refuses this version"],
    [{ refuse: ["1.4.0"] }, "1.5.0", null],
    [{ policy: "pin" }, "1.5.0", "the partner stays with what runs"],
    [{ policy: "pin", pin: "1.4.0" }, "1.5.0", "the partner stays with 1.4.0"],
    [{ policy: "pin", pin: "1.5.0" }, "1.5.0", null],
    [{ policy: "ask" }, "1.5.0", "the partner has not accepted this version yet"],
    [{ policy: "ask", accept: ["1.5.0"] }, "1.5.0", null],
    [{ policy: "delay", delayHours: 3.001 }, "1.5.0", "the partner takes it at 2026-11-01T03:00:03.600Z"],
    [{ policy: "delay", delayHours: 3 }, "1.5.0", null],
  ])("%j keeps %s out with the words: %s", (policy, version, words) => {
    expect(judged(version, policy, true)).toBe(words);
  });

  it("has nothing to stay with, and nothing to wait for, where nothing runs", () => {
    const policies = [
      { policy: "pin" },
      { policy: "delay" },
      { policy: "pin", pin: "1.4.0" },
      { policy: "ask" },
    ];

    expect(policies.map((policy) => judged("1.5.0", policy, false) === null)).toEqual([
      true,
      true,
      false,
      false,
    ]);
  });

  it("is told of in the report, and what runs goes on", async () => {
    const dock = await docked();
    writeSettings(dock.home.path, `[releases]\npolicy = "pin"`);
    const next = publish();

    offer(dock.home, next);

    await until(() => reasonOf(dock, next) !== undefined, soonMs);
    const reason = "the partner stays with what runs";
    expect(dock.state().reports.at(-1)).toEqual({ version: next.version, state: "pinned", reason });
    expect(dock.state().current?.digest).toBe(dock.first.digest);
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
