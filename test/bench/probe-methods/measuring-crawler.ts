/**
 * A crawler of the bench of probe methods, in a network namespace of its own: probes and downloads by the crawler's own code,
 * as lines of standard input ask. {id, what, address} is answered by {id, ms}; null: it did not come to an end.
 */
import { createInterface } from "node:readline";
import { SiteClient } from "#crawler/fetch/site-client";
import { Connector } from "#crawler/net/connector";
import { Prober } from "#crawler/probe/prober";
import { fetchingConfig } from "#crawler/settings/config";
import { type ProbeMethod, probeMethods } from "#protocol/messages";

export interface Errand {
  readonly id: number;
  readonly what: ProbeMethod | "download";
  readonly address: string;
}

const config = fetchingConfig({});
const connector = new Connector(config);
const userAgent = () => "Nearcrawl/bench";
const prober = new Prober({ connector, probeMethods: [...probeMethods], userAgent });
await prober.start();

async function measure({ what, address }: Errand): Promise<number | null> {
  if (what === "download") return await download(address);
  const target = { host: address, address, port: 80, secure: false, method: what };
  const outcome = await prober.probe({ ...target, tries: 6, deadlineMs: 5000 });
  return outcome.type === "measured" && outcome.method === what ? outcome.rttMs : null;
}

/** From the first packet to the last byte, over a connection of its own; names are no part of it. */
async function download(address: string): Promise<number | null> {
  const client = new SiteClient({ origin: `http://${address}`, connector, timeouts: config.timeouts });
  const startedMs = performance.now();
  try {
    const answer = await client.get({ path: "/", headers: { "user-agent": userAgent() } });
    await answer.read({ limit: 10_000_000, take: () => null });
    return performance.now() - startedMs;
  } catch {
    return null;
  } finally {
    await client.close();
  }
}

process.stdout.write(`${JSON.stringify({ methods: prober.methods })}\n`);
for await (const line of createInterface({ input: process.stdin })) {
  const errand = JSON.parse(line) as Errand;
  void measure(errand).then((ms) => process.stdout.write(`${JSON.stringify({ id: errand.id, ms })}\n`));
}
process.exit();
