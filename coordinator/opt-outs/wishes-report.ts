/** What a site has asked of us: its opt-out, and complaints about it. */
import type { Pool } from "pg";
import { iso, isoOrNull } from "../database/cached-read.ts";
import type { SiteWishes } from "../who/who-wishes.ts";
import { createComplaintStore } from "./complaint-store.ts";
import { createOptOutStore } from "./store.ts";

const complaintsShown = 10;

export async function wishesOf(
  pool: Pool,
  host: string | null,
  addresses: readonly string[],
): Promise<SiteWishes> {
  const [optOut, complaints] = await Promise.all([
    createOptOutStore(pool).covering(host, addresses),
    createComplaintStore(pool).of(host, addresses, complaintsShown),
  ]);
  return {
    optOut: optOut && {
      target: optOut.target,
      kind: optOut.kind,
      state: optOut.state === "confirmed" ? "confirmed" : "unconfirmed",
      since: iso(optOut.inForceAt ?? optOut.createdAt),
      lapsesAt: isoOrNull(optOut.lapsesAt),
    },
    complaints: complaints.map(({ complaintId, target, createdAt, closedAt }) => ({
      complaintId,
      target,
      at: iso(createdAt),
      open: closedAt === null,
    })),
  };
}
