/**
 * The messages by which a crawler moves to another host. That host already runs a crawler (OTHER) with its own identity. The
 * moving crawler (NAME) signs its name over to that identity and sends what it keeps on its disk. No private key and no key
 * of the coordinator's leaves a machine, so the data holds nothing that is worth stealing.
 *
 *   coordinator → OTHER  make-ready      OTHER  → coordinator  ready      its own work is done and shipped
 *   coordinator → NAME   pack            NAME   → coordinator  packed     its own work is done; what it keeps, signed
 *   coordinator → OTHER  take            OTHER  → coordinator  next 0     part by part, one under way at a time:
 *   coordinator → NAME   send 0          NAME   → coordinator  part 0
 *   coordinator → OTHER  part 0          OTHER  → coordinator  next 1 …   and in the end: arrived
 *
 * Then the coordinator binds NAME to OTHER's identity in one transaction and refuses both sessions with `moved`. Until then,
 * each side may say `failed`; the end of its session has the same effect.
 */
import { z } from "zod";
import { coordinatorWords, digest, words } from "./fields.ts";
import { publicKey, signature } from "./identity.ts";
import { crawlerName } from "./invitation.ts";

/** Maximum size of a whole move. A crawler with more data that cannot be shipped first does not move. */
export const maxMoveBytes = 64 * 1024 * 1024;
export const movePartBytes = 256 * 1024;
export const partsOf = (bytes: number): number => Math.ceil(bytes / movePartBytes);

const moveId = z.int().min(1);
const index = z
  .int()
  .min(0)
  .max(partsOf(maxMoveBytes) - 1);
const part = z
  .string()
  .max(4 * Math.ceil(movePartBytes / 3), { abort: true })
  .regex(/^[A-Za-z0-9+/]*={0,2}$/);
const bytes = z.int().min(1).max(maxMoveBytes);

export const crawlerMove = z.object({
  type: z.literal("crawler:move"),
  moveId,
  says: z.discriminatedUnion("what", [
    z.object({ what: z.literal("ready") }),
    /** `digest` is the SHA-256 over all parts, and `signature` is that of `moveText` with NAME's key. */
    z.object({ what: z.literal("packed"), bytes, digest, signature }),
    z.object({ what: z.literal("next"), index }),
    z.object({ what: z.literal("part"), index, part }),
    z.object({ what: z.literal("arrived") }),
    z.object({ what: z.literal("failed"), reason: words }),
  ]),
});
export type CrawlerMove = z.infer<typeof crawlerMove>;

export const coordinatorMove = z.object({
  type: z.literal("coordinator:move"),
  moveId,
  asks: z.discriminatedUnion("what", [
    z.object({ what: z.literal("make-ready"), name: crawlerName }),
    z.object({ what: z.literal("pack"), publicKey }),
    z.object({ what: z.literal("take"), bytes, digest }),
    z.object({ what: z.literal("send"), index }),
    z.object({ what: z.literal("part"), index, part }),
    z.object({ what: z.literal("failed"), reason: coordinatorWords }),
  ]),
});
export type CoordinatorMove = z.infer<typeof coordinatorMove>;

/** Returns what NAME signs: its name and the data with this digest now belong to the other identity. */
export function moveText(move: {
  readonly moveId: number;
  readonly name: string;
  readonly from: string;
  readonly to: string;
  readonly digest: string;
}): string {
  const { moveId: id, name, from, to, digest: packed } = move;
  return ["nearcrawl move 3", id, name, from, to, packed].join("\n");
}
