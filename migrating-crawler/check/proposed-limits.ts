/**
 * Proposes limits for `join` from the machine's processors, memory and free disk, and from a short measurement of the link: it
 * downloads the bundle that the coordinator serves to anybody. Apart from that download, everything here is pure.
 */
import http from "node:http";
import https from "node:https";
import { timerMs } from "#core/timer-ms";
import { bytesInWords } from "../limits/limit-usage.ts";
import { type CoordinatorRoute, connectionTo } from "../net/coordinator-socket.ts";
import type { CrawlerLimits } from "../settings/limits-config.ts";

export type ProposedLimits = Partial<
  Pick<CrawlerLimits, "bytesPerDay" | "kilobytesPerSecond" | "cpuShare" | "memoryBytes" | "diskBytes">
>;

const mebibyte = 1024 * 1024;
const gibibyte = 1024 * mebibyte;
const secondsPerDay = 86_400;

const mostMeasuredMs = 3000;
const mostMeasuredBytes = 4 * mebibyte;

/** Returns bytes per second, or null if the coordinator serves nothing to measure with. */
export function measureLink(coordinatorUrl: string, route: CoordinatorRoute): Promise<number | null> {
  const url = new URL("/releases/dock.mjs", coordinatorUrl.replace(/^ws/, "http"));
  const { request } = url.protocol === "https:" ? https : http;
  const createConnection = connectionTo(url, route) as unknown as NonNullable<
    http.RequestOptions["createConnection"]
  >;
  return new Promise((resolve) => {
    let [startedMs, bytes] = [0, 0];
    const asked = request(url, { createConnection, headers: { connection: "close" } });
    const end = () => {
      clearTimeout(late);
      asked.destroy();
      const ms = performance.now() - startedMs;
      resolve(bytes === 0 ? null : (1000 * bytes) / Math.max(1, ms));
    };
    const late = setTimeout(end, timerMs(mostMeasuredMs));
    asked.on("error", end).once("response", (answer) => {
      if (answer.statusCode !== 200) return end();
      startedMs = performance.now();
      answer.on("data", (piece: Buffer) => {
        bytes += piece.length;
        if (bytes >= mostMeasuredBytes) end();
      });
      answer.on("end", end).on("error", end);
    });
    asked.end();
  });
}

interface Measured {
  /** Null if it was not measured. */
  readonly linkBytesPerSecond: number | null;
  readonly processors: number;
  readonly memoryBytes: number;
  /** Null if the system does not report it. */
  readonly freeDiskBytes: number | null;
}

/** `linkShare` is small enough for the link's owner not to notice. `dayShare` makes a monthly volume last. */
const linkShare = 1 / 4;
const mostKilobytesPerSecond = 2000;
/** 8 Mbit/s, assumed when the link was not measured. */
const usualKilobytesPerSecond = 1000;
const dayShare = 1 / 8;

/** Proposes a quarter of the link, half of the processors but at most one, and a quarter of the memory. */
export function proposedLimits(measured: Measured): Required<ProposedLimits> {
  const { linkBytesPerSecond, processors, memoryBytes, freeDiskBytes } = measured;
  const linkKilobytes =
    linkBytesPerSecond === null ? usualKilobytesPerSecond : (linkBytesPerSecond * linkShare) / 1024;
  const kilobytesPerSecond = Math.round(within(linkKilobytes, 16, mostKilobytesPerSecond));
  return {
    kilobytesPerSecond,
    bytesPerDay: rounded(kilobytesPerSecond * 1024 * secondsPerDay * dayShare),
    cpuShare: Math.min(1, processors / 2),
    memoryBytes: rounded(within(memoryBytes / 4, 320 * mebibyte, gibibyte)),
    diskBytes:
      freeDiskBytes === null ? null : rounded(within(freeDiskBytes / 10, 640 * mebibyte, 4 * gibibyte)),
  };
}

/** Example: `Limits: at most 500 KiB a second and 5273 MB a day …` */
export function limitWords(limits: Pick<CrawlerLimits, keyof ProposedLimits>): string[] {
  const { bytesPerDay, kilobytesPerSecond, cpuShare, memoryBytes, diskBytes } = limits;
  const fullDay = kilobytesPerSecond === null ? null : kilobytesPerSecond * 1024 * secondsPerDay;
  const day = Math.round(Math.min(bytesPerDay, fullDay ?? bytesPerDay) / 1e6);
  return [
    `network    up to ${day} MB a day, both ways together (${Math.round((30 * day) / 1000)} GB in 30 ` +
      `days)${kilobytesPerSecond === null ? ", at any speed" : `, at ${kilobytesPerSecond} KiB a second at most`}`,
    `processor  ${cpuShare === null ? "what nobody else wants" : `${cpuShare} of one processor`}, at the lowest priority`,
    `memory     ${memoryBytes === null ? "what it needs" : `up to ${bytesInWords(memoryBytes)}`}`,
    `disk       ${diskBytes === null ? "what results and lists need" : `up to ${bytesInWords(diskBytes)}`}`,
  ];
}

const within = (value: number, least: number, most: number) => Math.min(most, Math.max(least, value));
const rounded = (bytes: number) => Math.floor(bytes / mebibyte) * mebibyte;
