/**
 * Notices between the coordinators of a database by Postgres' NOTIFY: changes, which the receiver then reads in the
 * database, and probes for crawlers that are connected elsewhere. A notice must be under 8000 bytes.
 */
import { z } from "zod";
import { address, hostName } from "#protocol/fields";
import { probeMethod, probeOutcome } from "#protocol/messages";

/** Maximum numbers in a notice, each up to 11 bytes long. */
export const mostNumbers = 500;

const from = z.int().min(1);
const id = z.int().min(1);
const ids = z.array(id).max(mostNumbers);

/** The target as `Fleet.probe` takes it. */
const target = z.object({
  host: hostName,
  address,
  byName: z.boolean().optional(),
  port: z.int().min(1).max(65_535),
  secure: z.boolean(),
  method: probeMethod,
  tries: z.int().min(1).max(20),
  deadlineMs: z.int().min(1).max(60_000),
});

const notice = z.discriminatedUnion("type", [
  /** A coordinator arrived, left or gave up the lead. */
  z.object({ type: z.literal("presence"), from }),
  /** Crawlers arrived, left or changed. `null` means many. */
  z.object({ type: z.literal("crawlers"), from, ids: ids.nullable() }),
  z.object({ type: z.literal("delegations"), from, ids }),
  /** These crawlers have measured others. */
  z.object({ type: z.literal("rtts"), from, ids }),
  /** There are rows in round_request. */
  z.object({ type: z.literal("requests"), from }),
  /** Pages and bytes that crawlers have fetched since the last such notice. */
  z.object({
    type: z.literal("spent"),
    from,
    of: z.array(z.tuple([id, z.int().min(0), z.number().min(0)])).max(mostNumbers / 4),
  }),
  /** Sent to the crawler's coordinator. */
  z.object({ type: z.literal("probe"), from, to: id, requestId: z.int().min(1), crawlerId: id, target }),
  z.object({ type: z.literal("probed"), from, to: id, requestId: z.int().min(1), outcome: probeOutcome }),
]);

export type Notice = z.infer<typeof notice>;

/** Returns null if the notice is from another release or for another coordinator. */
export function noticeIn(text: string, own: number): Notice | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  const { data } = notice.safeParse(value);
  if (data === undefined || data.from === own) return null;
  return "to" in data && data.to !== own ? null : data;
}

/** Splits items into pieces that fit into a notice. */
export function inPieces<Item>(items: Iterable<Item>, most: number): Item[][] {
  const all = [...items];
  return Array.from({ length: Math.ceil(all.length / most) }, (_, at) =>
    all.slice(at * most, (at + 1) * most),
  );
}
