/**
 * What a page costs in CPU from its bytes to what is shipped for it: 254 real pages (142 KB in the mean, 106 links) and the
 * 40 KB pages of the crawl benchmark, beside htmlparser2 with words and links alone, each side in a process of its own,
 * taking turns; all threads of the process counted. Then where it goes, by stage. Run: npm run bench -- extract
 * With `--against FOLDER`, a checkout of another commit (git worktree add), that one's code takes turns with ours, after it
 * was seen to give the same results on real pages, on the html5lib suites and on damaged pages. With `check`, nothing but
 * that; with `short`, fewer rounds. Exit code 1: some results differ.
 */
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { build } from "esbuild";
import { seededRandom } from "#core/random";
import { readStopWords } from "#crawler/extract/stop-words";
import { hostileBytes, hostileText, pick } from "../fuzz/mutate.ts";
import { sharedData } from "../support/shared-data.ts";
import { MeasuredProcess } from "./crawl/measured-process.ts";
import { benchPages } from "./crawl/page-markup.ts";
import { spread } from "./crawl/spread.ts";
import { type StageProfile, stageProfile } from "./crawl/stage-profile.ts";
import { figure } from "./figure.ts";
import { median } from "./runner/compare-figures.ts";

const wordsSide = join(import.meta.dirname, "extract/words-side.mjs");
const root = join(import.meta.dirname, "../..");
const rounds = process.argv.includes("short") ? 3 : 9;
const warmUpPasses = 4;
const profiledPasses = 4;
const other = process.argv[process.argv.indexOf("--against") + 1];
const against = process.argv.includes("--against") && other !== undefined ? resolve(other) : null;

const damagedCount = 1500;
const markupTokens =
  '<a href="|<p>|</div>|<!--|-->|<title>|<script>|</script>|<svg>|<math>|<table>|<li>|<h1>|<template>|&amp;|&#x110;|<![CDATA[|]]>|<meta charset="|<base href="//x.example/é/">|class="nav|hidden|<noscript>|<textarea>|<time datetime="2020-02-02">|\u00ad|\u0301|中文|ไทย|привет'.split(
    "|",
  );

/** By source file; the first that fits has it. */
const stages: readonly (readonly [pattern: RegExp, stage: string])[] = [
  [/extract\/(charset|source-text)|html-encoding-sniffer|@exodus|chardet/, "decoding"],
  [/extract\/(scan-html|html-tags|open-elements)|entities/, "scanning HTML"],
  [
    /extract\/(page-metadata|structured-data|page-dates|robots|document-kind)|preferences\//,
    "metas, JSON-LD, dates",
  ],
  [/extract\/(read-page|text-blocks|extract-page)|protocol\/composed/, "text blocks, main text"],
  [/extract\/language|node_modules\/eld/, "language"],
  [/extract\/(lexeme-table|dictionar|stem|stop)|snowball/, "words to lexemes"],
  [/extract\/(lexemes|tokens|site-tokens|markup-tokens)/, "tokens, positions, vector"],
  [/extract\/(read-links|link-|resolve-url)|traps\/|core\/ip/, "links"],
  [/extract\/extract-list/, "digest, lists"],
];

type PageSet = "real" | "made" | "suites" | "damaged";
interface BenchPage {
  readonly url: string;
  readonly contentType: string;
  readonly digest: string;
  /** In base64. */
  readonly bytes: string;
}

const running: MeasuredProcess[] = [];
const scratch = mkdtempSync(join(tmpdir(), "nearcrawl-bench-"));
try {
  await run();
} finally {
  for (const side of running) await side.stop();
  rmSync(scratch, { recursive: true, force: true });
}
process.exit();

async function run(): Promise<void> {
  const real = realPages();
  const checked = against === null ? {} : { suites: suitePages(), damaged: damagedPages(real) };
  const sets = { real, made: madePages(), ...checked };
  for (const [name, pages] of Object.entries(sets)) console.log(`${name}: ${describe(pages)}`);
  const file = join(scratch, "pages.json");
  writeFileSync(file, JSON.stringify(sets));
  const ours = await bundledSide("ours", root, file);
  const theirs = against === null ? [] : [await bundledSide("against", against, file)];
  const words = { name: "htmlparser2 and words", process: await started(wordsSide, file) };
  for (const side of theirs) await checkSame(ours.process, side.process, sets);
  if (process.argv.includes("check")) return;
  for (const set of ["real", "made"] as const) {
    if (sets[set].length > 0) await compare([ours, ...theirs, words], set, sets[set].length);
  }
  if (sets.real.length > 0) await showStages([ours, ...theirs], sets.real.length);
}

/** Empty, said on standard error, where the folder of real pages is absent. */
function realPages(): BenchPage[] {
  const manifest = sharedData("suites/pages/manifest.json");
  if (manifest === null) return [];
  const listed = JSON.parse(readFileSync(manifest, "utf8")) as {
    file: string;
    url: string;
    contentType: string;
  }[];
  return listed.map(({ file, url, contentType }) =>
    benchPage(url, contentType, readFileSync(sharedData(`suites/pages/${file}`)!)),
  );
}

/** The documents of html5lib's suites. */
function suitePages(): BenchPage[] {
  const files = ["html/html5lib-tree-construction.json", "html/html5lib-tokenizer.json"];
  return files.flatMap((file) => {
    const suite = sharedData(`suites/${file}`);
    if (suite === null) return [];
    const cases = JSON.parse(readFileSync(suite, "utf8")) as { data?: string; input?: string }[];
    return cases.map((one, index) =>
      benchPage(
        `https://suite.example/${file}/${index}`,
        "text/html",
        Buffer.from(one.data ?? one.input ?? ""),
      ),
    );
  });
}

/** Real pages that were cut, spliced and soiled, under several types and charsets; the same in every run. */
function damagedPages(real: readonly BenchPage[]): BenchPage[] {
  const random = seededRandom(22);
  const seeds = real.map(({ bytes }) => Buffer.from(bytes, "base64").toString("utf8").slice(0, 60_000));
  if (seeds.length === 0) return [];
  return Array.from({ length: damagedCount }, (_, index) => {
    const text = hostileText(random, { seeds, tokens: markupTokens });
    return benchPage(
      `https://damaged.example/a/${index}?b=1`,
      pick(random, [
        "text/html",
        "text/html; charset=utf-8",
        "text/html; charset=iso-8859-1",
        "application/xhtml+xml",
        "text/plain",
      ]),
      hostileBytes(random, text),
    );
  });
}

function madePages(): BenchPage[] {
  return benchPages(60).typical.map((html, index) =>
    benchPage(`https://made.example/p/${index}`, "text/html; charset=utf-8", Buffer.from(html)),
  );
}

function benchPage(url: string, contentType: string, bytes: Buffer): BenchPage {
  const digest = createHash("sha256").update(bytes).digest("hex");
  return { url, contentType, digest, bytes: bytes.toString("base64") };
}

function describe(pages: readonly BenchPage[]): string {
  const bytes = pages.reduce((sum, page) => sum + Buffer.byteLength(page.bytes, "base64"), 0);
  return `${pages.length} pages of ${Math.round(bytes / Math.max(1, pages.length) / 1000)} KB in the mean`;
}

async function bundled(checkout: string, name: string): Promise<string> {
  const outfile = join(scratch, `${name}.mjs`);
  await build({
    stdin: {
      contents: readFileSync(join(import.meta.dirname, "extract/extraction-side.mjs"), "utf8"),
      resolveDir: checkout,
    },
    outfile,
    bundle: true,
    platform: "node",
    target: "node20",
    format: "esm",
    conditions: ["nearcrawl-source"],
    external: ["zlib-sync"],
    absWorkingDir: checkout,
    define: { bundledStopWords: JSON.stringify(readStopWords()) },
    banner: { js: "import{createRequire as __cr}from'node:module';const require=__cr(import.meta.url);" },
    logLevel: "warning",
  });
  return outfile;
}

async function started(script: string, file: string): Promise<MeasuredProcess> {
  const side = new MeasuredProcess(script, { args: [file] });
  running.push(side);
  await side.ask({ type: "usage" }, "ready");
  return side;
}

interface Side {
  readonly name: string;
  readonly process: MeasuredProcess;
}

interface BundledSide extends Side {
  readonly bundle: string;
}

async function bundledSide(name: string, checkout: string, file: string): Promise<BundledSide> {
  const bundle = await bundled(checkout, name);
  return { name, bundle, process: await started(bundle, file) };
}

/** What both give for each page, by digests. */
async function checkSame(
  ours: MeasuredProcess,
  theirs: MeasuredProcess,
  sets: Partial<Record<PageSet, readonly BenchPage[]>>,
): Promise<void> {
  for (const [set, pages] of Object.entries(sets)) {
    const [one, two] = await Promise.all(
      [ours, theirs].map((side) => side.ask<{ prints: string[] }>({ type: "print", set }, "printed")),
    );
    const others = pages.filter((_, index) => one!.prints[index] !== two!.prints[index]);
    console.log(`${set}: ${pages.length - others.length} of ${pages.length} pages with the same results`);
    for (const { url } of others.slice(0, 20)) console.log(`  another: ${url}`);
    if (others.length > 0) process.exitCode = 1;
  }
}

async function compare(sides: readonly Side[], set: PageSet, pages: number): Promise<void> {
  const passes = Math.max(1, Math.round(254 / pages));
  const measured = sides.map((side) => ({ ...side, ms: [] as number[] }));
  for (const side of sides)
    await side.process.ask({ type: "pass", set, passes: warmUpPasses * passes }, "passed");
  for (let round = 0; round < rounds; round++) {
    for (const side of measured) {
      const before = await side.process.usage();
      await side.process.ask({ type: "pass", set, passes }, "passed");
      side.ms.push(((await side.process.usage()).cpuMs - before.cpuMs) / (passes * pages));
    }
  }
  figure(`${set} pages`, median(measured[0]!.ms), "ms CPU a page");
  console.log(`\n${set.padEnd(24)} ms CPU a page           ours in its`);
  for (const side of measured) {
    const ratios = side.ms.map((ms, round) => measured[0]!.ms[round]! / ms);
    console.log(`${side.name.padEnd(24)} ${spread(side.ms).padEnd(23)} ${spread(ratios)}`);
  }
}

/** By stage, ours and the other checkout's side by side; then our functions. */
async function showStages(sides: readonly BundledSide[], pages: number): Promise<void> {
  const profiles: StageProfile[] = [];
  for (const side of sides) profiles.push(await profileOf(side));
  const cell = (ms: number) => (ms / pages / profiledPasses).toFixed(3).padStart(10);
  console.log("\nwhere it goes on real pages, ms a page of the profiler's samples");
  console.log(`  ${"".padEnd(30)}${sides.map(({ name }) => name.padStart(10)).join("")}`);
  for (const { name } of profiles[0]!.stages) {
    const times = profiles.map((profile) => profile.stages.find((stage) => stage.name === name)?.ms ?? 0);
    console.log(`  ${name.padEnd(30)}${times.map(cell).join("")}`);
  }
  console.log("functions with the most time of their own");
  for (const { name, ms } of profiles[0]!.functions.slice(0, 40)) console.log(`${cell(ms)}  ${name}`);
}

async function profileOf({ process, bundle }: BundledSide): Promise<StageProfile> {
  const file = join(scratch, "profile.json");
  await process.profile(file, () =>
    process.ask({ type: "pass", set: "real", passes: profiledPasses }, "passed"),
  );
  return stageProfile(file, bundle, stages);
}
