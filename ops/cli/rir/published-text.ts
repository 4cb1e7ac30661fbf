/** What an import changes of where networks publish that their ranges lie, as `nearcrawl rir plan` and `apply` say it. */
import type { PublishedChange, PublishedPlan } from "#rir-import/database/published-lists";
import { type Column, formatTable, printable } from "../output.ts";

const count = (value: number) => value.toLocaleString("en");
const left = (title: string): Column => ({ title });
const right = (title: string): Column => ({ title, align: "right" });

/** Empty where nothing is published, and nothing was. */
export function publishedText({ lists, ranges, sources, geofeeds, ...plan }: PublishedPlan): string {
  if (lists === 0 && sources.length === 0) return "";
  const named =
    geofeeds.lists === 0
      ? ""
      : `; ${count(geofeeds.lists)} of the lists, with ${count(geofeeds.ranges)} ranges, are geofeeds that registry objects name`;
  return [
    `published places: ${count(lists)} lists, ${count(ranges)} ranges; ${count(plan.added)} added, ${count(plan.removed)} removed, ${count(plan.moved)} at another place${named}`,
    ...(sources.length === 0 ? [] : [sourceTable(sources)]),
    ...sources.flatMap(movedText),
  ].join("\n");
}

function sourceTable(sources: readonly PublishedChange[]): string {
  const figures = ["ranges", "places", "without place", "added", "removed", "moved"];
  return formatTable(
    [left("source"), left("list of"), ...figures.map(right)],
    sources.map((source) => [
      printable(source.source, 80),
      source.listDate ?? "",
      ...[source.ranges, source.places, source.withoutPlace].map(count),
      ...[source.added, source.removed, source.moved].map(count),
    ]),
  );
}

function movedText(change: PublishedChange): readonly string[] {
  const { source, moved, rangesBefore, movedSamples, isHeldBack } = change;
  const samples = movedSamples.map(
    ({ range, before, after }) => `  ${range}: ${placeText(before)} → ${placeText(after)}`,
  );
  if (!isHeldBack) return samples;
  const share = ((100 * moved) / rangesBefore).toFixed(1);
  return [
    `WARNING: ${printable(source, 120)} moves ${count(moved)} of its ${count(rangesBefore)} ranges (${share} %) to other places: held back, what is in force goes on; if that is meant: --yes-moved "${printable(source, 120)}"`,
    ...samples,
  ];
}

const placeText = (place: string | null) => (place === null ? "no place" : printable(place, 60));
