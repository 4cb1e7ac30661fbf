/**
 * ICMP echo by the system's `ping`, where it exists and may be used: raw sockets need rights that a crawler
 * should not have. Whether it works is tried once, on loopback.
 */
import { execFile } from "node:child_process";
import { timerMs } from "#core/timer-ms";

const searchPath = "/usr/bin:/bin:/usr/sbin:/sbin";

/** Who asks for echoes: this process, or the dock of one that may start no process. */
export interface Echoes {
  canPing(): Promise<boolean>;
  /** The times of those that came back, in ms; empty when none did. */
  timeEchoes(settings: EchoRequest): Promise<number[]>;
}

export interface EchoRequest {
  readonly address: string;
  readonly tries: number;
  readonly deadlineMs: number;
}

export function canPing(): Promise<boolean> {
  return new Promise((resolve) => {
    execFile("ping", ["-n", "-c", "1", "-W", "1", "127.0.0.1"], options(2000), (error) =>
      resolve(error === null),
    );
  });
}

/** The times of the echoes that came back, in ms; empty when none did. */
export function timeEchoes(settings: EchoRequest): Promise<number[]> {
  const deadlineSeconds = Math.max(1, Math.ceil(settings.deadlineMs / 1000));
  const family = settings.address.includes(":") ? "-6" : "-4";
  const args = [
    family,
    "-n",
    "-c",
    `${settings.tries}`,
    "-i",
    "0.2",
    "-w",
    `${deadlineSeconds}`,
    settings.address,
  ];
  return new Promise((resolve) => {
    execFile("ping", args, options(timerMs(settings.deadlineMs)), (_error, output) =>
      resolve(timesIn(output)),
    );
  });
}

export const systemEchoes: Echoes = { canPing, timeEchoes };

/** `64 bytes from 192.0.2.1: icmp_seq=1 ttl=57 time=12.3 ms` */
export function timesIn(output: string): number[] {
  return [...output.matchAll(/\btime[=<]([\d.]{1,12}) ?ms/g)]
    .map((match) => Number(match[1]))
    .filter(Number.isFinite);
}

const options = (timeout: number) => ({
  timeout,
  maxBuffer: 64 * 1024,
  encoding: "utf8" as const,
  env: { PATH: searchPath, LC_ALL: "C" },
});
