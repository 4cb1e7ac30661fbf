/**
 * `npm run bench`: choice of benches, comparison and output, on commits of a test repository whose benches read their figures
 * from a file.
 */
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { UsageError } from "#core/errors";
import { readPidFile } from "#db/embedded-postgres";
import { isLong } from "../../support/long.ts";
import { sharedDataFolder } from "../../support/shared-data.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { until } from "../../support/until.ts";
import type { Figure } from "../figure.ts";
import { compareWith, comparisonCode, comparisonText, quickBenches } from "./compare-commits.ts";
import { compareFigures } from "./compare-figures.ts";
import { commitNamed } from "./other-checkout.ts";
import { benchesCalled, benchNames, runOpenly } from "./run-bench.ts";

const project = join(import.meta.dirname, "../../..");

const rounds = (values: readonly number[], higherIsBetter = false): readonly (readonly Figure[])[] =>
  values.map((value) => [{ name: "page", value, unit: "ms", higherIsBetter }]);

const markOf = (there: readonly number[], here: readonly number[], higherIsBetter = false) =>
  compareFigures(rounds(there, higherIsBetter), rounds(here, higherIsBetter)).map((one) =>
    "mark" in one ? one.mark : one.only,
  );

describe("a figure of two commits", () => {
  it("is worse by more than 5 % if every round is", () => {
    expect(markOf([10, 10.2, 9.8], [10.8, 11, 10.7])).toEqual(["worse"]);
    expect(markOf([10, 10.2, 9.8], [10.4, 10.5, 10.3])).toEqual([""]);
  });

  it("is doubtful if the rounds differ by as much as the commits", () => {
    expect(markOf([10, 11, 9], [10.8, 12, 10.7])).toEqual(["worse?"]);
  });

  it("is compared round by round, with the spread of the ratios", () => {
    expect(compareFigures(rounds([10, 20]), rounds([15, 24]))).toEqual([
      { name: "page", unit: "ms", there: 15, here: 19.5, ratio: 1.3, ratios: [1.2, 1.5], mark: "worse?" },
    ]);
  });

  it("that rises from zero is worse; zero twice is the same", () => {
    expect(markOf([0, 0], [1, 2])).toEqual(["worse"]);
    expect(markOf([0, 0], [0, 0])).toEqual([""]);
  });

  it("that one side lacks or has in another unit is reported as one-sided", () => {
    expect(compareFigures([], rounds([3]))).toEqual([{ name: "page", unit: "ms", only: "here", value: 3 }]);
    expect(compareFigures(rounds([3]), [[{ name: "page", value: 3, unit: "s" }]])).toEqual([
      { name: "page", unit: "ms", only: "there", value: 3 },
    ]);
  });
});

describe("the name of a bench", () => {
  const names = ["crawl", "crawl-scale", "ip-tree"];

  it("is matched exactly first, then as a part of names", () => {
    expect(benchesCalled("crawl", names)).toEqual(["crawl"]);
    expect(benchesCalled("craw", names)).toEqual(["crawl", "crawl-scale"]);
    expect(() => benchesCalled("nosuch", names)).toThrow(UsageError);
  });

  it("exists for each entry of the quick list", () => {
    const all = benchNames(join(project, "test/lab"));
    expect(quickBenches.filter(({ name }) => !all.includes(name))).toEqual([]);
  });
});

/** It uses our packages; value.txt has its figure. */
function repository(files: Readonly<Record<string, string>>): string {
  const root = temporaryFolder("bench-runner-");
  symlinkSync(join(project, "node_modules"), join(root, "node_modules"));
  put(root, {
    ".gitignore": "node_modules\n",
    "package.json": '{"type":"module"}',
    "package-lock.json": "{}",
    ...files,
  });
  mkdirSync(join(root, "test/lab"), { recursive: true });
  cpSync(join(project, "test/lab/figure.ts"), join(root, "test/lab/figure.ts"));
  git(root, "init", "-q");
  commit(root);
  return root;
}

function put(root: string, files: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
}

function git(root: string, ...args: readonly string[]): string {
  const who = ["-c", "user.name=test", "-c", "user.email=test@example.org"];
  return execFileSync("git", ["-C", root, ...who, ...args], { encoding: "utf8" }).trim();
}

function commit(root: string): void {
  git(root, "add", ".");
  git(root, "commit", "-qm", "one");
}

const checkouts = (root: string) => git(root, "worktree", "list").split("\n").length;
const leftOver = () => readdirSync(tmpdir()).filter((name) => name.startsWith("nearcrawl-benches-"));

const states = (name: string, from: string) =>
  `import { readFileSync } from "node:fs";
import { figure } from "./figure.ts";
figure("${name}", Number(readFileSync("${from}", "utf8")), "ms");`;

const quick = (...names: readonly string[]) => names.map((name) => ({ name, args: [] }));
const quietly = { say: () => {}, signal: new AbortController().signal };

describe("another commit", () => {
  it("is measured by our benches, and failures there are reported", async () => {
    const root = repository({
      "value.txt": "10",
      "test/lab/plain.bench.ts": 'throw new Error("replaced by ours")',
    });
    put(root, {
      "value.txt": "20",
      "new.txt": "30",
      "test/lab/plain.bench.ts": `${states("plain", "value.txt")}
if (process.env.NEARCRAWL_DATA !== "${sharedDataFolder}") throw new Error("other data");`,
      "test/lab/lacking.bench.ts": states("lacking", "new.txt"),
    });

    const all = await compareWith("HEAD", 1, { root, quick: quick("plain", "lacking"), ...quietly });

    expect(all).toEqual([
      {
        ...{ bench: "plain", type: "compared" },
        figures: [expect.objectContaining({ name: "plain", there: 10, here: 20, ratio: 2, mark: "worse" })],
      },
      {
        ...{ bench: "lacking", type: "failed", side: "there" },
        words: expect.stringContaining("no such file or directory, open 'new.txt'"),
      },
    ]);
    expect(checkouts(root)).toBe(1);
    expect(leftOver()).toEqual([]);
    const text = comparisonText(all, { commit: git(root, "rev-parse", "HEAD"), rounds: 1 });
    expect(text).toMatch(/^plain +plain +ms +10\.0 +20\.0 +2\.00 +2\.00 to 2\.00 +worse$/m);
    expect(text).toMatch(/^lacking +cannot be compared: .*new\.txt/m);
    expect(comparisonCode(all)).toBe(1);
    expect(comparisonCode(all.slice(1))).toBe(0);
  });

  it("must exist", async () => {
    const root = repository({});

    for (const name of ["nosuch", "--help", "HEAD:package.json", ""])
      await expect(commitNamed(root, name)).rejects.toThrow(`"${name}" names no commit of this repository`);
    expect(await commitNamed(root, "HEAD")).toBe(git(root, "rev-parse", "HEAD"));
  });
});

it.runIf(isLong)(
  "an interrupted bench ends its database server",
  async () => {
    const root = repository({});
    put(root, {
      "test/lab/endless.bench.ts": `import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { openDatabase } from "${project}/db/connect.ts";
const home = mkdtempSync(tmpdir() + "/home-");
await openDatabase({ databaseUrl: null, home, schema: "bench" });
writeFileSync("${root}/home", home);
setInterval(() => {}, 1000);`,
    });
    const scratch = temporaryFolder("nearcrawl-bench-scratch-");
    chmodSync(scratch, 0o711);
    const stopping = new AbortController();

    const ending = runOpenly({ root, scratch }, { name: "endless", args: [] }, stopping.signal).catch(
      (error: Error) => error.message,
    );
    await until(() => existsSync(join(root, "home")), 60_000);
    const { pid } = readPidFile(readFileSync(join(root, "home"), "utf8"))!;
    stopping.abort(new Error("interrupted"));

    expect(await ending).toBe("interrupted");
    // Its pid file is removed a moment before it ends.
    await until(
      () => !existsSync(`/proc/${pid}/cmdline`) || readFileSync(`/proc/${pid}/cmdline`).length === 0,
      10_000,
    );
  },
  90_000,
);
