/**
 * Starts the emulated Internet in this process: name server, origins, and a proxy for each crawler, all on
 * loopback. A crawler needs no code for it: a proxy and a resolver are settings that real partners need too.
 */
import { startDns } from "./dns-server.ts";
import type { World } from "./model.ts";
import type { RouteChange } from "./network-conditions.ts";
import { startOrigin } from "./origin.ts";
import { startProxy } from "./proxy.ts";
import type { RequestLog } from "./request-log.ts";
import { worldState } from "./world-state.ts";

export interface StartOptions {
  /** Mean of an exponential delay on every handshake and request; default 0. */
  readonly noiseMs?: number;
  /** How long a connection to an address that nobody has stays without an answer; default 10 s. */
  readonly timeoutMs?: number;
  /** Gets a line on what was started and on what was changed from outside. */
  readonly log?: (line: string) => void;
}

export interface RunningWorld {
  readonly world: World;
  /** `127.0.0.1:port`, UDP and TCP. */
  readonly dnsAddress: string;
  /** The origins' own port: every site by its Host header, without any delay of the network. */
  readonly originPort: number;
  readonly requestLog: RequestLog;
  /** `http://127.0.0.1:port`, or the same port as `socks5://…`. */
  proxyUrlOf(crawlerIndex: number, scheme?: "http" | "socks5"): string;
  setNoise(noiseMs: number): void;
  /** Returns how many addresses the change concerns. */
  changeRoute(change: RouteChange): number;
  /** Cuts a crawler off from all sites (its connections end, new ones get no answer), or connects it again. */
  setOutage(crawlerIndex: number, isCutOff: boolean): void;
  close(): Promise<void>;
}

export async function startWorld(world: World, options: StartOptions = {}): Promise<RunningWorld> {
  const { noiseMs = 0, timeoutMs = 10_000, log = () => {} } = options;
  const state = worldState(world, { noiseMs, timeoutMs });
  const dns = await startDns((name) => state.siteByHost.get(name)?.address ?? null);
  const origin = await startOrigin(state);
  const proxies = await Promise.all(
    world.crawlers.map((_, index) => startProxy(state, index, origin.connect)),
  );
  log(`${world.name}: names at ${dns.address}, ${proxies.length} proxies, origins at port ${origin.port}`);
  return {
    world,
    dnsAddress: dns.address,
    originPort: origin.port,
    requestLog: origin.requestLog,
    proxyUrlOf: (crawlerIndex, scheme = "http") => {
      const proxy = proxies[crawlerIndex];
      if (!proxy) throw new RangeError(`no crawler ${crawlerIndex}: the world has ${proxies.length}`);
      return `${scheme}://127.0.0.1:${proxy.port}`;
    },
    setNoise: (mean) => {
      state.conditions.setNoise(mean);
      log(`noise is now ${mean} ms`);
    },
    changeRoute: (change) => {
      const addresses = state.conditions.changeRoute(change);
      log(
        `route of crawler ${change.crawlerIndex} to ${addresses} addresses is now ${change.factor} times as long`,
      );
      return addresses;
    },
    setOutage: (crawlerIndex, isCutOff) => {
      state.setOutage(crawlerIndex, isCutOff);
      log(`crawler ${crawlerIndex} is ${isCutOff ? "cut off" : "connected again"}`);
    },
    close: async () => {
      await Promise.all([...proxies.map((proxy) => proxy.close()), dns.close()]);
      await origin.close();
      state.queue.close();
    },
  };
}
