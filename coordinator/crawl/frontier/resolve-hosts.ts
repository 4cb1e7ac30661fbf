/**
 * Resolves hosts whose DNS answer is missing or expired, refuses special-purpose addresses (never probed or crawled),
 * and finds each host's most specific subnet of more than one address (paper section 4.3).
 */
import type { SubnetId } from "#core/ids";
import { parseAddress } from "#core/ip/address";
import { type AllowedSpecialPurpose, refusedBlockOf } from "#core/ip/special-purpose";
import type { NameResolver } from "#core/name-resolver";
import type { Resolution } from "./frontier.ts";
import type { FrontierStore } from "./frontier-store.ts";

interface ResolveHostsPorts {
  readonly frontier: Pick<FrontierStore, "hostsToResolve" | "saveResolutions">;
  readonly resolver: NameResolver;
  readonly subnetOf: (address: string) => SubnetId | null;
}

interface ResolveHostsSettings {
  readonly batch: number;
  readonly allowSpecialPurpose: AllowedSpecialPurpose;
}

export async function resolveHosts(
  ports: ResolveHostsPorts,
  settings: ResolveHostsSettings,
  now: () => Date,
): Promise<number> {
  const hosts = await ports.frontier.hostsToResolve(settings.batch, now());
  if (hosts.length === 0) return 0;
  const resolutions = await Promise.all(hosts.map((host) => resolveHost(host, ports, settings)));
  await ports.frontier.saveResolutions(resolutions, now());
  return resolutions.length;
}

async function resolveHost(
  host: string,
  ports: ResolveHostsPorts,
  settings: ResolveHostsSettings,
): Promise<Resolution> {
  const answer = await ports.resolver.resolve(host);
  if ("failed" in answer) return { type: "failed", host, reason: answer.failed };
  const judged = answer.addresses.map((address) => ({ address, block: blockOf(address, settings) }));
  const usable = judged.filter(({ block }) => block === null);
  const [first] = usable;
  const [refused] = judged;
  if (!refused) return { type: "failed", host, reason: "the name has no address" };
  if (!first) {
    const reason = `${refused.address} is a special-purpose address (${refused.block})`;
    return { type: "refused", host, addresses: answer.addresses, reason };
  }
  return {
    type: "resolved",
    host,
    addresses: usable.map(({ address }) => address),
    subnetId: ports.subnetOf(first.address),
    ttlSeconds: answer.ttlSeconds,
  };
}

function blockOf(address: string, { allowSpecialPurpose }: ResolveHostsSettings): string | null {
  const parsed = parseAddress(address);
  return parsed ? refusedBlockOf(parsed, allowSpecialPurpose) : "not an address";
}
