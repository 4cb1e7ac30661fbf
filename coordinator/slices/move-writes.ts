/** Moves that are planned, one after the other and stage by stage (move-hosts-store), by whoever leads. */
import type { Pool } from "pg";
import type { OpenSlice } from "../database/slices.ts";
import { handOver, leaveStage, type MoveStage, noteFault, type SliceMove } from "./catalogue-store.ts";
import { clearHosts, copyHosts, letGo, welcomeMoved } from "./move-hosts-store.ts";

export interface MovePorts {
  readonly shared: Pool;
  readonly slice: (number: number) => OpenSlice;
}

export type Advance =
  /** It came a stage further. */
  | { readonly type: "advanced"; readonly stage: MoveStage }
  /** So many leases of its hosts are open still. */
  | { readonly type: "waits"; readonly leases: number }
  /** Why its stage could not be left: it is tried again. */
  | { readonly type: "failed"; readonly fault: string };

export async function advanceMove(move: SliceMove, ports: MovePorts): Promise<Advance> {
  try {
    return await advance(move, ports);
  } catch (error) {
    const fault = (error as Error).message;
    await noteFault(ports.shared, move, fault);
    return { type: "failed", fault };
  }
}

async function advance(move: SliceMove, { shared, slice }: MovePorts): Promise<Advance> {
  const { buckets, stage } = move;
  const [from, to] = [slice(move.from), slice(move.to)];
  if (stage === "planned") return await next(shared, move, "letting-go");
  if (stage === "letting-go") {
    const leases = await letGo(from, buckets);
    return leases > 0 ? { type: "waits", leases } : await next(shared, move, "copying");
  }
  if (stage === "copying") {
    const hosts = await copyHosts(from, to, buckets);
    return await next(shared, move, "handing-over", hosts === null ? {} : { hosts });
  }
  if (stage === "handing-over") {
    await handOver(shared, move);
    return { type: "advanced", stage: "clearing" };
  }
  await welcomeMoved(to, buckets);
  await clearHosts(from, buckets, move.hosts ?? Number.POSITIVE_INFINITY);
  return await next(shared, move, "done");
}

async function next(
  shared: Pool,
  move: SliceMove,
  stage: MoveStage,
  facts: { readonly hosts?: number } = {},
): Promise<Advance> {
  await leaveStage(shared, move, stage, facts);
  return { type: "advanced", stage };
}
