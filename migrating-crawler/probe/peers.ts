/** Measures the distance to the other crawlers, a few at a time, and returns one report. */
import type { CoordinatorMessage } from "#protocol/coordinator-messages";
import type { ProbeOutcome } from "#protocol/messages";
import type { Prober } from "./prober.ts";

type Peer = Extract<CoordinatorMessage, { type: "coordinator:peers" }>["peers"][number];
export interface PeerRtt {
  readonly crawlerId: number;
  readonly outcome: ProbeOutcome;
}

const atATime = 4;
const triesPerPeer = 5;
const deadlineMs = 5000;

/** Keeps the order of the peers. A newer list aborts the older one's signal, which returns the results so far. */
export async function measurePeers(
  prober: Pick<Prober, "probe">,
  peers: readonly Peer[],
  signal: AbortSignal,
): Promise<PeerRtt[]> {
  const measured: PeerRtt[] = [];
  const waiting = peers.entries();
  const worker = async () => {
    for (const [index, peer] of waiting) {
      if (signal.aborted) return;
      const { address, port, crawlerId } = peer;
      const outcome = await prober.probe({
        host: address,
        address,
        port,
        secure: false,
        method: "connect",
        tries: triesPerPeer,
        deadlineMs,
      });
      measured[index] = { crawlerId, outcome };
    }
  };
  await Promise.all(Array.from({ length: atATime }, worker));
  return measured.filter((one) => one !== undefined);
}
