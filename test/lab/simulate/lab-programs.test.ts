/** The programs of the lab: output, and refusals. */
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { inProcess } from "../../support/command-in-process.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { delegationCommand } from "./delegation-command.ts";
import { evaluateCommand } from "./evaluate.ts";

const fixture = join(import.meta.dirname, "../../fixtures/latency/three-places.json");
const folder = temporaryFolder("nearcrawl-simulate-");
afterAll(() => rmSync(folder, { recursive: true }));

const simulate = (...args: string[]) => inProcess(delegationCommand(), args);

it("simulate finds the best of three places by probing from all, and reports it as JSON", async () => {
  const { code, out } = await simulate("--fixture", fixture, "--policy", "exhaustive", "--json");

  expect(code).toBe(0);
  expect(JSON.parse(out)).toMatchObject([
    {
      ...{ instance: fixture, policy: "exhaustive", tuning: "unknown" },
      figures: { optimalPct: { mean: 100 }, meanExcessMs: { mean: 0 }, probesPerUrl: { mean: 3 } },
    },
  ]);
});

it("simulate accepts several instances by name, and shows which ones policies were tuned on", async () => {
  const names = ["--instance", "delay-space:5:7", "world:5:7"];
  const { out } = await simulate(...names, "--sites", "40", "--policy", "random,nearest", "--noise-ms", "4");

  expect(out).toContain("delay-space:5:7: 5 crawlers, 40 targets; not tuned on\n");
  expect(out).toContain("world:5:7: 5 crawlers, 40 targets; tuned on its kind\n");
  expect(out).toMatch(/random .*\nnearest /);
});

it.each([
  [["--fixture", fixture, "--policy", "psychic"], "psychic"],
  [["--fixture", fixture, "--policy", "nearest", "--loss", "1.5"], "--loss"],
  [["--policy", "nearest"], "--fixture <file> or --instance <name> is needed"],
  [["--instance", "towns:5:7", "--policy", "nearest"], '"towns" is no family of instances: world'],
  [["--fixture", join(folder, "none.json"), "--policy", "nearest"], "none.json: cannot be read"],
  [["--fixture", join(folder, "broken.json"), "--policy", "nearest"], "broken.json: targets: "],
])("simulate refuses %j with exit code 2", async (args, words) => {
  const place = '{"path":["root","a"],"org":"","cc":""}';
  writeFileSync(join(folder, "broken.json"), `{"crawlers":[${place}],"crawlerRtt":[[0]],"targets":[]}`);

  const { code, err } = await simulate(...args);

  expect(code).toBe(2);
  expect(err).toContain(words);
});

it("evaluate prints the paper's values beside ours, for twelve crawlers", async () => {
  const { code, out } = await inProcess(evaluateCommand(), ["thresholds", "download", "--quick"]);

  expect(code).toBe(0);
  expect(out).toMatch(/\| ipmicra 50 ms \|.*\| 75 %, 3 probes \(last 50: 2\.66\) \|/);
  const share = (policy: string) => Number(new RegExp(`\\| ${policy} \\| ([\\d.]+)`).exec(out)![1]);
  expect(share("exhaustive")).toBe(100);
  expect(share("nearest")).toBeGreaterThan(share("random"));
  expect(out).toMatch(/\| 4 crawlers, .* \| exhaustive \| [\d.]+ \| \d+ \| 1\.00 \| 1\.00 \|/);
});

it("evaluate refuses an unknown figure", async () => {
  const { code, err } = await inProcess(evaluateCommand(), ["everything"]);

  expect(code).toBe(2);
  expect(err).toContain('"everything" is not a figure: thresholds, learning');
});
