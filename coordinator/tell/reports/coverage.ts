/** How much of each country and language is crawled and how fresh it is, on one day and over time. */

export interface CoverageFigures {
  readonly hosts: number;
  readonly pages: number;
  readonly bytes: number;
  /** Pages whose age is known: all, or a sample of a large index. */
  readonly sampledPages: number;
  /** Sampled pages fetched within 7 and 30 days. */
  readonly fresh7: number;
  readonly fresh30: number;
}

/** One day's figures of a country and language; empty texts when unknown. */
export interface CoverageRow extends CoverageFigures {
  readonly country: string;
  readonly language: string;
}

export interface CoverageLine extends CoverageFigures {
  /** The code of a country or language; empty when unknown. */
  readonly key: string;
}

const none: CoverageFigures = { hosts: 0, pages: 0, bytes: 0, sampledPages: 0, fresh7: 0, fresh30: 0 };

export function addedFigures(all: Iterable<CoverageFigures>): CoverageFigures {
  let sum = none;
  for (const one of all)
    sum = {
      hosts: sum.hosts + one.hosts,
      pages: sum.pages + one.pages,
      bytes: sum.bytes + one.bytes,
      sampledPages: sum.sampledPages + one.sampledPages,
      fresh7: sum.fresh7 + one.fresh7,
      fresh30: sum.fresh30 + one.fresh30,
    };
  return sum;
}

/** Most pages first. */
export function coverageLines(rows: readonly CoverageRow[], by: "country" | "language"): CoverageLine[] {
  const grouped = new Map<string, CoverageRow[]>();
  for (const row of rows) {
    const group = grouped.get(row[by]);
    if (group === undefined) grouped.set(row[by], [row]);
    else group.push(row);
  }
  return [...grouped]
    .map(([key, group]) => ({ key, ...addedFigures(group) }))
    .sort((a, b) => b.pages - a.pages || b.hosts - a.hosts || (a.key < b.key ? -1 : 1));
}

export interface CoverageFilter {
  /** `2026-03-01`; null: the latest. */
  readonly day: string | null;
  readonly country: string | null;
  readonly language: string | null;
}

/** `2026-03-01`. */
export function isDay(text: string): boolean {
  if (!/^[12]\d{3}-\d\d-\d\d$/.test(text)) return false;
  const at = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(at.getTime()) && at.toISOString().startsWith(text);
}
