import type { SubnetId } from "#core/ids";
import type { CoordinatorState } from "../../place/delegation/state.ts";
import type { TreeColumns } from "../../place/subnets/tree-columns.ts";
import { CrawlerCounts, nobody } from "./crawler-counts.ts";
import { PlaceLoads } from "./place-loads.ts";
import { parentPlace, spanOfPlace } from "./places.ts";

/** One tree with its delegations, by place. */
export class ExploredWorld {
  readonly columns: TreeColumns;
  readonly table: CoordinatorState["delegationTable"];
  readonly crawlers: CrawlerCounts;
  loads = new PlaceLoads({ places: [], pagesPerDay: [], dueHosts: [] });
  anycast: ReadonlySet<SubnetId> = new Set();
  /** Subnets with hosts or parts that are delegated separately. */
  finer: ReadonlySet<SubnetId> = new Set();

  constructor({ tree, delegationTable }: Pick<CoordinatorState, "tree" | "delegationTable">) {
    this.columns = tree.columns;
    this.table = delegationTable;
    this.crawlers = new CrawlerCounts(tree.size, (place) => {
      const row = this.rowAt(place);
      return row < 0 ? nobody : this.table.crawlerAt(row);
    });
  }

  /** The row of the delegation that applies to the place, its own or the nearest less specific one's; −1 for none. */
  rowAt(place: number): number {
    for (let at = place; at >= 0; at = parentPlace(this.columns, at)) {
      const row = this.#ownRow(at);
      if (row >= 0) return row;
    }
    return -1;
  }

  /** NaN when not measured. */
  rttMsAt(place: number): number {
    const row = this.rowAt(place);
    return row < 0 ? Number.NaN : this.table.rttMsAt(row);
  }

  isOwn(place: number): boolean {
    return this.#ownRow(place) >= 0;
  }

  /** For subnets that are in the tree. */
  placeOf(subnetId: SubnetId): number {
    return this.columns.byId.firstRow(subnetId);
  }

  /** The subnet's delegation changed, which also affects what is within it without one of its own. */
  follow(subnetId: SubnetId): void {
    const place = this.placeOf(subnetId);
    if (place >= 0) this.crawlers.forget(spanOfPlace(this.columns, place));
  }

  #ownRow(place: number): number {
    return this.table.rowOf(this.columns.ids[place] as SubnetId);
  }
}
