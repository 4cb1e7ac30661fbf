/** The command as a person runs it, once as a process: its output and its exit code. */
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { simulateCommand } from "#ops/cli/commands/simulate";
import { nearcrawl } from "../../support/built-command.ts";
import { inProcess } from "../../support/command-in-process.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const fixture = join(root, "test/fixtures/latency/three-places.json");
const folder = temporaryFolder("nearcrawl-simulate-");
afterAll(() => rmSync(folder, { recursive: true }));

const simulate = (...args: string[]) => inProcess(simulateCommand(), ["delegation", ...args]);

describe("nearcrawl simulate delegation", () => {
  it("prints exactly the stated figures with --json", async () => {
    const given = ["--fixture", fixture, "--policy", "exhaustive", "--json"];

    const { code, out } = await nearcrawl(["simulate", "delegation", ...given]);

    expect(code).toBe(0);
    expect(JSON.parse(out)).toEqual({
      tuning: "unknown",
      policy: "exhaustive",
      crawlers: 3,
      targets: 6,
      optimalPct: 100,
      within2msPct: 100,
      within5msPct: 100,
      meanExcessMs: 0,
      p95ExcessMs: 0,
      probesPerUrl: 3,
      p95ProbesPerUrl: 3,
      probesPerUrlLast50: 3,
    });
  });

  it("prints a table for people, with a row for each policy", async () => {
    const { code, out } = await simulate("--fixture", fixture, "--policy", "random,ipmicra,nearest");

    expect(code).toBe(0);
    expect(out).toContain("3 crawlers, 6 targets");
    expect(out).toMatch(/random .*\nipmicra .*\nnearest /);
  });

  it("runs over a generated world, several times, and gives mean and spread", async () => {
    const world = ["--world", "--crawlers", "4", "--sites", "60", "--seeds", "3"];

    const { code, out } = await simulate(...world, "--policy", "nearest", "--json");
    const report = JSON.parse(out);

    expect(code).toBe(0);
    expect(report).toMatchObject({ policy: "nearest", crawlers: 4, targets: 60, seeds: 3 });
    expect(report.spread.within5msPct.least).toBeLessThanOrEqual(report.within5msPct);
    expect(report.spread.within5msPct.most).toBeGreaterThanOrEqual(report.within5msPct);
  });

  it("states the noise, and what the exhaustive policy makes of the same disturbed probes", async () => {
    const noise = ["--noise-ms", "20", "--spike-share", "0.2", "--loss", "0.1", "--tries", "1"];

    const [json, table] = await Promise.all([
      simulate("--fixture", fixture, "--policy", "nearest", ...noise, "--json"),
      simulate("--fixture", fixture, "--policy", "nearest", ...noise),
    ]);

    expect(JSON.parse(json.out)).toMatchObject({
      policy: "nearest",
      noise: { noiseMs: 20, spikeShare: 0.2, spikeMs: 50, lossShare: 0.1, tries: 1 },
      exhaustive: { optimalPct: expect.any(Number), within5msPct: expect.any(Number) },
    });
    expect(table.out).toMatch(/nearest .*\nexhaustive /);
  });

  it("takes several fixtures and says which is which", async () => {
    const { out } = await simulate("--fixture", fixture, fixture, "--policy", "random", "--json");

    expect(JSON.parse(out).map((report: { instance: string }) => report.instance)).toEqual([
      fixture,
      fixture,
    ]);
  });

  it("takes instances by name, the name's seed before --seed, and says what policies were tuned on", async () => {
    const given = ["--sites", "40", "--policy", "nearest", "--seed", "9"];

    const [table, named, seeded] = await Promise.all([
      simulate("--instance", "cities:5:7", "world:5:7", ...given),
      simulate("--instance", "cities:5:7", "cities:5", ...given, "--json"),
      simulate("--instance", "cities:5:9", ...given, "--json"),
    ]);

    expect(table.code).toBe(0);
    expect(table.out).toContain("cities:5:7: 5 crawlers, 40 targets; not tuned on\n");
    expect(table.out).toContain("world:5:7: 5 crawlers, 40 targets; tuned on its kind\n");
    const [seven, nine] = JSON.parse(named.out);
    expect(seven).toMatchObject({ instance: "cities:5:7", tuning: "none", crawlers: 5, targets: 40 });
    expect({ ...nine, instance: undefined }).toEqual(JSON.parse(seeded.out));
    expect(seven.meanExcessMs).not.toBe(nine.meanExcessMs);
  });

  it("gives the same for --instance world as for --world", async () => {
    const given = ["--sites", "40", "--policy", "nearest", "--json"];

    const byName = await simulate("--instance", "world:5:7", ...given);
    const byOption = await simulate("--world", "--crawlers", "5", "--seed", "7", ...given);

    expect(byName.out).toBe(byOption.out);
  });

  it("refuses an instance that is none, or whose measured matrix is not there, with exit code 2", async () => {
    const before = process.env.NEARCRAWL_DATA;
    process.env.NEARCRAWL_DATA = folder;
    const none = await simulate("--instance", "towns:5:7", "--policy", "nearest");
    const absent = await simulate("--instance", "planetlab-9:5:7", "--policy", "nearest");
    if (before === undefined) delete process.env.NEARCRAWL_DATA;
    else process.env.NEARCRAWL_DATA = before;

    expect([none.code, absent.code]).toEqual([2, 2]);
    expect(none.err).toContain('"towns" is no family of instances: world, cities');
    expect(absent.err).toMatch(
      /planetlab-9:5:7": PlanetLabData_9\.gz is not in .*latency \(NEARCRAWL_DATA\)/,
    );
  });

  it("wants a fixture, a world or an instance, not two and not none", async () => {
    const neither = await simulate("--policy", "nearest");
    const both = await simulate("--world", "--fixture", fixture, "--policy", "nearest");

    expect([neither.code, both.code]).toEqual([2, 2]);
    expect(neither.err).toContain("--fixture <file>, --world or --instance <name> is needed");
    expect(both.err).toContain("--fixture and --world exclude each other");
  });

  it("refuses a policy, a seed or a λ that is none, with exit code 2", async () => {
    const wrong = [
      ["--policy", "psychic"],
      ["--policy", "nearest", "--seed", "-1"],
      ["--policy", "nearest", "--lambda-ms", "NaN"],
      ["--policy", "nearest", "--loss", "1.5"],
      [],
    ];

    const results = await Promise.all(wrong.map((args) => simulate("--fixture", fixture, ...args)));

    expect(results.map((result) => result.code)).toEqual([2, 2, 2, 2, 2]);
    expect(results[0]?.err).toContain('"psychic" is not a policy');
  });

  it("names file and field of a broken fixture in one line, with exit code 2", async () => {
    const broken = join(folder, "broken.json");
    writeFileSync(
      broken,
      '{"crawlers":[{"path":["root","a"],"org":"","cc":""}],"crawlerRtt":[[0]],"targets":[]}',
    );

    const { code, err } = await simulate("--fixture", broken, "--policy", "nearest");

    expect(code).toBe(2);
    expect(err).toMatch(/broken\.json: targets: .*found a list of 0/);
    expect(err.trim().split("\n")).toHaveLength(1);
  });

  it("says that a file is not there", async () => {
    const { code, err } = await simulate("--fixture", join(folder, "none.json"), "--policy", "nearest");

    expect(code).toBe(2);
    expect(err).toContain("none.json: cannot be read");
  });
});
