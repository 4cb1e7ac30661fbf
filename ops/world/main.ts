/**
 * Starts the emulated Internet in this process: name server, origins, and a proxy for each crawler, all on
 * loopback. A crawler needs no code for it: a proxy and a resolver are settings that real partners need too.
 */
import type { World } from "./model.ts";
import { startNameServers } from "./name-servers.ts";
import type { Loss, RouteChange } from "./network-conditions.ts";
import type { DailyWave, Spikes } from "./noise.ts";
import { currentBody, startOrigin } from "./origin.ts";
import { type ChangeProcess, PageChanges } from "./page-changes.ts";
import { startProxy } from "./proxy.ts";
import type { RequestLog } from "./request-log.ts";
import { worldState } from "./world-state.ts";

export interface StartOptions {
  /** Mean of an exponential delay on every handshake and request; default 0. */
  readonly noiseMs?: number;
  /** Rare delays on top of that; default none. */
  readonly spikes?: Spikes;
  /** A delay that comes and goes with the time of day; default none. */
  readonly dailyWave?: DailyWave;
  /** Handshakes that are late by a second or never answered; default none. */
  readonly loss?: Loss;
  /** How long a connection to an address that nobody has stays without an answer; default 10 s. */
  readonly timeoutMs?: number;
  /** Pages that change by themselves; default none does. */
  readonly changes?: ChangeProcess;
  /** Gets a line on what was started and on what was changed from outside. */
  readonly log?: (line: string) => void;
}

export interface RunningWorld {
  readonly world: World;
  /** `127.0.0.1:port`, UDP and TCP: the name server as the coordinator sees it. */
  readonly dnsAddress: string;
  /** The origins' own port: every site by its Host header, without any delay of the network. */
  readonly originPort: number;
  readonly requestLog: RequestLog;
  /** `http://127.0.0.1:port`, or the same port as `socks5://…`. */
  proxyUrlOf(crawlerIndex: number, scheme?: "http" | "socks5"): string;
  /**
   * The name server for one crawler: where names have several addresses, a port of its own, so that the server
   * knows who asks and answers with the nearest.
   */
  dnsAddressOf(crawlerIndex: number): string;
  setNoise(noiseMs: number): void;
  setSpikes(spikes: Spikes): void;
  setDailyWave(wave: DailyWave): void;
  setLoss(loss: Loss): void;
  /** Sets the world's clock, which the daily wave follows: ms since the epoch. */
  setClock(nowMs: number): void;
  /** From now on pages change by themselves, or (null) stay as they are planned. */
  setChanges(process: ChangeProcess | null): void;
  /** The body that a page has now, before compression; null: there is no such page. */
  currentBody(host: string, path: string): string | null;
  /** Returns how many addresses the change concerns. */
  changeRoute(change: RouteChange): number;
  /** Cuts a crawler off from all sites (its connections end, new ones get no answer), or connects it again. */
  setOutage(crawlerIndex: number, isCutOff: boolean): void;
  close(): Promise<void>;
}

export async function startWorld(world: World, options: StartOptions = {}): Promise<RunningWorld> {
  const { timeoutMs = 10_000, log = () => {} } = options;
  const state = worldState(world, { timeoutMs });
  const { conditions } = state;
  const { noise } = conditions;
  noise.setMean(options.noiseMs ?? 0);
  if (options.spikes) noise.setSpikes(options.spikes);
  if (options.dailyWave) noise.setDailyWave(options.dailyWave);
  if (options.loss) conditions.setLoss(options.loss);
  if (options.changes) state.changes.current = new PageChanges(options.changes);
  const names = await startNameServers(state);
  const origin = await startOrigin(state);
  const proxies = await Promise.all(
    world.crawlers.map((_, index) => startProxy(state, index, origin.connect)),
  );
  log(`${world.name}: names at ${names.address}, ${proxies.length} proxies, origins at port ${origin.port}`);
  return {
    world,
    dnsAddress: names.address,
    dnsAddressOf: names.addressFor,
    originPort: origin.port,
    requestLog: origin.requestLog,
    proxyUrlOf: (crawlerIndex, scheme = "http") => {
      const proxy = proxies[crawlerIndex];
      if (!proxy) throw new RangeError(`no crawler ${crawlerIndex}: the world has ${proxies.length}`);
      return `${scheme}://127.0.0.1:${proxy.port}`;
    },
    setNoise: (mean) => {
      noise.setMean(mean);
      log(`noise is now ${mean} ms`);
    },
    setSpikes: (spikes) => {
      noise.setSpikes(spikes);
      log(`${spikes.share} of the flights are now late by ${spikes.spikeMs} ms`);
    },
    setDailyWave: (wave) => {
      noise.setDailyWave(wave);
      log(`the daily wave is now ${wave.waveMs} ms high`);
    },
    setLoss: (loss) => {
      conditions.setLoss(loss);
      log(`${loss.share} of the handshakes are now lost, ${loss.neverShare} of these for good`);
    },
    setClock: (nowMs) => {
      noise.setClock(nowMs);
      log(`the world's clock is now at ${new Date(nowMs).toISOString()}`);
    },
    setChanges: (process) => {
      state.changes.current = process && new PageChanges(process);
      log(process ? "pages now change by themselves" : "pages now stay as they are planned");
    },
    currentBody: (host, path) => currentBody(state, host, path),
    changeRoute: (change) => {
      const addresses = conditions.changeRoute(change);
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
      await Promise.all([...proxies.map((proxy) => proxy.close()), names.close()]);
      await origin.close();
      state.queue.close();
    },
  };
}
