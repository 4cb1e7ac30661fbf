/** Keys of crawlers are replaced as they get old. */
import type { Secrets } from "#core/access-types";
import type { CrawlerId } from "#core/ids";
import type { CoordinatorMessage } from "#protocol/coordinator-messages";
import type { DueRotation } from "./identity.ts";
import type { IdentityStore } from "./identity-store.ts";

// Connected crawlers get new keys: those for which an operator has asked, and those whose keys are old. The one
// before stays good until the crawler has said (or shown) that the new one is on its disk, and for a grace after
// that, so that no crash on the way locks a crawler out.

interface RotationPorts {
  readonly identities: Pick<IdentityStore, "dueRotations" | "issueKey">;
  /** False: it is gone, or too old to be given keys. */
  readonly gateway: { send(crawlerId: CrawlerId, message: CoordinatorMessage): boolean };
  readonly secrets: Secrets;
  readonly log: { info(fields: object, message: string): void };
  readonly now: () => Date;
}

/** A key serves 90 days, as certificates of the public authorities do; one that was sent may take a minute to be kept. */
export const keyRule = { maxAgeDays: 90, resendMs: 60_000 } as const;

/** Returns how many were sent a new key. */
export async function rotateKeys(
  crawlerIds: readonly CrawlerId[],
  ports: RotationPorts,
  rule: { readonly maxAgeDays: number; readonly resendMs: number },
): Promise<number> {
  if (crawlerIds.length === 0) return 0;
  const due = await ports.identities.dueRotations(crawlerIds, { ...rule, now: ports.now() });
  let sent = 0;
  for (const rotation of due) if (await rotate(rotation, ports)) sent += 1;
  return sent;
}

async function rotate(
  { crawlerId, scopes, graceHours }: DueRotation,
  { identities, gateway, secrets, log, now }: RotationPorts,
): Promise<boolean> {
  const { secret: key, hash: keyHash } = secrets.make();
  await identities.issueKey({ crawlerId, keyHash, scopes }, now());
  const oldKeySeconds = graceHours * 3600;
  const isSent = gateway.send(crawlerId, {
    type: "coordinator:key",
    key,
    scopes: [...scopes],
    oldKeySeconds,
  });
  if (isSent) log.info({ crawlerId, graceHours }, "a crawler was sent a new key");
  return isSent;
}
