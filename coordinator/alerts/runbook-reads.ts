/** The runbook's paragraphs about alerts (ops/runbook/monitoring.md, which goes with the package), read once. */
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** By the alert's name: the Markdown beneath its heading. Empty where the package has no runbook. */
export type Runbook = ReadonlyMap<string, string>;

let known: Runbook | null = null;

export function readRunbook(): Runbook {
  known ??= sectionsOf(runbookText());
  return known;
}

/** Headings of the third level name alerts. */
export function sectionsOf(markdown: string): Runbook {
  const parts = markdown.split(/^### (?=[a-z0-9-]+$)/m).slice(1);
  return new Map(
    parts.map((part) => {
      const [name = "", ...rest] = part.split("\n");
      return [
        name,
        rest
          .join("\n")
          .split(/^#{1,3} /m)[0]!
          .trim(),
      ] as const;
    }),
  );
}

/** Beside the source, further up from dist/. */
function runbookText(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (true) {
    const file = join(folder, "ops", "runbook", "monitoring.md");
    if (existsSync(file)) return readFileSync(file, "utf8");
    const parent = dirname(folder);
    if (parent === folder) return "";
    folder = parent;
  }
}
