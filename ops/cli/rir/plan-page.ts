/**
 * The differences of a plan as one page to browse: a file that needs no server and loads nothing. The rows
 * stand in it as JSON, a table of a hundred at a time is drawn from them; without scripts the summary is
 * still there. Bounded: of each kind the first 50,000, and the page says how many more there are.
 */
import { createWriteStream } from "node:fs";
import { rename } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { plainLinks, planReport, shrinkageWarning } from "#coordinator/registry/plan-page";
import type { Difference, SubnetWords } from "#rir-import/database/differences";
import type { ImportPlan } from "#rir-import/plan";
import { shrunkRegistries } from "#rir-import/shrinkage";
import { planPageScript, planPageStyle } from "./plan-page-parts.ts";

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
