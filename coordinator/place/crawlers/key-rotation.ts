/** Replaces crawlers' keys as they age. */
import type { Secrets } from "#core/access-types";
import type { CrawlerId } from "#core/ids";
import type { CoordinatorMessage } from "#protocol/coordinator-messages";
import type { DueRotation } from "./identity.ts";
import type { IdentityStore } from "./identity-store.ts";

// Sends new keys to connected crawlers when an operator asked or the key is old. The former key stays valid until the
// crawler confirms (or shows) the new one, and for a grace period after that, so that a crash in between locks no
// crawler out.

interface RotationPorts {
  readonly identities: Pick<IdentityStore, "dueRotations" | "issueKey">;
  /** Returns false when the crawler is gone or too old to receive keys. */
  readonly gateway: { send(crawlerId: CrawlerId, message: CoordinatorMessage): boolean };
  readonly secrets: Secrets;
  readonly log: { info(fields: object, message: string): void };
  readonly now: () => Date;
}

/** A key serves 90 days, like public certificates; a sent one may take a minute to be stored. */
export const keyRule = { maxAgeDays: 90, resendMs: 60_000 } as const;

/** Returns how many crawlers were sent a new key. */
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
