/** The parent and the children of a coordinator, for people at a terminal. */

import type { Coordinators, RelatedCoordinator } from "#coordinator/federation/exchange-ports";
import { linkWords, ownsWords, parentAwayWords, standingWords } from "#coordinator/federation/page";
import { formatTable } from "./output.ts";
import { printable } from "./printable.ts";

export function coordinatorsText(coordinators: Coordinators, now: Date): string {
  const { parent, children } = coordinators;
  const away = parentAwayWords(parent);
  const rows = [
    ...(parent === null ? [] : [relatedRow({ ...parent, owns: ["what is not ours"] }, "parent", now)]),
    ...children.map((child) => relatedRow(child, "child", now)),
  ];
  const lines = [standingWords(coordinators), ...(away === null ? [] : [away])].map((line) =>
    printable(line, 1000),
  );
  return rows.length === 0 ? lines.join("\n") : `${lines.join("\n")}\n\n${relatedTable(rows)}`;
}

function relatedRow(one: RelatedCoordinator, kind: string, now: Date): string[] {
  const counts = [one.waiting, one.urlsSent, one.urlsReceived, one.urlsDropped].map((count) =>
    count.toLocaleString("en-GB"),
  );
  return [
    printable(one.name, 60),
    kind,
    printable(ownsWords(one), 50),
    printable(linkWords(one, now), 90),
    ...counts,
  ];
}

function relatedTable(rows: readonly string[][]): string {
  const left = ["coordinator", "", "owns", "state"].map((title) => ({ title }));
  const right = ["waiting", "sent", "received", "given up"].map((title) => ({
    title,
    align: "right" as const,
  }));
  return formatTable([...left, ...right], rows);
}
