/** The parts of a split leaf, as a table for people. */
import type { FinerReport } from "#coordinator/delegation/overrides/reads";
import { rttText } from "#core/format";
import { formatTable } from "./output.ts";

export function finerLines(parts: readonly FinerReport[]): string[] {
  if (parts.length === 0) return [];
  const rows = parts.map((part) => [
    part.range ?? "",
    part.crawler.name,
    rttText(part.rttMs),
    rttText(part.subnetRttMs),
  ]);
  return [
    formatTable(
      [
        { title: "Part" },
        { title: "Crawler" },
        { title: "RTT", align: "right" },
        { title: "From the subnet's crawler", align: "right" },
      ],
      rows,
    ),
  ];
}
