/** The evaluation on small worlds: every figure is made, as a person who runs the command gets it. */
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { XMLParser, XMLValidator } from "fast-xml-parser";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { evaluateCommand, figures } from "#ops/cli/commands/evaluate";
import type { Outcome } from "../../support/built-command.ts";
import { inProcess } from "../../support/command-in-process.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const fixture = join(root, "test/fixtures/latency/three-places.json");
const folder = temporaryFolder("nearcrawl-evaluation-");
afterAll(() => rmSync(folder, { recursive: true }));

const evaluate = (...args: string[]) => inProcess(evaluateCommand(), args);

describe("nearcrawl evaluate --quick", () => {
  let ended: Outcome;
  let page: string;
  beforeAll(async () => {
    ended = await evaluate("--quick", "--measured", fixture, "--out", folder, "--json");
    page = readFileSync(join(folder, "delegation.md"), "utf8");
  }, 240_000);

  it("makes every figure, with its numbers for programs", () => {
    expect(ended.err).not.toContain("Error");
    expect(ended.code).toBe(0);
    expect(Object.keys(JSON.parse(ended.out))).toEqual(figures.map(({ name }) => name));
  });

  it("writes a page with a section for each, and says when and where it was measured", () => {
    for (const { title } of figures) expect(page).toContain(`## ${title}`);
    expect(page).toMatch(/Measured on \d{4}-\d\d-\d\d at .*, \d+ × .*, Node \d+/);
    expect(page).toContain("small worlds: for a look");
    expect(page).toContain("three-places");
    expect(page).not.toMatch(/NaN|undefined|Infinity/);
  });

  it("shows only pictures that are there, and each of them is XML with finite numbers inside its frame", () => {
    const shown = [...page.matchAll(/!\[[^\]]+\]\(([^)]+)\)/g)].map((match) => match[1]!);
    const written = readdirSync(folder).filter((name) => name.endsWith(".svg"));

    expect(shown.toSorted()).toEqual(written.toSorted());
    for (const name of written) expectPicture(readFileSync(join(folder, name), "utf8"));
  });

  it("says at every row whether anything was tuned on its instance", () => {
    const { worlds, thresholds, untuned, risk } = JSON.parse(ended.out);
    const tunings = (groups: { name?: string; family?: string; policies: { tuning: string }[] }[]) =>
      groups.map(({ name, family, policies }) => [
        name ?? family,
        ...new Set(policies.map(({ tuning }) => tuning)),
      ]);

    for (const { title } of figures)
      expect(page.split(`## ${title}`)[1]!.split("## ")[0]).toMatch(/\| tuning \|/);
    expect(tunings(thresholds)).toEqual([
      ["12 crawlers, 120 sites, generated", "kind"],
      ["three-places", "unknown"],
    ]);
    expect(new Map(tunings(untuned) as [string, string][])).toEqual(
      new Map([
        ["cities", "none"],
        ["delay-space", "none"],
        ["world", "kind"],
      ]),
    );
    expect(worlds[0]).toMatchObject({ name: "three-places", tuning: "unknown" });
    expect(risk.map(({ tuning }: { tuning: string }) => tuning)).toEqual(["kind", "unknown", "none", "none"]);
  });

  it("has no risk below that in hindsight", () => {
    const groups = JSON.parse(ended.out).risk;

    for (const { name, risks } of groups)
      for (const { hindsight, nearest, fixed, lambdaMs } of risks)
        for (const { riskMs } of [nearest, fixed])
          expect(riskMs, `${name}, λ ${lambdaMs}`).toBeGreaterThanOrEqual(hindsight.riskMs - 1e-9);
  });

  it("draws large fleets from every model, and times what a decision takes", () => {
    const { large } = JSON.parse(ended.out);

    expect(large.groups.map(({ name }: { name: string }) => name)).toEqual(
      expect.arrayContaining(["world", "cities", "delay-space"]),
    );
    for (const { policies } of large.groups) {
      expect(policies[0]).toMatchObject({
        policy: "nearest",
        cpuMsPerDecision: { mean: expect.any(Number) },
      });
      expect(policies[0].cpuMsPerDecision.mean).toBeGreaterThan(0);
      expect(policies[0].foundPct.mean).toBeLessThanOrEqual(100);
    }
  });

  it("puts the paper's own numbers beside ours", () => {
    const { thresholds, download } = JSON.parse(ended.out);

    expect(page).toContain("90 %, 6.5");
    expect(page).toContain("75 %, 3 (last 50: 2.66)");
    expect(page).toContain("**The paper's one tenth does not come from latency.**");
    expect(thresholds[0].policies).toHaveLength(9);
    expect(download.groups[0].rows.map((row: { policy: string }) => row.policy)).toEqual([
      "random",
      "ipmicra 50 ms",
      "ipmicra 25 ms",
      "nearest",
      "exhaustive",
      "worst",
    ]);
  });
});

describe("nearcrawl evaluate", () => {
  it("makes one figure anew and leaves the rest of the page as people wrote it", async () => {
    const before = readFileSync(join(folder, "delegation.md"), "utf8");

    const { code } = await evaluate("--quick", "--only", "worlds", "--measured", fixture, "--out", folder);

    const after = readFileSync(join(folder, "delegation.md"), "utf8");
    const elsewhere = (text: string) => text.replace(/evaluate worlds: begin[\s\S]*evaluate worlds: end/, "");
    expect(code).toBe(0);
    expect(elsewhere(after)).toBe(elsewhere(before));
    expect(after).not.toMatch(/## How hard[\s\S]*## How hard/);
  }, 120_000);

  it("refuses a figure that is none, with exit code 2, and writes nothing", async () => {
    const out = join(folder, "none");

    const { code, err } = await evaluate("--only", "everything", "--out", out);

    expect(code).toBe(2);
    expect(err).toContain('"everything" is not a figure: download, thresholds');
    expect(existsSync(out)).toBe(false);
  });
});

/** Well-formed; every coordinate a number within the frame, a little over it for what is centred on an edge. */
function expectPicture(svg: string): void {
  expect(XMLValidator.validate(svg)).toBe(true);
  const parsed = new XMLParser({ ignoreAttributes: false, attributeNamePrefix: "" }).parse(svg).svg;
  expect(String(parsed.title["#text"]).length).toBeGreaterThan(5);
  const [width, height] = [Number(parsed.width), Number(parsed.height)];
  expect(svg).not.toMatch(/NaN|undefined|Infinity|null/);
  for (const [, axis, value] of svg.matchAll(/\b(x|y|cx|cy)="(-?[\d.]+)"/g)) {
    const most = axis === "x" || axis === "cx" ? width : height;
    expect(Number(value)).toBeGreaterThanOrEqual(-1);
    expect(Number(value)).toBeLessThanOrEqual(most + 1);
  }
}
