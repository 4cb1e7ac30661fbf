/**
 * Sends ICMP echoes with the system's `ping`, if available, because raw sockets require rights that a crawler should not have.
 * The options of `ping` differ, so the first variant that gets an answer from loopback is used.
 */
import { execFile } from "node:child_process";
import { timerMs } from "#core/timer-ms";

const searchPath = "/usr/bin:/bin:/usr/sbin:/sbin";

/** Implemented by this process, or by the supervisor of a crawler that may not start processes. */
export interface Echoes {
  canPing(): Promise<boolean>;
  /** Resolves with the round-trip times in ms of the echoes that returned. */
  timeEchoes(settings: EchoRequest): Promise<number[]>;
}

export interface EchoRequest {
  readonly address: string;
  readonly tries: number;
  readonly deadlineMs: number;
}

/** The command and its arguments without the address. */
type Way = (asked: {
  readonly isIpv6: boolean;
  readonly tries: number;
  readonly seconds: number;
}) => string[];

const ways: readonly Way[] = [
  // iputils (Linux), and BusyBox versions with fractional seconds.
  ({ isIpv6, tries, seconds }) =>
    `ping ${isIpv6 ? "-6" : "-4"} -n -c ${tries} -i 0.2 -w ${seconds}`.split(" "),
  // Other versions of BusyBox send once a second.
  ({ isIpv6, tries, seconds }) => `ping ${isIpv6 ? "-6" : "-4"} -c ${tries} -w ${seconds}`.split(" "),
  // BSD and macOS have a separate IPv6 command, restrict intervals below a second to root, and give -w another meaning.
  ({ isIpv6, tries }) => `${isIpv6 ? "ping6" : "ping"} -n -c ${tries}`.split(" "),
];

export function systemEchoes(path = searchPath): Echoes {
  let way: Way | null = null;
  const echoesBy = async (by: Way, { address, tries, deadlineMs }: EchoRequest): Promise<number[]> => {
    const seconds = Math.max(1, Math.ceil(deadlineMs / 1000));
    const [command, ...args] = by({ isIpv6: address.includes(":"), tries, seconds }) as [string, ...string[]];
    // When interrupted, ping prints its results so far.
    const options = { timeout: timerMs(deadlineMs), killSignal: "SIGINT", maxBuffer: 64 * 1024 } as const;
    const env = { PATH: path, LC_ALL: "C" };
    return await new Promise((resolve) => {
      execFile(command, [...args, address], { ...options, encoding: "utf8", env }, (_error, output) =>
        resolve(timesIn(output)),
      );
    });
  };
  return {
    canPing: async () => {
      for (const one of ways) {
        const times = await echoesBy(one, { address: "127.0.0.1", tries: 2, deadlineMs: 2000 });
        if (times.length === 0) continue;
        way = one;
        return true;
      }
      return false;
    },
    timeEchoes: async (asked) => (way === null ? [] : await echoesBy(way, asked)),
  };
}

/** Example: `64 bytes from 192.0.2.1: icmp_seq=1 ttl=57 time=12.3 ms` */
export function timesIn(output: string): number[] {
  return [...output.matchAll(/\btime[=<]([\d.]{1,12}) ?ms/g)]
    .map((match) => Number(match[1]))
    .filter(Number.isFinite);
}
