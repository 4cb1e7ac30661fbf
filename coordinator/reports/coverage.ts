/** How much of each country and language is crawled, and how fresh it is: on one day, and over time. */

/** What is counted of a group of hosts. */
export interface CoverageFigures {
  readonly hosts: number;
  readonly pages: number;
  readonly bytes: number;
  /** Pages of which the age is known: all, or a part of a large index. */
  readonly sampledPages: number;
  /** Of those: fetched within 7 and 30 days. */
  readonly fresh7: number;
  readonly fresh30: number;
}

/** A day's figures of a country and language; empty texts: not known. */
export interface CoverageRow extends CoverageFigures {
  readonly country: string;
  readonly language: string;
}

export interface CoverageLine extends CoverageFigures {
  /** A country's or a language's code; empty: not known. */
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
  const grouped = Map.groupBy(rows, (row) => row[by]);
  return [...grouped]
    .map(([key, group]) => ({ key, ...addedFigures(group) }))
    .sort((a, b) => b.pages - a.pages || b.hosts - a.hosts || (a.key < b.key ? -1 : 1));
}
