/** The command as a person runs it: a process, its output and its exit code. */
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));
const fixture = join(root, "test/fixtures/latency/three-places.json");
const folder = mkdtempSync(join(tmpdir(), "nearcrawl-simulate-"));
afterAll(() => rmSync(folder, { recursive: true }));

function simulate(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const main = ["--conditions=nearcrawl-source", "--import", "tsx", "ops/nearcrawl/main.ts"];
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [...main, "simulate", "delegation", ...args],
      { cwd: root },
      (error, stdout, stderr) => {
        resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr });
      },
    );
  });
}

describe("nearcrawl simulate delegation", () => {
  it("prints exactly the stated figures with --json", async () => {
    const { code, stdout } = await simulate("--fixture", fixture, "--policy", "exhaustive", "--json");

    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toEqual({
      policy: "exhaustive",
      crawlers: 3,
      targets: 6,
      optimalPct: 100,
      within5msPct: 100,
      meanExcessMs: 0,
      p95ExcessMs: 0,
      probesPerUrl: 3,
      probesPerUrlLast50: 3,
    });
  });

  it("prints a table for people, with a row for each policy", async () => {
    const { code, stdout } = await simulate("--fixture", fixture, "--policy", "random,ipmicra,nearest");

    expect(code).toBe(0);
    expect(stdout).toContain("3 crawlers, 6 targets");
    expect(stdout).toMatch(/random .*\nipmicra .*\nnearest /);
  });

  it("refuses a policy, a seed or a λ that is none, with exit code 2", async () => {
    const wrong = [
      ["--policy", "psychic"],
      ["--policy", "nearest", "--seed", "-1"],
      ["--policy", "nearest", "--lambda-ms", "NaN"],
      [],
    ];

    const results = await Promise.all(wrong.map((args) => simulate("--fixture", fixture, ...args)));

    expect(results.map((result) => result.code)).toEqual([2, 2, 2, 2]);
    expect(results[0]?.stderr).toContain('"psychic" is not a policy');
  });

  it("names file and field of a broken fixture in one line, with exit code 2", async () => {
    const broken = join(folder, "broken.json");
    writeFileSync(
      broken,
      '{"crawlers":[{"path":["root","a"],"org":"","cc":""}],"crawlerRtt":[[0]],"targets":[]}',
    );

    const { code, stderr } = await simulate("--fixture", broken, "--policy", "nearest");

    expect(code).toBe(2);
    expect(stderr).toMatch(/broken\.json: targets: .*found a list of 0/);
    expect(stderr.trim().split("\n")).toHaveLength(1);
  });

  it("says that a file is not there", async () => {
    const { code, stderr } = await simulate("--fixture", join(folder, "none.json"), "--policy", "nearest");

    expect(code).toBe(2);
    expect(stderr).toContain("none.json: cannot be read");
  });
});
