/**
 * The differences of a plan as one page to browse: a file that needs no server and loads nothing. The rows
 * stand in it as JSON, a table of a hundred at a time is drawn from them; without scripts the summary is
 * still there. Bounded: of each kind the first 50,000, and the page says how many more there are.
 */
import { createWriteStream } from "node:fs";
import { rename } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { Command } from "commander";
import { plainLinks, planReport, shrinkageWarning } from "#coordinator/registry/plan-page";
import type { Difference, SubnetWords } from "#rir-import/database/differences";
import { type ImportPlan, planImport } from "#rir-import/plan";
import { shrunkRegistries } from "#rir-import/shrinkage";
import { boundedInteger } from "../bounded-number.ts";
import { printAnswer } from "../output.ts";
import { type SourceOptions, sourcesOf, withSources, yesMovedOption } from "./apply-command.ts";
import { onDatabase, withMigrated } from "./cache-options.ts";
import { withProgress } from "./lookup-command.ts";
import { planText } from "./plan-text.ts";

const mostRows = 50_000;
const kinds = ["added", "removed", "changed", "moved", "returned"] as const;

/** Writes the page beside `file` and then into its place. */
export async function writePlanPage(
  file: string,
  plan: ImportPlan,
  differences: (kind: Difference["kind"]) => Iterable<Difference>,
): Promise<void> {
  const temporary = `${file}.new`;
  await pipeline(Readable.from(planPage(plan, differences)), createWriteStream(temporary));
  await rename(temporary, file);
}

function* planPage(
  plan: ImportPlan,
  differences: (kind: Difference["kind"]) => Iterable<Difference>,
): Generator<string> {
  const against = plan.generation === null ? "an empty tree" : `generation ${plan.generation}`;
  yield `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>Registry import: differences</title>
<style>${planPageStyle}</style>
<h1>What the import would change</h1>
<p>${count(plan.state.subnets)} subnets in the files, compared with ${against}. Nothing is changed yet.</p>
${shrinkageWarning(shrunkRegistries(plan.registries))?.markup ?? ""}
${planReport(plan, plainLinks).markup}
<section><h2>Each difference</h2>
<nav id="kinds" aria-label="kinds of change"></nav>
<p><label>Show only what contains <input id="filter" type="search" placeholder="a range, holder, country or name"></label> <span id="shown" role="status"></span></p>
<table id="rows"><thead></thead><tbody></tbody></table>
<p><button id="earlier" type="button">Earlier</button> <button id="later" type="button">Later</button></p>
</section>
<noscript><p>The list of differences needs scripts.</p></noscript>
`;
  yield '<script type="application/json" id="differences">{';
  for (const [index, kind] of kinds.entries()) {
    yield `${index === 0 ? "" : ","}"${kind}":[`;
    yield* rowsOf(differences(kind));
    yield "]";
  }
  yield `}</script>
<script>const totals = ${jsonInPage(Object.fromEntries(kinds.map((kind) => [kind, plan.changes[kind]])))};
${planPageScript}</script>
`;
}

function* rowsOf(differences: Iterable<Difference>): Generator<string> {
  let rows = 0;
  for (const { range, before, after } of differences) {
    yield `${rows === 0 ? "" : ","}${jsonInPage([range, wordsOf(before), wordsOf(after)])}`;
    rows += 1;
    if (rows === mostRows) return;
  }
}

const wordsOf = (subnet: SubnetWords | null) =>
  subnet === null
    ? null
    : [subnet.holder ?? "", subnet.country ?? "", subnet.registry, subnet.name, subnet.under ?? ""];

/** JSON that may stand within a script element: no `<` that could end it. */
const jsonInPage = (value: unknown) =>
  JSON.stringify(value).replace(
    /[<\u2028\u2029]/g,
    (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );

const count = (value: number) => value.toLocaleString("en");

/** Style and script of the page of differences (plan-page.ts). */

const planPageStyle = `
:root { color-scheme: light dark; --line: #8884; --faint: #8883; --number: tabular-nums; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; padding: 0 1rem; max-width: 1200px; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .6rem; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 165px), 1fr)); gap: .6rem; margin: 1rem 0; }
.tile { border: 1px solid var(--line); border-radius: 8px; padding: .6rem .9rem; }
.tile dd { margin: 0; } .figure { display: block; font-size: 1.4rem; font-weight: 600; font-variant-numeric: var(--number); }
.small, dt { opacity: .75; font-size: .85rem; }
.warning { border-left: 4px solid #c2410c; background: var(--faint); padding: .6rem 1rem; border-radius: 4px; }
.scroll { overflow-x: auto; } .mono { font-family: ui-monospace, monospace; font-size: .9em; } .nowrap { white-space: nowrap; }
details { margin: .6rem 0; } summary { cursor: pointer; }
nav { display: flex; flex-wrap: wrap; gap: .4rem; margin: 0 0 .6rem; }
button { font: inherit; padding: .3rem .8rem; border: 1px solid var(--line); border-radius: 6px; background: none; color: inherit; cursor: pointer; }
button[aria-pressed=true] { background: var(--faint); font-weight: 600; } button:disabled { opacity: .4; cursor: default; }
input { font: inherit; padding: .3rem .5rem; width: min(24rem, 100%); box-sizing: border-box; }
table { border-collapse: collapse; width: 100%; } th { text-align: left; font-weight: 400; } thead th { font-weight: 600; }
th, td { padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--line); vertical-align: top; } td, .break { overflow-wrap: anywhere; }
.number { text-align: right; font-variant-numeric: var(--number); white-space: nowrap; }
#rows td:first-child { font-family: ui-monospace, monospace; font-size: .9em; }
.was { opacity: .7; } .is { font-weight: 600; }
@media (max-width: 600px) { #rows thead { display: none; } #rows td { display: block; border: 0; padding: 0; } #rows tr { display: block; padding: .6rem 0; border-bottom: 1px solid var(--line); } }
`;

/** Runs in the page; `totals` is a constant before it. */
const planPageScript = `
const all = JSON.parse(document.getElementById("differences").textContent);
const perPage = 100;
const fields = ["holder", "country", "registry", "name", "under"];
let kind = Object.keys(all).find((name) => all[name].length > 0) || "added";
let start = 0;
const element = (id) => document.getElementById(id);
const number = (value) => value.toLocaleString("en");

for (const name of Object.keys(all)) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = name + " " + number(totals[name]);
  button.dataset.kind = name;
  button.onclick = () => { kind = name; start = 0; draw(); };
  element("kinds").append(button);
}
element("filter").oninput = () => { start = 0; draw(); };
element("earlier").onclick = () => { start = Math.max(0, start - perPage); draw(); };
element("later").onclick = () => { start += perPage; draw(); };

function matching() {
  const wanted = element("filter").value.trim().toLowerCase();
  if (wanted === "") return all[kind];
  return all[kind].filter((row) => JSON.stringify(row).toLowerCase().includes(wanted));
}

function cell(before, after, index) {
  const td = document.createElement("td");
  const was = before ? before[index] : "";
  const is = after ? after[index] : "";
  if (before && after && was !== is) {
    const old = document.createElement("span");
    old.className = "was";
    old.textContent = (was || "nothing") + " → ";
    const now = document.createElement("span");
    now.className = "is";
    now.textContent = is || "nothing";
    td.append(old, now);
  } else td.textContent = after ? is : was;
  return td;
}

function draw() {
  const rows = matching();
  if (start >= rows.length) start = 0;
  const shown = rows.slice(start, start + perPage);
  for (const button of element("kinds").children) button.setAttribute("aria-pressed", String(button.dataset.kind === kind));
  const head = document.createElement("tr");
  for (const title of ["range", ...fields]) head.append(Object.assign(document.createElement("th"), { textContent: title }));
  element("rows").tHead.replaceChildren(head);
  element("rows").tBodies[0].replaceChildren(...shown.map(([range, before, after]) => {
    const tr = document.createElement("tr");
    tr.append(Object.assign(document.createElement("td"), { textContent: range }), ...fields.map((_, index) => cell(before, after, index)));
    return tr;
  }));
  const missing = totals[kind] - all[kind].length;
  element("shown").textContent = rows.length === 0 ? "nothing" : number(start + 1) + " to " + number(start + shown.length) + " of " + number(rows.length)
    + (missing > 0 ? "; " + number(missing) + " more are not in this page" : "");
  element("earlier").disabled = start === 0;
  element("later").disabled = start + perPage >= rows.length;
}
draw();
`;

// `nearcrawl rir plan`: what an import would change.

type Options = SourceOptions & {
  readonly samples: number;
  readonly page?: string;
  readonly yesMoved?: readonly string[];
};

const examples = `
Examples:
  nearcrawl rir plan --cache
  nearcrawl rir plan downloads/ --samples 50
  nearcrawl rir plan downloads/ --page differences.html`;

export function planCommand(): Command {
  return onDatabase(withSources(new Command("plan")))
    .description("say what an import would change, and change nothing")
    .option("--samples <n>", "samples of each kind of change", boundedInteger(0, 100_000), 10)
    .option("--page <file>", "write the differences as a page to browse")
    .addOption(yesMovedOption())
    .addHelpText("after", examples)
    .action(async (named: string[], options: Options) => {
      const { samples, page } = options;
      const sources = await sourcesOf(named, options);
      const plan = await withProgress((onProgress) =>
        withMigrated(options, (database) =>
          planImport(database, sources, {
            onProgress,
            samples,
            yesMoved: options.yesMoved ?? [],
            ...(page && {
              onDifferences: (plan, differences) => writePlanPage(page, plan, differences),
            }),
          }),
        ),
      );
      const written = page ? `\n\nthe differences to browse: ${page}` : "";
      printAnswer(options, plan, planText(plan) + written);
    });
}
