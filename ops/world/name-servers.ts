/**
 * The name servers of a running world. The coordinator's answers everybody alike; where some names have several
 * addresses, each crawler gets a server at a port of its own, which answers with what is nearest to it (a
 * simple resolver does not say where it is, so the port has to).
 */
import { startDns } from "./dns-server.ts";
import { addressSeenBy } from "./model.ts";
import type { WorldState } from "./world-state.ts";

export interface RunningNameServers {
  /** `127.0.0.1:port` for who is no crawler. */
  readonly address: string;
  readonly addressFor: (crawlerIndex: number) => string;
  close(): Promise<void>;
}

export async function startNameServers({ world, siteByHost }: WorldState): Promise<RunningNameServers> {
  const startFor = (crawlerIndex: number | null) =>
    startDns((name) => {
      const site = siteByHost.get(name);
      return site ? addressSeenBy(world, site, crawlerIndex) : null;
    });
  const common = await startFor(null);
  const hasSeveral = world.sites.some(({ addresses }) => addresses.length > 1);
  const own = hasSeveral ? await Promise.all(world.crawlers.map((_, index) => startFor(index))) : [];
  return {
    address: common.address,
    addressFor: (crawlerIndex) => {
      if (!world.crawlers[crawlerIndex]) {
        throw new RangeError(`no crawler ${crawlerIndex}: the world has ${world.crawlers.length}`);
      }
      return (own[crawlerIndex] ?? common).address;
    },
    close: async () => {
      await Promise.all([common, ...own].map((server) => server.close()));
    },
  };
}
