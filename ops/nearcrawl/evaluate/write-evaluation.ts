/** Puts what an evaluation found into its folder: pictures, and sections of the page. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type PageSection, withSections } from "#ops/evaluate/page";
import { provenance } from "#ops/evaluate/provenance";
import type { EvaluatedFigure } from "./compute-figures.ts";

const pageFile = "delegation.md";
const resultsFolder = "test/bench/results";

/** Null for `out`: the project's results, or a new folder when the worlds were small. Returns the files. */
export function writeEvaluation(
  evaluated: readonly EvaluatedFigure[],
  { out, quick }: { readonly out: string | null; readonly quick: boolean },
): string[] {
  const folder = out ?? (quick ? mkdtempSync(join(tmpdir(), "nearcrawl-evaluate-")) : resultsFolder);
  mkdirSync(folder, { recursive: true });
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
