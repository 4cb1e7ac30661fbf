/** Puts what an evaluation found into its folder: pictures, and sections of the page. */

import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { UsageError } from "#core/errors";
import type { EvaluationContext, Figure, Section } from "../../evaluate/figure.ts";
import { secondsText } from "../rir/progress-text.ts";
import { workProgress } from "../simulate/work-progress.ts";

const pageFile = "delegation.md";
const resultsFolder = "test/bench/results";

/**
 * Where it goes, settled before anything is computed. Null for `out`: the project's results, or a new folder when the worlds
 * are small. UsageError where the project is not around.
 */
export function evaluationFolder(out: string | null, quick: boolean): string {
  if (out !== null) mkdirSync(out, { recursive: true });
  else if (!quick && !existsSync(resultsFolder)) {
    throw new UsageError(`there is no ${resultsFolder} here: say --out <folder>`);
  }
  return out ?? (quick ? mkdtempSync(join(tmpdir(), "nearcrawl-evaluate-")) : resultsFolder);
}

/** Returns the files. */
export function writeEvaluation(
  evaluated: readonly EvaluatedFigure[],
  { folder, quick }: { readonly folder: string; readonly quick: boolean },
): string[] {
  const pictures = evaluated.flatMap(({ section }) => section.pictures);
  for (const { file, svg } of pictures) writeFileSync(join(folder, file), svg);
  const page = join(folder, pageFile);
  const before = existsSync(page) ? readFileSync(page, "utf8") : "";
  const measured = provenance(new Date());
  const how = quick ? " (small worlds: for a look, not for conclusions)" : "";
  const sections = evaluated.map(
    ({ name, title, section }): PageSection => ({
      name,
      title,
      text: section.text,
      provenance: `${measured}${how} \`npm run evaluate -- ${name === "live" ? "--live" : `--only ${name}`}\``,
    }),
  );
  writeFileSync(page, withSections(before, sections));
  return [page, ...pictures.map(({ file }) => join(folder, file))];
}

// When, at which commit and on which machine something was measured, for the pages of results.

function provenance(now: Date): string {
  const processors = cpus();
  const machine = `${processors.length} × ${processors[0]?.model.trim() ?? "unknown processor"}`;
  const date = now.toISOString().slice(0, 10);
  return `Measured on ${date} at ${commit()}, ${machine}, Node ${process.versions.node}.`;
}

/** `commit 1a2b3c4`, or that it is not known, as in an installed package. */
function commit(): string {
  const git = (...words: string[]) =>
    execFileSync("git", words, {
      encoding: "utf8",
      timeout: 10_000,
      stdio: ["ignore", "pipe", "ignore"],
    }).trim();
  try {
    const changed = git("status", "--porcelain", "--untracked-files=no") !== "";
    return `commit ${git("rev-parse", "--short", "HEAD")}${changed ? " with changes" : ""}`;
  } catch {
    return "an unknown commit";
  }
}

/**
 * The page that an evaluation writes: each section stands between two markers, so that one of them can be made
 * anew and whatever people wrote around them stays.
 */
interface PageSection {
  readonly name: string;
  readonly title: string;
  readonly text: string;
  /** When, at which commit and on which machine it was measured. */
  readonly provenance: string;
}

const headline = "# Delegation";

/** The page with these sections in place of the earlier ones of the same name; new ones come at the end. */
export function withSections(page: string, sections: readonly PageSection[]): string {
  return sections.reduce(withSection, page.trim() === "" ? `${headline}\n` : page);
}

function withSection(page: string, section: PageSection): string {
  const [begin, end] = [`<!-- evaluate ${section.name}: begin -->`, `<!-- evaluate ${section.name}: end -->`];
  const block = `${begin}\n## ${section.title}\n${section.text}\n\n${section.provenance}\n${end}`;
  const from = page.indexOf(begin);
  const to = page.indexOf(end, from);
  if (from < 0 || to < 0) return `${page.trimEnd()}\n\n${block}\n`;
  return `${page.slice(0, from)}${block}${page.slice(to + end.length)}`;
}

// Makes the figures that are computed, one after the other, and says how far it is.

export interface EvaluatedFigure {
  readonly name: string;
  readonly title: string;
  readonly section: Section;
}

export function computeFigures(
  figures: readonly Figure[],
  context: Omit<EvaluationContext, "onProgress">,
): EvaluatedFigure[] {
  return figures.map((figure, index) => {
    const before = process.cpuUsage();
    const progress = workProgress("targets");
    const onProgress = (what: string, done: number, total: number) =>
      progress.show(`${index + 1}/${figures.length} ${figure.name}: ${what}`, done, total);
    const section = figure.measure({ ...context, onProgress });
    progress.done();
    const { user, system } = process.cpuUsage(before);
    const seconds = secondsText((user + system) / 1e6);
    process.stderr.write(`${figure.name}: ${seconds} of CPU time\n`);
    return { name: figure.name, title: figure.title, section };
  });
}
