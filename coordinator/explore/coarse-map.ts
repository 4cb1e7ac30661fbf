/** A tile in few cells, each with its value in words: what a terminal can draw. */

import { registries } from "../subnets/subnet.ts";
import { indexOfCell } from "./hilbert.ts";
import { ageStepsHours, type CellPaint, loadStepsPagesPerDay, rttStepsMs, stepOf } from "./paint.ts";
import { cellsPerTile, type Tile } from "./space.ts";
import { ageLabels, type CrawlerName, loadLabels, rttLabels } from "./summary.ts";
import { emptyCells, mergeCells, noRtt, type TileCells } from "./tile.ts";
import { tileCorner } from "./tile-picture.ts";
import type { ExploredWorld } from "./world.ts";

/** A value in words; an empty text: registered, and no value; null: not registered. */
export type CoarseCell = string | null;

export interface CoarseAsked {
  readonly tile: Tile;
  readonly cells: TileCells;
  readonly paint: CellPaint;
  readonly crawlerName: CrawlerName;
  /** 2^order cells to a side, 8 at most. */
  readonly order: number;
}

/** Row by row from the top. */
export function coarseMap(world: ExploredWorld, asked: CoarseAsked): CoarseCell[][] {
  const side = 2 ** asked.order;
  const count = cellsPerTile / side ** 2;
  const merged = emptyCells(side ** 2);
  for (let cell = 0; cell < side ** 2; cell += 1)
    mergeCells({ from: asked.cells, at: cell * count, count }, merged, cell);
  const corner = tileCorner(asked.tile);
  const before = asked.tile.index * side ** 2;
  return Array.from({ length: side }, (_, y) =>
    Array.from({ length: side }, (_, x) => {
      const at = { x: corner.x * side + x, y: corner.y * side + y };
      return labelOf(world, merged, {
        ...asked,
        cell: indexOfCell(at, asked.tile.zoom + asked.order) - before,
      });
    }),
  );
}

function labelOf(
  world: ExploredWorld,
  merged: TileCells,
  { cell, paint, crawlerName }: CoarseAsked & { readonly cell: number },
): CoarseCell {
  if (merged.registered[cell] === 0) return null;
  if (merged.chosen[cell] === 0) return "";
  const [rtt, since, load] = [
    merged.rtts[cell] as number,
    merged.since[cell] as number,
    merged.loads[cell] as number,
  ];
  const hours = Math.max(0, paint.nowSeconds - since) / 3600;
  const crawlerId = world.crawlerIdOf(merged.crawlers[cell] as number);
  const labels: Record<typeof paint.colouring, string | undefined> = {
    crawler: crawlerId === null ? undefined : (crawlerName(crawlerId) ?? "a crawler that left"),
    registry: registries[(merged.registries[cell] as number) - 1],
    rtt: rtt === noRtt ? undefined : rttLabels[stepOf(rtt / 10, rttStepsMs)],
    age: since === 0 ? undefined : ageLabels[stepOf(hours, ageStepsHours)],
    load: load <= 0 ? undefined : loadLabels[stepOf(load, loadStepsPagesPerDay)],
  };
  return labels[paint.colouring] ?? "";
}
