/** What a probe is asked to measure: the host of a URL, at its port. */
import type { ProbeMethod } from "#protocol/messages";
import type { WaitingSubnet } from "./delegation.ts";

export interface ProbeSettings {
  readonly method: ProbeMethod;
  /** The smallest of so many counts. */
  readonly tries: number;
  readonly deadlineMs: number;
}

export function originOf({ url, host }: WaitingSubnet): { host: string; port: number; secure: boolean } {
  const parsed = new URL(url);
  const secure = parsed.protocol === "https:";
  return { host, port: parsed.port ? Number(parsed.port) : secure ? 443 : 80, secure };
}
