/** What an address, a form or a command asks of the explorer, checked: which view, where, coloured by what, which subnets. */

import { type IpRange, parseRange } from "#core/ip/range";
import { isEmptyFilter, readFilter, readPlace, type SubnetFilter } from "./filter.ts";
import { type ListOrder, listOrders } from "./list.ts";
import { type Colouring, colourings } from "./paint.ts";
import { rootTile, spaceOf, type Tile, tileHolding } from "./space.ts";
import { type ChildOrder, childOrders } from "./tree-level.ts";

export const exploreViews = ["map", "tree", "list"] as const;
export type ExploreView = (typeof exploreViews)[number];

export interface ExploreQuestion {
  readonly view: ExploreView;
  /** As it was asked for; the whole of IPv4 where nothing was. */
  readonly at: IpRange;
  readonly tile: Tile;
  readonly colouring: Colouring;
  readonly filter: SubnetFilter;
  readonly listOrder: ListOrder;
  readonly childOrder: ChildOrder;
  /** Go on behind this range. */
  readonly after: IpRange | null;
  readonly limit: number;
}

export const defaultLimit = 50;
export const mostLimit = 200;

/** A string: why it cannot be asked. `given`: the value of a name, empty when there is none. */
export function readQuestion(given: (name: string) => string): ExploreQuestion | string {
  const filter = readFilter(given);
  if (typeof filter === "string") return filter;
  const at = readPlace(given("at"));
  if (at === null)
    return `at: ${shortened(given("at"))} is not an address, a block such as 192.0.2.0/24, or a range.`;
  const after = given("after") === "" ? null : parseRange(given("after").slice(0, 100));
  if (given("after") !== "" && after === null) return `after: ${shortened(given("after"))} is not a range.`;
  const view = oneOf(exploreViews, given("view"), isEmptyFilter(filter) ? "map" : "list");
  if (view === null) return `view: ${shortened(given("view"))} is not one of ${exploreViews.join(", ")}.`;
  const colouring = oneOf(colourings, given("colour"), "crawler");
  if (colouring === null)
    return `colour: ${shortened(given("colour"))} is not one of ${colourings.join(", ")}.`;
  const sort = given("sort");
  const listOrder = oneOf(listOrders, sort, "address");
  if (listOrder === null) return `sort: ${shortened(sort)} is not one of ${listOrders.join(", ")}.`;
  const limit = given("limit") === "" ? defaultLimit : Number(given("limit"));
  if (!Number.isInteger(limit) || limit < 1 || limit > mostLimit)
    return `limit: ${shortened(given("limit"))} is not a whole number from 1 to ${mostLimit}.`;
  return {
    ...{ view, at, colouring, filter, listOrder, after, limit },
    tile: tileHolding(at) ?? rootTile(spaceOf(at.family)),
    childOrder: childOrders.find((order) => order === sort) ?? "address",
  };
}

function oneOf<Value extends string>(
  values: readonly Value[],
  given: string,
  otherwise: Value,
): Value | null {
  return given === "" ? otherwise : (values.find((value) => value === given) ?? null);
}

const shortened = (text: string) => (text.length > 60 ? `${text.slice(0, 60)}…` : text);
