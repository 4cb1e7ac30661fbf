/** Puts what an evaluation found into its folder: pictures, and sections of the page. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { UsageError } from "#core/errors";
import { type PageSection, withSections } from "../../evaluate/page.ts";
import { provenance } from "../../evaluate/provenance.ts";
import type { EvaluatedFigure } from "./compute-figures.ts";

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
